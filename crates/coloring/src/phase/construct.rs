//! First colourings as a phase.

use super::{Clock, Phase, PhaseInput, PhaseKind, PhaseReport, PhaseResult, Slice};
use crate::error::ColoringError;
use crate::initial::{Initial, Preference};

/// Makes one first colouring, with the priorities that signals measured.
pub struct Construct {
    kind: PhaseKind,
    initial: Initial,
    priority: Option<Vec<f64>>,
}

impl Construct {
    /// The way of this kind.
    pub fn new(kind: PhaseKind, initial: Initial, priority: Option<Vec<f64>>) -> Self {
        Self { kind, initial, priority }
    }
}

impl Phase for Construct {
    fn kind(&self) -> PhaseKind {
        self.kind
    }

    fn run(&mut self, input: &PhaseInput<'_>, _slice: &Slice<'_>) -> Result<PhaseReport, ColoringError> {
        let clock = Clock::start(self.kind);
        let preference = Preference::new(input.graph, self.priority.as_deref());
        let colors = self.initial.color(input.graph, &preference, input.seed);
        Ok(clock.report(0, PhaseResult::Colored(colors)))
    }
}
