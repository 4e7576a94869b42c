//! `Sweep`: a search for good parameters, and whether what it finds holds up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::{Engine, Strategy};
use tidemill_search::{Sampler, Space, StudyFolder, StudySummary};
use tidemill_telemetry::hypertune::{Decision, Mode, Thresholds};
use tidemill_telemetry::{Journal, SmolStr};

use crate::batch::most_batch;
use crate::config::{NamedSet, SearchOptions, StudyConfig};
use crate::device::Devices;
use crate::error::{LabError, in_full};
use crate::event::{Opening, SweepEvent, ms};
use crate::experiment::Experiment;
use crate::fill::DeviceUse;
use crate::invalid::InvalidCounts;
use crate::parts::Parts;
use crate::record::{Observer, Reporter};
use crate::score::{ScoredTrial, score_trials};
use crate::search::{Found, Search, SearchPlan};
use crate::tune::{self, Tuning, TuningConfig};
use crate::verdict::{self, JudgedSearch, TrialSample, VerdictReport};

/// A search over the parameters of a strategy.
#[derive(Clone)]
pub struct Sweep {
    experiment: Experiment,
    options: SearchOptions,
    queue: Vec<NamedSet>,
    top: usize,
    has_verdict: bool,
    tuning: TuneOptions,
    folder: Option<PathBuf>,
    parts: Vec<PathBuf>,
    observer: Observer,
}

/// Rules that watch a running sweep, and what they may do. Decisions that change results are recorded, and a resumed sweep repeats them.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// Whether rules are off, advise or act.
    pub mode: Mode,
    /// When they fire.
    pub thresholds: Thresholds,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self { mode: Mode::Off, thresholds: Thresholds::default() }
    }
}

/// The result of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// What was varied.
    pub space: Space,
    /// How the search went.
    pub summary: StudySummary,
    /// Trials of a batch.
    pub batch: usize,
    /// By how many batches the sampler lags behind.
    pub lag: usize,
    /// Trials that the sampler could propose.
    pub n_asked: u64,
    /// Trials with a score.
    pub n_valid: u64,
    /// Why there is no valid trial, where there is none.
    pub invalid: Option<InvalidCounts>,
    /// Bars of all segments.
    pub n_bars: u64,
    /// How well the search used its devices, or the CPU; `None` if it evaluated nothing.
    pub device_use: Option<DeviceUse>,
    /// The segments that the data was cut into.
    pub segments: Vec<Segment>,
    /// The best trials, best first; of several objectives those that no other one beats in every respect.
    pub best: Vec<ScoredTrial>,
    /// The figures of the best trial on every part of the data; `None` if no trial is valid.
    pub parts: Option<Parts>,
    /// Whether the best hold up; `None` if the check was off or did not finish.
    pub verdict: Option<Arc<VerdictReport>>,
    /// Whether nothing is left to do.
    pub is_complete: bool,
    /// Days of a year of the pool that counts, and of each symbol.
    pub year_days: f64,
    /// The same of each symbol.
    pub symbol_year_days: Vec<f64>,
    /// Windows among the strategy's defaults that are longer than every symbol.
    pub impossible_windows: Vec<f64>,
    /// The newest advice and actions of the tuning rules, one sentence for each knob.
    pub advice: Vec<String>,
}

impl Sweep {
    pub(crate) fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            options: SearchOptions::default(),
            queue: Vec::new(),
            top: 10,
            has_verdict: true,
            tuning: TuneOptions::default(),
            folder: None,
            parts: Vec::new(),
            observer: Arc::new(|_| ()),
        }
    }

    /// Searches with these options.
    pub fn options(self, options: SearchOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the number of trials.
    pub fn trials(mut self, trials: u64) -> Self {
        self.options.trials = trials;
        self
    }

    /// Another seed gives other trials.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Tries these parameter sets first.
    pub fn enqueue(self, queue: Vec<NamedSet>) -> Self {
        Self { queue, ..self }
    }

    /// Sets how many of the best trials are reported.
    pub fn top(self, top: usize) -> Self {
        Self { top, ..self }
    }

    /// Whether the winners are judged.
    pub fn verdict(self, has_verdict: bool) -> Self {
        Self { has_verdict, ..self }
    }

    /// Lets rules watch the run.
    pub fn tuning(self, tuning: TuneOptions) -> Self {
        Self { tuning, ..self }
    }

    /// Keeps all trials in this folder, and resumes the study that it holds.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Looks trials up in these parts of the study in place of evaluating them.
    pub(crate) fn looking_up(self, parts: Vec<PathBuf>) -> Self {
        Self { parts, ..self }
    }

    /// Sets the observer, which gets every event.
    pub fn observe(self, observer: impl Fn(&SweepEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Arc::new(observer), ..self }
    }

    /// Runs to the end, or until the stop flag of the runtime is set.
    pub fn run(&self) -> Result<SweepReport, LabError> {
        let Experiment { strategy, data, layout, runtime, .. } = &self.experiment;
        let mut engine = self.experiment.engine(layout, 1)?;
        let holdout = layout.holdout(&data.universe)?;
        if self.has_verdict {
            engine.keep_blocks(verdict::n_blocks(engine.n_train_days()));
        }
        let (plan, mut sampler) =
            SearchPlan::new(&engine, strategy, &self.options, &self.queue, self.folder.as_deref())?;
        let has_config = self.folder.is_some() || runtime.cluster.is_some();
        let config = has_config
            .then(|| StudyConfig::new(strategy, data, layout, &self.options, plan.chosen, &self.queue));
        let config = config.transpose()?;
        let store = match (&self.folder, &config) {
            (Some(dir), Some(config)) => Some(open(dir, config)?),
            _ => None,
        };
        let journal = Arc::new(match &store {
            Some(store) => Journal::open_append(&store.folder.journal_path())?,
            None => Journal::without_file()?,
        });
        let reporter = Reporter::new(journal.clone(), self.run_name(), self.observer.clone());
        reporter.report(SweepEvent::Opened(Opening {
            n_asked: plan.n_asked,
            batch: plan.chosen.batch,
            n_stored: store.as_ref().and_then(|store| store.n_stored),
            made_by: store.as_ref().and_then(|store| store.made_by.clone()),
            journal,
        }));

        let sample = self.has_verdict.then(|| Arc::new(TrialSample::new(&engine)));
        let config = config.as_ref();
        let found = self.search(
            &mut engine,
            &mut *sampler,
            (&plan, config),
            store.as_ref(),
            &reporter,
            sample.clone(),
        );
        let finished = found.and_then(|(found, advice)| {
            // A verdict asks for many more trials.
            if !self.has_verdict {
                engine.expect_last();
            }
            let best = score_trials(&mut engine, strategy, found.best);
            let sample = sample.and_then(Arc::into_inner);
            let verdict = match sample {
                Some(sample) if found.summary.is_complete => {
                    let case = JudgedSearch {
                        strategy,
                        universe: &data.universe,
                        holdout,
                        benchmark: data.benchmark.as_ref(),
                        space: &plan.space,
                        is_guided: self.options.sampler.learns(),
                        options: runtime.engine_options(),
                        stop: &runtime.stop,
                    };
                    judge(&case, &mut engine, sample, &best, &reporter)?
                }
                _ => None,
            };
            if let (Some(dir), Some(report)) = (&self.folder, &verdict) {
                verdict::store::write(dir, found.summary.n_trials, report)?;
            }
            let judged = verdict.as_ref().and_then(|report| report.winners.first());
            let parts = match (judged, best.first()) {
                (Some(winner), _) => Some(winner.parts.clone()),
                (None, Some(best)) => {
                    // The engine of the parts needs as much memory.
                    engine.forget_columns();
                    let mut engine = self.experiment.parts_engine(layout)?.searched();
                    Some(engine.evaluate(&best.trial.row).parts)
                }
                (None, None) => None,
            };
            let symbols = 0..data.universe.symbols.len();
            Ok(SweepReport {
                parts,
                summary: found.summary,
                batch: plan.chosen.batch,
                lag: plan.chosen.lag,
                n_asked: plan.n_asked,
                n_valid: found.n_valid,
                invalid: found.invalid,
                n_bars: plan.n_bars,
                device_use: found.device_use,
                segments: engine.segments().to_vec(),
                best,
                is_complete: found.summary.is_complete && self.has_verdict == verdict.is_some(),
                verdict,
                year_days: engine.year_days(Role::Train),
                symbol_year_days: symbols.map(|at| engine.symbol_year_days(at)).collect(),
                impossible_windows: engine.impossible_windows(&plan.space.default_point()),
                advice: advice.sentences(),
                space: plan.space,
            })
        });
        match &finished {
            Ok(report) if report.is_complete => reporter.end("complete", None),
            Ok(report) => {
                let what = if report.summary.is_complete {
                    "the winners were judged"
                } else {
                    "all trials were done"
                };
                reporter.end("stopped", Some(format!("stopped before {what}")));
            }
            Err(error) => reporter.end("failed", Some(in_full(error))),
        }
        // A viewer takes a run without an end and without a lock for killed, so the lock is released last.
        drop(store);
        finished
    }

    fn search(
        &self,
        engine: &mut Engine<'_>,
        sampler: &mut dyn Sampler,
        (plan, config): (&SearchPlan, Option<&StudyConfig>),
        store: Option<&Store>,
        reporter: &Reporter,
        sample: Option<Arc<TrialSample>>,
    ) -> Result<(Found, tune::Advice), LabError> {
        let Experiment { strategy, runtime, .. } = &self.experiment;
        let options = &self.options;
        let decisions: &[Decision] = store.map_or(&[], |store| &store.decisions);
        let search = Search {
            strategy,
            plan,
            options,
            top: self.top,
            runtime,
            device_options: runtime.device_options,
            folder: store.map(|store| &store.folder),
            reporter,
            prefix: SmolStr::default(),
            sample,
            changes: tune::changes(decisions),
            config,
            parts: &self.parts,
        };
        let mut advice = tune::Advice::default();
        let found = search.run(engine, sampler, |view, sampler| {
            let tuned = TuningConfig {
                mode: self.tuning.mode,
                thresholds: self.tuning.thresholds.clone(),
                batch: plan.chosen.batch,
                most_batch: most_batch(options.sampler, plan.chosen.trials),
                lag: plan.chosen.lag,
                learns: options.sampler.learns(),
                knobs: sampler.knobs(),
            };
            let tuning = Tuning::new(&tuned, decisions, reporter.clone(), view.clone());
            advice = tuning.advice();
            reporter.report(SweepEvent::Started {
                is_resumed: store.is_some_and(|store| store.n_stored.is_some()),
                workload: "sweep",
                title: format!("{} over {}", strategy.name, self.experiment.origin()),
                n_trials: plan.n_asked,
                device: view.mode(),
                config: told_config(
                    strategy,
                    options,
                    [json!(plan.chosen.batch), json!(plan.chosen.lag)],
                    &runtime.devices,
                    self.tuning.mode,
                ),
            });
            Some(tuning)
        })?;
        Ok((found, advice))
    }

    /// Name of a run in its journal.
    fn run_name(&self) -> SmolStr {
        let folder = self.folder.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        SmolStr::new(folder.unwrap_or(&self.experiment.strategy.name))
    }
}

fn open(dir: &Path, config: &StudyConfig) -> Result<Store, LabError> {
    let opened = config.open_or_raise(dir)?;
    let n_stored = opened.is_resumed.then(|| opened.folder.n_trials()).transpose()?;
    let decisions = tune::decisions(&opened.folder.journal_path())?;
    Ok(Store { folder: opened.folder, n_stored, made_by: opened.made_by, decisions })
}

/// Where trials go, and what was there before.
struct Store {
    folder: StudyFolder,
    /// Trials that it held, if it was a study already.
    n_stored: Option<u64>,
    made_by: Option<String>,
    decisions: Vec<Decision>,
}

fn judge(
    case: &JudgedSearch<'_>,
    engine: &mut Engine<'_>,
    sample: TrialSample,
    winners: &[ScoredTrial],
    reporter: &Reporter,
) -> Result<Option<Arc<VerdictReport>>, LabError> {
    let began = Instant::now();
    reporter.report(SweepEvent::Judging);
    let Some(report) = verdict::judge(case, engine, sample, winners)? else { return Ok(None) };
    let report = Arc::new(report);
    reporter.report(SweepEvent::Judged {
        report: report.clone(),
        start_ms: reporter.since(began),
        duration_ms: ms(began.elapsed()),
    });
    Ok(Some(report))
}

/// The configuration as the journal records it.
pub(crate) fn told_config(
    strategy: &Strategy,
    options: &SearchOptions,
    [batch, lag]: [Value; 2],
    devices: &Devices,
    hypertune: Mode,
) -> Map<String, Value> {
    let config = json!({
        "strategy": strategy.name,
        "objective": strategy.objective_texts().join(", "),
        "sampler": options.sampler.name(),
        "batch": batch,
        "lag": lag,
        "seed": options.seed,
        "trials": options.trials,
        "device": devices.shown(),
        "hypertune": hypertune,
        "version": env!("CARGO_PKG_VERSION"),
    });
    match config {
        Value::Object(config) => config,
        _ => Map::new(),
    }
}
