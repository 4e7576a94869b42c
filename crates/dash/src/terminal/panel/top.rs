//! The best that was found, with its parameters.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::draw::ScreenInput;
use super::super::number;
use super::super::table::{Column, lines};

/// Draws the best, best first; parameters stand in columns. Returns by how many lines they can scroll.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer, scroll: usize) -> usize {
    let snapshot = input.snapshot;
    let inside = super::frame("best found", input.theme, area, buf);
    if snapshot.top.is_empty() {
        super::nothing("no improvement yet", input.theme, inside, buf);
        return 0;
    }
    let top = &snapshot.top;
    let score_name = number::clean(&snapshot.score);
    let names = top.iter().map(|top| number::clean(&top.name)).collect();
    let scores = top.iter().map(|top| number::short(top.score)).collect();
    let mut columns = vec![Column::right(&score_name, scores, u8::MAX), Column::left("", names, 1)];
    let mut parameters: Vec<&str> = Vec::new();
    for name in top.iter().flat_map(|top| top.parameters.iter().map(|(name, _)| name)) {
        if !parameters.contains(&name) {
            parameters.push(name);
        }
    }
    for (at, name) in parameters.into_iter().enumerate() {
        let cells = top.iter().map(|top| top.parameters.get(name).map_or_else(String::new, number::setting));
        // The first parameters stay longest.
        let keep = 200_u8.saturating_sub(at.min(190) as u8);
        columns.push(Column::right(&number::clean(name), cells.collect(), keep));
    }
    let lines: Vec<Line<'_>> = lines(columns, inside.width.into(), input.theme);
    let Some((header, rows)) = lines.split_first() else { return 0 };
    if inside.height < 2 {
        return super::list(rows, scroll, inside, buf);
    }
    buf.set_line(inside.x, inside.y, header, inside.width);
    let below = Rect { y: inside.y + 1, height: inside.height - 1, ..inside };
    super::list(rows, scroll, below, buf)
}
