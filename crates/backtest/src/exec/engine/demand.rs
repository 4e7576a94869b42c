//! What a chunk of trials needs of one symbol, found out before anything is computed.
//!
//! A trial that has switched a gate off needs none of its columns, and one that never enters needs nothing at all.

use std::sync::Arc;

use super::Engine;
use crate::exec::distinct::{Distinct, Tuples};
use crate::plan::{Condition, Decided, ExitValue, KeyParts, Op, SidePlan, Slot, Tape};

/// A mask is shared when at least this many trials use it on average.
const TRIALS_PER_MASK: usize = 4;

/// A column of a function with a quick test of thresholds is shared when at least this many trials use it on average.
const TRIALS_PER_TESTED_COLUMN: usize = 64;

/// What a chunk of trials needs.
pub(super) struct Demand {
    /// For each condition of the plan, how its truth is found.
    pub(super) conditions: Vec<ConditionDemand>,
    /// By slot; none for a series of the data.
    pub(super) slots: Vec<Option<SlotDemand>>,
}

/// How the truth of one condition is found.
#[derive(Default)]
pub(super) struct ConditionDemand {
    /// Whether trials share masks of the whole of it.
    pub(super) is_shared: bool,
    /// The factors of which trials share masks.
    pub(super) shared: Vec<usize>,
    /// What is left of the other factors, for each trial.
    pub(super) left: Vec<Decided>,
}

/// What is needed of one slot.
pub(super) struct SlotDemand {
    pub(super) distinct: Arc<Distinct>,
    /// Whether each of the distinct tuples is needed.
    pub(super) needed: Vec<bool>,
    /// Whether it is computed where it is read, unless a column is there already.
    pub(super) is_lazy: bool,
}

/// Whether enough trials share what has this key.
fn is_shared(parts: &KeyParts, tuples: &mut Tuples<'_>) -> bool {
    tuples.of(parts).firsts.len() * TRIALS_PER_MASK <= tuples.scalars.len()
}

impl Demand {
    /// Memory for all columns, prefix sums counted as seven of them.
    pub(super) fn bytes(&self, slots: &[Slot], n_bars: usize) -> usize {
        let bytes = |(slot, demand): (&Slot, &Option<SlotDemand>)| {
            let columns = if matches!(slot, Slot::Call { func, .. } if func.is_sums()) { 7 } else { 1 };
            let written = demand.iter().filter(|demand| !demand.is_lazy);
            let needed = written.flat_map(|demand| &demand.needed).filter(|needed| **needed).count();
            needed * columns * n_bars * 8
        };
        slots.iter().zip(&self.slots).map(bytes).sum()
    }

    /// Marks what a formula reads for one trial.
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
            }
        }
    }

    /// Marks what is read of a condition that scalars have left.
    fn read_left(&mut self, left: &Decided, trial: usize) {
        if let Decided::Open(tapes) = left {
            tapes.iter().for_each(|tape| self.read(tape, trial));
        }
    }

    /// Marks the inputs of what is needed; slots come after their inputs.
    fn read_inputs(&mut self, slots: &[Slot], scalars: &[Vec<f64>]) {
        for at in (0..slots.len()).rev() {
            let (earlier, rest) = self.slots.split_at_mut(at);
            let Some(demand) = &rest[0] else { continue };
            let firsts = demand.distinct.firsts.iter().zip(&demand.needed);
            for first in firsts.filter_map(|(first, needed)| needed.then_some(*first)) {
                let inputs = match &slots[at] {
                    Slot::Source(_) => continue,
                    Slot::Call { inputs, .. } => inputs.clone(),
                    Slot::Formula { tape, .. } | Slot::Mask { tape, .. } => {
                        tape.pruned(&scalars[first]).slots()
                    }
                };
                for input in inputs {
                    if let Some(input) = &mut earlier[input] {
                        input.needed[input.distinct.of[first] as usize] = true;
                        // A call reads its inputs whole, and so does one that is computed where it is read.
                        input.is_lazy &= matches!(&slots[at], Slot::Formula { .. } | Slot::Mask { .. });
                    }
                }
            }
        }
    }
}

impl Engine<'_> {
    /// What the trials need over any symbol of their timeframe.
    pub(super) fn demand(&self, tuples: &mut Tuples<'_>) -> Demand {
        let slot = |slot: &Slot| {
            // A column that thresholds need not be asked of has to serve more trials to be worth its memory.
            let trials_per_column = match slot {
                Slot::Call { func, .. } => func.part.map(|part| match part.test {
                    Some(_) => TRIALS_PER_TESTED_COLUMN,
                    None => TRIALS_PER_MASK,
                }),
                _ => None,
            };
            let distinct = tuples.of(slot.key()?);
            let n_columns = distinct.firsts.len();
            let is_lazy = trials_per_column.is_some_and(|least| n_columns * least > tuples.scalars.len());
            Some(SlotDemand { needed: vec![false; n_columns], distinct, is_lazy })
        };
        let slots = self.plan.slots.iter().map(slot).collect();
        let mut demand = Demand { conditions: Vec::new(), slots };
        for side in self.plan.sides.iter().flatten() {
            demand_side(&mut demand, side, tuples);
        }
        demand.read_inputs(&self.plan.slots, tuples.scalars);
        demand
    }
}

/// Adds what one side needs.
fn demand_side(demand: &mut Demand, side: &SidePlan, tuples: &mut Tuples<'_>) {
    let scalars = tuples.scalars;
    let mut trials: Vec<bool> = vec![true; scalars.len()];
    let enter = condition(demand, &side.enter, &trials, tuples);
    for (enters, left) in trials.iter_mut().zip(&enter.left) {
        *enters = *left != Decided::Never;
    }
    demand.conditions.push(enter);
    for exit in &side.exits {
        let mut exists = trials.clone();
        if let Some(when) = &exit.when {
            for (trial, exists) in exists.iter_mut().enumerate().filter(|(_, exists)| **exists) {
                let left = when.decided(&scalars[trial]);
                demand.read_left(&left, trial);
                *exists = left != Decided::Never;
            }
        }
        match &exit.value {
            ExitValue::Signal(signal) => {
                let signal = condition(demand, signal, &exists, tuples);
                demand.conditions.push(signal);
            }
            ExitValue::Number(tape) => {
                for trial in (0..scalars.len()).filter(|trial| exists[*trial]) {
                    demand.read(&tape.pruned(&scalars[trial]), trial);
                }
            }
        }
    }
    if let Some(risk) = &side.risk {
        for trial in (0..scalars.len()).filter(|trial| trials[*trial]) {
            demand.read(&risk.pruned(&scalars[trial]), trial);
        }
    }
}

/// How the truth of a condition is found; `trials` are those that ask for it.
fn condition(
    demand: &mut Demand,
    condition: &Condition,
    trials: &[bool],
    tuples: &mut Tuples<'_>,
) -> ConditionDemand {
    let scalars = tuples.scalars;
    let mut out =
        ConditionDemand { is_shared: is_shared(&condition.whole.key, tuples), ..Default::default() };
    if out.is_shared {
        for first in &tuples.of(&condition.whole.key).firsts {
            demand.read(&condition.whole.tape, *first);
        }
    } else {
        let factors = 0..condition.factors.len();
        out.shared = factors.filter(|at| is_shared(&condition.factors[*at].itself.key, tuples)).collect();
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
    for (trial, asks) in trials.iter().enumerate() {
        let left = if *asks { decide(&residual, &scalars[trial]) } else { Decided::Never };
        demand.read_left(&left, trial);
        out.left.push(left);
    }
    out
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
