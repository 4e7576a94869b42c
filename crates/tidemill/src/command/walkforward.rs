//! `tidemill walkforward`: search a stretch of time, trade what was found on the stretch that follows, move on.
//!
//! Every window is a study of its own, with its own folder, so that each resumes and repeats like any other; because no window needs the
//! results of another, several are searched at a time.

mod page;
mod record;
mod search;
mod summary;
mod text;
mod window;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::strategy::Sizing;
use tidemill_backtest::{Engine, POOL_NOTE, Strategy, pool_year_days};
use tidemill_market::timeframe;
use tidemill_telemetry::hypertune::Mode;

use super::study::write_whole;
use super::sweep::{Asked, Resolved, device_choice, progress_bar, stop_flag, told_config};
use crate::executor::{DeviceChoice, Devices};
use crate::input::{DataSource, StrategyArgs, set_threads};
use crate::market::{benchmark_name, has_market};
use crate::number;
use crate::settings::Settings;
use record::Record;
use search::Search;
use summary::{Step, Summary};
use window::{Pace, Window};

/// Trials of a window where none are given.
const DEFAULT_TRIALS: u64 = 2_000;

/// Search again and again through time, and trade what was found on the time that follows.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill walkforward ema-cross --data btc.parquet --train 180d --test 30d
  tidemill walkforward my.toml --data data/ --train 52w --test 4w --anchored --trials 5000 --out runs/wf --html wf.html

With --out it can be stopped or killed at any time; the same command goes on where it was.")]
pub struct WalkforwardArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Length of the stretch that is searched, for example 180d.
    #[arg(long, value_name = "DURATION")]
    train: String,
    /// Length of the stretch that follows it; the next window is that much later.
    #[arg(long, value_name = "DURATION")]
    test: String,
    /// Begin every search where the first one began, so that it sees more and more.
    #[arg(long)]
    anchored: bool,
    /// Parameter sets of a window [default: 2000].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<u64>,
    /// How parameter sets are chosen, as in `tidemill sweep` [default: auto].
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// Parameter sets proposed at a time, or `auto` [default: auto].
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    batch: Option<String>,
    /// By how many batches the sampler lags behind [default: 1].
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    lag: Option<usize>,
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
    /// Keep the studies of all windows in this folder, and go on with those that it holds.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a page with the stitched equity and the parameters through time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: WalkforwardArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let devices = Devices::choose(device_choice(args.device, &settings)?)?.limited_by(&settings.gpu);
    let (code, document) = run_on(&args, &settings, &devices)?;
    let mut out = std::io::stdout().lock();
    out.write_all(document.as_bytes())?;
    out.flush()?;
    Ok(code)
}

/// Runs the command on these devices; what is to be printed.
fn run_on(args: &WalkforwardArgs, settings: &Settings, devices: &Devices) -> Result<(ExitCode, String)> {
    refuse_parts(&args.source)?;
    if args.windows == 0 {
        bail!("--windows must be at least 1");
    }
    let resolved = resolve(args, settings)?;
    let strategies = [args.options.open(&args.strategy, settings)?];
    let mut input = args.source.open(settings)?;
    input.notes.extend(strategies[0].remarks(&input.universe));
    input.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let windows = Window::all(&input.universe, input.layout.from_ms, input.layout.to_ms, pace(args)?)?;
    let record = Record::open(args.out.as_deref(), &strategies[0].name, devices, windows.len())?;
    eprintln!(
        "walking {} through {}: {} of {} trials each, on {}",
        strategies[0].name,
        input.origin,
        number::counted(windows.len() as u64, "window"),
        number::count(resolved.trials),
        devices.shown()
    );
    let title = format!("{} over {}", strategies[0].name, input.origin);
    record.start(&title, resolved.trials, &told(args, &strategies, &resolved, windows.len(), devices));

    let stop = stop_flag();
    let progress = progress_bar(windows.len() as u64 * resolved.trials, "{msg}");
    let n_workers = args.windows.min(windows.len());
    let search = Search {
        strategies: &strategies,
        input: &input,
        resolved: &resolved,
        devices,
        gpu: settings.gpu.clone(),
        n_workers,
        dir: args.out.as_deref(),
        embargo_ms: input.layout.embargo_ms,
        record: &record,
        stop: &stop,
        progress: &progress,
    };
    let steps = all(&search, &windows, n_workers);
    progress.finish_and_clear();
    let steps: Option<Vec<Step>> = match steps {
        Ok(steps) => steps.into_iter().collect(),
        Err(error) => {
            record.end("failed", format!("{error:#}"));
            return Err(error);
        }
    };
    let Some(steps) = steps else {
        record.end("stopped", "stopped before all windows were searched".into());
        eprintln!("stopped before all windows were searched");
        if args.out.is_some() {
            eprintln!("  hint: the same command goes on with the rest");
        }
        return Ok((ExitCode::from(130), String::new()));
    };
    // What is stitched together has the days of all symbols, and is held as a whole from the first stretch to the last.
    let year_days = pool_year_days(input.universe.symbols.iter());
    let traded = Layout {
        from_ms: Some(windows[0].cut_ms),
        to_ms: windows.last().map(|window| window.to_ms),
        ..Layout::default()
    };
    let segments = traded.segments(&input.universe)?;
    let engine = Engine::new(&strategies[0], &input.universe, segments, Default::default())?;
    let held = has_market(&strategies[0]).then(|| engine.benchmark(Role::Train, input.benchmark.as_ref()));
    let is_additive = strategies[0].execution.sizing == Sizing::Unit;
    let summary = Summary::new(steps, year_days, is_additive, held.as_ref());
    record.end("complete", record::line(&summary));
    let document = json!({
        "strategy": strategies[0].name,
        "data": input.origin,
        "objective": strategies[0].objective.text,
        "train": args.train,
        "test": args.test,
        "anchored": args.anchored,
        "sampler": resolved.sampler.name(),
        "seed": resolved.seed,
        "trials": resolved.trials,
        "year_days": year_days,
        "benchmark": held.is_some().then(|| benchmark_name(input.benchmark.as_ref())),
        "walk_forward": summary,
    });
    let whole = serde_json::to_string_pretty(&document)?;
    if let Some(dir) = &args.out {
        write_whole(&dir.join("walkforward.json"), |file| Ok(file.write_all(whole.as_bytes())?))?;
        eprintln!("studies: {}", dir.display());
    }
    let pool_note = (input.universe.symbols.len() > 1).then_some(POOL_NOTE);
    if let Some(path) = &args.html {
        let data = pool_note.map_or_else(|| input.origin.clone(), |note| format!("{}. {note}", input.origin));
        let html = page::html(&strategies[0].name, &data, &strategies[0].objective.text, &summary);
        write_whole(path, |file| Ok(file.write_all(html.as_bytes())?))?;
        eprintln!("page: {}", path.display());
    }
    let shown = if args.json {
        format!("{whole}\n")
    } else {
        text::text(&summary, &strategies[0].objective.text, pool_note)
    };
    Ok((ExitCode::SUCCESS, shown))
}

fn resolve(args: &WalkforwardArgs, settings: &Settings) -> Result<Resolved> {
    let asked = Asked {
        trials: Some(args.trials.or(settings.sweep.trials).unwrap_or(DEFAULT_TRIALS)),
        sampler: args.sampler.as_deref(),
        batch: args.batch.as_deref(),
        lag: args.lag,
        seed: args.seed,
        top: None,
        hypertune: Some(Mode::Off),
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
            bail!("{flag} has no place here: every window has what it searches and what follows it");
        }
    }
    Ok(())
}

fn pace(args: &WalkforwardArgs) -> Result<Pace> {
    let length = |text: &str, flag: &str| timeframe::parse_duration(text).with_context(|| flag.to_owned());
    Ok(Pace {
        train_ms: length(&args.train, "--train")?,
        test_ms: length(&args.test, "--test")?,
        anchored: args.anchored,
    })
}

/// The configuration as the journal tells it.
fn told(
    args: &WalkforwardArgs,
    strategies: &[Strategy],
    resolved: &Resolved,
    n_windows: usize,
    devices: &Devices,
) -> Map<String, Value> {
    let batch = resolved.batch.map_or_else(|| json!("auto"), |batch| json!(batch));
    let mut config = told_config(strategies, resolved, batch, devices);
    config.insert("train".into(), json!(args.train));
    config.insert("test".into(), json!(args.test));
    config.insert("anchored".into(), json!(args.anchored));
    config.insert("windows".into(), json!(n_windows));
    config
}

/// Searches all windows, a few at a time; `None` for those that were stopped. The first error ends it.
fn all(search: &Search<'_>, windows: &[Window], n_workers: usize) -> Result<Vec<Option<Step>>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<Option<Step>>>>> = Mutex::new(windows.iter().map(|_| None).collect());
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= windows.len() || failed.load(Ordering::SeqCst) > 0 {
                        return;
                    }
                    let step = search.run(at, &windows[at]);
                    failed.fetch_add(usize::from(step.is_err()), Ordering::SeqCst);
                    done.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(step);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut steps = Vec::with_capacity(done.len());
    for (at, step) in done.into_iter().enumerate() {
        match step {
            Some(Ok(step)) => steps.push(step),
            Some(Err(error)) => return Err(error.context(format!("window {}", at + 1))),
            None => steps.push(None),
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
