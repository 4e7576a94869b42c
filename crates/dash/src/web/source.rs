//! The interface by which the dashboard gets trials, parameters and charts from the application.

use std::path::{Path, PathBuf};

use tidemill_telemetry::Snapshot;

use super::model::{Backtest, BarQuery, BarWindow, Parameters, Trial, TrialPage, TrialQuery, UnseenTrials};
use super::summary::{StudySummary, WalkSummary};
use crate::terminal::ProcessState;

/// Knows where runs are and what they hold besides their journals.
///
/// - Every folder that it is given lies inside the folder of runs; the server has made sure of that.
/// - It is called from several threads at a time, each of which may wait.
/// - It only reads, also while a run is active.
pub trait RunSource: Send + Sync + 'static {
    /// The folders of all runs at and beneath a folder, newest first.
    fn runs(&self, root: &Path) -> Result<Vec<PathBuf>, SourceError>;

    /// A summary of a run, without reading all of its journal.
    fn glimpse(&self, dir: &Path) -> Result<Snapshot, SourceError>;

    /// Whether the process of a run lives, as far as that is known.
    fn pulse(&self, dir: &Path) -> ProcessState;

    /// Whether a run has trials that can be listed.
    fn has_trials(&self, dir: &Path) -> bool;

    /// What a study found; curves have at most this many points.
    fn summary(&self, dir: &Path, points: usize) -> Result<StudySummary, SourceError>;

    /// What a walk-forward made; curves have at most this many points.
    fn walk(&self, dir: &Path, points: usize) -> Result<WalkSummary, SourceError>;

    /// Some of the trials of a run, sorted and filtered.
    fn trials(&self, dir: &Path, query: &TrialQuery) -> Result<TrialPage, SourceError>;

    /// Some trials evaluated again on the part that the search did not see.
    fn unseen(&self, dir: &Path, trials: &[u64]) -> Result<UnseenTrials, SourceError>;

    /// The parameters of a run, and the trials drawn across them.
    fn parameters(&self, dir: &Path) -> Result<Parameters, SourceError>;

    /// One trial.
    fn trial(&self, dir: &Path, trial: u64) -> Result<Trial, SourceError>;

    /// One trial evaluated again, in full: of one symbol, or of all together.
    fn backtest(&self, dir: &Path, trial: u64, symbol: Option<&str>) -> Result<Backtest, SourceError>;

    /// Prices of one symbol.
    fn bars(&self, dir: &Path, query: &BarQuery) -> Result<BarWindow, SourceError>;
}

/// Why something cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It does not exist.
    #[error("{what}")]
    Missing {
        /// What is missing, as a sentence.
        what: String,
    },
    /// The request is not valid.
    #[error("{message}")]
    Invalid {
        /// Reason, for the user.
        message: String,
    },
    /// The request is valid, but the answer is not available: data that was moved, a study of an earlier version.
    #[error("{message}")]
    Unavailable {
        /// Reason, for the user.
        message: String,
        /// Hint for the user, if there is one.
        hint: Option<String>,
    },
    /// Reading failed.
    #[error("{message}")]
    Failed {
        /// Reason, for the user.
        message: String,
    },
}
