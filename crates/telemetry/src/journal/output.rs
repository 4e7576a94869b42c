//! Where the lines of a journal go.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::checkpoint;
use crate::segment::Segments;
use crate::snapshot::Snapshot;

/// Takes whole lines.
pub(super) trait Output: Send + 'static {
    /// Hands lines to the operating system. After a failure none of them is there.
    fn write(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Bytes since the last rotation.
    fn len_bytes(&self) -> u64;

    /// Puts what was written aside, with its fold, and begins anew. After a failure it can be written to as before.
    fn rotate(&mut self, snapshot: &Snapshot) -> io::Result<()>;
}

/// Keeps nothing.
pub(super) struct Nowhere;

impl Output for Nowhere {
    fn write(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        0
    }

    fn rotate(&mut self, _: &Snapshot) -> io::Result<()> {
        Ok(())
    }
}

/// The live file of a journal.
pub(super) struct Live {
    segments: Segments,
    file: File,
    len_bytes: u64,
    /// The number that it gets when it is full.
    number: u64,
    /// Whether something may stand behind `len_bytes` that a failed write left there.
    is_torn: bool,
    /// Whether the names of the files are as durable as what is in them.
    is_folder_synced: bool,
}

impl Live {
    /// Removes the files of an earlier journal, if there are any, and begins a new one.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let segments = Segments::new(path);
        // First what speaks of other files, so that nothing ever speaks of a file of the new journal.
        for number in segments.checkpoints()? {
            std::fs::remove_file(segments.checkpoint(number))?;
        }
        // From the end, so that what remains after a kill is still a journal.
        for number in segments.numbers()?.into_iter().rev() {
            std::fs::remove_file(segments.full(number))?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        Self::new(segments, file)
    }

    /// Opens a file for appending and cuts off what stands after its last line end.
    pub(super) fn open_append(path: &Path) -> io::Result<Self> {
        const BLOCK_BYTES: u64 = 4096;
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut end = file.seek(SeekFrom::End(0))?;
        let mut block = Vec::new();
        while end > 0 {
            let start = end.saturating_sub(BLOCK_BYTES);
            file.seek(SeekFrom::Start(start))?;
            block.clear();
            Read::by_ref(&mut file).take(end - start).read_to_end(&mut block)?;
            if let Some(newline_idx) = memchr::memrchr(b'\n', &block) {
                end = start + newline_idx as u64 + 1;
                break;
            }
            end = start;
        }
        file.set_len(end)?;
        Self::new(Segments::new(path), file)
    }

    fn new(segments: Segments, mut file: File) -> io::Result<Self> {
        let last = |numbers: Vec<u64>| numbers.last().copied().unwrap_or(0);
        // Full files may have been removed to save space; their numbers stay theirs as long as a checkpoint bears them.
        let number = last(segments.numbers()?).max(last(segments.checkpoints()?)) + 1;
        let len_bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { segments, file, len_bytes, number, is_torn: false, is_folder_synced: false })
    }
}

impl Output for Live {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.len_bytes)?;
            self.file.seek(SeekFrom::Start(self.len_bytes))?;
            self.is_torn = false;
        }
        self.is_torn = true;
        self.file.write_all(lines)?;
        self.is_torn = false;
        self.len_bytes += lines.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if !self.is_folder_synced {
            sync_folder(self.segments.folder())?;
            self.is_folder_synced = true;
        }
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn rotate(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let full = self.segments.full(self.number);
        std::fs::rename(self.segments.live(), &full)?;
        let live = match OpenOptions::new().write(true).create_new(true).open(self.segments.live()) {
            Ok(live) => live,
            Err(error) => {
                // Back, so that the file that we write to is the live one.
                std::fs::rename(&full, self.segments.live())?;
                return Err(error);
            }
        };
        // A checkpoint only saves time, so a failure to write it is not a failure of the journal.
        let _ = checkpoint::write(&self.segments, self.number, self.len_bytes, snapshot);
        self.number += 1;
        (self.file, self.len_bytes, self.is_folder_synced) = (live, 0, false);
        Ok(())
    }
}

/// Makes the names in a folder durable, where the system knows of such a thing.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
