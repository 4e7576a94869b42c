//! Events of a running study, its stop flag and its totals.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::study::evaluator::{Batch, Evaluated};
use crate::study::in_flight::Finished;
use crate::study::timing::{BatchStart, Timing};

/// Something that happened in a study. Events come in the thread that runs it, batches in order.
#[derive(Clone, Copy, Debug)]
pub enum StudyEvent<'a> {
    /// A batch was evaluated, or read back from the folder. One of which the folder held the first trials comes as two: those, and the rest
    /// with the same number.
    Finished {
        /// The batch with its points.
        batch: &'a Batch,
        /// Its scores and metrics.
        evaluated: &'a Evaluated,
        /// Whether it was read back, and not evaluated now.
        is_replayed: bool,
    },
    /// All is known about the time that a batch took, a little after it was finished. Batches that were read back took none.
    Timed {
        /// Number of the batch.
        index: u64,
        /// Where its time went.
        timing: Timing,
        /// When that began.
        began: BatchStart,
    },
}

/// The callback that gets the events of a study.
pub(super) type Observer<'a> = Box<dyn FnMut(StudyEvent<'_>) + 'a>;

/// The observer, the stop flag, and the running totals.
pub(super) struct StudyMonitor<'a> {
    pub(super) observer: Option<Observer<'a>>,
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) n_trials: u64,
    pub(super) n_batches: u64,
    pub(super) timing: Timing,
}

impl StudyMonitor<'_> {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::SeqCst))
    }

    pub(super) fn finished(&mut self, finished: &Finished, is_replayed: bool) {
        self.n_trials += finished.batch.points.len() as u64;
        // A batch that is read back in part and then completed counts once.
        self.n_batches = self.n_batches.max(finished.batch.index + 1);
        if let Some(observer) = &mut self.observer {
            observer(StudyEvent::Finished {
                batch: &finished.batch,
                evaluated: &finished.evaluated,
                is_replayed,
            });
        }
    }

    pub(super) fn timed(&mut self, index: u64, timing: Timing, began: BatchStart) {
        self.timing += timing;
        if let Some(observer) = &mut self.observer {
            observer(StudyEvent::Timed { index, timing, began });
        }
    }
}
