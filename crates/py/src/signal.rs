//! What a strategy holds and wants now.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use tidemill_lab::signal::{at_ms, signal as state};
use tidemill_lab::{LabError, SignalReport, StoredStudy};

use crate::attend::released;
use crate::bars::RawBars;
use crate::error;
use crate::strategy::RawStrategy;

/// The state of a strategy with its defaults: what `tidemill signal --json` prints, and the same in words.
#[pyfunction]
pub fn signal(
    py: Python<'_>,
    strategy: &RawStrategy,
    bars: &RawBars,
    trade: Option<Vec<String>>,
    at: Option<&str>,
) -> PyResult<(String, String)> {
    let report = released(py, || {
        state(&strategy.strategy, &bars.data.universe, trade.as_deref(), at_ms(at)?)
            .map(|report| said(&report))
    })?;
    report.map_err(|error| error::of_lab(py, &error))
}

/// The state of a trial of a stored study: on bars, on files that are loaded as those of the study were, or on its own data.
#[pyfunction]
pub fn signal_of_trial(
    py: Python<'_>,
    folder: PathBuf,
    trial: u64,
    bars: Option<&RawBars>,
    files: Vec<PathBuf>,
    trade: Option<Vec<String>>,
    at: Option<&str>,
) -> PyResult<(String, String)> {
    let report = released(py, || -> Result<_, LabError> {
        let study = StoredStudy::open(&folder)?;
        let strategy = study.trial_strategy(trial)?;
        let data = match bars {
            Some(bars) => bars.data.clone(),
            None => study.recipe(&files, None)?.load_bars()?.into(),
        };
        let trade = trade.or_else(|| study.config.segments.trade.clone());
        Ok(said(&state(&strategy, &data.universe, trade.as_deref(), at_ms(at)?)?))
    })?;
    report.map_err(|error| error::of_lab(py, &error))
}

fn said(report: &SignalReport) -> (String, String) {
    (json!(report).to_string(), report.to_string())
}
