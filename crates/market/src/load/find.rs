//! From the paths that were given to the files that are read.

use std::fs;
use std::path::{Path, PathBuf};

use super::column::SYMBOL;
use super::foreign::ADDRESS;
use super::name::has_data_name;
use super::progress::size_of;
use crate::error::MarketError;

/// The path that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Partitions deeper than this are no partitions of bars.
const MAX_DEPTH: usize = 8;

/// A file to be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub path: PathBuf,
    /// Whether the path itself was given. One that was only found inside a directory may turn out to be foreign.
    pub is_given: bool,
    /// The symbol that a directory above it names, as in `symbol=BTC/year=2024/0.parquet`.
    pub symbol: Option<String>,
    /// Its bytes, if it is a file and no pipe.
    pub size: Option<u64>,
}

/// Paths with directories replaced by the files inside them and inside their partitions.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<Found>, MarketError> {
    if paths.is_empty() {
        return Err(MarketError::NoPaths);
    }
    let mut files = Vec::new();
    for path in paths {
        let given = |size| Found { path: path.clone(), is_given: true, symbol: None, size };
        if path == Path::new(STDIN) {
            files.push(given(None));
            continue;
        }
        if path.to_string_lossy().contains("://") && !path.exists() {
            let (what, hint) = ADDRESS;
            return Err(MarketError::Foreign { path: path.clone(), what, hint });
        }
        let known = fs::metadata(path).map_err(|source| MarketError::io(path, source))?;
        if !known.is_dir() {
            files.push(given(known.is_file().then_some(known.len())));
            continue;
        }
        let mut inside = Vec::new();
        walk(path, None, 0, &mut inside)?;
        if inside.is_empty() {
            return Err(MarketError::NoFiles { path: path.clone() });
        }
        inside.sort_by(|a, b| a.path.cmp(&b.path));
        files.append(&mut inside);
    }
    Ok(files)
}

/// The files that a load of this path reads, in order; a path that is not there, or has none, is its own.
pub fn files_of(path: &PathBuf) -> Vec<PathBuf> {
    let found = expand(std::slice::from_ref(path));
    found.map_or_else(|_| vec![path.clone()], |files| files.into_iter().map(|found| found.path).collect())
}

/// What Hive, Spark and pyarrow call the partition of rows without a value.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// Collects the files of a directory and of the partitions, `key=value`, inside it.
fn walk(dir: &Path, symbol: Option<&str>, depth: usize, files: &mut Vec<Found>) -> Result<(), MarketError> {
    if depth > MAX_DEPTH {
        return Err(MarketError::PartitionDepth { path: dir.to_path_buf(), limit: MAX_DEPTH });
    }
    for entry in fs::read_dir(dir).map_err(|source| MarketError::io(dir, source))? {
        let path = entry.map_err(|source| MarketError::io(dir, source))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let size = size_of(&path);
        if size.is_some() && has_data_name(&path) {
            files.push(Found { path, is_given: false, symbol: symbol.map(str::to_string), size });
        } else if let Some((key, value)) = name.split_once('=')
            && path.is_dir()
        {
            let is_symbol = SYMBOL.contains(&key.to_ascii_lowercase().as_str());
            let value = unescaped(value);
            // A partition of rows without a symbol names none.
            let is_null = value.trim().is_empty() || value == NULL_PARTITION;
            let named = if is_symbol && !is_null { Some(value.as_str()) } else { symbol };
            walk(&path, named, depth + 1, files)?;
        }
    }
    Ok(())
}

/// The value of a partition: writers put `%2F` for what a directory cannot be called.
fn unescaped(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = code.filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match code.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_partitions_are_unescaped() {
        for (value, expected) in
            [("BTC", "BTC"), ("BTC%2FUSDT", "BTC/USDT"), ("5%", "5%"), ("%zz%3", "%zz%3"), ("%C3%A9", "é")]
        {
            assert_eq!(unescaped(value), expected);
        }
    }
}
