//! NumPy's format for one array: a header and the numbers.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

/// Writes an array of doubles in the order of its last index.
pub fn write(path: &Path, shape: &[usize], values: impl Iterator<Item = f64>) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&header(shape))?;
    for value in values {
        out.write_all(&value.to_le_bytes())?;
    }
    out.flush()
}

/// The magic, version 1.0, the length of the text and the text, which is padded so that the numbers begin at a multiple of 64.
fn header(shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|len| format!("{len},")).collect();
    let mut text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    let unpadded = 10 + text.len() + 1;
    text.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_ends_where_numbers_are_aligned() {
        for shape in [&[3][..], &[10_000, 1_500]] {
            let header = header(shape);
            assert_eq!((header.len() % 64, header.last()), (0, Some(&b'\n')));
            assert_eq!(usize::from(header[8]) + 256 * usize::from(header[9]), header.len() - 10);
        }
        assert!(String::from_utf8_lossy(&header(&[3])).contains("'shape': (3,), }"));
    }
}
