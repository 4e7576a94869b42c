//! The folder of runs, and the one place where a name from outside becomes a path.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::answer::Refusal;
use super::source::{RunSource, SourceError};

/// The folder beneath which runs are, or the one run that is shown.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// The root of all names, links resolved.
    base: PathBuf,
    /// The only run, if the folder itself is one.
    only: Option<PathBuf>,
}

impl Folder {
    /// The folder at a path; `is_run` says whether it is itself a run.
    pub(super) fn new(path: &Path, is_run: bool) -> io::Result<Self> {
        let path = path.canonicalize()?;
        match (path.parent(), is_run) {
            (Some(parent), true) => Ok(Self { base: parent.to_owned(), only: Some(path) }),
            _ => Ok(Self { base: path, only: None }),
        }
    }

    /// The folders of all runs with their names, newest first.
    pub(super) fn runs(&self, source: &dyn RunSource) -> Result<Vec<(String, PathBuf)>, SourceError> {
        let dirs = match &self.only {
            Some(only) => vec![only.clone()],
            None => source.runs(&self.base)?,
        };
        Ok(dirs.into_iter().filter_map(|dir| Some((self.name(&dir)?, dir))).collect())
    }

    /// Name of a run: its folder relative to the folder of runs. `None` for a name that no URL can hold.
    fn name(&self, dir: &Path) -> Option<String> {
        let parts: Option<Vec<&str>> =
            dir.strip_prefix(&self.base).ok()?.components().map(|part| part.as_os_str().to_str()).collect();
        Some(parts?.join("/")).filter(|name| !name.is_empty())
    }

    /// The folder of a run. Whatever the name, it lies inside the folder of runs, with all links resolved.
    pub(super) fn locate(&self, name: &str) -> Result<PathBuf, Refusal> {
        let missing = || Refusal::missing(format!("there is no run `{}`", shown(name)));
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(part) if !is_hidden(part));
        let relative = Path::new(name);
        // A backslash and a colon mean something on Windows alone, and a run needs neither.
        let is_odd = name.is_empty() || name.contains(['\\', ':', '\0']);
        if is_odd || !relative.components().all(is_plain) {
            return Err(missing());
        }
        let dir = self.base.join(relative).canonicalize().map_err(|_| missing())?;
        let is_inside = match &self.only {
            Some(only) => dir == *only,
            None => dir.starts_with(&self.base) && dir != self.base,
        };
        if is_inside && dir.is_dir() { Ok(dir) } else { Err(missing()) }
    }

    /// Name of the folder on the page.
    pub(super) fn shown(&self) -> String {
        self.only.as_ref().unwrap_or(&self.base).display().to_string()
    }
}

fn is_hidden(part: &OsStr) -> bool {
    part.as_encoded_bytes().starts_with(b".")
}

/// A name from outside, short and without control characters.
fn shown(name: &str) -> String {
    name.chars().take(80).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        for name in ["runs/a", "runs/deep/b", "runs/.hidden", "outside"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        std::fs::write(runs.join("file"), "").unwrap();
        let folder = Folder::new(&runs, false).unwrap();
        assert!(folder.locate("a").unwrap().ends_with("runs/a"));
        assert!(folder.locate("deep/b").unwrap().ends_with("runs/deep/b"));
        let outside = dir.path().join("outside").display().to_string();
        let bad =
            ["", ".", "..", "../outside", "a/../../outside", "./a", ".hidden", "file", "none", "a\0", "a\\b"];
        for name in bad.into_iter().chain([outside.as_str()]) {
            assert_eq!(folder.locate(name).unwrap_err().status, 404, "{name:?}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(dir.path().join("outside"), runs.join("link")).unwrap();
            std::os::unix::fs::symlink(runs.join("a"), runs.join("inner")).unwrap();
            assert_eq!(folder.locate("link").unwrap_err().status, 404);
            assert!(folder.locate("inner").unwrap().ends_with("runs/a"));
        }
    }

    #[test]
    fn of_a_single_run_the_neighbours_are_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let folder = Folder::new(&dir.path().join("a"), true).unwrap();
        assert!(folder.locate("a").is_ok());
        assert_eq!(folder.locate("b").unwrap_err().status, 404);
    }
}
