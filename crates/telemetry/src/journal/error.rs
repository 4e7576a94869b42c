//! What can go wrong with a journal.

use std::io;
use std::path::PathBuf;

/// A failure to open or to keep a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be created or opened.
    #[error("cannot open the journal {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write failed. The file holds whole lines only; what could not be written counts as dropped, and the writer keeps
    /// trying with later records.
    #[error("cannot write the journal {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer's thread ended in a panic.
    #[error("the writer of the journal {} is gone", path.display())]
    WriterGone {
        /// The file.
        path: PathBuf,
    },
}
