//! `WalkForward`: search a period, trade the winner on the period that follows, move on.
//!
//! Every window is a study of its own, with its own folder, so that each resumes and repeats like any other; because no window needs the
//! results of another, several are searched at a time.

mod summary;
mod window;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::strategy::Sizing;
use tidemill_backtest::tally::Tally;
use tidemill_backtest::{Engine, Metric, pool_year_days};
use tidemill_market::timestamp;
use tidemill_search::folder::{JOURNAL_FILE, Lock};
use tidemill_search::{Points, Space};
use tidemill_telemetry::hypertune::Mode;
use tidemill_telemetry::{DeviceMode, Journal, SmolStr, format_smolstr};

use crate::backtest::param_values;
use crate::benchmark::{benchmark_name, has_market};
use crate::config::{SearchOptions, StudyConfig};
use crate::error::{LabError, in_full};
use crate::event::SweepEvent;
use crate::experiment::Experiment;
use crate::leaderboard::RankedTrial;
use crate::record::{Observer, Reporter};
use crate::score::score_trials;
use crate::search::{Search, SearchPlan};
use crate::sweep::told_config;
use crate::tune::Tuning;

pub use summary::{MonthResult, WalkForwardSummary, WindowResult};
pub use window::{Pace, Window, WindowError};

/// Repeated searches through time, each traded on the period that follows.
#[derive(Clone)]
pub struct WalkForward {
    experiment: Experiment,
    pace: Pace,
    options: SearchOptions,
    n_workers: usize,
    folder: Option<PathBuf>,
    config: Map<String, Value>,
    observer: Observer,
}

/// The result of a walk-forward.
#[derive(Clone, Debug)]
pub struct WalkForwardReport {
    /// All windows together; `None` if it was stopped before all were searched.
    pub summary: Option<WalkForwardSummary>,
    /// Days of a year of what was traded.
    pub year_days: f64,
    /// What it is compared with, if it can be compared.
    pub benchmark: Option<String>,
}

/// Folder of the study of a window, by its number from 1, in the folder of the walk-forward.
pub fn window_folder(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("window-{number:04}"))
}

/// The result of a window; `None` if it was stopped.
type WindowOutcome = Result<Option<WindowResult>, LabError>;

impl WalkForward {
    pub(crate) fn new(experiment: Experiment, pace: Pace) -> Self {
        Self {
            experiment,
            pace,
            options: SearchOptions { trials: 2_000, ..SearchOptions::default() },
            n_workers: 2,
            folder: None,
            config: Map::new(),
            observer: Arc::new(|_| ()),
        }
    }

    /// Searches every window with these options.
    pub fn options(self, options: SearchOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the number of trials of each window.
    pub fn trials(mut self, trials: u64) -> Self {
        self.options.trials = trials;
        self
    }

    /// Sets how many windows are searched at a time. No result depends on it.
    pub fn workers(self, n_workers: usize) -> Self {
        Self { n_workers: n_workers.max(1), ..self }
    }

    /// Keeps the studies of all windows in this folder, and resumes those that it holds.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Adds this to the configuration that the journal records.
    pub fn told(self, config: Map<String, Value>) -> Self {
        Self { config, ..self }
    }

    /// Sets the observer, which gets every event.
    pub fn observe(self, observer: impl Fn(&SweepEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Arc::new(observer), ..self }
    }

    /// The windows that the data gives.
    pub fn windows(&self) -> Result<Vec<Window>, LabError> {
        let layout = &self.experiment.layout;
        Ok(Window::all(&self.experiment.data.universe, layout.from_ms, layout.to_ms, self.pace)?)
    }

    /// Runs to the end, or until the stop flag of the runtime is set. The first error ends it.
    pub fn run(&self) -> Result<WalkForwardReport, LabError> {
        let windows = self.windows()?;
        let Experiment { strategy, runtime, .. } = &self.experiment;
        let (journal, name, is_resumed, _lock) = self.open_journal()?;
        let reporter = Reporter::new(Arc::new(journal), name, self.observer.clone());
        reporter.report(SweepEvent::Started {
            is_resumed,
            workload: "walkforward",
            title: format!("{} over {}", strategy.name, self.experiment.origin()),
            n_trials: (windows.len() as u64).saturating_mul(self.options.trials),
            device: match (&runtime.devices.devices[..], &runtime.devices.unusable) {
                ([], None) => DeviceMode::Cpu,
                ([], Some(reason)) => DeviceMode::CpuFallback { reason: reason.clone() },
                _ => DeviceMode::Gpu { stream: 0 },
            },
            config: self.told_config(windows.len()),
        });
        let report = self.all(&windows, &reporter).and_then(|results| self.report(&windows, results));
        match &report {
            Err(error) => reporter.end("failed", Some(in_full(error))),
            Ok(WalkForwardReport { summary: None, .. }) => {
                reporter.end("stopped", Some("stopped before all windows were searched".into()));
            }
            Ok(WalkForwardReport { summary: Some(summary), .. }) => {
                reporter.end("complete", Some(summary.line()));
            }
        }
        report
    }

    /// The journal in the folder, or one that is kept nowhere; no other process writes into the folder while the lock is there.
    fn open_journal(&self) -> Result<(Journal, SmolStr, bool, Option<Lock>), LabError> {
        let name = SmolStr::new(&self.experiment.strategy.name);
        let Some(dir) = self.folder.as_deref() else {
            return Ok((Journal::without_file()?, name, false, None));
        };
        std::fs::create_dir_all(dir).map_err(LabError::io("make", dir))?;
        let lock = Lock::take(dir)?;
        let name = dir.file_name().and_then(|name| name.to_str()).map_or(name, SmolStr::new);
        let path = dir.join(JOURNAL_FILE);
        let is_resumed = path.is_file();
        Ok((Journal::open_append(&path)?, name, is_resumed, Some(lock)))
    }

    fn told_config(&self, n_windows: usize) -> Map<String, Value> {
        let Experiment { strategy, runtime, .. } = &self.experiment;
        let chosen = [self.options.batch, self.options.lag];
        let chosen = chosen.map(|number| number.map_or_else(|| json!("auto"), |number| json!(number)));
        let mut config = told_config(strategy, &self.options, chosen, &runtime.devices, Mode::Off);
        config.extend(self.config.clone());
        config.insert("windows".into(), json!(n_windows));
        config
    }

    fn report(
        &self,
        windows: &[Window],
        results: Option<Vec<WindowResult>>,
    ) -> Result<WalkForwardReport, LabError> {
        let Experiment { strategy, data, .. } = &self.experiment;
        // What is stitched together has the days of all symbols, and is held as a whole from the first stretch to the last.
        let year_days = pool_year_days(data.universe.symbols.iter());
        let Some(results) = results else {
            return Ok(WalkForwardReport { summary: None, year_days, benchmark: None });
        };
        let traded = Layout {
            from_ms: windows.first().map(|window| window.cut_ms),
            to_ms: windows.last().map(|window| window.to_ms),
            ..Layout::default()
        };
        let engine = self.experiment.engine(&traded, 1)?;
        let held = has_market(strategy).then(|| engine.benchmark(Role::Train, data.benchmark.as_ref()));
        let is_additive = strategy.execution.sizing == Sizing::Unit;
        Ok(WalkForwardReport {
            summary: Some(WalkForwardSummary::new(results, year_days, is_additive, held.as_ref())),
            year_days,
            benchmark: held.is_some().then(|| benchmark_name(data.benchmark.as_ref()).to_owned()),
        })
    }

    /// Searches all windows, a few at a time; `None` if it was stopped.
    fn all(&self, windows: &[Window], reporter: &Reporter) -> Result<Option<Vec<WindowResult>>, LabError> {
        // Workers serve one window at a time, all of them.
        let n_workers = if self.experiment.runtime.cluster.is_some() { 1 } else { self.n_workers };
        let n_workers = n_workers.min(windows.len());
        let (next, has_failed, n_done) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let done: Mutex<Vec<Option<WindowOutcome>>> = Mutex::new(windows.iter().map(|_| None).collect());
        std::thread::scope(|scope| {
            for _ in 0..n_workers {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::SeqCst);
                        if at >= windows.len() || has_failed.load(Ordering::SeqCst) {
                            return;
                        }
                        let result = self.window(at, &windows[at], n_workers, reporter);
                        if let Ok(Some(result)) = &result {
                            reporter.report(SweepEvent::WindowTraded {
                                number: at + 1,
                                n_done: n_done.fetch_add(1, Ordering::SeqCst) + 1,
                                n_windows: windows.len() as u64,
                                result: Box::new(result.clone()),
                            });
                        }
                        has_failed.fetch_or(result.is_err(), Ordering::SeqCst);
                        done.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
                    }
                });
            }
        });
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut results = Vec::with_capacity(done.len());
        for (at, result) in done.into_iter().enumerate() {
            match result {
                Some(Ok(result)) => results.push(result),
                Some(Err(error)) => {
                    return Err(LabError::Window { number: at + 1, error: Box::new(error) });
                }
                None => results.push(None),
            }
        }
        Ok(results.into_iter().collect())
    }

    /// Searches a window and trades its winner; `None` if it was stopped.
    fn window(&self, at: usize, window: &Window, n_workers: usize, reporter: &Reporter) -> WindowOutcome {
        let Experiment { strategy, data, layout, runtime, .. } = &self.experiment;
        if runtime.is_stopped() {
            return Ok(None);
        }
        let layout = window.layout(layout);
        let mut engine = self.experiment.engine(&layout, n_workers)?;
        let options = &self.options;
        let dir = self.folder.as_ref().map(|dir| window_folder(dir, at + 1));
        let (plan, mut sampler) = SearchPlan::new(&engine, strategy, options, &[], dir.as_deref())?;
        let has_config = dir.is_some() || runtime.cluster.is_some();
        let config = has_config.then(|| StudyConfig::new(strategy, data, &layout, options, plan.chosen, &[]));
        let config = config.transpose()?;
        let folder = match (&dir, &config) {
            (Some(dir), Some(config)) => Some(config.open_folder(dir)?.folder),
            _ => None,
        };
        let mut device_options = runtime.device_options;
        device_options.context.memory_fraction /= n_workers as f64;
        let search = Search {
            strategy,
            plan: &plan,
            options,
            top: 1,
            runtime,
            device_options,
            folder: folder.as_ref(),
            reporter,
            prefix: format_smolstr!("window_{}.", at + 1),
            sample: None,
            changes: Vec::new(),
            config: config.as_ref(),
            parts: &[],
        };
        let found = search.run(&mut engine, &mut *sampler, |_, _| None::<Tuning>)?;
        if !found.summary.is_complete {
            return Ok(None);
        }
        let winner = found.best.into_iter().next();
        Ok(Some(self.trade(window, &mut engine, &plan.space, found.summary.n_trials, winner)))
    }

    /// Results of a window's winner on the period that follows. Without a winner nothing is traded.
    fn trade(
        &self,
        window: &Window,
        engine: &mut Engine<'_>,
        space: &Space,
        trials: u64,
        winner: Option<RankedTrial>,
    ) -> WindowResult {
        let date = |ts_ms: i64| timestamp::format_ms(ts_ms).chars().take(10).collect::<String>();
        let mut result = WindowResult {
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
            benchmark_return: None,
            max_drawdown: 0.0,
            trades: 0,
            daily: Vec::new(),
        };
        let Some(winner) = winner else {
            // Days go by without a position, and the equity of all windows has them too.
            result.daily = engine.daily_returns(&[], Role::Test);
            return result;
        };
        let details = engine.detail(&winner.row);
        result.daily = engine.daily_returns(&details, Role::Test);
        result.parameters = Map::from_iter(param_values(space, &winner.row));
        result.trial = Some(winner.number);
        let mut points = Points::new(space.len());
        points.push(&winner.row);
        if let Some(outcome) = engine.evaluate(&points).first() {
            let mean = |tally: &Tally| (tally.days > 0).then(|| tally.sum_daily / f64::from(tally.days));
            result.mean_daily = [mean(&outcome.train), outcome.test.as_deref().and_then(mean)];
            result.trades = outcome.test.as_ref().map_or(0, |tally| tally.trades);
            result.total_return = outcome.test.as_ref().map_or(0.0, |tally| tally.equity - 1.0);
        }
        if let Some(scored) = score_trials(engine, &self.experiment.strategy, vec![winner]).pop() {
            result.objective = [scored.objective(), scored.test_objective()];
            let test = scored.test.as_ref().and_then(|(_, metrics)| metrics.get(Metric::Sharpe));
            result.sharpe = [scored.train.get(Metric::Sharpe), test];
        }
        result
    }
}
