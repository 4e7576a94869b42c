//! Numbers formulas so that equal ones are found equal whatever scalars fill them.
//!
//! `ema(close, fast)` and `ema(close, slow)` have one shape with one hole, so that EMA(96) is one column under either name.

use rustc_hash::FxHashMap;

use crate::graph::{Age, Func, Graph, Grid, Node, NodeId, Op1, Op2, Over, Source};

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Source(Source, Grid),
    Itself(Grid),
    Unary(Op1),
    Binary(Op2),
    Select,
    Shift,
    Call(Func),
    Recur(Grid),
    Gather(Grid, Age),
    Over(Over),
    Scalar,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Child {
    /// A scalar: which of the parent's holes.
    Hole(u32),
    /// A series: its shape, and which of the parent's holes fill it.
    Series(u32, Vec<u32>),
}

#[derive(Default)]
pub(super) struct Shapes {
    numbers: FxHashMap<(Form, Vec<Child>), u32>,
    known: FxHashMap<NodeId, (u32, Vec<NodeId>)>,
}

impl Shapes {
    /// Shape number of a node, and the scalars that fill its holes.
    pub(super) fn of(&mut self, graph: &Graph, id: NodeId) -> (u32, Vec<NodeId>) {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let form = match graph.node(id) {
            _ if !graph.info(id).series => Form::Scalar,
            Node::Source(source, grid) => Form::Source(*source, *grid),
            Node::Itself(grid) => Form::Itself(*grid),
            Node::Unary(op, _) => Form::Unary(*op),
            Node::Binary(op, ..) => Form::Binary(*op),
            Node::Select(..) => Form::Select,
            Node::Shift(..) => Form::Shift,
            Node::Call(func, ..) => Form::Call(func),
            Node::Recur(.., grid) => Form::Recur(*grid),
            Node::Gather(_, grid, age) => Form::Gather(*grid, *age),
            Node::Over(over, _) => Form::Over(*over),
            Node::Const(_) | Node::Param(_) | Node::Bars(_) | Node::Position(_) => Form::Scalar,
        };
        let mut holes: Vec<NodeId> = Vec::new();
        let mut hole = |scalar: NodeId| {
            let at = holes.iter().position(|known| *known == scalar).unwrap_or_else(|| {
                holes.push(scalar);
                holes.len() - 1
            });
            at as u32
        };
        let mut children = Vec::new();
        if form == Form::Scalar {
            children.push(Child::Hole(hole(id)));
        } else {
            for child in graph.children(id) {
                if graph.info(child).series {
                    let (shape, inner) = self.of(graph, child);
                    children.push(Child::Series(shape, inner.into_iter().map(&mut hole).collect()));
                } else {
                    children.push(Child::Hole(hole(child)));
                }
            }
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry((form, children)).or_insert(next);
        self.known.insert(id, (number, holes.clone()));
        (number, holes)
    }
}
