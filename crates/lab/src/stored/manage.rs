//! Deletes and renames studies. A study that a process is writing is refused, because both take its lock.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tidemill_search::folder::{HEADER_FILE, JOURNAL_FILE, LOCK_FILE, TRIALS_DIR};

use super::StoredStudy;
use crate::config::StudyConfig;
use crate::error::LabError;
use crate::verdict;

/// A study that nobody else can write while this is there.
#[derive(Debug)]
pub struct LockedStudy(StoredStudy);

impl StoredStudy {
    /// Takes the lock of the study.
    pub fn lock(self) -> Result<LockedStudy, LabError> {
        let folder = self.folder.locked()?;
        Ok(LockedStudy(Self { config: StudyConfig::read(folder.header()), folder }))
    }
}

impl LockedStudy {
    /// The study.
    pub fn study(&self) -> &StoredStudy {
        &self.0
    }

    /// Deletes the files of the study, and its folder if nothing else is in it. Returns the names of what else is in it, which stays.
    ///
    /// The header goes last: a study that a kill leaves half deleted can still be deleted.
    pub fn delete(self) -> Result<Vec<OsString>, LabError> {
        let dir = self.0.folder.dir().to_owned();
        let trials = dir.join(TRIALS_DIR);
        if trials.exists() {
            fs::remove_dir_all(&trials).map_err(LabError::io("remove", &trials))?;
        }
        let remove = |name: &OsString| {
            let path = dir.join(name);
            fs::remove_file(&path).map_err(LabError::io("remove", &path))
        };
        let is_own = |name: &OsString| name.to_str().is_some_and(is_own_file);
        let (own, others): (Vec<OsString>, Vec<OsString>) = names(&dir)?.into_iter().partition(is_own);
        own.iter().filter(|name| *name != HEADER_FILE && *name != LOCK_FILE).try_for_each(remove)?;
        remove(&HEADER_FILE.into())?;
        // Some systems do not remove a file that is locked.
        drop(self);
        remove(&LOCK_FILE.into())?;
        if others.is_empty() {
            fs::remove_dir(&dir).map_err(LabError::io("remove", &dir))?;
        }
        Ok(others)
    }

    /// Gives the folder of the study another name. A bare name stays in the same parent folder; a path is one from the working folder.
    pub fn rename(self, to: &Path) -> Result<PathBuf, LabError> {
        let dir = self.0.folder.dir();
        let is_bare = to.parent() == Some(Path::new("")) && to.file_name() == Some(to.as_os_str());
        let to = if is_bare { dir.with_file_name(to) } else { to.to_owned() };
        if to.symlink_metadata().is_ok() {
            return Err(LabError::NameTaken { path: to });
        }
        if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(LabError::io("create the folder", parent))?;
        }
        fs::rename(dir, &to).map_err(LabError::io("rename", dir))?;
        Ok(to)
    }
}

/// Whether a study makes a file of this name in its folder.
fn is_own_file(name: &str) -> bool {
    let stem = JOURNAL_FILE.trim_end_matches(".jsonl");
    let is_journal = |name: &str| {
        let rest = name.strip_prefix(stem).filter(|rest| rest.starts_with(['-', '.']));
        rest.is_some_and(|rest| rest.ends_with(".jsonl") || rest.ends_with(".snapshot.json"))
    };
    // What a kill leaves half-written bears the name of the file with this ending, some of it hidden.
    let name = name.strip_suffix(".tmp").map_or(name, |name| name.trim_start_matches('.'));
    [HEADER_FILE, LOCK_FILE, verdict::store::FILE].contains(&name) || is_journal(name)
}

fn names(dir: &Path) -> Result<Vec<OsString>, LabError> {
    let entries = fs::read_dir(dir).map_err(LabError::io("list", dir))?;
    let name = |entry: std::io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
    let mut names: Vec<OsString> =
        entries.map(name).collect::<Result<_, _>>().map_err(LabError::io("list", dir))?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use tidemill_search::{StudyFolder, StudyHeader};

    use super::*;

    fn study(dir: &Path) -> StoredStudy {
        let header = StudyHeader {
            version: "0.1.0".into(),
            semantics: 3,
            seed: 1,
            data_hash: "abc".into(),
            config: toml::Table::new(),
        };
        drop(StudyFolder::open_or_create(dir, &header).unwrap());
        for name in ["journal.jsonl", "journal-000001.jsonl", "journal-000001.snapshot.json", "verdict.json"]
        {
            fs::write(dir.join(name), "").unwrap();
        }
        fs::write(dir.join("trials/part-000000.parquet"), "").unwrap();
        StoredStudy::open(dir).unwrap()
    }

    #[test]
    fn a_study_goes_with_its_folder_and_what_is_not_its_own_stays() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("study");
        assert!(study(&dir).lock().unwrap().delete().unwrap().is_empty());
        assert!(!dir.exists());
        let kept = study(&dir);
        for name in ["notes.txt", "journal.txt", "verdict.json.bak"] {
            fs::write(dir.join(name), "mine").unwrap();
        }
        let others = kept.lock().unwrap().delete().unwrap();
        assert_eq!(others, ["journal.txt", "notes.txt", "verdict.json.bak"]);
        assert_eq!(names(&dir).unwrap(), others);
    }

    #[test]
    fn a_bare_name_stays_beside_the_old_one_and_nothing_is_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("one");
        let to = study(&dir).lock().unwrap().rename(Path::new("two")).unwrap();
        assert_eq!(to, place.path().join("two"));
        assert!(!dir.exists() && StoredStudy::open(&to).is_ok());
        let error = study(&dir).lock().unwrap().rename(&to).unwrap_err().to_string();
        assert!(error.contains("two is there already"), "{error}");
        let deep = place.path().join("a/b/three");
        assert_eq!(StoredStudy::open(&dir).unwrap().lock().unwrap().rename(&deep).unwrap(), deep);
    }

    #[test]
    fn a_study_that_is_being_written_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("one");
        let held = study(&dir).lock().unwrap();
        assert_eq!(held.study().folder.dir(), dir);
        let error = StoredStudy::open(&dir).unwrap().lock().unwrap_err().to_string();
        assert!(error.contains("is in use by process"), "{error}");
    }
}
