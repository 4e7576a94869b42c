//! What every key does.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::super::draw::ScreenInput;

const KEYS: [(&str, &str); 13] = [
    ("q, Ctrl-C", "quit; the run continues"),
    ("tab, 1 to 4", "pages: overview, lanes, best, events"),
    ("up, down", "scroll, also j, k, page keys, home, end"),
    ("left, right", "move the lanes through time"),
    ("+, -", "lanes: less time, more time"),
    ("0", "lanes: back to the newest"),
    ("p, space", "pause and continue"),
    ("/", "only phases whose name contains this"),
    ("", "several with commas: ask,tell"),
    ("r", "replay the run from its start"),
    ("<, >", "replay slower, faster"),
    ("esc", "drop the filter; leave the replay"),
    ("?", "this help; any key closes it"),
];

/// Draws the help over the panels.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    let columns = area.width.min(58);
    let rows = area.height.min(KEYS.len() as u16 + 2);
    let x = area.x + (area.width - columns) / 2;
    let y = area.y + (area.height - rows) / 2;
    let area = Rect::new(x, y, columns, rows);
    Clear.render(area, buf);
    let inside = super::frame("keys", input.theme, area, buf);
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, what)| {
            Line::from(vec![Span::styled(format!("{key:<12} "), input.theme.strong()), Span::raw(*what)])
        })
        .collect();
    super::list(&lines, 0, inside, buf);
}
