//! Stores the verdict beside the trials of a study, for `study show` and the dashboard.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::VerdictReport;
use crate::error::LabError;

/// Name of the file in a study folder.
pub const FILE: &str = "verdict.json";

/// Writes the report on `n_trials` trials of a study; the file appears whole or not at all.
///
/// A stored report on as many trials or more that judges more winners stays, and `false` is returned: a run that shows fewer trials must not
/// take a verdict away.
pub fn write(dir: &Path, n_trials: u64, report: &VerdictReport) -> Result<bool, LabError> {
    let n_winners = |stored: &Value| stored["holding_up"]["winners"].as_array().map_or(0, Vec::len);
    if let Ok(Some(stored)) = document(dir)
        && stored["trials"].as_u64() >= Some(n_trials)
        && n_winners(&stored) > report.winners.len()
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

#[cfg(test)]
mod tests {
    use tidemill_verdict::{Evidence, Standard, Verdict};

    use super::*;
    use crate::verdict::{Objectives, Sharpes, Winner};

    fn report(trials: &[u64]) -> VerdictReport {
        let winner = |trial: &u64| Winner {
            trial: *trial,
            verdict: Verdict::new(&Evidence::default(), &Standard::default()),
            sentence: String::new(),
            sharpe: Sharpes::default(),
            objective: Objectives::default(),
            moments: None,
            probabilistic: None,
            deflated: None,
            deflated_by_spread: None,
            deflated_beyond_market: None,
            market: None,
            min_track_record_days: None,
            neighbors: None,
            trades: None,
        };
        VerdictReport {
            trials: 5,
            independent_trials: 4.5,
            mean_correlation: None,
            sharpe_variance: 0.1,
            noise_variance: 0.01,
            overfit: None,
            benchmark: "buy and hold".into(),
            pool: None,
            winners: trials.iter().map(winner).collect(),
        }
    }

    #[test]
    fn a_report_is_read_back_for_as_many_trials_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), 7).unwrap(), None);
        assert!(write(dir.path(), 7, &report(&[])).unwrap());
        assert_eq!(read(dir.path(), 7).unwrap().unwrap()["independent_trials"], 4.5);
        assert_eq!(read(dir.path(), 8).unwrap(), None);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(read(dir.path(), 7).unwrap_err().to_string().contains("is damaged"));
        assert!(write(dir.path(), 7, &report(&[])).unwrap(), "a damaged one is replaced");
    }

    #[test]
    fn a_report_with_fewer_winners_does_not_replace_one_with_more() {
        let dir = tempfile::tempdir().unwrap();
        let winners = |n_trials: u64| {
            let stored = read(dir.path(), n_trials).unwrap()?;
            let trial = |winner: &Value| winner["trial"].as_u64().unwrap();
            Some(stored["winners"].as_array().unwrap().iter().map(trial).collect::<Vec<u64>>())
        };
        assert!(write(dir.path(), 7, &report(&[3, 1])).unwrap());
        assert!(!write(dir.path(), 7, &report(&[3])).unwrap());
        assert!(!write(dir.path(), 6, &report(&[3])).unwrap());
        assert_eq!(winners(7), Some(vec![3, 1]));
        // As many are judged anew, and more trials are another study to judge.
        assert!(write(dir.path(), 7, &report(&[3, 2])).unwrap());
        assert_eq!(winners(7), Some(vec![3, 2]));
        assert!(write(dir.path(), 8, &report(&[5])).unwrap());
        assert_eq!((winners(7), winners(8)), (None, Some(vec![5])));
    }
}
