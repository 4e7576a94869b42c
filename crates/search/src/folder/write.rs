//! Appending trials: every batch goes to the log at once, and leaves it in durable parts of fixed length.
//!
//! A trial is in the log, or in a part, or for a moment in both; a trial that is in a part does not count in the log. The order
//! is what makes this safe at any instant: the batch is in the log before a part with any of it appears, and the log without it
//! takes the place of the old one only when the part is on disk under its name.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::layout::Layout;
use crate::folder::log::{LOG_FILE, LogReader, LogWriter};
use crate::folder::{FolderError, part};
use crate::point::Points;
use crate::score::Scores;
use crate::space::Space;

/// Trials per part; only the last part of a study may hold fewer.
pub const ROWS_PER_PART: usize = 65_536;

/// Writes trials into a study folder.
///
/// Appended trials survive any end of the process; after [`TrialsWriter::sync`] also a loss of power. At most
/// one part and one batch are held in memory. Call [`TrialsWriter::finish`] when the study is complete.
#[derive(Debug)]
pub struct TrialsWriter {
    dir: PathBuf,
    layout: Layout,
    rows_per_part: usize,
    n_parts: usize,
    /// Trials in parts.
    n_compacted: u64,
    log: Option<LogWriter>,
    /// The trials of the log, encoded, column by column.
    columns: Vec<Vec<f64>>,
}

impl TrialsWriter {
    pub(super) fn open(
        trials_dir: &Path,
        space: &Space,
        metric_names: &[&str],
        n_objectives: usize,
    ) -> Result<Self, FolderError> {
        let layout = Layout::new(space, metric_names, n_objectives)?;
        part::remove_leftovers(trials_dir)?;
        let parts = part::list(trials_dir)?;
        if let Some(last) = parts.last() {
            part::check_columns(last, &layout)?;
        }
        let mut writer = Self {
            dir: trials_dir.to_owned(),
            rows_per_part: ROWS_PER_PART,
            n_parts: parts.len(),
            n_compacted: parts.iter().map(|path| part::n_rows(path)).sum::<Result<u64, FolderError>>()?,
            log: None,
            columns: vec![Vec::new(); layout.n_columns()],
            layout,
        };
        writer.recover()?;
        Ok(writer)
    }

    /// Takes up what the log holds beyond the parts.
    fn recover(&mut self) -> Result<(), FolderError> {
        let Some(mut log) = LogReader::open(&self.dir)? else { return Ok(()) };
        if *log.layout() != self.layout {
            let problem = "the log has other parameters, metrics or objectives than this study";
            return Err(FolderError::part(log.path(), problem));
        }
        while let Some(record) = log.next_record()? {
            let n_skipped = skipped(&log, record.first_trial, record.n_rows, self.n_trials())?;
            for (column, values) in self.columns.iter_mut().zip(&record.columns) {
                column.extend_from_slice(&values[n_skipped..]);
            }
        }
        self.log = Some(LogWriter::open(&self.dir, log.end())?);
        Ok(())
    }

    /// The same writer with parts of another length.
    pub fn with_rows_per_part(mut self, rows_per_part: usize) -> Self {
        self.rows_per_part = rows_per_part.max(1);
        self
    }

    /// Number of trials in the folder.
    pub fn n_trials(&self) -> u64 {
        self.n_compacted + self.n_logged() as u64
    }

    /// Number of trials that are in parts; the others are in the log.
    pub fn n_compacted(&self) -> u64 {
        self.n_compacted
    }

    fn n_logged(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Adds trials, with one column of values per metric; a value that is not finite is stored as null.
    ///
    /// After a failure either none or all of the trials are in the folder, and [`TrialsWriter::n_trials`] says which: if the log
    /// could not be written, none; if it could and only a part could not be made of it, all, and the next call tries again.
    pub fn append(
        &mut self,
        points: &Points,
        scores: &Scores,
        metrics: &[Vec<f64>],
    ) -> Result<(), FolderError> {
        let n_points = points.len();
        let check = |what, expected, got| match expected == got {
            true => Ok(()),
            false => Err(FolderError::Shape { what, expected, got }),
        };
        check("parameters of the points", self.layout.params.len(), points.n_params())?;
        check("scores of an append", n_points, scores.len())?;
        check("objectives of an append", self.layout.n_objectives, scores.n_objectives())?;
        check("metrics of an append", self.layout.metrics.len(), metrics.len())?;
        for column in metrics {
            check("values of a metric", n_points, column.len())?;
        }
        if n_points == 0 {
            return Ok(());
        }
        let params = (0..points.n_params()).map(|param_idx| points.column(param_idx));
        let objectives = (0..scores.n_objectives()).map(|objective_idx| scores.column(objective_idx));
        let columns: Vec<&[f64]> =
            params.chain(metrics.iter().map(Vec::as_slice)).chain(objectives).collect();
        let first_trial = self.n_trials();
        let log = match &mut self.log {
            Some(log) => log,
            empty => empty.insert(LogWriter::create(&self.dir, &self.layout, first_trial, &self.columns)?),
        };
        log.append(first_trial, &columns)?;
        for (column, values) in self.columns.iter_mut().zip(columns) {
            column.extend_from_slice(values);
        }
        if self.n_logged() >= self.rows_per_part { self.compact() } else { Ok(()) }
    }

    /// Moves full parts out of the log.
    fn compact(&mut self) -> Result<(), FolderError> {
        while self.n_logged() >= self.rows_per_part {
            self.write_part(self.rows_per_part)?;
        }
        let log = LogWriter::create(&self.dir, &self.layout, self.n_compacted, &self.columns)?;
        self.log = Some(log);
        Ok(())
    }

    /// Makes a part of the first trials of the log.
    fn write_part(&mut self, n_rows: usize) -> Result<(), FolderError> {
        // A part may end inside a batch, so that the rest of that batch must be as durable.
        self.sync()?;
        let columns: Vec<&[f64]> = self.columns.iter().map(|column| &column[..n_rows]).collect();
        part::write(&part::path(&self.dir, self.n_parts), &self.layout, self.n_compacted, &columns)?;
        self.n_parts += 1;
        self.n_compacted += n_rows as u64;
        for column in &mut self.columns {
            column.drain(..n_rows);
        }
        Ok(())
    }

    /// Makes everything appended survive a loss of power too.
    pub fn sync(&mut self) -> Result<(), FolderError> {
        self.log.as_mut().map_or(Ok(()), LogWriter::sync)
    }

    /// Ends the study: all of it is then in parts, of which the last may be short. Returns the number of trials.
    pub fn finish(mut self) -> Result<u64, FolderError> {
        while self.n_logged() > 0 {
            self.write_part(self.n_logged().min(self.rows_per_part))?;
        }
        if self.log.take().is_some() {
            let path = self.dir.join(LOG_FILE);
            fs::remove_file(&path).map_err(FolderError::io("remove", &path))?;
        }
        Ok(self.n_compacted)
    }
}

impl Drop for TrialsWriter {
    fn drop(&mut self) {
        // A failure cannot be returned from a drop; call `sync` to see it.
        drop(self.sync());
    }
}

/// How many trials of a record are known already, if `n_known` trials are; an error if some are missing before it.
pub(super) fn skipped(
    log: &LogReader,
    first_trial: u64,
    n_rows: usize,
    n_known: u64,
) -> Result<usize, FolderError> {
    if first_trial > n_known {
        let problem = format!("expected trial {n_known} to follow, found trial {first_trial}");
        return Err(FolderError::part(log.path(), problem));
    }
    Ok(usize::try_from(n_known - first_trial).unwrap_or(usize::MAX).min(n_rows))
}
