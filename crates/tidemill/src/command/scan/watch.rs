//! `--watch`: when to scan again.
//!
//! The time and size of every file are read twice a second. That works on every system and on network folders, where
//! notifications of the system do not, and costs nothing beside a scan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// Length of one sleep, so that Ctrl-C ends the wait at once.
const STEP: Duration = Duration::from_millis(50);

/// When each file was changed, and its size.
type State = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Waits for changes of files, and of files in folders.
pub struct FileWatcher {
    paths: Vec<PathBuf>,
    seen: State,
}

impl FileWatcher {
    /// Changes from now on count.
    pub fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_vec(), seen: state(paths) }
    }

    /// Waits until something has changed and the change is over; false if `stop` was set before.
    pub fn wait(&mut self, stop: &AtomicBool) -> bool {
        let mut before = self.seen.clone();
        loop {
            for _ in 0..EVERY.as_millis() / STEP.as_millis() {
                if stop.load(Ordering::SeqCst) {
                    return false;
                }
                std::thread::sleep(STEP);
            }
            let now = state(&self.paths);
            if now != self.seen && now == before {
                self.seen = now;
                return true;
            }
            before = now;
        }
    }
}

fn state(paths: &[PathBuf]) -> State {
    let mut state = State::new();
    for path in paths {
        match std::fs::read_dir(path) {
            Ok(entries) => entries.flatten().for_each(|entry| note(&mut state, &entry.path())),
            Err(_) => note(&mut state, path),
        }
    }
    state
}

/// A file that is gone has no entry.
fn note(state: &mut State, path: &Path) {
    if let Ok(metadata) = std::fs::metadata(path) {
        state.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_and_a_stop_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        std::fs::write(&file, "1").unwrap();
        let mut watch = FileWatcher::new(&[dir.path().to_owned()]);
        std::fs::write(&file, "12").unwrap();
        let stop = AtomicBool::new(false);
        assert!(watch.wait(&stop));
        assert_eq!(watch.seen, state(&watch.paths));
        stop.store(true, Ordering::SeqCst);
        assert!(!watch.wait(&stop));
    }
}
