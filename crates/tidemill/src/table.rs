//! Plain-text tables: columns padded to their widest cell.

/// Rows of cells under a header.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Text with the first `left` columns aligned to the left, the others to the right.
    pub fn render(&self, left: usize) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let n_columns = lines().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        let mut out = String::new();
        for (at, line) in lines().enumerate() {
            let mut text = String::new();
            for (column, width) in widths.iter().enumerate() {
                let cell = line.get(column).map_or("", String::as_str);
                let pad = " ".repeat(width - cell.chars().count());
                let cell = if column < left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
                text += &cell;
                text += "  ";
            }
            out += text.trim_end();
            out.push('\n');
            if at == 0 {
                let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
                out += &"─".repeat(total);
                out.push('\n');
            }
        }
        out
    }
}
