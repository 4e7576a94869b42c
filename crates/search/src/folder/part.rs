//! One Parquet part: its name, and the way from columns of encoded values to a file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::folder::column::number_array;
use crate::folder::durable::{self, DurableFile};
use crate::folder::layout::Layout;
use crate::folder::{FolderError, ROWS_PER_PART};

/// Up to so many values are encoded before another thread is there.
const MIN_SHARED_VALUES: usize = 1 << 18;

/// More threads would wait for the disk together.
const MAX_THREADS: usize = 8;

/// Path of a part by its number.
pub(super) fn path(trials_dir: &Path, part_idx: usize) -> PathBuf {
    trials_dir.join(format!("part-{part_idx:06}.parquet"))
}

/// The parts of a folder in order. They are numbered from 0 without a gap; a gap means that a file was removed.
///
/// There are none where the folder itself is absent: copies of a study that has no trial yet may leave out what is empty.
pub(super) fn list(trials_dir: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut numbers = BTreeSet::new();
    let entries = match fs::read_dir(trials_dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(FolderError::io("list", trials_dir))?,
    };
    for entry in entries {
        let name = entry.map_err(FolderError::io("list", trials_dir))?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("part-")?.strip_suffix(".parquet"))
            .and_then(|digits| digits.parse::<usize>().ok());
        numbers.extend(number);
    }
    for (expected, found) in numbers.iter().enumerate() {
        if expected != *found {
            let problem = "this part is missing, and later ones are there";
            return Err(FolderError::part(&path(trials_dir, expected), problem));
        }
    }
    Ok((0..numbers.len()).map(|part_idx| path(trials_dir, part_idx)).collect())
}

/// Removes what a killed writer left.
pub(super) fn remove_leftovers(trials_dir: &Path) -> Result<(), FolderError> {
    for entry in fs::read_dir(trials_dir).map_err(FolderError::io("list", trials_dir))? {
        let path = entry.map_err(FolderError::io("list", trials_dir))?.path();
        if durable::is_temporary(&path) {
            fs::remove_file(&path).map_err(FolderError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Number of trials in a part.
pub(super) fn n_rows(path: &Path) -> Result<u64, FolderError> {
    let file = File::open(path).map_err(FolderError::io("open", path))?;
    let reader = SerializedFileReader::new(file).map_err(FolderError::parquet("read", path))?;
    Ok(u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0))
}

/// Checks that a part has the columns of a layout.
pub(super) fn check_columns(path: &Path, layout: &Layout) -> Result<(), FolderError> {
    let file = File::open(path).map_err(FolderError::io("open", path))?;
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).map_err(FolderError::parquet("read", path))?;
    let describe = |schema: &Schema| -> Vec<String> {
        schema.fields().iter().map(|field| format!("{} ({})", field.name(), field.data_type())).collect()
    };
    let (found, expected) = (describe(reader.schema()), describe(&layout.schema()));
    if found == expected {
        return Ok(());
    }
    let same = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
    let shown = |columns: &[String]| columns.get(same).map_or("nothing", String::as_str).to_owned();
    let problem = format!("column {}: expected {}, found {}", same + 1, shown(&expected), shown(&found));
    Err(FolderError::part(path, problem))
}

/// Writes trials as a part: it appears whole or not at all. `columns` are the encoded values in the order of the layout.
pub(super) fn write(
    path: &Path,
    layout: &Layout,
    first_trial: u64,
    columns: &[&[f64]],
) -> Result<(), FolderError> {
    let mut file = DurableFile::create(path)?;
    let n_values = columns.iter().map(|column| column.len()).sum();
    write_rows(&mut file, layout, first_trial, columns, encoding_threads(n_values).as_ref())
        .map_err(FolderError::parquet("write", path))?;
    file.commit()
}

fn write_rows(
    out: impl Write + Send,
    layout: &Layout,
    first_trial: u64,
    columns: &[&[f64]],
    threads: Option<&ThreadPool>,
) -> Result<(), ParquetError> {
    let n_rows = columns.first().map_or(0, |column| column.len());
    let schema = Arc::new(layout.schema());
    let (mut file, encoders) = arrow_writer(out, schema.clone())?.into_serialized_writer()?;
    for (group_idx, from) in (0..n_rows).step_by(ROWS_PER_PART).enumerate() {
        let rows = from..n_rows.min(from + ROWS_PER_PART);
        let array = |column_idx: usize| -> ArrayRef {
            let Some(column_idx) = column_idx.checked_sub(1) else {
                let trials = first_trial + rows.start as u64..first_trial + rows.end as u64;
                return Arc::new(UInt64Array::from_iter_values(trials));
            };
            let values = &columns[column_idx][rows.clone()];
            layout.params.get(column_idx).map_or_else(|| number_array(values), |(_, kind)| kind.array(values))
        };
        let encode = |(column_idx, mut encoder): (usize, ArrowColumnWriter)| {
            for leaf in compute_leaves(schema.field(column_idx), &array(column_idx))? {
                encoder.write(&leaf)?;
            }
            encoder.close()
        };
        let encoders = encoders.create_column_writers(group_idx)?;
        let chunks: Result<Vec<ArrowColumnChunk>, ParquetError> = match threads {
            Some(threads) => {
                threads.install(|| encoders.into_par_iter().enumerate().with_max_len(1).map(encode).collect())
            }
            None => encoders.into_iter().enumerate().map(encode).collect(),
        };
        let mut group = file.next_row_group()?;
        for chunk in chunks? {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Threads that encode the columns of so many values; none if they are few, or none can be had.
///
/// They are not those of the pool that all share: a sampler whose next batch a device waits for would come behind whole columns there.
fn encoding_threads(n_values: usize) -> Option<ThreadPool> {
    let n_threads = thread::available_parallelism().map_or(1, |n| n.get() / 2).min(MAX_THREADS);
    if n_values < MIN_SHARED_VALUES || n_threads < 2 {
        return None;
    }
    ThreadPoolBuilder::new().num_threads(n_threads).build().ok()
}

/// A writer of trials as Parquet.
pub(super) fn arrow_writer<W: Write + Send>(
    out: W,
    schema: Arc<Schema>,
) -> Result<ArrowWriter<W>, ParquetError> {
    // Real numbers rarely repeat, so that a dictionary of them would only cost time.
    let reals = schema.fields().iter().filter(|field| *field.data_type() == DataType::Float64);
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROWS_PER_PART));
    let properties = reals.fold(builder, |builder, field| {
        builder.set_column_dictionary_enabled(ColumnPath::new(vec![field.name().clone()]), false)
    });
    ArrowWriter::try_new(out, schema, Some(properties.build()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Choice, Domain};
    use crate::space::{Param, Space};

    #[test]
    fn a_part_has_the_same_bytes_whatever_the_threads() {
        let float = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let options = vec![Choice::Number(1.0), Choice::Number(5.0)];
        let domains = [float, Domain::Bool, Domain::Choice { options }];
        let params = domains.into_iter().zip(["a", "b", "c"]);
        let space = Space { params: params.map(|(domain, name)| Param::new(name, domain, 0.0)).collect() };
        let layout = Layout::new(&space, &["trades"], 1).unwrap();
        // More rows than a group has; every seventh value is missing.
        let value = |column: usize, row: usize| match (row % 7, column) {
            (0, _) => f64::NAN,
            (_, 1 | 2) => (row % 2) as f64,
            _ => row as f64 / 1e5,
        };
        let n_rows = ROWS_PER_PART + 1000;
        let columns: Vec<Vec<f64>> = (0..layout.n_columns())
            .map(|column| (0..n_rows).map(|row| value(column, row)).collect())
            .collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let written = |threads: Option<&ThreadPool>| {
            let mut bytes = Vec::new();
            write_rows(&mut bytes, &layout, 7, &columns, threads).unwrap();
            bytes
        };
        let threads = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let bytes = written(Some(&threads));
        assert!(bytes == written(None) && bytes.len() > n_rows);
    }
}
