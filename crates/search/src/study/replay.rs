//! Resuming: replays the stored trials through the sampler, which brings it to the state it had.
//!
//! Samplers are pure state machines, so that asking and telling in the same order gives the same points. They are compared with the
//! stored ones, because a study that resumes from another state than it had would be worthless without any sign of it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::folder::{StudyFolder, TrialBatch};
use crate::point::Points;
use crate::score::Scores;
use crate::space::Space;
use crate::study::error::StudyError;
use crate::study::evaluator::{Batch, Evaluated};
use crate::study::in_flight::Finished;
use crate::study::schedule::Schedule;

/// Where a study stands after its replay.
#[derive(Default)]
pub(super) struct Replayed {
    /// Batches that are evaluated and not yet told.
    pub(super) untold: VecDeque<Finished>,
    /// The batch that was asked and is not wholly stored, if any.
    pub(super) unfinished: Option<UnfinishedBatch>,
    /// Number of stored trials.
    pub(super) n_trials: u64,
    /// Whether it was told to stop on the way.
    pub(super) is_stopped: bool,
}

/// A batch of which the first trials are stored: it was the last one of a study that has got more trials since, or files were lost.
pub(super) struct UnfinishedBatch {
    /// All of it.
    pub(super) whole: Batch,
    /// Scores of the trials that are stored.
    stored: Scores,
}

impl UnfinishedBatch {
    /// The trials that are not stored, as a batch to evaluate.
    pub(super) fn rest(&self) -> Batch {
        let n_stored = self.stored.len();
        let mut points = Points::new(self.whole.points.n_params());
        points.extend_from(&self.whole.points, n_stored..self.whole.points.len());
        let first_trial = self.whole.first_trial + n_stored as u64;
        Batch { index: self.whole.index, first_trial, points: Arc::new(points) }
    }

    /// The scores of all of it, given those of the rest.
    pub(super) fn scores(&self, rest: &Scores) -> Scores {
        let n_trials = self.stored.len() + rest.len();
        let column = |idx: usize| [self.stored.column(idx), rest.column(idx)].concat();
        Scores::from_columns(n_trials, (0..rest.n_objectives()).map(column).collect())
    }
}

/// Replays the trials of a folder; `observe` sees each batch, and what is stored of an unfinished one.
pub(super) fn replay(
    schedule: &mut Schedule,
    folder: &StudyFolder,
    space: &Space,
    is_stopped: impl Fn() -> bool,
    mut observe: impl FnMut(&Finished),
) -> Result<Replayed, StudyError> {
    let mut replayed = Replayed::default();
    let mut rows = folder.trials()?.rows();
    loop {
        schedule.turn()?;
        let Some(stored) = rows.next(schedule.next_len()) else { break };
        let stored = stored?;
        if is_stopped() {
            replayed.is_stopped = true;
            break;
        }
        tell_due(schedule, &mut replayed.untold)?;
        let first_trial = stored.trials.first().copied().unwrap_or(0);
        let n_stored = stored.trials.len();
        let Some(batch) = schedule.ask()?.filter(|batch| n_stored <= batch.points.len()) else {
            let problem = "and those after it are beyond the requested number".to_owned();
            return Err(StudyError::Replay { trial: first_trial, problem });
        };
        compare(space, &stored, &batch.points)?;
        replayed.n_trials += n_stored as u64;
        let evaluated = Evaluated { scores: stored.to_scores(), metrics: stored.to_metrics() };
        if n_stored < batch.points.len() {
            let points = Arc::new(Points::clone(&batch.points).first(n_stored));
            let part = Batch { points, ..batch.clone() };
            let stored = evaluated.scores.clone();
            observe(&Finished { batch: part, evaluated: Arc::new(evaluated) });
            replayed.unfinished = Some(UnfinishedBatch { whole: batch, stored });
            break;
        }
        let finished = Finished { batch, evaluated: Arc::new(evaluated) };
        observe(&finished);
        replayed.untold.push_back(finished);
    }
    Ok(replayed)
}

/// Tells what must be told before the next ask.
fn tell_due(schedule: &mut Schedule, untold: &mut VecDeque<Finished>) -> Result<(), StudyError> {
    while schedule.is_tell_due() {
        let Some(oldest) = untold.pop_front() else { break };
        schedule.tell(&oldest.batch.points, &oldest.evaluated.scores)?;
    }
    Ok(())
}

/// Checks that stored trials are the first of the points that the sampler proposed.
fn compare(space: &Space, stored: &TrialBatch, points: &Points) -> Result<(), StudyError> {
    let n_stored = stored.trials.len();
    let trial = |row: usize| stored.trials.get(row).copied().unwrap_or(0);
    let Some(known) = stored.to_points(space) else {
        let problem = "has other parameters than are searched now".to_owned();
        return Err(StudyError::Replay { trial: trial(0), problem });
    };
    let is_same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    for (param_idx, param) in space.params.iter().enumerate() {
        let (known, asked) = (&known.column(param_idx)[..n_stored], &points.column(param_idx)[..n_stored]);
        // Options that read alike are stored alike.
        let text = |value: f64| param.domain.decode(value).map(|value| value.to_string());
        let wrong = (0..n_stored)
            .find(|row| !is_same(known[*row], asked[*row]) && text(known[*row]) != text(asked[*row]));
        if let Some(row) = wrong {
            let shown = |value: f64| text(value).unwrap_or_else(|| "inactive".to_owned());
            let problem = format!(
                "has {} = {} where the sampler proposes {}",
                param.name,
                shown(known[row]),
                shown(asked[row])
            );
            return Err(StudyError::Replay { trial: trial(row), problem });
        }
    }
    Ok(())
}
