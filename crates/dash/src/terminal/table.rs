//! Tables: columns padded to their widest cell, as text and for the screen.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;

/// Rows of cells beneath a header; the first column is aligned to the left, the others to the right.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (column, (cell, widest)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(widest - width(cell));
            text += &if column == 0 { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        out += text.trim_end();
        out.push('\n');
    }
    out
}

/// A column of a table on the screen.
pub struct Column {
    header: String,
    cells: Vec<String>,
    styles: Vec<Style>,
    is_left: bool,
    /// Columns with less of it are left out first.
    keep: u8,
}

impl Column {
    /// A column of text.
    pub fn left(header: &str, cells: Vec<String>, keep: u8) -> Self {
        Self { header: header.to_owned(), cells, styles: Vec::new(), is_left: true, keep }
    }

    /// A column of numbers.
    pub fn right(header: &str, cells: Vec<String>, keep: u8) -> Self {
        Self { is_left: false, ..Self::left(header, cells, keep) }
    }

    /// With a style for each cell.
    pub fn styled(self, styles: Vec<Style>) -> Self {
        Self { styles, ..self }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| width(cell)).chain([width(&self.header)]).max().unwrap_or(0)
    }

    fn cell(&self, text: &str, style: Style) -> Span<'static> {
        let pad = " ".repeat(self.width() - width(text));
        Span::styled(if self.is_left { format!("{text}{pad}") } else { format!("{pad}{text}") }, style)
    }
}

/// The lines of a table, its header first, with as many columns as fit.
pub fn lines(mut columns: Vec<Column>, room: usize, theme: Theme) -> Vec<Line<'static>> {
    let total = |columns: &[Column]| columns.iter().map(|column| column.width() + 2).sum::<usize>();
    while columns.len() > 1 && total(&columns) > room + 2 {
        let least = columns.iter().enumerate().min_by_key(|(at, column)| (column.keep, usize::MAX - at));
        let Some((at, _)) = least else { break };
        columns.remove(at);
    }
    let gap = || Span::raw("  ");
    let line = |cell: &dyn Fn(&Column) -> Span<'static>| {
        let spans = columns
            .iter()
            .enumerate()
            .flat_map(|(at, column)| (at > 0).then(gap).into_iter().chain([cell(column)]));
        Line::from(spans.collect::<Vec<_>>())
    };
    let header = line(&|column| column.cell(&column.header, theme.faint()));
    let n_rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let rows = (0..n_rows).map(|row| {
        line(&|column| {
            let text = column.cells.get(row).map_or("", String::as_str);
            column.cell(text, column.styles.get(row).copied().unwrap_or_default())
        })
    });
    std::iter::once(header).chain(rows).collect()
}

/// Columns of the terminal that a text takes.
pub fn width(text: &str) -> usize {
    Line::raw(text).width()
}

/// The text cut to this many columns, with an ellipsis where something is missing.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if width(&out) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["kernel".into(), "9".into()], vec!["ask".into(), "1,000".into()]];
        assert_eq!(table(&["phase", "count"], &rows), "  phase   count\n  kernel      9\n  ask     1,000\n");
    }

    #[test]
    fn columns_that_matter_least_are_left_out_first() {
        let columns = || {
            ["name", "p50", "mean"]
                .into_iter()
                .zip([9, 1, 5])
                .map(|(name, keep)| Column::right(name, vec!["1".into()], keep))
                .collect()
        };
        let text = |room| lines(columns(), room, Theme::plain())[0].to_string().trim_end().to_owned();
        assert_eq!([text(15), text(14), text(9)], ["name  p50  mean", "name  mean", "name"]);
    }

    #[test]
    fn what_is_cut_ends_with_an_ellipsis() {
        assert_eq!(cut("kernel", 6), "kernel");
        assert_eq!(cut("kernel", 4), "ker…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("kernel", 0), "");
    }
}
