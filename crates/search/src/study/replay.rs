//! Resuming: replays the stored trials through the sampler, which brings it to the state it had.
//!
//! Samplers are pure state machines, so that asking and telling in the same order gives the same points. They are compared with the
//! stored ones, because a study that resumes from another state than it had would be worthless without any sign of it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::folder::{StudyFolder, TrialBatch};
use crate::point::Points;
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
    pub(super) unfinished: Option<Batch>,
    /// Number of stored trials in whole batches.
    pub(super) n_trials: u64,
    /// Whether it was told to stop on the way.
    pub(super) is_stopped: bool,
}

/// Replays the trials of a folder; `observe` sees each batch.
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
        if n_stored < batch.points.len() {
            replayed.unfinished = Some(batch);
            break;
        }
        let evaluated = Evaluated { scores: stored.to_scores(), metrics: stored.to_metrics() };
        let finished = Finished { batch, evaluated: Arc::new(evaluated) };
        observe(&finished);
        replayed.n_trials += n_stored as u64;
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
