//! The study folder: everything a search leaves behind, readable without a server.
//!
//! - `study.toml`: what was run (resolved configuration, data hash, seed, version);
//! - `trials/part-000042.parquet`: the trials with their parameters, metrics and objectives, in trial order over the parts;
//! - `trials/log.bin`: the trials after the last part, while the study runs or is interrupted;
//! - `study.lock`: held by the process that writes;
//! - `journal.jsonl`: what happened when.
//!
//! A file appears under its final name only once it is complete and on disk; the log alone grows in place, by records that are
//! whole or not counted. What a killed run leaves half-written bears a temporary name, is never read, and goes when the next writer
//! opens the folder.

mod column;
mod durable;
mod error;
mod export;
mod header;
mod layout;
mod lock;
mod log;
mod part;
mod read;
mod table;
mod write;

pub use column::Column;
pub use error::FolderError;
pub use export::{ExportFormat, UnknownFormat, export};
pub use header::{Difference, StudyHeader};
pub use lock::Lock;
pub use read::{EvenTrials, TrialBatch, TrialRows, Trials, read_trials};
pub use table::trial_table;
pub use write::{ROWS_PER_PART, TrialsWriter};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::folder::header::HeaderFile;
use crate::space::Space;

/// Name of the file that makes a folder a study.
pub const HEADER_FILE: &str = "study.toml";

/// Name of the folder that holds the trials.
pub const TRIALS_DIR: &str = "trials";

/// Name of the journal.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Name of the file that the writing process holds locked.
pub const LOCK_FILE: &str = "study.lock";

/// Layout version written into new studies.
const FORMAT: u32 = 1;

/// A folder that holds one study.
#[derive(Clone, Debug)]
pub struct StudyFolder {
    dir: PathBuf,
    header: StudyHeader,
    /// Held until the last clone is gone, if this folder was opened for writing.
    lock: Option<Arc<Lock>>,
}

/// A folder opened for writing by [`StudyFolder::open_or_create`].
#[derive(Clone, Debug)]
pub struct OpenedFolder {
    /// The folder; no other process can write into it while this or a clone of it is there.
    pub folder: StudyFolder,
    /// Whether it held this study already.
    pub is_resumed: bool,
    /// The version of the program that made the study, if it differs from this one. No reason to refuse, but worth a note: if
    /// the samplers or the evaluation changed in between, resuming will notice and stop.
    pub made_by: Option<String>,
}

impl StudyFolder {
    /// Opens the study with this header for writing, or makes it in a folder that is absent or empty.
    ///
    /// A study with another configuration is refused with all differences, and so is one that another process writes.
    pub fn open_or_create(dir: &Path, header: &StudyHeader) -> Result<OpenedFolder, FolderError> {
        Self::open_or_create_upgraded(dir, header, |_| ())
    }

    /// The same where the configuration that is stored may have a former shape, which `upgrade` brings into the present one.
    pub fn open_or_create_upgraded(
        dir: &Path,
        header: &StudyHeader,
        upgrade: impl FnOnce(&mut toml::Table),
    ) -> Result<OpenedFolder, FolderError> {
        fs::create_dir_all(dir).map_err(FolderError::io("create the folder", dir))?;
        // Before the lock, so that a folder with other things in it stays untouched.
        if !dir.join(HEADER_FILE).exists() && !is_vacant(dir)? {
            return Err(FolderError::Foreign { dir: dir.to_owned() });
        }
        let lock = Arc::new(Lock::take(dir)?);
        if !dir.join(HEADER_FILE).exists() {
            let folder = Self { lock: Some(lock), ..Self::create(dir, header)? };
            return Ok(OpenedFolder { folder, is_resumed: false, made_by: None });
        }
        let mut folder = Self { lock: Some(lock), ..Self::open(dir)? };
        upgrade(&mut folder.header.config);
        let (stored, asked) = (folder.header.semantics, header.semantics);
        if stored != asked {
            return Err(FolderError::Semantics { dir: dir.to_owned(), stored, asked });
        }
        let differences = folder.header.differences(header);
        if !differences.is_empty() {
            return Err(FolderError::Differs { dir: dir.to_owned(), differences });
        }
        // A kill between the two steps of an earlier version, or a copy without empty folders.
        let trials_dir = dir.join(TRIALS_DIR);
        fs::create_dir_all(&trials_dir).map_err(FolderError::io("create the folder", &trials_dir))?;
        let made_by = Some(folder.header.version.clone()).filter(|version| *version != header.version);
        Ok(OpenedFolder { folder, is_resumed: true, made_by })
    }

    /// Makes a new study in a folder that is absent or empty.
    ///
    /// The header is written last: a folder without it is not a study, so that a kill in between leaves nothing half-made.
    pub fn create(dir: &Path, header: &StudyHeader) -> Result<Self, FolderError> {
        let text = header_text(header)?;
        fs::create_dir_all(dir).map_err(FolderError::io("create the folder", dir))?;
        if dir.join(HEADER_FILE).exists() {
            return Err(FolderError::Exists { dir: dir.to_owned() });
        }
        if !is_vacant(dir)? {
            return Err(FolderError::Foreign { dir: dir.to_owned() });
        }
        let trials_dir = dir.join(TRIALS_DIR);
        fs::create_dir_all(&trials_dir).map_err(FolderError::io("create the folder", &trials_dir))?;
        durable::write_file(&dir.join(HEADER_FILE), text.as_bytes())?;
        Ok(Self { dir: dir.to_owned(), header: header.clone(), lock: None })
    }

    /// Writes the header as it is in memory, after a change of the configuration by [`StudyFolder::open_or_create_upgraded`]. The old
    /// file stays until the new one is whole.
    pub fn store_header(&self) -> Result<(), FolderError> {
        let folder = self.locked()?;
        durable::write_file(&folder.dir.join(HEADER_FILE), header_text(&folder.header)?.as_bytes())
    }

    /// Opens an existing study for reading.
    pub fn open(dir: &Path) -> Result<Self, FolderError> {
        let path = dir.join(HEADER_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(FolderError::NotAStudy { dir: dir.to_owned() });
            }
            Err(error) => return Err(FolderError::io("read", &path)(error)),
        };
        let parsed = |source| FolderError::Header { path: path.clone(), source: Box::new(source) };
        let format = toml::from_str::<HeaderFile<toml::Table>>(&text).map_err(parsed)?.format;
        if format > FORMAT {
            return Err(FolderError::Format { dir: dir.to_owned(), format });
        }
        let file: HeaderFile<StudyHeader> = toml::from_str(&text).map_err(parsed)?;
        Ok(Self { dir: dir.to_owned(), header: file.header, lock: None })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was run.
    pub fn header(&self) -> &StudyHeader {
        &self.header
    }

    /// Where its journal belongs.
    pub fn journal_path(&self) -> PathBuf {
        self.dir.join(JOURNAL_FILE)
    }

    /// The same folder with the lock on it, which is taken now if it is not held yet.
    pub fn locked(&self) -> Result<Self, FolderError> {
        let lock = match &self.lock {
            Some(lock) => Arc::clone(lock),
            None => Arc::new(Lock::take(&self.dir)?),
        };
        Ok(Self { lock: Some(lock), ..self.clone() })
    }

    /// A writer that continues after the trials already there. There must be only one at a time, which the lock is for.
    pub fn writer(
        &self,
        space: &Space,
        metric_names: &[&str],
        n_objectives: usize,
    ) -> Result<TrialsWriter, FolderError> {
        TrialsWriter::open(&self.dir.join(TRIALS_DIR), space, metric_names, n_objectives)
    }

    /// The trials in order.
    pub fn trials(&self) -> Result<Trials, FolderError> {
        read_trials(&self.dir)
    }

    /// Number of trials.
    pub fn n_trials(&self) -> Result<u64, FolderError> {
        read::count_trials(&self.dir)
    }
}

/// The contents of the file of a header.
fn header_text(header: &StudyHeader) -> Result<String, FolderError> {
    toml::to_string_pretty(&HeaderFile { format: FORMAT, header })
        .map_err(|source| FolderError::Config { source: Box::new(source) })
}

/// Whether a folder holds nothing but what a killed `create` may have left.
fn is_vacant(dir: &Path) -> Result<bool, FolderError> {
    for entry in fs::read_dir(dir).map_err(FolderError::io("list", dir))? {
        let entry = entry.map_err(FolderError::io("list", dir))?;
        let path = entry.path();
        let is_empty_trials = entry.file_name() == TRIALS_DIR
            && fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty_trials && !durable::is_temporary(&path) && entry.file_name() != LOCK_FILE {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(seed: u64) -> StudyHeader {
        let config = toml::toml! {
            trials = 100
            [execution]
            fee_bps = 5.0
        };
        StudyHeader { version: "0.1.0".into(), semantics: 2, seed, data_hash: "abc".into(), config }
    }

    #[test]
    fn a_header_round_trips_with_any_seed() {
        for seed in [0, 42, u64::MAX] {
            let dir = tempfile::tempdir().unwrap();
            StudyFolder::create(dir.path(), &header(seed)).unwrap();
            assert_eq!(StudyFolder::open(dir.path()).unwrap().header(), &header(seed));
        }
    }

    #[test]
    fn a_study_of_other_semantics_is_read_and_not_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        StudyFolder::create(dir.path(), &header(1)).unwrap();
        let path = dir.path().join(HEADER_FILE);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("semantics = 2\n"), "{text}");
        // A study from before the rules had a number.
        fs::write(&path, text.replace("semantics = 2\n", "")).unwrap();
        assert_eq!(StudyFolder::open(dir.path()).unwrap().header().semantics, 1);
        let error = StudyFolder::open_or_create(dir.path(), &header(1)).unwrap_err().to_string();
        assert!(
            error
                .contains("made under semantics 1, this version computes semantics 2: choose another folder"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_with_other_files_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = StudyFolder::create(dir.path(), &header(1)).unwrap_err();
        assert!(matches!(error, FolderError::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_study_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        StudyFolder::create(dir.path(), &header(1)).unwrap();
        let error = StudyFolder::create(dir.path(), &header(2)).unwrap_err();
        assert!(matches!(error, FolderError::Exists { .. }), "{error}");
        assert_eq!(StudyFolder::open(dir.path()).unwrap().header().seed, 1);
    }

    #[test]
    fn what_a_killed_create_leaves_does_not_block_the_next() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(TRIALS_DIR)).unwrap();
        fs::write(dir.path().join(".study.toml.tmp"), "vers").unwrap();
        assert!(matches!(StudyFolder::open(dir.path()), Err(FolderError::NotAStudy { .. })));
        StudyFolder::create(dir.path(), &header(1)).unwrap();
    }

    #[test]
    fn a_later_layout_is_named_as_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(HEADER_FILE), "format = 9\nshape = 'unknown'\n").unwrap();
        let error = StudyFolder::open(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("has layout 9; this version knows up to 1"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_where_and_why() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = StudyFolder::create(&file.join("study"), &header(1)).unwrap_err();
        assert!(error.to_string().starts_with("cannot create the folder"), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn opening_again_resumes_and_a_second_writer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("deep/study");
        let first = StudyFolder::open_or_create(&dir, &header(1)).unwrap();
        assert!(!first.is_resumed);
        let error = StudyFolder::open_or_create(&dir, &header(1)).unwrap_err();
        assert!(matches!(error, FolderError::Locked { holder: Some(pid), .. } if pid == std::process::id()));
        assert!(StudyFolder::open(&dir).unwrap().locked().is_err());
        first.folder.locked().unwrap();
        drop(first);
        let mut later = header(1);
        later.version = "0.2.0".into();
        let second = StudyFolder::open_or_create(&dir, &later).unwrap();
        assert!(second.is_resumed);
        assert_eq!(second.made_by.as_deref(), Some("0.1.0"));
    }

    #[test]
    fn another_configuration_is_refused_with_the_differences_and_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        drop(StudyFolder::open_or_create(dir.path(), &header(1)).unwrap());
        let mut asked = header(2);
        asked.config.insert("trials".into(), 200.into());
        let text = StudyFolder::open_or_create(dir.path(), &asked).unwrap_err().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("holds a study with another configuration:"), "{text}");
        assert_eq!(
            lines[1..3],
            ["  seed: 1 in the study, 2 requested", "  trials: 100 in the study, 200 requested"]
        );
        assert!(lines[3].starts_with("  hint: choose another folder"), "{text}");
        // The refusal left nothing locked or changed.
        assert_eq!(StudyFolder::open_or_create(dir.path(), &header(1)).unwrap().folder.header().seed, 1);
    }

    #[test]
    fn foreign_folders_are_not_even_locked() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = StudyFolder::open_or_create(dir.path(), &header(1)).unwrap_err();
        assert!(matches!(error, FolderError::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
