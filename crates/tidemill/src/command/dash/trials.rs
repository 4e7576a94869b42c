//! Trials of a study, sorted and filtered.
//!
//! A page is found in one pass that keeps no more rows than the page and those before it, so that memory does not grow with the study, and a live
//! study is always shown as it is now. Neighbours are folded among the first few thousand in the requested order, which are kept for that.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tidemill_backtest::Metric;
use tidemill_dash::web::{
    Cell, Column, ColumnKind, Figure, Fold, SourceError, Trial, TrialPage, TrialQuery, UnseenTrials,
};
use tidemill_search::{StudyFolder, TrialBatch, Value};

use super::source::failed;
use super::table::Table;
use tidemill_lab::neighbour::{Neighbourhood, searched_space};
use tidemill_lab::stored::reopen::backtest_command;
use tidemill_lab::stored::unseen::{UnseenTrial, evaluate_unseen};
use tidemill_lab::{Dataset, StudyConfig};

/// What trials are sorted by: what is not there last, then numbers and texts, equals by their number.
#[derive(Clone, Debug)]
struct SortKey {
    value: Option<SortedTrials>,
    trial: u64,
    is_descending: bool,
}

#[derive(Clone, Debug)]
enum SortedTrials {
    Number(f64),
    Text(String),
}

impl SortKey {
    fn new(cell: Cell<'_>, trial: u64, is_descending: bool) -> Self {
        let value = match cell {
            Cell::Number(value) => Some(SortedTrials::Number(value)),
            Cell::Text(text) => Some(SortedTrials::Text(text.to_owned())),
            Cell::Absent => None,
        };
        Self { value, trial, is_descending }
    }
}

/// The order in which they are listed.
impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = match (&self.value, &other.value) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(SortedTrials::Number(a)), Some(SortedTrials::Number(b))) => a.total_cmp(b),
            (Some(SortedTrials::Text(a)), Some(SortedTrials::Text(b))) => a.cmp(b),
            (Some(SortedTrials::Number(_)), Some(SortedTrials::Text(_))) => Ordering::Less,
            (Some(SortedTrials::Text(_)), Some(SortedTrials::Number(_))) => Ordering::Greater,
        };
        let by_value = if self.is_descending { by_value.reverse() } else { by_value };
        by_value.then(self.trial.cmp(&other.trial))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortKey {}

/// Most trials that are folded into groups: each is compared with those that stand for a group.
const MOST_FOLDED: usize = 5000;

/// A trial that may be listed.
struct Candidate {
    key: SortKey,
    row: Vec<Json>,
    /// Where its parameters are in their ranges, if neighbours are folded.
    units: Vec<f64>,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Candidate {}

/// The trials of the requested page.
pub fn page(study: &StudyFolder, query: &TrialQuery) -> Result<TrialPage, SourceError> {
    let config = StudyConfig::read(study.header());
    let mut batches = study.trials().map_err(|error| failed(&error))?.peekable();
    let table = match batches.peek() {
        Some(Ok(batch)) => Table::new(Some(batch), &config),
        Some(Err(error)) => return Err(failed(error)),
        None => Table::new(None, &config),
    };
    let invalid = |message: String| SourceError::Invalid { message };
    let names = table.names();
    let sort = query.sort.clone().unwrap_or_else(|| names.get(1).unwrap_or(&"trial").to_string());
    let filter = query.filter.bind(&names);
    let mut page = TrialPage {
        columns: Vec::new(),
        sort,
        n_trials: 0,
        n_matched: 0,
        n_folded: None,
        n_rows: 0,
        offset: query.offset,
        counts: Vec::new(),
        rows: Vec::new(),
    };
    // Before the first trial there are no columns to name, and nothing is wrong with naming them.
    if names.len() == 1 {
        return Ok(TrialPage { columns: table.columns, offset: 0, ..page });
    }
    let filter = filter.map_err(|error| invalid(error.to_string()))?;
    let sort_idx = table
        .find(&page.sort)
        .ok_or_else(|| invalid(format!("there is no column `{}` to sort by", page.sort)))?;
    let space = match query.fold {
        Fold::No => None,
        Fold::Groups | Fold::Of(_) => searched_space(&config).map_err(|error| failed(&error))?,
    };
    let mut folding = space.map(|space| (Neighbourhood::of_study(&config, &space), space));
    let n_kept = (query.offset + query.limit).max(if folding.is_some() { MOST_FOLDED } else { 0 });
    // The last of those that are listed is on top.
    let mut kept: BinaryHeap<Candidate> = BinaryHeap::new();
    for batch in batches {
        let batch = batch.map_err(|error| failed(&error))?;
        page.n_trials += batch.trials.len() as u64;
        let points = folding.as_ref().map(|(_, space)| batch.to_points(space));
        if matches!(points, Some(None)) {
            // The text of the strategy does not describe the trials, so that nothing says which are neighbours.
            folding = None;
        }
        for row_idx in 0..batch.trials.len() {
            if !filter.is_open() && !filter.accepts(|column_idx| table.cell(&batch, row_idx, column_idx)) {
                continue;
            }
            page.n_matched += 1;
            let key = SortKey::new(
                table.cell(&batch, row_idx, sort_idx),
                batch.trials[row_idx],
                query.is_descending,
            );
            if kept.len() < n_kept || kept.peek().is_some_and(|last| key < last.key) {
                let units = match (&folding, &points) {
                    (Some((near, space)), Some(Some(points))) => {
                        near.units((0..space.len()).map(|param_idx| points.value(row_idx, param_idx)))
                    }
                    _ => Vec::new(),
                };
                kept.push(Candidate { key, row: table.row(&batch, row_idx), units });
                if kept.len() > n_kept {
                    kept.pop();
                }
            }
        }
    }
    let mut kept = kept.into_sorted_vec();
    page.columns = table.columns;
    let mut groups: Vec<Vec<usize>> = match folding {
        Some((near, _)) => {
            page.n_folded = Some(kept.len() as u64);
            let units: Vec<Vec<f64>> = kept.iter_mut().map(|one| std::mem::take(&mut one.units)).collect();
            near.fold(&units)
        }
        None => (0..kept.len()).map(|at| vec![at]).collect(),
    };
    if let Fold::Of(trial) = query.fold {
        groups.retain(|group| kept[group[0]].key.trial == trial);
        groups = groups.into_iter().flatten().map(|at| vec![at]).collect();
    }
    page.n_rows = if page.n_folded.is_some() { groups.len() as u64 } else { page.n_matched };
    for group in groups.iter().skip(query.offset).take(query.limit) {
        page.counts.push(group.len() as u64);
        page.rows.push(std::mem::take(&mut kept[group[0]].row));
    }
    Ok(page)
}

/// Some trials out of sample; nothing if the study has no such part.
pub fn unseen(
    study: &StudyFolder,
    data: impl FnOnce() -> Result<Arc<Dataset>, SourceError>,
    trials: &[u64],
) -> Result<UnseenTrials, SourceError> {
    let config = StudyConfig::read(study.header());
    if config.segments.split.is_none() && config.segments.cut_ms.is_none() {
        return Ok(UnseenTrials::default());
    }
    let columns = Table::unseen(&config);
    let wanted = trials.iter().copied().collect();
    let unseen = evaluate_unseen(study, data()?, &wanted).map_err(|error| failed(&error))?;
    if unseen.is_empty() {
        return Ok(UnseenTrials::default());
    }
    let value = |one: &UnseenTrial, metric: Option<Metric>| match metric {
        Some(metric) => json!(one.metrics.get(metric)),
        None => json!(one.objective),
    };
    let row = |one: &UnseenTrial| {
        (one.trial, columns.iter().map(|(_, metric)| value(one, *metric)).collect::<Vec<Json>>())
    };
    let rows = unseen.iter().map(row).collect();
    Ok(UnseenTrials { rows, columns: columns.into_iter().map(|(column, _)| column).collect() })
}

/// A trial's parameters; `None` where one was not active.
pub type Params = Vec<(String, Option<Value>)>;

/// One trial with its parameters.
pub fn one(study: &StudyFolder, trial: u64) -> Result<(Trial, Params), SourceError> {
    let config = StudyConfig::read(study.header());
    let mut found: Option<(Vec<Figure>, Params, Option<f64>)> = None;
    let mut scores = Vec::new();
    for batch in study.trials().map_err(|error| failed(&error))? {
        let batch = batch.map_err(|error| failed(&error))?;
        scores.extend(batch.scores.iter().filter_map(|score| score.value()));
        if let Some(row_idx) = batch.trials.iter().position(|number| *number == trial) {
            found = Some((
                figures(&batch, row_idx, &config),
                params(&batch, row_idx),
                batch.scores[row_idx].value(),
            ));
        }
    }
    let Some((figures, params, score)) = found else {
        return Err(SourceError::Missing { what: format!("there is no trial {trial} in this study") });
    };
    let rank = score.map(|score| 1 + scores.iter().filter(|other| **other > score).count() as u64);
    let n_trials = study.n_trials().map_err(|error| failed(&error))?;
    // The reader's terminal may be in another folder.
    let dir = std::path::absolute(study.dir()).unwrap_or_else(|_| study.dir().to_owned());
    let command = backtest_command(&config, &dir, trial);
    Ok((Trial { trial, rank, n_trials, figures, command }, params))
}

fn figures(batch: &TrialBatch, row_idx: usize, config: &StudyConfig) -> Vec<Figure> {
    let table = Table::new(Some(batch), config);
    let row = table.row(batch, row_idx);
    let is_told = |column: &Column| column.kind != ColumnKind::Trial;
    let figures = table.columns.into_iter().zip(row).filter(|(column, _)| is_told(column));
    figures.map(|(column, value)| Figure { column, value }).collect()
}

fn params(batch: &TrialBatch, row_idx: usize) -> Params {
    batch.params.iter().map(|(name, column)| (name.clone(), column.value(row_idx))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_listed_last_either_way() {
        for is_descending in [false, true] {
            let cells =
                [Cell::Number(2.0), Cell::Absent, Cell::Number(3.0), Cell::Number(2.0), Cell::Number(-1.0)];
            let mut keys: Vec<SortKey> = cells
                .into_iter()
                .zip(0..)
                .map(|(cell, trial)| SortKey::new(cell, trial, is_descending))
                .collect();
            keys.sort();
            let order: Vec<u64> = keys.iter().map(|key| key.trial).collect();
            let expected = if is_descending { [2, 0, 3, 4, 1] } else { [4, 0, 3, 2, 1] };
            assert_eq!(order, expected);
        }
    }
}
