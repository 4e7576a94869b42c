//! Parts of a study, searched apart, as the study that they are parts of.
//!
//! The study is searched once more, with its sampler, its folder and its verdict, but what evaluates its trials are the parts: each trial is
//! looked up, and its parameters must be those that the sampler proposes. So a merged study is the same as one that was never cut.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidemill_search::folder::Trials;
use tidemill_search::{Batch, EvaluateError, Evaluated, Evaluator, Points, Scores, Space, TrialBatch};

use super::state::has_log;
use super::{State, StoredStudy};
use crate::dataset::Dataset;
use crate::error::LabError;
use crate::number;
use crate::part::StudyPart;
use crate::runtime::Runtime;
use crate::sweep::Sweep;

/// The search that puts parts together in a folder. All parts must be there, complete, and of one study.
pub fn merge(
    dirs: &[PathBuf],
    out: &Path,
    data: impl FnOnce(&StoredStudy) -> Result<Arc<Dataset>, LabError>,
    runtime: Runtime,
) -> Result<Sweep, LabError> {
    let wrong = |dir: &Path, reason: String| LabError::Part { dir: dir.to_owned(), reason };
    let mut parts = Vec::new();
    for dir in dirs {
        let study = StoredStudy::open(dir)?;
        let part = study.config.sweep.part.as_deref().and_then(|part| part.parse::<StudyPart>().ok());
        let part = part.ok_or_else(|| wrong(dir, "it is a whole study, and no part of one".into()))?;
        parts.push((part, study));
    }
    parts.sort_by_key(|(part, _)| part.number());
    let Some((first, study)) = parts.first() else {
        return Err(wrong(out, "no parts were named".into()));
    };
    let found: BTreeSet<u64> = parts.iter().map(|(part, _)| part.number()).collect();
    let missing: Vec<String> =
        (1..=first.of()).filter(|number| !found.contains(number)).map(|number| number.to_string()).collect();
    for pair in parts.windows(2) {
        let [(part, one), (next, other)] = pair else { continue };
        if part.number() == next.number() {
            let dirs = [one, other].map(|study| study.folder.dir().display().to_string());
            return Err(wrong(out, format!("part {part} is named twice: {} and {}", dirs[0], dirs[1])));
        }
    }
    if !missing.is_empty() {
        let reason = format!("of {} parts these are missing: {}", first.of(), missing.join(", "));
        return Err(wrong(out, reason));
    }
    let mut whole = study.clone();
    whole.config.sweep.part = None;
    let header = |study: &StoredStudy| {
        let mut config = study.config.clone();
        config.sweep.part = None;
        config.header()
    };
    for (part, other) in &parts {
        if part.of() != first.of() {
            let reason = format!("it is part {part}, and {} is part {first}", study.folder.dir().display());
            return Err(wrong(other.folder.dir(), reason));
        }
        let differences = header(study)?.differences(&header(other)?);
        if !differences.is_empty() {
            let list: String = differences.iter().map(|difference| format!("\n  {difference}")).collect();
            return Err(wrong(other.folder.dir(), format!("it is a part of another study{list}")));
        }
        let n_trials = other.folder.n_trials()?;
        let state = other.state(n_trials);
        // Where there are fewer trials than there may be, of a grid or of many parts, some parts have none.
        let is_empty = n_trials == 0 && !has_log(other.folder.dir());
        if state != State::Complete && !is_empty {
            let reason = format!(
                "it is not complete: it has {} and is {}\n  hint: run its command again, which goes on where it stopped",
                number::counted(n_trials, "trial"),
                state.name()
            );
            return Err(wrong(other.folder.dir(), reason));
        }
    }
    let data = data(study)?;
    let sweep = whole.sweep(Some(data), None, runtime)?;
    let dirs = parts.iter().map(|(_, study)| study.folder.dir().to_owned()).collect();
    Ok(sweep.folder(out).looking_up(dirs))
}

/// Looks trials up in place of evaluating them, part after part.
pub(crate) struct StoredParts<'a> {
    space: &'a Space,
    dirs: VecDeque<PathBuf>,
    /// The trials of the part that is read now.
    trials: Option<Trials>,
    /// Trials that were read, and how many of them were asked for.
    read: Option<(TrialBatch, usize)>,
    /// Trials that were looked up or passed over.
    n_done: u64,
    submitted: VecDeque<Batch>,
    current: PathBuf,
}

impl<'a> StoredParts<'a> {
    pub(crate) fn new(space: &'a Space, dirs: &[PathBuf]) -> Self {
        let dirs: VecDeque<PathBuf> = dirs.iter().cloned().collect();
        let current = dirs.front().cloned().unwrap_or_default();
        Self { space, dirs, trials: None, read: None, n_done: 0, submitted: VecDeque::new(), current }
    }

    fn wrong(&self, reason: String) -> EvaluateError {
        LabError::Part { dir: self.current.clone(), reason }.into()
    }

    /// The next trials, at most so many.
    fn next(&mut self, n_most: usize) -> Result<(Points, Evaluated), EvaluateError> {
        loop {
            if let Some((batch, at)) = &mut self.read
                && *at < batch.trials.len()
            {
                let rows = *at..(*at + n_most).min(batch.trials.len());
                *at = rows.end;
                self.n_done += rows.len() as u64;
                let points = batch.to_points(self.space);
                let (scores, metrics) = (batch.to_scores(), batch.to_metrics());
                let Some(all) = points else {
                    return Err(self.wrong("its trials do not have the parameters of the study".into()));
                };
                let mut points = Points::new(all.n_params());
                points.extend_from(&all, rows.clone());
                let cut = |column: &[f64]| column[rows.clone()].to_vec();
                let columns =
                    (0..scores.n_objectives()).map(|objective| cut(scores.column(objective))).collect();
                let evaluated = Evaluated {
                    scores: Scores::from_columns(rows.len(), columns),
                    metrics: metrics.iter().map(|column| cut(column)).collect(),
                };
                return Ok((points, evaluated));
            }
            match self.trials.as_mut().and_then(Iterator::next).transpose()? {
                Some(batch) => self.read = Some((batch, 0)),
                None => match self.dirs.pop_front() {
                    Some(dir) => {
                        self.trials = Some(tidemill_search::read_trials(&dir)?);
                        self.current = dir;
                    }
                    None => return Err(self.wrong("a part is not complete: trials are missing\n  hint: run its command again, which goes on where it stopped".into())),
                },
            }
        }
    }
}

impl Evaluator for StoredParts<'_> {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        self.submitted.push_back(batch);
        Ok(())
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        let batch = self.submitted.pop_front().ok_or("nothing was submitted")?;
        let n_rows = batch.points.len();
        // What was merged before an interruption is in the folder already.
        while self.n_done < batch.first_trial {
            let n_left = batch.first_trial - self.n_done;
            self.next(usize::try_from(n_left).unwrap_or(usize::MAX))?;
        }
        let mut found: Option<(Points, Vec<Vec<f64>>, usize)> = None;
        while found.as_ref().map_or(0, |(points, ..)| points.len()) < n_rows {
            let n_known = found.as_ref().map_or(0, |(points, ..)| points.len());
            let (points, Evaluated { scores, metrics }) = self.next(n_rows - n_known)?;
            let n_objectives = scores.n_objectives();
            let columns = (0..n_objectives).map(|objective| scores.column(objective).to_vec()).chain(metrics);
            match &mut found {
                None => found = Some((points, columns.collect(), n_objectives)),
                Some((known, values, _)) => {
                    known.extend_from(&points, 0..points.len());
                    values.iter_mut().zip(columns).for_each(|(column, more)| column.extend(more));
                }
            }
        }
        let (points, mut columns, n_objectives) = found.ok_or("a batch without trials")?;
        let bits = |points: &Points, param: usize| {
            let bits = |value: &f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
            points.column(param).iter().map(bits).collect::<Vec<_>>()
        };
        if (0..points.n_params()).any(|param| bits(&points, param) != bits(&batch.points, param)) {
            let reason = format!(
                "among trials {} to {} there are others than the study has: a part is not complete, or was changed\n  hint: run its command again",
                batch.first_trial,
                batch.first_trial + n_rows as u64 - 1
            );
            return Err(self.wrong(reason));
        }
        let metrics = columns.split_off(n_objectives);
        Ok(Evaluated { scores: Scores::from_columns(n_rows, columns), metrics })
    }
}
