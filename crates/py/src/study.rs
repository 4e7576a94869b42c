//! Searches, and the studies that they leave in folders.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use tidemill_fleet::FleetEvent;
use tidemill_lab::event::SweepEvent;
use tidemill_lab::{
    CutTexts, DeviceChoice, Devices, Experiment, LabError, QueuedSets, Runtime, SearchOptions, StoredStudy,
    Sweep, SweepReport, TuneOptions,
};
use tidemill_search::folder::{self, ExportFormat};
use tidemill_telemetry::hypertune::{Mode, Thresholds};

use crate::attend::{attended, released};
use crate::backtest::CutOptions;
use crate::bars::RawBars;
use crate::cluster::cluster;
use crate::error;
use crate::frame::RawTable;
use crate::strategy::RawStrategy;

/// How trials are proposed and evaluated.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SweepOptions {
    trials: u64,
    plan_trials: Option<u64>,
    sampler: String,
    batch: Option<usize>,
    lag: Option<usize>,
    seed: u64,
    top: usize,
    enqueue: Vec<String>,
    verdict: bool,
    hypertune: String,
    /// Where trials are evaluated.
    pub device: String,
}

impl SweepOptions {
    /// How trials are proposed.
    pub fn search(&self) -> PyResult<SearchOptions> {
        if self.trials == 0 || self.plan_trials == Some(0) {
            return Err(PyValueError::new_err("trials must be at least 1"));
        }
        let sampler = self.sampler.parse();
        Ok(SearchOptions {
            trials: self.trials,
            plan_trials: self.plan_trials,
            sampler: sampler.map_err(|error| PyValueError::new_err(format!("sampler: {error}")))?,
            batch: self.batch,
            lag: self.lag,
            seed: self.seed,
            part: None,
        })
    }

    fn tuning(&self) -> PyResult<TuneOptions> {
        let mode = match self.hypertune.as_str() {
            "off" => Mode::Off,
            "advise" => Mode::Advise,
            "on" => Mode::On,
            other => {
                let message = format!("hypertune={other:?}: expected \"off\", \"advise\" or \"on\"");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(TuneOptions { mode, thresholds: Thresholds::default() })
    }
}

/// The runtime of a search: the devices of this machine, or workers of a cluster, which have devices of their own.
pub fn search_runtime(
    py: Python<'_>,
    device: &str,
    transport: Option<Py<PyAny>>,
    stop: &Arc<AtomicBool>,
) -> PyResult<Runtime> {
    let Some(transport) = transport else { return runtime(py, device, stop) };
    Ok(Runtime { cluster: Some(cluster(transport)), ..runtime(py, "cpu", stop)? })
}

/// The runtime of a choice of devices.
pub fn runtime(py: Python<'_>, device: &str, stop: &Arc<AtomicBool>) -> PyResult<Runtime> {
    let choice: DeviceChoice =
        device.parse().map_err(|error| PyValueError::new_err(format!("device={device:?}: {error}")))?;
    let devices = released(py, || Devices::choose(choice))?.map_err(|error| error::of_lab(py, &error))?;
    Ok(Runtime { devices: Arc::new(devices), stop: stop.clone(), ..Runtime::default() })
}

/// Searches, and keeps all trials in the folder; resumes the study that it holds. `progress` is called from this thread with the trials
/// done, the trials in all, the best value and whether winners are being judged. With a `transport` its workers evaluate. The result is a
/// JSON document.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a group of flags")]
pub fn sweep(
    py: Python<'_>,
    strategy: &RawStrategy,
    bars: &RawBars,
    folder: PathBuf,
    cut: CutOptions,
    options: SweepOptions,
    transport: Option<Py<PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (search, tuning) = (options.search()?, options.tuning()?);
    let layout = CutTexts::from(cut).layout().map_err(|error| error::of_lab(py, &error))?;
    let queue = QueuedSets::read(&options.enqueue, &strategy.strategy);
    let queue = queue.map_err(|error| error::of_lab(py, &error))?;
    let experiment = Experiment::new(strategy.strategy.clone(), bars.data.clone())
        .layout(layout)
        .runtime(search_runtime(py, &options.device, transport, &stop)?);
    let notes = [experiment.notes(), queue.notes].concat();
    let sweep = experiment
        .sweep()
        .options(search)
        .enqueue(queue.sets)
        .top(options.top)
        .verdict(options.verdict)
        .tuning(tuning)
        .folder(folder);
    run(py, sweep, &stop, notes, progress)
}

/// Goes on with a stored study as it was made, on its own data or on bars that equal it.
#[pyfunction]
pub fn stored_sweep(
    py: Python<'_>,
    folder: PathBuf,
    bars: Option<&RawBars>,
    trials: Option<u64>,
    device: &str,
    transport: Option<Py<PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = search_runtime(py, device, transport, &stop)?;
    let given = bars.map(|bars| bars.data.clone());
    let sweep = released(py, || StoredStudy::open(&folder)?.sweep(given, trials, runtime))?;
    let sweep = sweep.map_err(|error| error::of_lab(py, &error))?;
    run(py, sweep, &stop, Vec::new(), progress)
}

/// How far a run is, as its events tell it.
#[derive(Clone, Default)]
struct Told {
    done: u64,
    total: u64,
    best: Option<f64>,
    is_judging: bool,
    warnings: Vec<String>,
}

/// Hears the events of a run in its threads, and tells a callable of Python from the calling one.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Told>>);

impl Heard {
    /// Of a run of so many trials.
    pub fn of(total: u64) -> Self {
        Self(Arc::new(Mutex::new(Told { total, ..Told::default() })))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a run reports to.
    pub fn observer(&self) -> impl Fn(&SweepEvent) + Send + Sync + 'static {
        let heard = self.clone();
        move |event| {
            let mut told = heard.told();
            match event {
                SweepEvent::Opened(opening) => told.total = opening.n_asked,
                SweepEvent::BatchFinished { totals, .. } => {
                    (told.done, told.best) = (totals.trials, totals.best);
                }
                SweepEvent::Judging => told.is_judging = true,
                SweepEvent::FellBack { reason } => {
                    told.warnings.push(format!("the rest ran on the CPU, with the same results: {reason}"));
                }
                SweepEvent::Fleet { event: FleetEvent::Hungry(hunger), .. } => {
                    told.warnings.push(hunger.to_string());
                }
                SweepEvent::JournalFailed { reason } => told.warnings.push(reason.clone()),
                _ => {}
            }
        }
    }

    /// Does the work; Ctrl-C stops it.
    pub fn attend<T: Send>(
        &self,
        py: Python<'_>,
        stop: &AtomicBool,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce() -> Result<T, LabError> + Send,
    ) -> PyResult<T> {
        let tell = |_: Python<'_>| -> PyResult<()> {
            let Some(progress) = progress else { return Ok(()) };
            let Told { done, total, best, is_judging, .. } = self.told().clone();
            progress.call1((done, total, best, is_judging)).map(|_| ())
        };
        attended(py, stop, tell, work)?.map_err(|error| error::of_lab(py, &error))
    }
}

fn run(
    py: Python<'_>,
    sweep: Sweep,
    stop: &AtomicBool,
    notes: Vec<String>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let heard = Heard::default();
    let sweep = sweep.observe(heard.observer());
    let report = heard.attend(py, stop, progress.as_ref(), || sweep.run())?;
    Ok(summary(&report, &notes, &heard.told().warnings))
}

/// How a sweep went; its results are in its folder.
fn summary(report: &SweepReport, notes: &[String], warnings: &[String]) -> String {
    let document = json!({
        "trials": report.summary.n_trials,
        "resumed_from": report.summary.n_replayed,
        "asked": report.n_asked,
        "valid": report.n_valid,
        "is_complete": report.is_complete,
        "is_exhausted": report.summary.is_exhausted,
        "seconds": report.summary.wall.as_secs_f64(),
        "advice": report.advice,
        "why_invalid": report.invalid.as_ref().map(|invalid| invalid.text()),
        "notes": notes,
        "warnings": warnings,
    });
    document.to_string()
}

/// What `tidemill study show --json` prints.
#[pyfunction]
pub fn study(py: Python<'_>, folder: PathBuf, top: usize) -> PyResult<String> {
    // An error of the folder says more than that of the command.
    released(py, || StoredStudy::open(&folder))?.map_err(|error| error::of_lab(py, &error))?;
    let document = released(py, || tidemill::result::study_document(&folder, top))?;
    let document = document.map_err(|error| error::raised(py, "StudyError", &format!("{error:#}")))?;
    Ok(document.to_string())
}

/// The page that `tidemill study show --html` writes.
#[pyfunction]
pub fn study_html(py: Python<'_>, folder: PathBuf, top: usize) -> PyResult<String> {
    let html = released(py, || tidemill::result::study_page(&folder, top))?;
    html.map_err(|error| error::raised(py, "StudyError", &format!("{error:#}")))
}

/// All trials as a table.
#[pyfunction]
pub fn trials(py: Python<'_>, folder: PathBuf) -> PyResult<RawTable> {
    let table = released(py, || folder::trial_table(&folder))?;
    let (schema, batches) = table.map_err(|error| error::of_folder(py, &error))?;
    Ok(RawTable::new(schema, batches))
}

/// Writes all trials as one file; the result is their number.
#[pyfunction]
pub fn export(py: Python<'_>, folder: PathBuf, format: &str, path: PathBuf) -> PyResult<u64> {
    let format: ExportFormat = format.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let file =
        File::create(&path).map_err(|error| error::of_io(&error, format!("{}: {error}", path.display())))?;
    let written = released(py, || folder::export(&folder, format, file))?;
    written.map_err(|error| error::of_folder(py, &error))
}

/// Judges the winners of a stored study, on its own data or on bars that equal it. The result is the verdict as JSON.
#[pyfunction]
pub fn judge(py: Python<'_>, folder: PathBuf, bars: Option<&RawBars>, top: usize) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = Runtime { stop: stop.clone(), ..Runtime::default() };
    let given = bars.map(|bars| bars.data.clone());
    let judged = attended(
        py,
        &stop,
        |_| Ok(()),
        || -> Result<_, LabError> {
            let study = StoredStudy::open(&folder)?;
            let data = match given {
                Some(data) => study.same_data(data)?,
                None => study.data(&[], None)?.into(),
            };
            study.judge(&study.experiment(data)?.runtime(runtime), top)
        },
    )?;
    let judged = judged.map_err(|error| error::of_lab(py, &error))?;
    Ok(json!(judged.map(|judged| judged.report)).to_string())
}

/// The strategy of a stored study as it was searched.
#[pyfunction]
pub fn stored_strategy(py: Python<'_>, folder: PathBuf) -> PyResult<RawStrategy> {
    let strategy = released(py, || StoredStudy::open(&folder)?.searched_strategy())?;
    let strategy = strategy.map_err(|error: LabError| error::of_lab(py, &error))?;
    Ok(RawStrategy { strategy })
}
