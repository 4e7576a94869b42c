//! Files that have the same symbol but cannot be parts of one history.
//!
//! Parts follow each other, or overlap in rows that say the same. Anything else would be mixed into a series that no
//! market ever had, so it is an error:
//!
//! - two files named after their symbol, not parts by a date in their names, overlap in time: more likely two instruments
//!   than one;
//! - the files' timeframes differ;
//! - two files disagree about a bar. (Within one file the last row stays; see [`clean`](crate::clean).)

use rayon::prelude::*;

use super::table::{NO_TIME, Table};
use crate::clean::{RowRange, Source, SymbolRows, differ};
use crate::error::MarketError;
use crate::report::RefusedSymbol;
use crate::timeframe;

/// Refuses the first symbol, by name, whose files clash.
pub(crate) fn check(gathered: &[SymbolRows], sources: &[Source]) -> Result<(), MarketError> {
    gathered.par_iter().find_map_first(|symbol| clash_of(symbol, sources)).map_or(Ok(()), Err)
}

/// Every symbol whose files clash, with the reason, ordered by name.
pub(crate) fn all(gathered: &[SymbolRows], sources: &[Source]) -> Vec<RefusedSymbol> {
    let clash = |symbol: &SymbolRows| {
        let reason = clash_of(symbol, sources)?.to_string();
        Some(RefusedSymbol { symbol: symbol.symbol.clone(), reason })
    };
    gathered.par_iter().filter_map(clash).collect()
}

/// One file's rows of one symbol.
struct Part<'a> {
    source: &'a Source,
    /// Time and row, rising in time; of several rows with one time the last.
    rows: Vec<(i64, usize)>,
}

impl<'a> Part<'a> {
    fn new(runs: &[RowRange], sources: &'a [Source]) -> Self {
        let source = &sources[runs[0].file_idx];
        let all = runs.iter().flat_map(|run| run.rows.clone()).map(|row| (source.table.ts_ms[row], row));
        let mut rows: Vec<(i64, usize)> = all.filter(|(ts_ms, _)| *ts_ms != NO_TIME).collect();
        // Rows are unique, so this is the order of time and, within one time, of the file.
        rows.sort_unstable();
        let mut kept: Vec<(i64, usize)> = Vec::with_capacity(rows.len());
        for (ts_ms, row) in rows {
            match kept.last_mut() {
                Some(last) if last.0 == ts_ms => last.1 = row,
                _ => kept.push((ts_ms, row)),
            }
        }
        Self { source, rows: kept }
    }

    fn is_named_after_file(&self) -> bool {
        self.source.table.symbol_ids.is_none() && !self.source.name.is_part
    }

    fn timeframe(&self) -> Option<i64> {
        let times: Vec<i64> = self.rows.iter().map(|(ts_ms, _)| *ts_ms).collect();
        timeframe::detect(&times)
    }

    /// The timeframe if there is no doubt: most steps have this length, and more than one has. A few bars around a
    /// weekend, or of a market with hardly any trades, tell nothing.
    fn sure_timeframe(&self) -> Option<i64> {
        let timeframe_ms = self.timeframe()?;
        let is_typical = |pair: &&[(i64, usize)]| pair[1].0 - pair[0].0 == timeframe_ms;
        let n_typical = self.rows.windows(2).filter(is_typical).count();
        (n_typical >= 2 && 2 * n_typical > self.rows.len() - 1).then_some(timeframe_ms)
    }

    /// File and line, for people.
    fn place(&self, row: usize) -> String {
        format!("{}:{}", self.source.file, self.source.table.line(row))
    }
}

fn clash_of(gathered: &SymbolRows, sources: &[Source]) -> Option<MarketError> {
    // Rows were gathered file by file.
    let (first, last) = (gathered.runs.first()?, gathered.runs.last()?);
    if first.file_idx == last.file_idx {
        return None;
    }
    let by_file = gathered.runs.chunk_by(|a, b| a.file_idx == b.file_idx);
    let mut parts: Vec<Part> = by_file.map(|runs| Part::new(runs, sources)).collect();
    parts.retain(|part| !part.rows.is_empty());
    let symbol = &gathered.symbol;
    different_timeframes(symbol, &parts).or_else(|| {
        overlap(&parts.iter().collect::<Vec<_>>())?;
        shared_name(symbol, &parts).or_else(|| contradiction(symbol, &parts))
    })
}

/// Months and the like vary in length; what differs by less than a quarter is the same timeframe.
fn different_timeframes(symbol: &str, parts: &[Part]) -> Option<MarketError> {
    let sure: Vec<(&Part, i64)> =
        parts.iter().filter_map(|part| part.sure_timeframe().map(|ms| (part, ms))).collect();
    let &(first, first_ms) = sure.first()?;
    let differs = |ms: i64| (ms.max(first_ms) - ms.min(first_ms)) >= ms.min(first_ms) / 4;
    let &(second, second_ms) = sure.iter().find(|(_, ms)| *ms != first_ms && differs(*ms))?;
    Some(MarketError::TimeframeClash {
        symbol: symbol.to_string(),
        first: first.source.file.clone(),
        first_ms,
        second: second.source.file.clone(),
        second_ms,
    })
}

/// The first two parts, in time, that overlap.
fn overlap<'a>(parts: &[&'a Part<'a>]) -> Option<(&'a Part<'a>, &'a Part<'a>)> {
    let mut spans: Vec<(i64, i64, usize)> = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        if let (Some((first, _)), Some((last, _))) = (part.rows.first(), part.rows.last()) {
            spans.push((*first, *last, index));
        }
    }
    spans.sort_unstable();
    let pair = spans.windows(2).find(|pair| pair[1].0 <= pair[0].1)?;
    Some((parts[pair[0].2], parts[pair[1].2]))
}

fn shared_name(symbol: &str, parts: &[Part]) -> Option<MarketError> {
    let unnamed: Vec<&Part> = parts.iter().filter(|part| part.is_named_after_file()).collect();
    let (first, second) = overlap(&unnamed)?;
    Some(MarketError::SymbolClash {
        symbol: symbol.to_string(),
        first: first.source.file.clone(),
        second: second.source.file.clone(),
    })
}

/// The first time about which two files disagree, and how many there are.
fn contradiction(symbol: &str, parts: &[Part]) -> Option<MarketError> {
    // Time, part, row.
    let mut rows: Vec<(i64, usize, usize)> =
        Vec::with_capacity(parts.iter().map(|part| part.rows.len()).sum());
    for (index, part) in parts.iter().enumerate() {
        rows.extend(part.rows.iter().map(|&(ts_ms, row)| (ts_ms, index, row)));
    }
    rows.sort();
    let mut first = None;
    let mut count = 0;
    for same_time in rows.chunk_by(|a, b| a.0 == b.0) {
        let &(ts_ms, last, last_row) = same_time.last()?;
        let cells = cells(&parts[last].source.table, last_row);
        let other = same_time.iter().find(|&&(_, index, row)| {
            let others = self::cells(&parts[index].source.table, row);
            cells.iter().zip(others).any(|(&a, b)| differ(a, b))
        });
        if let Some(&(_, index, row)) = other {
            count += 1;
            first.get_or_insert((ts_ms, (index, row), (last, last_row)));
        }
    }
    let (ts_ms, one, other) = first?;
    let describe = |(index, row): (usize, usize)| (parts[index].place(row), parts[index].timeframe());
    let ((first, first_ms), (second, second_ms)) = (describe(one), describe(other));
    let symbol = symbol.to_string();
    Some(MarketError::Contradiction { symbol, first, first_ms, second, second_ms, ts_ms, count })
}

/// The values in which two rows of one time must agree.
fn cells(table: &Table, row: usize) -> [f64; 5] {
    let volume = table.volume.as_ref().map_or(0.0, |volume| volume[row]);
    [table.open[row], table.high[row], table.low[row], table.close[row], volume]
}
