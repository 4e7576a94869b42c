//! The batches that the evaluator has, and the time it spends on them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::study::error::{StudyError, panic_message};
use crate::study::evaluator::{Batch, EvaluateError, Evaluated, Evaluator, Interrupted};
use crate::study::timing::{BatchStart, BusyClock, Timing};

/// A batch that was evaluated.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) batch: Batch,
    pub(super) evaluated: Arc<Evaluated>,
}

struct SubmittedBatch {
    batch: Batch,
    at: Instant,
    idle: Duration,
}

/// An evaluator with what it was given, guarded against panics and against answers of the wrong shape.
pub(super) struct InFlight<'a> {
    evaluator: &'a mut dyn Evaluator,
    clock: &'a BusyClock,
    n_objectives: usize,
    n_metrics: usize,
    submitted: VecDeque<SubmittedBatch>,
    collected_at: Instant,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(
        evaluator: &'a mut dyn Evaluator,
        clock: &'a BusyClock,
        n_objectives: usize,
        n_metrics: usize,
    ) -> Self {
        let collected_at = Instant::now();
        Self { evaluator, clock, n_objectives, n_metrics, submitted: VecDeque::new(), collected_at }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.submitted.is_empty()
    }

    /// Whether another batch may be submitted.
    pub(super) fn has_room(&self) -> bool {
        self.submitted.len() < self.evaluator.in_flight_limit().max(1)
    }

    /// Whether the oldest batch can be collected without waiting.
    pub(super) fn is_ready(&mut self) -> Result<bool, StudyError> {
        let index = self.submitted.front().map_or(0, |oldest| oldest.batch.index);
        guard(index, || Ok(self.evaluator.is_ready()))
    }

    pub(super) fn submit(&mut self, batch: Batch) -> Result<(), StudyError> {
        let at = Instant::now();
        let idle = match self.submitted.is_empty() {
            true => at.saturating_duration_since(self.collected_at),
            false => Duration::ZERO,
        };
        self.clock.start(at);
        guard(batch.index, || self.evaluator.submit(batch.clone()))?;
        self.submitted.push_back(SubmittedBatch { batch, at, idle });
        Ok(())
    }

    /// Waits for the oldest batch; there must be one. The timing has `evaluate` and `idle`. `None` if the evaluator was told to stop.
    pub(super) fn collect(&mut self) -> Result<Option<(Finished, Timing, BatchStart)>, StudyError> {
        let index = self.submitted.front().map_or(0, |oldest| oldest.batch.index);
        let evaluated = match guard(index, || self.evaluator.collect()) {
            Err(StudyError::Evaluator { source, .. }) if source.is::<Interrupted>() => return Ok(None),
            evaluated => evaluated?,
        };
        let now = Instant::now();
        let Some(SubmittedBatch { batch, at, idle }) = self.submitted.pop_front() else {
            return Err(StudyError::EvaluatorShape { batch: index, what: "batches", expected: 0, got: 1 });
        };
        let from = at.max(self.collected_at);
        let evaluate = now.saturating_duration_since(from);
        self.collected_at = now;
        if self.submitted.is_empty() {
            self.clock.stop(now);
        }
        self.check(&batch, &evaluated)?;
        let timing = Timing { evaluate, idle, ..Timing::default() };
        let began = BatchStart { evaluate: Some(from), ..BatchStart::default() };
        Ok(Some((Finished { batch, evaluated: Arc::new(evaluated) }, timing, began)))
    }

    fn check(&self, batch: &Batch, evaluated: &Evaluated) -> Result<(), StudyError> {
        let n_points = batch.points.len();
        let checks = [
            ("scores", n_points, evaluated.scores.len()),
            ("objectives", self.n_objectives, evaluated.scores.n_objectives()),
            ("metrics", self.n_metrics, evaluated.metrics.len()),
        ];
        let values = evaluated.metrics.iter().map(|values| ("values of a metric", n_points, values.len()));
        match checks.into_iter().chain(values).find(|(_, expected, got)| expected != got) {
            None => Ok(()),
            Some((what, expected, got)) => {
                Err(StudyError::EvaluatorShape { batch: batch.index, what, expected, got })
            }
        }
    }
}

fn guard<T>(batch: u64, work: impl FnOnce() -> Result<T, EvaluateError>) -> Result<T, StudyError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(StudyError::Evaluator { batch, source }),
        Err(payload) => Err(StudyError::EvaluatorPanic { batch, message: panic_message(&*payload) }),
    }
}
