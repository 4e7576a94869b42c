//! Speed of the CUDA executor beside the CPU's, with every result compared.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use rayon::prelude::*;
use serde_json::json;
use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::{
    DeviceEngine, DeviceOptions, Engine, EngineOptions, Metrics, Outcome, Overrides, Stage, StageSpan,
    Strategy,
};
use tidemill_market::Universe;
use tidemill_market::synth::{RegimeOptions, lcg, regime};
use tidemill_search::{Points, SamplerKind, SamplerSettings};

use tidemill_lab::number;
use tidemill_lab::shipped::shipped;
use tidemill_lab::{DeviceChoice, Devices};

#[derive(Args)]
pub struct DeviceBenchArgs {
    /// Number of parameter sets [default: that of the benchmark].
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Parameter sets that the CPU evaluates too, for comparison; the first ones [default: all].
    #[arg(long, value_name = "N")]
    cpu_trials: Option<usize>,
    /// Repetitions; the median counts.
    #[arg(long, value_name = "N", default_value_t = 7)]
    repeat: usize,
    /// Parts of a batch that are on the device at a time.
    #[arg(long, value_name = "N")]
    streams: Option<usize>,
    /// Most parameter sets of one part.
    #[arg(long, value_name = "N")]
    part: Option<usize>,
    /// Where it runs: cuda or cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: DeviceChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A benchmark: a strategy, its data, and how many trials.
struct Workload {
    name: &'static str,
    strategy: Strategy,
    universe: Universe,
    n_trials: usize,
}

/// Seller exhaustion, everything random, on 50,000 bars.
pub fn exhaustion(args: DeviceBenchArgs) -> Result<ExitCode> {
    let universe = Universe { symbols: vec![lcg(50_000)] };
    run(
        args,
        Workload { name: "exhaustion-50k", strategy: exhaustion_strategy()?, universe, n_trials: 262_144 },
    )
}

/// Seller exhaustion on 2,600,000 one-minute bars.
pub fn long(args: DeviceBenchArgs) -> Result<ExitCode> {
    let options =
        RegimeOptions { n_bars: 2_600_000, n_symbols: 1, timeframe_ms: 60_000, ..RegimeOptions::default() };
    let universe = regime(&options);
    run(args, Workload { name: "long-1m", strategy: exhaustion_strategy()?, universe, n_trials: 16_384 })
}

/// Stop, target and time exits are on; everything else is searched.
fn exhaustion_strategy() -> Result<Strategy> {
    let on = ["use_stop_loss", "use_traditional_tp", "use_time_exit", "use_fib_exits"];
    let set = on.iter().map(|name| ((*name).to_owned(), "true".to_owned())).collect();
    Ok(Strategy::parse(
        "seller-exhaustion.toml",
        shipped("seller-exhaustion").context("seller-exhaustion is shipped")?,
        &Overrides { set, ..Overrides::default() },
    )?)
}

fn run(args: DeviceBenchArgs, work: Workload) -> Result<ExitCode> {
    let devices = Devices::choose(args.device)?;
    let Some(device) = devices.devices.first() else { bail!("this benchmark needs a GPU") };
    let segments = Layout::default().segments(&work.universe)?;
    let mut engine = Engine::new(&work.strategy, &work.universe, segments, EngineOptions::default())?;
    let n_trials = args.trials.unwrap_or(work.n_trials);
    let points = SamplerKind::Random.build(&engine.space(), &SamplerSettings::new(1))?.ask(n_trials);
    let mut options = DeviceOptions::default();
    options.context.streams = args.streams.unwrap_or(options.context.streams);
    options.most_trials = args.part.unwrap_or(options.most_trials);
    let began = Instant::now();
    let mut on_device = DeviceEngine::new(device, &engine, &work.strategy, options)?;
    let load_s = began.elapsed().as_secs_f64();

    let (in_two, halved) = timed_runs(&mut on_device, &engine, &halves(&points), args.repeat)?;
    let whole = [Arc::new(points)];
    let (runs, outcomes) = timed_runs(&mut on_device, &engine, &whole, args.repeat)?;
    // Stages of parts that overlap say little about kernels.
    drop(on_device);
    options.most_trials = n_trials;
    let mut in_one = DeviceEngine::new(device, &engine, &work.strategy, options)?;
    let (in_one, uncut) = timed_runs(&mut in_one, &engine, &whole, args.repeat)?;
    let [points] = whole;
    let (median, best, alone) = (&runs[runs.len() / 2], &runs[0], &in_one[in_one.len() / 2]);
    let in_two_s = in_two[in_two.len() / 2].seconds;

    let n_cpu = args.cpu_trials.unwrap_or(n_trials).min(n_trials);
    let mut compared = Points::new(points.n_params());
    let mut row = vec![0.0; points.n_params()];
    for at in 0..n_cpu {
        points.read_row(at, &mut row);
        compared.push(&row);
    }
    let began = Instant::now();
    let expected = engine.evaluate(&compared);
    let cpu_s = began.elapsed().as_secs_f64();
    let n_different =
        |a: &[Outcome], b: &[Outcome]| a.iter().zip(b).filter(|(a, b)| !same_bits(a, b)).count();
    let n_differ: usize =
        [&expected, &halved, &uncut].map(|others| n_different(&outcomes, others)).iter().sum();

    let n_bars = work.universe.n_bars();
    let evals = n_trials as f64 * n_bars as f64;
    let trades: u64 = outcomes.iter().map(|outcome| u64::from(outcome.train.trades)).sum();
    let kernel_s =
        [Stage::Masks, Stage::Walk, Stage::Book].map(|stage| alone.stage_ms(stage)).iter().sum::<f64>() / 1e3;
    let stages: Vec<(String, f64)> =
        STAGES.iter().map(|stage| (format!("{stage:?}").to_lowercase(), alone.stage_ms(*stage))).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        let stages: serde_json::Map<String, serde_json::Value> =
            stages.into_iter().map(|(name, ms)| (name, json!(ms))).collect();
        let result = json!({
            "bench": work.name, "device": device.info().name, "trials": n_trials, "bars": n_bars, "trades": trades,
            "median_s": median.seconds, "best_s": best.seconds, "in_two_s": in_two_s, "in_one_part_s": alone.seconds, "median_bar_evals_per_s": evals / median.seconds,
            "kernel_bar_evals_per_s": evals / kernel_s, "stages_ms": stages, "load_s": load_s,
            "cpu_trials": n_cpu, "cpu_s": cpu_s, "cpu_threads": rayon::current_num_threads(), "different": n_differ,
        });
        writeln!(out, "{result}")?;
    } else {
        writeln!(
            out,
            "{}: {} trials × {} bars on {}, {} trades a trial",
            work.name,
            number::count(n_trials as u64),
            number::count(n_bars as u64),
            device.info().name,
            trades / n_trials.max(1) as u64
        )?;
        writeln!(
            out,
            "  whole, cold columns   {:8.2} ms (best {:.2})   {:.3e} bar-evaluations/s",
            median.seconds * 1e3,
            best.seconds * 1e3,
            evals / median.seconds
        )?;
        writeln!(
            out,
            "  the same in two       {:8.2} ms                {:.3e} bar-evaluations/s",
            in_two_s * 1e3,
            evals / in_two_s
        )?;
        writeln!(out, "  until sums are back   {:8.2} ms", median.device_s * 1e3)?;
        for (name, ms) in [("host, before", median.before_ms()), ("host, after", median.after_ms())] {
            writeln!(out, "    {name:<18}{ms:10.2} ms")?;
        }
        writeln!(
            out,
            "  the same in one part  {:8.2} ms                {:.3e} bar-evaluations/s",
            alone.seconds * 1e3,
            evals / alone.seconds
        )?;
        writeln!(
            out,
            "  masks + walk + book   {:8.2} ms                {:.3e} bar-evaluations/s",
            kernel_s * 1e3,
            evals / kernel_s
        )?;
        for (name, ms) in &stages {
            writeln!(out, "    {name:<18}{ms:10.2} ms")?;
        }
        writeln!(out, "  load and compile      {:8.2} s", load_s)?;
        let cpu_rate = n_cpu as f64 * n_bars as f64 / cpu_s;
        writeln!(
            out,
            "  CPU, {} trials on {} threads: {:.2} s, {cpu_rate:.3e} bar-evaluations/s; the device is {:.0} times as fast",
            number::count(n_cpu as u64),
            rayon::current_num_threads(),
            cpu_s,
            evals / median.seconds / cpu_rate
        )?;
        writeln!(out, "  compared {} trials: {} differ", number::count(n_cpu as u64), n_differ)?;
    }
    out.flush()?;
    Ok(if n_differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Submits batches, each of the later ones before the one before it is read, and finishes the metrics of every trial as soon as its results are there:
/// the runs from the fastest to the slowest, and the outcomes of the last one. Columns are cold in each.
fn timed_runs(
    on_device: &mut DeviceEngine,
    engine: &Engine<'_>,
    batches: &[Arc<Points>],
    n_runs: usize,
) -> Result<(Vec<TimedRun>, Vec<Outcome>)> {
    let mut runs: Vec<TimedRun> = Vec::new();
    let mut outcomes: Vec<Vec<Outcome>> = Vec::new();
    // By piece, in memory of the run before.
    let mut metrics: Vec<Vec<Metrics>> = Vec::new();
    // The first one allocates.
    for _ in 0..=n_runs.max(1) {
        outcomes.clear();
        on_device.clear()?;
        on_device.take_spans();
        let began = Instant::now();
        batches.iter().try_for_each(|batch| on_device.submit(batch.clone()))?;
        let mut device_s = 0.0;
        let mut n_left: usize = batches.iter().map(|batch| batch.len()).sum();
        let mut at = 0;
        while n_left > 0 {
            let some = on_device.collect_some()?;
            device_s = began.elapsed().as_secs_f64();
            if metrics.len() == at {
                metrics.push(Vec::new());
            }
            let of_trial = |outcome: &Outcome| engine.pool_metrics(&outcome.train, Role::Train);
            some.par_iter().map(of_trial).collect_into_vec(&mut metrics[at]);
            n_left -= some.len();
            at += 1;
            outcomes.push(some);
        }
        let seconds = began.elapsed().as_secs_f64();
        let began_ms = (began - on_device.began()).as_secs_f64() * 1e3;
        runs.push(TimedRun { seconds, device_s, began_ms, spans: on_device.take_spans() });
    }
    runs.remove(0);
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok((runs, outcomes.into_iter().flatten().collect()))
}

/// The points in two batches.
fn halves(points: &Points) -> [Arc<Points>; 2] {
    let mut row = vec![0.0; points.n_params()];
    let middle = points.len() / 2;
    [0..middle, middle..points.len()].map(|range| {
        let mut half = Points::new(points.n_params());
        for at in range {
            points.read_row(at, &mut row);
            half.push(&row);
        }
        Arc::new(half)
    })
}

const STAGES: [Stage; 7] =
    [Stage::Upload, Stage::Distinct, Stage::Columns, Stage::Masks, Stage::Walk, Stage::Book, Stage::Download];

/// One repetition.
struct TimedRun {
    seconds: f64,
    device_s: f64,
    /// On the clock of the spans.
    began_ms: f64,
    spans: Vec<StageSpan>,
}

impl TimedRun {
    /// Until the first parameters go to the device.
    fn before_ms(&self) -> f64 {
        self.spans.iter().map(|span| span.begin_ms).fold(f64::INFINITY, f64::min) - self.began_ms
    }

    /// From the last sums on.
    fn after_ms(&self) -> f64 {
        self.began_ms + self.device_s * 1e3 - self.spans.iter().map(|span| span.end_ms).fold(0.0, f64::max)
    }

    fn stage_ms(&self, stage: Stage) -> f64 {
        self.spans.iter().filter(|span| span.stage == stage).map(|span| span.end_ms - span.begin_ms).sum()
    }
}

/// Whether two outcomes have the same bits.
pub fn same_bits(a: &Outcome, b: &Outcome) -> bool {
    let same =
        |a: &tidemill_backtest::tally::Tally, b: &tidemill_backtest::tally::Tally| a.bits() == b.bits();
    a.segments().len() == b.segments().len()
        && a.segments().iter().zip(b.segments()).all(|(a, b)| same(a, b))
        && same(&a.train, &b.train)
        && match (&a.test, &b.test) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        }
}
