//! A look at a Parquet footer before the decoder sees it.
//!
//! The decoder builds the schema tree by recursion without a limit, so a few kilobytes of nested groups would
//! overflow the stack, which no error handling can catch. This reads just enough of the footer (Thrift's compact
//! protocol) to measure how deep the schema nests.

/// The magic bytes at both ends of a Parquet file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// Bars are flat; nobody needs more than lists of structs beside them.
const MAX_DEPTH: usize = 32;

/// Says why the footer must not be decoded, if so. `footer` is the Thrift structure alone.
pub(crate) fn check(footer: &[u8]) -> Result<(), String> {
    let mut reader = Reader { bytes: footer };
    match reader.schema_depth() {
        Some(depth) if depth <= MAX_DEPTH => Ok(()),
        Some(depth) => Err(format!("the schema nests {depth} levels deep, more than {MAX_DEPTH}")),
        None => Err("the footer is damaged".to_string()),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

/// Thrift's compact type numbers that matter here.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn skip_bytes(&mut self, len: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// The next field of a structure as (id, type); `Some(None)` at its end.
    fn field(&mut self, last_id: i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let delta = i64::from(head >> 4);
        let id = if delta == 0 { self.zigzag()? } else { last_id.checked_add(delta)? };
        Some(Some((id, head & 0x0f)))
    }

    fn list_head(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let short = u64::from(head >> 4);
        let len = if short == 15 { self.varint()? } else { short };
        // Every element takes a byte at least, so a longer list is a lie.
        (len <= self.bytes.len() as u64).then_some((len, head & 0x0f))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > 64 {
            return None;
        }
        match kind {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.byte().map(|_| ()),
            kind if kind::INTEGERS.contains(&kind) => self.varint().map(|_| ()),
            kind::DOUBLE => self.skip_bytes(8),
            kind::BINARY => {
                let len = self.varint()?;
                self.skip_bytes(len)
            }
            kind::LIST | kind::SET => {
                let (len, element) = self.list_head()?;
                (0..len).try_for_each(|_| self.skip_element(element, depth + 1))
            }
            kind::MAP => {
                let len = self.varint()?;
                if len == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..len).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth + 1)?;
                    self.skip_element(kinds & 0x0f, depth + 1)
                })
            }
            kind::STRUCT => {
                let mut id = 0;
                while let Some((next, kind)) = self.field(id)? {
                    id = next;
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Booleans take a byte inside a container, none as a field.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        if matches!(kind, kind::TRUE | kind::FALSE) {
            self.byte().map(|_| ())
        } else {
            self.skip(kind, depth)
        }
    }

    /// Deepest nesting of the schema, field 2 of the file's metadata; `None` if the footer makes no sense.
    fn schema_depth(&mut self) -> Option<usize> {
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            if id != 2 || kind != kind::LIST {
                self.skip(kind, 0)?;
                continue;
            }
            let (len, element) = self.list_head()?;
            if element != kind::STRUCT {
                return None;
            }
            // Children still to come, per open group.
            let mut open: Vec<i64> = Vec::new();
            let mut deepest = 0;
            for _ in 0..len {
                let n_children = self.schema_element()?;
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
    fn schema_element(&mut self) -> Option<i64> {
        let (mut id, mut n_children) = (0, 0);
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            if id == 5 && kind::INTEGERS.contains(&kind) {
                n_children = self.zigzag()?;
            } else {
                self.skip(kind, 0)?;
            }
        }
        Some(n_children)
    }
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
