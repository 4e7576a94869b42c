//! How symbols are cut into batches.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Symbols that one warp of the kernel works on: smaller batches leave lanes empty.
const WARP_SYMBOLS: usize = 32;

/// Most symbols of a batch: several rounds of a large device, which waits for the prices of all of them.
const MOST_SYMBOLS: usize = 16_384;

/// Most bars of a batch, so that staging memory stays small beside the data (128 MiB).
const MOST_BARS: usize = 16 << 20;

/// Puts symbols, each with its number, into the order in which a device takes them: those with gaps behind all others, and within both
/// the longest first.
///
/// A warp takes 32 neighbours bar by bar. It has a fast way for bars before which no price of any of them is missing, so that one gap
/// would slow down all 32; and it is done when its longest is. Nothing else depends on this order.
pub(crate) fn sort_for_device(work: &mut [(usize, &[f64])]) {
    work.par_sort_by_cached_key(|(_, window)| (has_gap(window), std::cmp::Reverse(window.len())));
}

/// Whether a price is missing, or so large or small that the kernel takes its slow way from there on.
fn has_gap(window: &[f64]) -> bool {
    !window.iter().all(|price| (1e-90..1e90).contains(price))
}

/// What a batch may hold at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub symbols: usize,
    pub bars: usize,
}

impl Limits {
    /// Limits for so many symbols on a device with so many streams.
    ///
    /// A kernel follows every symbol bar by bar, so it takes about as long for a few symbols as for all that fit the device at a
    /// time. Batches are therefore as many as kernels can run side by side, not more: each begins as soon as its own prices are
    /// there, and those of several fill the device.
    pub fn new(n_symbols: usize, streams: usize, wanted: Option<usize>, memory_bars: usize) -> Self {
        let side_by_side = match streams {
            1 => 1,
            // Of two to three streams one computes; a second batch is uploaded meanwhile.
            2 | 3 => 2,
            many => many - 2,
        };
        let n_batches = side_by_side.max(n_symbols.div_ceil(MOST_SYMBOLS));
        let even = n_symbols.div_ceil(n_batches).next_multiple_of(WARP_SYMBOLS);
        Self { symbols: wanted.unwrap_or(even).max(1), bars: memory_bars.clamp(1, MOST_BARS) }
    }

    /// How many of the next symbols, of these lengths, a batch takes: at least one.
    fn cut(self, lengths: impl Iterator<Item = usize>) -> usize {
        let mut bars = 0_usize;
        let fits = lengths.take(self.symbols).take_while(|len| {
            bars = bars.saturating_add(*len);
            bars <= self.bars
        });
        fits.count().max(1)
    }
}

/// Symbols that wait for a device.
pub(crate) struct Queue<'a> {
    windows: &'a [&'a [f64]],
    next: Mutex<usize>,
}

impl<'a> Queue<'a> {
    pub fn new(windows: &'a [&'a [f64]]) -> Self {
        Self { windows, next: Mutex::new(0) }
    }

    /// The next batch, if one is left.
    pub fn take(&self, limits: Limits) -> Option<Range<usize>> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *next;
        if first >= self.windows.len() {
            return None;
        }
        *next += limits.cut(self.windows[first..].iter().map(|window| window.len()));
        Some(first..*next)
    }

    /// Leaves nothing to take: what is taken comes to its end, then the scan stops.
    pub fn close(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = self.windows.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_follow_the_streams_and_the_size_of_a_device() {
        let symbols = |n, streams| Limits::new(n, streams, None, MOST_BARS).symbols;
        assert_eq!(symbols(20_000, 1), 10_016, "more than a device should wait for");
        assert_eq!(symbols(10_000, 1), 10_016);
        assert_eq!(symbols(10_000, 4), 5_024);
        assert_eq!(symbols(10_000, 16), 736);
        assert_eq!(symbols(50, 16), 32);
        assert_eq!(symbols(1, 16), 32);
        assert_eq!(Limits::new(10_000, 4, Some(7), 100), Limits { symbols: 7, bars: 100 });
    }

    #[test]
    fn symbols_with_gaps_do_not_share_a_warp_with_many_others() {
        let clean = [1.0; 50];
        let mut gap = clean;
        gap[20] = f64::NAN;
        // Every second of 128 has a gap; lengths differ.
        let window = |at: usize| if at % 2 == 1 { &gap[..50 - at % 7] } else { &clean[..50 - at % 5] };
        let mut work: Vec<(usize, &[f64])> = (0..128).map(|at| (at, window(at))).collect();
        sort_for_device(&mut work);
        let is_slow = |warp: &[(usize, &[f64])]| warp.iter().any(|(at, _)| at % 2 == 1);
        let slow: Vec<bool> = work.chunks(WARP_SYMBOLS).map(is_slow).collect();
        assert_eq!(slow, [false, false, true, true], "half of the warps instead of all");
        let lengths: Vec<usize> = work.iter().map(|(_, window)| window.len()).collect();
        assert!(lengths[..64].is_sorted_by(|a, b| a >= b) && lengths[64..].is_sorted_by(|a, b| a >= b));
        assert!(has_gap(&[1.0, f64::INFINITY]) && has_gap(&[-1.0]) && !has_gap(&[0.5, 1e6]));
    }

    #[test]
    fn a_queue_hands_out_every_symbol_once() {
        let closes = [0.0; 50];
        let windows: Vec<&[f64]> = [50, 40, 10, 10, 10, 5, 0].map(|len| &closes[..len]).into();
        let queue = Queue::new(&windows);
        let limits = Limits { symbols: 3, bars: 30 };
        let taken: Vec<Range<usize>> = std::iter::from_fn(|| queue.take(limits)).collect();
        assert_eq!(taken, [0..1, 1..2, 2..5, 5..7], "one too large goes alone");
        let queue = Queue::new(&windows);
        queue.close();
        assert_eq!(queue.take(limits), None);
    }
}
