//! First colourings as a phase.

use super::{Clock, Finding, Phase, PhaseKind, Report, Scene, Slice};
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

    fn run(&mut self, scene: &Scene<'_>, _slice: &Slice<'_>) -> Result<Report, ColoringError> {
        let clock = Clock::start(self.kind);
        let preference = Preference::new(scene.graph, self.priority.as_deref());
        let colors = self.initial.color(scene.graph, &preference, scene.seed);
        Ok(clock.report(0, Finding::Colored(colors)))
    }
}
