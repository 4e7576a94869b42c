//! Comparisons of averages, found ahead for more trials than a part holds.
//!
//! An average waits for its own last value, so that one takes as long as a vector of them side by side. Of a long series the columns of a
//! single trial may be all that fits into the memory; the bits of its comparisons are small, and those of many parts are found together.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tidemill_market::indicator::EmaCompare;

use super::Engine;
use super::demand::Demand;
use super::prepare::Prepared;
use crate::exec::frame::WORD;
use crate::exec::tile::Tiles;
use crate::plan::Decided;

/// What was found ahead.
#[derive(Default)]
pub(super) struct Ahead {
    trials: Range<usize>,
    /// By trial of these.
    found: Vec<Vec<Found>>,
}

/// A comparison that is all of what scalars have left of a factor of a condition.
struct Found {
    condition: usize,
    /// Its place in what is left of the condition.
    place: usize,
    bits: Vec<u64>,
}

impl Ahead {
    /// Whether these trials were looked at.
    pub(super) fn holds(&self, part: &Range<usize>) -> bool {
        self.trials.start <= part.start && part.end <= self.trials.end
    }

    /// Hands what was found for the trials of a part over to what they need: nothing else is left to be found of it.
    pub(super) fn hand_over(&mut self, part: &Range<usize>, demand: &mut Demand) {
        let found = &mut self.found[part.start - self.trials.start..part.end - self.trials.start];
        for (at, condition) in demand.conditions.iter_mut().enumerate() {
            condition.ahead = found
                .iter_mut()
                .zip(&mut condition.left)
                .map(|(found, left)| {
                    let own: Vec<Found> = found.extract_if(.., |found| found.condition == at).collect();
                    if let Decided::Open(tapes) = &**left
                        && !own.is_empty()
                    {
                        let is_left = |place: &usize| own.iter().all(|found| found.place != *place);
                        let rest = (0..tapes.len()).filter(is_left).map(|place| tapes[place].clone());
                        *left = Arc::new(Decided::Open(rest.collect()));
                    }
                    own.into_iter().map(|found| found.bits).collect()
                })
                .collect();
        }
    }
}

impl Engine<'_> {
    /// Looks ahead for the trials of the first of these parts, and of as many more as have a lane on some thread. Parts that fill the
    /// lanes themselves find nothing here: while they walk, the bits are still in the cache.
    pub(super) fn look_ahead(
        &self,
        symbol: usize,
        parts: &[Range<usize>],
        demand: &Demand,
        scalars: &[Vec<f64>],
    ) -> Ahead {
        let first = parts[0].clone();
        let end = first.start + EmaCompare::LANES * rayon::current_num_threads();
        let narrow = parts.iter().take_while(|part| part.len() < EmaCompare::LANES && part.end <= end);
        let Some(last) = narrow.last() else {
            return Ahead { found: first.clone().map(|_| Vec::new()).collect(), trials: first };
        };
        let trials: Vec<usize> = (first.start..last.end).collect();
        let groups = trials.par_chunks(EmaCompare::LANES);
        let found = groups.flat_map_iter(|trials| self.compared(symbol, trials, demand, scalars)).collect();
        Ahead { trials: first.start..last.end, found }
    }

    /// The comparisons that nothing but scalars decides, of some trials side by side.
    fn compared(
        &self,
        symbol: usize,
        trials: &[usize],
        demand: &Demand,
        scalars: &[Vec<f64>],
    ) -> Vec<Vec<Found>> {
        let (n_bars, none) = (self.symbols[symbol].bars.len(), Prepared::default());
        let mut tiles = Tiles::new(trials.len(), self.block_words * WORD);
        let is_tiled = |slot: &usize| demand.slots[*slot].as_ref().is_some_and(|needs| needs.is_tiled);
        let tiled = (0..demand.slots.len()).filter(is_tiled);
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (at, trial) in trials.iter().enumerate() {
            for slot in tiled.clone() {
                self.add_average(&mut tiles, at, slot, symbol, &scalars[*trial]);
            }
            let columns = self.columns(symbol, *trial, &none);
            for (condition, needs) in demand.conditions.iter().enumerate() {
                let Decided::Open(tapes) = &*needs.left[*trial] else { continue };
                for (place, tape) in tapes.iter().enumerate() {
                    if tiles.compare(at, tape, &scalars[*trial], &columns).is_some() {
                        let bits = Vec::with_capacity(n_bars.div_ceil(WORD));
                        found.push((at, Found { condition, place, bits }));
                    }
                }
            }
        }
        let (block_bars, end) = (self.block_words * WORD, if found.is_empty() { 0 } else { n_bars });
        for first in (0..end).step_by(block_bars) {
            let bars = first..n_bars.min(first + block_bars);
            tiles.advance(bars.clone());
            for ((_, found), compared) in found.iter_mut().zip(tiles.compared()) {
                found.bits.extend_from_slice(&compared.words[..bars.len().div_ceil(WORD)]);
            }
        }
        let mut by_trial: Vec<Vec<Found>> = trials.iter().map(|_| Vec::new()).collect();
        found.into_iter().for_each(|(at, found)| by_trial[at].push(found));
        by_trial
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::Universe;
    use tidemill_market::synth::lcg;
    use tidemill_search::Points;

    use super::*;
    use crate::exec::distinct::Tuples;
    use crate::exec::engine::EngineOptions;
    use crate::segment::Layout;
    use crate::strategy::{Overrides, Strategy};

    const TEXT: &str = "name = \"x\"\n[params]\nfast = { int = [2, 400], default = 9 }\nslow = { int = [2, 400], default = 30 }\n\
        w = { int = [2, 60], default = 20 }\nago = { int = [0, 9], default = 1 }\non = { bool = true }\n[long]\n\
        enter = \"ema(close, fast) < ema(close, slow) and (not on or close[ago] >= ema(close, slow)[ago]) and zscore(sma(close, w), 20) > 0.3\"\n\
        exit = \"ema(open, slow) > ema(open, fast)\"\n";

    fn points() -> Points {
        let mut points = Points::new(5);
        for at in 0..48 {
            let share = |by: usize| (at * by % 48) as f64;
            let [fast, slow, w] = [2.0 + 8.0 * share(5), 2.0 + 8.0 * share(7), 2.0 + share(11)];
            points.push(&[fast, slow, w, share(13) % 10.0, f64::from(at % 3 != 0)]);
        }
        points
    }

    #[test]
    fn narrow_parts_give_the_same_results() {
        let strategy = Strategy::parse("x.toml", TEXT, &Overrides::default()).unwrap();
        let universe = Universe { symbols: vec![lcg(3_001)] };
        let evaluated = |cache_bytes: usize, block_words: usize| {
            let segments = Layout::default().segments(&universe).unwrap();
            let options = EngineOptions { cache_bytes, block_words };
            Engine::new(&strategy, &universe, segments, options).unwrap().evaluate(&points())
        };
        let wide = evaluated(usize::MAX, 16);
        assert!(wide.iter().filter(|outcome| outcome.train.trades > 5).count() > 10);
        for (cache_bytes, block_words) in [(1, 16), (1, 3), (2_000_000, 16), (8_000_000, 1)] {
            assert!(evaluated(cache_bytes, block_words) == wide, "{cache_bytes} bytes, {block_words} words");
        }
    }

    #[test]
    fn comparisons_of_narrow_parts_are_found_ahead_and_nothing_else_is() {
        let strategy = Strategy::parse("x.toml", TEXT, &Overrides::default()).unwrap();
        let universe = Universe { symbols: vec![lcg(500)] };
        let segments = Layout::default().segments(&universe).unwrap();
        let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        let (points, mut row) = (points(), vec![0.0; 5]);
        let scalars: Vec<Vec<f64>> = (0..points.len())
            .map(|at| {
                points.read_row(at, &mut row);
                engine.scalars(&engine.decode(&row), universe.symbols[0].timeframe_ms)
            })
            .collect();
        let mut tuples = Tuples::new(&scalars);
        let sharing = engine.sharing(&mut tuples);
        let mut demand = engine.demand(&mut tuples, &sharing);
        let n_left = |demand: &Demand, trial: usize| {
            let left = demand.conditions.iter().map(|condition| &*condition.left[trial]);
            left.map(|left| if let Decided::Open(tapes) = left { tapes.len() } else { 0 }).collect::<Vec<_>>()
        };
        // Trial 1 has the switch on, trial 0 off: three and two factors to enter, and one to exit.
        assert_eq!([n_left(&demand, 0), n_left(&demand, 1)], [[2, 1], [3, 1]]);
        let parts: Vec<Range<usize>> = (0..24).map(|part| part * 2..part * 2 + 2).collect();
        let mut ahead = engine.look_ahead(0, &parts, &demand, &scalars);
        assert!(ahead.holds(&parts[7]) && ahead.holds(&(0..16)));
        ahead.hand_over(&ahead.trials.clone(), &mut demand);
        assert_eq!([n_left(&demand, 0), n_left(&demand, 1)], [[1, 0], [1, 0]]);
        let n_found = |trial: usize| [0, 1].map(|condition| demand.conditions[condition].ahead[trial].len());
        assert_eq!([n_found(0), n_found(1)], [[1, 1], [2, 1]]);
        let whole = engine.look_ahead(0, std::slice::from_ref(&(0..48)), &demand, &scalars);
        assert!(whole.holds(&(0..48)) && whole.found.iter().all(Vec::is_empty));
    }
}
