//! Cuts a chunk of trials into parts whose columns fit the memory.
//!
//! The trials are in an order in which those that read the same large columns are neighbours. Such a column is computed, read by its
//! trials, and gone: its memory is that of the next one. Columns that trials all over the chunk read are kept for the next part.

use std::ops::Range;

use super::Engine;
use super::ahead::Ahead;
use super::demand::{Demand, Sharing};
use super::pool::Row;
use crate::exec::distinct::Tuples;

/// Columns that only neighbours read may take this part of the memory at a time.
const PASSING_SHARE: usize = 8;

/// A chunk of trials, cut.
pub(super) struct Parts {
    pub(super) ranges: Vec<Range<usize>>,
    /// By slot, whether only neighbouring trials read the same column, so that it is not kept.
    pub(super) is_passing: Vec<bool>,
}

/// Memory that the trials of a part take: in all, and of columns that only neighbours read.
#[derive(Clone, Copy, Default)]
struct Taken {
    all: usize,
    passing: usize,
}

impl Demand {
    /// Cuts so many trials so that each part takes at most `budget` bytes, or is a single trial.
    pub(super) fn parts(&self, n_bars: usize, n_trials: usize, budget: usize) -> Parts {
        let bytes: Vec<usize> = self.item_bytes().into_iter().map(|bytes| bytes * n_bars).collect();
        let n_needed: Vec<usize> =
            self.slots.iter().map(|slot| slot.as_ref().map_or(0, |slot| slot.n_needed())).collect();
        let all: usize = bytes.iter().zip(&n_needed).map(|(bytes, needed)| bytes * needed).sum();
        if all <= budget {
            return Parts {
                ranges: std::iter::once(0..n_trials).collect(),
                is_passing: vec![false; bytes.len()],
            };
        }
        let item = |slot: usize, trial: usize| {
            let demand = self.slots[slot].as_ref()?;
            let item = demand.distinct.of[trial] as usize;
            (bytes[slot] > 0 && demand.needed[item]).then_some(item)
        };
        let is_passing: Vec<bool> = (0..bytes.len())
            .map(|slot| {
                let starts = |trial: &usize| {
                    let own = item(slot, *trial);
                    own.is_some() && (*trial == 0 || item(slot, *trial - 1) != own)
                };
                n_needed[slot] > 1 && (0..n_trials).filter(starts).count() == n_needed[slot]
            })
            .collect();
        // The part, from 1 on, that an item was last counted in.
        let mut counted: Vec<Vec<usize>> = self
            .slots
            .iter()
            .map(|slot| vec![0; slot.as_ref().map_or(0, |slot| slot.needed.len())])
            .collect();
        let (mut ranges, mut start, mut taken) = (Vec::new(), 0, Taken::default());
        for trial in 0..n_trials {
            let more = |part: usize, counted: &mut [Vec<usize>], counts: bool| {
                let mut more = Taken::default();
                for slot in 0..bytes.len() {
                    let Some(item) = item(slot, trial) else { continue };
                    if counted[slot][item] != part {
                        more.all += bytes[slot];
                        more.passing += if is_passing[slot] { bytes[slot] } else { 0 };
                        if counts {
                            counted[slot][item] = part;
                        }
                    }
                }
                more
            };
            let new = more(ranges.len() + 1, &mut counted, false);
            let fits = taken.all + new.all <= budget
                && (new.passing == 0 || taken.passing + new.passing <= budget / PASSING_SHARE);
            if trial > start && !fits {
                ranges.push(start..trial);
                (start, taken) = (trial, Taken::default());
            }
            let new = more(ranges.len() + 1, &mut counted, true);
            taken = Taken { all: taken.all + new.all, passing: taken.passing + new.passing };
        }
        ranges.push(start..n_trials);
        Parts { ranges, is_passing }
    }
}

impl Engine<'_> {
    /// Walks the parts of a chunk of trials through one symbol; `demand` is what all of them need.
    pub(super) fn walk_parts(
        &mut self,
        symbol: usize,
        parts: &Parts,
        sharing: &Sharing,
        demand: &Demand,
        scalars: &[Vec<f64>],
        rows: &mut [Row],
    ) {
        let mut ahead = Ahead::default();
        for (at, part) in parts.ranges.iter().enumerate() {
            if !ahead.holds(part) {
                ahead = self.look_ahead(symbol, &parts.ranges[at..], demand, scalars);
            }
            let mut tuples = Tuples::new(&scalars[part.clone()]);
            let mut demand = self.demand(&mut tuples, sharing);
            ahead.hand_over(part, &mut demand);
            for (slot, is_passing) in demand.slots.iter_mut().zip(&parts.is_passing) {
                slot.iter_mut().for_each(|slot| slot.is_kept = !is_passing);
            }
            self.walk_part(symbol, &mut tuples, demand, &mut rows[part.clone()]);
        }
    }
}
