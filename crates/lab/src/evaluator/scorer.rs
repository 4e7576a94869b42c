//! Scoring of batches beside the evaluation of others.

use std::sync::Arc;

use tidemill_backtest::{Engine, Measure, Outcome, Strategy};
use tidemill_search::{Batch, Evaluated};

use crate::score::score_batch;
use crate::test_column;
use crate::verdict::TrialSample;

/// Turns what was found of a batch into what a study keeps of it, on whatever thread.
#[derive(Clone)]
pub(crate) struct Scorer {
    measure: Arc<Measure>,
    strategy: Arc<Strategy>,
    /// Keeps what a verdict needs of all trials.
    pub(crate) sample: Option<Arc<TrialSample>>,
    /// Whether trials have out-of-sample columns.
    pub(crate) has_test: bool,
}

impl Scorer {
    pub(crate) fn new(engine: &Engine<'_>, strategy: &Strategy) -> Self {
        let (measure, strategy) = (engine.measure().clone(), Arc::new(strategy.clone()));
        Self { measure, strategy, sample: None, has_test: false }
    }

    pub(crate) fn score(&self, batch: &Batch, outcomes: &[Outcome]) -> Evaluated {
        let Self { measure, strategy, sample, has_test } = self;
        let mut evaluated = score_batch(measure, strategy, &batch.points, outcomes);
        if let Some(sample) = sample {
            sample.offer_outcomes(batch.first_trial, outcomes, &evaluated.scores);
        }
        if *has_test {
            test_column::extend(&mut evaluated, measure, strategy, &batch.points, outcomes);
        }
        evaluated
    }
}
