//! What can go wrong with a study folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::folder::header::Difference;
use crate::folder::{FORMAT, HEADER_FILE};

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
    /// Another process writes into the folder.
    #[error(
        "{} is in use by {}; wait for it to end, stop it, or choose another folder",
        dir.display(),
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// Number of the process that holds it, where it can be known.
        holder: Option<u32>,
    },
    /// The folder holds a study of something else.
    #[error(
        "{} holds a study with another configuration:\n{}\n  hint: choose another folder for --out, or resume with the settings of \
         the study",
        dir.display(),
        differences.iter().map(|difference| format!("  {difference}")).collect::<Vec<_>>().join("\n")
    )]
    Differs {
        /// The folder.
        dir: PathBuf,
        /// Everything that differs.
        differences: Vec<Difference>,
    },
    /// The study was made under other rules.
    #[error(
        "{} was made under semantics {stored}, this version computes semantics {asked}: choose another folder\n  hint: trials of both would not be \
         comparable; `study show`, `best` and `export` still read it",
        dir.display()
    )]
    Semantics {
        /// The folder.
        dir: PathBuf,
        /// The semantics of the stored study.
        stored: u32,
        /// The semantics of this version.
        asked: u32,
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
        /// The underlying error.
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
    /// A part or the log is readable and makes no sense.
    #[error("{}: {problem}", path.display())]
    Part {
        /// The file.
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
    /// An export could not be written.
    #[error("cannot write the export")]
    Export {
        /// The underlying error.
        source: io::Error,
    },
}

impl FolderError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn parquet(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        move |source| Self::Parquet { action, path: path.to_owned(), source: Box::new(source) }
    }

    pub(crate) fn part(path: &Path, problem: impl Into<String>) -> Self {
        Self::Part { path: path.to_owned(), problem: problem.into() }
    }
}
