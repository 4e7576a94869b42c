//! Expected conflicts less information gain, under what an ensemble of colourings believes.

use super::Trajectory;
use crate::graph::Graph;

/// For each vertex: the conflicts that are expected if every vertex is drawn from its marginal colours, less the bits that learning
/// its colour would give.
///
/// Colours of different colourings have different names. Each colouring is renamed so that its classes agree with those of the first as
/// far as possible, the largest overlaps first; then the marginal of a vertex is the share of colourings that give it each colour.
pub fn inference(graph: &Graph, trajectory: &Trajectory, k: usize) -> Vec<f64> {
    let n = graph.n();
    let Some(first) = trajectory.colorings.first() else { return vec![0.0; n] };
    let mut marginals = vec![0.0_f64; n * k];
    let weight = 1.0 / trajectory.colorings.len() as f64;
    for colors in &trajectory.colorings {
        let renamed = aligned(first, colors, k);
        for vertex in 0..n {
            marginals[vertex * k + renamed[colors[vertex] as usize]] += weight;
        }
    }
    let marginal = |vertex: usize| &marginals[vertex * k..(vertex + 1) * k];
    let of = |vertex: usize| {
        let own = marginal(vertex);
        let together =
            |other: &u32| -> f64 { own.iter().zip(marginal(*other as usize)).map(|(a, b)| a * b).sum() };
        let expected: f64 = graph.neighbours(vertex).iter().map(together).sum();
        let gain: f64 = own.iter().filter(|p| **p > 0.0).map(|p| -p * libm::log2(*p)).sum();
        expected - gain
    };
    (0..n).map(of).collect()
}

/// A new name for each colour of `colors`: greedily, the two classes that share most vertices get the same name.
fn aligned(reference: &[u32], colors: &[u32], k: usize) -> Vec<usize> {
    let mut overlap = vec![0_u32; k * k];
    for (to, from) in reference.iter().zip(colors) {
        overlap[*from as usize * k + *to as usize] += 1;
    }
    let mut pairs: Vec<usize> = (0..k * k).collect();
    pairs.sort_by_key(|pair| (std::cmp::Reverse(overlap[*pair]), *pair));
    let (mut name, mut is_taken) = (vec![usize::MAX; k], vec![false; k]);
    for pair in pairs {
        let (from, to) = (pair / k, pair % k);
        if name[from] == usize::MAX && !is_taken[to] {
            (name[from], is_taken[to]) = (to, true);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_colouring_under_other_names_is_the_same() {
        assert_eq!(aligned(&[0, 0, 1, 2], &[2, 2, 0, 1], 3), [1, 2, 0]);
    }

    #[test]
    fn agreement_leaves_conflicts_and_disagreement_promises_information() {
        // Vertices 0 and 1 always collide; 2 is in two classes, in neither of which it meets its neighbour.
        let graph = Graph::new(8, [(0, 1), (2, 3)]);
        let colorings = vec![vec![0, 0, 1, 0, 1, 1, 2, 2], vec![2, 2, 1, 2, 0, 0, 1, 1]];
        let trajectory = Trajectory { n: 8, conflicts: vec![], colorings, iterations: 0 };
        let priority = inference(&graph, &trajectory, 3);
        assert_eq!(priority, [1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
