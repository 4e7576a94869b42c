//! Validates Parquet's page headers before they are decoded.
//!
//! A page says how large it is when unpacked and how many values its dictionary has, and the decoder reserves that
//! much on its word. A file of one kilobyte could so claim gigabytes; here such pages are refused.

use std::sync::Arc;

use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaData;

use super::content::Content;
use super::delta;
use super::thrift::{Reader, kind};

/// Writers cut pages at about one megabyte; a column without cuts is still far below this.
const MAX_PAGE_BYTES: i64 = 128 << 20;
/// Statistics can make a header long, but not this long.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// Format numbers of the two encodings that begin with a list of lengths.
const DELTA_ENCODINGS: [i64; 2] = [6, 7];

/// Why the pages of the given top-level columns must not be decoded, if so.
pub(crate) fn check(file: &Arc<Content>, metadata: &ParquetMetaData, roots: &[usize]) -> Result<(), String> {
    let file_len = file.size().map_err(|error| error.to_string())?;
    let schema = metadata.file_metadata().schema_descr();
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        for (leaf, column) in row_group.columns().iter().enumerate() {
            if leaf >= schema.num_columns() || !roots.contains(&schema.get_column_root_idx(leaf)) {
                continue;
            }
            let (start, len) = column.byte_range();
            let Some(end) = start.checked_add(len).filter(|&end| end <= file_len) else {
                return Err("a column lies outside the file".to_string());
            };
            let is_text = matches!(column.column_type(), Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY);
            if check_chunk(file, start, end)? && is_text {
                delta::check(file, metadata, group, leaf)?;
            }
        }
    }
    Ok(())
}

/// Goes from header to header; whether any page has a delta encoding.
fn check_chunk(file: &Content, start: u64, end: u64) -> Result<bool, String> {
    let mut position = start;
    let mut any_delta = false;
    while position < end {
        let room = (end - position).min(MAX_HEADER_BYTES);
        let page = read_header(file, position, room).map_err(|error| error.to_string())?;
        let page = page.ok_or_else(|| "a page header is damaged".to_string())?;
        page.judge()?;
        any_delta |= DELTA_ENCODINGS.contains(&page.encoding);
        position += page.header_len + page.packed_len as u64;
    }
    Ok(any_delta)
}

/// Reads the header at a position, first from a short piece, then from all there may be.
fn read_header(file: &Content, position: u64, room: u64) -> std::io::Result<Option<Page>> {
    for len in [room.min(512), room] {
        let page = Page::parse(&file.piece(position, len)?).filter(|page| page.packed_len >= 0);
        if page.is_some() || len == room {
            return Ok(page);
        }
    }
    Ok(None)
}

/// What a page header claims.
#[derive(Debug, Default, PartialEq)]
struct Page {
    header_len: u64,
    unpacked_len: i64,
    packed_len: i64,
    n_dictionary_values: i64,
    encoding: i64,
}

impl Page {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes };
        let mut page = Page::default();
        let mut id = 0;
        while let Some((next, kind)) = reader.field(id)? {
            id = next;
            match (id, kind) {
                (2, kind) if kind::INTEGERS.contains(&kind) => page.unpacked_len = reader.zigzag()?,
                (3, kind) if kind::INTEGERS.contains(&kind) => page.packed_len = reader.zigzag()?,
                (5, kind::STRUCT) => page.encoding = integer_of(&mut reader, 2)?,
                (7, kind::STRUCT) => page.n_dictionary_values = integer_of(&mut reader, 1)?,
                (8, kind::STRUCT) => page.encoding = integer_of(&mut reader, 4)?,
                (_, kind) => reader.skip(kind, 0)?,
            }
        }
        page.header_len = (bytes.len() - reader.bytes.len()) as u64;
        Some(page)
    }

    fn judge(&self) -> Result<(), String> {
        if !(0..=MAX_PAGE_BYTES).contains(&self.unpacked_len) || self.packed_len > MAX_PAGE_BYTES {
            return Err(format!(
                "a page claims {} bytes, the limit is {MAX_PAGE_BYTES}",
                self.unpacked_len.max(self.packed_len)
            ));
        }
        if self.n_dictionary_values > self.unpacked_len {
            return Err(format!(
                "a dictionary claims {} values in {} bytes",
                self.n_dictionary_values, self.unpacked_len
            ));
        }
        Ok(())
    }
}

/// One integer field of a nested structure, 0 if it is absent.
fn integer_of(reader: &mut Reader<'_>, wanted: i64) -> Option<i64> {
    let (mut id, mut value) = (0, 0);
    while let Some((next, kind)) = reader.field(id)? {
        id = next;
        if id == wanted && kind::INTEGERS.contains(&kind) {
            value = reader.zigzag()?;
        } else {
            reader.skip(kind, 0)?;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_its_sizes() {
        // type 0, unpacked 320, packed 20, dictionary header with 40 values.
        let bytes =
            [0x15, 0x00, 0x15, 0x80, 0x05, 0x15, 0x28, 0x4c, 0x15, 0x50, 0x15, 0x00, 0x00, 0x00, 0xaa];
        let page = Page::parse(&bytes).unwrap();
        assert_eq!(
            page,
            Page { header_len: 14, unpacked_len: 320, packed_len: 20, n_dictionary_values: 40, encoding: 0 }
        );
        assert!(page.judge().is_ok());
        assert_eq!(Page::parse(&bytes[..10]), None);
    }

    #[test]
    fn claims_beyond_reason_are_refused() {
        let page =
            |unpacked_len, n_dictionary_values| Page { unpacked_len, n_dictionary_values, ..Page::default() };
        assert!(page(i64::from(i32::MAX), 0).judge().is_err());
        assert!(page(-1, 0).judge().is_err());
        assert!(page(320, 2_000_000_000).judge().is_err());
    }
}
