//! The plan: which nodes become columns, which stay formulas, and what is shared between trials.
//!
//! A windowed or recursive node is a *slot*: a column per distinct tuple of the scalars beneath it, however many trials use it and under whatever names.
//! Pointwise nodes stay formulas ([`Tape`]s) over slots, evaluated 64 bars at a time for conditions and at single bars for levels.
//! A condition is also *maskable*: when few distinct tuples serve many trials, its truth becomes one shared bit mask.

mod decided;
mod rank;
mod shape;
mod tape;

use rustc_hash::{FxHashMap, FxHashSet};
use tidemill_market::indicator::Read;

use crate::compile::{ExitRoots, LabelRoot, Program};
use crate::graph::{Age, Func, Graph, Grid, Node, NodeId, Op1, Op2, Over, Source};
use crate::strategy::ExitKind;
pub use decided::Decided;
use shape::Shapes;
pub use tape::{Op, Tape};

/// A materialised series: a price of the data, or a column computed from others.
#[derive(Clone, Debug)]
pub enum Slot {
    /// A series of the data.
    Source(Source),
    /// A function over whole series.
    Call {
        /// The function.
        func: Func,
        /// Slots of its inputs.
        inputs: Vec<usize>,
        /// Scalars of its arguments.
        arguments: Vec<usize>,
        /// What makes two columns the same.
        key: KeyParts,
    },
    /// A formula written out, because a function needs it as a series.
    Formula {
        /// The formula.
        tape: Tape,
        /// What makes two columns the same.
        key: KeyParts,
    },
    /// A condition written out as bits, because a function needs it.
    Mask {
        /// The formula.
        tape: Tape,
        /// What makes two masks the same.
        key: KeyParts,
    },
    /// A recursion: the first value of a formula, then always that of another one, which reads the last value.
    Recur {
        /// The first formula.
        start: Tape,
        /// The other one.
        next: Tape,
        /// What makes two columns the same.
        key: KeyParts,
    },
    /// A column of other bars as these bars see it.
    Gather {
        /// The slot on the other bars.
        input: usize,
        /// Which of [`Plan::routes`] leads there.
        route: usize,
        /// What makes two columns the same.
        key: KeyParts,
    },
    /// A function over all symbols.
    Over {
        /// The function.
        over: Over,
        /// The slot of what is compared.
        input: usize,
        /// What makes two columns the same.
        key: KeyParts,
    },
}

/// How bars of one grid read those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The grid that is read.
    pub from: Grid,
    /// The grid that reads.
    pub to: Grid,
    /// How old what is read may be.
    pub age: Age,
}

impl Slot {
    /// What makes two columns the same; none for a series of the data.
    pub fn key(&self) -> Option<&KeyParts> {
        match self {
            Self::Source(_) => None,
            Self::Call { key, .. }
            | Self::Formula { key, .. }
            | Self::Mask { key, .. }
            | Self::Recur { key, .. }
            | Self::Gather { key, .. }
            | Self::Over { key, .. } => Some(key),
        }
    }

    /// The slots that it reads as a whole, in their order.
    pub fn inputs(&self) -> &[usize] {
        match self {
            Self::Call { inputs, .. } => inputs,
            Self::Gather { input, .. } | Self::Over { input, .. } => std::slice::from_ref(input),
            Self::Source(_) | Self::Formula { .. } | Self::Mask { .. } | Self::Recur { .. } => &[],
        }
    }

    /// The formulas that it is computed by, bar by bar.
    pub fn tapes(&self) -> impl Iterator<Item = &Tape> {
        let tapes = match self {
            Self::Formula { tape, .. } | Self::Mask { tape, .. } => [Some(tape), None],
            Self::Recur { start, next, .. } => [Some(start), Some(next)],
            Self::Source(_) | Self::Call { .. } | Self::Gather { .. } | Self::Over { .. } => [None, None],
        };
        tapes.into_iter().flatten()
    }
}

/// Identity of a column: its shape (the formula without its scalars) and the scalars that fill it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyParts {
    /// Number of the formula, equal for equal formulas.
    pub shape: u32,
    /// The scalars, by position.
    pub scalars: Vec<usize>,
}

/// A condition as a conjunction of factors.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The whole condition.
    pub whole: Maskable,
    /// Its factors: all must be true.
    pub factors: Vec<Factor>,
}

/// One of the conditions that must all be true.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The condition.
    pub itself: Maskable,
    /// Another condition that is this one some bars earlier, and the scalar that says how many.
    pub earlier: Option<(Maskable, usize)>,
    /// The same as a series compared with a threshold, if it is one.
    pub threshold: Option<Threshold>,
}

/// A series compared with a scalar: `series ∘ scalar`.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// The series; its key tells whose values are the same.
    pub series: Maskable,
    /// One of `<`, `<=`, `>`, `>=`.
    pub op: Op2,
    /// The scalar.
    pub scalar: usize,
}

/// A condition, or a factor of one, that can be shared as a mask.
#[derive(Clone, Debug)]
pub struct Maskable {
    /// Formula of the condition.
    pub tape: Tape,
    /// What makes two masks the same.
    pub key: KeyParts,
    /// The comparison of two columns that this is the negation of, if it is one.
    pub negates: Option<Box<Maskable>>,
}

/// One side, ready to run.
#[derive(Clone, Debug)]
pub struct SidePlan {
    /// Entry condition.
    pub enter: Condition,
    /// Ways out, in order of priority.
    pub exits: Vec<ExitPlan>,
    /// What one R is, if written.
    pub risk: Option<Tape>,
    /// The share of equity that a trade commits, if written.
    pub size: Option<Tape>,
}

/// One way out, ready to run.
#[derive(Clone, Debug)]
pub struct ExitPlan {
    /// Stop, target, trail, break-even, signal or time.
    pub kind: ExitKind,
    /// Level, distance, multiple or bars; for a signal exit the condition.
    pub value: ExitValue,
    /// Condition on the signal bar.
    pub when: Option<Tape>,
    /// Reason.
    pub label: Vec<LabelPiece>,
    /// Reason if the bar opened beyond the level.
    pub gap_label: Vec<LabelPiece>,
}

/// What an exit watches.
#[derive(Clone, Debug)]
pub enum ExitValue {
    /// A number fixed on the signal bar.
    Number(Tape),
    /// A condition on closed bars.
    Signal(Box<Condition>),
}

/// A piece of a label.
#[derive(Clone, Debug)]
pub enum LabelPiece {
    /// Plain text.
    Text(String),
    /// A scalar with so many decimals.
    Value(usize, usize),
}

/// The whole plan of a strategy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graph it was made from.
    pub graph: Graph,
    /// Scalar nodes, children first; a scalar's number is its position here.
    pub scalars: Vec<NodeId>,
    /// Slots, inputs first.
    pub slots: Vec<Slot>,
    /// All grids; the first is that of the bars that are walked.
    pub grids: Vec<Grid>,
    /// The grid of each slot.
    pub grid_of: Vec<usize>,
    /// How bars of one grid read those of another.
    pub routes: Vec<Route>,
    /// Long and short.
    pub sides: [Option<SidePlan>; 2],
}

impl Plan {
    /// Plans a program for one trial after another: what only levels read is computed at single bars.
    pub fn new(program: &Program) -> Self {
        let mut planner = Planner::new(&program.graph);
        planner.mark_columns(program);
        planner.shares_formulas = true;
        planner.run(program)
    }

    /// All conditions in a fixed order: for each side its entry, then its signal exits.
    pub fn conditions(&self) -> Vec<&Condition> {
        let mut out = Vec::new();
        for side in self.sides.iter().flatten() {
            out.push(&side.enter);
            for exit in &side.exits {
                if let ExitValue::Signal(condition) = &exit.value {
                    out.push(condition);
                }
            }
        }
        out
    }

    /// Plans a program for many trials at once: every function has a slot, so that whether it becomes a column can be decided by how many trials share it.
    pub fn with_all_slots(program: &Program) -> Self {
        let mut planner = Planner::new(&program.graph);
        planner.columns.extend(0..program.graph.nodes.len() as NodeId);
        let mut plan = planner.run(program);
        // What reads little is tested first: the factors may be tested in any order.
        let slots = std::mem::take(&mut plan.slots);
        for side in plan.sides.iter_mut().flatten() {
            let exits = side.exits.iter_mut().filter_map(|exit| match &mut exit.value {
                ExitValue::Signal(condition) => Some(&mut **condition),
                ExitValue::Number(_) => None,
            });
            for condition in std::iter::once(&mut side.enter).chain(exits) {
                let rank = |factor: &Factor| factor.itself.tape.rank(&slots);
                condition.factors.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
            }
        }
        plan.slots = slots;
        plan
    }
}

struct Planner<'a> {
    graph: &'a Graph,
    scalars: Vec<NodeId>,
    scalar_of: FxHashMap<NodeId, usize>,
    slots: Vec<Slot>,
    grids: Vec<Grid>,
    grid_of: Vec<usize>,
    routes: Vec<Route>,
    slot_of: FxHashMap<(NodeId, bool), usize>,
    shapes: Shapes,
    /// Nodes that some condition or function reads as a whole series.
    columns: FxHashSet<NodeId>,
    /// Whether formulas without parameters are written out where conditions read them.
    shares_formulas: bool,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph) -> Self {
        Self {
            graph,
            scalars: Vec::new(),
            scalar_of: FxHashMap::default(),
            slots: Vec::new(),
            grids: vec![Grid::default()],
            grid_of: Vec::new(),
            routes: Vec::new(),
            slot_of: FxHashMap::default(),
            shapes: Shapes::default(),
            columns: FxHashSet::default(),
            shares_formulas: false,
        }
    }

    /// Marks what conditions read bar by bar, and what functions read whole. Other functions with a point form need no column.
    fn mark_columns(&mut self, program: &Program) {
        let mut stack: Vec<NodeId> = Vec::new();
        for side in program.sides.iter().flatten() {
            stack.push(side.enter);
            let by_bar = |exit: &&ExitRoots| matches!(exit.kind, ExitKind::Signal | ExitKind::StopSeries);
            stack.extend(side.exits.iter().filter(by_bar).map(|exit| exit.value));
        }
        for (id, node) in self.graph.nodes.iter().enumerate() {
            match node {
                Node::Call(_, inputs, _) => stack.extend(inputs.iter().copied()),
                Node::Recur(..) | Node::Gather(..) | Node::Over(..) => {
                    stack.extend(self.graph.children(id as NodeId));
                }
                _ => {}
            }
        }
        while let Some(id) = stack.pop() {
            if self.graph.info(id).series && self.columns.insert(id) {
                stack.extend(self.graph.children(id));
            }
        }
    }

    fn run(mut self, program: &Program) -> Plan {
        for (at, id) in (0..self.graph.nodes.len() as NodeId)
            .filter(|id| !self.graph.info(*id).series && !self.graph.info(*id).position)
            .enumerate()
        {
            self.scalars.push(id);
            self.scalar_of.insert(id, at);
        }
        let sides = std::array::from_fn(|at| program.sides[at].as_ref().map(|side| self.side(side)));
        Plan {
            graph: self.graph.clone(),
            scalars: self.scalars,
            slots: self.slots,
            grids: self.grids,
            grid_of: self.grid_of,
            routes: self.routes,
            sides,
        }
    }

    fn side(&mut self, side: &crate::compile::Side) -> SidePlan {
        let exits = side
            .exits
            .iter()
            .map(|exit| ExitPlan {
                kind: exit.kind,
                value: match exit.kind {
                    ExitKind::Signal => ExitValue::Signal(Box::new(self.condition(exit.value))),
                    _ => ExitValue::Number(self.tape(exit.value)),
                },
                when: exit.when.map(|when| self.tape(when)),
                label: self.label(&exit.label),
                gap_label: self.label(&exit.gap_label),
            })
            .collect();
        let (risk, size) = (side.risk.map(|risk| self.tape(risk)), side.size.map(|size| self.tape(size)));
        SidePlan { enter: self.condition(side.enter), exits, risk, size }
    }

    fn label(&self, parts: &[LabelRoot]) -> Vec<LabelPiece> {
        parts
            .iter()
            .map(|part| match part {
                LabelRoot::Text(text) => LabelPiece::Text(text.clone()),
                LabelRoot::Value(node, decimals) => LabelPiece::Value(self.scalar_of[node], *decimals),
            })
            .collect()
    }

    fn condition(&mut self, root: NodeId) -> Condition {
        let mut factors = Vec::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            match self.graph.node(id) {
                Node::Binary(Op2::And, a, b) => stack.extend([*b, *a]),
                _ => factors.push(id),
            }
        }
        let mut seen = FxHashSet::default();
        factors.retain(|factor| seen.insert(*factor));
        let factors = factors.into_iter().map(|factor| self.factor(factor)).collect();
        Condition { whole: self.maskable(root), factors }
    }

    fn factor(&mut self, root: NodeId) -> Factor {
        let earlier = self.graph.unshifted(root);
        let earlier = earlier.map(|(earlier, by)| (self.maskable(earlier), self.scalar_of[&by]));
        Factor { itself: self.maskable(root), earlier, threshold: self.threshold(root) }
    }

    fn threshold(&mut self, root: NodeId) -> Option<Threshold> {
        let Node::Binary(op, a, b) = *self.graph.node(root) else { return None };
        let is_series = |id: NodeId| self.graph.info(id).series;
        let (series, op, scalar) = match (is_series(a), is_series(b)) {
            (true, false) => (a, op, b),
            (false, true) => (b, op.mirrored(), a),
            _ => return None,
        };
        if !matches!(op, Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge) {
            return None;
        }
        Some(Threshold { series: self.maskable(series), op, scalar: self.scalar_of[&scalar] })
    }

    fn maskable(&mut self, root: NodeId) -> Maskable {
        let tape = self.condition_tape(root);
        let key = self.key(root);
        let negates = match *self.graph.node(root) {
            Node::Unary(Op1::Not, a) => {
                Some(Box::new(self.maskable(a))).filter(|a| a.tape.compared().is_some())
            }
            _ => None,
        };
        Maskable { tape, key, negates }
    }

    fn key(&mut self, root: NodeId) -> KeyParts {
        let (shape, holes) = self.shapes.of(self.graph, root);
        KeyParts { shape, scalars: holes.iter().map(|hole| self.scalar_of[hole]).collect() }
    }

    /// The slot that holds a series node as numbers.
    fn slot(&mut self, id: NodeId) -> usize {
        self.slot_as(id, false)
    }

    fn slot_as(&mut self, id: NodeId, mask: bool) -> usize {
        if let Some(slot) = self.slot_of.get(&(id, mask)) {
            return *slot;
        }
        let slot = match self.graph.node(id).clone() {
            Node::Source(source, _) => Slot::Source(source),
            Node::Recur(start, next, _) => {
                Slot::Recur { start: self.tape(start), next: self.tape(next), key: self.key(id) }
            }
            Node::Gather(input, to, age) => {
                let from = self.graph.info(input).grid;
                let route = place(&mut self.routes, Route { from, to, age });
                Slot::Gather { input: self.slot(input), route, key: self.key(id) }
            }
            Node::Over(over, input) => Slot::Over { over, input: self.slot(input), key: self.key(id) },
            Node::Call(func, inputs, arguments) => {
                let reads = inputs.iter().zip(func.reads);
                let inputs =
                    reads.map(|(input, read)| self.slot_as(*input, *read == Read::Condition)).collect();
                let arguments = arguments.iter().map(|argument| self.scalar_of[argument]).collect();
                Slot::Call { func, inputs, arguments, key: self.key(id) }
            }
            _ if mask => Slot::Mask { tape: self.tape(id), key: self.key(id) },
            _ => Slot::Formula { tape: self.tape(id), key: self.key(id) },
        };
        self.slots.push(slot);
        self.grid_of.push(place(&mut self.grids, self.graph.info(id).grid));
        self.slot_of.insert((id, mask), self.slots.len() - 1);
        self.slots.len() - 1
    }
}

/// Where a thing is in a list, to which it is added if it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, thing: T) -> usize {
    list.iter().position(|known| *known == thing).unwrap_or_else(|| {
        list.push(thing);
        list.len() - 1
    })
}
