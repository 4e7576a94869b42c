//! The state of a run between two passes, from which it can be resumed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::option::Options;
use super::plan::Plan;
use crate::ensemble::Credit;
use crate::error::ColoringError;
use crate::instance::Instance;
use crate::knob::Knobs;
use crate::phase::PhaseKind;
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
    /// Priorities of vertices by the signal that measured them, each on [0, 1].
    #[serde(default)]
    pub signals: BTreeMap<String, Vec<f64>>,
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
            signals: BTreeMap::new(),
            plan: Plan::new(),
        }
    }

    /// The priorities of all signals together, with their weights; none where none was measured.
    pub(super) fn priority(&self) -> Option<Vec<f64>> {
        let mut sum: Option<Vec<f64>> = None;
        // In the order of the phases, because that of a sum counts.
        for kind in PhaseKind::all() {
            let Some(values) = self.signals.get(kind.name()) else { continue };
            let weight = if kind == PhaseKind::Transfer { self.knobs.transfer_weight } else { 1.0 };
            let sum = sum.get_or_insert_with(|| vec![0.0; values.len()]);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }

    /// Refuses the state of another graph: its colouring has to pass the verifier.
    pub(super) fn check(&self, instance: &Instance) -> Result<(), ColoringError> {
        let problem = match verify(instance, &self.colors) {
            Ok(verified) if verified.k == self.k && self.by.parse::<PhaseKind>().is_ok() => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_of_the_transfer_entropies_counts_in_the_priorities() {
        let mut state = State::new(&Options::default());
        assert_eq!(state.priority(), None);
        state.signals.insert("reservoir".into(), vec![1.0, 0.25, 0.0]);
        state.signals.insert("transfer".into(), vec![0.0, 0.5, 1.0]);
        assert_eq!(state.priority(), Some(vec![1.0, 0.75, 1.0]));
        state.knobs.set("transfer_weight", 3.0);
        assert_eq!(state.priority(), Some(vec![1.0, 1.75, 3.0]));
        state.knobs.set("transfer_weight", 0.0);
        assert_eq!(state.priority(), Some(vec![1.0, 0.25, 0.0]));
    }
}
