//! Populations and replicas as a phase: on a device where there is one, else on the CPU.
//!
//! If a device fails and the CPU may take over, it does so with the best colouring so far, and every later report carries the reason.

use tidemill_gpu::GpuError;
use tidemill_telemetry::DeviceMode;

use super::evolve::{Evolve, Step, Swarm};
use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::error::ColoringError;
use crate::experimental::replica::Begin;
use crate::knob::Knobs;
use crate::memetic::{DevicePool, Memetic, MemeticOptions};
use crate::phase::DeviceInput;
use crate::random::mix;
use crate::slot::CpuSlots;
use crate::tabu::device::DeviceTabu;
use crate::tabu::mean_tenure;
use crate::warm::n_conflicting;

/// A child's search gets one iteration for so many edges: long enough to mend what crossing broke, not so long that nothing of the parents
/// is left. In sparse graphs that is soon.
const EDGES: u64 = 12;

/// The least iterations of a child's tabu search.
const LEAST: u64 = 2_500;

/// A population that began anew because the one before led nowhere has children that search twice as long, so many times.
const DOUBLED: u64 = 3;

/// A colouring on a device is given an iteration where one on the CPU is given so many: single ones are slower there, and so both take about as
/// long.
const SLOWER: u64 = 3;

/// Many colourings.
pub(super) struct Colony<'a> {
    kind: PhaseKind,
    input: PhaseInput<'a>,
    evolve: Option<Box<dyn Evolve + 'a>>,
    /// Why the CPU took over from the device.
    fallback: Option<String>,
    n_starts: u64,
    /// Iterations that were given and not yet made; a step is never cut.
    left: i64,
    n_idle: u64,
    heat: f64,
    /// Number of the stream on the device.
    stream: u32,
    /// Colourings on a device; 1 on the CPU.
    width: u64,
    best: (u32, Vec<u32>),
}

impl<'a> Colony<'a> {
    /// Begins at the input's colouring and at random ones.
    pub(super) fn new(kind: PhaseKind, input: PhaseInput<'a>) -> Self {
        let best = (u32::MAX, input.start.to_vec());
        Self {
            kind,
            input,
            evolve: None,
            fallback: None,
            n_starts: 0,
            left: 0,
            n_idle: 0,
            heat: 1.0,
            stream: 0,
            width: 1,
            best,
        }
    }

    /// The device, as long as it has not failed.
    fn device(&self) -> Option<DeviceInput<'a>> {
        self.input.device.filter(|_| self.fallback.is_none())
    }

    /// Makes a new one that knows the given colourings.
    fn begin(&mut self, knobs: &Knobs, given: &[Vec<u32>]) -> Result<Box<dyn Evolve + 'a>, ColoringError> {
        self.n_starts += 1;
        self.n_idle = 0;
        let seed = mix(self.input.seed ^ mix(self.n_starts) ^ self.kind as u64);
        if let Some(device) = self.device() {
            match self.on_device(device, knobs, seed, given) {
                Ok(evolve) => return Ok(evolve),
                Err(error) if device.may_fall_back => self.fallback = Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.on_cpu(knobs, seed, given)?)
    }

    /// Iterations of a search in a step.
    fn iterations(&self) -> u64 {
        let usual = (self.input.graph.n_edges() as u64 / EDGES).max(LEAST);
        (usual * self.input.child_quarters / 4).max(LEAST)
    }

    /// Iterations of a child of the population that begins.
    fn child_iterations(&self) -> u64 {
        self.iterations() << self.n_starts.saturating_sub(1).min(DOUBLED)
    }

    fn on_cpu(
        &mut self,
        knobs: &Knobs,
        seed: u64,
        given: &[Vec<u32>],
    ) -> Result<Box<dyn Evolve + 'a>, GpuError> {
        self.width = 1;
        let PhaseInput { graph, matrix, k, .. } = self.input;
        Ok(match self.kind {
            PhaseKind::Tempering | PhaseKind::Annealing => {
                self.replicas(knobs, seed, given).on_cpu(&self.input)?
            }
            _ => {
                let options = MemeticOptions::head(self.child_iterations(), seed);
                Box::new(Memetic::new(CpuSlots::new(graph, matrix, k), options, given)?)
            }
        })
    }

    fn on_device(
        &mut self,
        device: DeviceInput<'a>,
        knobs: &Knobs,
        seed: u64,
        given: &[Vec<u32>],
    ) -> Result<Box<dyn Evolve + 'a>, GpuError> {
        let (graph, k) = (device.graph, self.input.k);
        // It stays the phase's own: one search after another works on it.
        let stream = match device.streams.of(self.kind) {
            Some(stream) => stream.clone(),
            None => graph.device().stream()?,
        };
        self.stream = stream.number() as u32;
        let many = |n: usize| ((n as f64 * knobs.population) as usize).max(2);
        Ok(match self.kind {
            PhaseKind::Tabu => {
                let n_searches = many(DeviceTabu::n_resident(graph, k)?);
                self.width = n_searches as u64;
                Box::new(Swarm::new(graph, k, stream, n_searches, self.iterations(), seed, given)?)
            }
            PhaseKind::Tempering | PhaseKind::Annealing => {
                let replicas = self.replicas(knobs, seed, given).on_device(graph, k, stream)?;
                self.width = replicas.1;
                replicas.0
            }
            _ => {
                let pool = DevicePool::new(graph, k, stream)?;
                let n_islands = (many(pool.n_resident()) / 2).max(1);
                self.width = n_islands as u64 * 2;
                let options = MemeticOptions::islands(n_islands, self.child_iterations(), seed);
                Box::new(Memetic::new(pool, options, given)?)
            }
        })
    }

    fn replicas<'g>(&self, knobs: &Knobs, seed: u64, given: &'g [Vec<u32>]) -> Begin<'g> {
        Begin { kind: self.kind, population: knobs.population, heat: self.heat, seed, given }
    }

    /// One step; if the device fails and may, the CPU takes over.
    fn step(&mut self, evolve: &mut Box<dyn Evolve + 'a>, slice: &Slice<'_>) -> Result<Step, ColoringError> {
        match evolve.step(&|| slice.is_stopped()) {
            Err(error) if self.device().is_some_and(|device| device.may_fall_back) => {
                self.fallback = Some(error.to_string());
                let best = [self.best.1.clone()];
                *evolve = self.begin(slice.knobs, &best)?;
                Ok(evolve.step(&|| slice.is_stopped())?)
            }
            result => Ok(result?),
        }
    }
}

impl Phase for Colony<'_> {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, _scene: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let mut clock = Clock::start(self.kind);
        let factor = slice.knobs.temperature / self.heat;
        self.heat = slice.knobs.temperature;
        let mut evolve = match self.evolve.take() {
            // One that leads nowhere gives way to one that knows the best of the others.
            Some(_) if self.n_idle >= 4 * slice.knobs.restart => {
                let given: Vec<Vec<u32>> = slice.elite.iter().map(|elite| elite.to_vec()).collect();
                self.begin(slice.knobs, &given)?
            }
            Some(mut evolve) => {
                if factor != 1.0 {
                    evolve.heat(factor);
                }
                evolve
            }
            None => self.begin(slice.knobs, &[self.input.start.to_vec()])?,
        };
        let (mut iterations, mut values) = (0, Vec::new());
        let given = if self.width > 1 { slice.iterations * self.width / SLOWER } else { slice.iterations };
        self.left = self.left.saturating_add(i64::try_from(given).unwrap_or(i64::MAX));
        self.n_idle += 1;
        while self.left > 0 && evolve.conflicts() > 0 && !slice.is_stopped() {
            let step = self.step(&mut evolve, slice)?;
            if evolve.conflicts() < self.best.0 {
                self.best = (evolve.conflicts(), evolve.found()?);
                self.n_idle = 0;
            }
            iterations += step.iterations;
            self.left -= i64::try_from(step.iterations).unwrap_or(i64::MAX).max(1);
            values = step.values;
            if step.is_cut {
                break;
            }
        }
        let mut parameters = evolve.parameters();
        self.evolve = Some(evolve);
        clock = match (&self.fallback, self.device()) {
            (Some(reason), _) => clock.at(DeviceMode::CpuFallback { reason: reason.clone() }),
            (None, Some(_)) => clock.at(DeviceMode::Gpu { stream: self.stream }),
            (None, None) => clock,
        };
        let (conflicts, colors) = self.best.clone();
        let mut report = clock.report(iterations, PhaseResult::Searched { colors, conflicts });
        report.values = values;
        report.values.push(("starts", self.n_starts as f64));
        if matches!(self.kind, PhaseKind::Tabu | PhaseKind::Memetic) {
            parameters.push(("tenure", mean_tenure(n_conflicting(self.input.graph, &self.best.1))));
        }
        report.parameters = parameters;
        if let Some(device) = self.device() {
            report.values.push(("device", device.streams.number() as f64));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::graph::Graph;
    use crate::tabu::Matrix;

    #[test]
    fn children_of_a_population_that_begins_anew_search_longer() {
        // A clique of five has no colouring with four.
        let edges = (0..5).flat_map(|a| (0..a).map(move |b| (a, b)));
        let graph = Graph::new(5, edges);
        let (matrix, stop) = (Matrix::new(&graph), AtomicBool::new(false));
        let input = PhaseInput {
            graph: &graph,
            matrix: &matrix,
            k: 4,
            start: &[0, 1, 2, 3, 0],
            seed: 1,
            child_quarters: 4,
            device: None,
        };
        let mut colony = Colony::new(PhaseKind::Memetic, input);
        let knobs = Knobs { restart: 4, ..Knobs::default() };
        let mut lengths = Vec::new();
        for _ in 0..100 {
            let slice = Slice { iterations: 1, stop: &stop, elite: None, knobs: &knobs };
            let report = colony.run(&input, &slice).unwrap();
            let (_, length) = report.parameters.iter().find(|(name, _)| *name == "child_iterations").unwrap();
            lengths.push(*length);
        }
        lengths.dedup();
        assert_eq!(lengths, [2_500.0, 5_000.0, 10_000.0, 20_000.0]);
    }
}
