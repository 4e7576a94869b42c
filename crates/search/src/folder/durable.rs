//! Files that are either whole or absent.
//!
//! Contents go to a temporary name in the same folder, are flushed to the disk, and only then take their final name; the rename is
//! atomic, and the folder is flushed too where the platform allows it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::folder::FolderError;

/// Writes a small file.
pub(super) fn write_file(path: &Path, contents: &[u8]) -> Result<(), FolderError> {
    let mut file = DurableFile::create(path)?;
    file.write_all(contents).map_err(FolderError::io("write", path))?;
    file.commit()
}

/// Whether a path bears a temporary name.
pub(super) fn is_temporary(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with('.') && name.ends_with(".tmp"))
}

/// A file being written under its temporary name; removed again unless committed.
pub(super) struct DurableFile {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

impl DurableFile {
    /// Starts a file that will be called `path`.
    pub(super) fn create(path: &Path) -> Result<Self, FolderError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.tmp"));
        let file = File::create(&temporary).map_err(FolderError::io("create", &temporary))?;
        Ok(Self { path: path.to_owned(), temporary, file: Some(BufWriter::new(file)) })
    }

    /// Makes it durable and gives it its name.
    pub(super) fn commit(mut self) -> Result<(), FolderError> {
        if let Some(writer) = self.file.take() {
            let flushed = writer.into_inner().map_err(|error| error.into_error());
            let file = flushed.map_err(FolderError::io("write", &self.path))?;
            file.sync_all().map_err(FolderError::io("flush to disk", &self.path))?;
        }
        fs::rename(&self.temporary, &self.path).map_err(FolderError::io("rename to", &self.path))?;
        match self.path.parent() {
            Some(dir) => sync_dir(dir),
            None => Ok(()),
        }
    }
}

impl Write for DurableFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for DurableFile {
    fn drop(&mut self) {
        // After a commit the name is gone. After a failure the leftover is harmless, and the next writer removes it if this cannot.
        if self.temporary.exists() {
            drop(self.file.take());
            drop(fs::remove_file(&self.temporary));
        }
    }
}

/// Makes a rename durable. Elsewhere than on Unix a folder cannot be flushed, and the file system's own journal must do.
#[cfg(unix)]
fn sync_dir(dir: &Path) -> Result<(), FolderError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir).and_then(|handle| handle.sync_all()).map_err(FolderError::io("flush to disk", dir))
}

#[cfg(not(unix))]
fn sync_dir(_dir: &Path) -> Result<(), FolderError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_on_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let mut file = DurableFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.flush().unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = DurableFile::create(&dir.path().join("a.txt")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn temporary_names_are_recognised() {
        assert!(is_temporary(Path::new("trials/.part-000001.parquet.tmp")));
        assert!(!is_temporary(Path::new("trials/part-000001.parquet")));
    }
}
