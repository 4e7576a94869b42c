//! All records of one phase, without parsing the others.

use std::io::Read;
use std::path::Path;

use memchr::memmem::Finder;

use crate::event::Event;
use crate::read::ReadError;
use crate::segment::{OpenSegment, Segments};

/// Bytes that are read at a time.
const BLOCK_BYTES: usize = 4 << 20;

/// Finds the records of one phase in all files of a journal, in the order written. The journal is given by its live file or the
/// folder that holds it; one that is not there has none.
///
/// Lines are searched for the phase's name first, so that this is as fast as reading the files. What it finds may decide how a
/// run continues, so a line that names the phase and is no event is an error. A last line without its end was never recorded.
pub fn find(path: &Path, phase: &str) -> Result<Vec<Event>, ReadError> {
    let segments = Segments::find(path);
    let failed = |source| ReadError::Io { path: segments.live().to_owned(), source };
    let mut number = segments.numbers().map_err(failed)?.first().copied().unwrap_or(1);
    // As it stands in the file, with quotes and escapes.
    let quoted = serde_json::Value::from(phase).to_string();
    let mut search = Search { finder: Finder::new(&quoted), phase, found: Vec::new() };
    while let Some(segment) = segments.open(number).map_err(failed)? {
        let is_full = segment.is_full;
        search.segment(segment)?;
        if !is_full {
            break;
        }
        number += 1;
    }
    Ok(search.found)
}

struct Search<'a> {
    finder: Finder<'a>,
    phase: &'a str,
    found: Vec<Event>,
}

impl Search<'_> {
    fn segment(&mut self, mut segment: OpenSegment) -> Result<(), ReadError> {
        let mut buffer = Vec::with_capacity(BLOCK_BYTES + 4096);
        let mut n_lines = 0;
        loop {
            let n_before = buffer.len();
            let read = Read::by_ref(&mut segment.file).take(BLOCK_BYTES as u64).read_to_end(&mut buffer);
            let n_read = read.map_err(|source| ReadError::Io { path: segment.path.clone(), source })?;
            if n_read == 0 {
                return Ok(());
            }
            let n_whole = memchr::memrchr(b'\n', &buffer[n_before..]).map_or(0, |at| n_before + at + 1);
            self.lines(&buffer[..n_whole], &segment.path, &mut n_lines)?;
            buffer.drain(..n_whole);
        }
    }

    /// Looks through whole lines, of which `n_lines` came before.
    fn lines(&mut self, text: &[u8], path: &Path, n_lines: &mut u64) -> Result<(), ReadError> {
        let mut start = 0;
        // Lines are counted only as far as they have to be named.
        let mut counted = 0;
        while let Some(at) = self.finder.find(&text[start..]) {
            let at = start + at;
            let line_start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
            let line_end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
            *n_lines += newlines(&text[counted..line_start]);
            counted = line_start;
            let event: Event = serde_json::from_slice(&text[line_start..line_end]).map_err(|source| {
                ReadError::Malformed { path: path.to_owned(), line: *n_lines + 1, source }
            })?;
            if event.phase == self.phase {
                self.found.push(event);
            }
            start = line_end;
        }
        *n_lines += newlines(&text[counted..]);
        Ok(())
    }
}

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
