//! Computes the columns and masks that a chunk of trials needs over one symbol, each distinct one once. One file because every kind of
//! column is computed from the others that are prepared beside it.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tidemill_market::indicator::{EMA_LANES, EmaStream, Function, Series, window};

use super::Engine;
use super::demand::{Demand, SlotDemand};
use crate::exec::cache::{Key, Kind};
use crate::exec::column::{self, Input, Item};
use crate::exec::distinct::Tuples;
use crate::exec::frame::{Frame, Scratch, WORD};
use crate::exec::gather::gather;
use crate::exec::lazy::Lazy;
use crate::exec::mask::{Mask, later};
use crate::exec::recursion::{LANES as RECURSION_LANES, recursions};
use crate::exec::symbol::Symbol;
use crate::graph::{Func, Grid};
use crate::plan::{Condition, Decided, Factor, KeyParts, Maskable, Slot, Tape};

/// Trials whose conditions are written out together. The blocks of all their columns should fit the second cache.
const TRIALS_PER_BLOCK: usize = 32;

/// A column that only neighbouring trials read is kept for a later chunk if fewer trials than this read it on average.
const TRIALS_PER_PASSING_COLUMN: usize = 16;

/// Columns and masks of a chunk of trials over one symbol.
#[derive(Default)]
pub(super) struct Prepared {
    /// Items by slot, then by distinct tuple.
    pub(super) slots: Vec<Vec<Arc<Item>>>,
    /// For each slot, the item of each trial.
    pub(super) slot_of: Vec<Arc<[u32]>>,
    /// For each slot, whether it is computed where it is read and no column is there.
    pub(super) is_lazy: Vec<bool>,
    /// For each slot that is computed some bars at a time, which items are needed.
    pub(super) tiled: Vec<Option<Vec<bool>>>,
    /// For each condition of the plan, how its truth is found.
    pub(super) conditions: Vec<PreparedCondition>,
}

/// How the truth of one condition is found for a chunk of trials.
pub(super) struct PreparedCondition {
    /// Whether a mask decides all of it.
    pub(super) is_whole: bool,
    /// Shared masks: that of the whole, or the bits of factors, which need no index.
    pub(super) masks: Vec<Shared>,
    /// What no mask decides, for each trial.
    pub(super) left: Vec<Arc<Decided>>,
    /// For each trial the bits of what was found ahead; nothing for any if nothing was.
    pub(super) ahead: Vec<Vec<Vec<u64>>>,
}

/// Items of distinct tuples, and which of them each trial uses.
pub(super) struct Shared {
    pub(super) items: Vec<Arc<Item>>,
    pub(super) of: Arc<[u32]>,
}

impl Shared {
    /// What a trial uses.
    pub(super) fn item(&self, trial: usize) -> &Item {
        &self.items[self.of[trial] as usize]
    }

    fn bits(&self, trial: usize) -> &[u64] {
        match self.item(trial) {
            Item::Bits(bits) => bits,
            _ => &[],
        }
    }
}

/// The identity of what a trial with these scalars uses.
pub(super) fn key(symbol: usize, parts: &KeyParts, kind: Kind, scalars: &[f64]) -> Key {
    let scalars = parts.scalars.iter().map(|scalar| scalars[*scalar].to_bits()).collect();
    Key { symbol: symbol as u32, shape: parts.shape, kind, scalars }
}

/// Trials to a group of at most `most`, so that all threads have the same number of groups.
fn per_group(n_trials: usize, most: usize) -> usize {
    let n_groups = n_trials.div_ceil(most).next_multiple_of(rayon::current_num_threads());
    n_trials.div_ceil(n_groups.max(1)).max(1)
}

/// Clears the bits past the last bar.
fn clear_past(words: &mut [u64], n_bars: usize) {
    if let Some(last) = words.last_mut()
        && !n_bars.is_multiple_of(WORD)
    {
        *last &= (1 << (n_bars % WORD)) - 1;
    }
}

impl Engine<'_> {
    /// Computes the columns and masks that a chunk of trials needs over one symbol.
    pub(super) fn prepare(&mut self, symbol: usize, tuples: &mut Tuples<'_>, demand: Demand) -> Prepared {
        let scalars = tuples.scalars;
        let mut prepared = Prepared::default();
        for (slot, needs) in demand.slots.into_iter().enumerate() {
            let (Some(needs), Some(parts)) = (needs, self.plan.slots[slot].key().cloned()) else {
                prepared.slots.push(Vec::new());
                prepared.slot_of.push(Arc::default());
                prepared.is_lazy.push(false);
                prepared.tiled.push(None);
                continue;
            };
            let kind =
                if matches!(self.plan.slots[slot], Slot::Mask { .. }) { Kind::Mask } else { Kind::Column };
            let items = match self.plan.slots[slot] {
                Slot::Over { over, input, .. } => self.over_items(over, input, &parts, scalars, &needs),
                _ => {
                    // What lives on the bars of one symbol is the same whichever is walked.
                    let symbol = self.grid(slot).symbol.map_or(symbol, |own| own as usize);
                    self.needed_items(symbol, &parts, kind, scalars, &needs, |this, missing| {
                        this.compute_all(slot, symbol, missing, scalars, &prepared)
                    })
                }
            };
            prepared.slots.push(items);
            prepared.slot_of.push(needs.distinct.of.clone());
            prepared.is_lazy.push(needs.is_lazy);
            prepared.tiled.push(needs.is_tiled.then_some(needs.needed));
        }
        let conditions: Vec<Condition> = self.plan.conditions().into_iter().cloned().collect();
        for (condition, needs) in conditions.iter().zip(demand.conditions) {
            let mut masks = Vec::new();
            if needs.is_shared {
                masks.push(self.conjunction(condition, symbol, tuples, &prepared));
            }
            for at in needs.shared {
                masks.push(self.factor(&condition.factors[at], symbol, tuples, &prepared));
            }
            let (is_whole, left, ahead) = (needs.is_shared, needs.left, needs.ahead);
            prepared.conditions.push(PreparedCondition { is_whole, masks, left, ahead });
        }
        prepared
    }

    /// The masks of a whole condition. Its factors depend on fewer scalars, so that fewer of them are computed.
    fn conjunction(
        &mut self,
        condition: &Condition,
        symbol: usize,
        tuples: &mut Tuples<'_>,
        prepared: &Prepared,
    ) -> Shared {
        if condition.factors.len() < 2 {
            return self.written(&condition.whole, Kind::Mask, symbol, tuples, prepared);
        }
        let factors: Vec<Shared> =
            condition.factors.iter().map(|factor| self.factor(factor, symbol, tuples, prepared)).collect();
        self.items(symbol, &condition.whole.key, Kind::Mask, tuples, |this, missing| {
            let and = |trial: &usize| {
                let mut words = vec![u64::MAX; this.symbols[symbol].bars.len().div_ceil(WORD)];
                for factor in &factors {
                    words.iter_mut().zip(factor.bits(*trial)).for_each(|(word, bits)| *word &= bits);
                }
                clear_past(&mut words, this.symbols[symbol].bars.len());
                Item::Mask(Mask::new(words))
            };
            missing.par_iter().map(and).collect()
        })
    }

    /// The bits of one factor; those of a comparison that another one of the strategy was some bars earlier are only moved.
    fn factor(
        &mut self,
        factor: &Factor,
        symbol: usize,
        tuples: &mut Tuples<'_>,
        prepared: &Prepared,
    ) -> Shared {
        if let Some((earlier, by)) = &factor.earlier {
            let scalars = tuples.scalars;
            let earlier = self.written(earlier, Kind::Bits, symbol, tuples, prepared);
            return self.items(symbol, &factor.itself.key, Kind::Bits, tuples, |_, missing| {
                let moved = |trial: &usize| Item::Bits(later(earlier.bits(*trial), scalars[*trial][*by]));
                missing.par_iter().map(moved).collect()
            });
        }
        self.written(&factor.itself, Kind::Bits, symbol, tuples, prepared)
    }

    /// A condition written out for every distinct tuple, with or without an index.
    fn written(
        &mut self,
        maskable: &Maskable,
        kind: Kind,
        symbol: usize,
        tuples: &mut Tuples<'_>,
        prepared: &Prepared,
    ) -> Shared {
        let scalars = tuples.scalars;
        if kind == Kind::Bits
            && let Some(opposite) = &maskable.negates
            && let Some(slots) = opposite.tape.compared()
            && self.has_bits(opposite, symbol, tuples)
        {
            let opposite = self.written(opposite, kind, symbol, tuples, prepared);
            return self.items(symbol, &maskable.key, kind, tuples, |this, missing| {
                this.negations(&opposite, slots, symbol, missing, scalars, prepared)
            });
        }
        self.items(symbol, &maskable.key, kind, tuples, |this, missing| {
            let item = |bits: Vec<u64>| match kind {
                Kind::Bits => Item::Bits(bits),
                Kind::Mask | Kind::Column => Item::Mask(Mask::new(bits)),
            };
            let n_bars = this.symbols[symbol].bars.len();
            let together = |scratch: &mut Scratch, group: &[usize]| {
                let truths = this.with_frames(n_bars, symbol, group, scalars, prepared, |frames| {
                    Frame::truths(frames, &maskable.tape, scratch)
                });
                truths.into_iter().map(item).collect::<Vec<Item>>()
            };
            let groups = missing.par_chunks(per_group(missing.len(), TRIALS_PER_BLOCK));
            groups.map_init(Scratch::default, together).flatten_iter().collect()
        })
    }

    /// Whether the bits of a condition are in the cache for every trial.
    fn has_bits(&self, maskable: &Maskable, symbol: usize, tuples: &mut Tuples<'_>) -> bool {
        let scalars = tuples.scalars;
        let key = |trial: &usize| key(symbol, &maskable.key, Kind::Bits, &scalars[*trial]);
        tuples.of(&maskable.key).firsts.iter().all(|trial| self.cache.contains(&key(trial)))
    }

    /// The bits of negated comparisons: where both columns have a value and the comparison is not true. That a column has values is
    /// found out once, and not for each pair.
    fn negations(
        &self,
        opposite: &Shared,
        slots: [usize; 2],
        symbol: usize,
        trials: &[usize],
        scalars: &[Vec<f64>],
        prepared: &Prepared,
    ) -> Vec<Item> {
        // A series of the data has one item, and no list of them.
        let item = |slot: usize, trial: usize| prepared.slot_of[slot].get(trial).copied().unwrap_or(0);
        let available = slots.map(|slot| {
            let firsts: FxHashMap<u32, usize> =
                trials.iter().map(|trial| (item(slot, *trial), *trial)).collect();
            let tape = Tape::available(slot);
            let one = |(item, trial): (u32, usize)| {
                let truth = |frame: &Frame<'_>| frame.truth(&tape, &mut Scratch::default());
                (item, self.with_columns(symbol, trial, &scalars[trial], prepared, truth))
            };
            firsts.into_par_iter().map(one).collect::<FxHashMap<u32, Vec<u64>>>()
        });
        let negation = |trial: &usize| {
            let [a, b] = [0, 1].map(|side| &available[side][&item(slots[side], *trial)]);
            let bits = opposite.bits(*trial).iter().zip(a.iter().zip(b));
            Item::Bits(bits.map(|(bits, (a, b))| !bits & a & b).collect())
        };
        trials.par_iter().map(negation).collect()
    }

    /// Items for every distinct tuple, from the cache or computed, and which of them each trial uses. `compute` is given a trial of
    /// each tuple that is missing.
    fn items(
        &mut self,
        symbol: usize,
        parts: &KeyParts,
        kind: Kind,
        tuples: &mut Tuples<'_>,
        compute: impl FnOnce(&Self, &[usize]) -> Vec<Item>,
    ) -> Shared {
        let (scalars, distinct) = (tuples.scalars, tuples.of(parts));
        let of = distinct.of.clone();
        let all = SlotDemand::all(distinct);
        Shared { items: self.needed_items(symbol, parts, kind, scalars, &all, compute), of }
    }

    /// Items for the distinct tuples that are needed, from the cache or computed; empty ones for the others.
    fn needed_items(
        &mut self,
        symbol: usize,
        parts: &KeyParts,
        kind: Kind,
        scalars: &[Vec<f64>],
        demand: &SlotDemand,
        compute: impl FnOnce(&Self, &[usize]) -> Vec<Item>,
    ) -> Vec<Arc<Item>> {
        let firsts = &demand.distinct.firsts;
        let none = Arc::new(Item::Column(Vec::new()));
        let mut items: Vec<Arc<Item>> = vec![none; firsts.len()];
        let mut missing: Vec<(usize, Key)> = Vec::new();
        for at in (0..firsts.len()).filter(|at| demand.needed[*at]) {
            let key = key(symbol, parts, kind, &scalars[firsts[at]]);
            match self.cache.get(&key) {
                Some(item) => items[at] = item,
                None if demand.is_lazy || demand.is_tiled => {}
                None => missing.push((at, key)),
            }
        }
        let trials: Vec<usize> = missing.iter().map(|(at, _)| firsts[*at]).collect();
        let bytes = trials.len() * demand.bar_bytes * self.symbols[symbol].bars.len();
        if demand.is_kept {
            self.cache.make_room(bytes, &self.spare);
        }
        // What a later chunk may ask for again stays as long as nothing has to go for it, unless so many trials read it that it is sooner
        // computed again, in memory that is in the processor's cache, than brought from elsewhere.
        let serves_few = demand.n_needed() * TRIALS_PER_PASSING_COLUMN > scalars.len();
        let is_kept =
            demand.is_kept || serves_few && self.n_chunks > 1 && self.are_more && self.cache.has_room(bytes);
        let made = compute(self, &trials);
        for ((at, key), item) in missing.into_iter().zip(made) {
            items[at] = Arc::new(item);
            if is_kept {
                self.cache.insert(key, items[at].clone(), &self.spare);
            }
        }
        items
    }

    /// Computes one slot for each of some trials, side by side.
    fn compute_all(
        &self,
        slot: usize,
        symbol: usize,
        trials: &[usize],
        scalars: &[Vec<f64>],
        prepared: &Prepared,
    ) -> Vec<Item> {
        // Averages of one series that differ in their span run together: each waits for itself, not for the others.
        const EMA: Func = Function::named("ema");
        if let Slot::Call { func, inputs, arguments, .. } = &self.plan.slots[slot]
            && *func == EMA
            && matches!(self.plan.slots[inputs[0]], Slot::Source(_))
        {
            let together = |group: &[usize]| {
                let spans: Vec<usize> =
                    group.iter().map(|trial| window(scalars[*trial][arguments[0]])).collect();
                let columns = self.columns(symbol, group[0], prepared);
                let x = columns[inputs[0]];
                let mut out: Vec<Vec<f64>> = spans.iter().map(|_| self.spare.column(x.len())).collect();
                let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
                EmaStream::new(&spans).advance(x, &mut slices);
                out.into_iter().map(Item::Column).collect::<Vec<Item>>()
            };
            return trials.par_chunks(per_group(trials.len(), EMA_LANES)).flat_map_iter(together).collect();
        }
        if let Slot::Recur { start, next, .. } = &self.plan.slots[slot] {
            let n_bars = self.series(slot, symbol).bars.len();
            let together = |scratch: &mut Scratch, group: &[usize]| {
                let mut out: Vec<Vec<f64>> = group.iter().map(|_| self.spare.column(n_bars)).collect();
                self.with_frames(n_bars, symbol, group, scalars, prepared, |frames| {
                    recursions(start, next, frames, &mut out, scratch);
                });
                out.into_iter().map(Item::Column).collect::<Vec<Item>>()
            };
            let groups = trials.par_chunks(per_group(trials.len(), RECURSION_LANES));
            return groups.map_init(Scratch::default, together).flatten_iter().collect();
        }
        trials
            .par_iter()
            .map_init(Scratch::default, |scratch, trial| {
                self.compute(slot, symbol, *trial, &scalars[*trial], prepared, scratch)
            })
            .collect()
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
        let n_bars = self.series(slot, symbol).bars.len();
        match &self.plan.slots[slot] {
            Slot::Call { func, inputs, arguments, .. } => {
                let inputs: Vec<Input<'_>> = inputs
                    .iter()
                    .map(|input| match &self.plan.slots[*input] {
                        Slot::Source(source) => Input::Column(self.series(*input, symbol).source(*source)),
                        _ => match self.item(*input, trial, prepared) {
                            Item::Column(column) => Input::Column(self.own_part(*input, symbol, column)),
                            Item::Prefix(prefix) => Input::Prefix(prefix),
                            Item::Mask(mask) => Input::Mask(mask),
                            Item::Bits(_) => Input::Column(&[]),
                        },
                    })
                    .collect();
                let arguments: Vec<f64> = arguments.iter().map(|scalar| scalars[*scalar]).collect();
                column::call(func, &inputs, &arguments, n_bars, &self.spare)
            }
            Slot::Formula { tape, .. } => self.with_bars(n_bars, symbol, trial, scalars, prepared, |frame| {
                column::formula(&tape.pruned(scalars), frame, scratch, &self.spare)
            }),
            Slot::Mask { tape, .. } => self.with_bars(n_bars, symbol, trial, scalars, prepared, |frame| {
                column::mask(&tape.pruned(scalars), frame, scratch)
            }),
            Slot::Gather { input, route, .. } => {
                let mut out = self.spare.column(n_bars);
                let columns = self.columns(symbol, trial, prepared);
                gather(columns[*input], self.grids.route(*route, symbol), &mut out);
                Item::Column(out)
            }
            // Recursions are computed for several trials at once.
            Slot::Source(_) | Slot::Over { .. } | Slot::Recur { .. } => Item::Column(Vec::new()),
        }
    }

    /// Runs over the columns of several trials that are prepared so far, on a grid that has so many bars.
    fn with_frames<T>(
        &self,
        n_bars: usize,
        symbol: usize,
        trials: &[usize],
        scalars: &[Vec<f64>],
        prepared: &Prepared,
        run: impl FnOnce(&[Frame<'_>]) -> T,
    ) -> T {
        let columns: Vec<Vec<&[f64]>> =
            trials.iter().map(|trial| self.columns(symbol, *trial, prepared)).collect();
        let lazies: Vec<Vec<Option<Lazy<'_>>>> =
            trials.iter().map(|trial| self.lazies(symbol, *trial, &scalars[*trial], prepared)).collect();
        let frames: Vec<Frame<'_>> = trials
            .iter()
            .zip(columns.iter().zip(&lazies))
            .map(|(trial, (columns, lazies))| Frame {
                columns,
                lazies,
                tiles: &[],
                compared: &[],
                scalars: &scalars[*trial],
                n_bars,
                block_words: self.block_words,
            })
            .collect();
        run(&frames)
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
        self.with_bars(self.symbols[symbol].bars.len(), symbol, trial, scalars, prepared, run)
    }

    /// The same over a grid that has so many bars.
    fn with_bars<T>(
        &self,
        n_bars: usize,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        run: impl FnOnce(&Frame<'_>) -> T,
    ) -> T {
        let columns = self.columns(symbol, trial, prepared);
        let lazies = self.lazies(symbol, trial, scalars, prepared);
        let block_words = self.block_words;
        run(&Frame {
            columns: &columns,
            lazies: &lazies,
            tiles: &[],
            compared: &[],
            scalars,
            n_bars,
            block_words,
        })
    }

    /// The columns of one trial that are computed where they are read, by slot; those of slots that are prepared so far.
    pub(super) fn lazies<'b>(
        &'b self,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &'b Prepared,
    ) -> Vec<Option<Lazy<'b>>> {
        let lazy = |(slot, is_lazy): (usize, &bool)| {
            let Slot::Call { func, inputs, arguments, .. } = &self.plan.slots[slot] else { return None };
            let is_written =
                !matches!(self.item(slot, trial, prepared), Item::Column(column) if column.is_empty());
            let part = func.part.filter(|_| *is_lazy && !is_written)?;
            let series = inputs.iter().map(|input| match &self.plan.slots[*input] {
                Slot::Source(source) => Series::Column(self.series(*input, symbol).source(*source)),
                _ => match self.item(*input, trial, prepared) {
                    Item::Column(column) => Series::Column(self.own_part(*input, symbol, column)),
                    Item::Prefix(prefix) => Series::Sums(prefix),
                    Item::Mask(_) | Item::Bits(_) => Series::Column(&[]),
                },
            });
            let arguments = arguments.iter().map(|scalar| scalars[*scalar]).collect();
            Some(Lazy::new(part, series.collect(), arguments))
        };
        prepared.is_lazy.iter().enumerate().map(lazy).collect()
    }

    /// What a trial uses of a slot that is no series of the data.
    fn item<'b>(&self, slot: usize, trial: usize, prepared: &'b Prepared) -> &'b Item {
        &prepared.slots[slot][prepared.slot_of[slot][trial] as usize]
    }

    /// The columns of one trial that are prepared so far, by slot.
    pub(super) fn columns<'b>(
        &'b self,
        symbol: usize,
        trial: usize,
        prepared: &'b Prepared,
    ) -> Vec<&'b [f64]> {
        let slot = |(slot, kind): (usize, &Slot)| match kind {
            Slot::Source(source) => self.series(slot, symbol).source(*source),
            _ => match prepared.slots.get(slot).filter(|items| !items.is_empty()) {
                Some(items) => match &*items[prepared.slot_of[slot][trial] as usize] {
                    Item::Column(column) => self.own_part(slot, symbol, column),
                    _ => &[],
                },
                None => &[],
            },
        };
        self.plan.slots.iter().enumerate().map(slot).collect()
    }

    /// The grid of a slot.
    fn grid(&self, slot: usize) -> Grid {
        self.plan.grids[self.plan.grid_of[slot]]
    }

    /// The bars that a slot lives on where a symbol is walked.
    fn series(&self, slot: usize, symbol: usize) -> &Symbol<'_> {
        self.grids.series(self.grid(slot), &self.symbols, symbol)
    }

    /// What a symbol has of a column: all of it, but for those over all symbols.
    fn own_part<'b>(&self, slot: usize, symbol: usize, column: &'b [f64]) -> &'b [f64] {
        match self.plan.slots[slot] {
            Slot::Over { .. } => {
                column.get(self.grids.start[symbol]..self.grids.start[symbol + 1]).unwrap_or_default()
            }
            _ => column,
        }
    }
}
