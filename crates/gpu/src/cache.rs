//! Compiled kernels on disk.
//!
//! An entry is named by a hash of everything that decides its content, and begins with a checksum: a damaged entry is made
//! anew. A cache that cannot be written is no error, only slow.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"TIDEKRN1";

/// Where compiled things are kept: in the folder named by `TIDEMILL_CACHE`, else in the user's cache folder. No crate for it, because
/// kernels lie in `~/.cache` on macOS too, where the documents and those who share a cache between machines expect them.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("TIDEMILL_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("tidemill")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/tidemill")))
        .or_else(|| named("LOCALAPPDATA").map(|folder| folder.join("tidemill")))
}

/// Where kernels compiled for GPUs are kept.
pub fn kernel_folder() -> Option<PathBuf> {
    user_folder().map(|folder| folder.join("kernels"))
}

/// A folder of compiled kernels.
pub(crate) struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// In [`kernel_folder`]; without it nothing is kept.
    pub(crate) fn of_user() -> Self {
        Self { folder: kernel_folder() }
    }

    /// In a given folder.
    #[cfg(test)]
    pub fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// The entry for these parts, or what `make` gives, which is then kept.
    pub fn get_or<E>(&self, parts: &[&str], make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let Some(folder) = &self.folder else { return make() };
        let path = folder.join(format!("{}.bin", key(parts)));
        if let Some(content) = fs::read(&path).ok().and_then(open) {
            return Ok(content);
        }
        let content = make()?;
        // Not being able to keep it costs time at the next start, nothing else.
        let _ = keep(folder, &path, &content);
        Ok(content)
    }
}

fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The content of an entry, if it is whole.
fn open(entry: Vec<u8>) -> Option<Vec<u8>> {
    let rest = entry.strip_prefix(MAGIC)?;
    let (sum, content) = rest.split_at_checked(32)?;
    (Sha256::digest(content)[..] == *sum).then(|| content.to_vec())
}

/// Writes under a temporary name and renames, so that others see a whole entry or none.
fn keep(folder: &Path, path: &Path, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(MAGIC)?;
    file.write_all(&Sha256::digest(content))?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn get(cache: &Cache, parts: &[&str], n_made: &mut u32) -> Vec<u8> {
        let made = cache.get_or::<Infallible>(parts, || {
            *n_made += 1;
            Ok(parts.concat().into_bytes())
        });
        made.unwrap()
    }

    #[test]
    fn an_entry_is_made_once_and_again_for_other_parts() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, mut n_made) = (Cache::at(folder.path()), 0);
        assert_eq!(get(&cache, &["text", "sm_90"], &mut n_made), b"textsm_90");
        assert_eq!(get(&cache, &["text", "sm_90"], &mut n_made), b"textsm_90");
        assert_eq!(n_made, 1);
        // The same letters, cut elsewhere, are another key.
        get(&cache, &["texts", "m_90"], &mut n_made);
        get(&cache, &["text", "sm_89"], &mut n_made);
        assert_eq!(n_made, 3);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file stays");
    }

    #[test]
    fn a_damaged_entry_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, mut n_made) = (Cache::at(folder.path()), 0);
        get(&cache, &["text"], &mut n_made);
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&whole[..whole.len() - 1], &whole[..10], &[], &flipped] {
            fs::write(&path, damaged).unwrap();
            let before = n_made;
            assert_eq!(get(&cache, &["text"], &mut n_made), b"text");
            assert_eq!(n_made, before + 1);
            assert_eq!(fs::read(&path).unwrap(), whole, "and is whole again");
        }
    }

    #[test]
    fn a_failure_is_not_kept_and_a_folder_that_cannot_be_written_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(cache.get_or(&["text"], || Err("no")), Err("no"));
        let mut n_made = 0;
        get(&cache, &["text"], &mut n_made);
        assert_eq!(n_made, 1);

        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::at(&file);
        assert_eq!(get(&cache, &["text"], &mut n_made), b"text");
        assert_eq!(n_made, 2);
    }
}
