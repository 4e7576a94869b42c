//! Studies side by side: the settings that differ, how good their best trials are on each part of the data, how fast they got there.

mod table;

use std::collections::BTreeSet;

use serde::Serialize;
use tidemill_search::StudyHeader;

use super::StoredStudy;
use super::survey::{Survey, thinned};
use crate::error::LabError;
use crate::verdict::store::{StoredWinner, winners};

pub use table::ComparisonTable;

/// Most improvements that are kept of a study.
const MOST_IMPROVEMENTS: usize = 1000;

/// Studies that are compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Each study, as they were named.
    pub studies: Vec<ComparedStudy>,
    /// The settings in which they differ.
    pub settings: Vec<DifferingSetting>,
    /// Why figures must not be compared, where they must not.
    pub warnings: Vec<String>,
}

/// What is compared of a study.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedStudy {
    /// The folder as it was named.
    pub study: String,
    /// Whether it runs, is complete or was stopped.
    pub state: &'static str,
    /// Finished trials.
    pub trials: u64,
    /// Those with a score.
    pub valid: u64,
    /// The first objective.
    pub objective: String,
    /// Number of the trial that is best in it, and its value.
    pub best: Option<(u64, f64)>,
    /// The first judged winner with its figures on every part of the data.
    pub judged: Option<StoredWinner>,
    /// Trials that were better than all before, with their values.
    pub improvements: Vec<(u64, f64)>,
}

/// A setting, and its value in each study; `None` where it is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingSetting {
    /// Its name with those of its tables, `sweep.sampler`.
    pub name: String,
    /// By study.
    pub values: Vec<Option<String>>,
}

impl Comparison {
    /// Compares studies that are on disk.
    pub fn new(studies: &[StoredStudy]) -> Result<Self, LabError> {
        let compared: Vec<ComparedStudy> =
            studies.iter().map(ComparedStudy::new).collect::<Result<_, _>>()?;
        let mut warnings = Vec::new();
        let differ =
            |of: &dyn Fn(&StoredStudy) -> String| studies.iter().map(of).collect::<BTreeSet<_>>().len() > 1;
        if differ(&|study| study.config.objective.maximize.join("; ")) {
            warnings.push("the objectives differ: compare Sharpe ratios and returns, not objectives".into());
        }
        if differ(&|study| study.config.data_hash.clone()) {
            warnings.push("the data differs: a better figure may be a better market".into());
        } else if differ(&|study| format!("{:?}", study.config.segments)) {
            warnings.push("the data is cut differently: figures are of different times".into());
        }
        if differ(&|study| study.config.semantics.to_string()) {
            warnings.push("the studies were made under different semantics".into());
        }
        Ok(Self { studies: compared, settings: settings(studies), warnings })
    }

    /// Numbers of trials at which convergence is compared: powers of ten, and the length of the longest study.
    pub fn milestones(&self) -> Vec<u64> {
        let longest = self.studies.iter().map(|study| study.trials).max().unwrap_or(0);
        let powers = std::iter::successors(Some(10_u64), |n| n.checked_mul(10)).take_while(|n| *n < longest);
        powers.chain((longest > 0).then_some(longest)).collect()
    }
}

impl ComparedStudy {
    fn new(study: &StoredStudy) -> Result<Self, LabError> {
        let survey = study.survey()?;
        let verdict = study.verdict(survey.n_trials)?;
        let Survey { n_trials, n_valid, ref improvements, .. } = survey;
        let improvements = improvements.first().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            study: study.folder.dir().display().to_string(),
            state: study.state(n_trials).name(),
            trials: n_trials,
            valid: n_valid,
            objective: study.config.objective_names(survey.n_objectives()).swap_remove(0),
            best: improvements.last().copied(),
            judged: verdict.as_ref().and_then(|verdict| winners(verdict).into_iter().next()),
            improvements: thinned(improvements.len(), MOST_IMPROVEMENTS).map(|at| improvements[at]).collect(),
        })
    }

    /// The best value among the first `n` trials; `None` if there are fewer, or none is valid.
    pub fn best_after(&self, n: u64) -> Option<f64> {
        let known = self.improvements.partition_point(|(trial, _)| *trial < n);
        (n <= self.trials).then(|| known.checked_sub(1).map(|at| self.improvements[at].1))?
    }
}

/// The settings in which studies differ. Strategies that say the same in other words do not.
fn settings(studies: &[StoredStudy]) -> Vec<DifferingSetting> {
    let Some(first) = studies.first() else { return Vec::new() };
    let headers: Vec<StudyHeader> =
        studies.iter().map(|study| first.config.worded_alike(study.folder.header())).collect();
    let all: Vec<_> = headers.iter().map(StudyHeader::settings).collect();
    let names: BTreeSet<&String> = all.iter().flat_map(|settings| settings.keys()).collect();
    let mut differing = Vec::new();
    for name in names {
        let mut values: Vec<Option<String>> =
            all.iter().map(|settings| settings.get(name).cloned()).collect();
        if values.iter().all(|value| *value == values[0]) {
            continue;
        }
        let mut name = name.as_str();
        if name == "strategy.source" {
            only_differing_line(&mut values);
        } else if name == "data_hash" {
            name = "data";
            values = studies.iter().map(|study| Some(data_name(study))).collect();
        }
        differing.push(DifferingSetting { name: name.to_owned(), values });
    }
    differing
}

/// The data of a study in words, with the beginning of its hash, because other data may have the same words.
fn data_name(study: &StoredStudy) -> String {
    let hash: String = study.config.data_hash.chars().take(8).collect();
    study.config.data_text().map_or_else(|| hash.clone(), |text| format!("{text} ({hash})"))
}

/// Of texts, the first line in which they differ.
fn only_differing_line(values: &mut [Option<String>]) {
    let lines: Vec<Vec<&str>> =
        values.iter().map(|value| value.as_deref().unwrap_or_default().lines().collect()).collect();
    let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
    let at = (0..longest).find(|at| lines.iter().any(|own| own.get(*at) != lines[0].get(*at)));
    let Some(at) = at else { return };
    let line = |own: &Vec<&str>| own.get(at).map(|line| format!("line {}: {}", at + 1, line.trim()));
    let found: Vec<Option<String>> = lines.iter().map(line).collect();
    values.clone_from_slice(&found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_their_first_line_that_differs() {
        let mut values = ["a\nb = 1\nc", "a\nb = 2\nd", "a"].map(|text| Some(text.to_owned()));
        only_differing_line(&mut values);
        assert_eq!(values, [Some("line 2: b = 1".into()), Some("line 2: b = 2".into()), None]);
    }

    #[test]
    fn the_best_so_far_is_known_only_as_far_as_a_study_goes() {
        let study = ComparedStudy {
            study: "a".into(),
            state: "complete",
            trials: 50,
            valid: 2,
            objective: "sharpe".into(),
            best: Some((7, 2.0)),
            judged: None,
            improvements: vec![(3, 1.0), (7, 2.0)],
        };
        assert_eq!(
            [3, 4, 8, 50, 51].map(|n| study.best_after(n)),
            [None, Some(1.0), Some(2.0), Some(2.0), None]
        );
        let comparison = Comparison { studies: vec![study], settings: Vec::new(), warnings: Vec::new() };
        assert_eq!(comparison.milestones(), [10, 50]);
    }
}
