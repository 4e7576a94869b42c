//! No large files: whoever clones the repository downloads each of them, for ever.

use std::path::Path;

use anyhow::{Context, Result};

use crate::repository::Repository;

/// The largest file that may be tracked.
const MOST_BYTES: u64 = 1_000_000;

/// Tracked files that are too large, in words.
pub fn check(root: &Path, repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in &repository.files {
        let metadata =
            root.join(file).symlink_metadata().with_context(|| format!("cannot look at {file}"))?;
        let len_bytes = metadata.len();
        if len_bytes > MOST_BYTES {
            problems.push(format!(
                "{file} has {:.1} MB; a tracked file has at most 1 MB: remove it, or generate it where it is needed",
                len_bytes as f64 / 1e6
            ));
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::repository::tests::of;

    #[test]
    fn a_file_of_more_than_a_megabyte_is_named_with_its_size() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("fits.csv"), vec![0; 1_000_000]).unwrap();
        fs::write(dir.path().join("numbers.whl"), vec![0; 1_250_000]).unwrap();
        assert_eq!(
            check(dir.path(), &of(&["fits.csv", "numbers.whl"])).unwrap(),
            [
                "numbers.whl has 1.2 MB; a tracked file has at most 1 MB: remove it, or generate it where it is needed"
            ]
        );
    }
}
