//! Reading a journal, also while it is being written and after a kill.

mod all;
mod find;

pub use all::{AllEvents, read_all};
pub use find::find;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::event::Event;

/// A failure to read a journal.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read the journal {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A whole line is not an event.
    #[error("{}:{line}: not an event", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// Reads one file of a journal from its beginning; [`read_all`] reads all of them.
pub fn read_journal(path: &Path) -> Result<JournalReader, ReadError> {
    match File::open(path) {
        Ok(file) => Ok(JournalReader::new(path, file)),
        Err(source) => Err(ReadError::Io { path: path.to_owned(), source }),
    }
}

/// The events of one file in the order written.
///
/// A last line without its end is not an event yet: it is kept, and the iterator may be called again once the writer has written more,
/// which is how a live journal is followed. A malformed line is reported once, and reading continues after it.
#[derive(Debug)]
pub struct JournalReader {
    path: PathBuf,
    input: BufReader<File>,
    buffer: Vec<u8>,
    n_lines: u64,
}

impl JournalReader {
    fn new(path: &Path, file: File) -> Self {
        Self { path: path.to_owned(), input: BufReader::new(file), buffer: Vec::new(), n_lines: 0 }
    }

    /// Whether the file ends, as far as it was read, with a line that is not complete.
    pub fn is_torn(&self) -> bool {
        !self.buffer.is_empty()
    }
}

impl Iterator for JournalReader {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(source) = self.input.read_until(b'\n', &mut self.buffer) {
                return Some(Err(ReadError::Io { path: self.path.clone(), source }));
            }
            if self.buffer.last() != Some(&b'\n') {
                return None;
            }
            self.n_lines += 1;
            let line = self.buffer.trim_ascii();
            let event = (!line.is_empty()).then(|| serde_json::from_slice(line));
            self.buffer.clear();
            if let Some(event) = event {
                return Some(event.map_err(|source| ReadError::Malformed {
                    path: self.path.clone(),
                    line: self.n_lines,
                    source,
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn line(step: &str) -> String {
        serde_json::to_string(&Event::new("r", "p", step)).unwrap() + "\n"
    }

    fn steps(reader: &mut JournalReader) -> Vec<smol_str::SmolStr> {
        reader.map(|event| event.unwrap().step).collect()
    }

    #[test]
    fn a_torn_last_line_is_no_event_until_it_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let (first, second) = (line("first"), line("second"));
        let (head, tail) = second.split_at(20);
        write!(file, "{first}{head}").unwrap();
        let mut reader = read_journal(file.path()).unwrap();
        assert_eq!(steps(&mut reader), ["first"]);
        assert!(reader.is_torn());
        write!(file, "{tail}").unwrap();
        assert_eq!(steps(&mut reader), ["second"]);
        assert!(!reader.is_torn());
    }

    #[test]
    fn a_malformed_line_is_named_and_the_rest_is_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{}\nnonsense\n{}", line("first"), line("last")).unwrap();
        let results: Vec<_> = read_journal(file.path()).unwrap().collect();
        assert_eq!(results.len(), 3);
        let error = results[1].as_ref().unwrap_err();
        assert!(error.to_string().ends_with(":3: not an event"), "{error}");
        assert_eq!(results[2].as_ref().unwrap().step, "last");
    }

    #[test]
    fn a_missing_journal_is_an_error() {
        let error = read_journal(Path::new("no-such-journal.jsonl")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the journal no-such-journal.jsonl");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            let n_lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            prop_assert!(read_journal(file.path()).unwrap().count() <= n_lines);
        }

        #[test]
        fn a_cut_anywhere_keeps_the_whole_lines(cut in 0..2000_usize) {
            let text: String = (0..5).map(|idx| line(&format!("step_{idx}"))).collect();
            let cut = cut.min(text.len());
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&text.as_bytes()[..cut]).unwrap();
            let mut reader = read_journal(file.path()).unwrap();
            prop_assert_eq!(steps(&mut reader).len(), text[..cut].matches('\n').count());
        }
    }
}
