//! The result of a run.

use serde::Serialize;

use crate::phase::PhaseKind;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The run reached its target.
    Target,
    /// A clique or an odd ring proves that fewer colours are not enough.
    Optimal,
    /// The time limit passed.
    Time,
    /// The limit of iterations was reached.
    Iterations,
    /// The limit of passes was reached.
    Passes,
    /// Nothing better came for too many passes.
    Stagnation,
    /// The caller stopped it.
    Stopped,
    /// No phase searches, or none can.
    Done,
}

impl Ending {
    /// The reason as the end of a sentence; journals hold it.
    pub fn words(self) -> &'static str {
        match self {
            Ending::Target => "the target is reached",
            Ending::Optimal => "a clique or an odd ring proves that fewer colours are not enough",
            Ending::Time => "the time limit is reached",
            Ending::Iterations => "the limit of iterations is reached",
            Ending::Passes => "the limit of passes is reached",
            Ending::Stagnation => "no progress for as many passes as --patience allows",
            Ending::Stopped => "it was stopped",
            Ending::Done => "no phase is left that searches",
        }
    }
}

/// What one phase did in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTotal {
    /// The phase.
    pub kind: PhaseKind,
    /// How often it was given work.
    pub slices: u64,
    /// Iterations of all its slices.
    pub iterations: u64,
    /// Seconds at work.
    pub seconds: f64,
    /// How often it found a colouring with fewer colours.
    pub improvements: u64,
    /// The fewest colours of a proper colouring that it found.
    pub k: Option<usize>,
    /// Where it ran last.
    pub device: tidemill_telemetry::DeviceMode,
}

/// A colouring and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Number of colours. The colouring passed the verifier.
    pub k: usize,
    /// The colour of each vertex.
    pub colors: Vec<u32>,
    /// Fewer colours are not possible, see [`lower_bound`](crate::lower_bound).
    pub bound: usize,
    /// Passes, without the first colourings.
    pub passes: u64,
    /// Iterations of all searches.
    pub iterations: u64,
    /// Seconds, with those before the run was resumed.
    pub seconds: f64,
    /// Seconds after which the colouring was found.
    pub found_s: f64,
    /// The phase that found it.
    pub by: PhaseKind,
    /// Why it ended.
    pub ending: Ending,
    /// What the phases did, in the order in which they first worked.
    pub phases: Vec<PhaseTotal>,
}
