//! Bars: loaded from files and frames, generated, joined, handed back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidemill_lab::loading::doing;
use tidemill_lab::{Dataset, LabError, Recipe};
use tidemill_market::synth::{GenerateOptions, MarketKind};
use tidemill_market::{BarStamp, DataReport, JoinOptions, LoadOptions, Universe, bar_batches, timeframe};

use crate::attend::{attended, released};
use crate::error;
use crate::frame::{RawTable, given};

/// Clean bars of one or more symbols.
#[pyclass(frozen, module = "tidemill._tidemill")]
pub struct RawBars {
    /// The bars and where they come from.
    pub data: Arc<Dataset>,
    /// What loading found.
    pub report: DataReport,
}

impl RawBars {
    fn loaded(data: Dataset, report: DataReport) -> Self {
        Self { report, data: Arc::new(data) }
    }
}

/// How tables are read; see `LoadOptions`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReadingOptions {
    symbols: Option<Vec<String>>,
    timezone: Option<String>,
    stamp: String,
    resample: Option<String>,
    name: Option<String>,
    name_from: Option<String>,
    strict: bool,
    join: Option<PathBuf>,
    as_of: String,
    max_age: Option<String>,
    prefix: String,
}

fn stamp(text: &str, argument: &str) -> PyResult<BarStamp> {
    match text {
        "open" => Ok(BarStamp::Open),
        "close" => Ok(BarStamp::Close),
        _ => Err(PyValueError::new_err(format!("{argument}={text:?}: expected \"open\" or \"close\""))),
    }
}

fn join_options(path: PathBuf, as_of: &str, max_age: Option<&str>, prefix: &str) -> PyResult<JoinOptions> {
    let max_age_ms = max_age.map(timeframe::parse_span).transpose();
    let max_age_ms = max_age_ms.map_err(|error| PyValueError::new_err(format!("max_age: {error}")))?;
    Ok(JoinOptions { path, as_of: stamp(as_of, "as_of")?, max_age_ms, prefix: prefix.to_owned() })
}

impl ReadingOptions {
    fn options(self) -> PyResult<LoadOptions> {
        let resample = self.resample.as_deref().map(timeframe::parse_duration).transpose();
        let join =
            self.join.map(|path| join_options(path, &self.as_of, self.max_age.as_deref(), &self.prefix));
        Ok(LoadOptions {
            symbols: self.symbols,
            timezone: self.timezone,
            stamp: stamp(&self.stamp, "stamp")?,
            resample: resample.map_err(|error| PyValueError::new_err(format!("resample: {error}")))?,
            name: self.name,
            name_from: self.name_from,
            strict: self.strict,
            join: join.transpose()?,
            ..LoadOptions::default()
        })
    }
}

/// Loads files and folders. `progress` is called from this thread with the bytes that are read, of how many if that is known, and
/// what is being done.
#[pyfunction]
pub fn load_paths(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options: ReadingOptions,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<RawBars> {
    let options = options.options()?;
    let watched = options.progress.clone();
    let tell = |_: Python<'_>| -> PyResult<()> {
        let Some(progress) = &progress else { return Ok(()) };
        let state = watched.state();
        progress.call1((state.bytes_done, state.bytes, doing(&state))).map(|_| ())
    };
    let recipe = Recipe::new(&paths, options);
    let loaded = attended(py, &AtomicBool::new(false), tell, || recipe.load_with_report())?;
    let (data, report) = loaded.map_err(|error| error::of_lab(py, &error))?;
    Ok(RawBars::loaded(data, report))
}

/// Cleans frames: symbol, what stands for a file name, and the frame of each.
#[pyfunction]
pub fn load_frames(
    py: Python<'_>,
    frames: Vec<(String, String, Bound<'_, PyAny>)>,
    options: ReadingOptions,
) -> PyResult<RawBars> {
    let options = options.options()?;
    let frames = frames.into_iter().map(|(symbol, origin, frame)| given(&frame, symbol, origin));
    let frames = frames.collect::<PyResult<Vec<_>>>()?;
    let loaded = released(py, || tidemill_market::load_frames(&frames, &options))?;
    let loaded = loaded.map_err(|error| error::of_market(py, &error))?;
    let data = Dataset { notes: loaded.report.remarks(), ..Dataset::of(loaded.universe) };
    Ok(RawBars::loaded(data, loaded.report))
}

/// What travels with packed bars.
#[derive(Serialize, Deserialize)]
struct PackedBars {
    /// How to load them again, unless they were in memory.
    recipe: Option<Recipe>,
    has_benchmark: bool,
    origin: String,
    notes: Vec<String>,
}

/// Names of the files of packed bars.
const PACKED: [&str; 2] = ["bars.parquet", "benchmark.parquet"];

/// Bars that `RawBars.pack` wrote, with everything but the report of their load.
#[pyfunction]
pub fn unpack_bars(py: Python<'_>, folder: PathBuf, about: &str) -> PyResult<RawBars> {
    let about: PackedBars =
        serde_json::from_str(about).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let read = |name: &str| Dataset::load(&[folder.join(name)]);
    let unpacked = released(py, || {
        let mut data = Dataset::of(read(PACKED[0])?.universe);
        (data.origin, data.notes) = (about.origin, about.notes);
        if let Some(recipe) = about.recipe {
            data.recipe = recipe;
        }
        if about.has_benchmark {
            data.benchmark = read(PACKED[1])?.universe.symbols.into_iter().next();
        }
        Ok(data)
    })?;
    let data = unpacked.map_err(|error: LabError| error::of_lab(py, &error))?;
    Ok(RawBars::loaded(data, DataReport::default()))
}

/// The market that commands use where no data is named.
#[pyfunction]
pub fn generated(py: Python<'_>) -> PyResult<RawBars> {
    let data = released(py, Dataset::generated)?;
    Ok(RawBars::loaded(data, DataReport::default()))
}

/// Generates a market.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are the flags of the command")]
pub fn generate(
    py: Python<'_>,
    kind: &str,
    bars: usize,
    symbols: Option<usize>,
    timeframe: Option<String>,
    seed: Option<u64>,
    edge: Option<f64>,
    drift: Option<f64>,
) -> PyResult<RawBars> {
    let kind = match kind {
        "lcg" => MarketKind::Lcg,
        "regime" => MarketKind::Regime,
        "walk" => MarketKind::Walk,
        "clustered" => MarketKind::Clustered,
        _ => {
            let message = format!("kind={kind:?}: expected \"regime\", \"walk\", \"clustered\" or \"lcg\"");
            return Err(PyValueError::new_err(message));
        }
    };
    let options = GenerateOptions { kind, bars, symbols, timeframe, seed, edge, drift };
    let universe = released(py, || options.generate())?;
    let universe = universe.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(RawBars::loaded(Dataset::of(universe), DataReport::default()))
}

#[pymethods]
impl RawBars {
    /// A hash of all names and columns.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        released(py, || self.data.universe.fingerprint())
    }

    /// The report of the load as JSON.
    fn report(&self) -> String {
        json!(self.report).to_string()
    }

    /// Where the bars come from, in a few words.
    #[getter]
    fn origin(&self) -> &str {
        &self.data.origin
    }

    /// Whether nothing says where the bars could be loaded from.
    #[getter]
    fn is_in_memory(&self) -> bool {
        self.data.recipe.stored().is_none()
    }

    /// What loading found.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.data.notes.clone()
    }

    /// Names of the symbols.
    #[getter]
    fn symbols(&self) -> Vec<String> {
        self.data.universe.symbols.iter().map(|bars| bars.symbol.clone()).collect()
    }

    /// Bars of all symbols.
    fn __len__(&self) -> usize {
        self.data.universe.n_bars()
    }

    /// All bars as a table.
    fn table(&self, py: Python<'_>) -> PyResult<RawTable> {
        let (schema, batches) = bar_batches(&self.data.universe, Path::new("a table"))
            .map_err(|error| error::of_market(py, &error))?;
        let made = released(py, || batches.collect::<Result<_, _>>())?;
        made.map(|batches| RawTable::new(schema, batches))
            .map_err(|error: arrow_schema::ArrowError| error::defect(py, &error.to_string()))
    }

    /// Writes Parquet or CSV.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = released(py, || tidemill_market::write(&self.data.universe, &path))?;
        written.map_err(|error| error::of_market(py, &error))
    }

    /// Writes everything that another process needs into a folder; the result goes to `unpack_bars` with it.
    fn pack(&self, py: Python<'_>, folder: PathBuf) -> PyResult<String> {
        let Dataset { universe, benchmark, origin, notes, .. } = &*self.data;
        let written = released(py, || {
            tidemill_market::write(universe, &folder.join(PACKED[0]))?;
            benchmark.iter().try_for_each(|benchmark| {
                let alone = Universe { symbols: vec![benchmark.clone()] };
                tidemill_market::write(&alone, &folder.join(PACKED[1]))
            })
        })?;
        written.map_err(|error| error::of_market(py, &error))?;
        let about = PackedBars {
            recipe: self.data.recipe.stored().map(|recipe| recipe.in_full()),
            has_benchmark: benchmark.is_some(),
            origin: origin.clone(),
            notes: notes.clone(),
        };
        Ok(json!(about).to_string())
    }

    /// The same with another benchmark.
    fn with_benchmark(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        let data = released(py, || Dataset::clone(&self.data).with_benchmark(name))?;
        let data = data.map_err(|error| error::of_lab(py, &error))?;
        Ok(Self { data: Arc::new(data), report: self.report.clone() })
    }

    /// The same with the columns of a frame joined by time.
    fn join(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        as_of: &str,
        max_age: Option<&str>,
        prefix: &str,
        timezone: Option<&str>,
    ) -> PyResult<Self> {
        let origin = "the joined frame".to_owned();
        let options = join_options(PathBuf::from(&origin), as_of, max_age, prefix)?;
        let frame = given(frame, String::new(), origin)?;
        let joined = released(py, || {
            let mut universe = self.data.universe.clone();
            let report = tidemill_market::join_frame(&mut universe, &frame, &options, timezone)?;
            Ok((universe, report))
        })?;
        let (universe, features) =
            joined.map_err(|error: tidemill_market::MarketError| error::of_market(py, &error))?;
        let report = DataReport { features: Some(features), ..self.report.clone() };
        let data = Dataset {
            benchmark: self.data.benchmark.clone(),
            notes: self.data.notes.clone(),
            ..Dataset::of(universe)
        };
        Ok(Self { data: Arc::new(data), report })
    }
}
