//! The report beside the trials of a study, so that looking at a study later shows it too.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Report;

/// Name of the file in a study folder.
const FILE: &str = "verdict.json";

/// Writes the report of a study with so many trials; it appears whole or not at all.
pub fn write(dir: &Path, n_trials: u64, report: &Report) -> Result<()> {
    let document = json!({ "version": 1, "trials": n_trials, "holding_up": report });
    let path = dir.join(FILE);
    let draft = dir.join(format!("{FILE}.tmp"));
    let failed = || format!("cannot write {}", path.display());
    std::fs::write(&draft, serde_json::to_vec_pretty(&document)?).with_context(failed)?;
    std::fs::rename(&draft, &path).with_context(failed)
}

/// The report of a study with so many trials, if there is one for as many.
pub fn read(dir: &Path, n_trials: u64) -> Result<Option<Value>> {
    let path: PathBuf = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let mut document: Value = serde_json::from_str(&text).with_context(|| {
        format!("{} is damaged\n  hint: the command of the sweep writes it again", path.display())
    })?;
    let is_of_these = document["version"] == 1 && document["trials"] == n_trials;
    Ok(is_of_these.then(|| document["holding_up"].take()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_back_for_as_many_trials_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), 7).unwrap(), None);
        let report = Report {
            trials: 5,
            independent_trials: 4.5,
            mean_correlation: None,
            sharpe_variance: 0.1,
            noise_variance: 0.01,
            overfit: None,
            benchmark: "buy and hold".into(),
            pool: None,
            winners: Vec::new(),
        };
        write(dir.path(), 7, &report).unwrap();
        assert_eq!(read(dir.path(), 7).unwrap().unwrap()["independent_trials"], 4.5);
        assert_eq!(read(dir.path(), 8).unwrap(), None);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(read(dir.path(), 7).unwrap_err().to_string().contains("is damaged"));
    }
}
