//! How much memory columns and masks may take.

use tidemill_market::memory;

use super::Engine;
use crate::exec::cache::Cache;
use crate::exec::spare::Spare;

/// Where the system does not say how much is left.
const UNKNOWN: usize = 512 << 20;

/// This part of the memory may hold columns that nobody needs any more.
const SPARE_SHARE: usize = 4;

/// A quarter of the memory that is left: as much again is in use while a chunk of trials is computed.
pub(super) fn budget() -> usize {
    memory::available().map_or(UNKNOWN, |bytes| bytes / 4)
}

/// Memory for columns that may be asked for again, and of those that nobody needs any more.
pub(super) fn of_columns(bytes: usize) -> (Cache, Spare) {
    (Cache::new(bytes), Spare::new(bytes / SPARE_SHARE))
}

impl Engine<'_> {
    /// Says that one more batch is evaluated at most: columns that only neighbouring trials read are not kept for others.
    pub fn expect_last(&mut self) {
        self.are_more = false;
    }

    /// Gives the memory of all columns back; they are computed again should trials be evaluated.
    pub fn forget_columns(&mut self) {
        (self.cache, self.spare) = of_columns(self.cache.budget());
    }
}
