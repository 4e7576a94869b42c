//! `tidemill sweep`: many parameter sets, ranked.

pub(crate) mod best;
pub(super) mod enqueue;
pub(crate) mod evaluate;
mod output;
pub(super) mod record;
mod resolve;
mod search;
mod setup;
mod tune;
pub(super) mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::{Args, ValueEnum};
use tidemill_backtest::{Engine, EngineOptions, Strategy};
use tidemill_search::{SamplerKind, SamplerSettings, Space, StudySummary};
use tidemill_telemetry::hypertune::Mode;

use crate::executor::{DeviceChoice, Devices};
use crate::holding::{self, Witness};
use crate::input::{DataSource, Input, StrategyArgs, set_threads};
use crate::number;
use crate::settings::Settings;
pub(super) use resolve::{Asked, Resolved, auto_batch, device_choice};
use search::Search;
pub(super) use setup::{build, header, space, told_config};
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
    /// Serve Prometheus metrics of the run at this address, for example 127.0.0.1:9184.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<std::net::SocketAddr>,
    /// Whether the winners are asked if they hold up: luck, market, overfitting, unseen data, costs, delay, order of levels, neighbours, trades.
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
    let devices = Devices::choose(device_choice(args.device, &settings)?)?.limited_by(&settings.gpu);
    run_on(args, settings, devices, &mut std::io::stdout().lock())
}

/// Runs the command on these devices.
fn run_on(args: SweepArgs, settings: Settings, devices: Devices, out: &mut dyn Write) -> Result<ExitCode> {
    let resolved = resolve(&args, &settings)?;
    let strategies = args.options.open_all(&args.strategy, &settings)?;
    let mut input = args.source.open(&settings)?;
    input.notes.extend(strategies[0].remarks(&input.universe));
    input.notes.iter().for_each(|note| eprintln!("note: {note}"));

    let options = EngineOptions { cache_bytes: resolved.cache_bytes };
    let segments = input.layout.segments(&input.universe)?;
    let mut engine = Engine::new(&strategies[0], &input.universe, segments, options)?;
    let holdout = input.layout.holdout(&input.universe)?;
    let has_verdict = args.verdict == Switch::On;
    if has_verdict {
        engine.keep_blocks(holding::n_blocks(engine.n_train_days()));
    }
    let space = setup::space(&engine)?;
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
            Some(setup::open(dir, &header(&strategies, &input, &input.layout, &resolved, &batch, &queue)?)?)
        }
        None => None,
    };
    eprintln!(
        "sweeping {} over {}: {} trials, sampler {} in batches of {}, on {}",
        strategies[0].name,
        input.origin,
        number::count(n_asked),
        resolved.sampler.name(),
        number::count(n_asked.min(batch.batch as u64)),
        devices.shown()
    );
    if let Some(note) = &devices.note {
        eprintln!("note: {note}");
    }

    let stop = stop_flag();
    let search = Search {
        args: &args,
        settings: &settings,
        devices: &devices,
        resolved: &resolved,
        strategies: &strategies,
        space: &space,
        batch: &batch,
        n_asked,
        store: store.as_ref(),
        title: format!("{} over {}", strategies[0].name, input.origin),
        stop: &stop,
    };
    let witness = has_verdict.then(|| Arc::new(Witness::new(&engine)));
    let mut searched = search.run(&mut engine, &mut *sampler, witness.clone())?;
    let summary = searched.summary;
    let best = evaluate::judge(&mut engine, &strategies, std::mem::take(&mut searched.chosen));
    let case = holding::Case {
        strategies: &strategies,
        universe: &input.universe,
        holdout,
        benchmark: input.benchmark.as_ref(),
        space: &space,
        is_guided: resolved.sampler.learns(),
        options,
        stop: &stop,
    };
    let holding = match witness.and_then(Arc::into_inner) {
        Some(witness) if summary.is_complete => searched.judge(&case, &mut engine, witness, &best)?,
        _ => None,
    };
    if let (Some(dir), Some(report)) = (&args.out, &holding) {
        holding::store::write(dir, summary.n_trials, report)?;
    }
    let is_whole = summary.is_complete && has_verdict == holding.is_some();
    let (n_valid, advice) = (searched.n_valid, searched.advice.sentences());
    searched.end(is_whole);
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
    let interrupted = !is_whole && stop.load(Ordering::SeqCst);
    if args.json {
        writeln!(out, "{}", output::json(&finished, &engine, interrupted))?;
    } else {
        write!(out, "{}", output::text(&finished, &engine))?;
        out.flush()?;
        output::remarks(&finished, &engine, &advice, resolved.hypertune);
        if let Some(dir) = &args.out {
            eprintln!("study: {}", dir.display());
        }
    }
    if interrupted {
        output::interrupted(&finished, args.out.is_some());
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
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
