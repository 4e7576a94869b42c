//! Reading trials back, a bounded number of rows at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::folder::column::{Column, Kind, finite};
use crate::folder::layout::{self, Role};
use crate::folder::log::{LogReader, Record};
use crate::folder::write::skipped;
use crate::folder::{FolderError, HEADER_FILE, TRIALS_DIR, part};
use crate::point::Points;
use crate::score::{Score, Scores};
use crate::space::Space;

/// Rows of one batch.
const BATCH_ROWS: usize = 8192;

/// Some consecutive trials.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialBatch {
    /// Trial numbers.
    pub trials: Vec<u64>,
    /// Parameters by name, in the order of the space.
    pub params: Vec<(String, Column)>,
    /// Metrics by name; `None` where undefined.
    pub metrics: Vec<(String, Vec<Option<f64>>)>,
    /// Scores in the first objective.
    pub scores: Vec<Score>,
    /// The values of the objectives after the first; `None` where a trial is invalid.
    pub further_objectives: Vec<Vec<Option<f64>>>,
}

impl TrialBatch {
    /// The trials as encoded points of their space; `None` if the space has other parameters or domains.
    pub fn to_points(&self, space: &Space) -> Option<Points> {
        if self.params.len() != space.len() {
            return None;
        }
        let mut columns = Vec::with_capacity(space.len());
        for (param, (name, column)) in space.params.iter().zip(&self.params) {
            let values = Kind::of(&param.domain).encode(column)?;
            // A fixed value may lie outside the range.
            let is_possible =
                |value: &f64| value.is_nan() || param.domain.contains(*value) || param.fixed == Some(*value);
            if param.name != *name || !values.iter().all(is_possible) {
                return None;
            }
            columns.push(values);
        }
        Some(Points::from_columns(self.trials.len(), columns))
    }

    /// Scores in all objectives.
    pub fn to_scores(&self) -> Scores {
        let first = self.scores.iter().map(|score| score.value().unwrap_or(f64::NAN)).collect();
        let further = self.further_objectives.iter().map(|values| undefined_as_nan(values));
        Scores::from_columns(self.scores.len(), std::iter::once(first).chain(further).collect())
    }

    /// The metrics as plain numbers, NaN where undefined.
    pub fn to_metrics(&self) -> Vec<Vec<f64>> {
        self.metrics.iter().map(|(_, values)| undefined_as_nan(values)).collect()
    }

    /// A batch with the same columns and no trials.
    fn emptied(&self) -> Self {
        Self {
            trials: Vec::new(),
            params: self.params.iter().map(|(name, column)| (name.clone(), column.emptied())).collect(),
            metrics: self.metrics.iter().map(|(name, _)| (name.clone(), Vec::new())).collect(),
            scores: Vec::new(),
            further_objectives: vec![Vec::new(); self.further_objectives.len()],
        }
    }

    /// Whether both have the same columns.
    fn has_columns_of(&self, other: &Self) -> bool {
        let is_same_param =
            |((name, column), (other_name, other_column)): (&(String, Column), &(String, Column))| {
                name == other_name && column.data_type() == other_column.data_type()
            };
        self.params.len() == other.params.len()
            && self.params.iter().zip(&other.params).all(is_same_param)
            && self.metrics.iter().map(|(name, _)| name).eq(other.metrics.iter().map(|(name, _)| name))
            && self.further_objectives.len() == other.further_objectives.len()
    }

    /// Adds `n` trials from the place `from` of another batch with the same columns.
    fn extend_from(&mut self, other: &Self, from: usize, n: usize) {
        let range = from..from + n;
        for ((_, column), (_, more)) in self.params.iter_mut().zip(&other.params) {
            column.extend_from(more, range.clone());
        }
        for ((_, values), (_, more)) in self.metrics.iter_mut().zip(&other.metrics) {
            values.extend_from_slice(&more[range.clone()]);
        }
        for (values, more) in self.further_objectives.iter_mut().zip(&other.further_objectives) {
            values.extend_from_slice(&more[range.clone()]);
        }
        self.trials.extend_from_slice(&other.trials[range.clone()]);
        self.scores.extend_from_slice(&other.scores[range]);
    }
}

fn undefined_as_nan(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

/// Streams the trials of a study folder in order, also of one that is being written.
pub fn read_trials(dir: &Path) -> Result<Trials, FolderError> {
    if !dir.join(HEADER_FILE).exists() {
        return Err(FolderError::NotAStudy { dir: dir.to_owned() });
    }
    let trials_dir = dir.join(TRIALS_DIR);
    // The log first: what leaves it while we look is then in the parts that we list afterwards, and the open file stays as it is.
    let log = LogReader::open(&trials_dir)?;
    let parts = part::list(&trials_dir)?;
    Ok(Trials { parts: parts.into_iter(), current: None, log, n_read: 0, columns: None })
}

/// The trials of a study folder, as an iterator over batches: the parts, then the log.
///
/// They are those that existed when it was made, so that a live study can be read. It ends after the first error.
pub struct Trials {
    parts: std::vec::IntoIter<PathBuf>,
    current: Option<(PathBuf, ParquetRecordBatchReader)>,
    log: Option<LogReader>,
    n_read: u64,
    /// A batch without trials that has the columns of all of them.
    columns: Option<TrialBatch>,
}

impl Iterator for Trials {
    type Item = Result<TrialBatch, FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.next_batch().transpose();
        if let Some(Err(_)) = result {
            self.parts = Vec::new().into_iter();
            self.current = None;
            self.log = None;
        }
        result
    }
}

impl Trials {
    /// The parts, of which none has been read, and the trials of the log that follow the given number of trials in them.
    pub(super) fn split(mut self) -> (Vec<PathBuf>, impl FnOnce(u64) -> Self) {
        let parts = std::mem::take(&mut self.parts).collect();
        (parts, |n_read| Self { n_read, ..self })
    }

    /// The same trials in batches of exactly `n_rows`, the last one excepted.
    pub fn in_batches_of(self, n_rows: usize) -> EvenTrials {
        EvenTrials { n_rows, rows: self.rows() }
    }

    /// The same trials in batches of this many.
    pub fn rows(self) -> TrialRows {
        TrialRows { trials: self, current: None, offset: 0 }
    }

    fn next_batch(&mut self) -> Result<Option<TrialBatch>, FolderError> {
        loop {
            if let Some((path, reader)) = &mut self.current {
                if let Some(batch) = reader.next() {
                    let batch = batch
                        .map_err(parquet::errors::ParquetError::from)
                        .map_err(FolderError::parquet("read", path))?;
                    let batch = decode(&batch).map_err(|problem| FolderError::part(path, problem))?;
                    check_order(&batch.trials, self.n_read, path)?;
                    check_columns(&mut self.columns, &batch, path)?;
                    self.n_read += batch.trials.len() as u64;
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(path) = self.parts.next() else { return self.next_logged() };
            let file = File::open(&path).map_err(FolderError::io("open", &path))?;
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
                .map_err(FolderError::parquet("read", &path))?;
            self.current = Some((path, reader));
        }
    }

    /// The next trials of the log that are in no part.
    fn next_logged(&mut self) -> Result<Option<TrialBatch>, FolderError> {
        let Some(log) = &mut self.log else { return Ok(None) };
        while let Some(record) = log.next_record()? {
            let n_skipped = skipped(log, record.first_trial, record.n_rows, self.n_read)?;
            if n_skipped < record.n_rows {
                let batch = decode_record(log, &record, n_skipped);
                check_columns(&mut self.columns, &batch, log.path())?;
                self.n_read += batch.trials.len() as u64;
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Checks that trials are numbered on from those that were read before.
pub(super) fn check_order(trials: &[u64], n_read: u64, path: &Path) -> Result<(), FolderError> {
    if trials.iter().copied().eq(n_read..n_read + trials.len() as u64) {
        return Ok(());
    }
    Err(FolderError::part(path, format!("expected trial {n_read} to follow")))
}

/// Checks that a batch has the columns of those before it.
fn check_columns(known: &mut Option<TrialBatch>, batch: &TrialBatch, path: &Path) -> Result<(), FolderError> {
    if known.get_or_insert_with(|| batch.emptied()).has_columns_of(batch) {
        return Ok(());
    }
    Err(other_columns(path))
}

pub(super) fn other_columns(path: &Path) -> FolderError {
    FolderError::part(path, "its columns differ from those of the trials before")
}

/// Trials in batches of equal length, whatever the files they are in.
pub struct EvenTrials {
    rows: TrialRows,
    n_rows: usize,
}

impl Iterator for EvenTrials {
    type Item = Result<TrialBatch, FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next(self.n_rows)
    }
}

/// Trials in batches of any length, whatever the files they are in.
pub struct TrialRows {
    trials: Trials,
    current: Option<TrialBatch>,
    offset: usize,
}

impl TrialRows {
    /// The next `n_rows` trials, at least one; fewer if there are no more, and none at the end.
    pub fn next(&mut self, n_rows: usize) -> Option<Result<TrialBatch, FolderError>> {
        let n_rows = n_rows.max(1);
        let mut even: Option<TrialBatch> = None;
        loop {
            if let Some(current) = &self.current {
                let even = even.get_or_insert_with(|| current.emptied());
                let n = (n_rows - even.trials.len()).min(current.trials.len() - self.offset);
                even.extend_from(current, self.offset, n);
                self.offset += n;
            }
            if even.as_ref().is_some_and(|even| even.trials.len() == n_rows) {
                return even.map(Ok);
            }
            self.offset = 0;
            match self.trials.next().transpose() {
                Ok(Some(batch)) => self.current = Some(batch),
                Ok(None) => {
                    self.current = None;
                    return even.filter(|even| !even.trials.is_empty()).map(Ok);
                }
                Err(error) => {
                    self.current = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Number of trials in a study folder, without reading those that are in parts.
pub(super) fn count_trials(dir: &Path) -> Result<u64, FolderError> {
    let trials_dir = dir.join(TRIALS_DIR);
    let log = LogReader::open(&trials_dir)?;
    let parts = part::list(&trials_dir)?;
    let mut n_trials = parts.iter().map(|path| part::n_rows(path)).sum::<Result<u64, FolderError>>()?;
    if let Some(mut log) = log {
        while let Some(record) = log.next_record()? {
            n_trials = n_trials.max(record.first_trial + record.n_rows as u64);
        }
    }
    Ok(n_trials)
}

fn decode_record(log: &LogReader, record: &Record, n_skipped: usize) -> TrialBatch {
    let layout = log.layout();
    let (n_params, n_metrics) = (layout.params.len(), layout.metrics.len());
    let column = |column_idx: usize| &record.columns[column_idx][n_skipped..];
    let numbers = |column_idx| column(column_idx).iter().map(|value| finite(*value)).collect();
    let end = record.first_trial + record.n_rows as u64;
    TrialBatch {
        trials: (record.first_trial + n_skipped as u64..end).collect(),
        params: layout
            .params
            .iter()
            .enumerate()
            .map(|(param_idx, (name, kind))| (name.clone(), kind.decode(column(param_idx))))
            .collect(),
        metrics: layout
            .metrics
            .iter()
            .enumerate()
            .map(|(metric_idx, name)| (name.clone(), numbers(n_params + metric_idx)))
            .collect(),
        scores: column(n_params + n_metrics).iter().map(|value| Score::new(*value)).collect(),
        further_objectives: (1..layout.n_objectives)
            .map(|objective_idx| numbers(n_params + n_metrics + objective_idx))
            .collect(),
    }
}

fn decode(batch: &RecordBatch) -> Result<TrialBatch, String> {
    let mut trials = None;
    let mut params = Vec::new();
    let mut metrics = Vec::new();
    let mut scores = None;
    let mut further_objectives = Vec::new();
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        match Role::of(field) {
            Some(Role::Param(name)) => params.push((name.to_owned(), column(field, array.as_ref())?)),
            Some(Role::Metric(name)) => metrics.push((name.to_owned(), numbers(field, array.as_ref())?)),
            Some(Role::FurtherObjective) => further_objectives.push(numbers(field, array.as_ref())?),
            Some(Role::Trial) => {
                let array = array.as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong_type(field))?;
                trials = Some(array.values().to_vec());
            }
            Some(Role::Objective) => {
                let values = numbers(field, array.as_ref())?;
                scores = Some(values.iter().map(|value| value.map_or(Score::Invalid, Score::new)).collect());
            }
            // A column that someone else added is not ours to judge.
            None => {}
        }
    }
    Ok(TrialBatch {
        trials: trials.ok_or_else(|| missing(layout::TRIAL))?,
        params,
        metrics,
        scores: scores.ok_or_else(|| missing(layout::OBJECTIVE))?,
        further_objectives,
    })
}

fn column(field: &Field, array: &dyn Array) -> Result<Column, String> {
    match array.data_type() {
        DataType::Int64 => Ok(Column::Int(array.as_primitive::<Int64Type>().iter().collect())),
        DataType::Float64 => Ok(Column::Float(numbers(field, array)?)),
        DataType::Boolean => Ok(Column::Bool(array.as_boolean().iter().collect())),
        DataType::Utf8 => {
            Ok(Column::Text(array.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()))
        }
        _ => Err(wrong_type(field)),
    }
}

fn numbers(field: &Field, array: &dyn Array) -> Result<Vec<Option<f64>>, String> {
    let array = array.as_primitive_opt::<Float64Type>().ok_or_else(|| wrong_type(field))?;
    Ok(array.iter().collect())
}

pub(super) fn missing(name: &str) -> String {
    format!("the column `{name}` is missing")
}

pub(super) fn wrong_type(field: &Field) -> String {
    format!("the column `{}` has the unexpected type {}", field.name(), field.data_type())
}
