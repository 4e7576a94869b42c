//! What the clock decides: who is silent or late, how long nobody is waited for, when a study that is to stop does, and whether workers idle.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Fleet;
use super::feed::Appetite;
use crate::error::FleetError;
use crate::event::FleetEvent;

/// How long a study that is to stop waits for shards that somebody has.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl Fleet<'_> {
    /// Looks at what is late.
    pub(super) fn look_at_the_clock(&mut self, now: Instant) {
        for (worker, reason) in self.crew.silent(&self.shards, now, &self.options) {
            self.turn_away(worker, &reason, true);
        }
        self.hedge(now);
        self.excuse_checks();
        let is_alone = !self.crew.has_ready();
        if !is_alone || self.batches.is_empty() {
            self.lonely = None;
            return;
        }
        let (since, said) = *self.lonely.get_or_insert((now, now));
        let waited = now.saturating_duration_since(since);
        let is_greeting = !self.crew.is_empty();
        if now.saturating_duration_since(said) >= Duration::from_secs(5) {
            self.lonely = Some((since, now));
            if !is_greeting {
                (self.observer)(FleetEvent::Waiting { since: waited });
            }
        }
        if is_greeting {
            return;
        }
        let last = || self.reasons.iter().cloned().collect();
        let failure = match self.pool.closed() {
            Some(reason) => FleetError::NoneLeft { reason: reason.to_owned(), last: last() },
            None if waited >= self.options.wait_limit => FleetError::NoWorker { waited, last: last() },
            None => return,
        };
        self.failure.get_or_insert(failure.into());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.options.stop.load(Ordering::SeqCst)
    }

    /// Whether the oldest batch is left as it is: the study was told to stop, and the batch is not about to be done.
    pub(super) fn is_interrupted(&mut self) -> bool {
        if !self.is_stopping() {
            return false;
        }
        let since = *self.stopping.get_or_insert_with(Instant::now);
        let is_cut = self.batches.front().is_some_and(|assembly| assembly.n_unassigned() == 0);
        !is_cut || !self.crew.has_ready() || since.elapsed() > STOP_PATIENCE
    }

    /// A batch of so many rows is over: says so if the workers have too little to do.
    pub(super) fn look_at_the_feed(&mut self, batch: usize) {
        let now = Instant::now();
        let appetite = Appetite {
            n_workers: self.crew.n_ready(),
            rate: self.crew.total_rate(),
            batch,
            least_shard: self.options.shard_time[0],
        };
        if let Some(hunger) = self.feed.hunger(now, self.options.hunger_after, &appetite) {
            (self.observer)(FleetEvent::Hungry(hunger));
        }
        self.feed.leave(now);
    }
}
