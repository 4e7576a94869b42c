//! Trials of a stored study on the part of the data that the search did not see.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, Metrics};
use tidemill_search::{Points, StudyFolder};

use crate::config::StudyConfig;
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::score::scores;

/// A trial out of sample.
#[derive(Clone, Debug)]
pub struct UnseenTrial {
    /// Number of the trial.
    pub trial: u64,
    /// The first objective, if it is defined.
    pub objective: Option<f64>,
    /// All figures.
    pub metrics: Metrics,
}

/// Evaluates some trials out of sample, in the order of their numbers. Empty if the study has no such part, does not hold the text of its
/// strategy, or has trials that this text does not describe.
pub fn evaluate_unseen(
    folder: &StudyFolder,
    data: Arc<Dataset>,
    wanted: &BTreeSet<u64>,
) -> Result<Vec<UnseenTrial>, LabError> {
    let config = StudyConfig::read(folder.header());
    let Some(strategy) = config.searched_strategy()? else { return Ok(Vec::new()) };
    let experiment = Experiment::new(strategy, data).layout(config.segments);
    let mut segments = experiment.layout.segments(&experiment.data.universe)?;
    segments.retain(|segment| segment.role == Role::Test);
    if segments.is_empty() || wanted.is_empty() {
        return Ok(Vec::new());
    }
    let options = experiment.runtime.engine_options();
    let mut engine = Engine::new(&experiment.strategy, &experiment.data.universe, segments, options)?;
    let space = engine.space();
    let (mut numbers, mut points) = (Vec::new(), Points::new(space.len()));
    for batch in folder.trials()? {
        let batch = batch?;
        let (Some(first), Some(last)) = (batch.trials.first(), batch.trials.last()) else { continue };
        let mut inside = wanted.range(first..=last).peekable();
        if inside.peek().is_none() {
            continue;
        }
        let Some(all) = batch.to_points(&space) else { return Ok(Vec::new()) };
        for trial in inside {
            let at = (trial - first) as usize;
            points.extend_from(&all, at..at + 1);
            numbers.push(*trial);
        }
    }
    let outcomes = engine.evaluate(&points);
    let mut row = vec![0.0; space.len()];
    let mut unseen = Vec::with_capacity(numbers.len());
    for (at, (trial, outcome)) in numbers.into_iter().zip(&outcomes).enumerate() {
        let Some(tally) = &outcome.test else { continue };
        points.read_row(at, &mut row);
        let metrics = engine.pool_metrics(tally, Role::Test);
        let scores = scores(engine.measure(), &experiment.strategy, &row, outcome, Role::Test, &metrics);
        let objective = scores.into_iter().next().and_then(Result::ok);
        unseen.push(UnseenTrial { trial, objective, metrics });
    }
    Ok(unseen)
}
