//! Information that flows from the conflict history of a vertex to those of its neighbours.

use super::Trajectory;
use crate::graph::Graph;

/// What each vertex tells its neighbours: the sum of the transfer entropies from it to each of them, in bits.
///
/// The transfer entropy from `u` to `v` is what the last sample of `u` says about the next one of `v` beyond what the last one of `v`
/// says: Σ p(v', v, u) · log₂ (p(v' | v, u) / p(v' | v)).
pub fn transfer(graph: &Graph, trajectory: &Trajectory) -> Vec<f64> {
    let of = |from: usize| {
        let to = graph.neighbours(from).iter();
        to.map(|to| entropy(trajectory, from, *to as usize)).sum()
    };
    (0..graph.n()).map(of).collect()
}

fn entropy(trajectory: &Trajectory, from: usize, to: usize) -> f64 {
    // Counts by next of `to`, last of `to`, last of `from`.
    let mut counts = [[[0.0_f64; 2]; 2]; 2];
    for pair in trajectory.conflicts.windows(2) {
        let [last, next] = pair else { continue };
        counts[usize::from(next[to])][usize::from(last[to])][usize::from(last[from])] += 1.0;
    }
    let total: f64 = counts.iter().flatten().flatten().sum();
    let mut sum = 0.0;
    for next in 0..2 {
        for own in 0..2 {
            for other in 0..2 {
                let joint = counts[next][own][other];
                if joint == 0.0 {
                    continue;
                }
                let both = joint / (counts[0][own][other] + counts[1][own][other]);
                let alone_total: f64 = counts.iter().map(|by| by[own][0] + by[own][1]).sum();
                let alone = (counts[next][own][0] + counts[next][own][1]) / alone_total;
                sum += joint / total * libm::log2(both / alone);
            }
        }
    }
    sum.max(0.0)
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
        let (there, back) = (entropy(&trajectory, 0, 1), entropy(&trajectory, 1, 0));
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
