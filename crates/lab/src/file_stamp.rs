//! What files look like without reading them, to tell whether they have changed.
//!
//! Looking again works on every system and on network folders, where notifications of the system do not.

use std::path::PathBuf;
use std::time::SystemTime;

use tidemill_market::files_of;

/// Every file that a load of some paths would read, with its size and the time of its last change. A file that is gone has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStamps(Vec<(PathBuf, Option<Stamp>)>);

/// Bytes of a file, and when it was changed, if the system says so.
type Stamp = (u64, Option<SystemTime>);

impl FileStamps {
    /// What the files look like now, those of folders included.
    pub fn of(paths: &[PathBuf]) -> Self {
        let stamp = |path: PathBuf| {
            let known = path.metadata().ok();
            (path, known.map(|known| (known.len(), known.modified().ok())))
        };
        Self(paths.iter().flat_map(files_of).map(stamp).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_file_that_is_read_is_one_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let part = dir.path().join("lake/symbol=BTC");
        std::fs::create_dir_all(&part).unwrap();
        let file = part.join("0.csv");
        let paths = [dir.path().join("lake"), dir.path().join("later.csv")];
        let stamps = || FileStamps::of(&paths);
        let none = stamps();
        std::fs::write(&file, "1").unwrap();
        let first = stamps();
        assert_ne!(first, none, "a file in a partition");
        std::fs::write(part.join("notes.txt"), "1").unwrap();
        std::fs::create_dir(part.join("deeper")).unwrap();
        std::fs::write(part.join("deeper/1.csv"), "1").unwrap();
        assert_eq!(stamps(), first, "what is not read");
        std::fs::write(&file, "12").unwrap();
        let second = stamps();
        assert_ne!(second, first, "more of it");
        std::fs::write(&paths[1], "1").unwrap();
        assert_ne!(stamps(), second, "a file that was not there");
        std::fs::remove_file(&paths[1]).unwrap();
        assert_eq!(stamps(), second, "and is gone again");
    }
}
