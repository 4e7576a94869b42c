//! What a load found and did: every kind of dirt counted, with the first places, so that nothing vanishes silently.

mod joined;

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use crate::timeframe::format_duration;
use crate::timestamp::format_ms;
pub use joined::{FeatureReport, JoinedSymbol, Seam};

/// Places kept per kind of issue.
const PLACES_KEPT: usize = 5;

/// Places shown per kind in the summary for people.
const PLACES_SHOWN: usize = 3;

/// Files left out and symbols refused or joined that are named one by one; of more only the number is given.
const LINES_SHOWN: usize = 10;

/// A kind of dirt and what is done about it; the policy table of [`clean`](crate::clean) explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueKind {
    /// A header line among the data: dropped.
    HeaderLine,
    /// A row without a symbol in a file that has a symbol column: dropped.
    NoSymbol,
    /// A row whose time cannot be read: dropped.
    NoTime,
    /// A row that steps back in time: sorted.
    Unsorted,
    /// A row whose time occurs again later in the file: dropped, the last one stays.
    Duplicate,
    /// A time whose duplicate rows disagree in price or volume: the last one stays.
    Conflict,
    /// A row with a missing or non-finite price: dropped.
    NotANumber,
    /// A row with a price of zero or less: dropped.
    NotPositive,
    /// A row with missing, non-finite or negative volume: dropped.
    BadVolume,
    /// A row whose high or low does not enclose its prices: high and low are widened.
    BadRange,
    /// A bar without volume: kept.
    ZeroVolume,
    /// Missing bars between two bars: kept as a gap.
    Gap,
    /// A cell of a further column that is no finite number: not available.
    NotAvailable,
    /// A resampled bar that lacks some of its source bars: kept.
    PartialBucket,
    /// A bar whose price and volume changed as they do by a split: kept.
    SuspectedSplit,
    /// A symbol whose first ten bars span more than five times: kept.
    ListingJump,
}

impl IssueKind {
    /// All kinds, in the order of the report.
    pub const ALL: [IssueKind; 16] = [
        IssueKind::HeaderLine,
        IssueKind::NoSymbol,
        IssueKind::NoTime,
        IssueKind::Unsorted,
        IssueKind::Duplicate,
        IssueKind::Conflict,
        IssueKind::NotANumber,
        IssueKind::NotPositive,
        IssueKind::BadVolume,
        IssueKind::BadRange,
        IssueKind::ZeroVolume,
        IssueKind::Gap,
        IssueKind::NotAvailable,
        IssueKind::PartialBucket,
        IssueKind::SuspectedSplit,
        IssueKind::ListingJump,
    ];

    /// What it is and what was done, for people.
    pub fn describe(self) -> &'static str {
        match self {
            IssueKind::HeaderLine => "header lines among the data, dropped",
            IssueKind::NoSymbol => "rows without a symbol, dropped",
            IssueKind::NoTime => "rows without a readable time, dropped",
            IssueKind::Unsorted => "steps back in time, sorted",
            IssueKind::Duplicate => "rows with a duplicate time, dropped (the last stays)",
            IssueKind::Conflict => "times whose duplicate rows disagree (the last stays)",
            IssueKind::NotANumber => "rows with a missing or non-finite price, dropped",
            IssueKind::NotPositive => "rows with a price of zero or less, dropped",
            IssueKind::BadVolume => "rows with missing or negative volume, dropped",
            IssueKind::BadRange => "rows whose high or low did not enclose the prices, widened",
            IssueKind::ZeroVolume => "bars without volume, kept",
            IssueKind::Gap => "gaps in time, kept",
            IssueKind::NotAvailable => "cells of further columns without a finite number, not available",
            IssueKind::PartialBucket => "resampled bars with missing source bars, kept",
            IssueKind::SuspectedSplit => {
                "suspected splits (price jumps by a whole factor, volume the other way), kept"
            }
            IssueKind::ListingJump => "symbols whose first ten bars move by more than 5×, kept",
        }
    }
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// The symbol, empty if it has none.
    pub symbol: String,
    /// The file, as it was named.
    pub file: String,
    /// Line of a text file or row of a Parquet file, counted from 1; 0 where a bar has no single source row.
    pub row: u64,
    /// UTC milliseconds, if known.
    pub ts_ms: Option<i64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.row > 0 {
            write!(f, "{}:{}", self.file, self.row)?;
        }
        if !self.symbol.is_empty() {
            write!(f, "{}{}", if self.row > 0 { " " } else { "" }, self.symbol)?;
        }
        match self.ts_ms.map(format_ms) {
            Some(time) => write!(f, " {}", time.strip_suffix("T00:00:00Z").unwrap_or(&time)),
            None => Ok(()),
        }
    }
}

/// One kind of dirt over all files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Issue {
    /// What it is.
    pub kind: IssueKind,
    /// How often.
    pub count: u64,
    /// The first places, at most `PLACES_KEPT`.
    pub first: Vec<Place>,
}

/// One file that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// The path as given.
    pub path: String,
    /// `csv` or `parquet`.
    pub format: &'static str,
    /// Rows of data in it.
    pub rows: usize,
    /// The symbols of its rows, in order of appearance.
    pub symbols: Vec<String>,
    /// Assumptions and omissions, for the user.
    pub notes: Vec<String>,
}

/// One symbol that was kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SymbolReport {
    /// Name of the symbol.
    pub symbol: String,
    /// Rows read for it.
    pub rows: usize,
    /// Bars kept, after resampling if there was any.
    pub bars: usize,
    /// Open time of the first bar, UTC milliseconds.
    pub first_ms: i64,
    /// Open time of the last bar, UTC milliseconds.
    pub last_ms: i64,
    /// Length of a bar.
    pub timeframe_ms: i64,
    /// Rows dropped for whatever reason.
    pub dropped: usize,
    /// Rows whose high or low was widened.
    pub repaired: usize,
    /// Bars without volume.
    pub zero_volume: usize,
    /// Gaps in time.
    pub gaps: usize,
    /// Bars missing in all gaps together.
    pub missing_bars: u64,
    /// The longest stretch without a bar, from one open time to the next; 0 without gaps.
    pub longest_gap_ms: i64,
    /// Open time of the bar before the longest gap.
    pub longest_gap_after_ms: Option<i64>,
    /// Bars that look like the first one after a split.
    pub suspected_splits: usize,
    /// Whether its first ten bars move by more than five times.
    pub listing_jump: bool,
    /// Why the newest row was dropped, if it was: the last bar is then not the latest in the file.
    pub newest_dropped: Option<IssueKind>,
}

/// One symbol that could not be used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedSymbol {
    /// Name of the symbol.
    pub symbol: String,
    /// Why it could not be used, in words.
    pub reason: String,
}

/// One file that could not be read and was left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnreadableFile {
    /// The path as given.
    pub path: String,
    /// Why, with a hint where the cure is known.
    pub reason: String,
}

/// Everything a load has to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataReport {
    /// The files, in the order they were read.
    pub files: Vec<FileReport>,
    /// The files that could not be read, if the load was set to skip them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableFile>,
    /// The symbols whose bars come from several files, ordered by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<JoinedSymbol>,
    /// The columns joined from another file, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureReport>,
    /// The symbols kept, ordered by name.
    pub symbols: Vec<SymbolReport>,
    /// The symbols refused, ordered by name.
    pub refused: Vec<RefusedSymbol>,
    /// What was found, by kind; kinds that did not occur are absent.
    pub issues: Vec<Issue>,
    /// Notes about the whole load.
    pub notes: Vec<String>,
}

impl DataReport {
    /// How often a kind occurred.
    pub fn count(&self, kind: IssueKind) -> u64 {
        self.issues.iter().find(|issue| issue.kind == kind).map_or(0, |issue| issue.count)
    }

    /// Every line that a person should see before trusting a result: what was found (how often, where first), which
    /// symbols were refused, what was assumed or left out. Empty if there is nothing to say.
    pub fn remarks(&self) -> Vec<String> {
        let issues = self.issues.iter().map(|issue| {
            let place = issue.first.first().map(|place| format!(", first at {place}")).unwrap_or_default();
            format!("{}: {}{place}", issue.kind.describe(), issue.count)
        });
        let mut remarks: Vec<String> = issues.collect();
        remarks.extend(self.refusals());
        remarks.extend(self.joins());
        remarks.extend(self.notes.iter().cloned());
        remarks.extend(self.file_remarks());
        remarks
    }

    /// The refused files and symbols, a line each for the first few symbols.
    fn refusals(&self) -> Vec<String> {
        let unreadable = self.unreadable.iter().take(LINES_SHOWN);
        let mut lines: Vec<String> = unreadable.map(|file| format!("left out {}", file.reason)).collect();
        if self.unreadable.len() > LINES_SHOWN {
            lines.push(format!("left out {} more file(s)", self.unreadable.len() - LINES_SHOWN));
        }
        let shown = self.refused.iter().take(LINES_SHOWN);
        lines.extend(shown.map(|refused| format!("refused {}: {}", refused.symbol, refused.reason)));
        if self.refused.len() > LINES_SHOWN {
            lines.push(format!("refused {} more", self.refused.len() - LINES_SHOWN));
        }
        lines
    }

    /// The columns joined, and the symbols joined from several files: a line each for the first few that do not meet end to end, one for the others.
    fn joins(&self) -> Vec<String> {
        let (clean, seamed): (Vec<_>, Vec<_>) =
            self.joined.iter().partition(|joined| joined.overlaps.is_empty() && joined.holes.is_empty());
        let mut lines: Vec<String> =
            seamed.iter().take(LINES_SHOWN).map(|joined| joined.describe()).collect();
        if seamed.len() > LINES_SHOWN {
            lines.push(format!("{} more symbols joined with overlaps or holes", seamed.len() - LINES_SHOWN));
        }
        match clean[..] {
            [] => {}
            [one] => lines.push(format!("{} end to end", one.describe())),
            _ => lines.push(format!("{} symbols joined from several files end to end", clean.len())),
        }
        lines.extend(self.features.iter().map(FeatureReport::describe));
        lines
    }

    /// What the files' notes say, each once however many files have it.
    fn file_remarks(&self) -> Vec<String> {
        let mut found: Vec<(&str, &str, usize)> = Vec::new();
        let mut by_note: HashMap<&str, usize> = HashMap::new();
        for file in &self.files {
            for note in &file.notes {
                let position = *by_note.entry(note).or_insert(found.len());
                match found.get_mut(position) {
                    Some((_, _, n_files)) => *n_files += 1,
                    None => found.push((note, &file.path, 1)),
                }
            }
        }
        let line = |(note, path, n_files): (&str, &str, usize)| match n_files {
            1 => format!("{path}: {note}"),
            _ => format!("{path} and {} more file(s): {note}", n_files - 1),
        };
        found.into_iter().map(line).collect()
    }

    /// Whether rows were dropped or changed, or a symbol refused: something a user should look at.
    pub fn has_losses(&self) -> bool {
        let harmless = [
            IssueKind::ZeroVolume,
            IssueKind::Gap,
            IssueKind::NotAvailable,
            IssueKind::PartialBucket,
            IssueKind::SuspectedSplit,
            IssueKind::ListingJump,
        ];
        !self.refused.is_empty()
            || !self.unreadable.is_empty()
            || self.issues.iter().any(|issue| !harmless.contains(&issue.kind))
    }
}

impl fmt::Display for DataReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: usize = self.files.iter().map(|file| file.rows).sum();
        let bars: usize = self.symbols.iter().map(|symbol| symbol.bars).sum();
        let n_symbols = self.symbols.len();
        writeln!(f, "{} file(s), {rows} rows: {bars} bars of {n_symbols} symbol(s)", self.files.len())?;
        if let (Some(first), Some(last)) = (
            self.symbols.iter().map(|symbol| symbol.first_ms).min(),
            self.symbols.iter().map(|symbol| symbol.last_ms).max(),
        ) {
            writeln!(f, "  {} to {}", format_ms(first), format_ms(last))?;
        }
        for issue in &self.issues {
            let places: Vec<String> = issue.first.iter().take(PLACES_SHOWN).map(Place::to_string).collect();
            let more = if issue.count > places.len() as u64 { ", …" } else { "" };
            writeln!(f, "  {}: {}", issue.kind.describe(), issue.count)?;
            writeln!(f, "    {}{more}", places.join(", "))?;
        }
        if let Some(longest) = self.symbols.iter().max_by_key(|symbol| symbol.longest_gap_ms)
            && let Some(after) = longest.longest_gap_after_ms
        {
            let length = format_duration(longest.longest_gap_ms);
            writeln!(f, "  longest gap: {length} after {} in {}", format_ms(after), longest.symbol)?;
        }
        for line in self.refusals().iter().chain(&self.joins()).chain(&self.notes).chain(&self.file_remarks())
        {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// Counts issues while data is cleaned.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    issues: Vec<Issue>,
}

impl Default for Tally {
    fn default() -> Self {
        let empty = |kind| Issue { kind, count: 0, first: Vec::new() };
        Self { issues: IssueKind::ALL.into_iter().map(empty).collect() }
    }
}

impl Tally {
    /// Counts one more; `place` is called only while places are still kept.
    pub(crate) fn add(&mut self, kind: IssueKind, place: impl FnOnce() -> Place) {
        let issue = &mut self.issues[kind as usize];
        issue.count += 1;
        if issue.first.len() < PLACES_KEPT {
            issue.first.push(place());
        }
    }

    pub(crate) fn count(&self, kind: IssueKind) -> u64 {
        self.issues[kind as usize].count
    }

    pub(crate) fn absorb(&mut self, other: Tally) {
        for (mine, theirs) in self.issues.iter_mut().zip(other.issues) {
            mine.count += theirs.count;
            let room = PLACES_KEPT.saturating_sub(mine.first.len());
            mine.first.extend(theirs.first.into_iter().take(room));
        }
    }

    pub(crate) fn finish(self) -> Vec<Issue> {
        self.issues.into_iter().filter(|issue| issue.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_own_index() {
        for (index, kind) in IssueKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn a_tally_keeps_all_counts_and_the_first_places() {
        let place = |row| Place { symbol: "A".into(), file: "f.csv".into(), row, ts_ms: None };
        let mut tally = Tally::default();
        let mut other = Tally::default();
        for row in 1..=4 {
            tally.add(IssueKind::Duplicate, || place(row));
            other.add(IssueKind::Duplicate, || place(row + 10));
        }
        tally.absorb(other);
        let issues = tally.finish();
        assert_eq!(issues.len(), 1);
        assert_eq!(issues[0].count, 8);
        assert_eq!(issues[0].first.iter().map(|place| place.row).collect::<Vec<_>>(), [1, 2, 3, 4, 11]);
        assert_eq!(issues[0].first[0].to_string(), "f.csv:1 A");
    }
}
