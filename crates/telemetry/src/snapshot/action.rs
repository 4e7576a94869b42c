//! Actions of the hypertuner, done or advised.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// An action with its cause, and with its effect once that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Its number within the run.
    pub id: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// The rule that fired, such as `no_improvement`.
    pub rule: String,
    /// Why, in words.
    pub cause: String,
    /// What is turned, such as `batch`.
    pub knob: String,
    /// Its value before.
    pub old: serde_json::Value,
    /// Its value after.
    pub new: serde_json::Value,
    /// Whether it was applied, or only advised.
    pub is_applied: bool,
    /// The first batch that it affects.
    pub batch: Option<u64>,
    /// Its measured effect.
    pub effect: Option<Effect>,
}

/// The effect of an action, measured some batches later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// What was measured, such as `trials_per_s`.
    pub measure: String,
    /// Before the action; NaN if it is not known.
    #[serde(with = "crate::json_number")]
    pub before: f64,
    /// After it; NaN if it is not known.
    #[serde(with = "crate::json_number")]
    pub after: f64,
}
