//! The last line of the screen: the available keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::draw::ScreenInput;

/// Keys and what they do, the most needed first.
const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("?", "help"),
    ("tab", "page"),
    ("↑↓", "scroll"),
    ("p", "pause"),
    ("/", "filter"),
    ("+-", "zoom"),
    ("r", "replay"),
];

const REPLAY_KEYS: [(&str, &str); 7] = [
    ("q", "quit"),
    ("?", "help"),
    ("space", "pause"),
    ("<>", "speed"),
    ("esc", "present"),
    ("tab", "page"),
    ("↑↓", "scroll"),
];

const FILTER_KEYS: [(&str, &str); 2] = [("enter", "apply"), ("esc", "cancel")];

/// Draws the keys that fit, or the filter that is being typed.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let theme = input.theme;
    let view = input.view;
    let mut spans: Vec<Span<'_>> = Vec::new();
    let keys: &[(&str, &str)] = match (&view.prompt, input.pace) {
        (Some(typed), _) => {
            spans.push(Span::styled(format!("phases with: {typed}▏"), theme.strong()));
            spans.push(Span::raw("  "));
            &FILTER_KEYS
        }
        (None, Some(_)) => &REPLAY_KEYS,
        (None, None) => &KEYS,
    };
    if view.prompt.is_none() && !view.filter.is_empty() {
        spans.push(Span::styled(format!("only {} ", view.filter), theme.accent().patch(theme.strong())));
        spans.push(Span::styled("esc", theme.reversed()));
        spans.push(Span::raw(" all  "));
    }
    for (key, what) in keys {
        let more = [Span::styled(format!(" {key} "), theme.reversed()), Span::raw(format!(" {what}  "))];
        let used: usize = spans.iter().chain(&more).map(Span::width).sum();
        if used > usize::from(area.width) + 2 {
            break;
        }
        spans.extend(more);
    }
    buf.set_line(area.x, area.y, &Line::from(spans), area.width);
}
