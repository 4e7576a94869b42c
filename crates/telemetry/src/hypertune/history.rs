//! The newest batches as the rules see them.

use std::collections::VecDeque;

use crate::hypertune::signal::{BatchSignals, HostSignals, Signals};
use crate::snapshot::Snapshot;

/// Samples that are kept, the newest.
const MAX_SAMPLES: usize = 1024;

/// Samples are at least this far apart, so that those that are kept cover the windows however quick the batches are.
const LEAST_DISTANCE_S: f64 = 0.002;

/// The signals of a run after one batch; each of the newest batch and if it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) n_batches: u64,
    pub(super) at_s: f64,
    pub(super) done: f64,
    pub(super) busy: Option<f64>,
    pub(super) fill: Option<f64>,
    pub(super) work_ms: Option<f64>,
    pub(super) idle_ms: Option<f64>,
    pub(super) host_ms: [Option<f64>; 2],
    pub(super) hidden_ms: Option<f64>,
    /// Failed items of the whole progress.
    pub(super) n_failed: Option<f64>,
    pub(super) falling: Option<f64>,
}

impl Sample {
    pub(super) fn of(snapshot: &Snapshot, signals: &Signals) -> Self {
        let value = |name: &str| snapshot.values.get(name).copied().filter(|value| value.is_finite());
        let of_batch = |name: fn(&BatchSignals) -> &'static str| {
            signals.batch.as_ref().and_then(|batch| value(name(batch)))
        };
        let of_host = |name: fn(&HostSignals) -> &'static str| {
            signals.batch.and_then(|batch| batch.host).and_then(|host| value(name(&host)))
        };
        Self {
            n_batches: snapshot.n_batches,
            at_s: snapshot.elapsed_s(),
            done: snapshot.done,
            busy: signals.busy.and_then(value),
            fill: signals.fill.and_then(value),
            work_ms: of_batch(|batch| batch.work),
            idle_ms: of_batch(|batch| batch.idle),
            host_ms: [of_host(|host| host.times[0]), of_host(|host| host.times[1])],
            hidden_ms: of_host(|host| host.hidden),
            n_failed: signals.failures.and_then(|failures| Some(snapshot.done - value(failures.succeeded)?)),
            falling: signals.falling.and_then(|falling| value(falling.value)),
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

    /// Progress per second.
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

    /// Share of the time for which the device was busy: as the run measured it, or else its work over its work and idle time.
    pub(super) fn busy(&self) -> Option<f64> {
        self.mean(|sample| sample.busy).or_else(|| {
            let (work_ms, idle_ms) =
                (self.mean(|sample| sample.work_ms)?, self.mean(|sample| sample.idle_ms)?);
            (work_ms + idle_ms > 0.0).then(|| work_ms / (work_ms + idle_ms))
        })
    }

    /// Share of the items that failed, and the number of items.
    pub(super) fn failures(&self) -> Option<(f64, f64)> {
        let n_items = self.last().done - self.first().done;
        let n_failed = self.last().n_failed? - self.first().n_failed?;
        (n_items > 0.0).then(|| ((n_failed / n_items).clamp(0.0, 1.0), n_items))
    }
}
