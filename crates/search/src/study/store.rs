//! Where finished batches go, on the thread of its own that encodes and writes them.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::folder::{FolderError, StudyFolder, TrialsWriter};
use crate::point::Points;
use crate::score::Scores;
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

    /// Adds a batch. Of one that was half stored, after a loss of files, what is missing is added.
    pub(super) fn append(&mut self, finished: &Finished) -> Result<(), FolderError> {
        let (batch, evaluated) = (&finished.batch, &*finished.evaluated);
        let n_known = self.writer.n_trials().saturating_sub(batch.first_trial) as usize;
        if n_known == 0 {
            self.writer.append(&batch.points, &evaluated.scores, &evaluated.metrics)?;
        } else {
            let n_rows = batch.points.len();
            let from = n_known.min(n_rows);
            let mut points = Points::new(batch.points.n_params());
            points.extend_from(&batch.points, from..n_rows);
            let scores = &evaluated.scores;
            let objectives = (0..scores.n_objectives()).map(|idx| scores.column(idx)[from..].to_vec());
            let scores = Scores::from_columns(points.len(), objectives.collect());
            let metrics: Vec<Vec<f64>> =
                evaluated.metrics.iter().map(|values| values[from..].to_vec()).collect();
            self.writer.append(&points, &scores, &metrics)?;
        }
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
