//! The files of a journal.
//!
//! `journal.jsonl` is the live one. A full one is renamed to `journal-000001.jsonl` and so on, never to a number that was used. So the
//! live file is always the one that will get the next number, which is how a reader knows where it is however often files are
//! renamed while it reads: no file identities are needed, which not every system has.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the live file in a folder.
pub(crate) const LIVE_NAME: &str = "journal.jsonl";

/// Where the files of one journal are.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    live: PathBuf,
}

/// One file of a journal, open for reading.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Whether nothing will be added to it.
    pub(crate) is_full: bool,
}

impl Segments {
    /// Of a journal by its live file.
    pub(crate) fn new(live: &Path) -> Self {
        Self { live: live.to_owned() }
    }

    /// Of a journal by its live file or by the folder that holds it.
    pub(crate) fn find(path: &Path) -> Self {
        if path.is_dir() { Self::new(&path.join(LIVE_NAME)) } else { Self::new(path) }
    }

    pub(crate) fn live(&self) -> &Path {
        &self.live
    }

    /// The full file of this number, from 1.
    pub(crate) fn full(&self, number: u64) -> PathBuf {
        let extension = self.live.extension().and_then(OsStr::to_str).unwrap_or("jsonl");
        self.named(number, extension)
    }

    /// The fold of everything up to the end of a full file.
    pub(crate) fn checkpoint(&self, number: u64) -> PathBuf {
        self.named(number, "snapshot.json")
    }

    fn named(&self, number: u64, extension: &str) -> PathBuf {
        self.live.with_file_name(format!("{}-{number:06}.{extension}", self.stem()))
    }

    fn stem(&self) -> String {
        self.live.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder that holds them.
    pub(crate) fn folder(&self) -> &Path {
        match self.live.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// Numbers of the full files that are there, in order; none if there is no folder.
    pub(crate) fn numbers(&self) -> io::Result<Vec<u64>> {
        self.numbers_of(|number| self.full(number))
    }

    /// Numbers of the checkpoints that are there, in order.
    pub(crate) fn checkpoints(&self) -> io::Result<Vec<u64>> {
        self.numbers_of(|number| self.checkpoint(number))
    }

    fn numbers_of(&self, path: impl Fn(u64) -> PathBuf) -> io::Result<Vec<u64>> {
        let entries = match std::fs::read_dir(self.folder()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let prefix = format!("{}-", self.stem());
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
            let digits = rest.split('.').next().unwrap_or_default();
            // The way back to a name rules out everything that only looks like one of ours.
            if let Ok(number) = digits.parse()
                && path(number).file_name() == Some(&name)
            {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens the file that has this number, or will have it once it is full. None if there is none.
    pub(crate) fn open(&self, number: u64) -> io::Result<Option<OpenSegment>> {
        let full = self.full(number);
        for _ in 0..2 {
            if let Some(file) = open_if_there(&full)? {
                return Ok(Some(OpenSegment { path: full, file, is_full: true }));
            }
            let live = open_if_there(&self.live)?;
            // If it was renamed before we opened the live file, what we opened is its successor.
            if !full.exists() {
                return Ok(live.map(|file| OpenSegment { path: self.live.clone(), file, is_full: false }));
            }
        }
        // It came and went between two looks: another process is removing the journal.
        Ok(None)
    }
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_live_file() {
        let segments = Segments::new(Path::new("runs/a/journal.jsonl"));
        assert_eq!(segments.full(7), Path::new("runs/a/journal-000007.jsonl"));
        assert_eq!(segments.checkpoint(1_234_567), Path::new("runs/a/journal-1234567.snapshot.json"));
        assert_eq!(Segments::new(Path::new("scan.log")).full(1), Path::new("scan-000001.log"));
        assert_eq!(Segments::new(Path::new("scan.log")).folder(), Path::new("."));
    }

    #[test]
    fn only_our_own_names_are_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "journal.jsonl",
            "journal-000002.jsonl",
            "journal-000010.jsonl",
            "journal-1000000.jsonl",
            "journal-000003.snapshot.json",
            "journal-000004.snapshot.json.tmp",
            "journal-2.jsonl",
            "journal-0000005.jsonl",
            "journal-abc.jsonl",
            "journal-000006.jsonl.gz",
            "other-000001.jsonl",
        ];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let segments = Segments::find(dir.path());
        assert_eq!(segments.numbers().unwrap(), [2, 10, 1_000_000]);
        assert_eq!(segments.checkpoints().unwrap(), [3]);
        assert!(Segments::new(&dir.path().join("no/such/journal.jsonl")).numbers().unwrap().is_empty());
    }

    #[test]
    fn the_live_file_has_the_number_it_will_get() {
        let dir = tempfile::tempdir().unwrap();
        let segments = Segments::find(dir.path());
        assert!(segments.open(1).unwrap().is_none());
        std::fs::write(segments.live(), "live").unwrap();
        assert!(!segments.open(1).unwrap().unwrap().is_full);
        std::fs::rename(segments.live(), segments.full(1)).unwrap();
        assert!(segments.open(1).unwrap().unwrap().is_full);
        assert!(segments.open(2).unwrap().is_none());
    }
}
