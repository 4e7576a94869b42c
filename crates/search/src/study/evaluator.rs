//! The [`Evaluator`] of a study, its batches and results.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use crate::point::Points;
use crate::score::Scores;

/// Some points to evaluate together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Number of the batch, from 0.
    pub index: u64,
    /// Number of its first trial.
    pub first_trial: u64,
    /// Encoded parameter values, a row for each trial.
    pub points: Arc<Points>,
}

/// Scores and metrics of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// A score for each point and objective.
    pub scores: Scores,
    /// One column of values per metric; NaN where undefined.
    pub metrics: Vec<Vec<f64>>,
}

/// Why an evaluation failed.
pub type EvaluateError = Box<dyn Error + Send + Sync>;

/// The evaluator was told to stop and leaves the batch. The study ends as a stopped one, with all batches before it.
#[derive(Debug, thiserror::Error)]
#[error("stopped before the batch was evaluated")]
pub struct Interrupted;

/// Evaluates points, one batch after another, with one or more of them in flight.
///
/// All calls come from the thread that runs the study, so that an evaluator need not be `Send`. Obligations:
///
/// - `collect` returns the result of the oldest batch that was submitted and not collected; there is one whenever it is called.
/// - The result of a batch depends on its points alone, not on timing or on other batches.
/// - An error ends the study; [`Interrupted`] ends it as one that was stopped. A point that merely has no value is an invalid score, not an error.
pub trait Evaluator {
    /// Takes on a batch. It should come back soon and leave the work to a device, to other threads or to `collect`.
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError>;

    /// Waits for the oldest batch and returns its result.
    fn collect(&mut self) -> Result<Evaluated, EvaluateError>;

    /// How many batches may be submitted and not collected, at least 1.
    fn in_flight_limit(&self) -> usize {
        1
    }

    /// Whether `collect` would not have to wait. Where it says no, a study looks for another batch to submit before it asks again;
    /// an evaluator that keeps the default is just collected from.
    fn is_ready(&mut self) -> bool {
        true
    }
}

impl<E: Evaluator + ?Sized> Evaluator for &mut E {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        (**self).submit(batch)
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        (**self).collect()
    }

    fn in_flight_limit(&self) -> usize {
        (**self).in_flight_limit()
    }

    fn is_ready(&mut self) -> bool {
        (**self).is_ready()
    }
}

/// An evaluator made of a function that evaluates a batch in the thread that calls it.
#[derive(Debug)]
pub struct FunctionEvaluator<F> {
    function: F,
    submitted: VecDeque<Batch>,
}

impl<F: FnMut(&Batch) -> Result<Evaluated, EvaluateError>> FunctionEvaluator<F> {
    /// An evaluator that calls this function for each batch.
    pub fn new(function: F) -> Self {
        Self { function, submitted: VecDeque::new() }
    }
}

impl<F: FnMut(&Batch) -> Result<Evaluated, EvaluateError>> Evaluator for FunctionEvaluator<F> {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        self.submitted.push_back(batch);
        Ok(())
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        let batch = self.submitted.pop_front().ok_or("nothing was submitted")?;
        (self.function)(&batch)
    }
}
