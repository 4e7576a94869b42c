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

#[cfg(test)]
mod tests {
    use tidemill_market::Universe;
    use tidemill_market::synth::lcg;
    use tidemill_search::Points;

    use super::*;
    use crate::exec::engine::EngineOptions;
    use crate::segment::Layout;
    use crate::strategy::{Overrides, Strategy};

    /// Memory that is kept after each of two batches, in which so many trials read each of the columns, more than fit; the second batch may be
    /// the last one. After that, whether results are the same when all is forgotten.
    fn kept(trials_per_column: usize, is_last: bool) -> ([usize; 2], bool) {
        let text = "name = \"x\"\n[params]\nw = { int = [2, 31], default = 20 }\nk = { float = [0.0, 3.0], default = 1.0 }\n\
                    [long]\nenter = \"zscore(sma(close, w), 20) > k\"\nexit = \"close < sma(close, 5)\"\n";
        let strategy = Strategy::parse("x.toml", text, &Overrides::default()).unwrap();
        let universe = Universe { symbols: vec![lcg(400)] };
        let segments = Layout::default().segments(&universe).unwrap();
        let options = EngineOptions { cache_bytes: 200_000, ..EngineOptions::default() };
        let mut engine = Engine::new(&strategy, &universe, segments, options).unwrap();
        let mut points = Points::new(2);
        for trial in 0..30 * trials_per_column {
            points.push(&[f64::from(2 + trial as u32 % 30), trial as f64 / (30 * trials_per_column) as f64]);
        }
        let first = engine.evaluate(&points);
        let after_first = engine.cache.bytes();
        if is_last {
            engine.expect_last();
        }
        engine.evaluate(&points);
        let after_second = engine.cache.bytes();
        engine.forget_columns();
        let is_forgotten = engine.cache.bytes() == 0;
        ([after_first, after_second], is_forgotten && engine.evaluate(&points) == first)
    }

    #[test]
    fn columns_of_few_trials_stay_for_later_batches() {
        let ([after_first, after_second], is_same) = kept(2, false);
        assert!(after_second > after_first + 20_000 && is_same);
    }

    #[test]
    fn columns_of_many_trials_and_of_the_last_batch_do_not_stay() {
        for (trials_per_column, is_last) in [(40, false), (2, true)] {
            let ([after_first, after_second], is_same) = kept(trials_per_column, is_last);
            assert!(after_second == after_first && is_same, "{trials_per_column} trials a column");
        }
    }
}
