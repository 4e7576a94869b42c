//! Which files belong to the repository.
//!
//! Git knows: those that are tracked or staged. A source archive has no git, so there every file counts that is not the output of a
//! build or a run, and the rules about tracked files do not apply.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The files of the repository, as paths from its root with `/` between their parts.
pub struct Repository {
    /// In order.
    pub files: BTreeSet<String>,
    /// Why it is not known which files are tracked, where it is not.
    pub untracked_because: Option<String>,
}

impl Repository {
    /// Lists the files below the root.
    pub fn at(root: &Path) -> Result<Self> {
        let (files, untracked_because) = match tracked(root) {
            Ok(files) => (files, None),
            Err(reason) => {
                let mut files = BTreeSet::new();
                walk(root, "", &mut files)?;
                (files, Some(reason))
            }
        };
        Ok(Self { files, untracked_because })
    }

    /// Whether this is a file of the repository or a folder that holds one.
    pub fn holds(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        path.is_empty()
            || self.files.contains(path)
            || self.files.range(below.clone()..).next().is_some_and(|file| file.starts_with(&below))
    }

    /// Names of the files and folders in the root.
    pub fn root_entries(&self) -> BTreeSet<&str> {
        self.files.iter().filter_map(|file| file.split('/').next()).collect()
    }

    /// Names of the folders in the root.
    pub fn root_folders(&self) -> BTreeSet<&str> {
        self.files.iter().filter_map(|file| file.split_once('/')).map(|(folder, _)| folder).collect()
    }
}

/// What git tracks, without files that are deleted but not yet staged as such; or why that is not known.
fn tracked(root: &Path) -> Result<BTreeSet<String>, String> {
    // An archive may have been unpacked inside another repository, whose git would answer for it.
    if !root.join(".git").exists() {
        return Err("this is no git checkout".into());
    }
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`git ls-files` failed: {}", said.lines().next().unwrap_or("it gave no reason")));
    }
    let files = String::from_utf8_lossy(&output.stdout);
    let files =
        files.split('\0').filter(|file| !file.is_empty() && root.join(file).symlink_metadata().is_ok());
    Ok(files.map(str::to_owned).collect())
}

fn walk(root: &Path, below: &str, files: &mut BTreeSet<String>) -> Result<()> {
    let dir = root.join(below);
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if entry.file_type().with_context(|| format!("cannot read {path}"))?.is_dir() {
            let is_output = below.is_empty()
                && (name.starts_with("target") || [".git", ".gpu", ".venv", "runs"].contains(&name.as_str()));
            if !is_output {
                walk(root, &path, files)?;
            }
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A repository of these files, none of which exist.
    pub fn of(files: &[&str]) -> Repository {
        Repository { files: files.iter().map(|file| (*file).to_owned()).collect(), untracked_because: None }
    }

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        dir
    }

    fn files(repository: &Repository) -> Vec<&str> {
        repository.files.iter().map(String::as_str).collect()
    }

    #[test]
    fn without_git_all_files_count_that_nothing_made() {
        let dir = folder_with(&[
            "README.md",
            ".ci/run",
            "docs/a.md",
            "docs/runs/b.md",
            "target/x",
            "target-2/x",
            "runs/x/y",
        ]);
        let repository = Repository::at(dir.path()).unwrap();
        assert_eq!(files(&repository), [".ci/run", "README.md", "docs/a.md", "docs/runs/b.md"]);
        assert_eq!(repository.untracked_because.as_deref(), Some("this is no git checkout"));
    }

    #[test]
    fn a_folder_that_only_looks_like_a_checkout_says_what_git_says() {
        let dir = folder_with(&["a.md", ".git"]);
        let repository = Repository::at(dir.path()).unwrap();
        assert!(files(&repository).contains(&"a.md"));
        assert!(repository.untracked_because.is_some());
    }

    #[test]
    fn with_git_tracked_and_staged_files_count() {
        let dir = folder_with(&["kept.md", "gone.md", "scratch.md", "sub/kept.rs"]);
        let git = |args: &[&str]| {
            Command::new("git")
                .args(args)
                .current_dir(dir.path())
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if !git(&["init", "--quiet"]) {
            println!("skipped: git cannot be started");
            return;
        }
        assert!(git(&["add", "kept.md", "gone.md", "sub"]));
        fs::remove_file(dir.path().join("gone.md")).unwrap();
        let repository = Repository::at(dir.path()).unwrap();
        assert_eq!(repository.untracked_because, None);
        assert_eq!(files(&repository), ["kept.md", "sub/kept.rs"]);
    }

    #[test]
    fn folders_are_held_by_what_is_in_them() {
        let repository = of(&["docs/img/a.png", "docs/img-2/b.png", "xtask/src/main.rs"]);
        for held in ["", "docs", "docs/", "docs/img", "docs/img/", "docs/img/a.png", "xtask/src"] {
            assert!(repository.holds(held), "{held}");
        }
        for missing in ["doc", "docs/im", "docs/img/a", "xtask/src/main.rs/x", "xtask/tests"] {
            assert!(!repository.holds(missing), "{missing}");
        }
        assert_eq!(repository.root_folders().into_iter().collect::<Vec<_>>(), ["docs", "xtask"]);
    }
}
