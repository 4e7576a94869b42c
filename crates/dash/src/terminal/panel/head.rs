//! The head of the screen: what the run is, how it stands, how far it is, what it has reached.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::draw::Scene;
use super::super::standing::Standing;
use super::super::summary;
use super::super::table::{cut, width};
use super::super::{number, view::Page};

/// Draws up to three lines: title and pages, progress, score and values.
pub fn draw(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
    for (line, y) in [title, progress, values].into_iter().zip(area.top()..area.bottom()) {
        buf.set_line(area.x, y, &line(scene, area.width.into()), area.width);
    }
}

/// What is there before a run has said anything.
pub fn draw_waiting(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    super::nothing(scene.silence, scene.theme, area, buf);
    0
}

fn title(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let theme = scene.theme;
    let style = match scene.standing {
        Standing::Live | Standing::Complete => theme.good(),
        Standing::Silent | Standing::Killed | Standing::Failed => theme.bad(),
        Standing::Waiting | Standing::Stopped => theme.strong(),
    };
    let word = match scene.pace {
        Some(pace) => format!(" replay {} ", pace.text()),
        None if scene.view.is_paused => " paused ".to_owned(),
        None => format!(" {} ", scene.standing.word()),
    };
    let style = style.patch(theme.reversed());
    let mut spans = vec![Span::styled(word, style), Span::raw(" ")];
    let tabs = tabs(scene, columns);
    let n_tabs: usize = tabs.iter().map(Span::width).sum();
    let used: usize = spans.iter().map(Span::width).sum();
    let room = columns.saturating_sub(used + n_tabs + 1);
    let text = cut(&summary::title(scene.snapshot), room);
    let pad = columns.saturating_sub(used + n_tabs + width(&text));
    spans.push(Span::styled(text, theme.strong()));
    spans.push(Span::raw(" ".repeat(pad)));
    spans.extend(tabs);
    Line::from(spans)
}

/// The pages by name where there is room, else by number.
fn tabs(scene: &Scene<'_>, columns: usize) -> Vec<Span<'static>> {
    let style = |page: Page| -> Style {
        if page == scene.view.page {
            scene.theme.accent().patch(scene.theme.reversed())
        } else {
            scene.theme.faint()
        }
    };
    if columns >= 90 {
        let each = Page::ALL.into_iter().enumerate();
        each.map(|(at, page)| Span::styled(format!(" {} {} ", at + 1, page.name()), style(page))).collect()
    } else {
        let page = scene.view.page;
        vec![Span::styled(format!(" {}/{} {} ", page.idx() + 1, Page::ALL.len(), page.name()), style(page))]
    }
}

fn progress(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let snapshot = scene.snapshot;
    let name = number::clean(&snapshot.progress);
    let mut texts = Vec::new();
    let share = summary::share_done(snapshot);
    texts.extend(share.map(number::percent));
    texts.extend(summary::pace(snapshot).map(|pace| format!("{} {name}/s", number::rough(pace))));
    if scene.standing == Standing::Live
        && let Some(eta_s) = snapshot.eta_s()
    {
        texts.push(format!("{} left", number::seconds(eta_s)));
    }
    let done = number::count(snapshot.done);
    texts.push(match snapshot.total {
        Some(total) => format!("{done} of {} {name}", number::count(total)),
        None => format!("{done} {name}"),
    });
    texts.push(format!("{} at work", number::seconds(elapsed_s(scene))));
    if snapshot.n_resumes > 0 {
        texts.push(format!("resumed {}×", snapshot.n_resumes));
    }
    let bar_columns = if share.is_some() { (columns / 4).clamp(6, 50) } else { 0 };
    let text = joined(&texts, "  ", columns.saturating_sub(bar_columns + 1));
    let mut spans = bar(share, bar_columns, scene);
    spans.push(Span::raw(format!(" {text}")));
    Line::from(spans)
}

/// Seconds at work, up to now while it runs.
fn elapsed_s(scene: &Scene<'_>) -> f64 {
    let silent_s = match (scene.standing, scene.snapshot.last) {
        (Standing::Live, Some(last)) => (scene.now.as_ms() - last.as_ms()).max(0) as f64 / 1e3,
        _ => 0.0,
    };
    scene.snapshot.elapsed_s() + silent_s
}

fn bar(share: Option<f64>, columns: usize, scene: &Scene<'_>) -> Vec<Span<'static>> {
    let n_full = (share.unwrap_or(0.0) * columns as f64).round() as usize;
    vec![
        Span::styled("█".repeat(n_full), scene.theme.accent()),
        Span::styled("░".repeat(columns.saturating_sub(n_full)), scene.theme.faint()),
    ]
}

fn values(scene: &Scene<'_>, columns: usize) -> Line<'static> {
    let snapshot = scene.snapshot;
    let mut texts: Vec<Span<'static>> = Vec::new();
    if let Some(best) = snapshot.best {
        texts.push(Span::styled(number::named(&number::clean(&snapshot.score), best), scene.theme.good()));
    }
    texts.extend(alert(scene).map(|text| Span::styled(text, scene.theme.bad())));
    texts.extend(snapshot.busy.newest().map(|busy| Span::raw(number::named("busy", busy))));
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
            spans.push(Span::styled(" | ", scene.theme.faint()));
        }
        spans.push(Span::styled(cut(&text.content, room), text.style));
    }
    Line::from(spans)
}

/// What a person has to know before all else.
fn alert(scene: &Scene<'_>) -> Option<String> {
    let snapshot = scene.snapshot;
    match scene.standing {
        Standing::Silent | Standing::Killed | Standing::Failed if scene.pace.is_none() => {
            Some(scene.standing.sentence(snapshot, scene.now))
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
