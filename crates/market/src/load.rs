//! From paths to a clean [`Universe`].
//!
//! Files are read side by side, their rows gathered by symbol, each symbol cleaned by the policy of
//! [`clean`](crate::clean) and, if requested, resampled. The order of paths decides which of two duplicate rows is
//! the later one; nothing else depends on it.

pub(crate) mod array;
pub(crate) mod arrow;
pub(crate) mod clash;
pub(crate) mod column;
pub(crate) mod content;
pub(crate) mod csv;
pub(crate) mod delta;
pub(crate) mod extra;
pub(crate) mod find;
pub(crate) mod footer;
pub(crate) mod foreign;
pub(crate) mod frame;
pub(crate) mod given;
pub(crate) mod join;
pub(crate) mod line;
pub(crate) mod name;
pub(crate) mod number;
pub(crate) mod page;
pub(crate) mod parquet;
pub(crate) mod parts;
pub(crate) mod progress;
pub(crate) mod read;
pub(crate) mod stamp;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod thrift;
pub(crate) mod time;
pub(crate) mod unpack;
pub(crate) mod wide;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bars::{Bars, DAY_MS, Universe};
use crate::clean::{CleanedSymbol, RowRange, Source, SymbolRows, clean, count_kept};
use crate::error::MarketError;
use crate::glob;
use crate::report::{DataReport, FileReport, IssueKind, Place, RefusedSymbol, Tally, UnreadableFile};
use crate::resample::resample;
use crate::timeframe::format_duration;
use crate::timestamp::format_ms;
pub use find::files_of;
pub use given::{GivenFrame, join_frame, load_frames};
pub use join::JoinOptions;
use name::Naming;
pub use name::symbol_of_file;
pub use progress::{LoadProgress, LoadStage, LoadState};
use read::{Outcome, Reader};
pub use stamp::BarStamp;
use table::{NO_SYMBOL, NO_TIME};

/// What to load and how to read it. The default takes everything as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadOptions {
    /// Only these symbols, with `*` and `?` for any text and character; one that fits nothing is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<String>>,
    /// Time zone of timestamps without one: an IANA name or an offset. UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether the files' times are the opens or the ends of bars.
    pub stamp: BarStamp,
    /// Resample to this bar length.
    #[serde(rename = "resample_ms", skip_serializing_if = "Option::is_none")]
    pub resample: Option<i64>,
    /// The symbol of files that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A pattern for the symbol of files that name none: its first group, or all that it matches, in the path as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_from: Option<String>,
    /// A file of a directory that cannot be read is the error too, as one that was given by itself is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Columns of another file, joined to the bars by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinOptions>,
    /// Leave out bars before this time, UTC milliseconds.
    #[serde(skip)]
    pub from_ms: Option<i64>,
    /// Leave out bars at or after this time, UTC milliseconds.
    #[serde(skip)]
    pub to_ms: Option<i64>,
    /// Go on without files that cannot be read and symbols whose files clash; the report names them. Otherwise the first of
    /// them is the error.
    #[serde(skip)]
    pub lenient: bool,
    /// What time it is, UTC milliseconds, for telling bars of the future; the system's clock by default.
    #[serde(skip)]
    pub now_ms: Option<i64>,
    /// Where loading tells how far it is.
    #[serde(skip)]
    pub progress: LoadProgress,
}

/// Clean data and what cleaning did.
#[derive(Clone, Debug)]
pub struct LoadedData {
    /// The symbols, ordered by name, none of them empty.
    pub universe: Universe,
    /// What was found, dropped, repaired and refused.
    pub report: DataReport,
}

/// Loads files and directories.
///
/// A directory stands for every file directly inside it that is named like data (`.csv`, `.tsv`, `.parquet`, `.feather`,
/// `.arrow`, `.zip`, packed or not), sorted by name, and an archive for such members; those that cannot be read are left out
/// and reported, unless none can. The content decides the format, not the name. A file
/// without a symbol column is named after its file name.
pub fn load(paths: &[PathBuf], options: &LoadOptions) -> Result<LoadedData, MarketError> {
    let naming = Naming::new(options)?;
    let files = find::expand(paths)?;
    let progress = &options.progress;
    progress.read(&files);
    let reader = Reader { zone: zone(options)?, stamp: options.stamp, naming: &naming, progress };
    let read: Vec<Vec<Outcome>> = files.par_iter().map(|found| reader.read(found)).collect();
    assemble(read.into_iter().flatten().collect(), &reader.zone, options)
}

/// The zone of timestamps without one.
fn zone(options: &LoadOptions) -> Result<TimeZone, MarketError> {
    options.timezone.as_deref().map_or(Ok(TimeZone::UTC), time::resolve_zone)
}

/// From tables that were read, or were not, to clean bars.
fn assemble(read: Vec<Outcome>, zone: &TimeZone, options: &LoadOptions) -> Result<LoadedData, MarketError> {
    if let Some(to_ms) = options.resample.filter(|&to_ms| to_ms <= 0) {
        return Err(MarketError::Timeframe { text: format!("{to_ms} ms") });
    }
    let is_any_read = read.iter().any(|outcome| outcome.read.is_ok());
    let may_skip = |is_given: bool| is_any_read && (options.lenient || !is_given && !options.strict);
    let mut report = DataReport::default();
    let mut tally = Tally::default();
    let mut sources = Vec::with_capacity(read.len());
    for Outcome { path, is_given, read } in read {
        let (mut source, format) = match read {
            Err(error) if may_skip(is_given) => {
                let path = path.display().to_string();
                report.unreadable.push(UnreadableFile { path, reason: error.to_string() });
                continue;
            }
            read => read?,
        };
        let mut notes = std::mem::take(&mut source.table.notes);
        if source.table.stamp == Some(BarStamp::Close) && options.stamp == BarStamp::Open {
            notes.push(
                "the times come from a column that names the ends of bars, yet were taken as open times; with --stamp close they are read as ends"
                    .to_string(),
            );
        }
        let rows = source.table.n_rows();
        let path = source.file.clone();
        report.files.push(FileReport { path, format, rows, symbols: source.symbols(), notes });
        for &line in &source.table.header_lines {
            tally.add(IssueKind::HeaderLine, || place(&source.file, u64::from(line), None));
        }
        sources.push(source);
    }
    if options.name.is_some() && sources.iter().all(|source| source.table.symbol_ids.is_some()) {
        return Err(MarketError::NameUnused);
    }
    let mut gathered = choose(gather(&sources, &mut tally), options.symbols.as_deref())?;
    options.progress.clean(gathered.len());
    if options.stamp == BarStamp::Close {
        let outcomes = stamp::open_times(&gathered, &mut sources);
        let mut outcomes = outcomes.into_iter();
        let mut refused = Vec::new();
        gathered.retain(|found| match outcomes.next() {
            Some(Err(error)) => {
                refused.push((found.symbol.clone(), error));
                false
            }
            _ => true,
        });
        for (symbol, error) in refused {
            if !options.lenient {
                return Err(error);
            }
            report.refused.push(RefusedSymbol { symbol, reason: error.to_string() });
        }
        report.notes.push("times were read as the ends of bars (--stamp close)".to_string());
    }
    if options.lenient {
        for clash in clash::all(&gathered, &sources) {
            gathered.retain(|found| found.symbol != clash.symbol);
            report.refused.push(clash);
        }
    } else {
        clash::check(&gathered, &sources)?;
    }
    let span = options.from_ms.unwrap_or(i64::MIN + 1)..options.to_ms.unwrap_or(i64::MAX);
    let cleaned: Vec<(CleanedSymbol, Tally)> =
        gathered.par_iter().map(|symbol| clean(symbol, &sources, span.clone())).collect();
    let spans: Vec<Vec<parts::Span>> =
        gathered.par_iter().map(|symbol| parts::spans(symbol, &sources)).collect();
    drop(sources);
    let mut universe = Universe::default();
    for ((symbol, spans), (outcome, symbol_tally)) in gathered.into_iter().zip(spans).zip(cleaned) {
        tally.absorb(symbol_tally);
        match outcome {
            Ok((bars, symbol_report)) => {
                report.joined.extend(parts::joined(&spans, &bars));
                universe.symbols.push(bars);
                report.symbols.push(symbol_report);
            }
            Err(reason) => report.refused.push(RefusedSymbol { symbol: symbol.symbol, reason }),
        }
    }
    report.refused.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    settle_timeframes(&mut universe, &mut report);
    note_times(&universe, options, &mut report);
    if let Some(to_ms) = options.resample {
        resample_all(&mut universe, &mut report, &mut tally, to_ms)?;
    }
    if let Some(join) = &options.join {
        report.features = Some(join::attach(&mut universe, join, zone, &options.progress)?);
    }
    report.issues = tally.finish();
    if universe.symbols.is_empty() {
        let mut reasons: Vec<String> = report
            .refused
            .iter()
            .take(8)
            .map(|refused| format!("  {}: {}", refused.symbol, refused.reason))
            .collect();
        if reasons.is_empty() {
            reasons.extend(
                report.issues.iter().map(|issue| format!("  {} {}", issue.count, issue.kind.describe())),
            );
        }
        return Err(MarketError::NothingLeft { files: report.files.len(), reasons: reasons.join("\n") });
    }
    Ok(LoadedData { universe, report })
}

fn place(file: &str, row: u64, ts_ms: Option<i64>) -> Place {
    Place { symbol: String::new(), file: file.to_string(), row, ts_ms }
}

/// Collects each symbol's rows over all files, ordered by symbol.
fn gather(sources: &[Source], tally: &mut Tally) -> Vec<SymbolRows> {
    let mut by_symbol: BTreeMap<String, Vec<RowRange>> = BTreeMap::new();
    for (file_idx, source) in sources.iter().enumerate() {
        let table = &source.table;
        let Some(ids) = &table.symbol_ids else {
            let rows = 0..table.n_rows();
            by_symbol.entry(source.name.symbol.clone()).or_default().push(RowRange { file_idx, rows });
            continue;
        };
        let mut runs: Vec<Vec<RowRange>> = vec![Vec::new(); table.symbols.len()];
        let mut start = 0;
        for chunk in ids.chunk_by(|a, b| a == b) {
            let rows = start..start + chunk.len();
            start = rows.end;
            if chunk[0] == NO_SYMBOL {
                for row in rows {
                    let ts_ms = Some(table.ts_ms[row]).filter(|&ts_ms| ts_ms != NO_TIME);
                    tally.add(IssueKind::NoSymbol, || place(&source.file, table.line(row), ts_ms));
                }
            } else {
                runs[chunk[0] as usize].push(RowRange { file_idx, rows });
            }
        }
        for (symbol, mut runs) in table.symbols.iter().zip(runs) {
            by_symbol.entry(symbol.clone()).or_default().append(&mut runs);
        }
    }
    by_symbol.into_iter().map(|(symbol, runs)| SymbolRows { symbol, runs }).collect()
}

/// Only the requested symbols.
fn choose(gathered: Vec<SymbolRows>, wanted: Option<&[String]>) -> Result<Vec<SymbolRows>, MarketError> {
    let Some(wanted) = wanted else { return Ok(gathered) };
    if let Some(symbol) = glob::unmatched(wanted, gathered.iter().map(|found| &found.symbol)) {
        let mut available: Vec<&str> = gathered.iter().take(20).map(|found| found.symbol.as_str()).collect();
        if gathered.len() > 20 {
            available.push("…");
        }
        let available = available.join(", ");
        return Err(MarketError::UnknownSymbol { symbol: symbol.clone(), available });
    }
    Ok(gathered.into_iter().filter(|found| glob::fits_any(wanted, &found.symbol)).collect())
}

/// A single bar has no step; it takes the commonest timeframe of the others, or one day.
fn settle_timeframes(universe: &mut Universe, report: &mut DataReport) {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for bars in universe.symbols.iter().filter(|bars| bars.timeframe_ms > 0) {
        *counts.entry(bars.timeframe_ms).or_default() += bars.len();
    }
    if counts.len() > 1 {
        let list: Vec<String> = counts.keys().take(6).map(|&ms| format_duration(ms)).collect();
        report.notes.push(format!("the symbols have different timeframes: {}", list.join(", ")));
    }
    let commonest = counts.iter().max_by_key(|(_, bars)| **bars).map_or(DAY_MS, |(&ms, _)| ms);
    for (bars, symbol) in universe.symbols.iter_mut().zip(&mut report.symbols) {
        if bars.timeframe_ms == 0 {
            bars.timeframe_ms = commonest;
            symbol.timeframe_ms = commonest;
        }
    }
}

/// Notes on timestamps that are probably misread.
fn note_times(universe: &Universe, options: &LoadOptions, report: &mut DataReport) {
    let mut note = |found: Vec<(&str, i64)>, what: &str, hint: &str| {
        if let Some(&(symbol, ts_ms)) = found.first() {
            let more = if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
            let time = format_ms(ts_ms);
            report.notes.push(format!("{symbol}{more}: {what} ({time}); hint: {hint}"));
        }
    };
    let now_ms = options.now_ms.unwrap_or_else(system_now_ms);
    let last = |bars: &Bars| bars.ts_ms.last().copied().unwrap_or(i64::MIN);
    let symbols = universe.symbols.iter();
    let future = symbols.clone().filter(|bars| last(bars) > now_ms + ahead_ms(bars.timeframe_ms));
    note(
        future.map(|bars| (bars.symbol.as_str(), last(bars))).collect(),
        "the last bar opens in the future",
        "the zone (--timezone), the order of day and month or the unit of an epoch may be wrong, or a forecast is among the data",
    );
    if options.stamp == BarStamp::Close {
        let early = symbols.filter(|bars| stamp::is_a_day_early(bars.timeframe_ms, &bars.ts_ms));
        note(
            early.map(|bars| (bars.symbol.as_str(), bars.ts_ms[0])).collect(),
            "daily bars that open from Sunday to Thursday",
            "dates that name the day of the bar itself need no --stamp close",
        );
    }
}

/// How far ahead of UTC a bar may open without being of the future: the date of a day has come up to 14 hours earlier in
/// the east.
fn ahead_ms(timeframe_ms: i64) -> i64 {
    if timeframe_ms >= DAY_MS { 14 * 3_600_000 } else { 0 }
}

fn system_now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Resamples every symbol; one that cannot be is refused, and if none can be, that is the error.
fn resample_all(
    universe: &mut Universe,
    report: &mut DataReport,
    tally: &mut Tally,
    to_ms: i64,
) -> Result<(), MarketError> {
    let outcomes: Vec<_> = universe.symbols.par_iter().map(|bars| resample(bars, to_ms)).collect();
    universe.symbols.clear();
    let reports = std::mem::take(&mut report.symbols);
    let mut first_error = None;
    for (outcome, mut symbol) in outcomes.into_iter().zip(reports) {
        match outcome {
            Ok(resampled) => {
                let bars = resampled.bars;
                symbol.bars = bars.len();
                symbol.first_ms = bars.ts_ms[0];
                symbol.last_ms = bars.ts_ms[bars.len() - 1];
                symbol.timeframe_ms = to_ms;
                (symbol.zero_volume, symbol.gaps, symbol.missing_bars) = (0, 0, 0);
                (symbol.longest_gap_ms, symbol.longest_gap_after_ms) = (0, None);
                // The source's zero volumes and gaps are in the tally already; the symbol's row describes the result.
                count_kept(&bars, &mut symbol, &mut Tally::default(), |_| place("", 0, None));
                for &ts_ms in &resampled.partial_ms {
                    let place = Place {
                        symbol: bars.symbol.clone(),
                        file: String::new(),
                        row: 0,
                        ts_ms: Some(ts_ms),
                    };
                    tally.add(IssueKind::PartialBucket, || place);
                }
                universe.symbols.push(bars);
                report.symbols.push(symbol);
            }
            Err(error) => {
                let bars = format_duration(symbol.timeframe_ms);
                let reason = format!("{bars} bars cannot be resampled to {}", format_duration(to_ms));
                report.refused.push(RefusedSymbol { symbol: symbol.symbol, reason });
                first_error.get_or_insert(error);
            }
        }
    }
    report.refused.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    match first_error {
        Some(error) if universe.symbols.is_empty() => Err(error),
        _ => Ok(()),
    }
}
