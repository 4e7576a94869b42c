//! What a file holds, on disk or in memory, and what its first bytes say it is.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

use super::footer;

/// The bytes of a file. A clone reads the same ones.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// On disk; only what is needed is read.
    Disk(Arc<File>),
    /// Unpacked, or from standard input.
    Memory(Bytes),
}

/// What can be read, by the first bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Empty,
    Parquet,
    /// A file or a stream of Arrow's messages; Feather is the former.
    Arrow,
    Gzip,
    Zstd,
    Xz,
    Zip,
    /// Anything else.
    Text,
}

impl Kind {
    /// The kind of content that starts with these bytes, of which eight are enough.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [] => Kind::Empty,
            head if head.starts_with(footer::MAGIC) => Kind::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => Kind::Arrow,
            [0x1f, 0x8b, ..] => Kind::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Kind::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Kind::Xz,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Kind::Zip,
            _ => Kind::Text,
        }
    }
}

impl Content {
    pub(crate) fn kind(&self) -> std::io::Result<Kind> {
        let mut head = Vec::with_capacity(8);
        self.reader()?.take(8).read_to_end(&mut head)?;
        Ok(Kind::of(&head))
    }

    /// A reader from the start. There is at most one at a time of a file on disk.
    pub(crate) fn reader(&self) -> std::io::Result<Box<dyn Read + Send + '_>> {
        Ok(match self {
            Content::Disk(file) => {
                (&**file).seek(SeekFrom::Start(0))?;
                Box::new(&**file)
            }
            Content::Memory(bytes) => Box::new(&bytes[..]),
        })
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> std::io::Result<Bytes> {
        match self {
            Content::Memory(bytes) => Ok(bytes.clone()),
            Content::Disk(file) => {
                let mut bytes = Vec::with_capacity(usize::try_from(self.size()?).unwrap_or(0));
                (&**file).seek(SeekFrom::Start(0))?;
                (&**file).read_to_end(&mut bytes)?;
                Ok(bytes.into())
            }
        }
    }

    /// How many bytes there are.
    pub(crate) fn size(&self) -> std::io::Result<u64> {
        match self {
            Content::Disk(file) => Ok(file.metadata()?.len()),
            Content::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Up to `len` bytes from a position.
    pub(crate) fn piece(&self, start: u64, len: u64) -> std::io::Result<Bytes> {
        match self {
            Content::Disk(file) => {
                let mut piece = Vec::new();
                (&**file).seek(SeekFrom::Start(start))?;
                (&**file).take(len).read_to_end(&mut piece)?;
                Ok(piece.into())
            }
            Content::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                let len = usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len() - start);
                Ok(bytes.slice(start..start + len))
            }
        }
    }
}

impl Length for Content {
    fn len(&self) -> u64 {
        // The decoder is not reached if the size cannot be told.
        self.size().unwrap_or(0)
    }
}

impl ChunkReader for Content {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(match self {
            Content::Disk(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                Box::new(BufReader::new(file))
            }
            Content::Memory(_) => {
                let rest = self.piece(start, u64::MAX)?;
                Box::new(std::io::Cursor::new(rest))
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let piece = self.piece(start, length as u64)?;
        if piece.len() < length {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(piece)
    }
}
