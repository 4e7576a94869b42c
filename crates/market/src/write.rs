//! Writing a universe so that any tool, and [`load`](crate::load()) itself, reads it back bit for bit.
//!
//! Columns: `symbol, timestamp, open, high, low, close, volume`, then further columns; rows ordered by symbol and time. Of
//! closes alone, open, high and low are not written.
//! The file appears under its name only once it is complete.

mod table;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::bars::{Bars, Universe};
use crate::error::MarketError;
use crate::timestamp::format_ms;

pub use table::{TableColumn, write_table};

/// Rows handed to the Parquet encoder at a time.
const BATCH_ROWS: usize = 65_536;

/// What can be written.
#[derive(Clone, Copy)]
enum Format {
    Parquet,
    Csv,
}

impl Format {
    /// The format that the path's ending names.
    fn of(path: &Path) -> Result<Self, MarketError> {
        match path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("parquet") => Ok(Format::Parquet),
            Some("csv") => Ok(Format::Csv),
            _ => Err(MarketError::OutputFormat { path: path.to_path_buf() }),
        }
    }
}

/// Writes Parquet or CSV, as the path's ending says.
pub fn write(universe: &Universe, path: &Path) -> Result<(), MarketError> {
    match Format::of(path)? {
        Format::Parquet => write_parquet(universe, path),
        Format::Csv => write_csv(universe, path),
    }
}

/// Whether [`write()`] could write there: the ending names a format and the folder exists. Asked before work that takes
/// its time, so that the work is not done in vain.
pub fn check_output(path: &Path) -> Result<(), MarketError> {
    Format::of(path)?;
    if path.is_dir() {
        return Err(MarketError::write(path, &ErrorKind::IsADirectory.into()));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => Err(MarketError::write(path, &ErrorKind::NotFound.into())),
        _ => Ok(()),
    }
}

/// Writes Parquet: timestamps in UTC milliseconds, doubles, Zstandard compression.
pub fn write_parquet(universe: &Universe, path: &Path) -> Result<(), MarketError> {
    let names = extra_names(universe);
    let utc = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let mut fields = vec![Field::new("symbol", DataType::Utf8, false), Field::new("timestamp", utc, false)];
    for &name in price_names(universe, path)? {
        fields.push(Field::new(name, DataType::Float64, false));
    }
    fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, true)));
    let schema = Arc::new(Schema::new(fields));
    let fail =
        |error: &dyn std::fmt::Display| MarketError::write(path, &std::io::Error::other(error.to_string()));
    replace(path, |file| {
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(compressed())).map_err(|error| fail(&error))?;
        for bars in &universe.symbols {
            for start in (0..bars.len()).step_by(BATCH_ROWS) {
                let end = bars.len().min(start + BATCH_ROWS);
                let columns = arrow_columns(bars, &names, start, end);
                let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|error| fail(&error))?;
                writer.write(&batch).map_err(|error| fail(&error))?;
            }
        }
        writer.close().map_err(|error| fail(&error))?;
        Ok(())
    })
}

fn compressed() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build()
}

/// Writes CSV with a header; numbers in the shortest form that reads back as the same double, NaN as an empty cell.
pub fn write_csv(universe: &Universe, path: &Path) -> Result<(), MarketError> {
    let (prices, names) = (price_names(universe, path)?, extra_names(universe));
    replace(path, |file| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        write_text(&mut out, universe, prices, &names)
            .and_then(|()| out.flush())
            .map_err(|source| MarketError::write(path, &source))
    })
}

/// Names of the columns of prices and volume; an error if some symbols have closes alone and others have all.
fn price_names(universe: &Universe, path: &Path) -> Result<&'static [&'static str], MarketError> {
    let names = &["open", "high", "low", "close", "volume"];
    match universe.symbols.iter().find(|bars| bars.closes_only) {
        None => Ok(names),
        Some(_) if universe.symbols.iter().all(|bars| bars.closes_only) => Ok(&names[3..]),
        Some(bars) => Err(MarketError::WriteMixed { path: path.to_path_buf(), symbol: bars.symbol.clone() }),
    }
}

/// The columns of prices and volume that are written, in the order of their names.
fn price_columns(bars: &Bars) -> Vec<&[f64]> {
    let columns: [&[f64]; 5] = [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume];
    columns[if bars.closes_only { 3 } else { 0 }..].to_vec()
}

/// Names of further columns over all symbols, in order of appearance.
fn extra_names(universe: &Universe) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in universe.symbols.iter().flat_map(|bars| &bars.extra) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn extra_column<'a>(bars: &'a Bars, name: &str) -> Option<&'a [f64]> {
    bars.extra.iter().find(|(known, _)| known == name).map(|(_, column)| column.as_slice())
}

fn arrow_columns(bars: &Bars, names: &[String], start: usize, end: usize) -> Vec<ArrayRef> {
    let symbol = StringArray::from_iter_values((start..end).map(|_| bars.symbol.as_str()));
    let times = TimestampMillisecondArray::from(bars.ts_ms[start..end].to_vec()).with_timezone("UTC");
    let mut columns: Vec<ArrayRef> = vec![Arc::new(symbol), Arc::new(times)];
    for column in price_columns(bars) {
        columns.push(Arc::new(Float64Array::from(column[start..end].to_vec())));
    }
    for name in names {
        let column = extra_column(bars, name);
        let value = |row: usize| column.map(|column| column[row]).filter(|value| !value.is_nan());
        columns.push(Arc::new(Float64Array::from_iter((start..end).map(value))));
    }
    columns
}

fn write_text(
    out: &mut impl Write,
    universe: &Universe,
    price_names: &[&str],
    names: &[String],
) -> std::io::Result<()> {
    write!(out, "symbol,timestamp")?;
    for name in price_names.iter().copied().chain(names.iter().map(String::as_str)) {
        write!(out, ",{name}")?;
    }
    writeln!(out)?;
    for bars in &universe.symbols {
        let symbol = quoted(&bars.symbol);
        let prices = price_columns(bars);
        let extra: Vec<Option<&[f64]>> = names.iter().map(|name| extra_column(bars, name)).collect();
        for row in 0..bars.len() {
            write!(out, "{symbol},{}", format_ms(bars.ts_ms[row]))?;
            for column in &prices {
                write!(out, ",{:?}", column[row])?;
            }
            for column in &extra {
                match column.map(|column| column[row]).filter(|value| !value.is_nan()) {
                    Some(value) => write!(out, ",{value:?}")?,
                    None => write!(out, ",")?,
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn quoted(symbol: &str) -> String {
    if symbol.contains([',', ';', '\t', '|']) { format!("\"{symbol}\"") } else { symbol.to_string() }
}

/// Writes beside the target and renames, so that a crash leaves no half file under the good name.
fn replace(path: &Path, fill: impl FnOnce(File) -> Result<(), MarketError>) -> Result<(), MarketError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let file = File::create(&part).map_err(|source| MarketError::write(path, &source))?;
    let outcome =
        fill(file).and_then(|()| fs::rename(&part, path).map_err(|source| MarketError::write(path, &source)));
    if outcome.is_err() {
        // The first error is the one to report; a leftover part file does no harm.
        let _ = fs::remove_file(&part);
    }
    outcome
}
