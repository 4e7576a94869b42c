//! Tempering and annealing as searches of many colourings at a time.

use tidemill_gpu::{GpuError, Stream};

use super::anneal::{Anneal, AnnealOptions};
use super::metropolis::{DeviceWalkers, Walkers};
use super::temper::{Temper, TemperOptions};
use crate::device::DeviceGraph;
use crate::phase::{Evolve, PhaseInput, PhaseKind, Step};
use crate::slot::CpuSlots;

/// Proposals of a replica in a step, for each vertex.
const PROPOSALS: u64 = 32;

/// Replicas on the CPU.
const REPLICAS: usize = 12;

/// Rounds of an annealing.
const ROUNDS: u64 = 400;

/// What replicas begin with.
pub(crate) struct Begin<'g> {
    pub(crate) kind: PhaseKind,
    /// Factor on the number of replicas.
    pub(crate) population: f64,
    /// Factor on temperatures.
    pub(crate) heat: f64,
    pub(crate) seed: u64,
    /// Colourings of the first replicas.
    pub(crate) given: &'g [Vec<u32>],
}

impl Begin<'_> {
    /// A dozen replicas on the CPU.
    pub(crate) fn on_cpu<'a>(&self, input: &PhaseInput<'a>) -> Result<Box<dyn Evolve + 'a>, GpuError> {
        let n_replicas = ((REPLICAS as f64 * self.population) as usize).max(4);
        let walkers = CpuSlots::new(input.graph, input.matrix, input.k);
        let n = input.graph.n();
        if self.kind == PhaseKind::Tempering {
            self.tempering(walkers, n, n_replicas)
        } else {
            self.annealing(walkers, AnnealOptions { n_slices: n_replicas, ..self.schedule(n, 1) })
        }
    }

    /// As many as the device has room for, and their number.
    pub(crate) fn on_device<'a>(
        &self,
        graph: &'a DeviceGraph,
        k: usize,
        stream: Stream,
    ) -> Result<(Box<dyn Evolve + 'a>, u64), GpuError> {
        let walkers = DeviceWalkers::new(graph, k, stream)?;
        let is_coupled = self.kind == PhaseKind::Annealing;
        let n_resident = ((walkers.n_resident(is_coupled)? as f64 * self.population) as usize).max(2);
        if !is_coupled {
            return Ok((self.tempering(walkers, graph.n(), n_resident)?, n_resident as u64));
        }
        let options = self.schedule(graph.n(), (n_resident / 8).max(1));
        let width = (options.n_rings * options.n_slices) as u64;
        Ok((self.annealing(walkers, options)?, width))
    }

    fn tempering<'a, W: Walkers + Send + 'a>(
        &self,
        walkers: W,
        n: usize,
        n_replicas: usize,
    ) -> Result<Box<dyn Evolve + 'a>, GpuError> {
        let options = TemperOptions::new(n_replicas, PROPOSALS * n as u64, self.seed);
        let (coldest, hottest) = (options.coldest * self.heat, options.hottest * self.heat);
        Ok(Box::new(Temper::new(walkers, TemperOptions { coldest, hottest, ..options }, self.given)?))
    }

    fn schedule(&self, n: usize, n_rings: usize) -> AnnealOptions {
        AnnealOptions::new(n_rings, ROUNDS, PROPOSALS * n as u64, self.seed)
    }

    fn annealing<'a, W: Walkers + Send + 'a>(
        &self,
        walkers: W,
        options: AnnealOptions,
    ) -> Result<Box<dyn Evolve + 'a>, GpuError> {
        let temperature = options.temperature * self.heat;
        let anneal = Anneal::new(walkers, AnnealOptions { temperature, ..options }, self.given)?;
        Ok(Box::new(Annealing { population: anneal.n_replicas(), anneal, temperature }))
    }
}

impl<W: Walkers + Send> Evolve for Temper<W> {
    fn step(&mut self, _stop: &(dyn Fn() -> bool + Sync)) -> Result<Step, GpuError> {
        let round = Temper::step(self)?;
        Ok(Step {
            iterations: round.proposals,
            is_cut: false,
            values: vec![
                ("coldest", f64::from(round.coldest)),
                ("hottest", f64::from(round.hottest)),
                ("swaps", round.swaps as f64),
            ],
        })
    }

    fn conflicts(&self) -> u32 {
        self.best_conflicts()
    }

    fn found(&mut self) -> Result<Vec<u32>, GpuError> {
        Ok(self.best().to_vec())
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        let (coldest, hottest) = self.ends();
        let population = self.n_replicas() as f64;
        vec![("population", population), ("temperature", coldest), ("hottest_temperature", hottest)]
    }

    fn heat(&mut self, factor: f64) {
        self.scale_temperatures(factor);
    }
}

/// An annealing that remembers its temperature.
struct Annealing<W> {
    anneal: Anneal<W>,
    population: usize,
    temperature: f64,
}

impl<W: Walkers + Send> Evolve for Annealing<W> {
    fn step(&mut self, _stop: &(dyn Fn() -> bool + Sync)) -> Result<Step, GpuError> {
        let cooling = self.anneal.step()?;
        Ok(Step { iterations: cooling.proposals, is_cut: false, values: vec![("field", cooling.field)] })
    }

    fn conflicts(&self) -> u32 {
        self.anneal.best_conflicts()
    }

    fn found(&mut self) -> Result<Vec<u32>, GpuError> {
        Ok(self.anneal.best().to_vec())
    }

    fn parameters(&self) -> Vec<(&'static str, f64)> {
        vec![("population", self.population as f64), ("temperature", self.temperature)]
    }

    fn heat(&mut self, factor: f64) {
        self.temperature *= factor;
        self.anneal.set_temperature(self.temperature);
    }
}
