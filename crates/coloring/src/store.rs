//! Where a run keeps its colourings and its records: a certificate, a folder, or memory alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tidemill_telemetry::hypertune::Decision;
use tidemill_telemetry::{Event, Journal, find};

use crate::certificate::Certificate;
use crate::config::RunConfig;
use crate::controller::State;
use crate::error::ColoringError;
use crate::folder::RunFolder;
use crate::instance::Instance;

/// The files of a run.
pub struct RunStore {
    certificate: Option<PathBuf>,
    folder: Option<RunFolder>,
    state: Option<State>,
    /// In the folder; without one in memory, because the tuning rules read it.
    journal: Arc<Journal>,
    copy: Option<Journal>,
}

impl RunStore {
    /// No files: the journal is kept in memory.
    pub fn in_memory() -> Result<Self, ColoringError> {
        let journal = Arc::new(Journal::without_file()?);
        Ok(Self { certificate: None, folder: None, state: None, journal, copy: None })
    }

    /// The best colouring goes to this `.sol` file. A file that is there stays until the run finds a colouring.
    pub fn certificate(path: &Path) -> Result<Self, ColoringError> {
        Certificate::check_place(path)?;
        Ok(Self { certificate: Some(path.to_owned()), ..Self::in_memory()? })
    }

    /// A new run in a folder.
    pub fn create(folder: RunFolder, instance: &Instance, config: &RunConfig) -> Result<Self, ColoringError> {
        folder.write_options(instance, Value::Object(config.to_json()))?;
        Self::in_folder(folder, None)
    }

    /// The run of a folder, to resume; its configuration has to agree with this one.
    pub fn resume(folder: RunFolder, instance: &Instance, config: &RunConfig) -> Result<Self, ColoringError> {
        config.check_resumes(&folder.read_options(instance)?)?;
        let state = folder.read_state()?;
        Self::in_folder(folder, state)
    }

    fn in_folder(folder: RunFolder, state: Option<State>) -> Result<Self, ColoringError> {
        let journal = Arc::new(Journal::open_append(&folder.journal_file())?);
        Ok(Self { certificate: None, folder: Some(folder), state, journal, copy: None })
    }

    /// Writes a copy of all records to another journal.
    pub fn with_copy(self, copy: Option<Journal>) -> Self {
        Self { copy, ..self }
    }

    /// Where the interrupted run was; none if the run is new or was killed before its first pass.
    pub fn take_state(&mut self) -> Option<State> {
        self.state.take()
    }

    /// Whether the run can be resumed from a folder.
    pub fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// The file with the best colouring, if it is kept.
    pub fn best_file(&self) -> Option<PathBuf> {
        self.certificate.clone().or_else(|| self.folder.as_ref().map(RunFolder::best_file))
    }

    /// The journal that the tuning rules read.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The tuning decisions in the journal of the folder, in the order in which they were made.
    pub fn decisions(&self) -> Result<Vec<Decision>, ColoringError> {
        match self.folder.as_ref().map(RunFolder::journal_file) {
            Some(journal) if journal.exists() => {
                let events = find(&journal, "hypertune").map_err(ColoringError::Decisions)?;
                Ok(events.iter().filter_map(Decision::from_event).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Records an event.
    pub fn record(&self, event: Event) {
        if let Some(copy) = &self.copy {
            copy.record(event.clone());
        }
        self.journal.record(event);
    }

    /// Records an event and returns once it is on disk.
    pub fn record_durable(&self, event: Event) -> Result<(), ColoringError> {
        if let Some(copy) = &self.copy {
            copy.record(event.clone());
        }
        Ok(self.journal.record_durable(event)?)
    }

    /// Writes a colouring that passed the verifier over the one before.
    pub fn write_best(&self, instance: &Instance, k: usize, colors: &[u32]) -> Result<(), ColoringError> {
        if let Some(file) = &self.certificate {
            Certificate::new(instance, k, colors.to_vec()).write(file)?;
        }
        match &self.folder {
            Some(folder) => folder.write_best(instance, k, colors),
            None => Ok(()),
        }
    }

    /// Writes what a resumed run needs.
    pub fn write_state(&self, state: &State) -> Result<(), ColoringError> {
        match &self.folder {
            Some(folder) => folder.write_state(state),
            None => Ok(()),
        }
    }

    /// Closes the copy of the journal; later records reach only the journal of the folder.
    pub fn close(&mut self) -> Result<(), ColoringError> {
        if let Some(copy) = self.copy.take() {
            copy.close()?;
        }
        Ok(())
    }
}
