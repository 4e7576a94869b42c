//! Tables that are no bars, such as equity by the day, in the formats that bars are written in.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;

use super::{Format, compressed, quoted, replace};
use crate::bars::DAY_MS;
use crate::error::MarketError;
use crate::timestamp::format_ms;

/// A column of a table; all columns of one have as many rows.
#[derive(Clone, Debug)]
pub enum TableColumn {
    /// Days since 1970: `2024-01-31` in CSV, a timestamp without a time zone in Parquet, which pandas takes as an index of dates.
    Day(Vec<i64>),
    /// Names.
    Text(Vec<String>),
    /// Numbers; NaN is an empty cell.
    Number(Vec<f64>),
    /// Counts and places.
    Whole(Vec<i64>),
    /// Moments, UTC milliseconds.
    Time(Vec<i64>),
    /// Yes or no.
    Flag(Vec<bool>),
}

impl TableColumn {
    fn len(&self) -> usize {
        match self {
            Self::Day(days) => days.len(),
            Self::Text(texts) => texts.len(),
            Self::Number(numbers) => numbers.len(),
            Self::Whole(numbers) | Self::Time(numbers) => numbers.len(),
            Self::Flag(flags) => flags.len(),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Day(_) => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Text(_) => DataType::Utf8,
            Self::Number(_) => DataType::Float64,
            Self::Whole(_) => DataType::Int64,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Self::Flag(_) => DataType::Boolean,
        }
    }

    fn array(&self) -> ArrayRef {
        match self {
            Self::Day(days) => {
                Arc::new(TimestampMillisecondArray::from_iter_values(days.iter().map(|day| day * DAY_MS)))
            }
            Self::Text(texts) => Arc::new(StringArray::from_iter_values(texts)),
            Self::Number(numbers) => {
                let value = |value: &f64| Some(*value).filter(|value| !value.is_nan());
                Arc::new(Float64Array::from_iter(numbers.iter().map(value)))
            }
            Self::Whole(numbers) => Arc::new(Int64Array::from(numbers.clone())),
            Self::Time(times) => {
                Arc::new(TimestampMillisecondArray::from(times.clone()).with_timezone("UTC"))
            }
            Self::Flag(flags) => Arc::new(BooleanArray::from(flags.clone())),
        }
    }

    fn cell(&self, row: usize) -> String {
        match self {
            Self::Day(days) => format_ms(days[row] * DAY_MS).chars().take(10).collect(),
            Self::Text(texts) => quoted(&texts[row]),
            Self::Number(numbers) if numbers[row].is_nan() => String::new(),
            Self::Number(numbers) => format!("{:?}", numbers[row]),
            Self::Whole(numbers) => numbers[row].to_string(),
            Self::Time(times) => format_ms(times[row]),
            Self::Flag(flags) => flags[row].to_string(),
        }
    }
}

/// Writes a table as Parquet or CSV, as the path's ending says; the file appears under its name only once it is complete.
pub fn write_table(path: &Path, columns: &[(&str, TableColumn)]) -> Result<(), MarketError> {
    match Format::of(path)? {
        Format::Parquet => write_parquet(path, columns),
        Format::Csv => write_csv(path, columns),
    }
}

/// A table as one batch of Arrow.
pub fn table_batch(columns: &[(&str, TableColumn)]) -> Result<RecordBatch, ArrowError> {
    let field = |(name, column): &(&str, TableColumn)| Field::new(*name, column.data_type(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.iter().map(|(_, column)| column.array()).collect())
}

fn write_parquet(path: &Path, columns: &[(&str, TableColumn)]) -> Result<(), MarketError> {
    let fail =
        |error: &dyn std::fmt::Display| MarketError::write(path, &std::io::Error::other(error.to_string()));
    let batch = table_batch(columns).map_err(|error| fail(&error))?;
    replace(path, |file| {
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(compressed())).map_err(|error| fail(&error))?;
        writer.write(&batch).map_err(|error| fail(&error))?;
        writer.close().map_err(|error| fail(&error))?;
        Ok(())
    })
}

fn write_csv(path: &Path, columns: &[(&str, TableColumn)]) -> Result<(), MarketError> {
    let n_rows = columns.iter().map(|(_, column)| column.len()).min().unwrap_or(0);
    replace(path, |file| {
        let mut out = BufWriter::new(file);
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut write = || -> std::io::Result<()> {
            writeln!(out, "{}", names.join(","))?;
            for row in 0..n_rows {
                let cells: Vec<String> = columns.iter().map(|(_, column)| column.cell(row)).collect();
                writeln!(out, "{}", cells.join(","))?;
            }
            out.flush()
        };
        write().map_err(|source| MarketError::write(path, &source))
    })
}

#[cfg(test)]
mod tests {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn columns() -> Vec<(&'static str, TableColumn)> {
        vec![
            ("date", TableColumn::Day(vec![19_000, 19_001])),
            ("part", TableColumn::Text(vec!["a".into(), "b,c".into()])),
            ("value", TableColumn::Number(vec![0.1, f64::NAN])),
        ]
    }

    #[test]
    fn csv_has_dates_and_numbers_that_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        write_table(&path, &columns()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "date,part,value\n2022-01-08,a,0.1\n2022-01-09,\"b,c\",\n");
        assert!(write_table(&dir.path().join("t.xlsx"), &columns()).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing unfinished stays");
    }

    #[test]
    fn parquet_has_timestamps_without_a_time_zone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        write_table(&path, &columns()).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let batch =
            ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
        let expected: Vec<ArrayRef> = columns().iter().map(|(_, column)| column.array()).collect();
        assert_eq!(batch.columns(), expected);
        assert_eq!(*batch.schema().field(0).data_type(), DataType::Timestamp(TimeUnit::Millisecond, None));
    }
}
