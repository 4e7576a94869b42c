//! Where the time of a study goes, from timestamps taken as it runs.

use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the time of a batch, or of all of them together, went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The sampler proposed the points.
    pub ask: Duration,
    /// The evaluator worked on the batch: from its submission, or from when the batch before it was collected if that was
    /// later, until it was collected.
    pub evaluate: Duration,
    /// The sampler learnt the scores.
    pub tell: Duration,
    /// The part of `ask` and `tell` during which the evaluator worked, on any batch.
    pub overlap: Duration,
    /// The evaluator had nothing to do before this batch came.
    pub idle: Duration,
}

/// When the work on a batch began; none where there was nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStart {
    /// The sampler began to propose.
    pub ask: Option<Instant>,
    /// The evaluator began to work on the batch, as [`Timing::evaluate`] counts.
    pub evaluate: Option<Instant>,
    /// The sampler began to learn.
    pub tell: Option<Instant>,
}

/// A piece of work of the sampler.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SamplerWork {
    pub(super) began: Option<Instant>,
    pub(super) took: Duration,
    /// The part of it during which the evaluator worked.
    pub(super) overlap: Duration,
}

impl AddAssign for Timing {
    fn add_assign(&mut self, other: Self) {
        self.ask += other.ask;
        self.evaluate += other.evaluate;
        self.tell += other.tell;
        self.overlap += other.overlap;
        self.idle += other.idle;
    }
}

/// How long the evaluator has been working, readable from the thread of the sampler at any time.
#[derive(Debug, Default)]
pub(super) struct BusyClock(Mutex<Busy>);

#[derive(Debug, Default)]
struct Busy {
    before: Duration,
    since: Option<Instant>,
}

impl BusyClock {
    /// The evaluator got something to do.
    pub(super) fn start(&self, now: Instant) {
        self.lock().since.get_or_insert(now);
    }

    /// The evaluator has nothing more to do.
    pub(super) fn stop(&self, now: Instant) {
        let mut busy = self.lock();
        if let Some(since) = busy.since.take() {
            busy.before += now.saturating_duration_since(since);
        }
    }

    /// Total working time until now.
    pub(super) fn total(&self, now: Instant) -> Duration {
        let busy = self.lock();
        busy.before + busy.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Runs something and measures it.
    pub(super) fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, SamplerWork) {
        let began = Instant::now();
        let busy = self.total(began);
        let result = work();
        let ended = Instant::now();
        let took = ended.saturating_duration_since(began);
        let overlap = self.total(ended).saturating_sub(busy).min(took);
        (result, SamplerWork { began: Some(began), took, overlap })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Busy> {
        // Nothing inside can be left half-done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_the_time_between_start_and_stop_only() {
        let clock = BusyClock::default();
        let at = |ms| Instant::now() + Duration::from_millis(ms);
        let zero = at(1000);
        let at = |ms| zero + Duration::from_millis(ms);
        clock.start(at(0));
        clock.start(at(5)); // a second batch in flight
        assert_eq!(clock.total(at(7)), Duration::from_millis(7));
        clock.stop(at(10));
        assert_eq!(clock.total(at(50)), Duration::from_millis(10));
        clock.start(at(60));
        assert_eq!(clock.total(at(61)), Duration::from_millis(11));
    }

    #[test]
    fn work_beside_an_idle_evaluator_does_not_overlap() {
        let clock = BusyClock::default();
        let work = || std::thread::sleep(Duration::from_millis(3));
        let ((), worked) = clock.measure(work);
        assert!(worked.took >= Duration::from_millis(3) && worked.overlap.is_zero());
        clock.start(Instant::now());
        let ((), worked) = clock.measure(work);
        assert_eq!(worked.took, worked.overlap);
    }
}
