//! What can go wrong with the input of a colouring. That no colouring was found is an outcome, not an error.

use std::path::PathBuf;

use tidemill_gpu::GpuError;
use tidemill_telemetry::{JournalError, ReadError};

/// Why a graph or a colouring cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ColoringError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {reason}", path.display())]
    File {
        /// What was tried: `read`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system. (Not called `source`: a printed chain of causes would show it twice.)
        reason: std::io::Error,
    },
    /// A line of a file cannot be parsed.
    #[error("{}, line {line}: {problem}\n  hint: {hint}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
        /// How to repair it.
        hint: String,
    },
    /// A file cannot be used as a whole.
    #[error("{}: {problem}\n  hint: {hint}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// How to repair it.
        hint: String,
    },
    /// An option has a value that is not allowed.
    #[error("{name} = {value}: expected {expected}")]
    Option {
        /// The option or the settings key.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A colouring that a phase called proper is not: a defect of this program, which is never reported as a result.
    #[error("the colouring with {k} colours from `{phase}` did not pass the verifier: {problem}")]
    Unverified {
        /// Number of colours.
        k: usize,
        /// The phase that made it.
        phase: &'static str,
        /// The flaw that the verifier found.
        problem: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] GpuError),
    /// A run cannot resume with another configuration.
    #[error(
        "the run was started with {key} = {before}, not {now}\n  hint: use the same value, or start a new run in another folder"
    )]
    OtherConfig {
        /// The setting that differs.
        key: &'static str,
        /// Its value in the folder of the run, as JSON.
        before: String,
        /// Its value now, as JSON.
        now: String,
    },
    /// A journal cannot be opened or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal of the interrupted run cannot be read.
    #[error("cannot read the recorded hypertune decisions")]
    Decisions(#[source] ReadError),
}

impl ColoringError {
    /// For a file that cannot be read.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { action: "read", path, reason }
    }

    /// For a file that cannot be written.
    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { action: "write", path, reason }
    }
}
