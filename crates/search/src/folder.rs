//! The study folder: everything a search leaves behind, readable without a server.
//!
//! - `study.toml`: what was run (resolved configuration, data hash, seed, version);
//! - `trials/part-000042.parquet`: every trial with its parameters, metrics and objective, in trial order over the parts;
//! - `journal.jsonl`: what happened when.
//!
//! A file appears under its final name only once it is complete and on disk. What a killed run leaves half-written bears a
//! temporary name, is never read, and goes when the next writer opens the folder.

mod durable;
mod part;
mod read;
mod write;

pub use read::{Column, TrialBatch, Trials, read_trials};
pub use write::{ROWS_PER_PART, TrialsWriter};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::space::Space;

/// Name of the file that makes a folder a study.
pub const HEADER_FILE: &str = "study.toml";

/// Name of the folder that holds the trials.
pub const TRIALS_DIR: &str = "trials";

/// Name of the journal.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Layout version written into new studies.
const FORMAT: u32 = 1;

/// What was run; the contents of `study.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyHeader {
    /// Version of the program that made the study.
    pub version: String,
    /// Seed of the sampler.
    #[serde(serialize_with = "write_seed", deserialize_with = "read_seed")]
    pub seed: u64,
    /// Hash of the data that was searched on.
    pub data_hash: String,
    /// The resolved configuration.
    pub config: toml::Table,
}

/// `study.toml` as a whole: the layout version stands first, so that a later one can be recognised.
#[derive(Serialize, Deserialize)]
struct HeaderFile<T> {
    format: u32,
    #[serde(flatten)]
    header: T,
}

/// A failure to create, read or write a study folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder holds something else.
    #[error("{} is not empty and not a study; choose a new or an empty folder", dir.display())]
    Foreign {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder holds a study already.
    #[error("{} already holds a study; choose another folder", dir.display())]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder holds no study.
    #[error("{} is not a study: it has no {HEADER_FILE}", dir.display())]
    NotAStudy {
        /// The folder.
        dir: PathBuf,
    },
    /// The header cannot be read.
    #[error("cannot understand {}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Where it is wrong.
        source: Box<toml::de::Error>,
    },
    /// The header cannot be expressed.
    #[error("cannot express the configuration of the study as TOML")]
    Config {
        /// Why.
        source: Box<toml::ser::Error>,
    },
    /// The study was made by a later version.
    #[error("{} has layout {format}; this version knows up to {FORMAT}", dir.display())]
    Format {
        /// The folder.
        dir: PathBuf,
        /// Its layout version.
        format: u32,
    },
    /// A part cannot be written or read.
    #[error("cannot {action} {}", path.display())]
    Parquet {
        /// What was attempted.
        action: &'static str,
        /// The part.
        path: PathBuf,
        /// Why it failed.
        source: Box<parquet::errors::ParquetError>,
    },
    /// A part is readable and makes no sense.
    #[error("{}: {problem}", path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Two columns of the trials would have the same name.
    #[error("`{name}` cannot be the name of a metric here: it is taken")]
    ColumnName {
        /// The name.
        name: String,
    },
    /// Points, scores and metrics of an append do not have the same length, or not the columns that were announced.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
}

impl FolderError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// A folder that holds one study.
#[derive(Clone, Debug)]
pub struct StudyFolder {
    dir: PathBuf,
    header: StudyHeader,
}

impl StudyFolder {
    /// Makes a new study in a folder that is absent or empty.
    ///
    /// The header is written last: a folder without it is not a study, so that a kill in between leaves nothing half-made.
    pub fn create(dir: &Path, header: &StudyHeader) -> Result<Self, FolderError> {
        let text = toml::to_string_pretty(&HeaderFile { format: FORMAT, header })
            .map_err(|source| FolderError::Config { source: Box::new(source) })?;
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
        Ok(Self { dir: dir.to_owned(), header: header.clone() })
    }

    /// Opens a study that exists.
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
        Ok(Self { dir: dir.to_owned(), header: file.header })
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

    /// A writer that continues after the trials already there.
    pub fn trials_writer(&self, space: &Space, metric_names: &[&str]) -> Result<TrialsWriter, FolderError> {
        TrialsWriter::open(&self.dir.join(TRIALS_DIR), space, metric_names)
    }

    /// The trials, part by part.
    pub fn trials(&self) -> Result<Trials, FolderError> {
        read_trials(&self.dir)
    }
}

/// Whether a folder holds nothing but what a killed `create` may have left.
fn is_vacant(dir: &Path) -> Result<bool, FolderError> {
    for entry in fs::read_dir(dir).map_err(FolderError::io("list", dir))? {
        let entry = entry.map_err(FolderError::io("list", dir))?;
        let path = entry.path();
        let is_empty_trials = entry.file_name() == TRIALS_DIR
            && fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty_trials && !durable::is_temporary(&path) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// TOML integers are signed, so that a seed above their range is written as text.
fn write_seed<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match i64::try_from(*seed) {
        Ok(seed) => serializer.serialize_i64(seed),
        Err(_) => serializer.serialize_str(&seed.to_string()),
    }
}

fn read_seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seed {
        Number(u64),
        Text(String),
    }
    match Seed::deserialize(deserializer)? {
        Seed::Number(seed) => Ok(seed),
        Seed::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
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
        StudyHeader { version: "0.1.0".into(), seed, data_hash: "abc".into(), config }
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
}
