//! The newest events, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use tidemill_telemetry::Event;

use super::super::draw::ScreenInput;
use super::super::line;

/// Columns from which on every event has its time.
const COLUMNS_FOR_TIME: u16 = 60;

/// Draws the events that the filter lets through. Returns by how many lines they can scroll.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let inside = super::frame("events, newest first", input.theme, area, buf);
    let has_time = inside.width >= COLUMNS_FOR_TIME;
    let recent = &input.snapshot.recent;
    let events: Vec<&Event> = recent.iter().rev().filter(|event| input.view.shows(&event.phase)).collect();
    if events.is_empty() {
        let text = if recent.is_empty() { "none yet" } else { "none of these phases lately" };
        super::nothing(text, input.theme, inside, buf);
    }
    let most = events.len().saturating_sub(inside.height.into());
    let lines: Vec<Line<'_>> = events
        .into_iter()
        .skip(input.view.scroll.min(most))
        .take(inside.height.into())
        .map(|event| {
            let mut line = line::styled(event, input.snapshot, input.theme);
            if has_time {
                let time = event.timestamp.to_string();
                let clock = time.get(11..19).unwrap_or_default().to_owned();
                line.spans.insert(0, Span::styled(clock + " ", input.theme.faint()));
            }
            line
        })
        .collect();
    super::list(&lines, 0, inside, buf);
    most
}
