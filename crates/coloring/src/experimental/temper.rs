//! Parallel tempering: replicas walk at the temperatures of a ladder, and neighbours on it change places.
//!
//! Cold replicas settle, hot ones cross barriers, and what a hot one has found comes down the ladder. Even and odd pairs change places in turn, with
//! the probability that keeps each temperature's distribution. Temperatures move, colourings stay where they are.

use tidemill_gpu::GpuError;

use super::metropolis::{Walk, Walkers, weight};
use crate::random::Random;
use crate::slot::fill;

/// A ladder of temperatures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemperOptions {
    /// Replicas, each with a temperature of its own.
    pub n_replicas: usize,
    /// The lowest temperature, in conflicts.
    pub coldest: f64,
    /// The highest temperature; the others lie between, each higher than the one before by the same factor.
    pub hottest: f64,
    /// Proposals of each replica between two changes of places.
    pub proposals: u64,
    /// Everything follows from it.
    pub seed: u64,
}

impl TemperOptions {
    /// A ladder that suits random graphs.
    pub fn new(n_replicas: usize, proposals: u64, seed: u64) -> Self {
        Self { n_replicas, coldest: 0.22, hottest: 0.36, proposals, seed }
    }

    /// The temperatures, the coldest first.
    pub fn temperatures(&self) -> Vec<f64> {
        let last = self.n_replicas.saturating_sub(1).max(1) as f64;
        let ratio = libm::log(self.hottest / self.coldest);
        (0..self.n_replicas).map(|rung| self.coldest * libm::exp(ratio * rung as f64 / last)).collect()
    }
}

/// The result of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its number, from 0.
    pub number: u64,
    /// Conflicts of the coldest replica.
    pub coldest: u32,
    /// Conflicts of the hottest replica.
    pub hottest: u32,
    /// Conflicts of the best colouring since the beginning.
    pub best_conflicts: u32,
    /// Pairs that changed places.
    pub swaps: usize,
    /// Proposals of all replicas.
    pub proposals: u64,
}

/// Replicas on a ladder.
#[derive(Debug)]
pub struct Temper<W> {
    walkers: W,
    options: TemperOptions,
    temperatures: Vec<f64>,
    /// The replica on each rung.
    on_rung: Vec<usize>,
    round: u64,
    best: Vec<u32>,
    best_conflicts: u32,
}

impl<W: Walkers> Temper<W> {
    /// Replicas that begin at the given colourings, the first on the coldest rung, and at random ones.
    pub fn new(mut walkers: W, options: TemperOptions, given: &[Vec<u32>]) -> Result<Self, GpuError> {
        let options = TemperOptions { n_replicas: options.n_replicas.max(1), ..options };
        fill(&mut walkers, options.n_replicas, given, options.seed)?;
        Ok(Self {
            best: vec![0; walkers.n()],
            walkers,
            temperatures: options.temperatures(),
            on_rung: (0..options.n_replicas).collect(),
            options,
            round: 0,
            best_conflicts: u32::MAX,
        })
    }

    /// The colouring with the fewest conflicts.
    pub fn best(&self) -> &[u32] {
        &self.best
    }

    /// Its conflicts; `u32::MAX` before the first round.
    pub fn best_conflicts(&self) -> u32 {
        self.best_conflicts
    }

    /// Replicas.
    pub fn n_replicas(&self) -> usize {
        self.on_rung.len()
    }

    /// The lowest and the highest temperature.
    pub fn ends(&self) -> (f64, f64) {
        let end = |temperature: Option<&f64>| temperature.copied().unwrap_or(f64::NAN);
        (end(self.temperatures.first()), end(self.temperatures.last()))
    }

    /// Makes all temperatures higher or lower by a factor, from the next round on.
    pub fn scale_temperatures(&mut self, factor: f64) {
        self.temperatures.iter_mut().for_each(|temperature| *temperature *= factor);
    }

    /// All replicas walk, then neighbours on the ladder change places.
    pub fn step(&mut self) -> Result<Round, GpuError> {
        let proposals = self.options.proposals;
        let walk = |(&slot, &temperature): (&usize, &f64)| Walk {
            slot,
            first: self.round * proposals,
            count: proposals,
            random: Random::new(self.options.seed, slot as u64 * 2 + 2),
            weight: weight(1.0, temperature),
            coupling: 0,
            beside: [0, 0],
        };
        let walks: Vec<Walk> = self.on_rung.iter().zip(&self.temperatures).map(walk).collect();
        let walked = self.walkers.walk(&walks)?;
        for (walk, walked) in walks.iter().zip(&walked) {
            if walked.best_conflicts < self.best_conflicts {
                self.best_conflicts = walked.best_conflicts;
                self.best = self.walkers.read_best(walk.slot)?;
            }
        }
        let mut conflicts: Vec<f64> = walked.iter().map(|walked| f64::from(walked.conflicts)).collect();
        let random = Random::new(self.options.seed, 0);
        let mut swaps = 0;
        for rung in (self.round as usize % 2..self.on_rung.len().saturating_sub(1)).step_by(2) {
            let (cold, hot) = (self.temperatures[rung], self.temperatures[rung + 1]);
            let gain = (1.0 / cold - 1.0 / hot) * (conflicts[rung] - conflicts[rung + 1]);
            let bits = random.bits(self.round * self.on_rung.len() as u64 + rung as u64) >> 11;
            if gain >= 0.0 || (bits as f64) < libm::exp(gain) * (1_u64 << 53) as f64 {
                self.on_rung.swap(rung, rung + 1);
                conflicts.swap(rung, rung + 1);
                swaps += 1;
            }
        }
        let round = Round {
            number: self.round,
            coldest: walked.first().map_or(0, |walked| walked.conflicts),
            hottest: walked.last().map_or(0, |walked| walked.conflicts),
            best_conflicts: self.best_conflicts,
            swaps,
            proposals: proposals * self.on_rung.len() as u64,
        };
        self.round += 1;
        Ok(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;
    use crate::slot::CpuSlots;
    use crate::tabu::Matrix;

    #[test]
    fn the_ladder_has_its_ends_and_equal_ratios() {
        let ladder =
            TemperOptions { n_replicas: 5, coldest: 0.1, hottest: 1.6, ..TemperOptions::new(5, 1, 1) };
        let expected = [0.1, 0.2, 0.4, 0.8, 1.6];
        assert!(ladder.temperatures().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(TemperOptions::new(1, 1, 1).temperatures(), [0.22]);
    }

    #[test]
    fn cold_replicas_have_fewer_conflicts_and_a_colouring_is_found() {
        let random = Random::new(8, 8);
        let pairs = (0..80_u32).flat_map(|a| (a + 1..80).map(move |b| (a, b)));
        let joined = pairs.filter(|&(a, b)| a % 6 != b % 6 && random.below(u64::from(a * 80 + b), 100) < 60);
        let graph = Graph::new(80, joined);
        let matrix = Matrix::new(&graph);
        let options = TemperOptions { hottest: 3.0, ..TemperOptions::new(6, 2_000, 2) };
        let mut temper = Temper::new(CpuSlots::new(&graph, &matrix, 6), options, &[]).unwrap();
        let (mut cold, mut hot, mut swaps) = (0, 0, 0);
        while temper.best_conflicts() > 0 {
            let round = temper.step().unwrap();
            assert!(round.number < 500, "{round:?}");
            (cold, hot, swaps) = (cold + round.coldest, hot + round.hottest, swaps + round.swaps);
        }
        assert!(cold < hot, "{cold} at the cold end, {hot} at the hot one");
        assert!(swaps > 0);
        let colors = temper.best();
        assert!((0..80).all(|v| graph.neighbours(v).iter().all(|u| colors[*u as usize] != colors[v])));
    }
}
