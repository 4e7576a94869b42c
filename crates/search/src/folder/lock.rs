//! One writer at a time: a lock that the operating system releases, however the process ends.
//!
//! The lock is on a file that stays where it is. A file that came and went would let two processes lock two files of one name.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use crate::folder::{FolderError, LOCK_FILE};

/// The right to write into the folder of a study, or of several, held until dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    /// Unlocks and does not only close: a process that is being started elsewhere in this program has a copy of the file until it runs, and the
    /// lock would last as long.
    fn drop(&mut self) {
        drop(self.file.unlock());
    }
}

impl Lock {
    /// Takes the lock of a folder, or names the process that holds it.
    pub fn take(dir: &Path) -> Result<Self, FolderError> {
        let path = dir.join(LOCK_FILE);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(FolderError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(FolderError::Locked { dir: dir.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(FolderError::io("lock", &path)(error)),
        }
        // The number is for people. Where it cannot be written, on a full disk, the lock holds all the same.
        drop(file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())));
        Ok(Self { file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let error = Lock::take(dir.path()).unwrap_err();
        let pid = std::process::id();
        assert!(error.to_string().contains(&format!("is in use by process {pid};")), "{error}");
        drop(lock);
        Lock::take(dir.path()).unwrap();
    }
    #[test]
    fn a_copy_of_the_file_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let copy = lock.file.try_clone().unwrap();
        drop(lock);
        Lock::take(dir.path()).unwrap();
        drop(copy);
    }
}
