//! `tidemill sweep`: many parameter sets, ranked.

pub(super) mod best;
pub(super) mod enqueue;
pub(crate) mod evaluate;
mod output;
mod record;
mod tune;
pub(super) mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, METRICS, Strategy};
use tidemill_search::folder::Opened;
use tidemill_search::{
    Enqueue, ParetoFront, Sampler, SamplerKind, SamplerSettings, Space, Steered, Study, StudyFolder,
    StudyHeader, StudySummary,
};
use tidemill_telemetry::hypertune::{Decision, Mode};
use tidemill_telemetry::{Journal, SmolStr, metrics, prometheus};

use crate::executor::{BatchSpan, DeviceChoice, Devices, Executor};
use crate::holding::{self, Witness};
use crate::input::{DataSource, Input, StrategyArgs, set_threads};
use crate::number;
use crate::settings::Settings;
use crate::trace::{Trace, TraceSpan};
use best::Best;
use record::Recorder;
use tune::{Tuned, Tuning};
use watch::Watch;
pub(super) use watch::progress_bar;

/// Evaluate many parameter sets and rank them.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill sweep
  tidemill sweep ema-cross --data btc.parquet --trials 50000 --split 0.7
  tidemill sweep my.toml --data data/ --folds 4 --sampler grid --out runs/my-grid --json
  tidemill sweep rsi-reversion --data eth.csv --set max_hold=24 --objective calmar
  tidemill sweep ema-cross --data btc.parquet --objective sharpe --objective=-max_drawdown
  tidemill sweep ema-cross --data btc.parquet --enqueue fast=12,slow=96 --out runs/ema
  tidemill sweep ema-cross --data btc.parquet --split 0.7 --holdout 2024-01-01..

A sweep with --out can be stopped or killed at any time; the same command goes on where it was.")]
pub struct SweepArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Number of parameter sets; a grid may have fewer [default: 10000].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<u64>,
    /// How parameter sets are chosen: auto, tpe, tpe-mv, ga, ga-seller, de, cmaes, nsga2, sobol, random or grid [default: auto].
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// Parameter sets proposed at a time, or `auto`; small batches learn faster, large ones share more work [default: auto].
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    batch: Option<String>,
    /// By how many batches the sampler lags behind; 0 waits for every result, 1 keeps everything busy [default: 1].
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lag: Option<usize>,
    /// Whether proposing, evaluating and storing run side by side. No result depends on it.
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    pipeline: Switch,
    /// Try this parameter set first: NAME=VALUE,… or a JSON file of parameter sets. Repeatable.
    #[arg(long, value_name = "SET")]
    enqueue: Vec<String>,
    /// The same seed gives the same trials [default: 1].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Where trials are evaluated: auto, cpu, cuda (all GPUs) or cuda:N. No result depends on it [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Trials shown; of neighbours that a guided search tried, only the best [default: 10].
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top: Option<usize>,
    /// Keep all trials in this folder, and go on with the study that it holds.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write when each stage ran on the device, as a trace for Perfetto.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Watch the run by rules: say what would help, or do it (batch, lag, streams, how the sampler explores) [default: advise].
    #[arg(long, value_name = "MODE")]
    hypertune: Option<Hypertune>,
    /// Serve Prometheus metrics of the run at this address, for example 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<std::net::SocketAddr>,
    /// Whether the winners are asked if they hold up: luck, overfitting, unseen data, costs, delay, neighbours, trades.
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    verdict: Switch,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Hypertune {
    Off,
    Advise,
    On,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// What a sweep runs with, all defaults filled in.
pub(super) struct Resolved {
    pub(super) trials: u64,
    pub(super) sampler: SamplerKind,
    pub(super) batch: Option<usize>,
    pub(super) lag: usize,
    pub(super) seed: u64,
    top: usize,
    pub(super) cache_bytes: usize,
    hypertune: Mode,
}

/// Everything that is known when a sweep ends.
struct Finished<'a> {
    /// The strategy once per objective.
    strategies: &'a [Strategy],
    input: &'a Input,
    space: &'a Space,
    settings: SamplerSettings,
    lag: usize,
    sampler: SamplerKind,
    summary: StudySummary,
    /// Trials that the sampler has to offer.
    n_asked: u64,
    n_valid: u64,
    /// Bars of all segments.
    n_bars: u64,
    best: Vec<evaluate::Judged>,
    /// Whether the best hold up, if that was asked.
    holding: Option<holding::Report>,
}

/// Runs the command.
pub fn run(args: SweepArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let devices = Devices::choose(device_choice(args.device, &settings)?)?;
    run_on(args, settings, devices, &mut std::io::stdout().lock())
}

/// Runs the command on these devices.
fn run_on(args: SweepArgs, settings: Settings, devices: Devices, out: &mut dyn Write) -> Result<ExitCode> {
    let resolved = resolve(&args, &settings)?;
    let gpu_settings = settings.gpu.clone();
    let strategies = args.options.open_all(&args.strategy, &settings)?;
    let strategy = &strategies[0];
    let input = args.source.open(&settings)?;
    input.notes.iter().for_each(|note| eprintln!("note: {note}"));

    let segments = input.layout.segments(&input.universe)?;
    let options = EngineOptions { cache_bytes: resolved.cache_bytes };
    let mut engine = Engine::new(strategy, &input.universe, segments, options)?;
    let held_out = input.layout.holdout(&input.universe)?;
    let has_verdict = args.verdict == Switch::On;
    if has_verdict {
        engine.keep_blocks(holding::n_blocks(engine.n_train_days()));
    }
    let space = engine.space();
    if let Err(problems) = space.validate() {
        bail!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    if space.n_free() == 0 {
        bail!(
            "every parameter is fixed, so there is nothing to sweep\n  hint: use `tidemill backtest`, or leave a parameter free"
        );
    }
    let n_bars = engine.segments().iter().map(|segment| segment.range.len() as u64).sum();
    let batch = SamplerSettings {
        seed: resolved.seed,
        n_trials: Some(resolved.trials),
        batch: resolved.batch.unwrap_or_else(|| auto_batch(resolved.sampler, resolved.trials, n_bars)),
        n_objectives: strategies.len(),
    };
    let queue = enqueue::read(&args.enqueue)?;
    let mut sampler = build(resolved.sampler, &space, &batch, &queue)?;
    let n_asked = sampler.remaining().map_or(resolved.trials, |left| left.min(resolved.trials));
    let store = match &args.out {
        Some(dir) => {
            Some(open(dir, &header(&strategies, &input, &input.layout, &resolved, &batch, &queue)?)?)
        }
        None => None,
    };
    eprintln!(
        "sweeping {} over {}: {} trials, sampler {} in batches of {}, on {}",
        strategy.name,
        input.origin,
        number::count(n_asked),
        resolved.sampler.name(),
        number::count(n_asked.min(batch.batch as u64)),
        devices.shown()
    );
    if let Some(note) = &devices.note {
        eprintln!("note: {note}");
    }
    let witness = has_verdict.then(|| Arc::new(Witness::new(&engine)));
    let mut executor =
        Executor::new(&mut engine, &strategies, &devices, &gpu_settings)?.watched_by(witness.clone());

    // Before the work: a path that cannot be written is said at once.
    let timeline = args.timeline.as_deref().map(Trace::create).transpose()?;

    let run = run_name(args.out.as_deref(), strategy);
    let journal = Arc::new(match &store {
        Some(store) => Journal::open_append(&store.folder.journal_path())?,
        None => Journal::without_file()?,
    });
    let server = args.metrics.map(|addr| serve(addr, journal.clone())).transpose()?;
    let tuned = Tuned {
        mode: resolved.hypertune,
        thresholds: settings.hypertune.thresholds()?,
        batch: batch.batch,
        most_batch: most_batch(resolved.sampler, resolved.trials),
        lag: resolved.lag,
        learns: resolved.sampler.learns(),
        knobs: sampler.knobs(),
    };
    let earlier: &[Decision] = store.as_ref().map_or(&[], |store| &store.decisions);
    let mut tuning = Tuning::new(&tuned, earlier, journal.clone(), run.clone(), executor.view());
    let advice = tuning.advice();
    let recorder = Recorder::new(journal.clone(), run, &space, executor.view(), timeline.is_some());
    let is_resumed = store.as_ref().is_some_and(|store| store.is_resumed);
    let title = format!("{} over {}", strategy.name, input.origin);
    recorder.start(is_resumed, &title, n_asked, &told_config(&strategies, &resolved, &batch, &devices));

    let stop = stop_flag();
    let progress = progress_bar(n_asked);
    let mut watch = Watch {
        best: Best::new(&space, resolved.top, resolved.sampler.learns()),
        front: ParetoFront::new(),
        n_valid: 0,
        n_done: 0,
        n_objectives: strategies.len(),
        witness: witness.clone(),
        recorder,
        progress: &progress,
    };
    let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
    let study = Study::new(&space, &mut *sampler)
        .trials(resolved.trials)
        .batch(batch.batch)
        .lag(resolved.lag)
        .pipeline(args.pipeline == Switch::On)
        .objectives(strategies.len())
        .metrics(&names)
        .changes(tune::changes(earlier))
        .control(&mut tuning)
        .stop(&stop)
        .observe(|event| watch.hear(event));
    let study = match &store {
        Some(store) => study.folder(&store.folder),
        None => study,
    };
    let summary = study.run(&mut executor).map_err(anyhow::Error::from);
    progress.finish_and_clear();
    drop(executor);
    let Watch { best, front, n_valid, recorder, witness: watched, .. } = watch;
    drop(watched);
    let (outcome, note) = match &summary {
        Ok(summary) if summary.is_complete => ("complete", None),
        Ok(_) => ("stopped", Some("stopped before all trials were done".to_owned())),
        Err(error) => ("failed", Some(format!("{error:#}"))),
    };
    recorder.end(outcome, note);
    let spans = recorder.into_spans();
    if let Some(mut timeline) = timeline {
        let spans = spans.iter().map(|BatchSpan { device, span, .. }| TraceSpan {
            device: *device,
            track: span.lane,
            name: format!("{:?}", span.stage).to_lowercase(),
            begin_ms: span.begin_ms,
            end_ms: span.end_ms,
        });
        timeline.write(&devices, "lane", &spans.collect::<Vec<_>>());
    }
    drop((server, tuning));
    if let Some(journal) = Arc::into_inner(journal)
        && let Err(error) = journal.close()
    {
        eprintln!("warning: {error}");
    }
    let summary = match (summary, &store, &args.out) {
        (Ok(summary), ..) => summary,
        (Err(error), Some(store), Some(dir)) => {
            let kept = number::count(store.folder.n_trials().unwrap_or(0));
            eprintln!("the study in {} keeps {kept} trials", dir.display());
            eprintln!("  hint: the same command goes on with the rest, with --device cpu also without a GPU");
            return Err(error);
        }
        (Err(error), ..) => return Err(error),
    };
    // Of several objectives all trials are shown that no other one beats in every respect.
    let chosen = if strategies.len() == 1 { best.into_trials() } else { best.of_front(&front) };

    let best = evaluate::judge(&mut engine, &strategies, chosen);
    let case = holding::Case {
        strategies: &strategies,
        universe: &input.universe,
        holdout: held_out,
        space: &space,
        is_guided: resolved.sampler.learns(),
        options,
    };
    let holding = match witness.and_then(Arc::into_inner) {
        Some(witness) if summary.is_complete => Some(holding::judge(&case, &mut engine, witness, &best)?),
        _ => None,
    };
    if let (Some(dir), Some(report)) = (&args.out, &holding) {
        holding::store::write(dir, summary.n_trials, report)?;
    }
    let finished = Finished {
        strategies: &strategies,
        input: &input,
        space: &space,
        settings: batch,
        lag: resolved.lag,
        sampler: resolved.sampler,
        summary,
        n_asked,
        n_valid,
        n_bars,
        best,
        holding,
    };
    let interrupted = !summary.is_complete && stop.load(Ordering::SeqCst);
    if args.json {
        writeln!(out, "{}", output::json(&finished, &engine, interrupted))?;
    } else {
        write!(out, "{}", output::text(&finished, &engine))?;
        out.flush()?;
        if n_valid == 0
            && let Some(window) = engine.impossible_windows(&space.default_point()).last()
        {
            eprintln!("note: no symbol has enough bars for a window of {window}, a default of this strategy");
        }
        eprintln!("{}", output::summary_line(&finished));
        if let Some(report) = &finished.holding {
            eprintln!("{}", holding::text::line(report));
        }
        for sentence in advice.sentences() {
            eprintln!("{sentence}");
        }
        if tuned.mode == Mode::Advise && !advice.sentences().is_empty() {
            eprintln!("  hint: --hypertune on does it, off is silent");
        }
        if let Some(dir) = &args.out {
            eprintln!("study: {}", dir.display());
        }
    }
    if interrupted {
        let (kept, asked) = (number::count(summary.n_trials), number::count(n_asked));
        eprintln!("stopped: {kept} of {asked} trials are done and kept");
        if args.out.is_some() {
            eprintln!("  hint: the same command goes on with the rest");
        }
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// The device of the flag, else of the settings.
pub(super) fn device_choice(flag: Option<DeviceChoice>, settings: &Settings) -> Result<DeviceChoice> {
    match (flag, &settings.gpu.device) {
        (Some(choice), _) => Ok(choice),
        (None, Some(text)) => text
            .parse()
            .map_err(|error| anyhow::anyhow!("settings {}: gpu.device: {error}", settings.origin())),
        (None, None) => Ok(DeviceChoice::Auto),
    }
}

/// What of a search can be said on the command line, by whatever command.
pub(super) struct Asked<'a> {
    pub(super) trials: Option<u64>,
    pub(super) sampler: Option<&'a str>,
    pub(super) batch: Option<&'a str>,
    pub(super) lag: Option<usize>,
    pub(super) seed: Option<u64>,
    pub(super) top: Option<usize>,
    pub(super) hypertune: Option<Mode>,
}

fn resolve(args: &SweepArgs, settings: &Settings) -> Result<Resolved> {
    let asked = Asked {
        trials: args.trials,
        sampler: args.sampler.as_deref(),
        batch: args.batch.as_deref(),
        lag: args.lag,
        seed: args.seed,
        top: args.top,
        hypertune: args.hypertune.map(|mode| match mode {
            Hypertune::Off => Mode::Off,
            Hypertune::Advise => Mode::Advise,
            Hypertune::On => Mode::On,
        }),
    };
    asked.resolve(settings)
}

impl Asked<'_> {
    /// Fills in settings and defaults.
    pub(super) fn resolve(&self, settings: &Settings) -> Result<Resolved> {
        let trials = self.trials.or(settings.sweep.trials).unwrap_or(10_000);
        if trials == 0 {
            bail!("--trials must be at least 1");
        }
        let sampler = self.sampler.or(settings.sweep.sampler.as_deref()).unwrap_or("auto");
        let batch = match self.batch.or(settings.sweep.batch.as_deref()) {
            None | Some("auto") => None,
            Some(text) => match text.parse::<usize>() {
                Ok(batch) if (1..=MAX_BATCH).contains(&batch) => Some(batch),
                _ => bail!(
                    "--batch {text}: write `auto` or a number from 1 to {}",
                    number::count(MAX_BATCH as u64)
                ),
            },
        };
        let lag = self.lag.or(settings.sweep.lag).unwrap_or(1);
        if lag > MAX_LAG {
            bail!("--lag {lag}: more than {MAX_LAG} batches in flight serve no one");
        }
        Ok(Resolved {
            trials,
            sampler: sampler.parse().map_err(|error| anyhow::anyhow!("sampler: {error}"))?,
            batch,
            lag,
            seed: self.seed.or(settings.sweep.seed).unwrap_or(1),
            top: self.top.or(settings.sweep.top).unwrap_or(10),
            cache_bytes: settings.run.cache_mb.unwrap_or(512).clamp(1, 1 << 20) << 20,
            hypertune: match self.hypertune {
                Some(mode) => mode,
                None => settings.hypertune.mode()?,
            },
        })
    }
}

/// Largest batch: beyond it nothing is shared better.
const MAX_BATCH: usize = 1 << 20;

/// Largest lag.
const MAX_LAG: usize = 64;

/// Bars that a batch evaluates at most, so that it takes about a third of a second on two cores.
const BARS_PER_BATCH: u64 = 300_000_000;

/// The batch where none is given. It follows from the study alone, never from the machine, so that a seed means the same everywhere.
///
/// Samplers that learn do so from batch to batch, and better from small ones; the others only gain from sharing work.
pub(super) fn auto_batch(sampler: SamplerKind, trials: u64, n_bars: u64) -> usize {
    let fits = (BARS_PER_BATCH / n_bars.max(1)).clamp(16, 4096);
    let batch = if sampler.learns() { (trials / 64).clamp(16, 256).min(fits) } else { fits };
    // Rounded down to a power of two, which suits caches and Sobol sequences.
    1 << batch.ilog2()
}

pub(super) fn build(
    kind: SamplerKind,
    space: &Space,
    settings: &SamplerSettings,
    queue: &[enqueue::NamedSet],
) -> Result<Box<dyn Sampler>> {
    let sampler = kind.build(space, settings)?;
    let sampler: Box<dyn Sampler> = Box::new(Steered::new(space, settings.seed, sampler));
    if queue.is_empty() {
        return Ok(sampler);
    }
    match Enqueue::named(space, queue, sampler) {
        Ok(sampler) => Ok(Box::new(sampler)),
        Err(problems) => bail!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// The resolved configuration, stored with the study; what is under `about` may differ when it is resumed.
pub(super) fn header(
    strategies: &[Strategy],
    input: &Input,
    layout: &Layout,
    resolved: &Resolved,
    settings: &SamplerSettings,
    queue: &[enqueue::NamedSet],
) -> Result<StudyHeader> {
    let strategy = &strategies[0];
    let fixed: Map<String, Value> = strategy
        .params
        .iter()
        .filter_map(|param| Some((param.name.clone(), json!(param.domain.decode(param.fixed?)?))))
        .collect();
    let further: Vec<&str> = strategies[1..].iter().map(|other| other.objective.text.as_str()).collect();
    let enqueue: Vec<String> = queue.iter().map(enqueue::shown).collect();
    let config = json!({
        "about": { "data": input.origin, "file": strategy.file, "source": input.recipe },
        "strategy": { "name": strategy.name, "profile": strategy.profile, "source": strategy.source },
        "execution": strategy.execution,
        "objective": {
            "maximize": strategy.objective.text,
            "further": if further.is_empty() { Value::Null } else { json!(further) },
            "require": strategy.objective.require_text,
            "reduce": strategy.objective.reduce,
        },
        "fixed": fixed,
        "segments": layout,
        "sweep": {
            "trials": resolved.trials,
            "sampler": resolved.sampler.name(),
            "batch": settings.batch,
            "lag": resolved.lag,
            "enqueue": if enqueue.is_empty() { Value::Null } else { json!(enqueue) },
        },
        "data": { "symbols": input.universe.symbols.len(), "bars": input.universe.n_bars() },
    });
    let config = toml::Value::try_from(drop_nulls(config)).context("cannot store the configuration")?;
    let toml::Value::Table(config) = config else { bail!("the configuration is not a table") };
    Ok(StudyHeader {
        version: env!("CARGO_PKG_VERSION").into(),
        seed: resolved.seed,
        data_hash: input.universe.fingerprint(),
        config,
    })
}

/// TOML has no null.
fn drop_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, drop_nulls(v))).collect(),
        ),
        other => other,
    }
}

/// Where trials go, and what was decided there earlier.
struct Store {
    folder: StudyFolder,
    is_resumed: bool,
    decisions: Vec<Decision>,
}

/// Opens or makes the study of this configuration.
fn open(dir: &std::path::Path, header: &StudyHeader) -> Result<Store> {
    let Opened { folder, is_resumed, made_by } = StudyFolder::open_or_create(dir, header)?;
    if is_resumed {
        let n_trials = folder.n_trials()?;
        eprintln!(
            "going on with the study in {}: {} trials are done",
            dir.display(),
            number::count(n_trials)
        );
    }
    if let Some(version) = made_by {
        eprintln!("note: the study was made by version {version}, this is {}", header.version);
    }
    let decisions = tune::decisions(&folder.journal_path())?;
    Ok(Store { folder, is_resumed, decisions })
}

/// What a run is called in its journal.
fn run_name(out: Option<&std::path::Path>, strategy: &Strategy) -> SmolStr {
    let folder = out.and_then(|dir| dir.file_name()).and_then(|name| name.to_str());
    SmolStr::new(folder.unwrap_or(&strategy.name))
}

/// The configuration as the journal tells it.
fn told_config(
    strategies: &[Strategy],
    resolved: &Resolved,
    settings: &SamplerSettings,
    devices: &Devices,
) -> Map<String, Value> {
    let objectives: Vec<&str> = strategies.iter().map(|one| one.objective.text.as_str()).collect();
    let config = json!({
        "strategy": strategies[0].name,
        "objective": objectives.join(", "),
        "sampler": resolved.sampler.name(),
        "batch": settings.batch,
        "lag": resolved.lag,
        "seed": resolved.seed,
        "trials": resolved.trials,
        "device": devices.shown(),
        "hypertune": resolved.hypertune,
        "version": env!("CARGO_PKG_VERSION"),
    });
    match config {
        Value::Object(config) => config,
        _ => Map::new(),
    }
}

/// Serves the metrics of a run until it is dropped.
fn serve(addr: std::net::SocketAddr, journal: Arc<Journal>) -> Result<metrics::Server> {
    let page = move || prometheus(&journal.snapshot());
    let server = metrics::serve(addr, page).with_context(|| format!("--metrics {addr}"))?;
    eprintln!("metrics: http://{}/metrics", server.addr());
    Ok(server)
}

/// The most trials of a batch that tuning goes to: one that learns still learns a few dozen times.
fn most_batch(sampler: SamplerKind, trials: u64) -> usize {
    let times = if sampler.learns() { 64 } else { 8 };
    usize::try_from(trials / times).unwrap_or(MAX_BATCH).clamp(16, 65_536)
}

/// Set by the first Ctrl-C; the second one ends the program at once.
pub(super) fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    // A second handler in one process cannot be set; the first then stays, which is as good.
    let _ = ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    stop
}

#[cfg(test)]
mod tests;
