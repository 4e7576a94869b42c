//! The fold of a run's events into what viewers show and rules look at. Its size is bounded, however long the run.
//!
//! The fold knows no workload. The first record of a run names the value that counts its progress, the value that is its score, and the
//! lanes of its phases:
//!
//! | phase, step | values | parameters |
//! |---|---|---|
//! | `run`, `start` or `resume` | `total` (if there is an end) | `workload`, `title`, `progress` (name of the value that counts what is done), `score` (name of the value that is to be improved), `better` (`higher` or `lower`), `lanes` (by phase, the lane that its work on the CPU is drawn on, if that is not `cpu`), and the resolved configuration |
//! | phases of the workload, such as `upload`, `kernel` and `download`; step `batch_42` | `start_ms` since the run was started or resumed last; any others, such as `trials`, `best`, `busy`, `fill` | – |
//! | `improvement`, such as `trial_1234` | the score under its name; `trial` | the parameters of the trial |
//! | `hypertune`, `advise`, `apply` or `effect` | `id`, `batch` (the first that is affected); of an effect `before` and `after` | `rule`, `knob`, `old`, `new`; of an effect `measure` |
//! | `worker`, `joined`, `lost`, `refused`, `hedged`, `failed` or `waiting` | `lane`; of a loss `resent` (shards) | `name`, `device` |
//! | `shard`, such as `batch_42` | `lane`, `shard_trials`, `copy` (1 if its rows were known), `start_ms` | `lane`, the lane that it is drawn on |
//! | `warning`, any | – | – |
//! | `run`, `alive`, from the journal after some seconds of silence | – | – |
//! | `journal`, `dropped`, from the journal | `dropped` since the last such record, `dropped_in_all` | – |
//! | `run`, `end` | totals | `outcome`: `complete`, `stopped` or `failed` |
//!
//! Progress that was reported before is a replay: it is neither a batch nor speed. A second `start` is a resumption. A journal
//! that lacks its first record is folded as one of trials and their best.

mod action;
mod curve;
mod fold;
mod phase;
mod series;
mod worker;

#[cfg(test)]
mod tests;

pub use action::{Action, Effect};
pub use curve::{Curve, Reached};
pub use phase::PhaseStats;
pub use series::Series;
pub use worker::WorkerStats;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::event::Event;
use crate::fields::Fields;
use crate::timestamp::Timestamp;

/// Events that are kept as they are, the newest.
pub const RECENT_EVENTS: usize = 200;

/// Spans that are kept for the picture of the lanes, the newest.
pub const RECENT_SPANS: usize = 1024;

/// Improvements that are kept, the best.
pub const TOP: usize = 20;

/// Actions, fall-backs and warnings that are kept of each, the newest.
pub const KEPT: usize = 256;

/// Seconds over which the speed is measured that estimates the time left.
const RATE_OVER_S: f64 = 20.0;

/// Names of values and of phases that are kept, of each.
pub const MAX_NAMES: usize = 256;

/// The state of a run, folded from its events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Name of the run.
    pub run: String,
    /// Its workload, such as `sweep`, `scan` or `color`.
    pub workload: String,
    /// Title for users.
    pub title: String,
    /// Whether it runs or how it ended.
    pub state: RunState,
    /// The resolved configuration, from its first record.
    pub config: Fields<serde_json::Value>,
    /// When it started first.
    pub started: Option<Timestamp>,
    /// When it was started or resumed last.
    pub resumed: Option<Timestamp>,
    /// Time of its newest record.
    pub last: Option<Timestamp>,
    /// How often it was resumed.
    pub n_resumes: u64,
    /// Seconds at work before it was resumed last.
    pub earlier_s: f64,
    /// What progress is counted in, such as `trials`.
    pub progress: String,
    /// How much is done.
    pub done: f64,
    /// How much there is to do, if there is an end.
    pub total: Option<f64>,
    /// Name of the value that is to be improved, such as `best`.
    pub score: String,
    /// Whether less is better.
    pub is_lower_better: bool,
    /// The best score so far.
    pub best: Option<f64>,
    /// Everything that improved it, thinned out if there is much.
    pub convergence: Curve,
    /// The best improvements, best first.
    pub top: Vec<Top>,
    /// The newest of every value by name; of the first [`MAX_NAMES`] names.
    #[serde(with = "crate::json_number::fields")]
    pub values: Fields<f64>,
    /// Share of the time for which the device was busy, through the run.
    pub busy: Series,
    /// How full the device was, through the run: its busy time weighted by the share of it that kernels fill. Above 1 where streams have more
    /// work at a time than fits.
    pub fill: Series,
    /// Progress per second, through the run.
    pub rate: Series,
    /// Phases by name; of the first [`MAX_NAMES`] names.
    pub phases: BTreeMap<String, PhaseStats>,
    /// The workers by lane, where the run is spread over several; of the first [`MAX_NAMES`] lanes.
    pub workers: BTreeMap<u64, WorkerStats>,
    /// The newest spans, for a picture of the lanes.
    pub spans: VecDeque<Span>,
    /// The newest events.
    pub recent: VecDeque<Event>,
    /// Number of batches or steps so far.
    pub n_batches: u64,
    /// Number of improvements.
    pub n_improvements: u64,
    /// The batch of the newest improvement.
    pub improved_at_batch: u64,
    /// The newest fall-backs to the CPU, with their reasons.
    pub fallbacks: VecDeque<Note>,
    /// Number of fall-backs.
    pub n_fallbacks: u64,
    /// The newest warnings.
    pub warnings: VecDeque<Note>,
    /// Number of warnings.
    pub n_warnings: u64,
    /// The newest actions of the hypertuner, with their effects.
    pub actions: VecDeque<Action>,
    /// Number of actions.
    pub n_actions: u64,
    /// Number of events.
    pub n_events: u64,
    /// Number of events that were dropped because they came too fast.
    pub n_dropped: u64,
    /// How it ended: a sentence, if there was one.
    pub outcome: Option<String>,
    /// From where speed is measured next; none until the first progress after a resumption.
    pace: Option<Pace>,
}

/// How much was done by when.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pace {
    at_s: f64,
    done: f64,
}

/// The state of a run according to its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It has no record of its end. Whether it is alive or was killed shows in the age of its newest record.
    #[default]
    Running,
    /// All is done.
    Complete,
    /// The user stopped it.
    Stopped,
    /// It ended with an error.
    Failed,
}

impl RunState {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Complete => "complete",
            RunState::Stopped => "stopped",
            RunState::Failed => "failed",
        }
    }
}

/// An improvement among the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// Its name, such as `trial_1234`.
    pub name: String,
    /// Its score.
    pub score: f64,
    /// Its parameters.
    pub parameters: Fields<serde_json::Value>,
}

/// A span of work on a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Where, such as `stream 2`, `cpu` or a lane that the run declared.
    pub lane: SmolStr,
    /// Phase of the record.
    pub phase: SmolStr,
    /// Step of the record.
    pub step: SmolStr,
    /// Its start, in milliseconds since the run was started or resumed last.
    pub start_ms: f64,
    /// How long it took.
    pub duration_ms: f64,
}

/// A sentence of a record, with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Time of the record.
    pub at: Timestamp,
    /// Phase and step of the record.
    pub source: String,
    /// The sentence.
    pub text: String,
}

impl Snapshot {
    /// Seconds at work until the newest record, without the time between a kill and the resumption.
    pub fn elapsed_s(&self) -> f64 {
        let (Some(resumed), Some(last)) = (self.resumed.or(self.started), self.last) else {
            return self.earlier_s;
        };
        self.earlier_s + (last.as_ms() - resumed.as_ms()).max(0) as f64 / 1e3
    }

    /// Whether it has not ended and its newest record is at most `patience_s` seconds old.
    pub fn is_live(&self, now: Timestamp, patience_s: f64) -> bool {
        let heard = |last: Timestamp| (now.as_ms() - last.as_ms()) as f64 <= patience_s * 1e3;
        self.state == RunState::Running && self.last.is_some_and(heard)
    }

    /// Seconds until all is done at the pace so far, if there is an end.
    pub fn eta_s(&self) -> Option<f64> {
        let left = self.total? - self.done;
        let rate = self.rate.recent(RATE_OVER_S)?;
        (self.state == RunState::Running && rate > 0.0 && left >= 0.0).then(|| left / rate)
    }

    /// Whether one score is better than another.
    pub fn is_better(&self, score: f64, than: f64) -> bool {
        if self.is_lower_better { score < than } else { score > than }
    }

    /// Folds the next event.
    pub fn apply(&mut self, event: &Event) {
        self.take(event.clone());
    }

    /// Folds the next event without copying it.
    pub fn take(&mut self, event: Event) {
        fold::take(self, event);
    }
}
