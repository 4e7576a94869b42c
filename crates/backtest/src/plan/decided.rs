//! Formulas with the scalars of one trial filled in: what a switch decides is dropped, with all that only it reads.
//!
//! `not use_rsi or rsi(close, n) < high` is true without a look at any bar where `use_rsi` is off, and a plain comparison where it is on.

use std::borrow::Cow;

use super::{Op, Tape};
use crate::graph::Op2;
use crate::point;

/// What the scalars of a trial leave of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Decided {
    /// It is never true.
    Never,
    /// It is true where all of these are; everywhere if there are none.
    Open(Vec<Tape>),
}

/// What an operation comes to.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    /// True or false on every bar.
    Known(bool),
    /// The value of an operation, this one or an earlier one.
    Of(usize),
}

impl Tape {
    /// What the scalars of a trial leave of a condition, as a conjunction.
    pub fn decided(&self, scalars: &[f64]) -> Decided {
        let values = self.values(scalars);
        let mut factors: Vec<usize> = Vec::new();
        let mut stack = Vec::from_iter(self.ops.len().checked_sub(1));
        while let Some(at) = stack.pop() {
            match values[at] {
                Value::Known(true) => {}
                Value::Known(false) => return Decided::Never,
                Value::Of(at) => match self.ops[at] {
                    // Neither true nor false: not true.
                    Op::Truth(_) => return Decided::Never,
                    Op::Logic(Op2::And, a, b) => stack.extend([b, a]),
                    _ if factors.contains(&at) => {}
                    _ => factors.push(at),
                },
            }
        }
        Decided::Open(factors.into_iter().map(|root| self.rooted(root, &values)).collect())
    }

    /// The same formula without the branches that the scalars of a trial rule out.
    pub fn pruned(&self, scalars: &[f64]) -> Cow<'_, Self> {
        // Of a switch alone there is nothing to rule out.
        if self.ops.len() == 1 || self.switches().next().is_none() {
            return Cow::Borrowed(self);
        }
        let values = self.values(scalars);
        let holds = |op: &Op, value: f64| matches!(op, Op::Truth(scalar) if scalars[*scalar] == value);
        Cow::Owned(match values.last() {
            Some(Value::Of(root)) => self.rooted(*root, &values),
            // A switch that says the same, if there is one.
            Some(Value::Known(known)) => match self.ops.iter().find(|op| holds(op, point::truth(*known))) {
                Some(switch) => Self::new(vec![switch.clone()]),
                None => self.rooted(self.ops.len() - 1, &values),
            },
            None => Self::default(),
        })
    }

    /// The scalars that decide branches.
    pub fn switches(&self) -> impl Iterator<Item = usize> {
        self.ops.iter().filter_map(|op| if let Op::Truth(scalar) = op { Some(*scalar) } else { None })
    }

    /// What each operation comes to.
    fn values(&self, scalars: &[f64]) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(self.ops.len());
        for (at, op) in self.ops.iter().enumerate() {
            let value = match *op {
                Op::Truth(scalar) if scalars[scalar] == 1.0 => Value::Known(true),
                Op::Truth(scalar) if scalars[scalar] == 0.0 => Value::Known(false),
                Op::Not(a) => match values[a] {
                    Value::Known(known) => Value::Known(!known),
                    Value::Of(_) => Value::Of(at),
                },
                Op::Logic(op, a, b) => {
                    // What the other operand decides by itself; otherwise the operand says nothing.
                    let decides = op == Op2::Or;
                    match (values[a], values[b]) {
                        (Value::Known(known), _) | (_, Value::Known(known)) if known == decides => {
                            Value::Known(decides)
                        }
                        (Value::Known(_), other) | (other, Value::Known(_)) => other,
                        _ => Value::Of(at),
                    }
                }
                Op::Select(c, a, b) | Op::SelectTruth(c, a, b) => match values[c] {
                    Value::Known(true) => values[a],
                    Value::Known(false) => values[b],
                    Value::Of(_) => Value::Of(at),
                },
                _ => Value::Of(at),
            };
            values.push(value);
        }
        values
    }

    /// The part of the formula that ends with `root`. An operand that is known is computed all the same where something open reads it.
    fn rooted(&self, root: usize, values: &[Value]) -> Self {
        let source = |operand: usize| match values[operand] {
            Value::Of(at) => at,
            Value::Known(_) => operand,
        };
        let mut used = vec![false; root + 1];
        used[root] = true;
        for at in (0..=root).rev() {
            if used[at] {
                self.ops[at].operands(|operand| used[source(operand)] = true);
            }
        }
        let mut place = vec![0; root + 1];
        let mut ops: Vec<Op> = Vec::new();
        for at in (0..=root).filter(|at| used[*at]) {
            place[at] = ops.len();
            ops.push(self.ops[at].moved(|operand| place[source(operand)]));
        }
        Self::new(ops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(slot: usize) -> Op {
        Op::Column { slot, shift: None }
    }

    /// `(a and x > y) or not b`, with the switches `a` and `b`.
    fn gate() -> Tape {
        Tape::new(vec![
            Op::Truth(0),
            column(0),
            column(1),
            Op::Compare(Op2::Gt, 1, 2),
            Op::Logic(Op2::And, 0, 3),
            Op::Truth(1),
            Op::Not(5),
            Op::Logic(Op2::Or, 4, 6),
        ])
    }

    #[test]
    fn switches_leave_what_they_do_not_decide() {
        let comparison = Tape::new(vec![column(0), column(1), Op::Compare(Op2::Gt, 0, 1)]);
        assert_eq!(gate().decided(&[1.0, 1.0]), Decided::Open(vec![comparison.clone()]));
        assert_eq!(gate().decided(&[0.0, 1.0]), Decided::Never);
        assert_eq!(gate().decided(&[0.0, 0.0]), Decided::Open(vec![]));
        assert_eq!(*gate().pruned(&[1.0, 1.0]), comparison);
        assert_eq!(*gate().pruned(&[1.0, 0.0]), Tape::new(vec![Op::Truth(0)]));
        // A switch that is not available is not true, and neither is what it is a factor of.
        assert_eq!(gate().decided(&[f64::NAN, 1.0]), Decided::Never);
        assert!(matches!(gate().decided(&[1.0, f64::NAN]), Decided::Open(left) if left[0].ops.len() == 6));
        assert_eq!(Tape::new(vec![Op::Truth(0)]).decided(&[f64::NAN]), Decided::Never);
    }

    #[test]
    fn what_is_left_is_a_conjunction() {
        let ops = vec![
            column(0),
            column(1),
            Op::Compare(Op2::Gt, 0, 1),
            Op::Compare(Op2::Lt, 0, 1),
            Op::Logic(Op2::And, 2, 3),
            Op::Logic(Op2::And, 4, 2),
        ];
        let one = |op: Op2| Tape::new(vec![column(0), column(1), Op::Compare(op, 0, 1)]);
        assert_eq!(Tape::new(ops).decided(&[]), Decided::Open(vec![one(Op2::Gt), one(Op2::Lt)]));
    }
}
