//! All trials of a study as one file, in trial order.
//!
//! The bytes depend on the trials alone: there are no timestamps, and how a study was cut into parts, or whether it was interrupted,
//! does not show.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt64Array};
use arrow_schema::{Schema, SchemaRef};

use crate::folder::column::Column;
use crate::folder::read::{TrialBatch, read_trials};
use crate::folder::{FolderError, ROWS_PER_PART, layout, part};

/// File formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Comma-separated values with a line of names; what is undefined is empty.
    Csv,
    /// One Parquet file with the columns of the parts.
    Parquet,
    /// A JSON array with one object per trial and line; what is undefined is null.
    Json,
}

impl ExportFormat {
    /// Every format, in the order shown to users.
    pub const ALL: [Self; 3] = [Self::Csv, Self::Parquet, Self::Json];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Json => "json",
        }
    }
}

/// A name that is no export format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("there is no format `{name}`; choose one of {}", ExportFormat::ALL.map(ExportFormat::name).join(", "))]
pub struct UnknownFormat {
    /// The unknown name.
    pub name: String,
}

impl FromStr for ExportFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let of_name = |format: &Self| format.name() == name;
        Self::ALL.into_iter().find(of_name).ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// Writes all trials of a study folder in trial order: number, parameters, metrics, objectives. Returns their number.
///
/// A study without trials gives an empty CSV or JSON document and, for want of columns, a Parquet file of trial numbers only.
pub fn export(dir: &Path, format: ExportFormat, out: impl Write + Send) -> Result<u64, FolderError> {
    // Rows come in even batches, since the pages of a Parquet file follow the batches it is written in.
    let trials = read_trials(dir)?.in_batches_of(match format {
        ExportFormat::Parquet => ROWS_PER_PART,
        ExportFormat::Csv | ExportFormat::Json => 8192,
    });
    let mut out = BufWriter::new(out);
    let mut n_trials = 0;
    let failed = |source: io::Error| FolderError::Export { source };
    match format {
        ExportFormat::Csv => {
            for batch in trials {
                let batch = batch?;
                if n_trials == 0 {
                    write_csv_names(&batch, &mut out).map_err(failed)?;
                }
                n_trials += batch.trials.len() as u64;
                write_csv_rows(&batch, &mut out).map_err(failed)?;
            }
        }
        ExportFormat::Json => {
            out.write_all(b"[").map_err(failed)?;
            for batch in trials {
                let batch = batch?;
                write_json_rows(&batch, n_trials == 0, &mut out).map_err(failed)?;
                n_trials += batch.trials.len() as u64;
            }
            out.write_all(b"\n]\n").map_err(failed)?;
        }
        ExportFormat::Parquet => n_trials = write_parquet(trials, &mut out)?,
    }
    out.flush().map_err(failed)?;
    Ok(n_trials)
}

/// The columns of a batch as Arrow describes them, which is where their names are decided.
fn schema(batch: &TrialBatch) -> Schema {
    let params = batch.params.iter().map(|(name, column)| (name.as_str(), column.data_type()));
    let metrics: Vec<&str> = batch.metrics.iter().map(|(name, _)| name.as_str()).collect();
    layout::schema(params, &metrics, 1 + batch.further_objectives.len())
}

fn write_csv_names(batch: &TrialBatch, out: &mut impl Write) -> io::Result<()> {
    for (column_idx, field) in schema(batch).fields().iter().enumerate() {
        if column_idx > 0 {
            out.write_all(b",")?;
        }
        write_csv_text(field.name(), out)?;
    }
    out.write_all(b"\n")
}

fn write_csv_rows(batch: &TrialBatch, out: &mut impl Write) -> io::Result<()> {
    for (row_idx, trial) in batch.trials.iter().enumerate() {
        write!(out, "{trial}")?;
        for (_, column) in &batch.params {
            out.write_all(b",")?;
            match column {
                Column::Int(values) => write_some(values[row_idx], out)?,
                Column::Bool(values) => write_some(values[row_idx], out)?,
                Column::Float(values) => write_number(values[row_idx], "", out)?,
                Column::Text(values) => {
                    values[row_idx].as_ref().map_or(Ok(()), |text| write_csv_text(text, out))?;
                }
            }
        }
        for value in numbers(batch, row_idx) {
            out.write_all(b",")?;
            write_number(value, "", out)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The metrics and objectives of one trial.
fn numbers(batch: &TrialBatch, row_idx: usize) -> impl Iterator<Item = Option<f64>> {
    let metrics = batch.metrics.iter().map(move |(_, values)| values[row_idx]);
    metrics.chain(objectives(batch, row_idx))
}

fn objectives(batch: &TrialBatch, row_idx: usize) -> impl Iterator<Item = Option<f64>> {
    let further = batch.further_objectives.iter().map(move |values| values[row_idx]);
    std::iter::once(batch.scores[row_idx].value()).chain(further)
}

fn write_some(value: Option<impl std::fmt::Display>, out: &mut impl Write) -> io::Result<()> {
    value.map_or(Ok(()), |value| write!(out, "{value}"))
}

/// A number in the fewest digits that give it back.
fn write_number(value: Option<f64>, undefined: &str, out: &mut impl Write) -> io::Result<()> {
    match value {
        Some(value) if value.is_finite() => write!(out, "{value:?}"),
        _ => out.write_all(undefined.as_bytes()),
    }
}

/// Text, in quotes where it could be taken for more than one field.
fn write_csv_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    if text.contains([',', '"', '\n', '\r']) {
        write!(out, "\"{}\"", text.replace('"', "\"\""))
    } else {
        out.write_all(text.as_bytes())
    }
}

fn write_json_rows(batch: &TrialBatch, is_first: bool, out: &mut impl Write) -> io::Result<()> {
    let key = |name: &str| serde_json::to_string(name).map_err(io::Error::from);
    let params: Vec<String> = batch.params.iter().map(|(name, _)| key(name)).collect::<Result<_, _>>()?;
    let metrics: Vec<String> = batch.metrics.iter().map(|(name, _)| key(name)).collect::<Result<_, _>>()?;
    for (row_idx, trial) in batch.trials.iter().enumerate() {
        out.write_all(if is_first && row_idx == 0 { b"\n" } else { b",\n" })?;
        write!(out, "{{\"trial\":{trial},\"params\":{{")?;
        for (param_idx, (key, (_, column))) in params.iter().zip(&batch.params).enumerate() {
            write!(out, "{}{key}:", if param_idx > 0 { "," } else { "" })?;
            match column.value(row_idx) {
                None => out.write_all(b"null")?,
                Some(value) => serde_json::to_writer(&mut *out, &value)?,
            }
        }
        out.write_all(b"},\"metrics\":{")?;
        for (metric_idx, (key, (_, values))) in metrics.iter().zip(&batch.metrics).enumerate() {
            write!(out, "{}{key}:", if metric_idx > 0 { "," } else { "" })?;
            write_number(values[row_idx], "null", out)?;
        }
        out.write_all(b"}")?;
        for (objective_idx, value) in objectives(batch, row_idx).enumerate() {
            write!(out, ",\"{}\":", layout::objective_name(objective_idx))?;
            write_number(value, "null", out)?;
        }
        out.write_all(b"}")?;
    }
    Ok(())
}

fn write_parquet(
    trials: impl Iterator<Item = Result<TrialBatch, FolderError>>,
    out: &mut (impl Write + Send),
) -> Result<u64, FolderError> {
    let failed =
        |source: parquet::errors::ParquetError| FolderError::Export { source: io::Error::other(source) };
    let (schema, batches) = arrow_batches(trials);
    let mut writer = part::arrow_writer(out, schema).map_err(failed)?;
    let mut n_trials = 0;
    for batch in batches {
        let batch = batch?;
        n_trials += batch.num_rows() as u64;
        writer.write(&batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(n_trials)
}

/// Trials as Arrow's batches; without any trial there is a column of trial numbers only.
pub(super) fn arrow_batches(
    trials: impl Iterator<Item = Result<TrialBatch, FolderError>>,
) -> (SchemaRef, impl Iterator<Item = Result<RecordBatch, FolderError>>) {
    let mut trials = trials.peekable();
    let schema = Arc::new(match trials.peek() {
        Some(Ok(first)) => schema(first),
        _ => layout::schema(std::iter::empty(), &[], 0),
    });
    let of = schema.clone();
    let batches = trials.map(move |batch| {
        let batch = batch?;
        let floats = |values: Vec<Option<f64>>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(batch.trials))];
        columns.extend(batch.params.iter().map(|(_, column)| column.to_array()));
        columns.extend(batch.metrics.into_iter().map(|(_, values)| floats(values)));
        columns.push(floats(batch.scores.iter().map(|score| score.value()).collect()));
        columns.extend(batch.further_objectives.into_iter().map(floats));
        let rows = RecordBatch::try_new(of.clone(), columns);
        rows.map_err(|error| FolderError::Export { source: io::Error::other(error) })
    });
    (schema, batches)
}
