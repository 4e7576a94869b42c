//! The search space of a strategy.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tidemill_search::{Condition, Param, Space};

use crate::compile::Program;
use crate::graph::{Graph, Node, NodeId};
use crate::strategy::{ParamSpec, Strategy};

/// Parameters in the order of the strategy; conditions become functions of the encoded values.
pub fn space(strategy: &Strategy, program: &Program) -> Space {
    let graph = Arc::new(program.graph.clone());
    let specs: Arc<[ParamSpec]> = strategy.params.clone().into();
    let mut params: Vec<Param> = strategy
        .params
        .iter()
        .map(|spec| Param {
            fixed: spec.fixed,
            ..Param::new(spec.name.clone(), spec.domain.clone(), spec.default)
        })
        .collect();
    // Parameters of one feature share its condition, which is then judged once for all of them.
    let mut conditions: HashMap<NodeId, Condition> = HashMap::new();
    for (param_idx, root) in program.conditions.iter().enumerate() {
        let Some(root) = *root else { continue };
        let condition = conditions.entry(root).or_insert_with(|| {
            let (graph, specs, nodes) = (graph.clone(), specs.clone(), needed(&graph, root));
            let read = |id: &NodeId| match graph.node(*id) {
                Node::Param(at) => Some(*at as usize),
                _ => None,
            };
            let reads: Vec<usize> = nodes.iter().filter_map(read).collect();
            let holds = {
                let graph = graph.clone();
                move |row: &[f64]| scalar(&graph, &specs, &nodes, row) == 1.0
            };
            Condition::of_params(&params, &reads, holds)
        });
        let condition = condition.clone();
        params[param_idx].when = Some(condition);
    }
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
