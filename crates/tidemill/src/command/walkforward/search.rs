//! The search of one window, and what its winner does on the time that follows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::Map;
use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, EngineOptions, METRICS, Metric, Strategy};
use tidemill_market::timestamp;
use tidemill_search::{Points, SamplerSettings, Space, Study, StudyEvent, StudyFolder};
use tidemill_telemetry::format_smolstr;

use super::record::Record;
use super::summary::Step;
use super::window::Window;
use crate::command::backtest::param_values;
use crate::command::sweep::best::{Best, Trial};
use crate::command::sweep::record::Recorder;
use crate::command::sweep::{self, Resolved, auto_batch, build, evaluate, header};
use crate::executor::{Devices, Executor};
use crate::input::Input;
use crate::settings::GpuSettings;

/// What all windows share.
pub struct Search<'a> {
    pub strategies: &'a [Strategy],
    pub input: &'a Input,
    pub resolved: &'a Resolved,
    pub devices: &'a Devices,
    pub gpu: GpuSettings,
    /// Windows searched at a time, which share the memory.
    pub n_workers: usize,
    pub dir: Option<&'a Path>,
    pub embargo_ms: Option<i64>,
    pub record: &'a Record,
    pub stop: &'a AtomicBool,
    pub progress: &'a ProgressBar,
}

impl Search<'_> {
    /// Searches a window and trades its winner; `None` if it was stopped.
    pub fn run(&self, at: usize, window: &Window) -> Result<Option<Step>> {
        if self.stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let resolved = self.resolved;
        let layout = window.layout(self.embargo_ms);
        let segments = layout.segments(&self.input.universe)?;
        let n_bars = segments.iter().map(|segment| segment.range.len() as u64).sum();
        let options = EngineOptions { cache_bytes: resolved.cache_bytes / self.n_workers };
        let mut engine = Engine::new(&self.strategies[0], &self.input.universe, segments, options)?;
        let space = sweep::space(&engine)?;
        let auto = || auto_batch(resolved.sampler, resolved.trials, n_bars);
        let settings = SamplerSettings {
            seed: resolved.seed,
            n_trials: Some(resolved.trials),
            batch: resolved.batch.unwrap_or_else(auto),
            n_objectives: 1,
        };
        let mut sampler = build(resolved.sampler, &space, &settings, &[])?;
        let folder = match self.dir {
            None => None,
            Some(dir) => {
                let header = header(self.strategies, self.input, &layout, resolved, &settings, &[])?;
                let dir = dir.join(format!("window-{:04}", at + 1));
                Some(StudyFolder::open_or_create(&dir, &header)?.folder)
            }
        };
        let gpu = GpuSettings {
            memory_fraction: Some(self.gpu.memory_fraction.unwrap_or(0.8) / self.n_workers as f64),
            ..self.gpu.clone()
        };
        let mut executor = Executor::new(&mut engine, self.strategies, self.devices, &gpu)?;
        let mut best = Best::new(&space, 1, resolved.sampler.learns());
        let prefix = format_smolstr!("window_{}.", at + 1);
        let mut recorder = Recorder::new(self.record.run(), prefix, &space, executor.view(), false);
        let observe = |event: StudyEvent<'_>| match event {
            StudyEvent::Finished { batch, evaluated, is_replayed } => {
                best.extend(batch, &evaluated.scores);
                recorder.finished(batch, &evaluated.scores, is_replayed);
                self.progress.inc(batch.points.len() as u64);
            }
            StudyEvent::Timed { index, timing, began } => recorder.timed(index, &timing, &began),
        };
        let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
        let study = Study::new(&space, &mut *sampler)
            .trials(resolved.trials)
            .batch(settings.batch)
            .lag(resolved.lag)
            .metrics(&names)
            .stop(self.stop)
            .observe(observe);
        let study = match &folder {
            Some(folder) => study.folder(folder),
            None => study,
        };
        let summary = study.run(&mut executor)?;
        drop((executor, recorder));
        if !summary.is_complete {
            return Ok(None);
        }
        let winner = best.into_trials().into_iter().next();
        let step = self.step(window, &mut engine, &space, summary.n_trials, winner);
        self.progress.set_message(self.record.traded(at, &step));
        Ok(Some(step))
    }

    /// What the winner of a window did. Without one nothing is traded.
    fn step(
        &self,
        window: &Window,
        engine: &mut Engine<'_>,
        space: &Space,
        trials: u64,
        winner: Option<Trial>,
    ) -> Step {
        let date = |ts_ms: i64| timestamp::format_ms(ts_ms).chars().take(10).collect::<String>();
        let mut step = Step {
            train_from: date(window.from_ms),
            test_from: date(window.cut_ms),
            test_to: date(window.to_ms),
            trials,
            trial: None,
            parameters: Map::new(),
            objective: [None; 2],
            sharpe: [None; 2],
            mean_daily: [None; 2],
            total_return: 0.0,
            trades: 0,
            daily: Vec::new(),
        };
        let Some(winner) = winner else {
            // Days go by without a position, and the equity of all windows has them too.
            step.daily = engine.daily_returns(&[], Role::Test);
            return step;
        };
        let details = engine.detail(&winner.row);
        step.daily = engine.daily_returns(&details, Role::Test);
        step.parameters = Map::from_iter(param_values(space, &winner.row));
        step.trial = Some(winner.number);
        let mut points = Points::new(space.len());
        points.push(&winner.row);
        if let Some(outcome) = engine.evaluate(&points).first() {
            let mean = |tally: &tidemill_backtest::tally::Tally| {
                (tally.days > 0).then(|| tally.sum_daily / f64::from(tally.days))
            };
            step.mean_daily = [mean(&outcome.train), outcome.test.as_ref().and_then(mean)];
            step.trades = outcome.test.as_ref().map_or(0, |tally| tally.trades);
            step.total_return = outcome.test.as_ref().map_or(0.0, |tally| tally.equity - 1.0);
        }
        if let Some(judged) = evaluate::judge(engine, self.strategies, vec![winner]).pop() {
            let (scores, metrics) = judged.test.map_or((None, None), |(a, b)| (a[0].value(), Some(b)));
            step.objective = [judged.scores[0].value(), scores];
            step.sharpe =
                [judged.train.get(Metric::Sharpe), metrics.and_then(|metrics| metrics.get(Metric::Sharpe))];
        }
        step
    }
}
