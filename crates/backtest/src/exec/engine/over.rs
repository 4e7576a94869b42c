//! Columns over all symbols: computed once for the trials under way, and kept until the last symbol has read them.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Engine;
use super::demand::SlotDemand;
use super::prepare::{Prepared, key};
use crate::exec::cache::{Key, Kind};
use crate::exec::column::Item;
use crate::exec::distinct::Tuples;
use crate::exec::over::over;
use crate::graph::Over;
use crate::plan::{KeyParts, Slot};

/// Stands for all symbols in the identity of a column.
const ALL_SYMBOLS: usize = u32::MAX as usize;

/// Columns that are computed together: what they compare is there for all symbols at once.
const AT_ONCE: usize = 32;

/// What was computed over all symbols, by its identity.
pub(super) type Overs = FxHashMap<Key, Arc<Item>>;

impl Engine<'_> {
    /// Cuts trials so that all columns over all symbols that a part needs fit half of the memory, and forgets those of earlier ones.
    pub(super) fn cut_by_overs(&mut self, values: &[&[f64]]) -> Vec<std::ops::Range<usize>> {
        self.overs.clear();
        let keys: Vec<KeyParts> = self
            .plan
            .slots
            .iter()
            .filter(|slot| matches!(slot, Slot::Over { .. }))
            .filter_map(|slot| slot.key().cloned())
            .collect();
        let all = std::iter::once(0..values.len()).collect();
        let n_bars = self.grids.start.last().copied().unwrap_or(0);
        let (Some(symbol), false) = (self.symbols.first(), keys.is_empty()) else { return all };
        let most = (self.cache.budget() / 2 / (8 * n_bars.max(1))).max(keys.len());
        let scalars: Vec<Vec<f64>> =
            values.iter().map(|params| self.scalars(params, symbol.bars.timeframe_ms)).collect();
        let (mut ranges, mut start) = (Vec::new(), 0);
        let mut known: FxHashMap<Key, ()> = FxHashMap::default();
        for (trial, scalars) in scalars.iter().enumerate() {
            let own = |parts: &KeyParts| (key(ALL_SYMBOLS, parts, Kind::Column, scalars), ());
            let n_new = keys.iter().filter(|parts| !known.contains_key(&own(parts).0)).count();
            if trial > start && known.len() + n_new > most {
                ranges.push(start..trial);
                (start, known) = (trial, FxHashMap::default());
            }
            known.extend(keys.iter().map(own));
        }
        ranges.push(start..values.len());
        ranges
    }

    /// The columns over all symbols for the distinct tuples that are needed.
    pub(super) fn over_items(
        &mut self,
        which: Over,
        input: usize,
        parts: &KeyParts,
        scalars: &[Vec<f64>],
        demand: &SlotDemand,
    ) -> Vec<Arc<Item>> {
        let firsts = &demand.distinct.firsts;
        let none = Arc::new(Item::Column(Vec::new()));
        let mut items: Vec<Arc<Item>> = vec![none; firsts.len()];
        let mut missing: Vec<(usize, Key)> = Vec::new();
        for at in (0..firsts.len()).filter(|at| demand.needed[*at]) {
            let key = key(ALL_SYMBOLS, parts, Kind::Column, &scalars[firsts[at]]);
            match self.overs.get(&key).cloned().or_else(|| self.cache.get(&key)) {
                Some(item) => items[at] = item,
                None => missing.push((at, key)),
            }
        }
        for group in missing.chunks(AT_ONCE) {
            let own: Vec<Vec<f64>> = group.iter().map(|(at, _)| scalars[firsts[*at]].clone()).collect();
            for ((at, key), column) in group.iter().zip(self.compute_over(which, input, &own)) {
                items[*at] = Arc::new(Item::Column(column));
                self.cache.insert(key.clone(), items[*at].clone(), &self.spare);
            }
        }
        // Batches are cut so that this does not happen; single trials, one after the other, are not.
        if self.overs.len() * 8 * self.grids.start.last().copied().unwrap_or(0) > self.cache.budget() {
            self.overs.clear();
        }
        for at in (0..firsts.len()).filter(|at| demand.needed[*at]) {
            let key = key(ALL_SYMBOLS, parts, Kind::Column, &scalars[firsts[at]]);
            self.overs.insert(key, items[at].clone());
        }
        items
    }

    /// Computes a function over all symbols for each of some trials, whose scalars these are.
    fn compute_over(&mut self, which: Over, input: usize, scalars: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut tuples = Tuples::new(scalars);
        let mut prepared: Vec<Prepared> = Vec::with_capacity(self.symbols.len());
        for symbol in 0..self.symbols.len() {
            let demand = self.demand_of(input, &mut tuples);
            prepared.push(self.prepare(symbol, &mut tuples, demand));
        }
        let this = &*self;
        let sections = this.grids.sections(&this.symbols);
        let n_bars = sections.bars.len();
        (0..scalars.len())
            .into_par_iter()
            .map(|trial| {
                let mut x = Vec::with_capacity(n_bars);
                for (symbol, prepared) in prepared.iter().enumerate() {
                    x.extend_from_slice(this.columns(symbol, trial, prepared)[input]);
                }
                let mut out = vec![0.0; n_bars];
                over(which, sections, &x, &mut out);
                out
            })
            .collect()
    }
}
