//! The compiled strategy as a graph of nodes: shared where equal, typed, without cycles and without look-ahead. One file because what a
//! node is, its type, its grid and its past follow from the same list of nodes.
//!
//! A node is a *scalar* (parameters and constants only: one value per trial) or a *series* (one value per bar).
//! `x[k]` is pushed down to the leaves when the graph is built, so a shifted read is a leaf with an offset, and everything between leaves and roots is pointwise.
//!
//! Every series lives on a [`Grid`]: the bars of the symbol being walked, or others. A node reads nodes of its own grid; only [`Node::Gather`] leads from one to another.

use rustc_hash::FxHashMap;
use tidemill_market::indicator::Function;
use tidemill_market::session::{Session, SessionSeries};

use crate::expr::Binary;
use crate::point;

/// Position of a node in its graph.
pub type NodeId = u32;

/// Series that the data gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// First price of the bar.
    Open,
    /// Highest price.
    High,
    /// Lowest price.
    Low,
    /// Last price.
    Close,
    /// Traded volume.
    Volume,
    /// Number of the bar, from 0.
    BarIndex,
    /// UTC hour of the bar's open, 0 to 23.
    Hour,
    /// UTC day of the week of the bar's open, Monday 0 to Sunday 6.
    Weekday,
    /// UTC minute of the bar's open, 0 to 59.
    Minute,
    /// UTC day of the month of the bar's open, 1 to 31.
    Day,
    /// UTC month of the bar's open, 1 to 12.
    Month,
    /// UTC year of the bar's open.
    Year,
    /// 1 on the first bar of each period of so many milliseconds, else 0.
    PeriodStart(i64),
    /// What a trading session says about the bar.
    Session(Session, SessionSeries),
    /// A further column of the data.
    Extra(u16),
}

/// The bars that a series has values for. The default is the bars of the symbol that is walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grid {
    /// The bars of this symbol of the universe, whichever is walked.
    pub symbol: Option<u32>,
    /// Made into longer bars of so many milliseconds.
    pub bucket_ms: Option<i64>,
}

/// How old the bar of another grid may be that a bar reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Age {
    /// As old as it is.
    Any,
    /// What is usual for the two timeframes.
    Usual,
    /// So many milliseconds.
    Most(i64),
}

/// What is computed over all symbols whose bar closes at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// Place among the values, from 0 for the lowest to 1 for the highest; the same place for equal ones.
    Rank,
    /// Sum of the values.
    Sum,
    /// Mean of the values.
    Mean,
    /// How many values there are.
    Count,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

/// Values that exist only while a trade is being opened, or while a recursion goes from bar to bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The fill price.
    Entry,
    /// Level of the first stop.
    Stop,
    /// What one R is.
    Risk,
    /// The last value of the recursion that is being computed.
    Itself,
}

/// Pointwise operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op1 {
    /// Minus.
    Neg,
    /// Three-valued negation.
    Not,
    /// Absolute value.
    Abs,
    /// Whether the value is not available.
    IsNa,
    /// Square root.
    Sqrt,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Nearest integer, ties to even.
    Round,
}

/// Pointwise operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op2 {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Smaller of two; not available if either is.
    Min,
    /// Larger of two; not available if either is.
    Max,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Three-valued conjunction.
    And,
    /// Three-valued disjunction.
    Or,
}

impl Op2 {
    /// The comparison with its sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            other => other,
        }
    }

    /// The comparison that is true where both sides are available and this one is false.
    pub fn opposite(self) -> Self {
        match self {
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
            Self::Eq => Self::Ne,
            _ => Self::Eq,
        }
    }

    /// Whether it compares two numbers.
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Eq | Self::Ne)
    }
}

impl From<Binary> for Op2 {
    fn from(op: Binary) -> Self {
        match op {
            Binary::Add => Self::Add,
            Binary::Sub => Self::Sub,
            Binary::Mul => Self::Mul,
            Binary::Div => Self::Div,
            Binary::Lt => Self::Lt,
            Binary::Le => Self::Le,
            Binary::Gt => Self::Gt,
            Binary::Ge => Self::Ge,
            Binary::Eq => Self::Eq,
            Binary::Ne => Self::Ne,
            Binary::And => Self::And,
            Binary::Or => Self::Or,
        }
    }
}

/// A function over whole series, a row of the table of indicators; each call becomes a column.
pub type Func = &'static Function;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant, by its bits.
    Const(u64),
    /// A parameter, decoded.
    Param(u32),
    /// A duration in bars of the data's timeframe.
    Bars(i64),
    /// A series of the data.
    Source(Source, Grid),
    /// A value of the trade being opened.
    Position(Position),
    /// `self`: the last value of the recursion around it.
    Itself(Grid),
    /// One operand.
    Unary(Op1, NodeId),
    /// Two operands.
    Binary(Op2, NodeId, NodeId),
    /// `if(condition, a, b)`; not available where the condition is not.
    Select(NodeId, NodeId, NodeId),
    /// A leaf series read so many bars ago.
    Shift(NodeId, NodeId),
    /// A function over whole series: series inputs and scalar arguments.
    Call(Func, Box<[NodeId]>, Box<[NodeId]>),
    /// `recur(start, next)`: the first value of the one, then always the other one.
    Recur(NodeId, NodeId, Grid),
    /// A series of another grid as the bars of this one see it: its last bar that is closed by then, if that is not too old.
    Gather(NodeId, Grid, Age),
    /// A function over all symbols.
    Over(Over, NodeId),
}

/// What kind of value a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number known to be whole.
    Int,
    /// A number.
    Number,
    /// True, false or not available.
    Bool,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeInfo {
    /// Kind of value.
    pub ty: Type,
    /// One value per bar rather than per trial.
    pub series: bool,
    /// The bars that a series has values for.
    pub grid: Grid,
    /// Uses a value of the trade being opened.
    pub position: bool,
    /// Uses the last value of the recursion around it.
    pub itself: bool,
    /// Longest path to a leaf.
    pub depth: u32,
}

/// Nodes, each stored once, children before parents.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What is known of each.
    pub infos: Vec<NodeInfo>,
    interned: FxHashMap<Node, NodeId>,
    /// What was shifted, and by what: shared parts are shifted once.
    shifted: FxHashMap<(NodeId, NodeId), NodeId>,
    /// Values of nodes that depend on nothing.
    constants: Vec<Option<f64>>,
}

impl Graph {
    /// The node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// What is known of it.
    pub fn info(&self, id: NodeId) -> NodeInfo {
        self.infos[id as usize]
    }

    /// The series of the data that it reads, on whatever bars, each once.
    pub fn sources(&self) -> Vec<Source> {
        let mut out = Vec::new();
        for node in &self.nodes {
            if let Node::Source(source, _) = node
                && !out.contains(source)
            {
                out.push(*source);
            }
        }
        out
    }

    /// The node's children, series before arguments.
    pub fn children(&self, id: NodeId) -> Vec<NodeId> {
        match self.node(id) {
            Node::Const(_)
            | Node::Param(_)
            | Node::Bars(_)
            | Node::Source(..)
            | Node::Position(_)
            | Node::Itself(_) => vec![],
            Node::Unary(_, a) | Node::Gather(a, ..) | Node::Over(_, a) => vec![*a],
            Node::Binary(_, a, b) | Node::Shift(a, b) | Node::Recur(a, b, _) => vec![*a, *b],
            Node::Select(c, a, b) => vec![*c, *a, *b],
            Node::Call(_, inputs, arguments) => inputs.iter().chain(arguments.iter()).copied().collect(),
        }
    }

    /// Adds a node, or finds the equal one.
    pub fn add(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.interned.get(&node) {
            return *id;
        }
        let id = self.nodes.len() as NodeId;
        self.nodes.push(node.clone());
        let children: Vec<NodeInfo> = self.children(id).into_iter().map(|child| self.info(child)).collect();
        let all_int = |infos: &[NodeInfo]| infos.iter().all(|info| info.ty == Type::Int);
        let ty = match &node {
            Node::Const(bits) => {
                if f64::from_bits(*bits).fract() == 0.0 {
                    Type::Int
                } else {
                    Type::Number
                }
            }
            Node::Param(_) => Type::Number,
            Node::Bars(_) => Type::Int,
            Node::Source(..)
            | Node::Position(_)
            | Node::Itself(_)
            | Node::Call(..)
            | Node::Recur(..)
            | Node::Gather(..)
            | Node::Over(..) => Type::Number,
            Node::Unary(op, _) => match op {
                Op1::Not | Op1::IsNa => Type::Bool,
                Op1::Floor | Op1::Ceil | Op1::Round => Type::Int,
                Op1::Neg | Op1::Abs => children[0].ty,
                Op1::Sqrt => Type::Number,
            },
            Node::Binary(op, ..) => match op {
                Op2::Add | Op2::Sub | Op2::Mul | Op2::Min | Op2::Max if all_int(&children) => Type::Int,
                Op2::Add | Op2::Sub | Op2::Mul | Op2::Div | Op2::Min | Op2::Max => Type::Number,
                _ => Type::Bool,
            },
            Node::Select(..) if children[1].ty == Type::Bool => Type::Bool,
            Node::Select(..) => {
                if all_int(&children[1..]) {
                    Type::Int
                } else {
                    Type::Number
                }
            }
            Node::Shift(..) => children[0].ty,
        };
        let own_grid = match node {
            Node::Source(_, grid) | Node::Itself(grid) | Node::Recur(.., grid) | Node::Gather(_, grid, _) => {
                Some(grid)
            }
            // A function of switches alone is a series too, of the bars that are walked.
            Node::Call(..) => {
                let series = children.iter().find(|child| child.series);
                Some(series.map(|child| child.grid).unwrap_or_default())
            }
            _ => children.iter().find(|child| child.series).map(|child| child.grid),
        };
        self.infos.push(NodeInfo {
            ty,
            series: own_grid.is_some(),
            grid: own_grid.unwrap_or_default(),
            itself: matches!(node, Node::Itself(_))
                || !matches!(node, Node::Recur(..)) && children.iter().any(|child| child.itself),
            position: matches!(node, Node::Position(_)) || children.iter().any(|child| child.position),
            depth: children.iter().map(|child| child.depth + 1).max().unwrap_or(0),
        });
        self.constants.push(self.fold(&node));
        self.interned.insert(node, id);
        id
    }

    fn fold(&self, node: &Node) -> Option<f64> {
        let value = |id: &NodeId| self.constants[*id as usize];
        match node {
            Node::Const(bits) => Some(f64::from_bits(*bits)),
            Node::Unary(op, a) => Some(point::unary(*op, value(a)?)),
            Node::Binary(op, a, b) => Some(point::binary(*op, value(a)?, value(b)?)),
            _ => None,
        }
    }

    /// Adds a parameter of a known kind.
    pub fn add_param(&mut self, param_idx: usize, ty: Type) -> NodeId {
        let id = self.add(Node::Param(param_idx as u32));
        self.infos[id as usize].ty = ty;
        id
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: f64) -> NodeId {
        self.add(Node::Const(value.to_bits()))
    }

    /// Adds a constant truth value.
    pub fn boolean(&mut self, value: bool) -> NodeId {
        let one = self.constant(1.0);
        let other = self.constant(f64::from(u8::from(value)));
        self.add(Node::Binary(Op2::Eq, one, other))
    }

    /// The node as it was `by` bars ago: shifts are pushed down to the leaves.
    pub fn shift(&mut self, id: NodeId, by: NodeId) -> NodeId {
        if !self.info(id).series {
            return id;
        }
        if let Some(done) = self.shifted.get(&(id, by)) {
            return *done;
        }
        let shifted = match self.node(id).clone() {
            Node::Source(..) | Node::Call(..) | Node::Recur(..) | Node::Gather(..) | Node::Over(..) => {
                self.add(Node::Shift(id, by))
            }
            Node::Shift(leaf, already) => {
                let total = self.total_shift(already, by);
                self.add(Node::Shift(leaf, total))
            }
            Node::Unary(op, a) => {
                let a = self.shift(a, by);
                self.add(Node::Unary(op, a))
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.shift(a, by), self.shift(b, by));
                self.add(Node::Binary(op, a, b))
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.shift(c, by), self.shift(a, by), self.shift(b, by));
                self.add(Node::Select(c, a, b))
            }
            Node::Const(_) | Node::Param(_) | Node::Bars(_) | Node::Position(_) | Node::Itself(_) => id,
        };
        self.shifted.insert((id, by), shifted);
        shifted
    }

    /// A comparison of leaves, or its negation, that is another one of the graph some bars later: that one, and by how many bars.
    ///
    /// Where the later one would read before the first bar it is not available, and so not true.
    pub fn unshifted(&self, id: NodeId) -> Option<(NodeId, NodeId)> {
        if let Node::Unary(Op1::Not, a) = *self.node(id) {
            let (a, by) = self.unshifted(a)?;
            return Some((*self.interned.get(&Node::Unary(Op1::Not, a))?, by));
        }
        let Node::Binary(op, a, b) = *self.node(id) else { return None };
        let leaf = |id: NodeId| match *self.node(id) {
            Node::Shift(leaf, by) => Some((leaf, Some(by))),
            _ if !self.info(id).series => Some((id, None)),
            _ => None,
        };
        let ((a, by_a), (b, by_b)) = (leaf(a)?, leaf(b)?);
        let by = by_a.or(by_b)?;
        let same = op.is_comparison() && by_a.unwrap_or(by) == by_b.unwrap_or(by);
        if same { Some((*self.interned.get(&Node::Binary(op, a, b))?, by)) } else { None }
    }

    /// Two shifts as one: their sum, or one that reads nothing where either looks ahead.
    fn total_shift(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let total = self.add(Node::Binary(Op2::Add, a, b));
        if self.constant_value(a).is_some() && self.constant_value(b).is_some() {
            return total;
        }
        let (zero, ahead) = (self.constant(0.0), self.constant(-1.0));
        let least = self.add(Node::Binary(Op2::Min, a, b));
        let looks_ahead = self.add(Node::Binary(Op2::Lt, least, zero));
        self.add(Node::Select(looks_ahead, ahead, total))
    }

    /// Value of one scalar node, given those of its children and of the parameters; durations need a timeframe.
    pub fn scalar(
        &self,
        id: NodeId,
        child: impl Fn(NodeId) -> f64,
        param: impl Fn(usize) -> f64,
        timeframe_ms: Option<i64>,
    ) -> f64 {
        match self.node(id) {
            Node::Const(bits) => f64::from_bits(*bits),
            Node::Param(at) => param(*at as usize),
            Node::Bars(duration_ms) => {
                timeframe_ms.map_or(f64::NAN, |timeframe| point::duration_in_bars(*duration_ms, timeframe))
            }
            Node::Unary(op, a) => point::unary(*op, child(*a)),
            Node::Binary(op, a, b) => point::binary(*op, child(*a), child(*b)),
            Node::Select(c, a, b) => point::select(child(*c), child(*a), child(*b)),
            _ => f64::NAN,
        }
    }

    /// Value of a scalar that depends on nothing.
    pub fn constant_value(&self, id: NodeId) -> Option<f64> {
        self.constants[id as usize]
    }
}
