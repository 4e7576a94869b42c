//! Follows a journal while it is written.
//!
//! Each poll opens the files by name again and continues where the last one stopped. That costs some microseconds, and nothing has to be
//! known about files that were renamed, removed or made anew in between.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::checkpoint;
use crate::event::Event;
use crate::read::ReadError;
use crate::segment::{OpenSegment, Segments};
use crate::snapshot::Snapshot;

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes at the beginning of a journal that distinguish it from another one of the same name: they hold the time of its first record.
const HEAD_BYTES: u64 = 256;

/// Reads what is new in a journal, and folds it.
#[derive(Debug)]
pub struct Follower {
    /// The path that the caller gave; whether it is a folder shows once it exists.
    path: PathBuf,
    segments: Segments,
    snapshot: Snapshot,
    /// The first file, when it was opened.
    first: u64,
    /// How that file begins, as far as whole lines of it were read.
    head: Vec<u8>,
    /// The file that is being read, by the number that it has or will have.
    number: u64,
    /// Bytes of it that were read, always at the beginning of a line.
    offset: u64,
    n_lines: u64,
    n_malformed: u64,
    malformed: Option<Malformed>,
}

/// A whole line that is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The file, by the name that it had when it was read.
    pub path: PathBuf,
    /// The line in that file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Events that were read.
    pub n_events: u64,
    /// Whether the journal is another one than before, and the fold began anew.
    pub is_restarted: bool,
}

impl Follower {
    /// Follows the journal of this file, or of the folder that holds it. It need not exist yet. Nothing is read before the
    /// first poll.
    pub fn open(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            segments: Segments::find(path),
            snapshot: Snapshot::default(),
            first: 1,
            head: Vec::new(),
            number: 1,
            offset: 0,
            n_lines: 0,
            n_malformed: 0,
            malformed: None,
        }
    }

    /// Reads what is new, calls back for each event, and folds it. The first time that is everything after the newest checkpoint.
    ///
    /// After an error it may be called again; no event is given twice.
    pub fn poll(&mut self, mut hear: impl FnMut(&Event)) -> Result<Polled, ReadError> {
        let mut polled = Polled::default();
        if self.head.is_empty() {
            // Nothing is there yet, or nothing whole.
            self.restart()?;
        } else if self.is_another()? {
            self.restart()?;
            polled.is_restarted = true;
        }
        while let Some(mut segment) = self.segments.open(self.number).map_err(|source| self.failed(source))? {
            if self.read_on(&mut segment, &mut hear, &mut polled)? {
                if !segment.is_full {
                    break;
                }
                (self.number, self.offset, self.n_lines) = (self.number + 1, 0, 0);
            } else {
                self.restart()?;
                polled.is_restarted = true;
            }
        }
        self.remember_head()?;
        Ok(polled)
    }

    /// The fold of everything up to the last poll.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The fold, and nothing else.
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The live file of the journal.
    pub fn path(&self) -> &Path {
        self.segments.live()
    }

    /// Lines that were skipped because they are not events. A last line without its end does not count.
    pub fn n_malformed(&self) -> u64 {
        self.n_malformed
    }

    /// The newest of them.
    pub fn malformed(&self) -> Option<&Malformed> {
        self.malformed.as_ref()
    }

    /// Begins with the newest checkpoint, or with the first file.
    fn restart(&mut self) -> Result<(), ReadError> {
        self.segments = Segments::find(&self.path);
        let newest = checkpoint::newest(&self.segments).map_err(|source| self.failed(source))?;
        let numbers = self.segments.numbers().map_err(|source| self.failed(source))?;
        let (covered, snapshot) = newest.unwrap_or_default();
        let oldest = numbers.first().copied().unwrap_or(covered + 1);
        // Files older than the checkpoint need not be there any more.
        self.number = oldest.max(covered + 1);
        self.first = oldest;
        self.snapshot = snapshot;
        (self.offset, self.n_lines, self.n_malformed, self.malformed) = (0, 0, 0, None);
        self.head.clear();
        Ok(())
    }

    /// Reads one file to its end; false if it is shorter than what was read of it.
    fn read_on(
        &mut self,
        segment: &mut OpenSegment,
        hear: &mut impl FnMut(&Event),
        polled: &mut Polled,
    ) -> Result<bool, ReadError> {
        let failed = |source| ReadError::Io { path: segment.path.clone(), source };
        if segment.file.metadata().map_err(failed)?.len() < self.offset {
            return Ok(false);
        }
        segment.file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        let mut buffer = Vec::new();
        loop {
            let n_before = buffer.len();
            let block = Read::by_ref(&mut segment.file).take(BLOCK_BYTES as u64).read_to_end(&mut buffer);
            let is_end = block.map_err(failed)? == 0;
            // Only what came just now can hold an end of a line.
            let n_whole = memchr::memrchr(b'\n', &buffer[n_before..]).map_or(0, |at| n_before + at + 1);
            for line in buffer[..n_whole].split_inclusive(|&byte| byte == b'\n') {
                self.n_lines += 1;
                self.offset += line.len() as u64;
                self.read_line(line, &segment.path, hear, polled);
            }
            buffer.drain(..n_whole);
            if is_end {
                if segment.is_full && !buffer.is_empty() {
                    self.n_lines += 1;
                    self.pass_over(&segment.path, "it has no end".to_owned());
                }
                return Ok(true);
            }
        }
    }

    fn read_line(&mut self, line: &[u8], path: &Path, hear: &mut impl FnMut(&Event), polled: &mut Polled) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<Event>(line) {
            Ok(event) => {
                hear(&event);
                self.snapshot.take(event);
                polled.n_events += 1;
            }
            Err(error) => self.pass_over(path, error.to_string()),
        }
    }

    fn pass_over(&mut self, path: &Path, reason: String) {
        self.n_malformed += 1;
        self.malformed = Some(Malformed { path: path.to_owned(), line: self.n_lines, reason });
    }

    /// Whether the journal began anew since the last poll.
    fn is_another(&self) -> Result<bool, ReadError> {
        let head = self.read_head(self.head.len() as u64)?;
        Ok(head.as_ref() != Some(&self.head))
    }

    fn remember_head(&mut self) -> Result<(), ReadError> {
        // A line that is not whole may yet be cut off.
        let n_known = if self.first < self.number { HEAD_BYTES } else { self.offset.min(HEAD_BYTES) };
        if (self.head.len() as u64) < n_known {
            self.head = self.read_head(n_known)?.unwrap_or_default();
        }
        Ok(())
    }

    /// How the first file begins, if it is there.
    fn read_head(&self, n_bytes: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let segment = self.segments.open(self.first).map_err(|source| self.failed(source))?;
        let Some(segment) = segment else { return Ok(None) };
        let mut head = Vec::new();
        let read = segment.file.take(n_bytes).read_to_end(&mut head);
        read.map_err(|source| ReadError::Io { path: segment.path, source })?;
        Ok(Some(head))
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.segments.live().to_owned(), source }
    }
}
