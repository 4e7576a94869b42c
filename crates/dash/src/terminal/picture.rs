//! The screen as a picture: SVG that looks alike in every browser, on light and on dark.
//!
//! Letters are left to the viewer's monospace font and stretched to their cells; lines, blocks and dots are drawn as shapes, because
//! fonts disagree about them most.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Size of a cell, of the letters in it, and of the edge around all.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT: f64 = 14.0;
const EDGE: f64 = 12.0;

/// Thickness of a line, in cells: across and along.
const THIN: (f64, f64) = (0.12, 0.055);

/// Names of the colours that are used, with their looks on light and on dark.
const COLOURS: [(Color, &str, &str, &str); 6] = [
    (Color::Cyan, "c", "#0e7490", "#5fd3e6"),
    (Color::Magenta, "m", "#a21caf", "#e08be8"),
    (Color::Green, "g", "#15803d", "#6fdc8c"),
    (Color::LightBlue, "b", "#1d4ed8", "#8ab4ff"),
    (Color::Yellow, "y", "#92600a", "#e3c45c"),
    (Color::Red, "r", "#b91c1c", "#ff8a80"),
];

/// Draws a buffer as SVG text.
pub fn picture(buffer: &Buffer) -> String {
    let area = buffer.area;
    let width = f64::from(area.width) * CELL.0 + 2.0 * EDGE;
    let height = f64::from(area.height) * CELL.1 + 2.0 * EDGE;
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1} {height:.1}" width="{width:.0}" height="{height:.0}" font-family="ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="{FONT}">
<style>{}</style>
<rect class="paper" width="{width:.1}" height="{height:.1}" rx="8"/>
"#,
        style()
    );
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let first = &buffer[(x, y)];
            let n = (x..area.right()).take_while(|x| is_alike(first, &buffer[(*x, y)])).count() as u16;
            let cells = (x..x + n).map(|x| &buffer[(x, y)]);
            draw_run(&mut out, cells, f64::from(x - area.left()), f64::from(y - area.top()));
            x += n;
        }
    }
    out += "</svg>\n";
    out
}

fn style() -> String {
    let rules =
        |paper: &str, ink: &str, colour: fn(&(Color, &str, &'static str, &'static str)) -> &'static str| {
            let mut out = format!(".paper,.i{{fill:{paper}}}.n{{fill:{ink}}}");
            for entry in &COLOURS {
                let _ = write!(out, ".{}{{fill:{}}}", entry.1, colour(entry));
            }
            out
        };
    format!(
        ".o{{font-weight:bold}}.d{{opacity:.6}}{}@media(prefers-color-scheme:dark){{{}}}",
        rules("#ffffff", "#1f2328", |entry| entry.2),
        rules("#0d1117", "#e6edf3", |entry| entry.3)
    )
}

fn is_alike(a: &Cell, b: &Cell) -> bool {
    (a.fg, a.modifier) == (b.fg, b.modifier)
}

/// Cells of one style, side by side.
fn draw_run<'a>(out: &mut String, cells: impl Iterator<Item = &'a Cell>, x: f64, y: f64) {
    let cells: Vec<&Cell> = cells.collect();
    let Some(first) = cells.first() else { return };
    let colour = COLOURS.iter().find(|(colour, ..)| *colour == first.fg).map_or("n", |(_, class, ..)| *class);
    let is_reversed = first.modifier.contains(Modifier::REVERSED);
    let left = EDGE + x * CELL.0;
    let top = EDGE + y * CELL.1;
    if is_reversed {
        let width = cells.len() as f64 * CELL.0;
        let _ = writeln!(
            out,
            r#"<rect class="{colour}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}"/>"#,
            CELL.1
        );
    }
    let mut class = if is_reversed { "i" } else { colour }.to_owned();
    for (modifier, name) in [(Modifier::BOLD, " o"), (Modifier::DIM, " d")] {
        if first.modifier.contains(modifier) {
            class += name;
        }
    }
    let mut rectangles: Vec<[f64; 4]> = Vec::new();
    let mut letters = String::new();
    for (at, cell) in cells.iter().enumerate() {
        let symbol = cell.symbol();
        let shapes = symbol.chars().next().map(shapes).unwrap_or_default();
        letters += if shapes.is_empty() { symbol } else { " " };
        for [x, y, width, height] in shapes {
            let x = at as f64 + x;
            // What continues its neighbour is one with it, so that no seam shows.
            let continued =
                |known: &&mut [f64; 4]| known[0] + known[2] == x && known[1] == y && known[3] == height;
            match rectangles.iter_mut().rev().take(3).find(continued) {
                Some(known) => known[2] += width,
                None => rectangles.push([x, y, width, height]),
            }
        }
    }
    let mut path = String::new();
    for [x, y, width, height] in rectangles {
        let (x, y) = (left + x * CELL.0, top + y * CELL.1);
        let (width, height) = (width * CELL.0, height * CELL.1);
        let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h{:.1}z", -width);
    }
    if !path.is_empty() {
        let _ = writeln!(out, r#"<path class="{class}" d="{path}"/>"#);
    }
    let start = letters.len() - letters.trim_start().len();
    let text = letters.trim();
    if !text.is_empty() {
        let n = ratatui::text::Line::raw(text).width() as f64;
        let _ = writeln!(
            out,
            r#"<text class="{class}" x="{:.1}" y="{:.1}" textLength="{:.1}" lengthAdjust="spacingAndGlyphs">{}</text>"#,
            left + start as f64 * CELL.0,
            top + CELL.1 * 0.75,
            n * CELL.0,
            escaped(text)
        );
    }
}

/// Text for SVG, with no-break spaces, because programs join runs of plain ones.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}")
}

/// The rectangles of a symbol that is no letter, in cells: left, top, width, height.
fn shapes(symbol: char) -> Vec<[f64; 4]> {
    let (across, along) = THIN;
    let left = [0.0, 0.5 - along / 2.0, 0.5 + across / 2.0, along];
    let right = [0.5 - across / 2.0, 0.5 - along / 2.0, 0.5 + across / 2.0, along];
    let up = [0.5 - across / 2.0, 0.0, across, 0.5 + along / 2.0];
    let down = [0.5 - across / 2.0, 0.5 - along / 2.0, across, 0.5 + along / 2.0];
    match symbol {
        '█' => vec![[0.0, 0.0, 1.0, 1.0]],
        '░' => (0..3).map(|row| [0.0, 0.2 + 0.3 * f64::from(row), 1.0, 0.04]).collect(),
        '▁'..='▇' => {
            let height = f64::from(symbol as u32 - '▁' as u32 + 1) / 8.0;
            vec![[0.0, 1.0 - height, 1.0, height]]
        }
        '━' => vec![[0.0, 0.36, 1.0, 0.28]],
        '─' => vec![[0.0, left[1], 1.0, along]],
        '│' => vec![up, down],
        '╭' | '┌' => vec![right, down],
        '╮' | '┐' => vec![left, down],
        '╰' | '└' => vec![right, up],
        '╯' | '┘' => vec![left, up],
        '\u{2801}'..='\u{28ff}' => dots(symbol as u32 - 0x2800),
        _ => Vec::new(),
    }
}

/// The dots of a braille symbol, by the bits of its number.
fn dots(bits: u32) -> Vec<[f64; 4]> {
    // Columns and rows of the bits; the fourth row was added to braille later.
    const PLACES: [(u8, u8); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let size = (0.26, 0.13);
    PLACES
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, (column, row))| {
            let (x, y) = (0.25 + 0.5 * f64::from(*column), 0.125 + 0.25 * f64::from(*row));
            [x - size.0 / 2.0, y - size.1 / 2.0, size.0, size.1]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn letters_are_text_and_blocks_are_shapes() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "a<b █", Style::new().fg(Color::Green));
        let svg = picture(&buffer);
        assert!(svg.contains(r#"<text class="g" x="12.0""#) && svg.contains(">a&lt;b</text>"), "{svg}");
        assert!(svg.contains(r#"<path class="g" d="M45.6 12.0h8.4v18.0h-8.4z"/>"#), "{svg}");
    }

    #[test]
    fn what_is_reversed_has_ink_behind_it() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
        buffer.set_string(0, 0, "q", Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD));
        let svg = picture(&buffer);
        assert!(svg.contains(r#"<rect class="n" x="12.0" y="12.0" width="8.4""#), "{svg}");
        assert!(svg.contains(r#"<text class="i o""#), "{svg}");
    }

    #[test]
    fn every_dot_of_braille_has_its_place() {
        assert_eq!(dots(0b1).len(), 1);
        let all = dots(0xff);
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|[x, y, w, h]| *x >= 0.0 && *y >= 0.0 && x + w <= 1.0 && y + h <= 1.0));
    }
}
