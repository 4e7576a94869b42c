//! Evaluates points with the engine: what each was worth to every objective, and its metrics.

use rayon::prelude::*;
use tidemill_backtest::objective::Objective;
use tidemill_backtest::segment::Role;
use tidemill_backtest::strategy::Reduce;
use tidemill_backtest::{Engine, METRICS, Metrics, Outcome, Strategy};
use tidemill_search::{Evaluated, Points, Score, Scores};

use super::best::Trial;

/// A trial with all that is shown of it.
pub struct Judged {
    /// Number and parameters.
    pub trial: Trial,
    /// What it was worth to each objective.
    pub scores: Vec<Score>,
    /// Metrics over the segments that count.
    pub train: Metrics,
    /// Objectives and metrics over the others.
    pub test: Option<(Vec<Score>, Metrics)>,
}

/// Evaluates a batch. `strategies` is the strategy once per objective.
pub fn evaluate(engine: &mut Engine<'_>, strategies: &[Strategy], points: &Points) -> Evaluated {
    let outcomes = engine.evaluate(points);
    scored(engine, strategies, points, &outcomes)
}

/// What outcomes are worth, wherever they were computed.
pub fn scored(
    engine: &Engine<'_>,
    strategies: &[Strategy],
    points: &Points,
    outcomes: &[Outcome],
) -> Evaluated {
    let objectives = objectives(strategies);
    let scored: Vec<(Vec<Score>, Metrics)> = outcomes
        .par_iter()
        .enumerate()
        .map(|(at, outcome)| {
            let train = engine.pool_metrics(&outcome.train, Role::Train);
            (scores(engine, &objectives, points, at, outcome, Role::Train, &train), train)
        })
        .collect();
    let column = |objective: usize| {
        scored.iter().map(|(scores, _)| scores[objective].value().unwrap_or(f64::NAN)).collect()
    };
    Evaluated {
        scores: Scores::from_columns(points.len(), (0..objectives.len()).map(column).collect()),
        metrics: (0..METRICS.len())
            .map(|metric| scored.iter().map(|(_, train)| train.values()[metric]).collect())
            .collect(),
    }
}

/// Evaluates trials again, for what the search did not keep.
pub fn judge(engine: &mut Engine<'_>, strategies: &[Strategy], trials: Vec<Trial>) -> Vec<Judged> {
    let Some(first) = trials.first() else { return Vec::new() };
    let mut points = Points::new(first.row.len());
    trials.iter().for_each(|trial| points.push(&trial.row));
    let outcomes = engine.evaluate(&points);
    let (engine, objectives) = (&*engine, objectives(strategies));
    let judged = |((at, trial), outcome): ((usize, Trial), &Outcome)| {
        let train = engine.pool_metrics(&outcome.train, Role::Train);
        let test = outcome.test.as_ref().map(|tally| {
            let metrics = engine.pool_metrics(tally, Role::Test);
            (scores(engine, &objectives, &points, at, outcome, Role::Test, &metrics), metrics)
        });
        Judged {
            scores: scores(engine, &objectives, &points, at, outcome, Role::Train, &train),
            trial,
            train,
            test,
        }
    };
    trials.into_iter().enumerate().zip(&outcomes).map(judged).collect()
}

fn objectives(strategies: &[Strategy]) -> Vec<Objective<'_>> {
    strategies.iter().map(Objective::new).collect()
}

/// What a trial was worth to each objective; out of sample it is reduced in the same way, and nothing is required.
fn scores(
    engine: &Engine<'_>,
    objectives: &[Objective<'_>],
    points: &Points,
    at: usize,
    outcome: &Outcome,
    role: Role,
    pooled: &Metrics,
) -> Vec<Score> {
    let mut row = vec![0.0; points.n_params()];
    points.read_row(at, &mut row);
    let params = engine.decode(&row);
    let is_pooled = objectives.iter().all(|objective| objective.reduce() == Reduce::Pooled);
    let segments: Vec<Metrics> = engine
        .segments()
        .iter()
        .zip(&outcome.segments)
        .filter(|(segment, _)| segment.role == role && !is_pooled)
        .map(|(segment, tally)| engine.segment_metrics(segment, tally))
        .collect();
    let score = |objective: &Objective<'_>| {
        if role == Role::Train && !objective.accepts(pooled, &params) {
            return Score::Invalid;
        }
        objective.reduced(pooled, &segments, &params)
    };
    objectives.iter().map(score).collect()
}
