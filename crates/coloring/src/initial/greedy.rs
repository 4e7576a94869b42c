//! First fit along an order.

use crate::graph::Graph;

const NONE: u32 = u32::MAX;

/// Each vertex in turn gets the least colour that none of its neighbours has.
pub(crate) fn color(graph: &Graph, order: &[u32]) -> Vec<u32> {
    let mut colors = vec![NONE; graph.n()];
    // For each colour, the last vertex that could not have it.
    let mut refused: Vec<u32> = Vec::new();
    for &vertex in order {
        for neighbour in graph.neighbours(vertex as usize) {
            let color = colors[*neighbour as usize];
            if color != NONE {
                refused[color as usize] = vertex;
            }
        }
        let color = refused.iter().position(|last| *last != vertex).unwrap_or_else(|| {
            refused.push(NONE);
            refused.len() - 1
        });
        colors[vertex as usize] = color as u32;
    }
    colors
}
