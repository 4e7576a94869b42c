//! The output of every reader: one file's rows as columns, before cleaning.

use super::stamp::BarStamp;

/// Marks a timestamp that could not be read.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// Marks a row whose symbol cell is empty.
pub(crate) const NO_SYMBOL: u32 = u32::MAX;

/// One file's rows, in file order. A missing or unreadable number is NaN.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The symbol of each row as an index into `symbols`; `None` if the file has no such column.
    pub symbol_ids: Option<Vec<u32>>,
    /// The distinct symbols in order of appearance.
    pub symbols: Vec<String>,
    pub ts_ms: Vec<i64>,
    /// What the times are, if the file declares it.
    pub stamp: Option<BarStamp>,
    pub open: Vec<f64>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
    /// Whether the file has closes alone, which stand in the other three columns too.
    pub closes_only: bool,
    /// `None` if the file has no volume at all.
    pub volume: Option<Vec<f64>>,
    pub extra: Vec<(String, Vec<f64>)>,
    /// Line of each row, counted from 1; empty where row and line are the same thing (Parquet).
    pub lines: Vec<u32>,
    /// Lines that repeat the header among the data.
    pub header_lines: Vec<u32>,
    /// Notes for the user about how the file was read.
    pub notes: Vec<String>,
}

impl Table {
    pub(crate) fn n_rows(&self) -> usize {
        self.ts_ms.len()
    }

    /// The place of a row for people: a line in text, a row (from 1) in Parquet.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines.get(row).map_or(row as u64 + 1, |&line| u64::from(line))
    }

    /// Tables of one instrument each as one. Rows without a single price are left out: the instrument was not traded then.
    pub(crate) fn stack(parts: Vec<(String, Table)>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in parts.iter().flat_map(|(_, part)| &part.extra) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let has_volume = parts.iter().any(|(_, part)| part.volume.is_some());
        let mut all = Table {
            volume: has_volume.then(Vec::new),
            extra: names.into_iter().map(|name| (name, Vec::new())).collect(),
            ..Table::default()
        };
        let mut ids = Vec::new();
        let mut n_empty = 0;
        for (ticker, part) in parts {
            let is_there = |row: &usize| {
                [&part.open, &part.high, &part.low, &part.close].iter().any(|column| !column[*row].is_nan())
            };
            let rows: Vec<usize> = (0..part.n_rows()).filter(is_there).collect();
            n_empty += (0..part.n_rows()).filter(|row| !is_there(row) && part.ts_ms[*row] != NO_TIME).count();
            let take = |column: &[f64]| rows.iter().map(|&row| column[row]).collect::<Vec<f64>>();
            ids.resize(ids.len() + rows.len(), all.symbols.len() as u32);
            all.ts_ms.extend(rows.iter().map(|&row| part.ts_ms[row]));
            all.open.extend(take(&part.open));
            all.high.extend(take(&part.high));
            all.low.extend(take(&part.low));
            all.close.extend(take(&part.close));
            if let Some(volume) = &mut all.volume {
                volume.extend(part.volume.as_deref().map_or_else(|| vec![0.0; rows.len()], take));
            }
            for (name, column) in &mut all.extra {
                let own = part.extra.iter().find(|(known, _)| known == name);
                column.extend(own.map_or_else(|| vec![f64::NAN; rows.len()], |(_, values)| take(values)));
            }
            all.lines.extend(rows.iter().map(|&row| part.line(row) as u32));
            all.symbols.push(ticker);
            all.stamp = all.stamp.or(part.stamp);
            all.closes_only |= part.closes_only;
            for note in part.notes {
                if !all.notes.contains(&note) {
                    all.notes.push(note);
                }
            }
        }
        all.symbol_ids = Some(ids);
        all.notes
            .push(format!("{} instruments side by side were read one after the other", all.symbols.len()));
        if n_empty > 0 {
            all.notes.push(format!("{n_empty} row(s) without a price of one of them left out"));
        }
        all
    }

    /// Says that there are closes alone, and what for they are enough.
    pub(crate) fn note_closes_only(&mut self) {
        if self.closes_only {
            self.notes.push(
                "closes alone, no open, high and low: only for strategies that read none of them, have no level inside a bar and fill = \"close\""
                    .to_string(),
            );
        }
    }

    /// A volume column without a single number says nothing; the file is then treated as one without volume.
    pub(crate) fn forget_empty_volume(&mut self) {
        let Some(volume) = &self.volume else {
            self.notes.push("no volume column: volume is 0".to_string());
            return;
        };
        if !volume.is_empty() && volume.iter().all(|value| value.is_nan()) {
            self.volume = None;
            self.notes.push("the volume column holds no number: volume is 0".to_string());
        }
    }

    /// A further column without a single number is there, but a strategy that uses it never has a value.
    pub(crate) fn note_empty_columns(&mut self) {
        let is_empty = |values: &[f64]| values.iter().all(|value| !value.is_finite());
        let empty: Vec<&str> =
            self.extra.iter().filter(|(_, values)| is_empty(values)).map(|(name, _)| name.as_str()).collect();
        if !empty.is_empty() {
            let names = empty.join(", ");
            self.notes.push(format!("column(s) without a single number, not available throughout: {names}"));
        }
    }
}

/// Text of a file for a message: what would move the cursor or change colours is a space.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Collects distinct symbols while rows go by; rows of one symbol usually follow each other.
#[derive(Default)]
pub(crate) struct SymbolColumn {
    ids: Vec<u32>,
    names: Vec<String>,
    by_name: std::collections::HashMap<Vec<u8>, u32>,
    last: Option<u32>,
}

impl SymbolColumn {
    pub(crate) fn push(&mut self, cell: &[u8]) {
        let cell = cell.trim_ascii();
        if cell.is_empty() {
            self.ids.push(NO_SYMBOL);
            return;
        }
        if let Some(id) = self.last.filter(|&id| self.names[id as usize].as_bytes() == cell) {
            self.ids.push(id);
            return;
        }
        let id = self.id(cell);
        self.ids.push(id);
        self.last = Some(id);
    }

    fn id(&mut self, cell: &[u8]) -> u32 {
        self.by_name.get(cell).copied().unwrap_or_else(|| {
            let id = self.names.len() as u32;
            self.by_name.insert(cell.to_vec(), id);
            self.names.push(String::from_utf8_lossy(cell).into_owned());
            id
        })
    }

    /// Adds the rows that follow.
    pub(crate) fn append(&mut self, next: &Self) {
        let ids: Vec<u32> = next.names.iter().map(|name| self.id(name.as_bytes())).collect();
        let renamed = next.ids.iter().map(|&id| if id == NO_SYMBOL { NO_SYMBOL } else { ids[id as usize] });
        self.ids.extend(renamed);
    }

    pub(crate) fn finish(self) -> (Vec<u32>, Vec<String>) {
        (self.ids, self.names)
    }
}
