//! Scoring: the one place where the results of a trial become a score per objective, or the reason why there is none.

use rayon::prelude::*;
use tidemill_backtest::objective::{Invalid, Scoring};
use tidemill_backtest::segment::Role;
use tidemill_backtest::strategy::Reduce;
use tidemill_backtest::{Engine, METRICS, Measure, Metrics, Outcome, Strategy};
use tidemill_search::{Evaluated, Points, Scores};

use crate::leaderboard::RankedTrial;

/// Up to so many sets of metrics are scored before another thread is awake.
const MAX_ALONE: usize = 256;

/// Trials that are scored one after the other.
const CHUNK: usize = 16;

/// The score of a trial for each objective, in their order.
pub type ObjectiveScores = Vec<Result<f64, Invalid>>;

/// A trial evaluated again, with what a search does not keep of it.
#[derive(Clone, Debug)]
pub struct ScoredTrial {
    /// Number and parameters.
    pub trial: RankedTrial,
    /// Its score for each objective.
    pub scores: ObjectiveScores,
    /// Metrics over the segments that count.
    pub train: Metrics,
    /// Scores and metrics over the others.
    pub test: Option<(ObjectiveScores, Metrics)>,
}

impl ScoredTrial {
    /// The first objective in sample, if it is defined.
    pub fn objective(&self) -> Option<f64> {
        self.scores[0].ok()
    }

    /// The first objective out of sample.
    pub fn test_objective(&self) -> Option<f64> {
        self.test.as_ref().and_then(|(scores, _)| scores[0].ok())
    }
}

/// Evaluates a batch on the CPU.
pub fn evaluate(engine: &mut Engine<'_>, strategy: &Strategy, points: &Points) -> Evaluated {
    let outcomes = engine.evaluate(points);
    score_batch(engine.measure(), strategy, points, &outcomes)
}

/// Scores and metrics of a batch, wherever its outcomes were computed.
pub fn score_batch(
    measure: &Measure,
    strategy: &Strategy,
    points: &Points,
    outcomes: &[Outcome],
) -> Evaluated {
    let reads_params = Scoring::new(strategy).reads_params();
    let score = |(at, outcome): (usize, &Outcome)| {
        let train = measure.pool_metrics(&outcome.train, Role::Train);
        let row = if reads_params { row(points, at) } else { Vec::new() };
        (scores(measure, strategy, &row, outcome, Role::Train, &train), train)
    };
    // The scores for each objective, then the metrics, of some trials: column by column, so that whoever scores them also sorts them.
    let n_objectives = strategy.objectives.len();
    let n_columns = n_objectives + METRICS.len();
    let columns_of = |(chunk_idx, outcomes): (usize, &[Outcome])| {
        let mut columns = vec![f64::NAN; n_columns * outcomes.len()];
        for (at, outcome) in outcomes.iter().enumerate() {
            let (scores, train) = score((chunk_idx * CHUNK + at, outcome));
            let scores = scores.iter().map(|score| score.unwrap_or(f64::NAN));
            let slots = columns.iter_mut().skip(at).step_by(outcomes.len());
            slots.zip(scores.chain(train.values().iter().copied())).for_each(|(slot, value)| *slot = value);
        }
        columns
    };
    let n_scored = if strategy.reduce == Reduce::Pooled { 1 } else { measure.segments().len() };
    let chunks: Vec<Vec<f64>> = if outcomes.len() * n_scored <= MAX_ALONE {
        outcomes.chunks(CHUNK).enumerate().map(columns_of).collect()
    } else {
        outcomes.par_chunks(CHUNK).enumerate().map(columns_of).collect()
    };
    let column = |at: usize| {
        let mut column = Vec::with_capacity(outcomes.len());
        for chunk in &chunks {
            let n_trials = chunk.len() / n_columns;
            column.extend_from_slice(&chunk[at * n_trials..][..n_trials]);
        }
        column
    };
    Evaluated {
        scores: Scores::from_columns(points.len(), (0..n_objectives).map(column).collect()),
        metrics: (n_objectives..n_columns).map(column).collect(),
    }
}

/// Evaluates trials again on the CPU, in sample and out of sample.
pub fn score_trials(
    engine: &mut Engine<'_>,
    strategy: &Strategy,
    trials: Vec<RankedTrial>,
) -> Vec<ScoredTrial> {
    let Some(first) = trials.first() else { return Vec::new() };
    let mut points = Points::new(first.row.len());
    trials.iter().for_each(|trial| points.push(&trial.row));
    let outcomes = engine.evaluate(&points);
    let measure = engine.measure();
    let scored = |(trial, outcome): (RankedTrial, &Outcome)| {
        let train = measure.pool_metrics(&outcome.train, Role::Train);
        let test = outcome.test.as_ref().map(|tally| {
            let metrics = measure.pool_metrics(tally, Role::Test);
            (scores(measure, strategy, &trial.row, outcome, Role::Test, &metrics), metrics)
        });
        let scores = scores(measure, strategy, &trial.row, outcome, Role::Train, &train);
        ScoredTrial { trial, scores, train, test }
    };
    trials.into_iter().zip(&outcomes).map(scored).collect()
}

/// The score of a trial for each objective; out of sample it is reduced in the same way, and nothing is required. No row is needed if no
/// objective reads parameters.
pub fn scores(
    measure: &Measure,
    strategy: &Strategy,
    row: &[f64],
    outcome: &Outcome,
    role: Role,
    pooled: &Metrics,
) -> ObjectiveScores {
    if strategy.reduce == Reduce::Pooled {
        return scores_of(strategy, &strategy.decode(row), role, pooled, &[]);
    }
    let finish = if Scoring::new(strategy).reads_annual() { Metrics::new } else { Metrics::without_annual };
    let segments: Vec<Metrics> = measure
        .segments()
        .iter()
        .zip(outcome.segments())
        .filter(|(segment, _)| segment.role == role)
        .map(|(segment, tally)| finish(tally, measure.symbol_year_days(segment.symbol)))
        .collect();
    scores_of(strategy, &strategy.decode(row), role, pooled, &segments)
}

/// The same from the metrics of the pool and of its segments, which count only where the objective is reduced over them.
pub fn scores_of(
    strategy: &Strategy,
    params: &[f64],
    role: Role,
    pooled: &Metrics,
    segments: &[Metrics],
) -> ObjectiveScores {
    let scoring = Scoring::new(strategy);
    let objectives = strategy.objectives.iter();
    match role {
        Role::Train => objectives.map(|one| scoring.score(one, pooled, segments, params)).collect(),
        Role::Test => objectives.map(|one| scoring.reduced(one, pooled, segments, params)).collect(),
    }
}

/// One parameter set of a batch.
pub(crate) fn row(points: &Points, at: usize) -> Vec<f64> {
    let mut row = vec![0.0; points.n_params()];
    points.read_row(at, &mut row);
    row
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::segment::Layout;
    use tidemill_backtest::{EngineOptions, Overrides};

    use super::*;
    use crate::shipped::{shipped, universe};

    /// The scores of some trials over several symbols, with what each objective is given left out where it is not read, and with all of it.
    #[test]
    fn what_an_objective_does_not_read_is_not_missed() {
        let objectives = ["sharpe", "calmar", "annual_return + 0.001 * slow", "trades / fast"];
        for (objective, reduce) in objectives.iter().flat_map(|one| [(*one, "mean"), (*one, "pooled")]) {
            let text = shipped("ema-cross").unwrap();
            let text = text
                .replace(
                    "maximize = \"sharpe\"",
                    &format!("maximize = \"{objective}\"\nreduce = \"{reduce}\""),
                )
                .replace("trades >= 30 and max_drawdown > -0.6", "trades >= 1");
            let strategy = Strategy::parse("test.toml", &text, &Overrides::default()).unwrap();
            let universe = universe(20_000);
            let segments = Layout::default().segments(&universe).unwrap();
            let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
            let mut points = Points::new(strategy.params.len());
            points.push(&strategy.params.iter().map(|param| param.default).collect::<Vec<_>>());
            let outcomes = engine.evaluate(&points);
            let found = score_batch(engine.measure(), &strategy, &points, &outcomes).scores.first(0).value();
            let metrics = |role: Role| engine.pool_metrics(&outcomes[0].train, role);
            let segments = engine.segments().iter().zip(outcomes[0].segments());
            let segments: Vec<Metrics> =
                segments.map(|(segment, tally)| engine.segment_metrics(segment, tally)).collect();
            let params = engine.decode(&row(&points, 0));
            let expected = scores_of(&strategy, &params, Role::Train, &metrics(Role::Train), &segments);
            assert_eq!(found, expected[0].ok(), "{objective}, {reduce}");
            assert!(found.is_some(), "{objective}, {reduce}: {expected:?}");
        }
    }
}
