//! The out-of-sample columns of a study: a few figures of every trial on the part behind the split, stored beside its metrics.
//!
//! They are computed when a trial is stored, from the sums that the evaluation has anyway, and no sampler sees them. A study that was begun
//! without them, by an earlier version, goes on without them, because all its trials have the same columns.

use rayon::prelude::*;
use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, METRICS, Measure, Metric, Metrics, Outcome, Strategy};
use tidemill_search::{Evaluated, Points, StudyFolder};

use crate::error::LabError;
use crate::score;

/// The metrics that are stored, with the names of their columns and the labels of reports.
pub const TEST_METRICS: [(Metric, &str, &str); 8] = [
    (Metric::TotalReturn, "test_total_return", "OOS Return [%]"),
    (Metric::Sharpe, "test_sharpe", "OOS Sharpe Ratio"),
    (Metric::Sortino, "test_sortino", "OOS Sortino Ratio"),
    (Metric::MaxDrawdown, "test_max_drawdown", "OOS Max. Drawdown [%]"),
    (Metric::Calmar, "test_calmar", "OOS Calmar Ratio"),
    (Metric::Trades, "test_trades", "OOS # Trades"),
    (Metric::WinRate, "test_win_rate", "OOS Win Rate [%]"),
    (Metric::ProfitFactor, "test_profit_factor", "OOS Profit Factor"),
];

/// Beginning of the names of all out-of-sample columns.
pub const TEST_PREFIX: &str = "test_";

/// Name of the column of the first objective; further ones are numbered from 2.
pub const TEST_OBJECTIVE: &str = "test_objective";

/// How reports call a stored metric, in sample or out of sample.
pub fn label(column: &str) -> &str {
    let known = METRICS.iter().chain(&TEST_METRICS).find(|(_, name, _)| *name == column);
    known.map_or(if column == TEST_OBJECTIVE { "OOS objective" } else { column }, |(.., label)| *label)
}

/// Names of the columns that a study of this strategy has between parameters and objectives.
pub(crate) fn names(strategy: &Strategy, has_test: bool) -> Vec<String> {
    let mut names: Vec<String> = METRICS.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    if has_test {
        names.extend((1..=strategy.objectives.len()).map(|number| match number {
            1 => TEST_OBJECTIVE.to_owned(),
            number => format!("{TEST_OBJECTIVE}_{number}"),
        }));
        names.extend(TEST_METRICS.iter().map(|(_, name, _)| (*name).to_owned()));
    }
    names
}

/// Whether trials get out-of-sample columns: they are stored, there is such a part, and the trials that are there have them.
pub(crate) fn are_stored(engine: &Engine<'_>, folder: Option<&StudyFolder>) -> Result<bool, LabError> {
    let Some(folder) = folder else { return Ok(false) };
    if !engine.segments().iter().any(|segment| segment.role == Role::Test) {
        return Ok(false);
    }
    Ok(match folder.trials()?.next().transpose()? {
        None => true,
        Some(batch) => batch.metrics.iter().any(|(name, _)| name == TEST_OBJECTIVE),
    })
}

/// Adds the out-of-sample columns to the results of a batch.
pub(crate) fn extend(
    evaluated: &mut Evaluated,
    measure: &Measure,
    strategy: &Strategy,
    points: &Points,
    outcomes: &[Outcome],
) {
    let n_objectives = strategy.objectives.len();
    let row = |(at, outcome): (usize, &Outcome)| {
        let mut values = vec![f64::NAN; n_objectives + TEST_METRICS.len()];
        let Some(tally) = &outcome.test else { return values };
        let metrics: Metrics = measure.pool_metrics(tally, Role::Test);
        let scores = score::scores(measure, strategy, &score::row(points, at), outcome, Role::Test, &metrics);
        let scores = scores.into_iter().map(|score| score.unwrap_or(f64::NAN));
        let all = metrics.values();
        let chosen = TEST_METRICS.iter().map(|(metric, ..)| all[*metric as usize]);
        values.iter_mut().zip(scores.chain(chosen)).for_each(|(value, new)| *value = new);
        values
    };
    let rows: Vec<Vec<f64>> = outcomes.par_iter().enumerate().map(row).collect();
    let columns = 0..n_objectives + TEST_METRICS.len();
    evaluated.metrics.extend(columns.map(|column| rows.iter().map(|row| row[column]).collect()));
}
