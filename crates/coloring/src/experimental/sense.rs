//! Ordering signals as a phase.

use super::signal::{Trajectory, inference, reservoir, transfer};
use crate::error::ColoringError;
use crate::phase::{Clock, Finding, Phase, PhaseKind, Report, Scene, Slice};

/// Samples of a recorded search.
const SAMPLES: usize = 256;

/// Searches of the ensemble whose marginals inference takes.
const SEARCHES: u64 = 8;

/// Measures priorities on short searches.
pub struct Sense {
    kind: PhaseKind,
}

impl Sense {
    /// The signal of this kind.
    pub fn new(kind: PhaseKind) -> Self {
        Self { kind }
    }
}

impl Phase for Sense {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, scene: &Scene<'_>, slice: &Slice<'_>) -> Result<Report, ColoringError> {
        let clock = Clock::start(self.kind);
        let stop = || slice.is_stopped();
        let n_searches = if self.kind == PhaseKind::Inference { SEARCHES } else { 1 };
        let every = (slice.iterations / (SAMPLES as u64 * n_searches)).max(1);
        let trajectory = Trajectory::record(scene, n_searches, SAMPLES, every, &stop);
        let priority = match self.kind {
            PhaseKind::Reservoir => reservoir(scene.graph, &trajectory),
            PhaseKind::Transfer => transfer(scene.graph, &trajectory),
            _ => inference(scene.graph, &trajectory, scene.k),
        };
        let mut report = clock.report(trajectory.iterations, Finding::Priority(priority));
        report.values.push(("samples", trajectory.conflicts.len() as f64));
        Ok(report)
    }
}
