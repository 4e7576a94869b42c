//! The head of the screen: name, status, progress and best score of the run.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::draw::ScreenInput;
use super::super::status::RunStatus;
use super::super::summary;
use super::super::table::{cut, width};
use super::super::{number, view::Page};

/// Draws up to three lines: title and pages, progress, score and values.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    for (line, y) in [title, progress, values].into_iter().zip(area.top()..area.bottom()) {
        buf.set_line(area.x, y, &line(input, area.width.into()), area.width);
    }
}

/// The screen before the first event of a run.
pub fn draw_waiting(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    super::nothing(input.silence, input.theme, area, buf);
    0
}

fn title(input: &ScreenInput<'_>, columns: usize) -> Line<'static> {
    let theme = input.theme;
    let style = match input.status {
        RunStatus::Live | RunStatus::Complete => theme.good(),
        RunStatus::Silent | RunStatus::Killed | RunStatus::Failed => theme.bad(),
        RunStatus::Waiting | RunStatus::Stopped => theme.strong(),
    };
    let word = match input.pace {
        Some(pace) => format!(" replay {} ", pace.text()),
        None if input.view.is_paused => " paused ".to_owned(),
        None => format!(" {} ", input.status.word()),
    };
    let style = style.patch(theme.reversed());
    let mut spans = vec![Span::styled(word, style), Span::raw(" ")];
    let tabs = tabs(input, columns);
    let n_tabs: usize = tabs.iter().map(Span::width).sum();
    let used: usize = spans.iter().map(Span::width).sum();
    let room = columns.saturating_sub(used + n_tabs + 1);
    let text = cut(&summary::title(input.snapshot), room);
    let pad = columns.saturating_sub(used + n_tabs + width(&text));
    spans.push(Span::styled(text, theme.strong()));
    spans.push(Span::raw(" ".repeat(pad)));
    spans.extend(tabs);
    Line::from(spans)
}

/// The pages by name where there is room, else by number.
fn tabs(input: &ScreenInput<'_>, columns: usize) -> Vec<Span<'static>> {
    let style = |page: Page| -> Style {
        if page == input.view.page {
            input.theme.accent().patch(input.theme.reversed())
        } else {
            input.theme.faint()
        }
    };
    if columns >= 90 {
        let each = Page::ALL.into_iter().enumerate();
        each.map(|(at, page)| Span::styled(format!(" {} {} ", at + 1, page.name()), style(page))).collect()
    } else {
        let page = input.view.page;
        vec![Span::styled(format!(" {}/{} {} ", page.idx() + 1, Page::ALL.len(), page.name()), style(page))]
    }
}

fn progress(input: &ScreenInput<'_>, columns: usize) -> Line<'static> {
    let snapshot = input.snapshot;
    let name = number::clean(&snapshot.progress);
    let mut texts = Vec::new();
    let share = summary::share_done(snapshot);
    texts.extend(share.map(number::percent));
    texts.extend(summary::pace(snapshot).map(|pace| format!("{} {name}/s", number::rough(pace))));
    if input.status == RunStatus::Live
        && let Some(eta_s) = snapshot.eta_s()
    {
        texts.push(format!("{} left", number::seconds(eta_s)));
    }
    let done = number::amount(snapshot.done);
    texts.push(match snapshot.total {
        Some(total) => format!("{done} of {} {name}", number::amount(total)),
        None => format!("{done} {name}"),
    });
    texts.push(format!("{} at work", number::seconds(elapsed_s(input))));
    if snapshot.n_resumes > 0 {
        texts.push(format!("resumed {}×", snapshot.n_resumes));
    }
    let bar_columns = if share.is_some() { (columns / 4).clamp(6, 50) } else { 0 };
    let text = joined(&texts, "  ", columns.saturating_sub(bar_columns + 1));
    let mut spans = bar(share, bar_columns, input);
    spans.push(Span::raw(format!(" {text}")));
    Line::from(spans)
}

/// Seconds at work, up to now while it runs.
fn elapsed_s(input: &ScreenInput<'_>) -> f64 {
    let silent_s = match (input.status, input.snapshot.last) {
        (RunStatus::Live, Some(last)) => (input.now.as_ms() - last.as_ms()).max(0) as f64 / 1e3,
        _ => 0.0,
    };
    input.snapshot.elapsed_s() + silent_s
}

fn bar(share: Option<f64>, columns: usize, input: &ScreenInput<'_>) -> Vec<Span<'static>> {
    let n_full = (share.unwrap_or(0.0) * columns as f64).round() as usize;
    vec![
        Span::styled("█".repeat(n_full), input.theme.accent()),
        Span::styled("░".repeat(columns.saturating_sub(n_full)), input.theme.faint()),
    ]
}

fn values(input: &ScreenInput<'_>, columns: usize) -> Line<'static> {
    let snapshot = input.snapshot;
    let mut texts: Vec<Span<'static>> = Vec::new();
    if let Some(best) = snapshot.best {
        texts.push(Span::styled(number::named(&number::clean(&snapshot.score), best), input.theme.good()));
    }
    texts.extend(alert(input).map(|text| Span::styled(text, input.theme.bad())));
    for (name, series) in [("busy", &snapshot.busy), ("fill", &snapshot.fill)] {
        let share = series.newest().map(summary::at_most_all);
        texts.extend(share.map(|share| Span::raw(number::named(name, share))));
    }
    texts.extend(summary::values(snapshot).into_iter().map(Span::raw));
    let mut spans: Vec<Span<'static>> = Vec::new();
    for text in texts {
        let used: usize = spans.iter().map(Span::width).sum();
        let room = columns.saturating_sub(if used > 0 { used + 3 } else { 0 });
        // Half of a number would be a wrong number; half of a sentence is better than none.
        let is_sentence = text.content.contains(": ") || text.content.contains(" since ");
        if text.width() > room && !(is_sentence && room > 10) {
            break;
        }
        if used > 0 {
            spans.push(Span::styled(" | ", input.theme.faint()));
        }
        spans.push(Span::styled(cut(&text.content, room), text.style));
    }
    Line::from(spans)
}

/// The most important warning, if there is one.
fn alert(input: &ScreenInput<'_>) -> Option<String> {
    let snapshot = input.snapshot;
    match input.status {
        RunStatus::Silent | RunStatus::Killed | RunStatus::Failed if input.pace.is_none() => {
            Some(input.status.sentence(snapshot, input.now))
        }
        _ => {
            let fallback = snapshot.fallbacks.back()?;
            Some(format!("fell back to the CPU: {}", number::clean(&fallback.text)))
        }
    }
}

/// As many of the texts as fit.
fn joined(texts: &[String], between: &str, columns: usize) -> String {
    let mut out = String::new();
    for text in texts {
        let gap = if out.is_empty() { "" } else { between };
        if width(&out) + width(gap) + width(text) > columns {
            break;
        }
        out += gap;
        out += text;
    }
    out
}
