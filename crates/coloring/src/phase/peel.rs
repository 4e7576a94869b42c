//! Reduction as a phase.

use super::{Clock, Finding, Phase, PhaseKind, Report, Scene, Slice};
use crate::error::ColoringError;
use crate::reduce::Reduction;

/// Takes out the vertices that do not matter for the scene's number of colours.
pub struct Peel;

impl Phase for Peel {
    fn kind(&self) -> PhaseKind {
        PhaseKind::Reduction
    }

    fn run(&mut self, scene: &Scene<'_>, slice: &Slice<'_>) -> Result<Report, ColoringError> {
        let clock = Clock::start(self.kind());
        let reduction = Reduction::new(scene.graph, scene.k, || slice.is_stopped());
        let n_removed = reduction.n_removed() as f64;
        let mut report = clock.report(0, Finding::Reduced(Box::new(reduction)));
        report.values.push(("removed", n_removed));
        Ok(report)
    }
}
