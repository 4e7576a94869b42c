//! A phase: one part of a search. It gets an input and a slice of work, and returns a report with its result.
//!
//! All phases are of one trait, whatever they do: take vertices out, make a first colouring, measure priorities, search with a fixed
//! number of colours, verify. A phase that searches keeps its state from one slice to the next; it exists for one pass, because a pass has its own number of colours and its own graph.

mod construct;
mod judge;
mod kind;
mod list;
mod peel;
mod search;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use construct::Construct;
pub use judge::Judge;
pub use kind::{Family, PhaseKind};
pub use peel::Peel;
pub use search::search;
pub(crate) use search::{Evolve, Step};
use tidemill_telemetry::DeviceMode;

use crate::device::{DeviceGraph, DeviceStreams};
use crate::error::ColoringError;
use crate::graph::Graph;
use crate::knob::Knobs;
use crate::reduce::Reduction;
use crate::tabu::Matrix;

/// What a phase works on: the same for all of a pass.
#[derive(Clone, Copy)]
pub struct PhaseInput<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its adjacency in the form that tabu searches read.
    pub matrix: &'a Matrix,
    /// Number of colours.
    pub k: usize,
    /// Where a search begins: a colour below `k` for each vertex, with conflicts.
    pub start: &'a [u32],
    /// Seed of the pass.
    pub seed: u64,
    /// How long the children of a population search, in quarters of what is usual.
    pub child_quarters: u64,
    /// The device that searches run on, where there is one.
    pub device: Option<DeviceInput<'a>>,
}

/// The device that a search may run on, with the graph of the pass.
#[derive(Clone, Copy)]
pub struct DeviceInput<'a> {
    /// The graph in the memory of the device.
    pub graph: &'a DeviceGraph,
    /// The streams of the device.
    pub streams: &'a DeviceStreams,
    /// Whether the CPU takes over if the device fails.
    pub may_fall_back: bool,
}

/// How much work a phase is given.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// Iterations.
    pub iterations: u64,
    /// When this is set, work ends soon.
    pub stop: &'a AtomicBool,
    /// The colouring of another phase, with fewer conflicts than this one has, to continue from.
    pub elite: Option<&'a [u32]>,
    /// What can be turned while the search runs.
    pub knobs: &'a Knobs,
}

impl Slice<'_> {
    /// Whether work has to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The result of a slice of work.
#[derive(Clone, Debug)]
pub enum PhaseResult {
    /// A graph without the vertices that do not matter.
    Reduced(Box<Reduction>),
    /// A proper colouring, with any number of colours.
    Colored(Vec<u32>),
    /// Priorities of vertices.
    Priority(Vec<f64>),
    /// The best colouring with `k` colours so far, and its conflicts.
    Searched {
        /// A colour below `k` for each vertex.
        colors: Vec<u32>,
        /// Edges that join equal colours.
        conflicts: u32,
    },
    /// The number of colours of a colouring that passed the verifier.
    Proper(usize),
}

/// The result of a slice of work, with its measurements.
#[derive(Clone, Debug)]
pub struct PhaseReport {
    /// The phase that worked.
    pub kind: PhaseKind,
    /// Where it ran.
    pub device: DeviceMode,
    /// Iterations that were made, 0 where that means nothing.
    pub iterations: u64,
    /// When it began.
    pub began: Instant,
    /// How long it took.
    pub took: Duration,
    /// Other measured numbers, by name.
    pub values: Vec<(&'static str, f64)>,
    /// What it worked with at the end, as numbers by name, such as `temperature` and `tenure`.
    pub parameters: Vec<(&'static str, f64)>,
    /// The result.
    pub result: PhaseResult,
}

impl PhaseReport {
    /// Iterations per second, where there were any.
    pub fn it_per_s(&self) -> Option<f64> {
        let seconds = self.took.as_secs_f64();
        (self.iterations > 0 && seconds > 0.0).then(|| self.iterations as f64 / seconds)
    }

    /// Conflicts of the best colouring, of a phase that searches.
    pub fn conflicts(&self) -> Option<u32> {
        match self.result {
            PhaseResult::Searched { conflicts, .. } => Some(conflicts),
            _ => None,
        }
    }
}

/// A part of a search.
///
/// Obligations:
/// - the same input, the same slices and the same seed give the same results, on any machine and any number of threads, unless it was
///   stopped;
/// - what is found as [`PhaseResult::Searched`] never has more conflicts than the time before;
/// - it returns soon after the slice's `stop` is set.
pub trait Phase: Send {
    /// The kind that its reports carry.
    fn kind(&self) -> PhaseKind;

    /// Works for a slice.
    fn run(&mut self, input: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError>;
}

/// Measures the time of a slice and makes its report.
pub(crate) struct Clock {
    kind: PhaseKind,
    device: DeviceMode,
    began: Instant,
}

impl Clock {
    /// Begins now, on the CPU.
    pub(crate) fn start(kind: PhaseKind) -> Self {
        Self { kind, device: DeviceMode::Cpu, began: Instant::now() }
    }

    /// Sets where it runs.
    pub(crate) fn at(mut self, device: DeviceMode) -> Self {
        self.device = device;
        self
    }

    /// Ends now.
    pub(crate) fn report(self, iterations: u64, result: PhaseResult) -> PhaseReport {
        let took = self.began.elapsed();
        PhaseReport {
            kind: self.kind,
            device: self.device,
            iterations,
            began: self.began,
            took,
            values: Vec::new(),
            parameters: Vec::new(),
            result,
        }
    }
}
