//! Computes the columns and masks that a chunk of trials needs over one symbol, each distinct one once.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Engine;
use crate::exec::cache::Key;
use crate::exec::column::{self, Input, Item};
use crate::exec::frame::{Frame, Scratch};
use crate::plan::{Condition, KeyParts, Maskable, Slot};

/// A mask is shared when at least this many trials use it on average.
const TRIALS_PER_MASK: usize = 4;

/// Columns and masks of a chunk of trials over one symbol.
pub(super) struct Prepared {
    /// Items by slot, then by distinct tuple.
    pub(super) slots: Vec<Vec<Arc<Item>>>,
    /// For each slot, the item of each trial.
    pub(super) slot_of: Vec<Vec<u32>>,
    /// For each condition of the plan, how its truth is found.
    pub(super) conditions: Vec<PreparedCondition>,
}

/// How the truth of one condition is found for a chunk of trials.
#[derive(Default)]
pub(super) struct PreparedCondition {
    /// Shared masks, each with the item of each trial.
    pub(super) masks: Vec<(Vec<Arc<Item>>, Vec<u32>)>,
    /// Factors that are computed for each trial.
    pub(super) residual: Vec<usize>,
}

impl Engine<'_> {
    /// Memory for all columns of a chunk, prefix sums counted as six columns.
    pub(super) fn bytes_needed(&self, scalars: &[Vec<f64>], n_bars: usize) -> usize {
        let mut bytes = 0;
        for slot in &self.plan.slots {
            let (parts, columns) = match slot {
                Slot::Source(_) => continue,
                Slot::Call { key, func, .. } => (key, if func.is_prefix() { 6 } else { 1 }),
                Slot::Formula { key, .. } | Slot::Mask { key, .. } => (key, 1),
            };
            let distinct = Distinct::new(parts, scalars).firsts.len();
            bytes += distinct * columns * n_bars * 8;
        }
        bytes
    }

    /// Computes the columns and masks that a chunk of trials needs over one symbol.
    pub(super) fn prepare(&mut self, symbol: usize, scalars: &[Vec<f64>]) -> Prepared {
        let mut prepared = Prepared { slots: Vec::new(), slot_of: Vec::new(), conditions: Vec::new() };
        for slot in 0..self.plan.slots.len() {
            let (items, of) = match &self.plan.slots[slot] {
                Slot::Source(_) => (Vec::new(), Vec::new()),
                Slot::Call { key, .. } | Slot::Formula { key, .. } | Slot::Mask { key, .. } => {
                    let (key, mask) = (key.clone(), matches!(self.plan.slots[slot], Slot::Mask { .. }));
                    self.items(symbol, &key, mask, scalars, &prepared, |this, first, prepared, scratch| {
                        this.compute(slot, symbol, first, &scalars[first], prepared, scratch)
                    })
                }
            };
            prepared.slots.push(items);
            prepared.slot_of.push(of);
        }
        let conditions: Vec<Condition> = self.conditions().into_iter().cloned().collect();
        for condition in &conditions {
            let mut out = PreparedCondition::default();
            if let Some(mask) = self.shared_mask(&condition.whole, symbol, scalars, &prepared) {
                out.masks.push(mask);
            } else {
                for (at, factor) in condition.factors.iter().enumerate() {
                    match self.shared_mask(factor, symbol, scalars, &prepared) {
                        Some(mask) => out.masks.push(mask),
                        None => out.residual.push(at),
                    }
                }
            }
            prepared.conditions.push(out);
        }
        prepared
    }

    /// The masks of a condition, if enough trials share each.
    fn shared_mask(
        &mut self,
        maskable: &Maskable,
        symbol: usize,
        scalars: &[Vec<f64>],
        prepared: &Prepared,
    ) -> Option<(Vec<Arc<Item>>, Vec<u32>)> {
        let distinct = Distinct::new(&maskable.key, scalars).firsts.len();
        if distinct * TRIALS_PER_MASK > scalars.len() {
            return None;
        }
        Some(self.items(symbol, &maskable.key, true, scalars, prepared, |this, first, prepared, scratch| {
            this.with_columns(symbol, first, &scalars[first], prepared, |frame| {
                column::mask(&maskable.tape, frame, scratch)
            })
        }))
    }

    /// Items for every distinct tuple, from the cache or computed side by side, and which of them each trial uses.
    fn items(
        &mut self,
        symbol: usize,
        parts: &KeyParts,
        mask: bool,
        scalars: &[Vec<f64>],
        prepared: &Prepared,
        compute: impl Fn(&Self, usize, &Prepared, &mut Scratch) -> Item + Sync,
    ) -> (Vec<Arc<Item>>, Vec<u32>) {
        let Distinct { firsts, of } = Distinct::new(parts, scalars);
        let keys: Vec<Key> = firsts
            .iter()
            .map(|first| Key {
                symbol: symbol as u32,
                shape: parts.shape,
                mask,
                scalars: parts.scalars.iter().map(|scalar| scalars[*first][*scalar].to_bits()).collect(),
            })
            .collect();
        let mut items: Vec<Option<Arc<Item>>> = keys.iter().map(|key| self.cache.get(key)).collect();
        let missing: Vec<usize> = (0..items.len()).filter(|at| items[*at].is_none()).collect();
        let this = &*self;
        let made: Vec<Arc<Item>> = missing
            .par_iter()
            .map_init(Scratch::default, |scratch, at| Arc::new(compute(this, firsts[*at], prepared, scratch)))
            .collect();
        for (at, item) in missing.into_iter().zip(made) {
            self.cache.insert(keys[at].clone(), item.clone());
            items[at] = Some(item);
        }
        (items.into_iter().flatten().collect(), of)
    }

    /// Computes one slot for one trial's scalars.
    fn compute(
        &self,
        slot: usize,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        scratch: &mut Scratch,
    ) -> Item {
        let data = &self.symbols[symbol];
        match &self.plan.slots[slot] {
            Slot::Call { func, inputs, arguments, .. } => {
                let inputs: Vec<Input<'_>> = inputs
                    .iter()
                    .map(|input| match &self.plan.slots[*input] {
                        Slot::Source(source) => Input::Column(data.source(*source)),
                        _ => match &*prepared.slots[*input][prepared.slot_of[*input][trial] as usize] {
                            Item::Column(column) => Input::Column(column),
                            Item::Prefix(prefix) => Input::Prefix(prefix),
                            Item::Mask(mask) => Input::Mask(mask),
                        },
                    })
                    .collect();
                let arguments: Vec<f64> = arguments.iter().map(|scalar| scalars[*scalar]).collect();
                column::call(*func, &inputs, &arguments, data.bars.len())
            }
            Slot::Formula { tape, .. } => self.with_columns(symbol, trial, scalars, prepared, |frame| {
                column::formula(tape, frame, scratch)
            }),
            Slot::Mask { tape, .. } => self
                .with_columns(symbol, trial, scalars, prepared, |frame| column::mask(tape, frame, scratch)),
            Slot::Source(_) => Item::Column(Vec::new()),
        }
    }

    /// Runs over the columns prepared so far.
    pub(super) fn with_columns<T>(
        &self,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        run: impl FnOnce(&Frame<'_>) -> T,
    ) -> T {
        let data = &self.symbols[symbol];
        let columns: Vec<&[f64]> = self
            .plan
            .slots
            .iter()
            .enumerate()
            .map(|(slot, kind)| match kind {
                Slot::Source(source) => data.source(*source),
                _ => match prepared
                    .slots
                    .get(slot)
                    .map(|items| &*items[prepared.slot_of[slot][trial] as usize])
                {
                    Some(Item::Column(column)) => column.as_slice(),
                    _ => &[],
                },
            })
            .collect();
        run(&Frame { columns: &columns, scalars, n_bars: data.bars.len() })
    }
}

/// The distinct tuples of some scalars among trials.
struct Distinct {
    /// The first trial of each tuple.
    firsts: Vec<usize>,
    /// The tuple of each trial.
    of: Vec<u32>,
}

impl Distinct {
    fn new(parts: &KeyParts, scalars: &[Vec<f64>]) -> Self {
        let mut firsts = Vec::new();
        let mut seen: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        let of = scalars
            .iter()
            .enumerate()
            .map(|(trial, values)| {
                let tuple: Vec<u64> = parts.scalars.iter().map(|scalar| values[*scalar].to_bits()).collect();
                *seen.entry(tuple).or_insert_with(|| {
                    firsts.push(trial);
                    firsts.len() as u32 - 1
                })
            })
            .collect();
        Self { firsts, of }
    }
}
