//! The panels of the screen, each a pure function of the input.

pub mod busy;
pub mod convergence;
pub mod event;
pub mod foot;
pub mod head;
pub mod help;
pub mod lane;
pub mod note;
pub mod phase;
pub mod top;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Widget};

use super::table::cut;
use super::theme::Theme;

/// Draws the frame of a panel and returns what is inside. Where there is little room the title stands alone, on a
/// narrow screen sooner.
fn frame(title: &str, theme: Theme, area: Rect, buf: &mut Buffer) -> Rect {
    let area = area.intersection(buf.area);
    if area.height < 3 || area.width < 8 {
        return area;
    }
    if area.height < 4 || (area.height < 7 && buf.area.width < 80) {
        buf.set_stringn(area.x, area.y, cut(title, area.width.into()), area.width.into(), theme.strong());
        return Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    let title = format!(" {} ", cut(title, usize::from(area.width).saturating_sub(6)));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.faint())
        .title(Line::styled(title, theme.title()));
    let inside = block.inner(area);
    block.render(area, buf);
    inside
}

/// Draws lines from `scroll` on, as many as there is room for. Returns by how many they can scroll.
fn list(lines: &[Line<'_>], scroll: usize, area: Rect, buf: &mut Buffer) -> usize {
    let area = area.intersection(buf.area);
    let most = lines.len().saturating_sub(area.height.into());
    for (line, y) in lines.iter().skip(scroll.min(most)).zip(area.top()..area.bottom()) {
        buf.set_line(area.x, y, line, area.width);
        if line.width() > usize::from(area.width) && area.width > 0 {
            buf[(area.right() - 1, y)].set_symbol("…");
        }
    }
    most
}

/// Draws a note that there is nothing to show.
fn nothing(text: &str, theme: Theme, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let text = cut(text, area.width.into());
    buf.set_stringn(area.x, area.y + (area.height - 1) / 2, text, area.width.into(), theme.faint());
}
