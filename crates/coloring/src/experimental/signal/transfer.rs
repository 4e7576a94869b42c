//! Information that flows from the conflict history of a vertex to those of its neighbours.

use super::Trajectory;
use crate::graph::Graph;

/// What each vertex tells its neighbours: the sum of the transfer entropies from it to each of them, in bits.
///
/// The transfer entropy from `u` to `v` is what the last sample of `u` says about the next one of `v` beyond what the last one of `v`
/// says: Σ p(v', v, u) · log₂ (p(v' | v, u) / p(v' | v)).
pub fn transfer(graph: &Graph, trajectory: &Trajectory) -> Vec<f64> {
    let logarithms = logarithms(trajectory);
    let of = |from: usize| {
        let mut told = 0.0;
        for to in graph.neighbours(from) {
            told += entropy(trajectory, &logarithms, from, *to as usize);
        }
        told
    };
    (0..graph.n()).map(of).collect()
}

/// Logarithms to the base 2 of all counts that can occur; that of 0 is never read. A table, because a device has no logarithm of ours.
pub(super) fn logarithms(trajectory: &Trajectory) -> Vec<f64> {
    let most = trajectory.conflicts.len().max(1);
    (0..=most).map(|count| libm::log2(count.max(1) as f64)).collect()
}

fn entropy(trajectory: &Trajectory, logarithms: &[f64], from: usize, to: usize) -> f64 {
    // Counts by next of `to`, last of `to`, last of `from`.
    let mut counts = [[[0_usize; 2]; 2]; 2];
    for pair in trajectory.conflicts.windows(2) {
        let [last, next] = pair else { continue };
        counts[usize::from(next[to])][usize::from(last[to])][usize::from(last[from])] += 1;
    }
    let total = trajectory.conflicts.len().saturating_sub(1) as f64;
    let mut sum = 0.0;
    for key in 0..8 {
        let (next, own, other) = (key >> 2, key >> 1 & 1, key & 1);
        let joint = counts[next][own][other];
        if joint == 0 {
            continue;
        }
        let pair = counts[0][own][other] + counts[1][own][other];
        let alone = counts[next][own][0] + counts[next][own][1];
        let all: usize = counts.iter().map(|by| by[own][0] + by[own][1]).sum();
        let bits = (logarithms[joint] + logarithms[all]) - (logarithms[pair] + logarithms[alone]);
        sum += joint as f64 / total * bits;
    }
    if sum > 0.0 { sum } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    #[test]
    fn information_flows_from_the_leader_to_the_follower() {
        let mut draw = Draw::new(3, 0);
        let mut leader = false;
        let conflicts = (0..4000).map(|_| {
            let follower = leader;
            leader = draw.below(2) == 0;
            vec![leader, follower, draw.below(2) == 0]
        });
        let trajectory =
            Trajectory { n: 3, conflicts: conflicts.collect(), colorings: vec![], iterations: 0 };
        let logarithms = logarithms(&trajectory);
        let flows = |from, to| entropy(&trajectory, &logarithms, from, to);
        let (there, back) = (flows(0, 1), flows(1, 0));
        assert!((there - 1.0).abs() < 0.01, "one bit a step: {there}");
        assert!(back < 0.01, "{back}");
        let graph = Graph::new(3, [(0, 1), (1, 2), (0, 2)]);
        let told = transfer(&graph, &trajectory);
        assert!(told[0] > 0.9 && told[1] < 0.02 && told[2] < 0.02, "{told:?}");
    }

    #[test]
    fn without_history_nothing_flows() {
        let trajectory = Trajectory { n: 2, conflicts: vec![], colorings: vec![], iterations: 0 };
        assert_eq!(transfer(&Graph::new(2, [(0, 1)]), &trajectory), [0.0, 0.0]);
    }
}
