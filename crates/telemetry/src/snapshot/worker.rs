//! What is known of the workers of a run that is spread over several.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fold::number;
use crate::event::Event;

/// One worker, or those that had its lane one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStats {
    /// Host and process of the one that had the lane last.
    pub name: String,
    /// Where it evaluates, in words.
    pub device: String,
    /// Whether it is there.
    pub is_present: bool,
    /// Shards that were answered.
    pub n_shards: u64,
    /// Trials of these shards.
    pub n_trials: u64,
    /// Shards whose rows were known already: checks, and those that were late elsewhere.
    pub n_copies: u64,
    /// How often one was lost.
    pub n_lost: u64,
    /// Shards that were sent again because of that.
    pub n_resent: u64,
    /// Milliseconds at work.
    pub busy_ms: f64,
}

impl WorkerStats {
    /// Trials per second at work, if there were any.
    pub fn rate(&self) -> Option<f64> {
        (self.busy_ms > 0.0).then(|| self.n_trials as f64 / self.busy_ms * 1e3)
    }

    /// Takes in a record of the phases `worker` and `shard`.
    pub(super) fn take(&mut self, event: &Event) {
        let text =
            |name: &str| event.parameters.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (event.phase.as_str(), event.step.as_str()) {
            ("worker", "joined") => {
                (self.name, self.device, self.is_present) = (text("name"), text("device"), true);
            }
            ("worker", "lost") => {
                self.is_present = false;
                self.n_lost += 1;
                self.n_resent += number(event, "resent").unwrap_or(0.0) as u64;
            }
            ("shard", _) => {
                self.n_shards += 1;
                self.n_trials += number(event, "shard_trials").unwrap_or(0.0) as u64;
                self.n_copies += number(event, "copy").unwrap_or(0.0) as u64;
                self.busy_ms += event.duration_ms.unwrap_or(0.0);
            }
            _ => {}
        }
    }
}
