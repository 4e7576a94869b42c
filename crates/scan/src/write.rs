//! The result as Parquet: a table of rows, and a long table of every bar.
//!
//! A file appears under its name only once it is complete.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::error::ScanError;
use crate::outcome::{Row, Symbol};

/// Writes `symbol, signal, trend, class, price, bars, first_time, last_time`, a line for each row in the order given.
///
/// `times_ms` are the open times of the bars of every symbol of the input, UTC milliseconds.
pub fn write_rows(path: &Path, rows: &[&Row], times_ms: &[&[i64]]) -> Result<(), ScanError> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("symbol", DataType::Utf8, false),
        Field::new("signal", DataType::Float64, false),
        Field::new("trend", DataType::Int32, false),
        Field::new("class", DataType::Utf8, false),
        Field::new("price", DataType::Float64, false),
        Field::new("bars", DataType::UInt64, false),
        Field::new("first_time", utc(), false),
        Field::new("last_time", utc(), false),
    ]));
    let window = |row: &Row| window_of(times_ms[row.index], row.bars);
    let first = |row: &&Row| window(row).first().copied().unwrap_or_default();
    let last = |row: &&Row| window(row).last().copied().unwrap_or_default();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.symbol))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.signal))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.trend))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.class.to_string()))),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.price))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.bars as u64))),
        Arc::new(times(rows.iter().map(first))),
        Arc::new(times(rows.iter().map(last))),
    ];
    replace(path, schema, std::iter::once(columns))
}

/// Writes `symbol, timestamp, close, average`, a line for each bar of each row that carries its history.
///
/// `symbols` and `times_ms` are those of the input.
pub fn write_history(
    path: &Path,
    rows: &[&Row],
    symbols: &[Symbol<'_>],
    times_ms: &[&[i64]],
) -> Result<(), ScanError> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("symbol", DataType::Utf8, false),
        Field::new("timestamp", utc(), false),
        Field::new("close", DataType::Float64, false),
        Field::new("average", DataType::Float64, true),
    ]));
    let columns = rows.iter().filter_map(|row| {
        let average = row.average.as_ref()?;
        let closes = window_of(symbols[row.index].closes, row.bars);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(average.iter().map(|_| &row.symbol))),
            Arc::new(times(window_of(times_ms[row.index], row.bars).iter().copied())),
            Arc::new(Float64Array::from(closes.to_vec())),
            Arc::new(Float64Array::from_iter(
                average.iter().map(|value| Some(*value).filter(|v| !v.is_nan())),
            )),
        ];
        Some(columns)
    });
    replace(path, schema, columns)
}

/// The last `bars` of a symbol's column.
fn window_of<T>(column: &[T], bars: usize) -> &[T] {
    &column[column.len().saturating_sub(bars)..]
}

fn utc() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

fn times(times_ms: impl Iterator<Item = i64>) -> TimestampMillisecondArray {
    TimestampMillisecondArray::from_iter_values(times_ms).with_timezone("UTC")
}

/// Writes beside the target and renames.
fn replace(
    path: &Path,
    schema: Arc<Schema>,
    batches: impl Iterator<Item = Vec<ArrayRef>>,
) -> Result<(), ScanError> {
    let fail =
        |error: &dyn std::fmt::Display| ScanError::Write { path: path.into(), reason: error.to_string() };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let write = || {
        let file = File::create(&part).map_err(|error| fail(&error))?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(|error| fail(&error))?;
        for columns in batches {
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| fail(&error))?;
            writer.write(&batch).map_err(|error| fail(&error))?;
        }
        writer.close().map_err(|error| fail(&error))?;
        fs::rename(&part, path).map_err(|error| fail(&error))
    };
    write().inspect_err(|_| {
        // The first error is the one to report; a leftover part file does no harm.
        let _ = fs::remove_file(&part);
    })
}
