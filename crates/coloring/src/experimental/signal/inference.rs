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
    let Some(beliefs) = Beliefs::new(trajectory, k) else { return vec![0.0; n] };
    let marginal =
        |vertex: usize, color: usize| f64::from(beliefs.counts[vertex * k + color]) * beliefs.weight;
    let of = |vertex: usize| {
        let mut expected = 0.0;
        for other in graph.neighbours(vertex) {
            let mut together = 0.0;
            (0..k).for_each(|color| together += marginal(vertex, color) * marginal(*other as usize, color));
            expected += together;
        }
        let mut gain = 0.0;
        let own = &beliefs.counts[vertex * k..(vertex + 1) * k];
        own.iter().for_each(|count| gain += beliefs.surprise[*count as usize]);
        expected - gain
    };
    (0..n).map(of).collect()
}

/// What an ensemble of colourings believes.
pub(super) struct Beliefs {
    /// How many colourings give a vertex a colour, `k` numbers for each vertex.
    pub(super) counts: Vec<u32>,
    /// What learning a colour gives that so many colourings have, in bits.
    pub(super) surprise: Vec<f64>,
    /// One colouring as a share of all.
    pub(super) weight: f64,
}

impl Beliefs {
    /// None without a colouring.
    pub(super) fn new(trajectory: &Trajectory, k: usize) -> Option<Self> {
        let first = trajectory.colorings.first()?;
        let mut counts = vec![0; trajectory.n * k];
        for colors in &trajectory.colorings {
            let renamed = aligned(first, colors, k);
            for (vertex, color) in colors.iter().enumerate() {
                counts[vertex * k + renamed[*color as usize]] += 1;
            }
        }
        let n_colorings = trajectory.colorings.len();
        let weight = 1.0 / n_colorings as f64;
        let surprise = |count: usize| {
            let share = count as f64 * weight;
            if count > 0 { -share * libm::log2(share) } else { 0.0 }
        };
        Some(Self { counts, surprise: (0..=n_colorings).map(surprise).collect(), weight })
    }
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
