use std::fs::File;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tidemill_market::atc::{AtcOptions, Undefined};
use tidemill_scan::{ScanOptions, write_history, write_rows};

use crate::rig::{all_signals, on_cpu, symbols, walk};

fn read(path: &std::path::Path) -> Vec<RecordBatch> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn rows_and_history_read_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<(String, Vec<f64>)> = (0..5).map(|seed| (format!("S{seed}"), walk(seed, 70))).collect();
    let atc = AtcOptions { cutout: 3, undefined: Undefined::Skip, ..AtcOptions::default() };
    let options = ScanOptions { atc, bars: Some(50), history: true, ..all_signals() };
    let scanned = on_cpu(&options, &all);
    let rows: Vec<_> = scanned.rows.iter().collect();
    let times: Vec<i64> = (0..70).map(|bar| 1_700_000_000_000 + bar * 60_000).collect();
    let times_ms: Vec<&[i64]> = all.iter().map(|_| times.as_slice()).collect();

    let path = dir.path().join("rows.parquet");
    write_rows(&path, &rows, &times_ms).unwrap();
    let table = &read(&path)[0];
    assert_eq!(table.num_rows(), 5);
    let first = table.column_by_name("first_time").unwrap().as_primitive::<TimestampMillisecondType>();
    assert_eq!(first.value(0), times[20]);
    let signals = table.column_by_name("signal").unwrap().as_primitive::<Float64Type>();
    for (row, signal) in rows.iter().zip(signals.values()) {
        assert_eq!(row.signal.to_bits(), signal.to_bits());
    }

    let path = dir.path().join("history.parquet");
    write_history(&path, &rows, &symbols(&all), &times_ms).unwrap();
    let table = &read(&path)[0];
    assert_eq!(table.num_rows(), 250);
    let average = table.column_by_name("average").unwrap().as_primitive::<Float64Type>();
    let close = table.column_by_name("close").unwrap().as_primitive::<Float64Type>();
    for (at, row) in rows.iter().enumerate() {
        for bar in 0..50 {
            let expected = row.average.as_ref().unwrap()[bar];
            assert_eq!(average.is_null(at * 50 + bar), expected.is_nan());
            assert!(expected.is_nan() || average.value(at * 50 + bar).to_bits() == expected.to_bits());
            assert_eq!(close.value(at * 50 + bar), all[at].1[20 + bar]);
        }
    }
    assert_eq!(average.null_count(), 15, "bars before the cutout are not available");

    let nowhere = dir.path().join("none/rows.parquet");
    let error = write_rows(&nowhere, &rows, &times_ms).unwrap_err().to_string();
    assert!(error.contains("rows.parquet: cannot be written"), "{error}");
}
