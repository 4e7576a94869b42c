//! Reading Parquet through Arrow.
//!
//! The decoder is not proof against hostile bytes: it may panic. Reading therefore runs inside `catch_unwind`, and
//! footer and page headers are checked for what unwinding cannot catch: a stack overflow, memory without end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Arc, Once};

use jiff::tz::TimeZone;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::array::{is_text, text_cells};
use super::column::Wanted;
use super::content::Content;
use super::frame::{Plan, Rows, check_rows, stack};
use super::progress::FileProgress;
use super::table::Table;
use super::{footer, page};
use crate::error::MarketError;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 32_768;
/// Real footers of bars take kilobytes.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// Reads a whole file.
pub(crate) fn read(
    file: &Content,
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<Table, MarketError> {
    let fail = |message: String| MarketError::Parquet { path: path.to_path_buf(), message };
    check_footer(file).map_err(|source| MarketError::io(path, source))?.map_err(fail)?;
    let outcome = quietly(|| decode(file, path, zone, wanted, progress));
    outcome.unwrap_or_else(|| Err(fail("the decoder gave up on damaged content".to_string())))
}

/// Runs `work`; `None` if it panicked. The panic's message goes nowhere: the caller reports the file instead.
pub(crate) fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.ok()
}

/// Looks at magic, length and schema depth of the footer.
fn check_footer(file: &Content) -> std::io::Result<Result<(), String>> {
    let len = file.size()?;
    if len < 12 {
        return Ok(Err(format!("{len} bytes are too few")));
    }
    let &[a, b, c, d, ref magic @ ..] = &*file.piece(len - 8, 8)? else {
        return Ok(Err("the file became shorter while it was read".to_string()));
    };
    if magic != footer::MAGIC {
        return Ok(Err("the end mark is missing".to_string()));
    }
    let footer_len = u64::from(u32::from_le_bytes([a, b, c, d]));
    if footer_len > (len - 8).min(MAX_FOOTER_BYTES) {
        return Ok(Err(format!("the footer claims {footer_len} bytes")));
    }
    Ok(footer::check(&file.piece(len - 8 - footer_len, footer_len)?))
}

fn decode(
    file: &Content,
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<Table, MarketError> {
    let fail = |error: &dyn std::fmt::Display| MarketError::Parquet {
        path: path.to_path_buf(),
        message: error.to_string(),
    };
    let pages = Arc::new(file.clone());
    let sample = sample_text(file.clone(), &pages).map_err(|message| fail(&message))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(|error| fail(&error))?;
    let n_rows = builder.metadata().file_metadata().num_rows();
    if n_rows == 0 {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    }
    let n_rows = u64::try_from(n_rows).unwrap_or(u64::MAX);
    check_rows(n_rows, path)?;
    // A few bytes can claim any number.
    let room = n_rows.min(file.size().unwrap_or(0)) as usize;
    let schema = builder.schema().clone();
    let mut tables = Vec::new();
    let plans = Plan::all(&schema, &sample, path, wanted)?;
    let all_rows = n_rows.saturating_mul(plans.len() as u64);
    for (ticker, plan) in plans {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(|error| fail(&error))?;
        page::check(&pages, builder.metadata(), &plan.wanted).map_err(|message| fail(&message))?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), plan.wanted.iter().copied());
        let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
        let mut rows = Rows::new(&plan, room);
        for batch in builder.build().map_err(|error| fail(&error))? {
            let batch = batch.map_err(|error| fail(&error))?;
            rows.push(&batch).map_err(|message| fail(&message))?;
            progress.advance_rows(batch.num_rows() as u64, all_rows);
            check_rows(rows.n_rows() as u64, path)?;
        }
        tables.push((ticker, rows.finish(zone, path)?));
    }
    Ok(stack(tables))
}

/// The first cells of every text column: their content, not their type, tells dates from clocks.
fn sample_text(file: Content, pages: &Arc<Content>) -> Result<Vec<Vec<String>>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    let schema = builder.schema().clone();
    let n_columns = schema.fields().len();
    let text: Vec<usize> =
        (0..n_columns).filter(|&column| is_text(schema.field(column).data_type())).collect();
    let mut sample = vec![Vec::new(); n_columns];
    if text.is_empty() {
        return Ok(sample);
    }
    page::check(pages, builder.metadata(), &text)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), text.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(32).with_limit(32).build();
    for batch in reader.map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        for (position, &column) in text.iter().enumerate() {
            sample[column].extend(text_cells(batch.column(position)));
        }
    }
    Ok(sample)
}
