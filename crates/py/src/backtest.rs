//! One parameter set in full.

use std::path::PathBuf;

use pyo3::prelude::*;
use tidemill_lab::{BacktestReport, CutTexts, Experiment, LabError, StoredStudy, equity, trades};
use tidemill_market::{TableColumn, table_batch};

use crate::attend::released;
use crate::bars::RawBars;
use crate::error;
use crate::frame::RawTable;
use crate::strategy::RawStrategy;

/// How data is cut; see `CutTexts`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct CutOptions {
    start: Option<String>,
    end: Option<String>,
    split: Option<f64>,
    folds: Option<usize>,
    holdout: Option<String>,
    embargo: Option<String>,
}

impl From<CutOptions> for CutTexts {
    fn from(cut: CutOptions) -> Self {
        Self {
            from: cut.start,
            to: cut.end,
            split: cut.split,
            folds: cut.folds,
            holdout: cut.holdout,
            embargo: cut.embargo,
        }
    }
}

/// A back-test and all that it found.
#[pyclass(frozen, module = "tidemill._tidemill")]
pub struct RawBacktest {
    report: BacktestReport,
}

/// Evaluates the defaults of a strategy.
#[pyfunction]
pub fn backtest(
    py: Python<'_>,
    strategy: &RawStrategy,
    bars: &RawBars,
    cut: CutOptions,
) -> PyResult<RawBacktest> {
    let (strategy, data, cut) = (strategy.strategy.clone(), bars.data.clone(), CutTexts::from(cut));
    let report = released(py, || Experiment::new(strategy, data).layout(cut.layout()?).backtest())?;
    Ok(RawBacktest { report: report.map_err(|error| error::of_lab(py, &error))? })
}

/// Evaluates a trial of a stored study, on its own data or on bars that equal it.
#[pyfunction]
pub fn backtest_trial(
    py: Python<'_>,
    folder: PathBuf,
    trial: u64,
    bars: Option<&RawBars>,
) -> PyResult<RawBacktest> {
    let given = bars.map(|bars| bars.data.clone());
    let report = released(py, || -> Result<_, LabError> {
        let study = StoredStudy::open(&folder)?;
        let data = match given {
            Some(data) => study.same_data(data)?,
            None => study.data(&[], None)?.into(),
        };
        study.backtest(trial, data)
    })?;
    Ok(RawBacktest { report: report.map_err(|error| error::of_lab(py, &error))? })
}

#[pymethods]
impl RawBacktest {
    /// What `tidemill backtest --json` prints, without the trades, which are a table.
    fn document(&self, py: Python<'_>) -> PyResult<String> {
        released(py, || {
            let mut document = tidemill::result::backtest_document(&self.report);
            document.as_object_mut().map(|fields| fields.remove("trades"));
            document.to_string()
        })
    }

    /// The trades.
    fn trades(&self, py: Python<'_>) -> PyResult<RawTable> {
        self.table(py, trades::columns)
    }

    /// Equity by the day.
    fn equity(&self, py: Python<'_>) -> PyResult<RawTable> {
        self.table(py, equity::columns)
    }

    /// The report as a page.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let html = released(py, || tidemill::result::backtest_page(&self.report))?;
        html.map_err(|error| error::raised(py, "Error", &format!("{error:#}")))
    }
}

impl RawBacktest {
    fn table(
        &self,
        py: Python<'_>,
        columns: fn(&BacktestReport) -> Vec<(&'static str, TableColumn)>,
    ) -> PyResult<RawTable> {
        let batch = released(py, || table_batch(&columns(&self.report)))?;
        let batch = batch.map_err(|error| error::defect(py, &error.to_string()))?;
        Ok(RawTable::new(batch.schema(), vec![batch]))
    }
}
