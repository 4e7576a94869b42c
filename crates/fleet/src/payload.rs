//! Writing and reading payloads. Reading checks what is left before it allocates.

use crate::digest::bits;
use crate::frame::FrameError;

/// Columns of values, all of one length.
pub(crate) type Columns = Vec<Vec<f64>>;

/// A payload that grows.
#[derive(Default)]
pub(crate) struct PayloadWriter {
    pub(crate) bytes: Vec<u8>,
}

impl PayloadWriter {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }

    /// Text, cut to [`MAX_TEXT`](PayloadReader::MAX_TEXT).
    pub(crate) fn text(&mut self, text: &str) {
        let most = text.len().min(PayloadReader::MAX_TEXT);
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.u32(end as u32);
        self.bytes.extend_from_slice(&text.as_bytes()[..end]);
    }

    /// Number of rows and of columns, then the columns.
    pub(crate) fn columns<'a>(&mut self, n_rows: usize, columns: impl ExactSizeIterator<Item = &'a [f64]>) {
        self.u32(n_rows as u32);
        self.u32(columns.len() as u32);
        self.bytes.reserve(n_rows * columns.len() * 8);
        for column in columns {
            self.bytes.extend(column.iter().flat_map(|value| bits(*value).to_le_bytes()));
        }
    }
}

/// What is left of a payload.
pub(crate) struct PayloadReader<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Most bytes of a text: the text of a strategy is a few thousand.
    pub(crate) const MAX_TEXT: usize = 4 << 20;

    pub(crate) fn new(kind: u8, payload: &'a [u8]) -> Self {
        Self { kind, rest: payload }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> FrameError {
        FrameError::Malformed { kind: self.kind, what }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], FrameError> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.malformed("it ends too early"));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.malformed("it ends too early"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed("a switch is neither on nor off")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, FrameError> {
        let len = self.u32()? as usize;
        if len > Self::MAX_TEXT {
            return Err(self.malformed("a text is too long"));
        }
        let bytes = self.take(len)?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.malformed("a text is no UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Number of rows, and the columns.
    pub(crate) fn columns(&mut self) -> Result<(usize, Columns), FrameError> {
        let (n_rows, n_columns) = (self.u32()? as usize, self.u32()? as usize);
        let n_values = n_rows.checked_mul(n_columns).and_then(|n| n.checked_mul(8));
        // A column without rows takes no bytes, so that their number has a limit of its own.
        if n_values.is_none_or(|len| len > self.rest.len()) || n_columns > 1 << 16 {
            return Err(self.malformed("a table does not fit into it"));
        }
        let columns = (0..n_columns).map(|_| {
            let bytes = self.take(n_rows * 8)?;
            let value = |word: &[u8]| word.try_into().map_or(f64::NAN, f64::from_le_bytes);
            Ok(bytes.chunks_exact(8).map(value).collect())
        });
        Ok((n_rows, columns.collect::<Result<_, FrameError>>()?))
    }

    /// Nothing may be left.
    pub(crate) fn end<T>(self, value: T) -> Result<T, FrameError> {
        if self.rest.is_empty() { Ok(value) } else { Err(self.malformed("something is left behind its end")) }
    }
}
