//! The loop that sweeps and walk-forwards share: a study over an engine, its best trials, its records.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidemill_backtest::{DeviceOptions, Engine, Strategy};
use tidemill_search::{
    Change, Controller, Evaluated, Evaluator, ParetoFront, Sampler, SamplerSettings, Space, Study,
    StudyEvent, StudyFolder, StudySummary,
};
use tidemill_telemetry::SmolStr;

use crate::batch::{auto_batch, auto_lag};
use crate::cluster;
use crate::config::{ChosenPlan, NamedSet, SearchOptions, StudyConfig};
use crate::error::LabError;
use crate::evaluator::{EvaluatorView, StudyEvaluator};
use crate::event::SweepEvent;
use crate::experiment::{build_sampler, search_space};
use crate::fill::DeviceUse;
use crate::invalid::InvalidCounts;
use crate::leaderboard::{Leaderboard, RankedTrial};
use crate::part::StudyPart;
use crate::record::{BatchRecorder, Reporter};
use crate::runtime::Runtime;
use crate::stored::merge::StoredParts;
use crate::test_column;
use crate::verdict::TrialSample;

/// What follows from the engine and the options before the first trial.
pub(crate) struct SearchPlan {
    pub space: Space,
    /// What was decided when the study was made.
    pub chosen: ChosenPlan,
    /// Bars of all segments.
    pub n_bars: u64,
    /// Trials that the sampler has to offer, at most those that the options ask for.
    pub n_asked: u64,
}

impl SearchPlan {
    /// The plan, and the sampler that proposes the trials; `folder` is where the trials go.
    pub fn new(
        engine: &Engine<'_>,
        strategy: &Strategy,
        options: &SearchOptions,
        queue: &[NamedSet],
        folder: Option<&Path>,
    ) -> Result<(Self, Box<dyn Sampler>), LabError> {
        let space = search_space(engine)?;
        let n_bars = engine.segments().iter().map(|segment| segment.range.len() as u64).sum();
        // A study keeps the batch and the lag that it was made with, also where another version would choose others, or more trials.
        let stored = folder.and_then(|folder| StudyFolder::open(folder).ok());
        let stored = stored.map(|folder| StudyConfig::read(folder.header()).sweep).unwrap_or_default();
        let trials = options.plan_trials.or(stored.plan_trials).unwrap_or(options.trials);
        let n_free = space.params.iter().filter(|param| param.fixed.is_none()).count();
        let batch = options.batch.or(stored.batch);
        let batch = batch.unwrap_or_else(|| auto_batch(options.sampler, trials, n_bars, n_free));
        let lag = options.lag.or(stored.lag);
        let lag = lag.unwrap_or_else(|| auto_lag(options.sampler, trials, n_free));
        let settings = SamplerSettings {
            seed: options.seed,
            n_trials: Some(trials),
            batch,
            n_objectives: strategy.objectives.len(),
        };
        let mut sampler = build_sampler(options.sampler, &space, &settings, queue)?;
        let range = part_range(&*sampler, options.part, options.trials);
        if range.start > 0 && !sampler.skip(range.start) || options.part.is_some() && options.sampler.learns()
        {
            return Err(LabError::PartOfLearning { sampler: sampler.name() });
        }
        let n_asked = range.end - range.start;
        Ok((Self { space, chosen: ChosenPlan { trials, batch, lag }, n_bars, n_asked }, sampler))
    }
}

/// The trials that a sampler has to offer, at most so many, or those of a part.
pub(crate) fn part_range(sampler: &dyn Sampler, part: Option<StudyPart>, n_trials: u64) -> Range<u64> {
    let n_trials = sampler.remaining().map_or(n_trials, |left| left.min(n_trials));
    part.map_or(0..n_trials, |part| part.range(n_trials))
}

/// What a search consists of.
pub(crate) struct Search<'a> {
    pub strategy: &'a Strategy,
    pub plan: &'a SearchPlan,
    pub options: &'a SearchOptions,
    /// How many of the best trials are wanted.
    pub top: usize,
    pub runtime: &'a Runtime,
    pub device_options: DeviceOptions,
    pub folder: Option<&'a StudyFolder>,
    pub reporter: &'a Reporter,
    /// Stands before the names of steps.
    pub prefix: SmolStr,
    /// Keeps what a verdict needs, if one is wanted.
    pub sample: Option<Arc<TrialSample>>,
    /// What was decided in earlier runs and changes results.
    pub changes: Vec<Change>,
    /// The study as workers are told of it, where there are any.
    pub config: Option<&'a StudyConfig>,
    /// Folders whose trials are looked up in place of being evaluated, if there are any.
    pub parts: &'a [PathBuf],
}

/// What a search found.
pub(crate) struct Found {
    pub summary: StudySummary,
    /// The best trials; of several objectives those that no other one beats in every respect.
    pub best: Vec<RankedTrial>,
    pub n_valid: u64,
    /// Why there is no valid trial, where there is none.
    pub invalid: Option<InvalidCounts>,
    /// How well the devices were used, if anything was evaluated.
    pub device_use: Option<DeviceUse>,
}

impl Search<'_> {
    /// Runs the study to its end, or until it is stopped. `control` makes what may change its settings on the way.
    pub fn run<C: Controller>(
        self,
        engine: &mut Engine<'_>,
        sampler: &mut dyn Sampler,
        control: impl FnOnce(&Arc<EvaluatorView>, &dyn Sampler) -> Option<C>,
    ) -> Result<Found, LabError> {
        let has_test = test_column::are_stored(engine, self.folder)?;
        if !self.parts.is_empty() {
            let view = Arc::new(EvaluatorView::of_cpu());
            let control = control(&view, sampler);
            let mut stored = StoredParts::new(&self.plan.space, self.parts);
            return self.study(&mut stored, sampler, control, &view, has_test);
        }
        if let (Some(cluster), Some(config)) = (&self.runtime.cluster, self.config) {
            let view = Arc::new(EvaluatorView::of_cpu());
            let control = control(&view, sampler);
            let mut pool = cluster.lock();
            let mut fleet = cluster::fleet(
                &mut pool,
                cluster.options(&self.runtime.stop),
                config,
                (engine, self.strategy, has_test),
                &self.plan.space,
                self.reporter,
            )?;
            return self.study(&mut fleet, sampler, control, &view, has_test);
        }
        let reporter = self.reporter.clone();
        let fell_back = move |reason: &str| {
            reporter.report(SweepEvent::FellBack { reason: reason.into() });
        };
        let ChosenPlan { trials, batch, .. } = self.plan.chosen;
        let usual_trials = usize::try_from(trials).map_or(batch, |trials| batch.min(trials));
        let mut evaluator = StudyEvaluator::new(
            engine,
            self.strategy,
            &self.runtime.devices,
            DeviceOptions { usual_trials, ..self.device_options },
            Some(Box::new(fell_back)),
        )?
        .sampled_by(self.sample.clone())
        .with_test_columns(has_test);
        let view = evaluator.view();
        let control = control(&view, sampler);
        self.study(&mut evaluator, sampler, control, &view, has_test)
    }

    fn study<C: Controller>(
        self,
        evaluator: &mut dyn Evaluator,
        sampler: &mut dyn Sampler,
        mut control: Option<C>,
        view: &Arc<EvaluatorView>,
        has_test: bool,
    ) -> Result<Found, LabError> {
        let SearchPlan { space, chosen, .. } = self.plan;
        let mut progress = Progress {
            best: Leaderboard::new(space, self.top, self.options.sampler.learns()),
            front: ParetoFront::new(),
            n_valid: 0,
            strategy: self.strategy,
            invalid: InvalidCounts::new(self.strategy),
            n_objectives: self.strategy.objectives.len(),
            sample: self.sample,
            is_remote: self.runtime.cluster.is_some() || !self.parts.is_empty(),
            recorder: BatchRecorder::new(
                self.reporter.clone(),
                self.prefix,
                space,
                view.clone(),
                self.runtime.keeps_spans,
            ),
        };
        let names = test_column::names(self.strategy, has_test);
        let metrics: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut study = Study::new(space, sampler)
            .trials(match self.options.part {
                Some(_) => self.plan.n_asked,
                None => self.options.trials,
            })
            .batch(chosen.batch)
            .lag(chosen.lag)
            .pipeline(self.runtime.pipeline)
            .objectives(self.strategy.objectives.len())
            .metrics(&metrics)
            .changes(self.changes)
            .stop(&self.runtime.stop)
            .observe(|event| progress.hear(event));
        if let Some(control) = &mut control {
            study = study.control(control);
        }
        if let Some(folder) = self.folder {
            study = study.folder(folder);
        }
        let summary = study.run(evaluator);
        let Progress { best, front, n_valid, invalid, n_objectives, mut recorder, .. } = progress;
        if self.runtime.keeps_spans {
            // Also of a search that failed: when each stage ran is then wanted most.
            let (devices, sampler) = recorder.take_spans();
            self.reporter.report(SweepEvent::Spans { devices: devices.into(), sampler: sampler.into() });
        }
        let summary = summary?;
        let best = if n_objectives == 1 { best.into_trials() } else { best.of_front(&front) };
        let invalid = (n_valid == 0).then_some(invalid);
        Ok(Found { device_use: recorder.device_use(summary.wall), summary, best, n_valid, invalid })
    }
}

/// Hears of every batch.
struct Progress<'a> {
    best: Leaderboard,
    /// Those that no other one beats in every respect, of several objectives.
    front: ParetoFront,
    n_valid: u64,
    strategy: &'a Strategy,
    invalid: InvalidCounts,
    n_objectives: usize,
    sample: Option<Arc<TrialSample>>,
    /// Whether scores and metrics are all that comes back: from workers, or from parts of the study.
    is_remote: bool,
    recorder: BatchRecorder<'a>,
}

impl Progress<'_> {
    fn hear(&mut self, event: StudyEvent<'_>) {
        match event {
            StudyEvent::Finished { batch, evaluated, is_replayed } => {
                let Evaluated { scores, .. } = evaluated;
                if let Some(sample) = &self.sample {
                    sample.count(evaluated);
                    if is_replayed || self.is_remote {
                        sample.offer_rows(batch.first_trial, &batch.points, scores);
                    }
                }
                self.n_valid +=
                    (0..scores.len()).filter(|at| scores.first(*at).value().is_some()).count() as u64;
                if self.n_valid == 0 {
                    self.invalid.count(self.strategy, &batch.points, evaluated);
                }
                if self.n_objectives > 1 {
                    self.front.extend(batch.first_trial, scores);
                    self.best.keep_front(&self.front, batch, scores);
                } else {
                    self.best.extend(batch, scores);
                }
                self.recorder.finished(batch, scores, is_replayed);
            }
            StudyEvent::Timed { index, timing, began } => self.recorder.timed(index, &timing, &began),
        }
    }
}
