//! Validates delta-encoded text before it is decoded.
//!
//! Two of Parquet's text encodings start with a list of lengths, and that list says itself how long it is. The decoder
//! reserves as much on its word, so a damaged byte could ask for terabytes, which ends the program. Pages with these encodings
//! are rare; they are unpacked here once more and their lists measured.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::content::Content;
use super::thrift::Reader;

/// The format's own writers use 128.
const MAX_BLOCK_VALUES: u64 = 1 << 16;

/// Measures every delta-encoded page of one column chunk.
pub(crate) fn check(
    file: &Arc<Content>,
    metadata: &ParquetMetaData,
    group: usize,
    leaf: usize,
) -> Result<(), String> {
    let row_group = metadata.row_group(group);
    let n_rows = u64::try_from(row_group.num_rows()).unwrap_or(0);
    let n_rows_usize = usize::try_from(n_rows).unwrap_or(usize::MAX);
    let column = row_group.column(leaf);
    let is_optional = column.column_descr().max_def_level() > 0;
    let mut pages = SerializedPageReader::new(file.clone(), column, n_rows_usize, None)
        .map_err(|error| error.to_string())?;
    while let Some(page) = pages.get_next_page().map_err(|error| error.to_string())? {
        let (encoding, buffer, levels_len) = match &page {
            Page::DataPage { buf, encoding, .. } => {
                let head = buf.get(..4).map(|head| u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
                let levels_len =
                    if is_optional { head.map_or(u64::MAX, |len| u64::from(len) + 4) } else { 0 };
                (*encoding, buf, levels_len)
            }
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                (*encoding, buf, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))
            }
            Page::DictionaryPage { .. } => continue,
        };
        let n_lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => continue,
        };
        let n_values = u64::from(page.num_values()).min(n_rows);
        let values = usize::try_from(levels_len).ok().and_then(|len| buffer.get(len..));
        measure(values.unwrap_or(&[]), n_lists, n_values)?;
    }
    Ok(())
}

/// Walks the lists of lengths at the start of `data`; each may have up to `n_values` entries.
fn measure(data: &[u8], n_lists: usize, n_values: u64) -> Result<(), String> {
    let mut reader = Reader { bytes: data };
    for _ in 0..n_lists {
        match list_len(&mut reader, n_values) {
            Some(len) if len <= n_values => {}
            Some(len) => return Err(format!("a page of {n_values} values claims {len} lengths")),
            None => return Err("a list of lengths is damaged".to_string()),
        }
    }
    Ok(())
}

/// Skips one delta-packed list of integers and returns its length; stops at once if that is above `limit`.
fn list_len(reader: &mut Reader<'_>, limit: u64) -> Option<u64> {
    let block_values = reader.varint()?;
    let n_mini_blocks = reader.varint()?;
    let len = reader.varint()?;
    reader.zigzag()?;
    if n_mini_blocks == 0 || block_values > MAX_BLOCK_VALUES || !block_values.is_multiple_of(n_mini_blocks) {
        return None;
    }
    if len > limit {
        return Some(len);
    }
    let mini_values = block_values / n_mini_blocks;
    let mut left = len.saturating_sub(1);
    while left > 0 {
        reader.zigzag()?;
        let widths = reader.bytes;
        reader.skip_bytes(n_mini_blocks)?;
        for &width in &widths[..n_mini_blocks as usize] {
            if left == 0 {
                break;
            }
            // The last one may be cut short after the values that exist.
            let n_bytes = u64::from(width) * mini_values / 8;
            reader.skip_bytes(n_bytes.min(reader.bytes.len() as u64))?;
            left -= left.min(mini_values);
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Block of 128 in 4 mini blocks, `len` values of which the first is 3, then one block of zero width.
    fn list(len: u8) -> Vec<u8> {
        vec![0x80, 0x01, 0x04, len, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00]
    }

    #[test]
    fn honest_lists_pass() {
        assert_eq!(measure(&list(60), 1, 60), Ok(()));
        let mut two = list(60);
        two.extend(list(60));
        assert_eq!(measure(&two, 2, 60), Ok(()));
        assert_eq!(measure(&[0x80, 0x01, 0x04, 0x00, 0x00], 1, 60), Ok(()));
    }

    #[test]
    fn lists_longer_than_the_page_are_refused() {
        assert!(measure(&list(61), 1, 60).is_err());
        let claim = [0x80, 0x01, 0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x06];
        assert!(measure(&claim, 1, 60).unwrap_err().contains("lengths"));
        let mut second = list(60);
        second.extend(claim);
        assert!(measure(&second, 2, 60).is_err());
        assert!(measure(&[], 1, 60).is_err());
        assert!(measure(&[0x80, 0x01, 0x00, 0x05, 0x06], 1, 60).is_err());
    }
}
