//! The verdict on a study that is on disk, whether it is complete or was stopped on the way.
//!
//! It is the verdict that the sweep itself gives once it is complete: the same trials in the same batches, the same sample of them.

use std::sync::Arc;

use tidemill_search::{Batch, ParetoFront, SamplerKind};

use super::StoredStudy;
use super::reopen::evaluated;
use crate::error::LabError;
use crate::experiment::{Experiment, search_space};
use crate::leaderboard::Leaderboard;
use crate::number;
use crate::score::{ScoredTrial, score_trials};
use crate::verdict::{self, JudgedSearch, TrialSample, VerdictReport};

/// Trials of a batch where the study does not say.
const BATCH: usize = 8192;

/// The verdict on the trials that a study has.
#[derive(Clone, Debug)]
pub struct JudgedStudy {
    /// Trials that were judged.
    pub n_trials: u64,
    /// The findings; without winners if no trial is valid.
    pub report: VerdictReport,
    /// Whether `verdict.json` holds them now: one on as many trials with more winners is kept.
    pub is_stored: bool,
}

impl StoredStudy {
    /// Judges the best `top` trials and stores the verdict; `None` if it was stopped. `experiment` is [`StoredStudy::experiment`], with its
    /// runtime set. A study that another process writes is refused.
    pub fn judge(&self, experiment: &Experiment, top: usize) -> Result<Option<JudgedStudy>, LabError> {
        let folder = self.folder.locked()?;
        let dir = folder.dir();
        let Experiment { strategy, data, layout, runtime, .. } = experiment;
        let mut engine = experiment.engine(layout, 1)?;
        engine.keep_blocks(verdict::n_blocks(engine.n_train_days()));
        let space = search_space(&engine)?;
        let is_guided = self.config.sweep.sampler.as_deref().and_then(|name| name.parse().ok());
        let is_guided = is_guided.is_some_and(SamplerKind::learns);
        let sample = TrialSample::new(&engine);
        let mut best = Leaderboard::new(&space, top, is_guided);
        let mut front = ParetoFront::new();
        let mut n_trials = 0;
        // The list of the best depends on the batches that it is made from.
        let n_rows = self.config.sweep.batch.unwrap_or(BATCH);
        for (index, stored) in folder.trials()?.in_batches_of(n_rows).enumerate() {
            let (points, evaluated) =
                evaluated(&stored?, &space).ok_or_else(|| LabError::OtherColumns { dir: dir.to_owned() })?;
            let scores = &evaluated.scores;
            let batch = Batch { index: index as u64, first_trial: n_trials, points: Arc::new(points) };
            sample.count(&evaluated);
            sample.offer_rows(n_trials, &batch.points, scores);
            if strategy.objectives.len() > 1 {
                front.extend(n_trials, scores);
                best.keep_front(&front, &batch, scores);
            } else {
                best.extend(&batch, scores);
            }
            n_trials += scores.len() as u64;
        }
        let best = if strategy.objectives.len() > 1 { best.of_front(&front) } else { best.into_trials() };
        let best = score_trials(&mut engine, strategy, best);
        self.check_scores(&best)?;
        let case = JudgedSearch {
            strategy,
            universe: &data.universe,
            holdout: layout.holdout(&data.universe)?,
            benchmark: data.benchmark.as_ref(),
            space: &space,
            is_guided,
            options: runtime.engine_options(),
            stop: &runtime.stop,
        };
        let Some(report) = verdict::judge(&case, &mut engine, sample, &best)? else { return Ok(None) };
        let is_stored = !best.is_empty() && verdict::store::write(dir, n_trials, &report)?;
        Ok(Some(JudgedStudy { n_trials, report, is_stored }))
    }

    /// Refuses trials that give another objective than the study has.
    fn check_scores(&self, trials: &[ScoredTrial]) -> Result<(), LabError> {
        let differs = |scored: &&ScoredTrial| scored.objective() != scored.trial.score.value();
        let Some(scored) = trials.iter().find(differs) else { return Ok(()) };
        Err(LabError::NotAsStored {
            dir: self.folder.dir().to_owned(),
            trial: scored.trial.number,
            stored: number::short(scored.trial.score.value()),
            found: number::short(scored.objective()),
        })
    }
}
