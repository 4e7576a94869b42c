//! Just enough of Thrift's compact protocol to look into Parquet's metadata without trusting it.

/// The unread rest of a structure.
pub(crate) struct Reader<'a> {
    pub bytes: &'a [u8],
}

/// Thrift's compact type numbers that matter here.
pub(crate) mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCT: u8 = 12;
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
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

    pub(crate) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn skip_bytes(&mut self, len: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// The next field of a structure as (id, type); `Some(None)` at its end.
    pub(crate) fn field(&mut self, last_id: i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let delta = i64::from(head >> 4);
        let id = if delta == 0 { self.zigzag()? } else { last_id.checked_add(delta)? };
        Some(Some((id, head & 0x0f)))
    }

    pub(crate) fn list_head(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let short = u64::from(head >> 4);
        let len = if short == 15 { self.varint()? } else { short };
        // Every element takes a byte at least, so a longer list is a lie.
        (len <= self.bytes.len() as u64).then_some((len, head & 0x0f))
    }

    pub(crate) fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
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
}
