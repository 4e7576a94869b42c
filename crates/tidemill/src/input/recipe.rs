//! How data is loaded, in a form that a study keeps: a trial can then be evaluated again when the command line is long gone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, Serializer};
use tidemill_backtest::segment::Layout;
use tidemill_market::synth::{Planted, RegimeOptions, regime};
use tidemill_market::{Bars, LoadOptions, Universe, load, timeframe};

use super::{Input, Stamp};
use crate::number;

/// What is loaded; without files, data is generated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recipe {
    /// Files and folders as they were named.
    #[serde(serialize_with = "as_text")]
    files: Vec<PathBuf>,
    /// The folder that relative ones are seen from.
    within: String,
    /// Only these symbols.
    symbols: Option<Vec<String>>,
    /// Zone of times that carry none.
    timezone: Option<String>,
    /// Whether the files' times are the opens or the ends of bars.
    stamp: Stamp,
    /// Resampled to bars of this length.
    resample_ms: Option<i64>,
}

impl Recipe {
    /// Data of files, or generated data if there are none.
    pub fn new(
        files: &[PathBuf],
        symbols: Option<Vec<String>>,
        timezone: Option<String>,
        stamp: Stamp,
        resample_ms: Option<i64>,
    ) -> Self {
        // Where the folder cannot be told, names are seen from wherever they are read.
        let within = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
        Self { files: files.to_vec(), within, symbols, timezone, stamp, resample_ms }
    }

    /// The same with all files named in full, whichever folder this is read in.
    pub fn in_full(&self) -> Self {
        let files = self.files.iter().map(|file| Path::new(&self.within).join(file)).collect();
        Self { files, ..self.clone() }
    }

    /// The first file that is not there any more.
    pub fn missing(&self) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|path| !path.exists())
    }

    /// Loads or generates the data.
    pub fn load(self, layout: Layout) -> Result<Input> {
        if self.files.is_empty() {
            return Ok(self.generate(layout));
        }
        let options = LoadOptions {
            symbols: self.symbols.clone(),
            timezone: self.timezone.clone(),
            stamp: self.stamp.into(),
            resample: self.resample_ms,
            ..LoadOptions::default()
        };
        let loaded = load(&self.files, &options)?;
        let notes = loaded.report.remarks();
        let symbols = loaded.universe.symbols.len();
        let bars = loaded.universe.n_bars() as u64;
        let mut timeframes: Vec<i64> = loaded.universe.symbols.iter().map(|bars| bars.timeframe_ms).collect();
        timeframes.sort_unstable();
        timeframes.dedup();
        let timeframe = match timeframes[..] {
            [one] => timeframe::format_duration(one),
            _ => "mixed timeframes".into(),
        };
        let origin = format!(
            "{}, {} of {timeframe}",
            number::counted(symbols as u64, "symbol"),
            number::counted(bars, "bar")
        );
        Ok(Input { universe: loaded.universe, layout, benchmark: None, recipe: self, origin, notes })
    }

    /// The series that results are compared with: a symbol of the data, also one that `--symbols` left out, else a file with one symbol.
    pub fn benchmark(&self, name: &str, universe: &Universe) -> Result<Bars> {
        if let Some(bars) = universe.symbols.iter().find(|bars| bars.symbol == name) {
            return Ok(bars.clone());
        }
        let options = LoadOptions {
            timezone: self.timezone.clone(),
            resample: self.resample_ms,
            ..LoadOptions::default()
        };
        if Path::new(name).is_file() {
            let loaded = load(&[PathBuf::from(name)], &options).context("--benchmark")?;
            let mut symbols = loaded.universe.symbols;
            if symbols.len() != 1 {
                bail!("--benchmark {name}: the file has {} symbols, a benchmark is one", symbols.len());
            }
            return Ok(symbols.remove(0));
        }
        if self.symbols.is_some() {
            let options = LoadOptions { symbols: Some(vec![name.to_owned()]), ..options };
            if let Some(bars) =
                load(&self.files, &options).ok().and_then(|mut loaded| loaded.universe.symbols.pop())
            {
                return Ok(bars);
            }
        }
        let known: Vec<&str> = universe.symbols.iter().take(8).map(|bars| bars.symbol.as_str()).collect();
        bail!(
            "--benchmark {name}: neither a symbol of the data nor a file\n  hint: the data has {}{}",
            known.join(", "),
            if universe.symbols.len() > known.len() { ", …" } else { "" }
        )
    }

    fn generate(self, layout: Layout) -> Input {
        let planted = Planted::default();
        let universe = regime(&RegimeOptions {
            n_bars: 20_000,
            n_symbols: 4,
            planted: Some(planted),
            ..RegimeOptions::default()
        });
        let note = format!(
            "the generated market has a planted edge: buying zscore(close, {}) < -{} and holding {} bars",
            planted.window, planted.threshold, planted.hold
        );
        let origin = "generated data (4 symbols × 20,000 bars of 15m)".into();
        Input { universe, layout, benchmark: None, recipe: self, origin, notes: vec![note] }
    }
}

/// A name that is no Unicode is kept as far as it is; it then names no file, and that is said.
fn as_text<S: Serializer>(files: &[PathBuf], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|file| file.to_string_lossy()))
}
