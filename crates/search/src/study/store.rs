//! Where finished batches go, on the thread of its own that encodes and writes them.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::folder::{FolderError, StudyFolder, TrialsWriter};
use crate::study::in_flight::Finished;

/// How long a finished batch may be safe from a kill only, and not from a loss of power.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// A folder to which batches are added.
pub(super) struct Store {
    writer: TrialsWriter,
    synced_at: Instant,
    /// Keeps other writers out.
    _folder: StudyFolder,
}

impl Store {
    /// A store in a folder whose lock is held by `folder`.
    pub(super) fn new(folder: StudyFolder, writer: TrialsWriter) -> Self {
        Self { writer, synced_at: Instant::now(), _folder: folder }
    }

    /// Adds a batch.
    pub(super) fn append(&mut self, finished: &Finished) -> Result<(), FolderError> {
        let (batch, evaluated) = (&finished.batch, &*finished.evaluated);
        self.writer.append(&batch.points, &evaluated.scores, &evaluated.metrics)?;
        if self.synced_at.elapsed() >= SYNC_EVERY { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), FolderError> {
        self.synced_at = Instant::now();
        self.writer.sync()
    }

    /// Adds batches until no more can come.
    pub(super) fn drain(mut self, finished: Receiver<Finished>) -> Result<Self, FolderError> {
        loop {
            match finished.recv_timeout(SYNC_EVERY) {
                Ok(finished) => self.append(&finished)?,
                Err(RecvTimeoutError::Timeout) => self.sync()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(self),
            }
        }
    }

    /// Closes the folder; a complete study leaves its log.
    pub(super) fn close(mut self, is_complete: bool) -> Result<(), FolderError> {
        if is_complete { self.writer.finish().map(drop) } else { self.sync() }
    }
}
