//! How much memory columns and masks may take.

use tidemill_market::memory;

/// Where the system does not say how much is left.
const UNKNOWN: usize = 512 << 20;

/// A quarter of the memory that is left: as much again is in use while a chunk of trials is computed.
pub(super) fn budget() -> usize {
    memory::available().map_or(UNKNOWN, |bytes| bytes / 4)
}
