//! Whether a study is running, complete, or stopped on the way.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;

use tidemill_search::folder::{LOCK_FILE, TRIALS_DIR};

/// The log of trials that are in no part yet; a study that is complete has none.
const LOG_FILE: &str = "log.bin";

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A process writes it; its id where that can be known.
    Running(Option<u32>),
    /// All trials are there.
    Complete,
    /// Trials are missing and no process runs the study.
    Stopped,
}

/// Whether a study folder has a log, which it has from its first run until it is complete.
pub(super) fn has_log(dir: &Path) -> bool {
    dir.join(TRIALS_DIR).join(LOG_FILE).exists()
}

impl State {
    /// The state of a study folder with `n_trials` of the requested trials.
    pub fn of(dir: &Path, n_trials: u64, asked: Option<u64>) -> Self {
        if let Some(holder) = holder(dir) {
            return Self::Running(holder);
        }
        // A finite sampler may end before it has made all requested trials; the log is then gone too.
        if n_trials > 0 && (!has_log(dir) || asked.is_some_and(|asked| n_trials >= asked)) {
            Self::Complete
        } else {
            Self::Stopped
        }
    }

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::Complete => "complete",
            Self::Stopped => "stopped",
        }
    }

    /// Id of the process that writes, if one does and it is known.
    pub fn process(self) -> Option<u32> {
        match self {
            Self::Running(process) => process,
            Self::Complete | Self::Stopped => None,
        }
    }

    /// A few words.
    pub fn text(self) -> String {
        match self {
            Self::Running(Some(process)) => format!("running (process {process})"),
            Self::Running(None) => "running".into(),
            Self::Complete => "complete".into(),
            Self::Stopped => "stopped; the same `tidemill sweep` resumes it".into(),
        }
    }
}

/// Whether the lock is held, and by which process. A shared lock is tried and given back at once; nothing is written.
fn holder(dir: &Path) -> Option<Option<u32>> {
    let mut file = File::open(dir.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            Some(file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok()))
        }
        // Where the file system has no locks, none is held.
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}
