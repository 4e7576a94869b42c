//! Appending trials: rows collect in memory and leave it as durable parts of fixed length.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnPath;

use crate::folder::durable::DurableFile;
use crate::folder::{FolderError, part};
use crate::point::Points;
use crate::score::Score;
use crate::space::Space;

/// Trials per part; only the last part of a run may hold fewer.
pub const ROWS_PER_PART: usize = 65_536;

/// Writes trials into a study folder.
///
/// At most one part is held in memory, whatever the number of trials. Call [`TrialsWriter::finish`] at the end; a writer that is
/// dropped instead (an early return, a panic) still tries to save what it holds, but cannot say whether that worked.
#[derive(Debug)]
pub struct TrialsWriter {
    dir: PathBuf,
    space: Space,
    schema: Arc<Schema>,
    properties: WriterProperties,
    rows_per_part: usize,
    n_parts: usize,
    n_saved: u64,
    points: Points,
    metrics: Vec<Vec<f64>>,
    objective: Vec<f64>,
}

impl TrialsWriter {
    pub(super) fn open(trials_dir: &Path, space: &Space, metric_names: &[&str]) -> Result<Self, FolderError> {
        let schema = part::schema(space, metric_names)?;
        part::remove_leftovers(trials_dir)?;
        let parts = part::list(trials_dir)?;
        let n_saved = parts.iter().map(|path| n_rows(path)).sum::<Result<u64, FolderError>>()?;
        Ok(Self {
            dir: trials_dir.to_owned(),
            space: space.clone(),
            properties: properties(&schema),
            schema: Arc::new(schema),
            rows_per_part: ROWS_PER_PART,
            n_parts: parts.len(),
            n_saved,
            points: Points::new(space.len()),
            metrics: vec![Vec::new(); metric_names.len()],
            objective: Vec::new(),
        })
    }

    /// The same writer with parts of another length.
    pub fn with_rows_per_part(mut self, rows_per_part: usize) -> Self {
        self.rows_per_part = rows_per_part.max(1);
        self
    }

    /// Number of trials so far, saved or not.
    pub fn n_trials(&self) -> u64 {
        self.n_saved + self.points.len() as u64
    }

    /// Number of trials that are durable.
    pub fn n_saved(&self) -> u64 {
        self.n_saved
    }

    /// Adds trials, with one column of values per metric; a value that is not finite is stored as null.
    ///
    /// After a failure nothing is lost that was handed over: full rows stay in memory, and [`TrialsWriter::flush`] tries again.
    pub fn append(
        &mut self,
        points: &Points,
        scores: &[Score],
        metrics: &[Vec<f64>],
    ) -> Result<(), FolderError> {
        let n_points = points.len();
        let check = |what, expected, got| match expected == got {
            true => Ok(()),
            false => Err(FolderError::Shape { what, expected, got }),
        };
        check("parameters of the points", self.points.n_params(), points.n_params())?;
        check("scores of an append", n_points, scores.len())?;
        check("metrics of an append", self.metrics.len(), metrics.len())?;
        for column in metrics {
            check("values of a metric", n_points, column.len())?;
        }
        let mut from = 0;
        while from < n_points {
            if self.points.len() >= self.rows_per_part {
                self.flush()?;
            }
            let to = n_points.min(from + self.rows_per_part - self.points.len());
            self.points.extend_from(points, from..to);
            for (buffer, column) in self.metrics.iter_mut().zip(metrics) {
                buffer.extend_from_slice(&column[from..to]);
            }
            self.objective.extend(scores[from..to].iter().map(|score| score.value().unwrap_or(f64::NAN)));
            from = to;
        }
        if self.points.len() >= self.rows_per_part { self.flush() } else { Ok(()) }
    }

    /// Saves what is in memory as a part of its own, however short.
    pub fn flush(&mut self) -> Result<(), FolderError> {
        if self.points.is_empty() {
            return Ok(());
        }
        let path = part::path(&self.dir, self.n_parts);
        let mut file = DurableFile::create(&path)?;
        self.write_rows(&mut file).map_err(|source| parquet_error("write", &path, source))?;
        file.commit()?;
        self.n_parts += 1;
        self.n_saved += self.points.len() as u64;
        self.points.clear();
        self.metrics.iter_mut().for_each(Vec::clear);
        self.objective.clear();
        Ok(())
    }

    /// Saves what is left and returns the number of trials in the folder.
    pub fn finish(mut self) -> Result<u64, FolderError> {
        self.flush()?;
        Ok(self.n_saved)
    }

    fn write_rows(&self, file: &mut DurableFile) -> Result<(), ParquetError> {
        let n_rows = self.points.len() as u64;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        columns.push(Arc::new(UInt64Array::from_iter_values(self.n_saved..self.n_saved + n_rows)));
        for (param_idx, param) in self.space.params.iter().enumerate() {
            columns.push(part::param_array(&param.domain, self.points.column(param_idx)));
        }
        columns.extend(self.metrics.iter().map(|column| part::number_array(column)));
        columns.push(part::number_array(&self.objective));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let mut writer = ArrowWriter::try_new(file, Arc::clone(&self.schema), Some(self.properties.clone()))?;
        writer.write(&batch)?;
        writer.close()?;
        Ok(())
    }
}

impl Drop for TrialsWriter {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure; `finish` is the way to know.
        drop(self.flush());
    }
}

/// Real numbers rarely repeat, so that a dictionary of them would only cost time.
fn properties(schema: &Schema) -> WriterProperties {
    let reals = schema.fields().iter().filter(|field| *field.data_type() == DataType::Float64);
    reals
        .fold(WriterProperties::builder().set_compression(Compression::SNAPPY), |builder, field| {
            builder.set_column_dictionary_enabled(ColumnPath::new(vec![field.name().clone()]), false)
        })
        .build()
}

fn n_rows(path: &Path) -> Result<u64, FolderError> {
    let file = File::open(path).map_err(FolderError::io("open", path))?;
    let reader = SerializedFileReader::new(file).map_err(|source| parquet_error("read", path, source))?;
    Ok(u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0))
}

pub(super) fn parquet_error(action: &'static str, path: &Path, source: ParquetError) -> FolderError {
    FolderError::Parquet { action, path: path.to_owned(), source: Box::new(source) }
}
