//! Finds folders of runs beneath a folder.

use std::path::{Path, PathBuf};

/// The folders at and beneath `root` that are wanted. A wanted folder is not entered; neither are hidden folders, folders that may not be read,
/// and links, which could lead in circles.
pub fn find_folders(root: &Path, is_wanted: impl Fn(&Path) -> bool) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        if is_wanted(&dir) {
            found.push(dir);
            continue;
        }
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if dir == root => return Err(error),
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // People read `./runs` as `runs`.
                let name = PathBuf::from(entry.file_name());
                open.push(if dir == Path::new(".") { name } else { dir.join(name) });
            }
        }
    }
    found.sort();
    Ok(found)
}
