//! Ordering signals as a phase.

use super::{Trajectory, inference, reservoir, transfer};
use crate::error::ColoringError;
use crate::phase::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};

/// Samples of a recorded search.
const SAMPLES: usize = 256;

/// Searches of the ensemble whose marginals inference takes.
const SEARCHES: u64 = 8;

/// Measures priorities on short searches.
pub struct SignalPhase {
    kind: PhaseKind,
}

impl SignalPhase {
    /// Measures the signal of this kind.
    pub fn new(kind: PhaseKind) -> Self {
        Self { kind }
    }
}

impl Phase for SignalPhase {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, input: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let clock = Clock::start(self.kind);
        let stop = || slice.is_stopped();
        let n_searches = if self.kind == PhaseKind::Inference { SEARCHES } else { 1 };
        let every = (slice.iterations / (SAMPLES as u64 * n_searches)).max(1);
        let trajectory = Trajectory::record(input, n_searches, SAMPLES, every, &stop);
        let priority = match self.kind {
            PhaseKind::Reservoir => reservoir(input.graph, &trajectory),
            PhaseKind::Transfer => transfer(input.graph, &trajectory),
            _ => inference(input.graph, &trajectory, input.k),
        };
        let mut report = clock.report(trajectory.iterations, PhaseResult::Priority(priority));
        report.values.push(("samples", trajectory.conflicts.len() as f64));
        Ok(report)
    }
}
