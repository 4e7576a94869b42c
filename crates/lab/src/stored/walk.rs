//! A walk-forward on disk beside its benchmark: what holding made in every window, and from the first traded day to the last.

use std::sync::Arc;

use tidemill_backtest::segment::{Layout, Role};
use tidemill_search::StudyFolder;

use crate::benchmark::{benchmark_name, has_market};
use crate::config::StudyConfig;
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::experiment::Experiment;

/// The benchmark of a walk-forward.
#[derive(Clone, Debug)]
pub struct HeldWalk {
    /// Its name.
    pub name: String,
    /// Its returns, by window.
    pub windows: Vec<f64>,
    /// Its equity at the end of each day: days since 1970, and values from 1 on.
    pub equity: Vec<(i64, f64)>,
}

/// What holding made while the windows of these studies were traded; `None` where there is no market to compare with.
pub fn held(windows: &[StudyFolder], data: Arc<Dataset>) -> Result<Option<HeldWalk>, LabError> {
    let configs: Vec<StudyConfig> = windows.iter().map(|study| StudyConfig::read(study.header())).collect();
    let (Some(first), Some(last)) = (configs.first(), configs.last()) else { return Ok(None) };
    let Some(strategy) = first.searched_strategy()?.filter(has_market) else { return Ok(None) };
    let experiment = Experiment::new(strategy, data);
    let named = experiment.data.benchmark.as_ref();
    let traded = |from_ms: Option<i64>, to_ms: Option<i64>| -> Result<_, LabError> {
        let layout = Layout { from_ms, to_ms, ..Layout::default() };
        Ok(experiment.engine(&layout, 1)?.benchmark(Role::Train, named))
    };
    let returns: Result<Vec<f64>, LabError> = configs
        .iter()
        .map(|config| Ok(traded(config.segments.cut_ms, config.segments.to_ms)?.total_return))
        .collect();
    let whole = traded(first.segments.cut_ms, last.segments.to_ms)?;
    let mut value = 1.0_f64;
    let equity = whole.daily.iter().map(|(day, change)| {
        value = (value * (1.0 + change)).max(0.0);
        (*day, value)
    });
    Ok(Some(HeldWalk { equity: equity.collect(), name: benchmark_name(named).to_owned(), windows: returns? }))
}
