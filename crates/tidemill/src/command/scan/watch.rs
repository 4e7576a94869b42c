//! `--watch`: when to scan again. The files are looked at twice a second, which costs nothing beside a scan.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidemill_lab::FileStamps;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// Length of one sleep, so that Ctrl-C ends the wait at once.
const STEP: Duration = Duration::from_millis(50);

/// Waits for changes of files, and of files in folders.
pub struct FileWatcher {
    paths: Vec<PathBuf>,
    seen: FileStamps,
}

impl FileWatcher {
    /// Changes from now on count.
    pub fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_vec(), seen: FileStamps::of(paths) }
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
            let now = FileStamps::of(&self.paths);
            if now != self.seen && now == before {
                self.seen = now;
                return true;
            }
            before = now;
        }
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
        assert_eq!(watch.seen, FileStamps::of(&watch.paths));
        stop.store(true, Ordering::SeqCst);
        assert!(!watch.wait(&stop));
    }
}
