//! The second pass over the trials of a study: selected rows, and the importance of parameters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use tidemill_search::{ImportanceCounts, Points, StudyFolder, TrialBatch, Value};

use super::survey::Survey;
use crate::error::LabError;
use crate::test_column::{TEST_OBJECTIVE, TEST_PREFIX};

/// One trial.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of the trial.
    pub trial: u64,
    /// Its scores, one per objective; NaN if it is invalid.
    pub objectives: Vec<f64>,
    /// Values of the parameters; `None` where one was not active.
    pub params: Vec<Option<Value>>,
    /// The same as numbers, see `Axis::encode`.
    pub encoded: Vec<f64>,
    /// Values of the metrics; `None` where one is not defined.
    pub metrics: Vec<Option<f64>>,
}

impl Row {
    /// As JSON, with the keys of `tidemill sweep --json`; further objectives follow under the names of their columns.
    pub fn json(&self, survey: &Survey) -> Json {
        let axes = &survey.axes.0;
        let params = axes.iter().zip(&self.params).map(|(axis, value)| (axis.name.clone(), json!(value)));
        let (mut metrics, mut unseen) = (Map::new(), Map::new());
        for (name, value) in survey.metric_names.iter().zip(&self.metrics) {
            match name.strip_prefix(TEST_PREFIX) {
                Some(name) => unseen.insert(name.to_owned(), json!(value)),
                None => metrics.insert(name.clone(), json!(value)),
            };
        }
        let mut row = Map::new();
        row.insert("trial".into(), json!(self.trial));
        for (at, value) in self.objectives.iter().enumerate() {
            let name = if at == 0 { "objective".into() } else { format!("objective_{}", at + 1) };
            row.insert(name, json!(value));
        }
        row.insert("parameters".into(), Json::Object(params.collect()));
        row.insert("metrics".into(), Json::Object(metrics));
        if let Some(objective) = unseen.remove(TEST_OBJECTIVE.trim_start_matches(TEST_PREFIX)) {
            row.insert("out_of_sample".into(), json!({ "objective": objective, "metrics": unseen }));
        }
        Json::Object(row)
    }
}

/// Rows by the numbers of their trials.
pub struct Rows(BTreeMap<u64, Row>);

impl Rows {
    /// The rows of some trials, in the given order.
    pub fn of(&self, trials: &[u64]) -> Vec<&Row> {
        trials.iter().filter_map(|trial| self.0.get(trial)).collect()
    }
}

/// Fetches the rows of some trials.
pub fn fetch(folder: &StudyFolder, survey: &Survey, wanted: &BTreeSet<u64>) -> Result<Rows, LabError> {
    let mut rows = BTreeMap::new();
    let Some(last) = wanted.last() else { return Ok(Rows(rows)) };
    for batch in folder.trials()? {
        let batch = batch?;
        pick(&batch, survey, wanted, &mut rows);
        if batch.trials.last().is_some_and(|trial| trial >= last) {
            break;
        }
    }
    Ok(Rows(rows))
}

/// Fetches the rows of some trials, and the share of each parameter in what makes a trial good.
pub fn fetch_with_importance(
    folder: &StudyFolder,
    survey: &Survey,
    wanted: &BTreeSet<u64>,
) -> Result<(Rows, Vec<f64>), LabError> {
    let mut rows = BTreeMap::new();
    let mut counts = ImportanceCounts::new(&survey.axes.space());
    let are_best = survey.are_best();
    for batch in folder.trials()? {
        let batch = batch?;
        pick(&batch, survey, wanted, &mut rows);
        // A live study has grown since the first look; what is new was not judged.
        let judged: Vec<(usize, bool)> = batch
            .trials
            .iter()
            .enumerate()
            .filter_map(|(row_idx, trial)| Some((row_idx, (*are_best.get(*trial as usize)?)?)))
            .collect();
        if judged.is_empty() {
            continue;
        }
        let columns = survey.axes.0.iter().zip(&batch.params).map(|(axis, (_, column))| {
            let values = axis.encode(column);
            judged.iter().map(|(row_idx, _)| values[*row_idx]).collect()
        });
        let flags: Vec<bool> = judged.iter().map(|(_, is_best)| *is_best).collect();
        counts.add(&Points::from_columns(judged.len(), columns.collect()), &flags);
    }
    Ok((Rows(rows), counts.finish()))
}

fn pick(batch: &TrialBatch, survey: &Survey, wanted: &BTreeSet<u64>, rows: &mut BTreeMap<u64, Row>) {
    let (Some(first), Some(last)) = (batch.trials.first(), batch.trials.last()) else { return };
    let mut encoded: Option<Vec<Vec<f64>>> = None;
    for trial in wanted.range(first..=last) {
        let encoded = encoded.get_or_insert_with(|| {
            survey.axes.0.iter().zip(&batch.params).map(|(axis, (_, column))| axis.encode(column)).collect()
        });
        let row_idx = (trial - first) as usize;
        let row = Row {
            trial: *trial,
            objectives: survey.scores.iter().map(|scores| scores[*trial as usize]).collect(),
            params: batch.params.iter().map(|(_, column)| column.value(row_idx)).collect(),
            encoded: encoded.iter().map(|column| column[row_idx]).collect(),
            metrics: batch.metrics.iter().map(|(_, values)| values[row_idx]).collect(),
        };
        rows.insert(*trial, row);
    }
}
