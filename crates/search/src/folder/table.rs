//! All trials of a study as Arrow's columns, in memory.
//!
//! Parts are decoded side by side, and their columns are handed on as Parquet gives them; only the trials of the log, of which there are
//! few, are taken apart.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use rayon::prelude::*;

use crate::folder::export::arrow_batches;
use crate::folder::layout::{self, Role};
use crate::folder::read::{check_order, missing, other_columns, read_trials, wrong_type};
use crate::folder::{FolderError, ROWS_PER_PART};

/// All trials of a study folder in trial order, in memory, with the columns of a Parquet export.
pub fn trial_table(dir: &Path) -> Result<(SchemaRef, Vec<RecordBatch>), FolderError> {
    let (parts, log_after) = read_trials(dir)?.split();
    let read: Vec<Vec<RecordBatch>> =
        parts.par_iter().map(|path| read_part(path)).collect::<Result<_, _>>()?;
    let (mut table, mut n_read) = (Vec::<RecordBatch>::new(), 0);
    for (path, batches) in parts.iter().zip(read) {
        for batch in batches {
            check_order(batch.column(0).as_primitive::<UInt64Type>().values(), n_read, path)?;
            if table.first().is_some_and(|first| first.schema_ref() != batch.schema_ref()) {
                return Err(other_columns(path));
            }
            n_read += batch.num_rows() as u64;
            table.push(batch);
        }
    }
    let (schema, logged) = arrow_batches(log_after(n_read).in_batches_of(ROWS_PER_PART));
    let logged: Vec<RecordBatch> = logged.collect::<Result<_, _>>()?;
    let known = table.first().map(RecordBatch::schema);
    if known.as_ref().is_some_and(|known| !logged.is_empty() && *known != schema) {
        return Err(other_columns(dir));
    }
    table.extend(logged);
    Ok((known.unwrap_or(schema), table))
}

/// The trials of a part, with their columns in the order of an export.
fn read_part(path: &Path) -> Result<Vec<RecordBatch>, FolderError> {
    let failed = |error: ParquetError| FolderError::parquet("read", path)(error);
    let file = File::open(path).map_err(FolderError::io("open", path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let (schema, places) = columns(builder.schema()).map_err(|problem| FolderError::part(path, problem))?;
    // Columns that someone else added are left in the file; the others come in its order.
    let mask = ProjectionMask::roots(builder.parquet_schema(), places.iter().copied());
    let rank = |place: &usize| places.iter().filter(|other| *other < place).count();
    let ranks: Vec<usize> = places.iter().map(rank).collect();
    let reader = builder.with_projection(mask).with_batch_size(ROWS_PER_PART).build().map_err(failed)?;
    let ordered = |batch: RecordBatch| {
        RecordBatch::try_new(schema.clone(), ranks.iter().map(|rank| batch.column(*rank).clone()).collect())
    };
    reader.map(|batch| batch.and_then(ordered).map_err(|error| failed(error.into()))).collect()
}

/// The columns of a part as an export has them, and their places in the file.
fn columns(stored: &Schema) -> Result<(SchemaRef, Vec<usize>), String> {
    let (mut trial, mut objective) = (None, None);
    let (mut params, mut metrics, mut further) = (Vec::new(), Vec::new(), Vec::new());
    for (place, field) in stored.fields().iter().enumerate() {
        let (role, data_type) = (Role::of(field), field.data_type());
        let is_expected = match role {
            Some(Role::Trial) => *data_type == DataType::UInt64,
            Some(Role::Param(_)) => {
                matches!(data_type, DataType::Int64 | DataType::Float64 | DataType::Boolean | DataType::Utf8)
            }
            Some(_) => *data_type == DataType::Float64,
            None => true,
        };
        if !is_expected {
            return Err(wrong_type(field));
        }
        match role {
            Some(Role::Trial) => trial = Some(place),
            Some(Role::Param(name)) => params.push((place, (name, data_type.clone()))),
            Some(Role::Metric(name)) => metrics.push((place, name)),
            Some(Role::Objective) => objective = Some(place),
            Some(Role::FurtherObjective) => further.push(place),
            None => {}
        }
    }
    let mut places = vec![trial.ok_or_else(|| missing(layout::TRIAL))?];
    let (param_places, params): (Vec<usize>, Vec<_>) = params.into_iter().unzip();
    let (metric_places, metrics): (Vec<usize>, Vec<_>) = metrics.into_iter().unzip();
    places.extend(param_places);
    places.extend(metric_places);
    places.push(objective.ok_or_else(|| missing(layout::OBJECTIVE))?);
    let schema = layout::schema(params.into_iter(), &metrics, 1 + further.len());
    places.extend(further);
    Ok((Arc::new(schema), places))
}
