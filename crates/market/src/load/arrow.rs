//! Reading Arrow's own format: files, which are also Feather, and streams.
//!
//! A file is a stream of messages between marks, so both are read alike, message by message. What a message claims is
//! checked before the decoder sees it, since the decoder reserves memory on its word; the decoder itself may panic.

use std::path::Path;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::{Message, MessageHeader, root_as_message};
use jiff::tz::TimeZone;

use super::array::{is_text, text_cells};
use super::column::Wanted;
use super::frame::{Plan, Rows, check_rows};
use super::parquet::quietly;
use super::table::Table;
use crate::error::MarketError;
use crate::memory;

/// What a file starts with; a stream goes on behind it and some zeros, two or, as Rust's writer has them, 58.
const FILE_MARK: &[u8] = b"ARROW1";
/// What every message starts with.
const MESSAGE_MARK: [u8; 4] = [0xff; 4];
/// Schemas of bars take a few kilobytes.
const MAX_METADATA_BYTES: usize = 64 << 20;
/// Rows of text looked at to tell dates from clocks.
const SAMPLE_ROWS: usize = 32;

/// Reads all of a file or stream.
pub(crate) fn read(bytes: &[u8], path: &Path, zone: &TimeZone, wanted: Wanted) -> Result<Table, MarketError> {
    let fail = |message: String| MarketError::Arrow { path: path.to_path_buf(), message };
    let stream = bytes.strip_prefix(FILE_MARK).map_or(bytes, |rest| {
        let n_zeros = rest.iter().take_while(|byte| **byte == 0).count();
        &rest[n_zeros..]
    });
    let outcome = quietly(|| {
        check_rows(measure(stream).map_err(fail)?, path)?;
        decode(stream, path, zone, wanted)
    });
    outcome.unwrap_or_else(|| Err(fail("the decoder gave up on damaged content".to_string())))
}

fn decode(stream: &[u8], path: &Path, zone: &TimeZone, wanted: Wanted) -> Result<Table, MarketError> {
    let fail = |error: &dyn std::fmt::Display| MarketError::Arrow {
        path: path.to_path_buf(),
        message: error.to_string(),
    };
    let mut reader = StreamReader::try_new(stream, None).map_err(|error| fail(&error))?;
    let schema = reader.schema();
    let mut sample = vec![Vec::new(); schema.fields().len()];
    if let Some(first) = reader.next() {
        let first = first.map_err(|error| fail(&error))?;
        let first = first.slice(0, first.num_rows().min(SAMPLE_ROWS));
        for (column, cells) in sample.iter_mut().enumerate() {
            if is_text(schema.field(column).data_type()) {
                cells.extend(text_cells(first.column(column)));
            }
        }
    }
    let plan = Plan::new(&schema, &sample, path, wanted)?;
    let reader = StreamReader::try_new(stream, Some(plan.wanted.clone())).map_err(|error| fail(&error))?;
    let mut rows = Rows::new(&plan);
    for batch in reader {
        rows.push(&batch.map_err(|error| fail(&error))?).map_err(|message| fail(&message))?;
    }
    rows.finish(zone, path)
}

/// Goes from message to message and adds up the rows; an error if one claims more than there is, or than fits into memory.
fn measure(stream: &[u8]) -> Result<u64, String> {
    let mut rest = stream;
    let mut n_rows: u64 = 0;
    let room = memory::available().map_or(u64::MAX, |left| left as u64 / 2);
    while let Some(tail) = rest.strip_prefix(&MESSAGE_MARK) {
        let cut = || "it ends within a message".to_string();
        let (len, tail) = tail.split_first_chunk::<4>().ok_or_else(cut)?;
        let len = u32::from_le_bytes(*len) as usize;
        if len == 0 {
            break;
        }
        if len > MAX_METADATA_BYTES {
            return Err(format!("a message claims a header of {len} bytes"));
        }
        let (metadata, tail) = tail.split_at_checked(len).ok_or_else(cut)?;
        let message = root_as_message(metadata).map_err(|error| format!("a header is damaged: {error}"))?;
        let body_len = usize::try_from(message.bodyLength()).map_err(|_| cut())?;
        let (body, tail) = tail.split_at_checked(body_len).ok_or_else(cut)?;
        n_rows = n_rows.saturating_add(check_message(&message, body, room)?);
        rest = tail;
    }
    // Every row takes a number per column at least.
    if n_rows.saturating_mul(8) > room {
        return Err(format!("it claims {n_rows} rows, more than fit into memory"));
    }
    Ok(n_rows)
}

/// Checks what one message claims; the rows it adds.
fn check_message(message: &Message, body: &[u8], room: u64) -> Result<u64, String> {
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
    if unpacked > room {
        return Err(format!("a message claims to unpack to {unpacked} bytes, more than fit into memory"));
    }
    Ok(if adds_rows { n_rows } else { 0 })
}
