//! Whether the process of a run is alive, as far as the lock in its folder shows.

use std::path::Path;

use tidemill_dash::terminal::ProcessState;
use tidemill_search::folder::LOCK_FILE;

use tidemill_lab::stored::state::State;

/// A study is locked for as long as a process is at work on it; other runs have no lock.
pub fn of(path: &Path) -> ProcessState {
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    if !dir.join(LOCK_FILE).is_file() {
        return ProcessState::Unknown;
    }
    match State::of(dir, 0, None) {
        State::Running(_) => ProcessState::Alive,
        State::Complete | State::Stopped => ProcessState::Dead,
    }
}
