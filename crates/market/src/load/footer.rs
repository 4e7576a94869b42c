//! Validates a Parquet footer before it is decoded.
//!
//! The decoder builds the schema tree by recursion without a limit, so a few kilobytes of nested groups would
//! overflow the stack, which no error handling can catch. This reads just enough of the footer (Thrift's compact
//! protocol) to measure how deep the schema nests.

use super::thrift::{Reader, kind};

/// The magic bytes at both ends of a Parquet file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// Bars are flat; lists of structs are the most that occurs beside them.
const MAX_DEPTH: usize = 32;

/// Says why the footer must not be decoded, if so. `footer` is the Thrift structure alone.
pub(crate) fn check(footer: &[u8]) -> Result<(), String> {
    let mut reader = Reader { bytes: footer };
    match schema_depth(&mut reader) {
        Some(depth) if depth <= MAX_DEPTH => Ok(()),
        Some(depth) => Err(format!("the schema nests {depth} levels deep, more than {MAX_DEPTH}")),
        None => Err("the footer is damaged".to_string()),
    }
}

/// Deepest nesting of the schema, field 2 of the file's metadata; `None` if the footer makes no sense.
fn schema_depth(reader: &mut Reader<'_>) -> Option<usize> {
    let mut id = 0;
    while let Some((next, kind)) = reader.field(id)? {
        id = next;
        if id != 2 || kind != kind::LIST {
            reader.skip(kind, 0)?;
            continue;
        }
        let (len, element) = reader.list_head()?;
        if element != kind::STRUCT {
            return None;
        }
        // Children still to come, per open group.
        let mut open: Vec<i64> = Vec::new();
        let mut deepest = 0;
        for _ in 0..len {
            let n_children = schema_element(reader)?;
            if n_children > 0 {
                open.push(n_children);
                deepest = deepest.max(open.len());
                continue;
            }
            while let Some(left) = open.last_mut() {
                *left -= 1;
                if *left > 0 {
                    break;
                }
                open.pop();
            }
        }
        return Some(deepest);
    }
    None
}

/// Reads one schema element; returns its field 5, the number of children.
fn schema_element(reader: &mut Reader<'_>) -> Option<i64> {
    let (mut id, mut n_children) = (0, 0);
    while let Some((next, kind)) = reader.field(id)? {
        id = next;
        if id == 5 && kind::INTEGERS.contains(&kind) {
            n_children = reader.zigzag()?;
        } else {
            reader.skip(kind, 0)?;
        }
    }
    Some(n_children)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer whose schema is a chain of `depth` groups.
    fn chain(depth: usize) -> Vec<u8> {
        let mut footer = vec![0x15, 0x02]; // field 1, version
        footer.push(0x19); // field 2, list
        footer.push(0xfc);
        let mut len = depth as u64 + 1;
        while len >= 0x80 {
            footer.push(len as u8 | 0x80);
            len >>= 7;
        }
        footer.push(len as u8);
        for _ in 0..depth {
            footer.extend([0x48, 0x01, b'g', 0x15, 0x02, 0x00]); // field 4 name, field 5 one child
        }
        footer.extend([0x48, 0x01, b'x', 0x00, 0x00]);
        footer
    }

    #[test]
    fn a_schema_of_ordinary_depth_passes() {
        assert_eq!(check(&chain(1)), Ok(()));
        assert_eq!(check(&chain(MAX_DEPTH)), Ok(()));
    }

    #[test]
    fn a_schema_nested_to_the_stack_limit_is_refused() {
        assert!(check(&chain(MAX_DEPTH + 1)).unwrap_err().contains("levels deep"));
        assert!(check(&chain(200_000)).is_err());
    }

    #[test]
    fn damage_is_refused() {
        assert!(check(&[]).is_err());
        assert!(check(&chain(3)[..9]).is_err());
        assert!(check(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
        assert!(check(&[0xff; 64]).is_err());
    }
}
