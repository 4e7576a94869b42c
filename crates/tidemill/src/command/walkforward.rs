//! `tidemill walkforward`: search a period, trade the winner on the period that follows, move on.

pub mod page;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::POOL_NOTE;
use tidemill_lab::walkforward::WalkForwardSummary;
use tidemill_lab::{
    DeviceChoice, Devices, Experiment, Pace, Runtime, SearchOptions, SweepEvent, WalkForward, number,
};
use tidemill_market::timeframe;
use tidemill_telemetry::hypertune::Mode;

use super::study::write_whole;
use super::sweep::{Asked, Resolved, batch_line, device_choice, fallback_warning, runtime};
use crate::cluster::{self, ClusterArgs, LocalWorkers};
use crate::exit::ExitCode;
use crate::input::{DataSource, StrategyArgs, parse_count, set_threads};
use crate::progress::ProgressLine;
use crate::settings::Settings;
use crate::table::{ColumnArgs, Display};

/// Trials of a window where none are given.
const DEFAULT_TRIALS: u64 = 2_000;

/// Repeat a search through time, and trade each winner on the period that follows.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill walkforward ema-cross --data btc.parquet --train 180d --test 30d
  tidemill walkforward my.toml --data data/ --train 52w --test 4w --anchored --trials 5000 --out runs/wf --html wf.html
  tidemill walkforward ema-cross --data btc.parquet --train 180d --test 30d --workers local:4

With --out it can be stopped or killed at any time; the same command resumes it.")]
pub struct WalkforwardArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Length of the period that is searched, for example 180d or 2y (730 days).
    #[arg(long, value_name = "DURATION")]
    train: String,
    /// Length of the period that is traded after it; the next window is that much later.
    #[arg(long, value_name = "DURATION")]
    test: String,
    /// Begin every search where the first one began, so that it sees more and more.
    #[arg(long)]
    anchored: bool,
    /// Parameter sets of a window [default: 2000].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    trials: Option<u64>,
    /// How parameter sets are chosen, as in `tidemill sweep` [default: auto].
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// Parameter sets proposed at a time, or `auto` [default: auto].
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    batch: Option<String>,
    /// By how many batches the sampler lags behind, or `auto` [default: auto].
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lag: Option<String>,
    /// The same seed gives the same trials [default: 1].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Windows searched at a time. No result depends on it.
    #[arg(long, value_name = "N", default_value_t = 2)]
    windows: usize,
    /// Where trials are evaluated: auto, cpu, cuda (all GPUs) or cuda:N. No result depends on it [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Keep the studies of all windows in this folder, and resume those that it holds.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a page with the stitched equity and the parameters through time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: WalkforwardArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let choice = device_choice(args.device, &settings)?;
    // With workers the devices of this machine are theirs.
    let devices = Devices::choose(if args.cluster.is_remote() { DeviceChoice::Cpu } else { choice })?;
    let devices = devices.with_wait_limit(settings.gpu.wait_limit());
    let (code, document) = run_on(&args, &settings, devices, display)?;
    let mut out = std::io::stdout().lock();
    out.write_all(document.as_bytes())?;
    out.flush()?;
    Ok(code)
}

/// Runs the command on these devices; what is to be printed.
fn run_on(
    args: &WalkforwardArgs,
    settings: &Settings,
    devices: Devices,
    display: &Display,
) -> Result<(ExitCode, String)> {
    refuse_parts(&args.source)?;
    if args.windows == 0 {
        bail!("--windows must be at least 1");
    }
    let resolved = resolve(args, settings)?;
    let strategy = args.options.open(&args.strategy, settings)?;
    let (data, layout) = args.source.open(settings)?;
    let runtime = Runtime {
        cluster: args.cluster.open(LocalWorkers {
            threads: args.threads.or(settings.run.threads),
            device: device_choice(args.device, settings)?,
            config: args.options.config.clone(),
        })?,
        ..runtime(devices, settings, resolved.cache_bytes)
    };
    let experiment = Experiment::new(strategy, data).layout(layout).runtime(runtime);
    experiment.notes().iter().for_each(|note| eprintln!("note: {note}"));
    let mut walk = experiment
        .walk_forward(pace(args)?)
        .options(resolved.search.clone())
        .workers(args.windows)
        .told(told_pace(&args.train, &args.test, args.anchored));
    if let Some(dir) = &args.out {
        walk = walk.folder(dir);
    }
    // Before the work, because a name with a typo must not cost a whole walk.
    args.columns.choose(&mut text::table(&experiment.strategy))?;
    let n_windows = walk.windows()?.len() as u64;
    let Experiment { strategy, runtime, .. } = &experiment;
    eprintln!(
        "walking {} through {}: {} of {} trials each, on {}",
        strategy.name,
        experiment.origin(),
        number::counted(n_windows, "window"),
        number::count(resolved.search.trials),
        args.cluster.shown().unwrap_or_else(|| runtime.devices.shown())
    );
    let report = with_progress(walk, n_windows * resolved.search.trials, display.is_verbose)?;
    let Some(summary) = report.summary else {
        eprintln!("stopped before all windows were searched");
        if args.out.is_some() {
            eprintln!("  hint: the same command resumes it");
        }
        return Ok((ExitCode::from(130), String::new()));
    };
    let walked = WalkedForward {
        experiment: &experiment,
        search: &resolved.search,
        train: &args.train,
        test: &args.test,
        anchored: args.anchored,
        year_days: report.year_days,
        benchmark: report.benchmark.as_deref(),
        summary: &summary,
    };
    let whole = serde_json::to_string_pretty(&walked.document())?;
    if let Some(dir) = &args.out {
        write_whole(&dir.join(WALK_FILE), |file| Ok(file.write_all(whole.as_bytes())?))?;
        eprintln!("studies: {}", dir.display());
    }
    if let Some(path) = &args.html {
        let html = walked.page();
        write_whole(path, |file| Ok(file.write_all(html.as_bytes())?))?;
        eprintln!("page: {}", path.display());
    }
    let pool_note = walked.pool_note();
    let shown = match args.json {
        true => format!("{whole}\n"),
        false => text::text(&summary, strategy, pool_note, &args.columns, &display.screen)?,
    };
    Ok((ExitCode::SUCCESS, shown))
}

/// Name of the document in the folder of a walk-forward.
pub const WALK_FILE: &str = "walkforward.json";

/// The windows as the journal records them.
pub fn told_pace(train: &str, test: &str, anchored: bool) -> Map<String, Value> {
    Map::from_iter([
        ("train".into(), json!(train)),
        ("test".into(), json!(test)),
        ("anchored".into(), json!(anchored)),
    ])
}

/// A walk-forward that has ended.
pub struct WalkedForward<'a> {
    /// What was tried.
    pub experiment: &'a Experiment,
    /// How trials were proposed.
    pub search: &'a SearchOptions,
    /// How long each search looks back, as it was given.
    pub train: &'a str,
    /// How long each winner is traded.
    pub test: &'a str,
    /// Whether all searches begin with the data.
    pub anchored: bool,
    /// Days of a year of what was traded.
    pub year_days: f64,
    /// What it is compared with, if it can be compared.
    pub benchmark: Option<&'a str>,
    /// All windows together.
    pub summary: &'a WalkForwardSummary,
}

impl WalkedForward<'_> {
    /// Everything as JSON.
    pub fn document(&self) -> Value {
        let strategy = &self.experiment.strategy;
        json!({
            "strategy": strategy.name,
            "data": self.experiment.origin(),
            "objective": strategy.objective().text,
            "train": self.train,
            "test": self.test,
            "anchored": self.anchored,
            "sampler": self.search.sampler.name(),
            "seed": self.search.seed,
            "trials": self.search.trials,
            "year_days": self.year_days,
            "benchmark": self.benchmark,
            "walk_forward": self.summary,
        })
    }

    /// The page as one HTML text.
    pub fn page(&self) -> String {
        let strategy = &self.experiment.strategy;
        let mut origin = self.experiment.origin();
        if let Some(note) = self.pool_note() {
            origin = format!("{origin}. {note}");
        }
        page::html(&strategy.name, &origin, &strategy.objective().text, self.summary)
    }

    /// How figures of several symbols are pooled.
    fn pool_note(&self) -> Option<&'static str> {
        (self.experiment.data.universe.symbols.len() > 1).then_some(POOL_NOTE)
    }
}

/// Runs it with a progress line.
fn with_progress(
    walk: WalkForward,
    n_trials: u64,
    is_verbose: bool,
) -> Result<tidemill_lab::WalkForwardReport> {
    let progress = ProgressLine::new(n_trials, "trials");
    let bar = progress.clone();
    let report = walk
        .observe(move |event| match event {
            SweepEvent::BatchFinished { n_trials, .. } => bar.inc(*n_trials),
            SweepEvent::WindowTraded { n_done, n_windows, .. } => {
                bar.set_message(format!("{n_done} of {n_windows} windows done"));
            }
            SweepEvent::BatchTimed { step, timing } if is_verbose => {
                bar.suspend(|| eprintln!("{}", batch_line(step, timing)));
            }
            SweepEvent::Fleet { event, .. } => {
                if let Some((sentence, is_detail)) = cluster::sentence(event)
                    && (is_verbose || !is_detail)
                {
                    bar.suspend(|| eprintln!("{sentence}"));
                }
            }
            SweepEvent::FellBack { reason } => {
                bar.suspend(|| eprintln!("{}", fallback_warning("the rest", reason)));
            }
            SweepEvent::JournalFailed { reason } => bar.suspend(|| eprintln!("warning: {reason}")),
            _ => {}
        })
        .run();
    progress.finish_and_clear();
    Ok(report?)
}

fn resolve(args: &WalkforwardArgs, settings: &Settings) -> Result<Resolved> {
    let asked = Asked {
        plan_trials: None,
        trials: Some(args.trials.or(settings.sweep.trials).unwrap_or(DEFAULT_TRIALS)),
        sampler: args.sampler.as_deref(),
        batch: args.batch.as_deref(),
        lag: args.lag.as_deref(),
        seed: args.seed,
        top: None,
        hypertune: Some(Mode::Off),
        part: None,
    };
    asked.resolve(settings)
}
/// Windows are the parts here; there are no others.
fn refuse_parts(source: &DataSource) -> Result<()> {
    for (given, flag) in [
        (source.split.is_some(), "--split"),
        (source.folds.is_some(), "--folds"),
        (source.holdout.is_some(), "--holdout"),
    ] {
        if given {
            bail!(
                "{flag} does not apply to a walk-forward: each window has its own searched and traded parts"
            );
        }
    }
    Ok(())
}

fn pace(args: &WalkforwardArgs) -> Result<Pace> {
    let length = |text: &str, flag: &str| timeframe::parse_span(text).with_context(|| flag.to_owned());
    Ok(Pace {
        train_ms: length(&args.train, "--train")?,
        test_ms: length(&args.test, "--test")?,
        anchored: args.anchored,
    })
}

#[cfg(test)]
mod tests;
