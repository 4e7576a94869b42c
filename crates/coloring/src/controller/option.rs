//! How a graph is to be coloured.

use std::time::Duration;

use crate::error::ColoringError;
use crate::knob::Knobs;
use crate::phase::PhaseKind;

/// Options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Phases that take part.
    pub phases: Vec<PhaseKind>,
    /// Seed.
    pub seed: u64,
    /// So many colours are enough.
    pub target: Option<usize>,
    /// So much time is enough.
    pub time: Option<Duration>,
    /// So many iterations of all searches are enough.
    pub max_iterations: Option<u64>,
    /// So many passes are enough.
    pub max_passes: Option<u64>,
    /// So many passes in a row without an improvement are enough.
    pub patience: Option<u64>,
    /// Colours by which a pass has to improve for that.
    pub min_delta: usize,
    /// Whether a pass begins at the best colouring so far instead of by chance.
    pub warm_start: bool,
    /// Phases that stay on the CPU where there is a device.
    pub on_cpu: Vec<PhaseKind>,
    /// Values of the knobs at the beginning.
    pub knobs: Knobs,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            phases: PhaseKind::defaults(),
            seed: 1,
            target: None,
            time: None,
            max_iterations: None,
            max_passes: None,
            patience: None,
            min_delta: 1,
            warm_start: true,
            on_cpu: Vec::new(),
            knobs: Knobs::default(),
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), ColoringError> {
        let problem = |name, value: &str, expected: &str| {
            Err(ColoringError::Option { name, value: value.to_owned(), expected: expected.to_owned() })
        };
        if self.target == Some(0) {
            return problem("target", "0", "at least 1 colour");
        }
        self.knobs.check()?;
        let is_initial = |kind: &&PhaseKind| matches!(kind.family(), crate::phase::Family::Initial(_));
        if !self.phases.iter().any(|kind| is_initial(&kind)) {
            let expected = "at least one way to a first colouring, for example dsatur";
            let names: Vec<&str> = self.phases.iter().map(|kind| kind.name()).collect();
            return problem("phases", &names.join(","), expected);
        }
        let ends = self.target.is_some()
            || self.time.is_some()
            || self.max_iterations.is_some()
            || self.max_passes.is_some()
            || self.patience.is_some();
        if !ends && self.phases.iter().any(|kind| kind.is_search()) {
            return problem("time", "none", "a limit: a target, a time, iterations, passes or patience");
        }
        Ok(())
    }

    /// Whether a phase takes part.
    pub fn has(&self, kind: PhaseKind) -> bool {
        self.phases.contains(&kind)
    }
}
