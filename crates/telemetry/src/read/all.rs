//! All files of a journal, one after the other.

use std::path::Path;

use crate::event::Event;
use crate::read::{JournalReader, ReadError};
use crate::segment::Segments;

/// Reads a journal, given by its live file or the folder that holds it, from the beginning of its first file to the end of the
/// live one. There has to be at least one.
pub fn read_all(path: &Path) -> Result<AllEvents, ReadError> {
    let segments = Segments::find(path);
    let numbers = segments.numbers().map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let mut events = AllEvents { segments, number: numbers.first().copied().unwrap_or(1), reader: None };
    if !events.open()? {
        let source = std::io::ErrorKind::NotFound.into();
        return Err(ReadError::Io { path: events.segments.live().to_owned(), source });
    }
    Ok(events)
}

/// The events of a journal in the order written. A malformed line is reported once, and reading continues after it; a last line
/// without its end is left out.
#[derive(Debug)]
pub struct AllEvents {
    segments: Segments,
    number: u64,
    /// The file that is being read, and whether another one follows it.
    reader: Option<(JournalReader, bool)>,
}

impl AllEvents {
    /// Opens the file of the present number, if there is one.
    fn open(&mut self) -> Result<bool, ReadError> {
        let opened = self.segments.open(self.number).map_err(|source| {
            let path = self.segments.live().to_owned();
            ReadError::Io { path, source }
        })?;
        self.reader =
            opened.map(|segment| (JournalReader::new(&segment.path, segment.file), segment.is_full));
        Ok(self.reader.is_some())
    }
}

impl Iterator for AllEvents {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (reader, is_full) = self.reader.as_mut()?;
            if let Some(event) = reader.next() {
                return Some(event);
            }
            if !*is_full {
                return None;
            }
            self.number += 1;
            if let Err(error) = self.open() {
                return Some(Err(error));
            }
        }
    }
}
