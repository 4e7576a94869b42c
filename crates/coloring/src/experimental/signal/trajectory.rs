//! What a short tabu search went through: who was in conflict when, and which colourings it ended with.

use crate::phase::PhaseInput;
use crate::random::Random;
use crate::tabu::Tabu;

/// Random numbers of recorded searches.
const STREAM: u64 = 0x7472_616a << 16;

/// The recording of several short searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trajectory {
    /// Number of vertices.
    pub n: usize,
    /// For every sample, whether each vertex was in conflict.
    pub conflicts: Vec<Vec<bool>>,
    /// Where each search was at its best.
    pub colorings: Vec<Vec<u32>>,
    /// Iterations in all.
    pub iterations: u64,
}

impl Trajectory {
    /// Records `n_searches` searches of `n_samples` samples each, `every` iterations apart. The first begins at the input's colouring,
    /// the others by chance.
    pub fn record(
        input: &PhaseInput<'_>,
        n_searches: u64,
        n_samples: usize,
        every: u64,
        stop: &dyn Fn() -> bool,
    ) -> Self {
        let n = input.graph.n();
        let mut trajectory = Self { n, conflicts: Vec::new(), colorings: Vec::new(), iterations: 0 };
        for number in 0..n_searches {
            let random = Random::new(input.seed, STREAM + number);
            let chance: Vec<u32>;
            let start = if number == 0 {
                input.start
            } else {
                chance = (0..n as u64).map(|vertex| random.below(1 << 60 | vertex, input.k as u32)).collect();
                &chance
            };
            let mut tabu = Tabu::new(input.graph, input.matrix, input.k, random, start);
            for _ in 0..n_samples {
                if stop() {
                    break;
                }
                trajectory.iterations += tabu.run(every, stop).iterations;
                trajectory.conflicts.push(in_conflict(input, tabu.colors()));
                if tabu.best_conflicts() == 0 {
                    break;
                }
            }
            trajectory.colorings.push(tabu.best().to_vec());
        }
        trajectory
    }
}

fn in_conflict(input: &PhaseInput<'_>, colors: &[u32]) -> Vec<bool> {
    let of = |vertex: usize| {
        let mut neighbours = input.graph.neighbours(vertex).iter();
        neighbours.any(|other| colors[*other as usize] == colors[vertex])
    };
    (0..input.graph.n()).map(of).collect()
}
