//! Which of several conditions is tested first: the one that gets rid of most bars at the least cost, as far as its formula tells.

use super::{Op, Slot, Tape};
use crate::graph::Op2;

/// How often a series crosses another one.
const CROSSES: f64 = 0.03;

/// What holds on nearly all bars still gets rid of some, and what holds on nearly none is not free.
const LIKELY: f64 = 0.98;
const UNLIKELY: f64 = 0.01;

impl Tape {
    /// The cost of getting rid of a bar by this condition: the smallest is tested first.
    pub(super) fn rank(&self, slots: &[Slot]) -> f64 {
        self.reads(slots) / -self.chance().ln()
    }

    /// On how many of all bars this condition is true, as far as its formula tells.
    pub(crate) fn chance(&self) -> f64 {
        self.chances().last().copied().unwrap_or(0.5).clamp(UNLIKELY, LIKELY)
    }

    /// About how much memory one bar reads: a value of a column is one, one that may have to be computed from others five. What a switch may spare
    /// counts half.
    fn reads(&self, slots: &[Slot]) -> f64 {
        let mut reads: Vec<f64> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let mut sum = match op {
                Op::Column { slot, .. } => match &slots[*slot] {
                    Slot::Call { func, .. } if func.at.is_some() || func.sums_read().is_some() => 5.0,
                    _ => 1.0,
                },
                Op::Point { .. } => 5.0,
                _ => 0.0,
            };
            op.operands(|operand| sum += reads[operand]);
            let is_switched = match op {
                Op::Logic(_, a, b) => reads[*a] == 0.0 || reads[*b] == 0.0,
                Op::Select(c, ..) | Op::SelectTruth(c, ..) => reads[*c] == 0.0,
                _ => false,
            };
            reads.push(if is_switched { 0.5 * sum } else { sum });
        }
        reads.last().copied().unwrap_or(0.0)
    }

    /// The same for each operation with a truth value.
    fn chances(&self) -> Vec<f64> {
        let mut chances: Vec<f64> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let chance = match *op {
                Op::Compare(Op2::Eq, ..) | Op::IsNa(_) => UNLIKELY,
                Op::Not(a) => 1.0 - chances[a],
                Op::Logic(Op2::And, a, b) if self.is_crossing(a, b) => CROSSES,
                Op::Logic(Op2::And, a, b) => chances[a] * chances[b],
                Op::Logic(_, a, b) => 1.0 - (1.0 - chances[a]) * (1.0 - chances[b]),
                Op::SelectTruth(_, a, b) => 0.5 * (chances[a] + chances[b]),
                _ => 0.5,
            };
            chances.push(chance);
        }
        chances
    }

    /// Whether two comparisons say that one series is beyond another now and was not before.
    fn is_crossing(&self, now: usize, before: usize) -> bool {
        match (&self.ops[now], &self.ops[before]) {
            (Op::Compare(now, a, _), Op::Compare(before, b, _)) => now.opposite() == *before && a != b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a ∘ b` of two columns, and of the same columns a bar before.
    fn compares(now: Op2, before: Op2) -> Vec<Op> {
        let column = |slot, shift| Op::Column { slot, shift };
        vec![
            column(0, None),
            column(1, None),
            Op::Compare(now, 0, 1),
            column(0, Some(0)),
            column(1, Some(0)),
            Op::Compare(before, 3, 4),
        ]
    }

    fn chance(ops: Vec<Op>, last: Op) -> f64 {
        Tape::new([ops, vec![last]].concat()).chance()
    }

    #[test]
    fn a_crossing_is_rarer_than_two_comparisons() {
        let both = Op::Logic(Op2::And, 2, 5);
        assert_eq!(chance(compares(Op2::Gt, Op2::Le), both.clone()), CROSSES);
        assert_eq!(chance(compares(Op2::Gt, Op2::Gt), both), 0.25);
        assert_eq!(chance(compares(Op2::Gt, Op2::Le), Op::Logic(Op2::Or, 2, 5)), 0.75);
    }

    #[test]
    fn a_crossing_behind_a_switch_is_tested_before_a_gate_that_may_be_off() {
        let crossing = [
            compares(Op2::Gt, Op2::Le),
            vec![Op::Logic(Op2::And, 2, 5), Op::Truth(1), Op::Logic(Op2::And, 7, 6)],
        ];
        let gate = [compares(Op2::Gt, Op2::Gt), vec![Op::Truth(1), Op::Not(6), Op::Logic(Op2::Or, 7, 2)]];
        let slots = vec![Slot::Source(crate::graph::Source::Close); 2];
        assert!(Tape::new(crossing.concat()).rank(&slots) < Tape::new(gate.concat()).rank(&slots));
    }
}
