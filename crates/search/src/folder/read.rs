//! Reading trials back, a bounded number of rows at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::folder::write::parquet_error;
use crate::folder::{FolderError, HEADER_FILE, TRIALS_DIR, part};
use crate::point::Points;
use crate::score::Score;
use crate::space::Space;
use crate::value::Value;

/// Rows of one batch.
const BATCH_ROWS: usize = 8192;

/// The values of one column; `None` where there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Real numbers.
    Float(Vec<Option<f64>>),
    /// Names.
    Text(Vec<Option<String>>),
    /// Switches.
    Bool(Vec<Option<bool>>),
}

impl Column {
    /// One value.
    pub fn value(&self, row_idx: usize) -> Option<Value> {
        match self {
            Self::Int(values) => values[row_idx].map(Value::Int),
            Self::Float(values) => values[row_idx].map(Value::Float),
            Self::Text(values) => values[row_idx].clone().map(Value::Text),
            Self::Bool(values) => values[row_idx].map(Value::Bool),
        }
    }
}

/// Some consecutive trials.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialBatch {
    /// Trial numbers.
    pub trials: Vec<u64>,
    /// Parameters by name, in the order of the space.
    pub params: Vec<(String, Column)>,
    /// Metrics by name; `None` where undefined.
    pub metrics: Vec<(String, Vec<Option<f64>>)>,
    /// Scores.
    pub scores: Vec<Score>,
}

impl TrialBatch {
    /// The trials as encoded points of their space; `None` if the space has other parameters or domains.
    pub fn to_points(&self, space: &Space) -> Option<Points> {
        if self.params.len() != space.len() {
            return None;
        }
        let mut columns = Vec::with_capacity(space.len());
        for (param, (name, column)) in space.params.iter().zip(&self.params) {
            if param.name != *name {
                return None;
            }
            let encode = |row_idx| match column.value(row_idx) {
                None => Some(f64::NAN),
                Some(value) => part::encode(&param.domain, &value),
            };
            columns.push((0..self.trials.len()).map(encode).collect::<Option<Vec<f64>>>()?);
        }
        Some(Points::from_columns(self.trials.len(), columns))
    }
}

/// Streams the trials of a study folder in order.
pub fn read_trials(dir: &Path) -> Result<Trials, FolderError> {
    if !dir.join(HEADER_FILE).exists() {
        return Err(FolderError::NotAStudy { dir: dir.to_owned() });
    }
    let parts = part::list(&dir.join(TRIALS_DIR))?;
    Ok(Trials { parts: parts.into_iter(), current: None, n_read: 0 })
}

/// The trials of a study folder, as an iterator over batches.
///
/// The parts are those that existed when it was made, so that a live study can be read. It ends after the first error.
pub struct Trials {
    parts: std::vec::IntoIter<PathBuf>,
    current: Option<(PathBuf, ParquetRecordBatchReader)>,
    n_read: u64,
}

impl Iterator for Trials {
    type Item = Result<TrialBatch, FolderError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.next_batch().transpose();
        if let Some(Err(_)) = result {
            self.parts = Vec::new().into_iter();
            self.current = None;
        }
        result
    }
}

impl Trials {
    fn next_batch(&mut self) -> Result<Option<TrialBatch>, FolderError> {
        loop {
            if let Some((path, reader)) = &mut self.current {
                if let Some(batch) = reader.next() {
                    let batch = batch.map_err(|source| parquet_error("read", path, source.into()))?;
                    let batch = decode(&batch)
                        .map_err(|problem| FolderError::Part { path: path.clone(), problem })?;
                    if !batch.trials.iter().copied().eq(self.n_read..self.n_read + batch.trials.len() as u64)
                    {
                        let problem = format!("expected trial {} to follow", self.n_read);
                        return Err(FolderError::Part { path: path.clone(), problem });
                    }
                    self.n_read += batch.trials.len() as u64;
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(path) = self.parts.next() else { return Ok(None) };
            let file = File::open(&path).map_err(FolderError::io("open", &path))?;
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
                .map_err(|source| parquet_error("read", &path, source))?;
            self.current = Some((path, reader));
        }
    }
}

fn decode(batch: &RecordBatch) -> Result<TrialBatch, String> {
    let mut trials = None;
    let mut params = Vec::new();
    let mut metrics = Vec::new();
    let mut scores = None;
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let own_name = || field.metadata().get(part::NAME).unwrap_or(field.name()).clone();
        match (field.name().as_str(), field.metadata().get(part::ROLE).map(String::as_str)) {
            (_, Some(part::ROLE_PARAM)) => params.push((own_name(), column(field, array.as_ref())?)),
            (_, Some(part::ROLE_METRIC)) => metrics.push((own_name(), numbers(field, array.as_ref())?)),
            (part::TRIAL, _) => {
                let array = array.as_primitive_opt::<UInt64Type>().ok_or_else(|| wrong_type(field))?;
                trials = Some(array.values().to_vec());
            }
            (part::OBJECTIVE, _) => {
                let values = numbers(field, array.as_ref())?;
                scores = Some(values.iter().map(|value| value.map_or(Score::Invalid, Score::new)).collect());
            }
            // A column that someone else added is not ours to judge.
            _ => {}
        }
    }
    Ok(TrialBatch {
        trials: trials.ok_or_else(|| format!("the column `{}` is missing", part::TRIAL))?,
        params,
        metrics,
        scores: scores.ok_or_else(|| format!("the column `{}` is missing", part::OBJECTIVE))?,
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

fn wrong_type(field: &Field) -> String {
    format!("the column `{}` has the unexpected type {}", field.name(), field.data_type())
}
