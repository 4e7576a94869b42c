//! Scoring of batches beside the evaluation of others.

use std::sync::Arc;

use tidemill_backtest::{Engine, Measure, Outcome, Strategy};
use tidemill_search::{Evaluated, Points};

use crate::score::score_batch;
use crate::test_column;

/// Turns what was found of a batch into what a study keeps of it, on whatever thread.
#[derive(Clone)]
pub(crate) struct Scorer {
    measure: Arc<Measure>,
    strategy: Arc<Strategy>,
    /// Whether trials have out-of-sample columns.
    pub(super) has_test: bool,
}

impl Scorer {
    pub(crate) fn new(engine: &Engine<'_>, strategy: &Strategy, has_test: bool) -> Self {
        let (measure, strategy) = (engine.measure().clone(), Arc::new(strategy.clone()));
        Self { measure, strategy, has_test }
    }

    pub(crate) fn score(&self, points: &Points, outcomes: &[Outcome]) -> Evaluated {
        let Self { measure, strategy, has_test } = self;
        let mut evaluated = score_batch(measure, strategy, points, outcomes);
        if *has_test {
            test_column::extend(&mut evaluated, measure, strategy, points, outcomes);
        }
        evaluated
    }
}
