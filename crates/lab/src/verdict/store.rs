//! Stores the verdict beside the trials of a study, for `study show` and the dashboard.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{VerdictReport, headline};
use crate::error::LabError;
use crate::parts::Parts;

/// Name of the file in a study folder.
const FILE: &str = "verdict.json";

/// Writes the report on `n_trials` trials of a study; the file appears whole or not at all.
pub fn write(dir: &Path, n_trials: u64, report: &VerdictReport) -> Result<(), LabError> {
    let document = json!({ "version": 1, "trials": n_trials, "holding_up": report });
    let path = dir.join(FILE);
    let draft = dir.join(format!("{FILE}.tmp"));
    let damaged = |error: serde_json::Error| LabError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
        hint: "report this as a defect",
    };
    std::fs::write(&draft, serde_json::to_vec_pretty(&document).map_err(damaged)?)
        .map_err(LabError::io("write", &path))?;
    std::fs::rename(&draft, &path).map_err(LabError::io("write", &path))
}

/// The stored report, if it is one on `n_trials` trials.
pub fn read(dir: &Path, n_trials: u64) -> Result<Option<Value>, LabError> {
    let path: PathBuf = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError::io("read", &path)(error)),
    };
    let mut document: Value = serde_json::from_str(&text).map_err(|error| LabError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
        hint: "run the same `tidemill sweep` again to rewrite it",
    })?;
    let is_of_these = document["version"] == 1 && document["trials"] == n_trials;
    Ok(is_of_these.then(|| document["holding_up"].take()))
}

/// A winner of a stored report, for those who show it.
#[derive(Clone, Debug)]
pub struct StoredWinner {
    /// Number of the trial.
    pub trial: u64,
    /// The verdict in a line.
    pub headline: String,
    /// Its figures on every part; `None` in a report that an earlier version wrote.
    pub parts: Option<Parts>,
}

/// The winners of a stored report, best first.
pub fn winners(report: &Value) -> Vec<StoredWinner> {
    let winners = report["winners"].as_array().map_or(&[][..], Vec::as_slice);
    let read = |winner: &Value| {
        let trial = winner["trial"].as_u64()?;
        let headline = headline(trial, winner["sentence"].as_str()?);
        Some(StoredWinner { trial, headline, parts: Parts::deserialize(&winner["parts"]).ok() })
    };
    winners.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_back_for_as_many_trials_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), 7).unwrap(), None);
        let report = VerdictReport {
            trials: 5,
            independent_trials: 4.5,
            mean_correlation: None,
            sharpe_variance: 0.1,
            noise_variance: 0.01,
            overfit: None,
            benchmark: "buy and hold".into(),
            pool: None,
            winners: Vec::new(),
            equity: Vec::new(),
        };
        write(dir.path(), 7, &report).unwrap();
        assert_eq!(read(dir.path(), 7).unwrap().unwrap()["independent_trials"], 4.5);
        assert_eq!(read(dir.path(), 8).unwrap(), None);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(read(dir.path(), 7).unwrap_err().to_string().contains("is damaged"));
    }
}
