//! The log: trials that are not yet in a part, one checksummed record per batch.
//!
//! A record is appended by one write, so that a kill leaves it whole or torn at the end of the file; a torn record is not read, and
//! cut by the next writer. The head of the file describes the columns, so that a reader needs nothing else. A log is never
//! shortened from the front: a new one takes its place, atomically, once what it held is in a part.
//!
//! Layout, all little-endian: the magic bytes; length and checksum of the description; the description as JSON; then records of
//! first trial (8 bytes), number of trials (4), checksum (4) and the values, column by column, 8 bytes each.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::folder::FolderError;
use crate::folder::durable::DurableFile;
use crate::folder::layout::Layout;

/// Name of the log in the folder of the trials.
pub(super) const LOG_FILE: &str = "log.bin";

const MAGIC: [u8; 8] = *b"tidelog1";

/// Bytes of a record before its values.
const RECORD_HEAD: usize = 16;

/// Appends records to a log.
#[derive(Debug)]
pub(super) struct LogWriter {
    path: PathBuf,
    file: File,
    /// Length up to the end of the last whole record.
    len: u64,
    is_synced: bool,
    /// Kept for its memory.
    record: Vec<u8>,
}

impl LogWriter {
    /// Puts a new log in the place of the old one, if any; it starts with the given trials.
    pub(super) fn create(
        trials_dir: &Path,
        layout: &Layout,
        first_trial: u64,
        columns: &[Vec<f64>],
    ) -> Result<Self, FolderError> {
        let path = trials_dir.join(LOG_FILE);
        let description = serde_json::to_vec(layout)
            .map_err(|error| FolderError::part(&path, format!("cannot describe the columns: {error}")))?;
        let mut bytes = Vec::from(MAGIC);
        bytes.extend_from_slice(&(description.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&description).to_le_bytes());
        bytes.extend_from_slice(&description);
        if columns.first().is_some_and(|column| !column.is_empty()) {
            let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            push_record(&mut bytes, first_trial, &columns);
        }
        let mut file = DurableFile::create(&path)?;
        file.write_all(&bytes).map_err(FolderError::io("write", &path))?;
        file.commit()?;
        Self::open(trials_dir, bytes.len() as u64)
    }

    /// Continues a log that is whole up to `len`; what follows is cut.
    pub(super) fn open(trials_dir: &Path, len: u64) -> Result<Self, FolderError> {
        let path = trials_dir.join(LOG_FILE);
        let file = File::options().append(true).open(&path).map_err(FolderError::io("open", &path))?;
        file.set_len(len).map_err(FolderError::io("cut the torn end of", &path))?;
        Ok(Self { path, file, len, is_synced: false, record: Vec::new() })
    }

    /// Adds a batch. After a failure the log is as before.
    pub(super) fn append(&mut self, first_trial: u64, columns: &[&[f64]]) -> Result<(), FolderError> {
        self.record.clear();
        push_record(&mut self.record, first_trial, columns);
        self.is_synced = false;
        if let Err(error) = self.file.write_all(&self.record) {
            // If even this fails, the torn record is cut by the next writer, and this one must not go on.
            self.file.set_len(self.len).map_err(FolderError::io("cut the torn end of", &self.path))?;
            return Err(FolderError::io("write", &self.path)(error));
        }
        self.len += self.record.len() as u64;
        Ok(())
    }

    /// Makes what was appended survive a loss of power too.
    pub(super) fn sync(&mut self) -> Result<(), FolderError> {
        if !self.is_synced {
            self.file.sync_data().map_err(FolderError::io("flush to disk", &self.path))?;
            self.is_synced = true;
        }
        Ok(())
    }
}

fn push_record(bytes: &mut Vec<u8>, first_trial: u64, columns: &[&[f64]]) {
    let n_rows = columns.first().map_or(0, |column| column.len());
    let head = bytes.len();
    bytes.resize(head + RECORD_HEAD + n_rows * columns.len() * 8, 0);
    let (head, values) = bytes[head..].split_at_mut(RECORD_HEAD);
    let slots = values.chunks_exact_mut(8);
    for (slot, value) in slots.zip(columns.iter().flat_map(|column| column.iter())) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    head[..8].copy_from_slice(&first_trial.to_le_bytes());
    head[8..12].copy_from_slice(&(n_rows as u32).to_le_bytes());
    let checksum = checksum(&head[..12], values);
    head[12..].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(head: &[u8], values: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(values);
    hasher.finalize()
}

/// The trials of one record, as encoded columns.
pub(super) struct Record {
    pub(super) first_trial: u64,
    pub(super) n_rows: usize,
    pub(super) columns: Vec<Vec<f64>>,
}

/// Reads the whole records of a log, also while another process appends to it.
pub(super) struct LogReader {
    path: PathBuf,
    reader: BufReader<File>,
    layout: Layout,
    end: u64,
}

impl LogReader {
    /// Opens the log of a folder; `None` if there is none.
    pub(super) fn open(trials_dir: &Path) -> Result<Option<Self>, FolderError> {
        let path = trials_dir.join(LOG_FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FolderError::io("open", &path)(error)),
        };
        let mut reader = BufReader::new(file);
        let damaged = || {
            FolderError::part(
                &path,
                "the head of the log is damaged; without this file the study goes on after its last part",
            )
        };
        let mut head = [0; 16];
        reader.read_exact(&mut head).map_err(|_| damaged())?;
        let len = u64::from(word(&head[8..12]));
        if head[..8] != MAGIC || len > reader.get_ref().metadata().map_or(0, |file| file.len()) {
            return Err(damaged());
        }
        let mut description = vec![0; len as usize];
        reader.read_exact(&mut description).map_err(|_| damaged())?;
        if crc32fast::hash(&description) != word(&head[12..]) {
            return Err(damaged());
        }
        let layout: Layout = serde_json::from_slice(&description).map_err(|_| damaged())?;
        Ok(Some(Self { path, reader, layout, end: 16 + len }))
    }

    /// The layout of the records.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file up to the end of the last record that was read.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The next whole record, if there is one.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, FolderError> {
        let mut head = [0; RECORD_HEAD];
        if !self.read_whole(&mut head)? {
            return Ok(None);
        }
        let n_rows = word(&head[8..12]) as usize;
        let n_bytes = (n_rows as u64).saturating_mul(self.layout.n_columns() as u64 * 8);
        let file_len = self.reader.get_ref().metadata().map_err(FolderError::io("read", &self.path))?.len();
        // A torn head may claim any number of trials.
        if n_bytes > file_len.saturating_sub(self.end) {
            return Ok(None);
        }
        let mut values = vec![0; n_bytes as usize];
        if !self.read_whole(&mut values)? || checksum(&head[..12], &values) != word(&head[12..]) {
            return Ok(None);
        }
        self.end += RECORD_HEAD as u64 + n_bytes;
        let number = |bytes: &[u8]| f64::from_le_bytes(array(bytes));
        let columns = match n_rows {
            0 => vec![Vec::new(); self.layout.n_columns()],
            _ => values
                .chunks_exact(n_rows * 8)
                .map(|column| column.chunks_exact(8).map(number).collect())
                .collect(),
        };
        Ok(Some(Record { first_trial: u64::from_le_bytes(array(&head[..8])), n_rows, columns }))
    }

    /// Fills the buffer; false if the file ends before.
    fn read_whole(&mut self, buffer: &mut [u8]) -> Result<bool, FolderError> {
        match self.reader.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(FolderError::io("read", &self.path)(error)),
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(array(bytes))
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::column::Kind;

    fn layout() -> Layout {
        Layout { params: vec![("x".into(), Kind::Float)], metrics: vec!["m".into()], n_objectives: 1 }
    }

    fn write(dir: &Path, n_records: usize) -> Vec<u64> {
        let mut log = LogWriter::create(dir, &layout(), 0, &[vec![], vec![], vec![]]).unwrap();
        let mut ends = vec![log.len];
        for record in 0..n_records {
            let values = [record as f64, f64::NAN];
            log.append(2 * record as u64, &[&values, &values, &values]).unwrap();
            ends.push(log.len);
        }
        log.sync().unwrap();
        ends
    }

    fn n_records(dir: &Path) -> (usize, u64) {
        let mut log = LogReader::open(dir).unwrap().unwrap();
        assert_eq!(*log.layout(), layout());
        let mut n_records = 0;
        while let Some(record) = log.next_record().unwrap() {
            assert_eq!((record.first_trial, record.n_rows), (2 * n_records as u64, 2));
            assert!(record.columns.iter().all(|c| c[0] == n_records as f64 && c[1].is_nan()));
            n_records += 1;
        }
        (n_records, log.end())
    }

    #[test]
    fn a_log_cut_or_damaged_anywhere_gives_exactly_its_whole_records() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LogReader::open(dir.path()).unwrap().is_none());
        let ends = write(dir.path(), 4);
        let path = dir.path().join(LOG_FILE);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, ends[4]);
        for len in ends[0]..=ends[4] {
            std::fs::write(&path, &bytes[..len as usize]).unwrap();
            let whole = ends.iter().filter(|end| **end <= len).count() - 1;
            assert_eq!(n_records(dir.path()), (whole, ends[whole]), "cut at {len}");
            // The next writer cuts what is torn, and what it adds can be read.
            let values = [whole as f64, f64::NAN];
            let mut log = LogWriter::open(dir.path(), ends[whole]).unwrap();
            log.append(2 * whole as u64, &[&values, &values, &values]).unwrap();
            assert_eq!(n_records(dir.path()).0, whole + 1);
        }
        for at in ends[2]..ends[3] {
            let mut damaged = bytes.clone();
            damaged[at as usize] ^= 0x40;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(n_records(dir.path()).0, 2, "damaged at {at}");
        }
    }

    #[test]
    fn a_damaged_head_is_named_with_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        let ends = write(dir.path(), 1);
        let path = dir.path().join(LOG_FILE);
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..ends[0] {
            let mut damaged = bytes.clone();
            damaged[at as usize] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            let error = LogReader::open(dir.path()).err().unwrap();
            assert!(error.to_string().contains("without this file"), "{error}");
        }
    }
}
