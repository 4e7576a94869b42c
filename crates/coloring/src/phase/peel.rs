//! Reduction as a phase.

use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::error::ColoringError;
use crate::reduce::Reduction;

/// Takes out the vertices that do not matter for the input's number of colours.
pub struct Peel;

impl Phase for Peel {
    fn kind(&self) -> PhaseKind {
        PhaseKind::Reduction
    }

    fn run(&mut self, input: &PhaseInput<'_>, slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let clock = Clock::start(self.kind());
        let reduction = Reduction::new(input.graph, input.k, || slice.is_stopped());
        let n_removed = reduction.n_removed() as f64;
        let mut report = clock.report(0, PhaseResult::Reduced(Box::new(reduction)));
        report.values.push(("removed", n_removed));
        Ok(report)
    }
}
