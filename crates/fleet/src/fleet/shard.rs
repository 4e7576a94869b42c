//! A shard on its way, and who has it.

use std::ops::Range;
use std::time::{Duration, Instant};

use tidemill_search::Points;

use crate::transport::WorkerId;

/// Some rows of a batch, from when they are cut until nobody has them any more.
pub(super) struct SentShard {
    /// Number of the batch.
    pub(super) batch: u64,
    pub(super) first_trial: u64,
    pub(super) rows: Range<usize>,
    pub(super) points: Points,
    pub(super) points_digest: u64,
    /// Who has it now; nobody if it was lost and waits to be sent again.
    pub(super) holders: Vec<Holder>,
    pub(super) answer: Option<FirstAnswer>,
    /// Whether no second answer is needed any more.
    pub(super) is_checked: bool,
    /// How often it failed.
    pub(super) n_tries: u32,
}

/// The answer that counts.
pub(super) struct FirstAnswer {
    pub(super) digest: u64,
    /// Who gave it; names need not differ.
    pub(super) worker: WorkerId,
    pub(super) name: String,
}

/// A worker that has a shard.
pub(super) struct Holder {
    pub(super) worker: WorkerId,
    pub(super) sent: Instant,
    /// How long it should take, with what the worker had before.
    pub(super) expected: Duration,
}

impl Holder {
    pub(super) fn is_late(&self, now: Instant, after: Duration) -> bool {
        now.saturating_duration_since(self.sent) > after.saturating_add(self.expected.saturating_mul(3))
    }
}
