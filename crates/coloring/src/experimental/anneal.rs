//! Path-integral annealing, after Titiloye and Crispin: a ring of coupled replicas in a field that fades.
//!
//! The replicas are slices of one quantum system at a fixed low temperature. A strong field lets them differ, a fading one
//! draws them together: neighbours in the ring are coupled by the pairs of vertices that share a class in both, whatever the names of the
//! classes. Even slices walk while odd ones stand still, and the other way round, so that all slices of a kind walk at the same time.

use tidemill_gpu::GpuError;

use super::metropolis::{Walk, Walkers, weight};
use crate::random::Random;
use crate::slot::fill;

/// Options of an annealing: its replicas, and how the field fades.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnnealOptions {
    /// Rings, each a system of its own.
    pub n_rings: usize,
    /// Slices of a ring; an even number, at least 4.
    pub n_slices: usize,
    /// The temperature of a slice, in conflicts: that of the system times the slices.
    pub temperature: f64,
    /// The field at the beginning and at the end, in units of that temperature.
    pub field: [f64; 2],
    /// Rounds in which the field goes from one to the other; then it begins anew.
    pub n_rounds: u64,
    /// Proposals of each slice in a round.
    pub proposals: u64,
    /// Everything follows from it.
    pub seed: u64,
}

impl AnnealOptions {
    /// A schedule that suits random graphs.
    pub fn new(n_rings: usize, n_rounds: u64, proposals: u64, seed: u64) -> Self {
        Self { n_rings, n_slices: 8, temperature: 0.35, field: [2.0, 0.6], n_rounds, proposals, seed }
    }

    /// The field of a round.
    fn field_of(&self, round: u64) -> f64 {
        let last = self.n_rounds.saturating_sub(1).max(1);
        let share = (round % self.n_rounds.max(1)) as f64 / last as f64;
        self.field[0] + (self.field[1] - self.field[0]) * share
    }

    /// What a shared pair of vertices is worth in a field, in units of the temperature.
    pub fn coupling(field: f64) -> f64 {
        -0.5 * libm::log(libm::tanh(field.max(1e-6)))
    }
}

/// The result of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cooling {
    /// Its number, from 0.
    pub number: u64,
    /// The field.
    pub field: f64,
    /// Conflicts of the best slice.
    pub conflicts: u32,
    /// Conflicts of the best colouring since the beginning.
    pub best_conflicts: u32,
    /// Proposals of all slices.
    pub proposals: u64,
}

/// Rings of slices.
#[derive(Debug)]
pub struct Anneal<W> {
    walkers: W,
    options: AnnealOptions,
    round: u64,
    best: Vec<u32>,
    best_conflicts: u32,
}

impl<W: Walkers> Anneal<W> {
    /// Rings whose slices begin at the given colourings, one after another, and at random ones.
    pub fn new(mut walkers: W, options: AnnealOptions, given: &[Vec<u32>]) -> Result<Self, GpuError> {
        let options = AnnealOptions {
            n_rings: options.n_rings.max(1),
            n_slices: options.n_slices.max(4).next_multiple_of(2),
            ..options
        };
        fill(&mut walkers, options.n_rings * options.n_slices, given, options.seed)?;
        Ok(Self { best: vec![0; walkers.n()], walkers, options, round: 0, best_conflicts: u32::MAX })
    }

    /// The colouring with the fewest conflicts.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// Its conflicts; `u32::MAX` before the first round.
    pub fn best_conflicts(&self) -> u32 {
        self.best_conflicts
    }

    /// Replicas of all rings.
    pub fn n_replicas(&self) -> usize {
        self.options.n_rings * self.options.n_slices
    }

    /// Changes the temperature from the next round on.
    pub fn set_temperature(&mut self, temperature: f64) {
        self.options.temperature = temperature;
    }

    /// Even slices walk, then odd ones.
    pub fn step(&mut self) -> Result<Cooling, GpuError> {
        let AnnealOptions { n_rings, n_slices, proposals, temperature, .. } = self.options;
        let field = self.options.field_of(self.round);
        let coupling = weight(AnnealOptions::coupling(field), 1.0).max(1);
        let mut conflicts = u32::MAX;
        for parity in 0..2 {
            let slices =
                (0..n_rings).flat_map(|ring| (parity..n_slices).step_by(2).map(move |slice| (ring, slice)));
            let walks: Vec<Walk> = slices
                .map(|(ring, slice)| {
                    let slot = |slice: usize| ring * n_slices + slice % n_slices;
                    Walk {
                        slot: slot(slice),
                        first: self.round * proposals,
                        count: proposals,
                        random: Random::new(self.options.seed, slot(slice) as u64 * 2 + 2),
                        weight: weight(1.0, temperature),
                        coupling,
                        beside: [slot(slice + n_slices - 1), slot(slice + 1)],
                    }
                })
                .collect();
            for (walk, walked) in walks.iter().zip(self.walkers.walk(&walks)?) {
                conflicts = conflicts.min(walked.conflicts);
                if walked.best_conflicts < self.best_conflicts {
                    self.best_conflicts = walked.best_conflicts;
                    self.best = self.walkers.read_best(walk.slot)?;
                }
            }
        }
        let cooling = Cooling {
            number: self.round,
            field,
            conflicts,
            best_conflicts: self.best_conflicts,
            proposals: proposals * (n_rings * n_slices) as u64,
        };
        self.round += 1;
        Ok(cooling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;
    use crate::memetic::distance;
    use crate::slot::{CpuSlots, Slots};
    use crate::tabu::Matrix;

    fn graph() -> Graph {
        let random = Random::new(8, 8);
        let pairs = (0..80_u32).flat_map(|a| (a + 1..80).map(move |b| (a, b)));
        Graph::new(
            80,
            pairs.filter(|&(a, b)| a % 6 != b % 6 && random.below(u64::from(a * 80 + b), 100) < 60),
        )
    }

    #[test]
    fn the_field_fades_and_begins_anew() {
        let options = AnnealOptions { field: [3.0, 1.0], ..AnnealOptions::new(1, 5, 1, 1) };
        let fields: Vec<f64> = (0..6).map(|round| options.field_of(round)).collect();
        assert_eq!(fields, [3.0, 2.5, 2.0, 1.5, 1.0, 3.0]);
        assert!(AnnealOptions::coupling(0.5) > AnnealOptions::coupling(2.0));
    }

    #[test]
    fn a_weak_field_draws_slices_together() {
        let graph = graph();
        let matrix = Matrix::new(&graph);
        let mean_distance = |field: f64| {
            // With five colours there is no end before all rounds are done.
            let options = AnnealOptions { field: [field, field], ..AnnealOptions::new(1, 40, 3_000, 2) };
            let mut anneal = Anneal::new(CpuSlots::new(&graph, &matrix, 5), options, &[]).unwrap();
            for _ in 0..40 {
                anneal.step().unwrap();
            }
            let slices: Vec<Vec<u32>> = (0..8).map(|slot| anneal.walkers.read(slot).unwrap()).collect();
            (0..8).map(|slot| distance(&slices[slot], &slices[(slot + 1) % 8], 5)).sum::<u32>()
        };
        let (strong, weak) = (mean_distance(4.0), mean_distance(0.5));
        assert!(weak * 2 < strong, "{weak} in a weak field, {strong} in a strong one");
    }

    #[test]
    fn a_colouring_is_found() {
        let graph = graph();
        let matrix = Matrix::new(&graph);
        let options = AnnealOptions::new(2, 30, 3_000, 5);
        let mut anneal = Anneal::new(CpuSlots::new(&graph, &matrix, 6), options, &[]).unwrap();
        while anneal.best_conflicts() > 0 {
            let cooling = anneal.step().unwrap();
            assert!(cooling.number < 300, "{cooling:?}");
        }
        let colors = anneal.best();
        assert!((0..80).all(|v| graph.neighbours(v).iter().all(|u| colors[*u as usize] != colors[v])));
    }
}
