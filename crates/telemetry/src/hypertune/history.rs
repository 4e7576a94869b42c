//! What the tuner remembers of the batches that went by.

use std::collections::VecDeque;

use crate::snapshot::Snapshot;

/// Samples that are kept, the newest.
const MAX_SAMPLES: usize = 1024;

/// Samples are at least this far apart, so that those that are kept cover the windows however quick the batches are.
const LEAST_DISTANCE_S: f64 = 0.002;

/// A run at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) n_batches: u64,
    pub(super) at_s: f64,
    pub(super) done: f64,
    /// Of the newest batch, each if it is known.
    pub(super) busy: Option<f64>,
    pub(super) ask_ms: Option<f64>,
    pub(super) evaluate_ms: Option<f64>,
    pub(super) tell_ms: Option<f64>,
    pub(super) overlap_ms: Option<f64>,
    pub(super) idle_ms: Option<f64>,
    /// Trials without a score, of all.
    pub(super) n_invalid: Option<f64>,
    pub(super) conflicts: Option<f64>,
    pub(super) best: Option<f64>,
}

impl Sample {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let value = |name: &str| snapshot.values.get(name).copied().filter(|value| value.is_finite());
        let n_invalid = value("invalid").or_else(|| Some(snapshot.done - value("valid")?));
        Self {
            n_batches: snapshot.n_batches,
            at_s: snapshot.elapsed_s(),
            done: snapshot.done,
            busy: value("busy"),
            ask_ms: value("ask_ms"),
            evaluate_ms: value("evaluate_ms"),
            tell_ms: value("tell_ms"),
            overlap_ms: value("overlap_ms"),
            idle_ms: value("idle_ms"),
            n_invalid,
            conflicts: value("conflicts"),
            best: snapshot.best,
        }
    }
}

/// The newest samples, one per batch or fewer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Takes in a snapshot, if it is of a batch that is new.
    pub(super) fn push(&mut self, sample: Sample) {
        if let Some(last) = self.samples.back()
            && (sample.n_batches <= last.n_batches || sample.at_s < last.at_s + LEAST_DISTANCE_S)
        {
            return;
        }
        if self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The samples of the last batches: at least so many, over at least so many seconds. The first one is where the window
    /// begins. None if there are not enough yet.
    pub(super) fn window(&self, n_batches: u64, over_s: f64) -> Option<Window<'_>> {
        let last = self.samples.back()?;
        let is_before = |sample: &Sample| {
            sample.n_batches + n_batches <= last.n_batches && sample.at_s + over_s <= last.at_s
        };
        let begin = self.samples.iter().rposition(is_before)?;
        Some(Window { samples: &self.samples, begin })
    }

    /// All samples from that batch on, the one before it included.
    pub(super) fn since(&self, n_batches: u64) -> Option<Window<'_>> {
        let begin = self.samples.iter().position(|sample| sample.n_batches >= n_batches)?;
        (begin + 1 < self.samples.len()).then_some(Window { samples: &self.samples, begin })
    }
}

/// A stretch of samples up to the newest.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    samples: &'a VecDeque<Sample>,
    begin: usize,
}

impl Window<'_> {
    pub(super) fn first(&self) -> &Sample {
        &self.samples[self.begin]
    }

    pub(super) fn last(&self) -> &Sample {
        &self.samples[self.samples.len() - 1]
    }

    pub(super) fn n_batches(&self) -> u64 {
        self.last().n_batches - self.first().n_batches
    }

    /// What was reached per second.
    pub(super) fn rate(&self) -> Option<f64> {
        let over_s = self.last().at_s - self.first().at_s;
        (over_s > 0.0).then(|| (self.last().done - self.first().done) / over_s)
    }

    /// The values of the samples behind the begin.
    pub(super) fn values<'b>(
        &'b self,
        of: impl Fn(&Sample) -> Option<f64> + 'b,
    ) -> impl Iterator<Item = f64> + 'b {
        self.samples.range(self.begin + 1..).filter_map(of)
    }

    pub(super) fn mean(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let (sum, n) = self.values(of).fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
        (n > 0.0).then(|| sum / n)
    }

    /// Share of the time for which the device was busy: as it was told, or else evaluation over evaluation and idle time.
    pub(super) fn busy(&self) -> Option<f64> {
        self.mean(|sample| sample.busy).or_else(|| {
            let (evaluate_ms, idle_ms) =
                (self.mean(|sample| sample.evaluate_ms)?, self.mean(|sample| sample.idle_ms)?);
            (evaluate_ms + idle_ms > 0.0).then(|| evaluate_ms / (evaluate_ms + idle_ms))
        })
    }

    /// Share of the trials without a score, and the number of trials.
    pub(super) fn invalid(&self) -> Option<(f64, f64)> {
        let n_trials = self.last().done - self.first().done;
        let n_invalid = self.last().n_invalid? - self.first().n_invalid?;
        (n_trials > 0.0).then(|| ((n_invalid / n_trials).clamp(0.0, 1.0), n_trials))
    }
}
