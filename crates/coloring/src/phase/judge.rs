//! The verifier as a phase: what it has not passed is not reported.

use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::error::ColoringError;
use crate::instance::Instance;
use crate::verify::verify;

/// Judges one colouring of the whole graph.
pub struct Judge<'a> {
    instance: &'a Instance,
    colors: &'a [u32],
    by: PhaseKind,
}

impl<'a> Judge<'a> {
    /// For a colouring that this phase called proper.
    pub fn new(instance: &'a Instance, colors: &'a [u32], by: PhaseKind) -> Self {
        Self { instance, colors, by }
    }
}

impl Phase for Judge<'_> {
    fn kind(&self) -> PhaseKind {
        PhaseKind::Validation
    }

    fn run(&mut self, input: &PhaseInput<'_>, _slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let clock = Clock::start(self.kind());
        match verify(self.instance, self.colors) {
            Ok(verified) => Ok(clock.report(0, PhaseResult::Proper(verified.k))),
            Err(flaw) => {
                let problem = flaw.to_string();
                Err(ColoringError::Unverified { k: input.k, phase: self.by.name(), problem })
            }
        }
    }
}
