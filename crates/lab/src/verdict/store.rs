//! Stores the verdict beside the trials of a study, for `study show` and the dashboard.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{VerdictReport, headline};
use crate::error::LabError;
use crate::parts::Parts;

/// Name of the file in a study folder.
pub const FILE: &str = "verdict.json";

/// Writes the report on `n_trials` trials of a study; the file appears whole or not at all.
///
/// A stored report on as many trials or more that judges more winners stays, and `false` is returned: a run that shows fewer trials must not
/// take a verdict away.
pub fn write(dir: &Path, n_trials: u64, report: &VerdictReport) -> Result<bool, LabError> {
    if let Ok(Some(stored)) = document(dir)
        && says_more(&stored, n_trials, report.winners.len())
    {
        return Ok(false);
    }
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
    std::fs::rename(&draft, &path).map_err(LabError::io("write", &path))?;
    Ok(true)
}

/// Whether a stored document judges more winners of as many trials, or of more.
fn says_more(stored: &Value, n_trials: u64, n_winners: usize) -> bool {
    let n_stored = stored["holding_up"]["winners"].as_array().map_or(0, Vec::len);
    stored["trials"].as_u64() >= Some(n_trials) && n_stored > n_winners
}

/// The stored report, if it is one on `n_trials` trials.
pub fn read(dir: &Path, n_trials: u64) -> Result<Option<Value>, LabError> {
    let document = document(dir)?.filter(|document| document["trials"] == n_trials);
    Ok(document.map(|mut document| document["holding_up"].take()))
}

/// What the file holds, if it is there and of this version.
fn document(dir: &Path) -> Result<Option<Value>, LabError> {
    let path: PathBuf = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError::io("read", &path)(error)),
    };
    let document: Value = serde_json::from_str(&text).map_err(|error| LabError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
        hint: "`tidemill study judge` of the folder rewrites it",
    })?;
    Ok(Some(document).filter(|document| document["version"] == 1))
}

/// A winner of a stored report, for those who show it.
#[derive(Clone, Debug, Serialize)]
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
        assert!(write(dir.path(), 7, &report).unwrap());
        assert_eq!(read(dir.path(), 7).unwrap().unwrap()["independent_trials"], 4.5);
        assert_eq!(read(dir.path(), 8).unwrap(), None);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(read(dir.path(), 7).unwrap_err().to_string().contains("is damaged"));
        assert!(write(dir.path(), 7, &report).unwrap(), "a damaged one is replaced");
        let two = r#"{ "version": 1, "trials": 7, "holding_up": { "winners": [{}, {}] } }"#;
        std::fs::write(dir.path().join(FILE), two).unwrap();
        assert!(!write(dir.path(), 7, &report).unwrap());
        assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).unwrap(), two);
        assert!(write(dir.path(), 8, &report).unwrap(), "of more trials it is another verdict");
    }

    #[test]
    fn a_report_with_fewer_winners_does_not_replace_one_with_more() {
        let stored = json!({ "trials": 7, "holding_up": { "winners": [{}, {}] } });
        let says_more = |n_trials, n_winners| super::says_more(&stored, n_trials, n_winners);
        assert!(says_more(7, 1) && says_more(6, 1));
        assert!(!says_more(7, 2) && !says_more(8, 1) && !says_more(8, 0));
    }
}
