//! Columns of another file joined to bars by time.
//!
//! A row stamped `t` is first read on the bar whose close is at or after `t`, and stays until a later one is there or it is
//! too old. A strategy that decides at a bar's close so never sees a row that did not exist by then.

use std::collections::HashMap;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::column::{RESERVED, Wanted};
use super::progress::LoadProgress;
use super::read::{open, read_table};
use super::stamp::BarStamp;
use super::table::{NO_SYMBOL, NO_TIME, Table};
use crate::bars::{Bars, Universe};
use crate::error::MarketError;
use crate::report::FeatureReport;

/// Which columns are joined, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinOptions {
    /// The file with a time, perhaps a symbol, and columns of numbers.
    pub path: PathBuf,
    /// Up to when a bar reads rows: its close, or its open.
    pub as_of: BarStamp,
    /// A row older than this, from its stamp to the bar's time of reading, is not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<i64>,
    /// What the names of the columns begin with.
    pub prefix: String,
}

/// The rows of one symbol, or of all: times, each once, and their rows in the table.
type Rows = Vec<(i64, usize)>;

/// Reads the file and adds its columns to all bars.
pub(crate) fn attach(
    universe: &mut Universe,
    options: &JoinOptions,
    zone: &TimeZone,
    progress: &LoadProgress,
) -> Result<FeatureReport, MarketError> {
    let path = &options.path;
    let progress = progress.join(path);
    let (table, _) = read_table(open(path, &progress)?, path, zone, Wanted::Features, &progress)?;
    attach_table(universe, &table, options)
}

/// Adds the columns of a table to all bars.
pub(crate) fn attach_table(
    universe: &mut Universe,
    table: &Table,
    options: &JoinOptions,
) -> Result<FeatureReport, MarketError> {
    let path = &options.path;
    let names = names(table, options, universe)?;
    let mut report = FeatureReport {
        path: path.display().to_string(),
        columns: names.clone(),
        rows: table.n_rows(),
        ..FeatureReport::default()
    };
    let mut by_symbol = gather(table, &mut report);
    let for_all = by_symbol.remove(&None);
    let none = Rows::new();
    let joined: Vec<Joined> = universe
        .symbols
        .par_iter_mut()
        .map(|bars| {
            let own = by_symbol.get(&Some(bars.symbol.as_str()));
            let rows = for_all.as_ref().or(own).unwrap_or(&none);
            let joined = match_rows(bars, rows, options);
            for (name, (_, values)) in names.iter().zip(&table.extra) {
                let value = |row: &Option<usize>| row.map_or(f64::NAN, |row| values[row]);
                let column = joined.row_of.iter().map(value);
                let finite = column.map(|value| if value.is_finite() { value } else { f64::NAN });
                bars.extra.push((name.clone(), finite.collect()));
            }
            joined
        })
        .collect();
    let mut is_read = vec![false; table.n_rows()];
    for joined in joined {
        report.bars_without += joined.n_without;
        report.bars_stale += joined.n_stale;
        joined.row_of.into_iter().flatten().for_each(|row| is_read[row] = true);
    }
    let n_read = is_read.into_iter().filter(|is_read| *is_read).count();
    report.rows_unmatched = report.rows - report.rows_duplicate - report.rows_without_time - n_read;
    if n_read == 0 {
        let problem = "no row meets a bar".to_string();
        let hint =
            "compare symbols and times of both files, and look at --timezone and --max-age".to_string();
        return Err(MarketError::Join { path: path.clone(), problem, hint });
    }
    Ok(report)
}

/// The columns' names behind the prefix; an error if bars have one of them already.
fn names(table: &Table, options: &JoinOptions, universe: &Universe) -> Result<Vec<String>, MarketError> {
    let fail = |problem: String, hint: &str| {
        Err(MarketError::Join { path: options.path.clone(), problem, hint: hint.to_string() })
    };
    if table.extra.is_empty() {
        return fail("it has no column of numbers beside the time".to_string(), "add one");
    }
    let prefix = &options.prefix;
    let is_plain = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    if !prefix.chars().all(is_plain) || prefix.starts_with(|first: char| first.is_ascii_digit()) {
        let hint = "use lower-case letters, digits and underscores, as in ml_";
        return fail(format!("the prefix {prefix:?} cannot begin the name of a series"), hint);
    }
    let names: Vec<String> = table.extra.iter().map(|(name, _)| format!("{prefix}{name}")).collect();
    let has = |bars: &Bars, name: &str| bars.extra.iter().any(|(known, _)| known == name);
    let is_taken = |name: &&String| {
        RESERVED.contains(&name.as_str()) || universe.symbols.iter().any(|bars| has(bars, name))
    };
    match names.iter().find(is_taken) {
        Some(name) => fail(
            format!("the bars have a column {name} already"),
            "give the joined ones another beginning with --prefix",
        ),
        None => Ok(names),
    }
}

/// The rows of each symbol, rising in time, of several with one time the last; under `None` those of a file without symbols.
fn gather<'a>(table: &'a Table, report: &mut FeatureReport) -> HashMap<Option<&'a str>, Rows> {
    let mut by_symbol: HashMap<Option<&str>, Rows> = HashMap::new();
    for (row, &ts_ms) in table.ts_ms.iter().enumerate() {
        let id = table.symbol_ids.as_ref().map(|ids| ids[row]);
        if ts_ms == NO_TIME || id == Some(NO_SYMBOL) {
            report.rows_without_time += 1;
            continue;
        }
        let symbol = id.map(|id| table.symbols[id as usize].as_str());
        by_symbol.entry(symbol).or_default().push((ts_ms, row));
    }
    for rows in by_symbol.values_mut() {
        rows.sort_unstable();
        let n_rows = rows.len();
        rows.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = later.1;
            }
            is_same
        });
        report.rows_duplicate += n_rows - rows.len();
    }
    by_symbol
}

/// Which row each bar reads.
struct Joined {
    row_of: Vec<Option<usize>>,
    /// Bars before the first row.
    n_without: usize,
    /// Bars whose last row is too old.
    n_stale: usize,
}

fn match_rows(bars: &Bars, rows: &Rows, options: &JoinOptions) -> Joined {
    let until = |ts_ms: i64| match options.as_of {
        BarStamp::Open => ts_ms,
        BarStamp::Close => ts_ms.saturating_add(bars.timeframe_ms),
    };
    let mut joined = Joined { row_of: Vec::with_capacity(bars.len()), n_without: 0, n_stale: 0 };
    let mut next = 0;
    for &ts_ms in &bars.ts_ms {
        let until_ms = until(ts_ms);
        next += rows[next..].iter().take_while(|(stamp_ms, _)| *stamp_ms <= until_ms).count();
        let last = next.checked_sub(1).map(|at| rows[at]);
        let is_fresh = |stamp_ms: i64| {
            options.max_age_ms.is_none_or(|most_ms| until_ms.saturating_sub(stamp_ms) <= most_ms)
        };
        joined.row_of.push(match last {
            Some((stamp_ms, row)) if is_fresh(stamp_ms) => Some(row),
            Some(_) => {
                joined.n_stale += 1;
                None
            }
            None => {
                joined.n_without += 1;
                None
            }
        });
    }
    joined
}
