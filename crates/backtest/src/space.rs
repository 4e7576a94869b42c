//! The search space of a strategy.

use std::sync::Arc;

use tidemill_search::{Condition, Param, Space};

use crate::compile::Program;
use crate::graph::{Graph, Node, NodeId};
use crate::point;
use crate::strategy::{ParamSpec, Strategy};

/// Parameters in the order of the strategy; conditions become functions of the encoded values.
pub fn space(strategy: &Strategy, program: &Program) -> Space {
    let graph = Arc::new(program.graph.clone());
    let specs: Arc<[ParamSpec]> = strategy.params.clone().into();
    let params = strategy
        .params
        .iter()
        .zip(&program.conditions)
        .map(|(spec, condition)| Param {
            name: spec.name.clone(),
            domain: spec.domain.clone(),
            default: spec.default,
            fixed: spec.fixed,
            when: condition.map(|root| {
                let (graph, specs) = (graph.clone(), specs.clone());
                let when: Condition = Arc::new(move |row: &[f64]| scalar(&graph, &specs, root, row) == 1.0);
                when
            }),
        })
        .collect();
    Space { params }
}

/// Value of a scalar over encoded parameters; those that are inactive or not yet chosen count as their defaults.
fn scalar(graph: &Graph, specs: &[ParamSpec], id: NodeId, row: &[f64]) -> f64 {
    let value = |id: &NodeId| scalar(graph, specs, *id, row);
    match graph.node(id) {
        Node::Const(bits) => f64::from_bits(*bits),
        Node::Param(at) => {
            let spec = &specs[*at as usize];
            let encoded =
                row.get(*at as usize).copied().filter(|code| !code.is_nan()).unwrap_or(spec.default);
            spec.decode(encoded)
        }
        Node::Unary(op, a) => point::unary(*op, value(a)),
        Node::Binary(op, a, b) => point::binary(*op, value(a), value(b)),
        Node::Select(c, a, b) => point::select(value(c), value(a), value(b)),
        Node::Bars(_) | Node::Source(_) | Node::Position(_) | Node::Shift(..) | Node::Call(..) => f64::NAN,
    }
}
