//! What a run found, as plain data: the answers about the strategy, not about the machine.

use serde::Serialize;
use serde_json::Value;
use tidemill_page::kit::parts::PartsTable;
use tidemill_page::report::TimeMark;

use super::model::Curve;

/// A study: its verdict, and its best trial on every part of the data.
#[derive(Clone, Debug, Serialize)]
pub struct StudySummary {
    /// Name of the strategy, if it is known.
    pub strategy: Option<String>,
    /// What was maximised.
    pub objective: String,
    /// Number of trials.
    pub n_trials: u64,
    /// Those that have a score.
    pub n_valid: u64,
    /// Whether the best trial holds up.
    pub verdict: VerdictSummary,
    /// The best trial; none without a valid one.
    pub best: Option<BestTrial>,
}

/// Whether the best trial of a study holds up.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictSummary {
    /// `good`, `doubtful` or `luck`; none if it was not judged.
    pub grade: Option<String>,
    /// The verdict in a few words, or that there is none.
    pub words: String,
    /// How many checks it survives, or why it was not judged.
    pub sentence: String,
    /// The checks: objects with `name`, `survived` and `words`.
    pub checks: Value,
}

/// The best trial of a study.
#[derive(Clone, Debug, Serialize)]
pub struct BestTrial {
    /// Number of the trial.
    pub trial: u64,
    /// Its first objective, in sample.
    pub objective: Option<f64>,
    /// Its parameters; null where one was not active.
    pub parameters: Vec<(String, Value)>,
    /// Says which of them lie at an end of their range, if any do.
    pub edge: Option<String>,
    /// The trial evaluated again, or why that is not possible.
    #[serde(flatten)]
    pub evaluated: BestEvaluated,
}

/// The figures of the best trial on every part.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum BestEvaluated {
    /// Its result.
    Yes {
        /// Its figures, by part.
        parts: PartsTable,
        /// What it is compared with; none where equity is a sum of price differences.
        benchmark: Option<String>,
        /// Whether equity is a sum of price differences, and not a product of returns.
        is_additive: bool,
        /// Equity by the day.
        curve: Curve,
        /// Times at which a part begins.
        marks: Vec<TimeMark>,
    },
    /// It cannot be evaluated.
    No {
        /// Why.
        unavailable: String,
    },
}

/// A walk-forward: what its windows made, one after the other, beside the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct WalkSummary {
    /// What was walked: strategy, objective, lengths of the windows.
    pub setting: Value,
    /// The result in words.
    pub words: String,
    /// The same at more length.
    pub sentence: String,
    /// Figures of all windows together, as names and texts.
    pub figures: Vec<(String, String)>,
    /// The windows, in the order of time.
    pub windows: Value,
    /// Name of the benchmark, where there is one.
    pub benchmark: Option<String>,
    /// Whether equity is a sum of price differences.
    pub is_additive: bool,
    /// Return of the stitched equity.
    pub total_return: f64,
    /// That of the benchmark.
    pub benchmark_return: Option<f64>,
    /// The stitched equity by the day.
    pub curve: Curve,
}
