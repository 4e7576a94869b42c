//! One community after the other: what belongs together is coloured together.

use crate::graph::Graph;
use crate::initial::{Preference, greedy};

/// The most rounds over all labels.
const ROUNDS: usize = 100;

/// First fit, the largest community first, within each the preferred vertices first.
pub(crate) fn color(graph: &Graph, preference: &Preference) -> Vec<u32> {
    let labels = communities(graph);
    let mut sizes = vec![0_u32; graph.n()];
    labels.iter().for_each(|label| sizes[*label as usize] += 1);
    let mut order: Vec<u32> = (0..graph.n() as u32).collect();
    order.sort_by_key(|vertex| {
        let label = labels[*vertex as usize];
        let rank = preference.rank(*vertex);
        (std::cmp::Reverse(sizes[label as usize]), label, std::cmp::Reverse(rank))
    });
    greedy::color(graph, &order)
}

/// The community of each vertex, named after one of its members, by label propagation.
///
/// Each vertex in turn takes the label that weighs most among its neighbours; of several the one it has, else the smallest. A neighbour
/// weighs the more the more neighbours the two have in common, so that a bridge carries little. Nothing is left to chance. It ends when
/// no label changes.
fn communities(graph: &Graph) -> Vec<u32> {
    let n = graph.n();
    let mut labels: Vec<u32> = (0..n as u32).collect();
    let mut around = vec![0_u64; graph.n_words()];
    let mut weights: Vec<Vec<u32>> = Vec::with_capacity(n);
    for from in 0..n {
        let neighbours = graph.neighbours(from);
        neighbours.iter().for_each(|to| around[*to as usize / 64] |= 1 << (to % 64));
        weights.push(neighbours.iter().map(|to| 1 + graph.n_neighbours_in(*to as usize, &around)).collect());
        neighbours.iter().for_each(|to| around[*to as usize / 64] = 0);
    }
    let mut counts = vec![0_u64; n];
    for _ in 0..ROUNDS {
        let mut has_changed = false;
        for vertex in 0..n {
            let neighbours = graph.neighbours(vertex);
            for (other, weight) in neighbours.iter().zip(&weights[vertex]) {
                counts[labels[*other as usize] as usize] += u64::from(*weight);
            }
            let own = labels[vertex];
            let key = |label: u32| (counts[label as usize], label == own, std::cmp::Reverse(label));
            let best = neighbours.iter().map(|other| labels[*other as usize]).max_by_key(|label| key(*label));
            if let Some(best) = best
                && key(best) > key(own)
            {
                labels[vertex] = best;
                has_changed = true;
            }
            for other in neighbours {
                counts[labels[*other as usize] as usize] = 0;
            }
        }
        if !has_changed {
            break;
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cliques_on_a_bridge_are_two_communities() {
        let clique = |from: u32| (from..from + 5).flat_map(move |b| (from..b).map(move |a| (a, b)));
        let graph = Graph::new(10, clique(0).chain(clique(5)).chain([(4, 5)]));
        let labels = communities(&graph);
        assert!(labels[..5].iter().all(|label| *label == labels[0]));
        assert!(labels[5..].iter().all(|label| *label == labels[5]));
        assert_ne!(labels[0], labels[5]);
    }
}
