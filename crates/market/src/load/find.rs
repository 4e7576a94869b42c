//! From the paths that were given to the files that are read.

use std::fs;
use std::path::{Path, PathBuf};

use super::name;
use crate::error::MarketError;

/// A file to be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub path: PathBuf,
    /// Whether the path itself was given. One that was only found inside a directory may turn out to be foreign.
    pub is_given: bool,
}

/// Paths with directories replaced by the files inside them.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<Found>, MarketError> {
    if paths.is_empty() {
        return Err(MarketError::NoPaths);
    }
    let mut files = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).map_err(|source| MarketError::io(path, source))?;
        if !metadata.is_dir() {
            files.push(Found { path: path.clone(), is_given: true });
            continue;
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(|source| MarketError::io(path, source))? {
            let entry = entry.map_err(|source| MarketError::io(path, source))?.path();
            if entry.is_file() && has_data_name(&entry) {
                inside.push(entry);
            }
        }
        if inside.is_empty() {
            return Err(MarketError::NoFiles { path: path.clone() });
        }
        inside.sort();
        files.extend(inside.into_iter().map(|path| Found { path, is_given: false }));
    }
    Ok(files)
}

/// Whether a file of a directory is taken for data.
fn has_data_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    !name.starts_with('.') && name::DATA_ENDINGS.iter().any(|end| name.ends_with(end))
}
