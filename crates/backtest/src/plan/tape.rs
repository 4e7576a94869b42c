//! A pointwise formula as a list of operations, each on the results of earlier ones.

use rustc_hash::FxHashMap;

use super::Planner;
use crate::graph::{Func, Node, NodeId, Op1, Op2, Position, Type};

/// One operation; operands are positions of earlier operations.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Reads a slot, some bars ago if a scalar says so.
    Column {
        /// The slot.
        slot: usize,
        /// The scalar that says how many bars ago.
        shift: Option<usize>,
    },
    /// Computes a function at one bar, where no column was worth making.
    Point {
        /// The function.
        func: Func,
        /// Slot of its input.
        input: usize,
        /// Scalars of its arguments.
        arguments: Vec<usize>,
        /// The scalar that says how many bars ago.
        shift: Option<usize>,
    },
    /// A scalar number.
    Scalar(usize),
    /// A scalar truth value.
    Truth(usize),
    /// A value of the trade being opened, or the last one of a recursion.
    Position(Position),
    /// Number to number.
    Unary(Op1, usize),
    /// Numbers to number.
    Binary(Op2, usize, usize),
    /// Numbers to truth.
    Compare(Op2, usize, usize),
    /// Number to truth: not available.
    IsNa(usize),
    /// Truth to truth.
    Not(usize),
    /// Truths to truth.
    Logic(Op2, usize, usize),
    /// Truth and numbers to number.
    Select(usize, usize, usize),
    /// Truths to truth.
    SelectTruth(usize, usize, usize),
}

impl Op {
    /// Whether its result is a truth value.
    pub(crate) fn is_truth(&self) -> bool {
        match self {
            Self::Truth(_)
            | Self::Compare(..)
            | Self::IsNa(_)
            | Self::Not(_)
            | Self::Logic(..)
            | Self::SelectTruth(..) => true,
            Self::Column { .. }
            | Self::Point { .. }
            | Self::Scalar(_)
            | Self::Position(_)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Select(..) => false,
        }
    }

    /// Visits its operands.
    pub(crate) fn operands(&self, mut visit: impl FnMut(usize)) {
        match *self {
            Self::Column { .. }
            | Self::Point { .. }
            | Self::Scalar(_)
            | Self::Truth(_)
            | Self::Position(_) => {}
            Self::Unary(_, a) | Self::IsNa(a) | Self::Not(a) => visit(a),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::Logic(_, a, b) => {
                visit(a);
                visit(b);
            }
            Self::Select(c, a, b) | Self::SelectTruth(c, a, b) => [c, a, b].into_iter().for_each(visit),
        }
    }

    /// The same operation on operands in other places.
    pub(super) fn moved(&self, to: impl Fn(usize) -> usize) -> Self {
        match self.clone() {
            Self::Unary(op, a) => Self::Unary(op, to(a)),
            Self::IsNa(a) => Self::IsNa(to(a)),
            Self::Not(a) => Self::Not(to(a)),
            Self::Binary(op, a, b) => Self::Binary(op, to(a), to(b)),
            Self::Compare(op, a, b) => Self::Compare(op, to(a), to(b)),
            Self::Logic(op, a, b) => Self::Logic(op, to(a), to(b)),
            Self::Select(c, a, b) => Self::Select(to(c), to(a), to(b)),
            Self::SelectTruth(c, a, b) => Self::SelectTruth(to(c), to(a), to(b)),
            leaf => leaf,
        }
    }
}

/// Operations in order; the last one is the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape {
    /// The operations.
    pub ops: Vec<Op>,
    /// For each operation with a truth value: whether its "true" and its "false" bits are needed.
    pub needs: Vec<(bool, bool)>,
    /// For each scalar: whether something reads it lane by lane; a comparison does so only with another scalar.
    pub spreads: Vec<bool>,
}

impl Tape {
    /// Finds out what is needed of each operation, if only where the last one is true.
    pub fn new(ops: Vec<Op>) -> Self {
        let last = ops.len().checked_sub(1);
        Self::read_at(ops, last.as_slice(), (true, false))
    }

    /// The part of the formula that these operations need, and their places in it.
    pub(crate) fn cut(&self, roots: &[usize]) -> (Self, Vec<usize>) {
        let mut is_used = vec![false; self.ops.len()];
        roots.iter().for_each(|root| is_used[*root] = true);
        for at in (0..self.ops.len()).rev() {
            if is_used[at] {
                self.ops[at].operands(|operand| is_used[operand] = true);
            }
        }
        let mut place = vec![0; self.ops.len()];
        let mut ops: Vec<Op> = Vec::new();
        for at in (0..self.ops.len()).filter(|at| is_used[*at]) {
            place[at] = ops.len();
            ops.push(self.ops[at].moved(|operand| place[operand]));
        }
        let roots: Vec<usize> = roots.iter().map(|root| place[*root]).collect();
        (Self::read_at(ops, &roots, (true, true)), roots)
    }

    /// Operations of which these results are read, and what is needed of those that are truth values.
    fn read_at(ops: Vec<Op>, roots: &[usize], need: (bool, bool)) -> Self {
        let mut needs = vec![(false, false); ops.len()];
        roots.iter().for_each(|root| needs[*root] = need);
        for at in (0..ops.len()).rev() {
            let (t, f) = needs[at];
            let mut mark = |operand: usize, need: (bool, bool)| {
                needs[operand] = (needs[operand].0 || need.0, needs[operand].1 || need.1);
            };
            match ops[at] {
                Op::Not(a) => mark(a, (f, t)),
                Op::Logic(_, a, b) => {
                    mark(a, (t, f));
                    mark(b, (t, f));
                }
                Op::SelectTruth(c, a, b) => {
                    mark(c, (true, true));
                    mark(a, (t, f));
                    mark(b, (t, f));
                }
                Op::Select(c, ..) => mark(c, (true, true)),
                _ => {}
            }
        }
        // The results themselves are read lane by lane, and so is what is not compared.
        let mut spreads = vec![false; ops.len()];
        roots.iter().for_each(|root| spreads[*root] = true);
        for op in &ops {
            match op {
                Op::Unary(_, a) | Op::IsNa(a) => spreads[*a] = true,
                Op::Binary(_, a, b) | Op::Select(_, a, b) => {
                    spreads[*a] = true;
                    spreads[*b] = true;
                }
                // What a switch leaves of a formula can be a scalar, and so can what it is compared with.
                Op::Compare(_, a, b) if matches!(ops[*b], Op::Scalar(_)) => spreads[*a] = true,
                _ => {}
            }
        }
        Self { ops, needs, spreads }
    }

    /// The slots whose columns it reads, each once.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self
            .ops
            .iter()
            .filter_map(|op| if let Op::Column { slot, .. } = op { Some(*slot) } else { None })
            .collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// The slots of both sides, if this is a comparison of two columns on the same bar.
    pub fn compared(&self) -> Option<[usize; 2]> {
        match self.ops[..] {
            [
                Op::Column { slot: a, shift: None },
                Op::Column { slot: b, shift: None },
                Op::Compare(_, 0, 1) | Op::Compare(_, 1, 0),
            ] => Some([a, b]),
            _ => None,
        }
    }

    /// Where a column has a value.
    pub fn available(slot: usize) -> Self {
        let ops = vec![Op::Column { slot, shift: None }, Op::Compare(Op2::Eq, 0, 0)];
        Self { ops, needs: vec![(false, false), (true, false)], spreads: vec![false; 2] }
    }
}

impl Planner<'_> {
    pub(super) fn tape(&mut self, root: NodeId) -> Tape {
        let mut ops = Vec::new();
        self.emit(root, false, &mut ops, &mut FxHashMap::default());
        Tape::new(ops)
    }

    /// The tape of a condition. Every trial reads the same values of a formula without parameters, so that it is worth a column.
    pub(super) fn condition_tape(&mut self, root: NodeId) -> Tape {
        let mut ops = Vec::new();
        self.emit(root, self.shares_formulas, &mut ops, &mut FxHashMap::default());
        Tape::new(ops)
    }

    /// Whether a node is a formula of numbers that depends on no parameter.
    fn is_same_for_all(&mut self, id: NodeId) -> bool {
        let graph = self.graph;
        let is_formula = matches!(graph.node(id), Node::Unary(..) | Node::Binary(..) | Node::Select(..));
        let info = graph.info(id);
        is_formula
            && info.series
            && !info.position
            && !info.itself
            && info.ty != Type::Bool
            && self.shapes.of(graph, id).1.iter().all(|hole| graph.constant_value(*hole).is_some())
    }

    fn emit(
        &mut self,
        id: NodeId,
        shares: bool,
        ops: &mut Vec<Op>,
        done: &mut FxHashMap<NodeId, usize>,
    ) -> usize {
        if let Some(at) = done.get(&id) {
            return *at;
        }
        let graph = self.graph;
        let op = if let Some(scalar) = self.scalar_of.get(&id) {
            if graph.info(id).ty == Type::Bool { Op::Truth(*scalar) } else { Op::Scalar(*scalar) }
        } else if shares && self.is_same_for_all(id) {
            Op::Column { slot: self.slot(id), shift: None }
        } else {
            match graph.node(id) {
                Node::Source(..) | Node::Call(..) | Node::Recur(..) | Node::Gather(..) | Node::Over(..) => {
                    self.leaf(id, None)
                }
                Node::Itself(_) => Op::Position(Position::Itself),
                Node::Shift(leaf, by) => {
                    let by = self.scalar_of[by];
                    self.leaf(*leaf, Some(by))
                }
                Node::Position(position) => Op::Position(*position),
                Node::Unary(op, a) => {
                    let a = self.emit(*a, shares, ops, done);
                    match op {
                        Op1::Not => Op::Not(a),
                        Op1::IsNa => Op::IsNa(a),
                        _ => Op::Unary(*op, a),
                    }
                }
                Node::Binary(op, a, b) => {
                    let (a, b) = (self.emit(*a, shares, ops, done), self.emit(*b, shares, ops, done));
                    match op {
                        Op2::And | Op2::Or => Op::Logic(*op, a, b),
                        _ if op.is_comparison() => Op::Compare(*op, a, b),
                        _ => Op::Binary(*op, a, b),
                    }
                }
                Node::Select(c, a, b) => {
                    let (c, a, b) = (
                        self.emit(*c, shares, ops, done),
                        self.emit(*a, shares, ops, done),
                        self.emit(*b, shares, ops, done),
                    );
                    if graph.info(id).ty == Type::Bool {
                        Op::SelectTruth(c, a, b)
                    } else {
                        Op::Select(c, a, b)
                    }
                }
                Node::Const(_) | Node::Param(_) | Node::Bars(_) => unreachable!("scalars were taken above"),
            }
        };
        ops.push(op);
        done.insert(id, ops.len() - 1);
        ops.len() - 1
    }

    fn leaf(&mut self, id: NodeId, shift: Option<usize>) -> Op {
        if let Node::Call(func, inputs, arguments) = self.graph.node(id)
            && func.at.is_some()
            && !self.columns.contains(&id)
        {
            let input = self.slot(inputs[0]);
            let arguments = arguments.iter().map(|argument| self.scalar_of[argument]).collect();
            return Op::Point { func, input, arguments, shift };
        }
        Op::Column { slot: self.slot(id), shift }
    }
}
