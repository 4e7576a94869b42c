//! How many colours are needed at least.

use crate::clique::clique;
use crate::graph::Graph;

/// No colouring has fewer colours: the size of a clique that was found, or three where a ring of odd length refutes two.
pub fn lower_bound(graph: &Graph, seed: u64) -> usize {
    match clique(graph, seed).len() {
        2 if has_odd_ring(graph) => 3,
        size => size,
    }
}

/// Whether two colours are not enough: sides are given from any vertex on, and two neighbours are on the same one.
fn has_odd_ring(graph: &Graph) -> bool {
    let mut sides: Vec<Option<bool>> = vec![None; graph.n()];
    let mut reached = Vec::new();
    for start in 0..graph.n() {
        if sides[start].is_none() {
            sides[start] = Some(false);
            reached.push(start);
        }
        while let Some(vertex) = reached.pop() {
            for &other in graph.neighbours(vertex) {
                let other = other as usize;
                if sides[other].is_none() {
                    sides[other] = sides[vertex].map(|side| !side);
                    reached.push(other);
                } else if sides[other] == sides[vertex] {
                    return true;
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(n: u32, from: u32) -> impl Iterator<Item = (u32, u32)> {
        (0..n).map(move |at| (from + at, from + (at + 1) % n))
    }

    #[test]
    fn an_odd_ring_needs_three_colours_and_an_even_one_two() {
        assert_eq!(lower_bound(&Graph::new(9, ring(9, 0)), 1), 3);
        assert_eq!(lower_bound(&Graph::new(8, ring(8, 0)), 1), 2);
        // Wherever it is: here behind an even one, not joined to it.
        assert_eq!(lower_bound(&Graph::new(13, ring(8, 0).chain(ring(5, 8))), 1), 3);
        assert_eq!(lower_bound(&Graph::new(3, ring(3, 0)), 1), 3);
        assert_eq!((lower_bound(&Graph::new(4, []), 1), lower_bound(&Graph::new(0, []), 1)), (1, 0));
    }
}
