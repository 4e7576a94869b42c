//! Walk-forwards: searches through time, each traded on the period that follows.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use tidemill::result::WalkedForward;
use tidemill_lab::{CutTexts, Experiment, Pace};
use tidemill_market::timeframe;

use crate::backtest::CutOptions;
use crate::bars::RawBars;
use crate::error;
use crate::strategy::RawStrategy;
use crate::study::{Heard, SweepOptions, search_runtime};

/// The windows of a walk-forward.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct WindowOptions {
    train: String,
    test: String,
    anchored: bool,
    windows: usize,
}

/// Walks forward, on the workers of a `transport` if there is one; the result is what `tidemill walkforward --json` prints and the page that `--html` writes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a group of flags")]
pub fn walkforward(
    py: Python<'_>,
    strategy: &RawStrategy,
    bars: &RawBars,
    folder: Option<PathBuf>,
    cut: CutOptions,
    windows: WindowOptions,
    options: SweepOptions,
    transport: Option<Py<PyAny>>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let length = |text: &str, name: &str| {
        timeframe::parse_span(text).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
    };
    let pace = Pace {
        train_ms: length(&windows.train, "train")?,
        test_ms: length(&windows.test, "test")?,
        anchored: windows.anchored,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let search = options.search()?;
    let layout = CutTexts::from(cut).layout().map_err(|error| error::of_lab(py, &error))?;
    let experiment = Experiment::new(strategy.strategy.clone(), bars.data.clone())
        .layout(layout)
        .runtime(search_runtime(py, &options.device, transport, &stop)?);
    let told = tidemill::result::told_pace(&windows.train, &windows.test, windows.anchored);
    let mut walk = experiment.walk_forward(pace).options(search.clone()).workers(windows.windows).told(told);
    if let Some(folder) = &folder {
        walk = walk.folder(folder);
    }
    let n_windows = walk.windows().map_err(|error| error::of_lab(py, &error))?.len() as u64;
    let heard = Heard::of(n_windows.saturating_mul(search.trials));
    let walk = walk.observe(heard.observer());
    let report = heard.attend(py, &stop, progress.as_ref(), || walk.run())?;
    let Some(summary) = report.summary else {
        return Err(PyKeyboardInterrupt::new_err("stopped before all windows were searched"));
    };
    let walked = WalkedForward {
        experiment: &experiment,
        search: &search,
        train: &windows.train,
        test: &windows.test,
        anchored: windows.anchored,
        year_days: report.year_days,
        benchmark: report.benchmark.as_deref(),
        summary: &summary,
    };
    let document = walked.document();
    if let Some(folder) = &folder {
        let path = folder.join(tidemill::result::WALK_FILE);
        let written = std::fs::write(&path, format!("{document:#}"));
        written.map_err(|error| error::of_io(&error, format!("{}: {error}", path.display())))?;
    }
    Ok((document.to_string(), walked.page()))
}
