//! The trials as a table in memory, which takes another way than an export and must say the same.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tidemill_search::folder::trial_table;
use tidemill_search::{ExportFormat, StudyFolder, export};

use crate::trials::{append, append_rows, header, trials};

fn rows_of(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut batches: Vec<_> = reader.with_batch_size(100_000).build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches.remove(0)
}

/// Compares the table of a folder with its export; the result is the number of batches.
fn assert_is_the_export(dir: &Path) -> usize {
    let path = dir.join("export.parquet");
    export(dir, ExportFormat::Parquet, File::create(&path).unwrap()).unwrap();
    let exported = rows_of(&path);
    let (schema, batches) = trial_table(dir).unwrap();
    assert_eq!(schema.fields(), exported.schema().fields());
    let mut n_read = 0;
    for batch in &batches {
        assert_eq!(batch.schema(), schema);
        assert_eq!(batch.columns(), exported.slice(n_read, batch.num_rows()).columns());
        n_read += batch.num_rows();
    }
    assert_eq!(n_read, exported.num_rows());
    batches.len()
}

#[test]
fn the_table_is_the_export_from_parts_from_the_log_and_from_both() {
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    let (schema, batches) = trial_table(dir.path()).unwrap();
    assert_eq!((schema.fields().len(), batches.len()), (1, 0));
    let expected = trials(250);
    append_rows(dir.path(), &expected, 0..70, 100);
    assert_eq!(assert_is_the_export(dir.path()), 1);
    append_rows(dir.path(), &expected, 70..230, 100);
    assert_eq!(assert_is_the_export(dir.path()), 3);
    let folder = StudyFolder::open(dir.path()).unwrap();
    append(&folder, &trials(100), 100, 100);
    assert_is_the_export(dir.path());
}

#[test]
fn a_part_that_another_program_wrote_again_is_read_by_the_roles_of_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    append(&StudyFolder::create(dir.path(), &header()).unwrap(), &trials(60), 60, 30);
    let part = dir.path().join("trials/part-000001.parquet");
    let stored = rows_of(&part);
    let note: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..30));
    let mut columns: Vec<_> =
        stored.schema().fields().iter().cloned().zip(stored.columns().to_vec()).collect();
    columns.rotate_left(9);
    columns.insert(2, (Arc::new(arrow_schema::Field::new("note", note.data_type().clone(), true)), note));
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let again = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), arrays).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&part).unwrap(), again.schema(), None).unwrap();
    writer.write(&again).unwrap();
    writer.close().unwrap();
    assert_eq!(assert_is_the_export(dir.path()), 2);
}

#[test]
fn parts_that_do_not_follow_or_lack_columns_are_named() {
    let dir = tempfile::tempdir().unwrap();
    append(&StudyFolder::create(dir.path(), &header()).unwrap(), &trials(90), 90, 30);
    let part = |idx: usize| dir.path().join(format!("trials/part-{idx:06}.parquet"));
    let error = || trial_table(dir.path()).unwrap_err().to_string();
    let (second, third) = (rows_of(&part(1)), fs::read(part(2)).unwrap());
    fs::copy(part(1), part(2)).unwrap();
    assert!(error().ends_with("part-000002.parquet: expected trial 60 to follow"), "{}", error());
    fs::write(part(2), third).unwrap();
    for (left_out, problem) in [
        ("trial", "part-000001.parquet: the column `trial` is missing"),
        ("objective", "part-000001.parquet: the column `objective` is missing"),
        ("trades", "part-000001.parquet: its columns differ from those of the trials before"),
    ] {
        let mut lacking = second.clone();
        lacking.remove_column(second.schema().index_of(left_out).unwrap());
        let mut writer =
            ArrowWriter::try_new(File::create(part(1)).unwrap(), lacking.schema(), None).unwrap();
        writer.write(&lacking).unwrap();
        writer.close().unwrap();
        assert!(error().ends_with(problem), "{}", error());
    }
    fs::write(part(1), b"not parquet").unwrap();
    assert!(error().ends_with("part-000001.parquet"), "{}", error());
}
