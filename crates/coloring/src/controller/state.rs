//! The state of a run between two passes, from which it can be resumed.

use serde::{Deserialize, Serialize};

use super::option::Options;
use super::plan::Plan;
use crate::ensemble::Credit;
use crate::error::ColoringError;
use crate::instance::Instance;
use crate::knob::Knobs;
use crate::verify::verify;

/// A run between two passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The best colouring; empty before there is one.
    pub colors: Vec<u32>,
    /// Its number of colours.
    pub k: usize,
    /// Name of the phase that found it.
    pub by: String,
    /// Seconds after which it was found.
    pub found_s: f64,
    /// Passes that are over.
    pub pass: u64,
    /// Rounds that are over.
    pub round: u64,
    /// Iterations of all searches.
    pub iterations: u64,
    /// Passes in a row without an improvement.
    pub n_idle: u64,
    /// Seconds at work.
    pub seconds: f64,
    /// Values of the knobs.
    pub knobs: Knobs,
    /// What the searches have earned.
    pub credit: Credit,
    /// Priorities of vertices, where signals were measured.
    pub priority: Option<Vec<f64>>,
    pub(super) plan: Plan,
}

impl State {
    /// The state before the first colouring.
    pub(super) fn new(options: &Options) -> Self {
        Self {
            colors: Vec::new(),
            k: 0,
            by: String::new(),
            found_s: 0.0,
            pass: 0,
            round: 0,
            iterations: 0,
            n_idle: 0,
            seconds: 0.0,
            knobs: options.knobs.clone(),
            credit: Credit::default(),
            priority: None,
            plan: Plan::new(),
        }
    }

    /// Refuses the state of another graph: its colouring has to pass the verifier.
    pub(super) fn check(&self, instance: &Instance) -> Result<(), ColoringError> {
        let problem = match verify(instance, &self.colors) {
            Ok(verified) if verified.k == self.k && self.by.parse::<crate::phase::PhaseKind>().is_ok() => {
                return Ok(());
            }
            Ok(verified) => format!("it says {} colours, but uses {}", self.k, verified.k),
            Err(flaw) => flaw.to_string(),
        };
        Err(ColoringError::Option {
            name: "resume",
            value: format!("a state with {} colours", self.k),
            expected: format!("one of this graph, but {problem}"),
        })
    }
}
