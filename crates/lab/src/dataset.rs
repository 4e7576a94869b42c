//! Bars with their origin and the notes about them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use tidemill_market::synth::{Planted, RegimeOptions, regime};
use tidemill_market::{Bars, DataReport, LoadOptions, LoadProgress, Universe, load, timeframe};

use crate::error::LabError;
use crate::file_stamp::FileStamps;
use crate::number;

/// Bars of one or more symbols.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The bars.
    pub universe: Universe,
    /// The series that results are compared with in place of holding all symbols, if one is named.
    pub benchmark: Option<Bars>,
    /// How to load them again.
    pub recipe: Recipe,
    /// Where they come from, in a few words.
    pub origin: String,
    /// What loading found, if anything.
    pub notes: Vec<String>,
}

impl Dataset {
    /// Bars that are in memory already. A study of them cannot load them again.
    pub fn of(universe: Universe) -> Self {
        let origin = describe(&universe);
        let recipe = Recipe { is_in_memory: true, ..Recipe::default() };
        Self { universe, benchmark: None, recipe, origin, notes: Vec::new() }
    }

    /// CSV or Parquet files, or folders of them.
    pub fn load(files: &[PathBuf]) -> Result<Self, LabError> {
        Recipe::new(files, LoadOptions::default()).load()
    }

    /// A generated market with a planted edge, for experiments.
    pub fn generated() -> Self {
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
        Self {
            origin: "generated data (4 symbols × 20,000 bars of 15m)".into(),
            notes: vec![note],
            recipe: Recipe::default(),
            ..Self::of(universe)
        }
    }

    /// Compares results with this series: a symbol of the data, also one that the recipe left out, else a file with one symbol.
    pub fn with_benchmark(mut self, name: &str) -> Result<Self, LabError> {
        self.benchmark = Some(self.recipe.benchmark(name, &self.universe)?);
        self.recipe.benchmark = Some(name.to_owned());
        Ok(self)
    }

    /// Compares results with the benchmark that the recipe names, if it names one.
    pub(crate) fn with_own_benchmark(self) -> Result<Self, LabError> {
        match self.recipe.benchmark.clone() {
            Some(name) => self.with_benchmark(&name),
            None => Ok(self),
        }
    }
}

/// Symbols, bars and timeframe in words.
pub fn describe(universe: &Universe) -> String {
    let mut timeframes: Vec<i64> = universe.symbols.iter().map(|bars| bars.timeframe_ms).collect();
    timeframes.sort_unstable();
    timeframes.dedup();
    let timeframe = match timeframes[..] {
        [one] => timeframe::format_duration(one),
        _ => "mixed timeframes".into(),
    };
    let symbols = number::counted(universe.symbols.len() as u64, "symbol");
    format!("{symbols}, {} of {timeframe}", number::counted(universe.n_bars() as u64, "bar"))
}

/// How data is loaded, as a study stores it, so that a trial can be evaluated again without the command line. Without files, data is
/// generated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recipe {
    /// Files and folders as they were named.
    #[serde(serialize_with = "as_text")]
    files: Vec<PathBuf>,
    /// The folder that relative paths start from.
    within: String,
    /// How they are read.
    #[serde(flatten)]
    options: LoadOptions,
    /// What results are compared with in place of holding all symbols: a symbol or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    benchmark: Option<String>,
    /// Whether the bars were handed over in memory, so that nothing says where they are.
    #[serde(skip)]
    is_in_memory: bool,
}

impl Recipe {
    /// Data of files, or generated data if there are none.
    pub fn new(files: &[PathBuf], options: LoadOptions) -> Self {
        // If the working folder is unknown, paths stay relative to the folder in which they are read.
        let within = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
        Self { files: files.to_vec(), within, options, benchmark: None, is_in_memory: false }
    }

    /// The same, telling this how far loading is.
    pub fn watched(mut self, progress: &LoadProgress) -> Self {
        self.options.progress = progress.clone();
        self
    }

    /// What a study stores of it: nothing of bars that were in memory.
    pub fn stored(&self) -> Option<Self> {
        (!self.is_in_memory).then(|| self.clone())
    }

    /// The same from other files, named from the working folder, and with another benchmark; what is not given stays.
    pub fn replaced(&self, files: &[PathBuf], benchmark: Option<&str>) -> Self {
        let mut recipe = self.in_full();
        if !files.is_empty() {
            let here = std::env::current_dir().unwrap_or_default();
            recipe.files = files.iter().map(|file| here.join(file)).collect();
        }
        if let Some(name) = benchmark {
            recipe.within = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
            recipe.benchmark = Some(name.to_owned());
        }
        recipe
    }

    /// The same with all files named in full, whichever folder this is read in.
    pub fn in_full(&self) -> Self {
        let in_full = |file: &PathBuf| Path::new(&self.within).join(file);
        let mut recipe = self.clone();
        recipe.files = self.files.iter().map(in_full).collect();
        if let Some(join) = &mut recipe.options.join {
            join.path = in_full(&join.path);
        }
        recipe
    }

    /// The first file that no longer exists.
    pub fn missing(&self) -> Option<&Path> {
        let join = self.options.join.iter().map(|join| &join.path);
        self.files.iter().chain(join).map(PathBuf::as_path).find(|path| !path.exists())
    }

    /// What every file looks like now, those of folders included.
    pub(crate) fn stamps(&self) -> FileStamps {
        let full = self.in_full();
        let join = full.options.join.map(|join| join.path);
        FileStamps::of(&full.files.into_iter().chain(join).collect::<Vec<_>>())
    }

    /// Loads or generates the data, and the benchmark if it names one.
    pub fn load(self) -> Result<Dataset, LabError> {
        self.load_bars()?.with_own_benchmark()
    }

    /// The same without the benchmark.
    pub fn load_bars(self) -> Result<Dataset, LabError> {
        Ok(self.load_with_report()?.0)
    }

    /// The same, with what loading found.
    pub fn load_with_report(self) -> Result<(Dataset, DataReport), LabError> {
        if self.files.is_empty() {
            return Ok((Dataset { recipe: self, ..Dataset::generated() }, DataReport::default()));
        }
        let loaded = load(&self.files, &self.options)?;
        let data = Dataset { recipe: self, notes: loaded.report.remarks(), ..Dataset::of(loaded.universe) };
        Ok((data, loaded.report))
    }

    fn benchmark(&self, name: &str, universe: &Universe) -> Result<Bars, LabError> {
        if let Some(bars) = universe.symbols.iter().find(|bars| bars.symbol == name) {
            return Ok(bars.clone());
        }
        let options = LoadOptions {
            timezone: self.options.timezone.clone(),
            resample: self.options.resample,
            progress: self.options.progress.clone(),
            ..LoadOptions::default()
        };
        let path = Path::new(&self.within).join(name);
        if path.is_file() {
            let loaded = load(&[path], &options).map_err(|error| LabError::BenchmarkData(Box::new(error)))?;
            let mut symbols = loaded.universe.symbols;
            if symbols.len() != 1 {
                return Err(LabError::BenchmarkSymbols { name: name.into(), n_symbols: symbols.len() });
            }
            return Ok(symbols.remove(0));
        }
        if self.options.symbols.is_some() {
            let options = LoadOptions { symbols: Some(vec![name.to_owned()]), ..self.options.clone() };
            if let Some(bars) =
                load(&self.files, &options).ok().and_then(|mut loaded| loaded.universe.symbols.pop())
            {
                return Ok(bars);
            }
        }
        let known: Vec<&str> = universe.symbols.iter().take(8).map(|bars| bars.symbol.as_str()).collect();
        let more = if universe.symbols.len() > known.len() { ", …" } else { "" };
        Err(LabError::NoBenchmark { name: name.into(), known: format!("{}{more}", known.join(", ")) })
    }
}

/// Bytes that are not Unicode are replaced; loading then reports that there is no such file.
fn as_text<S: Serializer>(files: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|file| file.to_string_lossy()))
}
