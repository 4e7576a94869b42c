//! What is scanned: closes and their times, and what loading could not use.

use std::path::PathBuf;

use anyhow::{Result, bail};
use tidemill_market::report::IssueKind;
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_market::{LoadOptions, load, symbol_of_file};
use tidemill_scan::Symbol;

use super::ScanArgs;
use crate::progress::while_loading;
use crate::settings::Settings;
use tidemill_lab::dataset::describe;

/// Symbols and bars of the generated universe.
const GENERATED: (usize, usize) = (100, 1_500);

/// Where data comes from, so that it can be opened again.
pub struct Source {
    /// Files and folders; none means generated data.
    pub files: Vec<PathBuf>,
    options: LoadOptions,
}

/// One symbol's closes.
pub struct Series {
    /// Name of the symbol.
    pub symbol: String,
    /// Open time of each bar, UTC milliseconds.
    pub ts_ms: Vec<i64>,
    /// Close of each bar.
    pub close: Vec<f64>,
}

/// Something that cannot be scanned.
pub struct Unusable {
    /// The symbol, or the name of the file that would have been one.
    pub symbol: String,
    /// The file, where it is the file that cannot be read.
    pub file: Option<String>,
    /// Why it cannot be scanned.
    pub reason: String,
}

/// Everything that was opened.
pub struct Market {
    /// The symbols, ordered by name.
    pub series: Vec<Series>,
    /// Files and symbols that cannot be scanned.
    pub unusable: Vec<Unusable>,
    /// Where it comes from, in a few words.
    pub origin: String,
    /// What loading found, if anything.
    pub notes: Vec<String>,
}

impl Source {
    /// The data of the arguments, else of the settings, else generated data.
    pub fn new(args: &ScanArgs, settings: &Settings) -> Result<Self> {
        let files = if args.data.is_empty() { &settings.data.files } else { &args.data };
        if files.is_empty() {
            args.reading.refuse_without_files("DATA")?;
        }
        let options = args.reading.options(&settings.data)?;
        if options.join.is_some() {
            bail!("--join does not apply to a scan, which reads closes only");
        }
        let options = LoadOptions { lenient: !options.strict, ..options };
        Ok(Self { files: files.clone(), options })
    }

    /// Loads or generates the data.
    pub fn open(&self) -> Result<Market> {
        if self.files.is_empty() {
            let (n_symbols, n_bars) = GENERATED;
            let universe =
                regime(&RegimeOptions { n_symbols, n_bars, planted: None, ..RegimeOptions::default() });
            let origin = format!("generated data ({})", describe(&universe));
            let series = universe.symbols.into_iter().map(Series::new).collect();
            return Ok(Market { series, unusable: Vec::new(), origin, notes: Vec::new() });
        }
        let mut loaded = while_loading(&self.options.progress, || load(&self.files, &self.options))?;
        let origin = describe(&loaded.universe);
        let mut unusable = Vec::new();
        for file in std::mem::take(&mut loaded.report.unreadable) {
            unusable.push(Unusable {
                symbol: symbol_of_file(&file.path),
                file: Some(file.path),
                reason: file.reason,
            });
        }
        for refused in std::mem::take(&mut loaded.report.refused) {
            unusable.push(Unusable { symbol: refused.symbol, file: None, reason: refused.reason });
        }
        let mut series = Vec::with_capacity(loaded.universe.symbols.len());
        for (bars, report) in loaded.universe.symbols.into_iter().zip(&loaded.report.symbols) {
            match report.newest_dropped {
                None => series.push(Series::new(bars)),
                Some(kind) => {
                    let reason = newest_row(kind).into();
                    unusable.push(Unusable { symbol: bars.symbol, file: None, reason });
                }
            }
        }
        // Unusable files are reported once, with the skipped symbols.
        Ok(Market { series, unusable, origin, notes: loaded.report.remarks() })
    }
}

impl Series {
    fn new(bars: tidemill_market::Bars) -> Self {
        Self { symbol: bars.symbol, ts_ms: bars.ts_ms, close: bars.close }
    }
}

impl Market {
    /// The symbols as a scanner takes them.
    pub fn symbols(&self) -> Vec<Symbol<'_>> {
        self.series.iter().map(|series| Symbol { name: &series.symbol, closes: &series.close }).collect()
    }

    /// Open times of the bars of every symbol.
    pub fn times_ms(&self) -> Vec<&[i64]> {
        self.series.iter().map(|series| series.ts_ms.as_slice()).collect()
    }
}

/// A signal of an older bar would pass for the latest, so such a symbol is not scanned.
fn newest_row(kind: IssueKind) -> &'static str {
    match kind {
        IssueKind::NotANumber => "its newest row has a price that is missing or no finite number",
        IssueKind::NotPositive => "its newest row has a price of zero or less",
        IssueKind::BadVolume => "its newest row has missing or negative volume",
        _ => "its newest row could not be used",
    }
}
