//! Fall-backs, warnings and actions of the hypertuner.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget, Wrap};
use tidemill_telemetry::Timestamp;

use super::super::draw::ScreenInput;
use super::super::summary;

const WRAP: Wrap = Wrap { trim: true };

/// Rows that the panel would fill at this width, its frame included; 0 if there is nothing to show.
pub fn n_rows(input: &ScreenInput<'_>, columns: u16) -> u16 {
    let lines = lines(input);
    let room = usize::from(columns.saturating_sub(2)).max(1);
    let n: usize = lines.iter().map(|line| line.width().div_ceil(room).max(1)).sum();
    if lines.is_empty() { 0 } else { n.min(100) as u16 + 2 }
}

/// Draws them in one list, newest first, each sentence in full.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    let inside = super::frame("fall-backs, warnings, actions", input.theme, area, buf);
    Paragraph::new(lines(input)).wrap(WRAP).render(inside, buf);
}

fn lines<'a>(input: &ScreenInput<'_>) -> Vec<Line<'a>> {
    let snapshot = input.snapshot;
    let mut all: Vec<(Timestamp, Line<'_>)> = Vec::new();
    let bad = |tag: &'static str, text: String| {
        Line::from(vec![Span::styled(tag, input.theme.bad()), Span::raw(format!(" {text}"))])
    };
    all.extend(snapshot.fallbacks.iter().map(|note| (note.at, bad("fell back", summary::note(note)))));
    all.extend(snapshot.warnings.iter().map(|note| (note.at, bad("warning", summary::note(note)))));
    all.extend(snapshot.actions.iter().map(|action| {
        let text = format!("hypertune {}", summary::action(action));
        (action.at, Line::raw(text))
    }));
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    all.into_iter().map(|(_, line)| line).collect()
}
