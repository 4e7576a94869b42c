//! Reading Arrow's own format: files, which are also Feather, and streams.
//!
//! A file is a stream of messages and a footer that says where they lie. What a message claims is checked before the decoder
//! sees it, since the decoder reserves memory on its word; the decoder itself may panic.

use std::io::Cursor;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::{Message, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use jiff::tz::TimeZone;

use super::array::{is_text, text_cells};
use super::column::Wanted;
use super::frame::{Plan, Rows, check_rows, stack};
use super::parquet::quietly;
use super::progress::FileProgress;
use super::table::Table;
use crate::error::MarketError;
use crate::memory;

/// What a file starts and ends with.
const FILE_MARK: &[u8] = b"ARROW1";
/// What every message starts with.
const MESSAGE_MARK: [u8; 4] = [0xff; 4];
/// Schemas of bars take a few kilobytes.
const MAX_METADATA_BYTES: usize = 64 << 20;
/// Rows of text looked at to tell dates from clocks.
const SAMPLE_ROWS: usize = 32;

/// Reads all of a file or stream.
pub(crate) fn read(
    bytes: &[u8],
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<Table, MarketError> {
    let fail = |message: String| MarketError::Arrow { path: path.to_path_buf(), message };
    let outcome = quietly(|| {
        let n_rows = if bytes.starts_with(FILE_MARK) { measure_file(bytes) } else { measure_stream(bytes) };
        let n_rows = n_rows.map_err(fail)?;
        check_rows(n_rows, path)?;
        // Every row takes a number per column at least.
        if n_rows.saturating_mul(8) > room() {
            return Err(fail(format!("it claims {n_rows} rows, more than fit into memory")));
        }
        decode(bytes, path, zone, wanted, n_rows, &|n_batch: usize, n_plans: usize| {
            progress.advance_rows(n_batch as u64, n_rows.saturating_mul(n_plans as u64));
        })
    });
    outcome.unwrap_or_else(|| Err(fail("the decoder gave up on damaged content".to_string())))
}

type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>;

/// The schema of all columns and the batches of some.
fn batches(bytes: &[u8], projection: Option<Vec<usize>>) -> Result<(SchemaRef, Batches<'_>), ArrowError> {
    Ok(if bytes.starts_with(FILE_MARK) {
        let reader = FileReader::try_new(Cursor::new(bytes), projection)?;
        (reader.schema(), Box::new(reader))
    } else {
        let reader = StreamReader::try_new(bytes, projection)?;
        (reader.schema(), Box::new(reader))
    })
}

/// `tell` is called with the rows of each batch and the number of times that all rows are read.
fn decode(
    bytes: &[u8],
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    n_rows: u64,
    tell: &dyn Fn(usize, usize),
) -> Result<Table, MarketError> {
    let fail = |error: &dyn std::fmt::Display| MarketError::Arrow {
        path: path.to_path_buf(),
        message: error.to_string(),
    };
    let (schema, mut reader) = batches(bytes, None).map_err(|error| fail(&error))?;
    let first = reader.next().transpose().map_err(|error| fail(&error))?;
    let sample = sample(&schema, first.as_ref());
    let mut tables = Vec::new();
    let plans = Plan::all(&schema, &sample, path, wanted)?;
    let n_plans = plans.len();
    for (ticker, plan) in plans {
        let (_, reader) = batches(bytes, Some(plan.wanted.clone())).map_err(|error| fail(&error))?;
        let mut rows = Rows::new(&plan, n_rows.min(bytes.len() as u64) as usize);
        for batch in reader {
            let batch = batch.map_err(|error| fail(&error))?;
            rows.push(&batch).map_err(|message| fail(&message))?;
            tell(batch.num_rows(), n_plans);
        }
        tables.push((ticker, rows.finish(zone, path)?));
    }
    Ok(stack(tables))
}

/// The first cells of the columns of text; of other columns none.
pub(crate) fn sample(schema: &SchemaRef, first: Option<&RecordBatch>) -> Vec<Vec<String>> {
    let mut sample = vec![Vec::new(); schema.fields().len()];
    if let Some(first) = first {
        let first = first.slice(0, first.num_rows().min(SAMPLE_ROWS));
        for (column, cells) in sample.iter_mut().enumerate() {
            if is_text(schema.field(column).data_type()) {
                cells.extend(text_cells(first.column(column)));
            }
        }
    }
    sample
}

/// Half of the memory that is left.
fn room() -> u64 {
    memory::available().map_or(u64::MAX, |left| left as u64 / 2)
}

/// Goes from message to message of a stream and adds up the rows; an error if one claims more than there is, or than fits
/// into memory.
fn measure_stream(stream: &[u8]) -> Result<u64, String> {
    let mut rest = stream;
    let mut n_rows: u64 = 0;
    while let Some(tail) = rest.strip_prefix(&MESSAGE_MARK) {
        let cut = || "it ends within a message".to_string();
        let (len, tail) = tail.split_first_chunk::<4>().ok_or_else(cut)?;
        let len = u32::from_le_bytes(*len) as usize;
        if len == 0 {
            break;
        }
        let (metadata, tail) = tail.split_at_checked(len).ok_or_else(cut)?;
        let message = parse_message(metadata)?;
        let body_len = usize::try_from(message.bodyLength()).map_err(|_| cut())?;
        let (body, tail) = tail.split_at_checked(body_len).ok_or_else(cut)?;
        n_rows = n_rows.saturating_add(check_message(&message, body)?);
        rest = tail;
    }
    Ok(n_rows)
}

/// The same for the messages that a file's footer lists.
fn measure_file(bytes: &[u8]) -> Result<u64, String> {
    let cut = || "it ends before its footer".to_string();
    let tail = bytes.strip_suffix(FILE_MARK).ok_or_else(cut)?;
    let (tail, len) = tail.split_last_chunk::<4>().ok_or_else(cut)?;
    let start = tail.len().checked_sub(u32::from_le_bytes(*len) as usize).ok_or_else(cut)?;
    let footer = root_as_footer(&tail[start..]).map_err(|error| format!("the footer is damaged: {error}"))?;
    let mut n_rows: u64 = 0;
    for block in footer.dictionaries().iter().flatten().chain(footer.recordBatches().iter().flatten()) {
        let outside = || "a message lies outside the file".to_string();
        let at = usize::try_from(block.offset()).map_err(|_| outside())?;
        let metadata_len = usize::try_from(block.metaDataLength()).map_err(|_| outside())?;
        let body_len = usize::try_from(block.bodyLength()).map_err(|_| outside())?;
        let rest = bytes.get(at..).ok_or_else(outside)?;
        let (metadata, rest) = rest.split_at_checked(metadata_len).ok_or_else(outside)?;
        let body = rest.get(..body_len).ok_or_else(outside)?;
        // Old files have the length of the header without a mark before it.
        let n_marks = if metadata.starts_with(&MESSAGE_MARK) { 8 } else { 4 };
        let message = parse_message(metadata.get(n_marks..).ok_or_else(outside)?)?;
        n_rows = n_rows.saturating_add(check_message(&message, body)?);
    }
    Ok(n_rows)
}

fn parse_message(metadata: &[u8]) -> Result<Message<'_>, String> {
    if metadata.len() > MAX_METADATA_BYTES {
        return Err(format!("a message claims a header of {} bytes", metadata.len()));
    }
    root_as_message(metadata).map_err(|error| format!("a header is damaged: {error}"))
}

/// Checks what one message claims; the rows it adds.
fn check_message(message: &Message, body: &[u8]) -> Result<u64, String> {
    let (batch, adds_rows) = match message.header_type() {
        MessageHeader::RecordBatch => (message.header_as_record_batch(), true),
        MessageHeader::DictionaryBatch => {
            (message.header_as_dictionary_batch().and_then(|batch| batch.data()), false)
        }
        _ => return Ok(0),
    };
    let batch = batch.ok_or_else(|| "a message without content".to_string())?;
    let n_rows = u64::try_from(batch.length()).map_err(|_| "a negative number of rows".to_string())?;
    let mut unpacked: u64 = 0;
    for buffer in batch.buffers().iter().flatten() {
        let claim = || "a buffer lies outside its message".to_string();
        let start = usize::try_from(buffer.offset()).map_err(|_| claim())?;
        let len = usize::try_from(buffer.length()).map_err(|_| claim())?;
        let bytes = start.checked_add(len).and_then(|end| body.get(start..end)).ok_or_else(claim)?;
        if batch.compression().is_some()
            && let Some(size) = bytes.first_chunk::<8>()
        {
            // -1 stands for a buffer that was left as it is.
            unpacked = unpacked.saturating_add(i64::from_le_bytes(*size).max(0) as u64);
        }
    }
    if unpacked > room() {
        return Err(format!("a message claims to unpack to {unpacked} bytes, more than fit into memory"));
    }
    Ok(if adds_rows { n_rows } else { 0 })
}
