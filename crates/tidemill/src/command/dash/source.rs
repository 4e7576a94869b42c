//! Answers the dashboard's requests from runs and studies on disk.

use std::path::{Path, PathBuf};

use tidemill_dash::terminal::ProcessState;
use tidemill_dash::web::{
    Backtest, BarQuery, BarWindow, Parameters, RunSource, SourceError, StudySummary, Trial, TrialPage,
    TrialQuery, UnseenTrials, WalkSummary,
};
use tidemill_search::folder::HEADER_FILE;
use tidemill_search::{FolderError, StudyFolder};
use tidemill_telemetry::Snapshot;

use super::evaluation::Evaluations;
use super::{chart, parameters, summary, trials, walk};
use crate::command::monitor::{choose, glimpse, pulse};

/// Reads the folders of runs, and evaluates trials again.
#[derive(Default)]
pub struct Studies {
    evaluations: Evaluations,
}

impl RunSource for Studies {
    fn runs(&self, root: &Path) -> Result<Vec<PathBuf>, SourceError> {
        let runs = choose::beneath(root).map_err(|error| failed(&error))?;
        Ok(runs.into_iter().map(|run| run.dir).collect())
    }

    fn glimpse(&self, dir: &Path) -> Result<Snapshot, SourceError> {
        glimpse::of(dir).map_err(|error| failed(&error))
    }

    fn pulse(&self, dir: &Path) -> ProcessState {
        pulse::of(dir)
    }

    fn has_trials(&self, dir: &Path) -> bool {
        dir.join(HEADER_FILE).is_file()
    }

    fn summary(&self, dir: &Path, points: usize) -> Result<StudySummary, SourceError> {
        summary::of(&study(dir)?, &self.evaluations, points)
    }

    fn walk(&self, dir: &Path, points: usize) -> Result<WalkSummary, SourceError> {
        walk::of(dir, points)
    }

    fn trials(&self, dir: &Path, query: &TrialQuery) -> Result<TrialPage, SourceError> {
        trials::page(&study(dir)?, query)
    }

    fn unseen(&self, dir: &Path, numbers: &[u64]) -> Result<UnseenTrials, SourceError> {
        let study = study(dir)?;
        trials::unseen(&study, || self.evaluations.data(&study), numbers)
    }

    fn parameters(&self, dir: &Path) -> Result<Parameters, SourceError> {
        parameters::of(&study(dir)?).map_err(|error| unreadable(&error))
    }

    fn trial(&self, dir: &Path, trial: u64) -> Result<Trial, SourceError> {
        Ok(trials::one(&study(dir)?, trial)?.0)
    }

    fn backtest(&self, dir: &Path, trial: u64, symbol: Option<&str>) -> Result<Backtest, SourceError> {
        let evaluated = self.evaluations.of(&study(dir)?, trial)?;
        chart::backtest(&evaluated, symbol)
    }

    fn bars(&self, dir: &Path, query: &BarQuery) -> Result<BarWindow, SourceError> {
        let data = self.evaluations.data(&study(dir)?)?;
        chart::bars(&data.universe, query)
    }
}

/// Opens the study of a run.
fn study(dir: &Path) -> Result<StudyFolder, SourceError> {
    match StudyFolder::open(dir) {
        Ok(folder) => Ok(folder),
        Err(FolderError::NotAStudy { .. }) => Err(SourceError::Unavailable {
            message: "this run stores no trials".into(),
            hint: Some("only sweeps store trials; the page of this run shows what it reported".into()),
        }),
        Err(error) => Err(failed(&error)),
    }
}

/// An error with all of its causes, without the names of folders in front of them where they say nothing new.
pub fn failed(error: &dyn std::error::Error) -> SourceError {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        message += &format!(": {inner}");
        cause = inner.source();
    }
    SourceError::Failed { message }
}

/// The same of an error that is already in words.
pub fn unreadable(error: &anyhow::Error) -> SourceError {
    SourceError::Failed { message: format!("{error:#}") }
}
