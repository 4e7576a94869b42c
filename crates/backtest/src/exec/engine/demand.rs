//! What a chunk of trials needs of one symbol, found out before anything is computed.
//!
//! A trial that has switched a gate off needs none of its columns, and one that never enters needs nothing at all.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Engine;
use crate::exec::distinct::{Distinct, Tuples};
use crate::exec::tile;
use crate::plan::{Condition, Decided, ExitValue, KeyParts, Op, SidePlan, Slot, Tape};

/// A mask is shared when at least this many trials use it on average.
const TRIALS_PER_MASK: usize = 4;

/// A column of a function with a quick test of thresholds is shared when at least this many trials use it on average.
const TRIALS_PER_TESTED_COLUMN: usize = 64;

/// A column of a recursion that can be computed some bars at a time is shared when at least this many trials use it on average.
const TRIALS_PER_TILED_COLUMN: usize = 32;

/// What trials share, decided for a whole chunk: its parts follow it, however few trials they have.
pub(super) struct Sharing {
    /// By slot: whether it is computed where it is read, and whether it may be computed some bars at a time.
    slots: Vec<(bool, bool)>,
    /// For each condition of the plan, whether trials share masks of the whole of it, or else of which factors.
    conditions: Vec<(bool, Vec<usize>)>,
}

/// Memory of an item of a slot for each bar at most: prefix sums are up to nine columns.
fn bar_bytes(slot: &Slot) -> usize {
    match slot {
        Slot::Call { func, .. } if func.is_sums() => 68,
        Slot::Mask { .. } => 1,
        _ => 8,
    }
}

impl Sharing {
    /// The trials in an order in which those that read the same large columns are neighbours.
    pub(super) fn order(&self, slots: &[Slot], tuples: &mut Tuples<'_>) -> Vec<usize> {
        let mut heavy: Vec<(usize, Arc<Distinct>)> = Vec::new();
        for (slot, (is_lazy, is_tiled)) in slots.iter().zip(&self.slots) {
            let Some(key) = slot.key().filter(|_| !is_lazy && !is_tiled) else { continue };
            let distinct = tuples.of(key);
            if distinct.firsts.len() > 1 {
                heavy.push((bar_bytes(slot) * distinct.firsts.len(), distinct));
            }
        }
        heavy.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        heavy.truncate(3);
        let mut order: Vec<usize> = (0..tuples.scalars.len()).collect();
        order.sort_by_cached_key(|trial| {
            heavy.iter().map(|(_, distinct)| distinct.of[*trial]).collect::<Vec<u32>>()
        });
        order
    }

    /// The same for a walk that finds its signals as it goes: no column is computed some bars at a time.
    pub(super) fn without_tiles(mut self) -> Self {
        self.slots.iter_mut().for_each(|(_, is_tiled)| *is_tiled = false);
        self
    }
}

/// What a chunk of trials needs.
pub(super) struct Demand {
    /// For each condition of the plan, how its truth is found.
    pub(super) conditions: Vec<ConditionDemand>,
    /// By slot; none for a series of the data.
    pub(super) slots: Vec<Option<SlotDemand>>,
}

/// How the truth of one condition is found.
pub(super) struct ConditionDemand {
    /// Whether trials share masks of the whole of it.
    pub(super) is_shared: bool,
    /// The factors of which trials share masks.
    pub(super) shared: Vec<usize>,
    /// What is left of the other factors, for each trial.
    pub(super) left: Vec<Arc<Decided>>,
    /// For each trial the bits of what was found ahead; nothing for any if nothing was.
    pub(super) ahead: Vec<Vec<Vec<u64>>>,
}

/// What is needed of one slot.
pub(super) struct SlotDemand {
    pub(super) distinct: Arc<Distinct>,
    /// Whether each of the distinct tuples is needed.
    pub(super) needed: Vec<bool>,
    /// Whether it is computed where it is read, unless a column is there already.
    pub(super) is_lazy: bool,
    /// Whether it is computed some bars at a time while conditions are written out, unless a column is there already.
    pub(super) is_tiled: bool,
    /// Memory of an item for each bar.
    pub(super) bar_bytes: usize,
    /// Whether its items are kept for later trials.
    pub(super) is_kept: bool,
}

impl SlotDemand {
    /// How many items are needed.
    pub(super) fn n_needed(&self) -> usize {
        self.needed.iter().filter(|needed| **needed).count()
    }

    /// Everything of a key, written out.
    pub(super) fn all(distinct: Arc<Distinct>) -> Self {
        let needed = vec![true; distinct.firsts.len()];
        Self { distinct, needed, is_lazy: false, is_tiled: false, bar_bytes: 0, is_kept: true }
    }
}

/// Whether enough trials share what has this key.
fn is_shared(parts: &KeyParts, tuples: &mut Tuples<'_>) -> bool {
    tuples.of(parts).firsts.len() * TRIALS_PER_MASK <= tuples.scalars.len()
}

impl Demand {
    /// Memory of one item of each slot for each bar; none for what is not written out.
    pub(super) fn item_bytes(&self) -> Vec<usize> {
        let is_written = |demand: &&SlotDemand| !demand.is_lazy && !demand.is_tiled;
        let bytes = |demand: &Option<SlotDemand>| {
            demand.as_ref().filter(is_written).map_or(0, |demand| demand.bar_bytes)
        };
        self.slots.iter().map(bytes).collect()
    }

    /// Marks what a formula reads for one trial, at any bar.
    fn read(&mut self, tape: &Tape, trial: usize) {
        for op in &tape.ops {
            let (slot, is_whole) = match op {
                Op::Column { slot, .. } => (*slot, false),
                Op::Point { input, .. } => (*input, true),
                _ => continue,
            };
            if let Some(demand) = &mut self.slots[slot] {
                demand.needed[demand.distinct.of[trial] as usize] = true;
                demand.is_lazy &= !is_whole;
                demand.is_tiled = false;
            }
        }
    }

    /// Marks what is read of a condition that scalars have left, at any bar.
    fn read_left(&mut self, left: &Decided, trial: usize) {
        if let Decided::Open(tapes) = left {
            tapes.iter().for_each(|tape| self.read(tape, trial));
        }
    }

    /// Marks what is read of a condition that scalars have left, which can be written out in the order of the bars.
    fn read_in_order(&mut self, left: &Decided, trial: usize, scalars: &[f64]) {
        let Decided::Open(tapes) = left else { return };
        for op in tapes.iter().flat_map(|tape| &tape.ops) {
            match op {
                Op::Column { slot, shift } => {
                    let Some(demand) = &mut self.slots[*slot] else { continue };
                    demand.needed[demand.distinct.of[trial] as usize] = true;
                    let ago = shift.map_or(0.0, |scalar| scalars[scalar]);
                    let is_too_long_ago = ago > tile::MOST_HISTORY as f64;
                    demand.is_tiled &= !is_too_long_ago;
                }
                Op::Point { .. } => self.read(&Tape::new(vec![op.clone()]), trial),
                _ => {}
            }
        }
    }

    /// Marks the inputs of what is needed; slots come after their inputs.
    pub(super) fn read_inputs(&mut self, slots: &[Slot], scalars: &[Vec<f64>]) {
        for at in (0..slots.len()).rev() {
            let (earlier, rest) = self.slots.split_at_mut(at);
            let Some(demand) = &rest[0] else { continue };
            let firsts = demand.distinct.firsts.iter().zip(&demand.needed);
            for first in firsts.filter_map(|(first, needed)| needed.then_some(*first)) {
                // What is compared over all symbols is computed apart, for all of them.
                let whole = if matches!(slots[at], Slot::Over { .. }) { &[] } else { slots[at].inputs() };
                let mut inputs = whole.to_vec();
                inputs.extend(slots[at].tapes().flat_map(|tape| tape.pruned(&scalars[first]).slots()));
                for input in inputs {
                    if let Some(input) = &mut earlier[input] {
                        input.needed[input.distinct.of[first] as usize] = true;
                        // A call reads its inputs whole, and so does one that is computed where it is read.
                        input.is_lazy &= matches!(&slots[at], Slot::Formula { .. } | Slot::Mask { .. });
                        input.is_tiled = false;
                    }
                }
            }
        }
    }
}

impl Engine<'_> {
    /// What the trials share.
    pub(super) fn sharing(&self, tuples: &mut Tuples<'_>) -> Sharing {
        let n_trials = tuples.scalars.len();
        let slot = |slot: &Slot| {
            let (Slot::Call { func, .. }, Some(key)) = (slot, slot.key()) else { return (false, false) };
            let n_columns = tuples.of(key).firsts.len();
            // A column that thresholds need not be asked of has to serve more trials to be worth its memory.
            let is_lazy = func.part.is_some_and(|part| {
                let least = if part.test.is_some() { TRIALS_PER_TESTED_COLUMN } else { TRIALS_PER_MASK };
                n_columns * least > n_trials
            });
            let is_tiled =
                tile::can_hold(slot, &self.plan.slots) && n_columns * TRIALS_PER_TILED_COLUMN > n_trials;
            (is_lazy, is_tiled)
        };
        let slots = self.plan.slots.iter().map(slot).collect();
        let condition = |condition: &Condition| {
            let is_whole = is_shared(&condition.whole.key, tuples);
            let factors = (0..condition.factors.len())
                .filter(|at| !is_whole && is_shared(&condition.factors[*at].itself.key, tuples));
            (is_whole, factors.collect())
        };
        Sharing { slots, conditions: self.plan.conditions().into_iter().map(condition).collect() }
    }

    /// What the trials need over any symbol of their timeframe.
    pub(super) fn demand(&self, tuples: &mut Tuples<'_>, sharing: &Sharing) -> Demand {
        let mut demand = self.no_demand(tuples, sharing);
        for side in self.plan.sides.iter().flatten() {
            demand_side(&mut demand, side, tuples, sharing);
        }
        demand.read_inputs(&self.plan.slots, tuples.scalars);
        demand
    }

    /// What the trials need of one slot.
    pub(super) fn demand_of(&self, slot: usize, tuples: &mut Tuples<'_>) -> Demand {
        let sharing = self.sharing(tuples).without_tiles();
        let mut demand = self.no_demand(tuples, &sharing);
        if let Some(demand) = &mut demand.slots[slot] {
            demand.needed.fill(true);
            demand.is_lazy = false;
        }
        demand.read_inputs(&self.plan.slots, tuples.scalars);
        demand
    }

    /// Nothing is needed yet.
    fn no_demand(&self, tuples: &mut Tuples<'_>, sharing: &Sharing) -> Demand {
        let slot = |(slot, (is_lazy, is_tiled)): (&Slot, &(bool, bool))| {
            let mut demand = SlotDemand::all(tuples.of(slot.key()?));
            demand.needed.fill(false);
            (demand.is_lazy, demand.is_tiled) = (*is_lazy, *is_tiled);
            demand.bar_bytes = bar_bytes(slot);
            Some(demand)
        };
        let slots = self.plan.slots.iter().zip(&sharing.slots).map(slot).collect();
        Demand { conditions: Vec::new(), slots }
    }
}

/// Adds what one side needs.
fn demand_side(demand: &mut Demand, side: &SidePlan, tuples: &mut Tuples<'_>, sharing: &Sharing) {
    let scalars = tuples.scalars;
    let mut trials: Vec<bool> = vec![true; scalars.len()];
    let enter = condition(demand, &side.enter, &trials, tuples, sharing);
    for (enters, left) in trials.iter_mut().zip(&enter.left) {
        *enters = **left != Decided::Never;
    }
    demand.conditions.push(enter);
    for exit in &side.exits {
        let mut exists = trials.clone();
        if let Some(when) = &exit.when {
            let mut remains = Remains::new(vec![when]);
            for (trial, exists) in exists.iter_mut().enumerate().filter(|(_, exists)| **exists) {
                let left = remains.of(&scalars[trial]);
                demand.read_left(&left, trial);
                *exists = *left != Decided::Never;
            }
        }
        match &exit.value {
            ExitValue::Signal(signal) => {
                let signal = condition(demand, signal, &exists, tuples, sharing);
                demand.conditions.push(signal);
            }
            ExitValue::Number(tape) => {
                for trial in (0..scalars.len()).filter(|trial| exists[*trial]) {
                    demand.read(&tape.pruned(&scalars[trial]), trial);
                }
            }
        }
    }
    for formula in side.risk.iter().chain(&side.size) {
        for trial in (0..scalars.len()).filter(|trial| trials[*trial]) {
            demand.read(&formula.pruned(&scalars[trial]), trial);
        }
    }
}

/// How the truth of a condition is found; `trials` are those that ask for it.
fn condition(
    demand: &mut Demand,
    condition: &Condition,
    trials: &[bool],
    tuples: &mut Tuples<'_>,
    sharing: &Sharing,
) -> ConditionDemand {
    let scalars = tuples.scalars;
    let (is_shared, shared) = sharing.conditions[demand.conditions.len()].clone();
    let mut out = ConditionDemand { is_shared, shared, left: Vec::new(), ahead: Vec::new() };
    if out.is_shared {
        for first in &tuples.of(&condition.whole.key).firsts {
            demand.read(&condition.whole.tape, *first);
        }
    }
    for at in &out.shared {
        let factor = &condition.factors[*at].itself;
        for first in &tuples.of(&factor.key).firsts {
            demand.read(&factor.tape, *first);
        }
    }
    let residual: Vec<&Tape> = (0..condition.factors.len())
        .filter(|at| !out.is_shared && !out.shared.contains(at))
        .map(|at| &condition.factors[at].itself.tape)
        .collect();
    let (mut remains, never) = (Remains::new(residual), Arc::new(Decided::Never));
    for (trial, asks) in trials.iter().enumerate() {
        let left = if *asks { remains.of(&scalars[trial]) } else { never.clone() };
        demand.read_in_order(&left, trial, &scalars[trial]);
        out.left.push(left);
    }
    out
}

/// What scalars leave of a conjunction, found out once for all trials whose switches stand the same.
struct Remains<'a> {
    factors: Vec<&'a Tape>,
    switches: Vec<usize>,
    known: FxHashMap<Vec<u64>, Arc<Decided>>,
}

impl<'a> Remains<'a> {
    fn new(factors: Vec<&'a Tape>) -> Self {
        let switches = factors.iter().flat_map(|tape| tape.switches()).collect();
        Self { factors, switches, known: FxHashMap::default() }
    }

    fn of(&mut self, scalars: &[f64]) -> Arc<Decided> {
        let switches = self.switches.iter().map(|scalar| scalars[*scalar].to_bits()).collect();
        self.known.entry(switches).or_insert_with(|| Arc::new(decide(&self.factors, scalars))).clone()
    }
}

/// What the scalars of a trial leave of a conjunction.
fn decide(factors: &[&Tape], scalars: &[f64]) -> Decided {
    let mut open: Vec<Tape> = Vec::new();
    for factor in factors {
        match factor.decided(scalars) {
            Decided::Never => return Decided::Never,
            Decided::Open(tapes) => open.extend(tapes),
        }
    }
    Decided::Open(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Op2;

    #[test]
    fn trials_share_what_is_left_where_their_switches_stand_the_same() {
        let column = |slot: usize| Op::Column { slot, shift: None };
        // `switch 1 and x > scalar 0`.
        let gate = Tape::new(vec![
            column(0),
            Op::Scalar(0),
            Op::Compare(Op2::Gt, 0, 1),
            Op::Truth(1),
            Op::Logic(Op2::And, 2, 3),
        ]);
        let plain = Tape::new(vec![column(1), Op::Scalar(2), Op::Compare(Op2::Lt, 0, 1)]);
        let factors = [&plain, &gate];
        let mut remains = Remains::new(factors.to_vec());
        let trials = [[3.0, 1.0, 4.0], [5.0, 0.0, 4.0], [7.0, 1.0, 8.0], [7.0, f64::NAN, 8.0]];
        let left = trials.map(|scalars| remains.of(&scalars));
        for (left, scalars) in left.iter().zip(&trials) {
            assert_eq!(**left, decide(&factors, scalars), "{scalars:?}");
        }
        assert!(Arc::ptr_eq(&left[0], &left[2]) && *left[1] == Decided::Never);
        assert_eq!(remains.known.len(), 3);
    }
}
