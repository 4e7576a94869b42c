//! Studies on disk. All but `judge` and `manage` only reads and takes no lock, so that it works while a study runs.

pub mod axis;
pub mod compare;
pub mod find;
pub mod judge;
pub mod manage;
pub mod merge;
pub mod reopen;
pub mod rows;
pub mod state;
pub mod survey;
pub mod unseen;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tidemill_search::StudyFolder;

use crate::config::StudyConfig;
use crate::error::LabError;
use crate::verdict;
use rows::Rows;
use state::State;
use survey::Survey;

/// A study folder and what it says about itself.
#[derive(Clone, Debug)]
pub struct StoredStudy {
    /// The folder.
    pub folder: StudyFolder,
    /// What was run.
    pub config: StudyConfig,
}

impl StoredStudy {
    /// Opens a study for reading.
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let folder = StudyFolder::open(dir)?;
        Ok(Self { config: StudyConfig::read(folder.header()), folder })
    }

    /// Looks at all trials that the folder holds now.
    pub fn survey(&self) -> Result<Survey, LabError> {
        Survey::new(&self.folder, &self.config)
    }

    /// The rows of some trials.
    pub fn rows(&self, survey: &Survey, trials: &BTreeSet<u64>) -> Result<Rows, LabError> {
        rows::fetch(&self.folder, survey, trials)
    }

    /// Whether it runs, is complete, or was stopped after `n_trials` trials.
    pub fn state(&self, n_trials: u64) -> State {
        State::of(self.folder.dir(), n_trials, self.config.n_requested())
    }

    /// The verdict on `n_trials` trials, if there is one.
    pub fn verdict(&self, n_trials: u64) -> Result<Option<Value>, LabError> {
        verdict::store::read(self.folder.dir(), n_trials)
    }
}
