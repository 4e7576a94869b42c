//! The search space of a strategy.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemill_search::{Condition, Param, Space};

use crate::compile::Program;
use crate::graph::{Graph, NodeId};
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
                let (graph, specs, nodes) = (graph.clone(), specs.clone(), needed(&graph, root));
                let when: Condition = Arc::new(move |row: &[f64]| scalar(&graph, &specs, &nodes, row) == 1.0);
                when
            }),
        })
        .collect();
    Space { params }
}

/// The nodes that a scalar needs, children before parents.
fn needed(graph: &Graph, root: NodeId) -> Vec<NodeId> {
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(graph.children(id));
        }
    }
    found.into_iter().collect()
}

/// Value of the last of these nodes over encoded parameters; those that are inactive or not yet chosen count as their defaults.
fn scalar(graph: &Graph, specs: &[ParamSpec], nodes: &[NodeId], row: &[f64]) -> f64 {
    let mut values: Vec<f64> = Vec::with_capacity(nodes.len());
    for id in nodes {
        let child = |id: NodeId| nodes.binary_search(&id).map_or(f64::NAN, |at| values[at]);
        let param = |at: usize| {
            let encoded = row.get(at).copied().filter(|code| !code.is_nan());
            specs[at].decode(encoded.unwrap_or(specs[at].default))
        };
        let result = graph.scalar(*id, child, param, None);
        values.push(result);
    }
    values.last().copied().unwrap_or(f64::NAN)
}
