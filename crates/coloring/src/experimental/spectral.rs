//! Along the Fiedler vector: neighbours in the graph are near each other in the order, so that colours are used again soon.

use super::lanczos::fiedler;
use crate::graph::Graph;
use crate::initial::{greedy, n_colors};

/// First fit along the Fiedler vector, in the better of the two directions.
pub(crate) fn color(graph: &Graph, seed: u64) -> Vec<u32> {
    let (_, vector) = fiedler(graph, seed);
    let mut order: Vec<u32> = (0..graph.n() as u32).collect();
    order.sort_by(|a, b| vector[*a as usize].total_cmp(&vector[*b as usize]).then(a.cmp(b)));
    let forward = greedy::color(graph, &order);
    order.reverse();
    let backward = greedy::color(graph, &order);
    if n_colors(&backward) < n_colors(&forward) { backward } else { forward }
}
