//! `tidemill sweep`: many parameter sets, ranked.

mod output;
mod progress;
mod resolve;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::{Args, ValueEnum};
use tidemill_gpu::TraceSpan;
use tidemill_lab::evaluator::BatchSpan;
use tidemill_lab::record::SamplerSpan;
use tidemill_lab::{DeviceChoice, Devices, Experiment, QueuedSets, Runtime, StudyPart, Sweep, TuneOptions};
use tidemill_telemetry::hypertune::Mode;

use crate::cluster::{ClusterArgs, LocalWorkers};
use crate::exit::ExitCode;
use crate::input::{DataSource, StrategyArgs, parse_count, set_threads};
use crate::settings::Settings;
use crate::table::{ColumnArgs, Display};
use crate::trace::Trace;
use progress::SweepProgress;
pub(super) use progress::{batch_line, fallback_warning};
pub(super) use resolve::{Asked, Resolved, device_choice};

/// Evaluate many parameter sets and rank them.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill sweep
  tidemill sweep ema-cross --data btc.parquet --trials 50000 --split 0.7
  tidemill sweep my.toml --data data/ --folds 4 --sampler grid --out runs/my-grid --json
  tidemill sweep rsi-reversion --data eth.csv --set max_hold=24 --objective calmar
  tidemill sweep ema-cross --data btc.parquet --objective sharpe --objective=-max_drawdown
  tidemill sweep ema-cross --data btc.parquet --enqueue fast=12,slow=96 --out runs/ema
  tidemill sweep ema-cross --data eth.parquet --enqueue runs/ema --out runs/ema-eth
  tidemill sweep ema-cross --data btc.parquet --split 0.7 --holdout 2024-01-01..
  tidemill sweep ema-cross --data btc.parquet --workers local:4
  tidemill sweep ema-cross --data btc.parquet --sampler sobol --part 2/8 --out runs/ema-2

A sweep with --out can be stopped or killed at any time; the same command resumes it.")]
pub struct SweepArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Number of parameter sets, for example 20000, 10k or 1e6; a grid, or a space whose sets are all tried, may have fewer. A stored study
    /// may be given more [default: 10000].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    trials: Option<u64>,
    /// Number of parameter sets that sampler, batch and lag are chosen for [default: --trials, or what the stored study was made with].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    plan_trials: Option<u64>,
    /// How parameter sets are chosen: auto, tpe, tpe-mv, ga, ga-seller, de, cmaes, nsga2, sobol, random or grid [default: auto].
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// Parameter sets proposed at a time, or `auto`; small batches learn faster, large ones share more work [default: auto].
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    batch: Option<String>,
    /// By how many batches the sampler lags behind, or `auto`; 0 waits for every result, 1 keeps everything busy [default: auto].
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lag: Option<String>,
    /// Whether proposing, evaluating and storing run side by side. No result depends on it.
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    pipeline: Switch,
    /// Try this parameter set first: NAME=VALUE,…; or those of a JSON file, or the ten best of a study folder. Repeatable.
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
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Trials to show; of similar ones that a guided search tried, only the best [default: 10].
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top: Option<usize>,
    /// Keep all trials in this folder, and resume the study that it holds.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Search only part I of N of the trials, of a sampler that does not learn; `tidemill study merge` puts the parts together.
    #[arg(long, value_name = "I/N", requires = "out")]
    part: Option<StudyPart>,
    /// Write a trace for Perfetto that shows when each stage ran on the device.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Rules that watch the run and advise changes, or make them (batch, lag, streams, how the sampler explores) [default: advise].
    #[arg(long, value_name = "MODE")]
    hypertune: Option<Hypertune>,
    /// Serve Prometheus metrics of the run at this address, for example 127.0.0.1:9184.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<std::net::SocketAddr>,
    /// Check whether the winners hold up: luck, market, overfitting, unseen data, costs, delay, order of levels, neighbours, trades.
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    verdict: Switch,
    #[command(flatten)]
    columns: ColumnArgs,
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

/// Runs the command.
pub fn run(args: SweepArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    let threads = args.threads.or(settings.run.threads);
    set_threads(threads)?;
    let choice = device_choice(args.device, &settings)?;
    // With workers the devices of this machine are theirs.
    let devices = Devices::choose(if args.cluster.is_remote() { DeviceChoice::Cpu } else { choice })?;
    run_on(
        &args,
        &settings,
        devices.with_wait_limit(settings.gpu.wait_limit()),
        display,
        &mut std::io::stdout().lock(),
    )
}

/// Runs the command on these devices.
fn run_on(
    args: &SweepArgs,
    settings: &Settings,
    devices: Devices,
    display: &Display,
    out: &mut dyn Write,
) -> Result<ExitCode> {
    let resolved = resolve(args, settings)?;
    let strategy = args.options.open_all(&args.strategy, settings)?;
    let (data, layout) = args.source.open(settings)?;
    let runtime = Runtime {
        pipeline: args.pipeline == Switch::On,
        cluster: args.cluster.open(LocalWorkers {
            threads: args.threads.or(settings.run.threads),
            device: device_choice(args.device, settings)?,
            config: args.options.config.clone(),
        })?,
        keeps_spans: args.timeline.is_some(),
        ..runtime(devices, settings, resolved.cache_bytes)
    };
    let experiment = Experiment::new(strategy, data).layout(layout).runtime(runtime);
    // Before the work, because a name with a typo must not cost a whole sweep.
    args.columns.choose(&mut table::empty(&experiment))?;
    let queue = QueuedSets::read(&args.enqueue, &experiment.strategy)?;
    let notes = [experiment.notes(), queue.notes].concat();
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    // Before the work: a path that cannot be written, or an address that cannot be served, is an error at once.
    let timeline = args.timeline.as_deref().map(Trace::create).transpose()?;
    let progress =
        SweepProgress::new(&experiment, resolved.search.sampler, args.out.as_deref(), args.metrics)?
            .verbose(display.is_verbose)
            .on_workers(args.cluster.shown());
    let observer = progress.clone();
    let mut sweep = experiment
        .sweep()
        .options(resolved.search.clone())
        .enqueue(queue.sets)
        .top(resolved.top)
        .verdict(args.verdict == Switch::On && args.part.is_none())
        .tuning(TuneOptions { mode: resolved.hypertune, thresholds: settings.hypertune.thresholds()? })
        .observe(move |event| observer.hear(event));
    if let Some(dir) = &args.out {
        sweep = sweep.folder(dir);
    }
    let has_gpu = !experiment.runtime.devices.devices.is_empty() && !args.cluster.is_remote();
    let report = run_sweep(&sweep, args, &progress, has_gpu);
    if let Some(mut timeline) = timeline {
        let (on_devices, sampler) = progress.take_spans();
        timeline.write(&experiment.runtime.devices, "lane", &trace_spans(&experiment, &on_devices, &sampler));
    }
    let report = report?;
    let finished = output::Finished {
        experiment: &experiment,
        search: &resolved.search,
        notes: &notes,
        report: &report,
    };
    let interrupted = !report.is_complete && experiment.runtime.stop.load(Ordering::SeqCst);
    if args.json {
        writeln!(out, "{}", output::json(&finished, interrupted))?;
    } else {
        write!(out, "{}", output::text(&finished, &args.columns, &display.screen)?)?;
        out.flush()?;
        output::remarks(&finished, resolved.hypertune, display.is_verbose);
        if let Some(dir) = &args.out {
            eprintln!("study: {}", dir.display());
            if let Some(best) = report.best.first() {
                output::point_to_trial(dir, best.trial.number);
            }
        }
    }
    if interrupted {
        output::interrupted(&finished, args.out.is_some());
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the sweep; after an error it prints how many trials the study keeps.
/// The stages on the devices, and on the host what the sampler did beside them.
fn trace_spans(experiment: &Experiment, on_devices: &[BatchSpan], sampler: &[SamplerSpan]) -> Vec<TraceSpan> {
    let stages = on_devices.iter().map(|of| TraceSpan {
        device: of.device,
        track: of.span.lane as u64,
        name: format!("{:?}", of.span.stage).to_lowercase(),
        begin_ms: of.span.begin_ms,
        end_ms: of.span.end_ms,
    });
    let began = on_devices.first().map(|of| of.base);
    let proposals = began.into_iter().flat_map(|base| {
        sampler.iter().map(move |work| {
            let begin_ms = work.began.saturating_duration_since(base).as_secs_f64() * 1e3;
            TraceSpan {
                device: experiment.runtime.devices.devices.len(),
                track: 0,
                name: work.phase.to_owned(),
                begin_ms,
                end_ms: begin_ms + work.took.as_secs_f64() * 1e3,
            }
        })
    });
    stages.chain(proposals).collect()
}

fn run_sweep(
    sweep: &Sweep,
    args: &SweepArgs,
    progress: &SweepProgress,
    has_gpu: bool,
) -> Result<tidemill_lab::SweepReport> {
    let report = sweep.run();
    progress.finish();
    if report.is_err()
        && let Some(dir) = &args.out
        && progress.is_open()
    {
        let kept = tidemill_search::StudyFolder::open(dir).and_then(|folder| folder.n_trials()).unwrap_or(0);
        eprintln!("the study in {} keeps {} trials", dir.display(), tidemill_lab::number::count(kept));
        let without = if has_gpu { "; with --device cpu it needs no GPU" } else { "" };
        eprintln!("  hint: the same command resumes it{without}");
    }
    Ok(report?)
}

/// How commands run an experiment.
pub(super) fn runtime(devices: Devices, settings: &Settings, cache_bytes: usize) -> Runtime {
    Runtime {
        devices: Arc::new(devices),
        device_options: settings.gpu.device_options(),
        cache_bytes,
        stop: stop_flag(),
        ..Runtime::default()
    }
}

fn resolve(args: &SweepArgs, settings: &Settings) -> Result<Resolved> {
    let asked = Asked {
        trials: args.trials,
        plan_trials: args.plan_trials,
        sampler: args.sampler.as_deref(),
        batch: args.batch.as_deref(),
        lag: args.lag.as_deref(),
        seed: args.seed,
        top: args.top,
        hypertune: args.hypertune.map(|mode| match mode {
            Hypertune::Off => Mode::Off,
            Hypertune::Advise => Mode::Advise,
            Hypertune::On => Mode::On,
        }),
        part: args.part,
    };
    asked.resolve(settings)
}

/// Set by the first Ctrl-C; the second one ends the program at once.
pub(super) fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    // A process can set one handler only; the first one stays, which works too.
    let _ = ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    stop
}
