//! Where NVRTC is looked for beside the folders that the system's loader knows.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the wheels of NVRTC have it, below a folder of Python packages: 13 first, for it is newer.
const IN_PACKAGES: [&str; 4] =
    ["nvidia/cu13/lib", "nvidia/cu13/bin/x86_64", "nvidia/cuda_nvrtc/lib", "nvidia/cuda_nvrtc/bin"];

static PACKAGES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Names folders of Python packages, such as `site-packages`, in which NVRTC is looked for as its wheel lays it out. What counts is what
/// was named before the first kernel is compiled.
pub fn look_for_nvrtc_in(folders: impl IntoIterator<Item = PathBuf>) {
    PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).extend(folders);
}

/// How NVRTC is had within a Python that has named its folders, where its wheel is found by itself.
pub(crate) fn cure_in_python() -> Option<&'static str> {
    let is_python = !PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
    is_python.then_some(
        "pip install 'tidemill[cuda]' ('tidemill[cuda12]' for drivers before 13 and cards before Turing)",
    )
}

/// The folders of NVRTC's wheels.
pub(crate) fn of_packages() -> Vec<PathBuf> {
    let packages = PACKAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let within = |part: &str| packages.iter().map(|folder| folder.join(part)).collect::<Vec<_>>();
    IN_PACKAGES.iter().flat_map(|part| within(part)).collect()
}

/// The folders of a CUDA toolkit.
pub(crate) fn of_toolkit() -> Vec<PathBuf> {
    let of_variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let homes = [of_variable("CUDA_HOME"), of_variable("CUDA_PATH"), Some("/usr/local/cuda".into())];
    let parts = |home: PathBuf| ["lib64", "lib", "bin"].map(|part| Path::new(&home).join(part));
    homes.into_iter().flatten().flat_map(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_wheel_comes_first_in_whichever_folder_it_is() {
        look_for_nvrtc_in(["/one".into(), "/two".into()]);
        let found = of_packages();
        let at = |path: &str| found.iter().position(|folder| folder == Path::new(path)).unwrap();
        assert!(at("/two/nvidia/cu13/lib") < at("/one/nvidia/cuda_nvrtc/lib"));
        assert!(at("/one/nvidia/cu13/lib") < at("/two/nvidia/cu13/lib"));
    }
}
