//! A leaky network whose neurons are the vertices and whose weights are the adjacency, driven by the conflicts of a search.

use super::Trajectory;
use crate::graph::Graph;

/// How much of its state a neuron gives up in a step.
const LEAK: f64 = 0.3;

/// What it keeps.
const KEPT: f64 = 0.7;

/// The largest eigenvalue of the weights; below 1, so that what was long ago fades.
const RADIUS: f64 = 0.9;

/// Share of the samples that only warm the network up.
const WARM_UP: usize = 4;

/// How strongly each vertex responds: the mean size of its neuron's state after the warm-up.
pub fn reservoir(graph: &Graph, trajectory: &Trajectory) -> Vec<f64> {
    let n = graph.n();
    let scale = scale(graph);
    let mut state = vec![0.0_f64; n];
    let mut response = vec![0.0_f64; n];
    let n_warm = n_warm(trajectory);
    for (at, sample) in trajectory.conflicts.iter().enumerate() {
        let next = |vertex: usize| {
            let mut around = 0.0;
            graph.neighbours(vertex).iter().for_each(|other| around += state[*other as usize]);
            let input = if sample[vertex] { 1.0 } else { 0.0 };
            KEPT * state[vertex] + LEAK * squashed(scale * around + input)
        };
        state = (0..n).map(next).collect();
        if at >= n_warm {
            response.iter_mut().zip(&state).for_each(|(sum, value)| *sum += value.abs());
        }
    }
    averaged(response, trajectory)
}

/// The factor on what comes from the neighbours.
pub(super) fn scale(graph: &Graph) -> f64 {
    RADIUS / spectral_radius(graph).max(1e-12)
}

/// The samples that only warm the network up.
pub(super) fn n_warm(trajectory: &Trajectory) -> usize {
    trajectory.conflicts.len() / WARM_UP
}

/// Means over the samples after the warm-up.
pub(super) fn averaged(response: Vec<f64>, trajectory: &Trajectory) -> Vec<f64> {
    let n_counted = trajectory.conflicts.len().saturating_sub(n_warm(trajectory)).max(1) as f64;
    response.iter().map(|sum| sum / n_counted).collect()
}

/// The hyperbolic tangent within 2·10⁻⁴, by Lambert's continued fraction: the same bits on a device, which has no tanh of ours.
fn squashed(x: f64) -> f64 {
    let square = x * x;
    let above = x * (135_135.0 + square * (17_325.0 + square * (378.0 + square)));
    let below = 135_135.0 + square * (62_370.0 + square * (3_150.0 + square * 28.0));
    (above / below).clamp(-1.0, 1.0)
}

/// The largest eigenvalue of the adjacency, by the power method on `A + 1`, which has no other one of the same size.
fn spectral_radius(graph: &Graph) -> f64 {
    let n = graph.n();
    let mut vector = vec![1.0_f64; n];
    let mut size = 0.0;
    for _ in 0..100 {
        let row = |vertex: usize| {
            let around: f64 = graph.neighbours(vertex).iter().map(|other| vector[*other as usize]).sum();
            around + vector[vertex]
        };
        let image: Vec<f64> = (0..n).map(row).collect();
        size = image.iter().copied().fold(0.0, f64::max);
        if size == 0.0 {
            return 0.0;
        }
        vector = image.iter().map(|value| value / size).collect();
    }
    size - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radius_of_known_graphs_is_right() {
        let clique = Graph::new(6, (0..6_u32).flat_map(|b| (0..b).map(move |a| (a, b))));
        assert!((spectral_radius(&clique) - 5.0).abs() < 1e-9);
        let star = Graph::new(5, (1..5).map(|leaf| (0, leaf)));
        assert!((spectral_radius(&star) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn the_squashing_function_is_the_hyperbolic_tangent() {
        for step in -2_000..=2_000 {
            let x = f64::from(step) / 100.0;
            assert!((squashed(x) - libm::tanh(x)).abs() < 2e-4, "{x}");
        }
        assert_eq!((squashed(0.0), squashed(1e9), squashed(-1e9)), (0.0, 1.0, -1.0));
    }

    #[test]
    fn who_is_in_conflict_responds_and_so_do_the_neighbours_but_not_strangers() {
        let graph = Graph::new(5, [(0, 1), (1, 2), (3, 4)]);
        let sample = vec![true, false, false, false, false];
        let trajectory = Trajectory { n: 5, conflicts: vec![sample; 20], colorings: vec![], iterations: 0 };
        let response = reservoir(&graph, &trajectory);
        assert!(response[0] > response[1] && response[1] > response[2] && response[2] > 0.0, "{response:?}");
        assert_eq!(&response[3..], [0.0, 0.0]);
    }
}
