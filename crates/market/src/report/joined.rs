//! What was joined: a symbol's files with each other, and columns of another file with the bars.

use serde::Serialize;

use crate::timestamp::format_ms;

/// Where two files of one symbol meet otherwise than end to end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seam {
    /// The file that begins earlier.
    pub first: String,
    /// The other.
    pub second: String,
    /// The first time that is in both files, or the last bar before the hole, UTC milliseconds.
    pub from_ms: i64,
    /// The last time that is in both files, or the first bar after the hole, UTC milliseconds.
    pub to_ms: i64,
    /// Bars of the second file inside the overlap, or bars missing in the hole.
    pub bars: u64,
}

/// A symbol whose bars come from several files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JoinedSymbol {
    /// Name of the symbol.
    pub symbol: String,
    /// How many files.
    pub files: usize,
    /// Where files overlap; the rows agree, otherwise the load is refused.
    pub overlaps: Vec<Seam>,
    /// Where bars are missing between two files.
    pub holes: Vec<Seam>,
}

impl JoinedSymbol {
    pub(super) fn describe(&self) -> String {
        let seams = |what: &str, place: &str, seams: &[Seam]| {
            let Some(first) = seams.first() else { return String::new() };
            let plural = if seams.len() == 1 { "" } else { "s" };
            let (from, to) = (format_ms(first.from_ms), format_ms(first.to_ms));
            let (n_seams, bars) = (seams.len(), first.bars);
            let (one, other) = (&first.first, &first.second);
            format!(
                "; {n_seams} {what}{plural}, first {place} {one} and {other}: {bars} bar(s), {from} to {to}"
            )
        };
        let overlaps = seams("overlap", "of", &self.overlaps);
        let holes = seams("hole", "between", &self.holes);
        format!("{}: {} files joined{overlaps}{holes}", self.symbol, self.files)
    }
}

/// What became of columns joined from another file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FeatureReport {
    /// The file as given.
    pub path: String,
    /// The series that bars have from it.
    pub columns: Vec<String>,
    /// Rows in it.
    pub rows: usize,
    /// Rows whose time, and symbol, occurs again later: the last one counts.
    pub rows_duplicate: usize,
    /// Rows without a readable time or a symbol.
    pub rows_without_time: usize,
    /// Rows that no bar reads: of other symbols, outside the bars' span, too old, or followed by another within a bar.
    pub rows_unmatched: usize,
    /// Bars before the first row.
    pub bars_without: usize,
    /// Bars whose last row is older than allowed.
    pub bars_stale: usize,
}

impl FeatureReport {
    pub(super) fn describe(&self) -> String {
        let counts = [
            (self.rows_unmatched, "rows that no bar reads"),
            (self.rows_duplicate, "duplicate rows (the last stays)"),
            (self.rows_without_time, "rows without a time or symbol"),
            (self.bars_without, "bars before the first row"),
            (self.bars_stale, "bars whose last row is too old"),
        ];
        let found: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("; {count} {what}"))
            .collect();
        let columns = self.columns.join(", ");
        format!("joined {} ({} rows): {columns}{}", self.path, self.rows, found.concat())
    }
}
