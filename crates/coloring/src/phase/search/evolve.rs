//! Many colourings at a time, in steps: what the searches of populations and replicas have in common.

use tidemill_gpu::GpuError;

use crate::memetic::{Memetic, Pool};
use crate::random::Random;
use crate::tabu::device::DeviceTabu;

/// The result of a step.
pub(crate) struct Step {
    /// Iterations of all colourings.
    pub(crate) iterations: u64,
    /// Whether it was cut short, so that the whole is of no further use.
    pub(crate) is_cut: bool,
    /// Measured numbers, by name.
    pub(crate) values: Vec<(&'static str, f64)>,
}

/// Many colourings that change in steps.
pub(crate) trait Evolve: Send {
    /// One step.
    fn step(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Step, GpuError>;

    /// Conflicts of the best so far, `u32::MAX` before the first step.
    fn conflicts(&self) -> u32;

    /// The best so far.
    fn found(&mut self) -> Result<Vec<u32>, GpuError>;

    /// What it works with at present, as numbers by name.
    fn parameters(&self) -> Vec<(&'static str, f64)>;

    /// Makes temperatures higher or lower by a factor, where there are any.
    fn heat(&mut self, _factor: f64) {}
}

impl<P: Pool + Send> Evolve for Memetic<P> {
    fn step(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Step, GpuError> {
        Ok(match Memetic::step(self, stop)? {
            Some(generation) => Step {
                iterations: generation.iterations,
                is_cut: false,
                values: vec![
                    ("generation", generation.number as f64),
                    ("distance", f64::from(generation.mean_distance)),
                    ("restarts", generation.restarts as f64),
                ],
            },
            None => Step { iterations: 0, is_cut: true, values: Vec::new() },
        })
    }

    fn conflicts(&self) -> u32 {
        self.best_conflicts()
    }

    fn found(&mut self) -> Result<Vec<u32>, GpuError> {
        Ok(self.best().to_vec())
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        let options = self.options();
        let population = options.n_islands * options.island_size;
        vec![("population", population as f64), ("child_iterations", options.iterations as f64)]
    }
}

/// Many tabu searches side by side on a device.
pub(super) struct Swarm<'a> {
    tabu: DeviceTabu<'a>,
    /// Iterations of each search in a step.
    iterations: u64,
    n_searches: usize,
    made: u64,
    best: (u32, usize),
}

impl<'a> Swarm<'a> {
    /// Searches that begin at the given colourings, in turn, each with chances of its own.
    pub(super) fn new(
        graph: &'a crate::device::DeviceGraph,
        k: usize,
        stream: tidemill_gpu::Stream,
        n_searches: usize,
        iterations: u64,
        seed: u64,
        given: &[Vec<u32>],
    ) -> Result<Self, GpuError> {
        let starts: Vec<(Random, Vec<u32>)> = (0..n_searches)
            .map(|search| {
                let random = Random::new(seed, search as u64 * 2);
                let scattered =
                    || crate::slot::scattered(graph.n(), k, &Random::new(seed, search as u64 * 2 + 1));
                (random, given.get(search).cloned().unwrap_or_else(scattered))
            })
            .collect();
        let starts: Vec<(Random, &[u32])> =
            starts.iter().map(|(random, colors)| (*random, &colors[..])).collect();
        let tabu = DeviceTabu::new(graph, k, stream, &starts)?;
        Ok(Self { tabu, iterations, n_searches, made: 0, best: (u32::MAX, 0) })
    }
}

impl Evolve for Swarm<'_> {
    fn step(&mut self, _stop: &(dyn Fn() -> bool + Sync)) -> Result<Step, GpuError> {
        let outcomes = self.tabu.run(self.iterations)?;
        let made: u64 = outcomes.iter().map(|outcome| outcome.iterations).sum();
        let conflicts = outcomes.iter().map(|outcome| outcome.conflicts);
        if let Some(best) = conflicts.zip(0..).min() {
            self.best = self.best.min(best);
        }
        let step = Step {
            iterations: made.saturating_sub(self.made),
            is_cut: false,
            values: vec![("searches", outcomes.len() as f64)],
        };
        self.made = made;
        Ok(step)
    }

    fn conflicts(&self) -> u32 {
        self.best.0
    }

    fn found(&mut self) -> Result<Vec<u32>, GpuError> {
        self.tabu.best(self.best.1)
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("population", self.n_searches as f64)]
    }
}
