//! NVRTC for the tests: the compiler library of CUDA, from PyPI, in a virtual environment under the target folder.
//!
//! With it every kernel is compiled for a GPU on machines that have none. There are two: 13.0, which the tests use, and 12.9, the last one
//! for cards before Turing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A version of NVRTC.
pub struct Version {
    /// What pip installs.
    package: &'static str,
    /// Folder of its virtual environment, under the target folder.
    environment: &'static str,
    /// Name it has for the tests that compile with all versions.
    pub variable: &'static str,
}

/// The one that tests use where only one is needed.
pub const NEWER: Version =
    Version { package: "nvidia-cuda-nvrtc==13.0.*", environment: "nvrtc", variable: "TIDEMILL_NVRTC_13" };

/// The last one for Pascal and Volta.
pub const OLDER: Version = Version {
    package: "nvidia-cuda-nvrtc-cu12==12.9.*",
    environment: "nvrtc-12",
    variable: "TIDEMILL_NVRTC_12",
};

/// The folder that holds the library, installed if it is not there yet.
pub fn folder(version: &Version, target_dir: &Path) -> Result<PathBuf> {
    let environment = target_dir.join(version.environment);
    crate::environment::with(&environment, &[version.package])?;
    library_folder(&environment).context("the package holds no library")
}

/// The folder under this one that holds NVRTC itself.
fn library_folder(dir: &Path) -> Option<PathBuf> {
    let is_library = |name: &str| name.starts_with("libnvrtc.so") || name.starts_with("nvrtc64_");
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        if is_library(&entry.file_name().to_string_lossy()) {
            return Some(dir.to_owned());
        }
        // Not through links, which may lead back.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.push(entry.path());
        }
    }
    folders.iter().find_map(|folder| library_folder(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_wherever_the_package_puts_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(library_folder(dir.path()), None);
        let folder = dir.path().join("lib/python3/site-packages/nvidia/cu13/lib");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libnvrtc-builtins.so.13.0"), "").unwrap();
        assert_eq!(library_folder(dir.path()), None, "the helper alone is not it");
        std::fs::write(folder.join("libnvrtc.so.13"), "").unwrap();
        assert_eq!(library_folder(dir.path()), Some(folder));
    }

    #[test]
    fn what_is_installed_is_not_installed_again() {
        let dir = tempfile::tempdir().unwrap();
        for version in [NEWER, OLDER] {
            let environment = dir.path().join(version.environment);
            let lib = environment.join("lib");
            std::fs::create_dir_all(&lib).unwrap();
            std::fs::write(lib.join("libnvrtc.so.13"), "").unwrap();
            std::fs::write(environment.join("installed"), version.package).unwrap();
            assert_eq!(folder(&version, dir.path()).unwrap(), lib);
        }
    }
}
