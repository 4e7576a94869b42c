//! `tidemill bench`: how fast this machine is.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_lab::{
    Dataset, DeviceChoice, Devices, Experiment, Runtime, SearchOptions, SweepReport, number, open_strategy,
};
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::SamplerKind;

use super::sweep::stop_flag;
use crate::exit::ExitCode;
use crate::input::set_threads;
use crate::progress::ProgressLine;
use crate::settings::GpuSettings;
use crate::table::{Display, Table};

/// From few parameters to many.
const STRATEGIES: [&str; 4] = ["zscore-dip", "ema-cross", "seller-exhaustion", "perps-trend"];

/// Measure this machine: trials a second of shipped strategies, on the CPU and on the GPU if there is one.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill bench
  tidemill bench --device cpu --threads 1 --json")]
pub struct BenchArgs {
    /// Trials of each strategy.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    trials: u64,
    /// Hourly bars of the generated series.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    bars: usize,
    /// Devices to measure besides the CPU: auto, cpu (nothing), cuda (all GPUs) or cuda:N.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One strategy on one device.
struct StrategySpeed {
    strategy: &'static str,
    device: String,
    report: SweepReport,
}

pub fn run(args: BenchArgs, display: &Display) -> Result<ExitCode> {
    set_threads(args.threads)?;
    if args.trials == 0 || args.bars == 0 {
        bail!("--trials and --bars must be at least 1");
    }
    let data = Arc::new(Dataset::of(regime(&RegimeOptions::hourly(1, args.bars))));
    let mut devices = vec![Devices::choose(DeviceChoice::Cpu)?];
    let further = Devices::choose(args.device)?;
    if let Some(note) = &further.note {
        eprintln!("note: {note}");
    }
    if !further.devices.is_empty() {
        devices.push(further);
    }
    let devices: Vec<Arc<Devices>> = devices.into_iter().map(Arc::new).collect();
    let progress = ProgressLine::new((STRATEGIES.len() * devices.len()) as u64 * args.trials, "trials");
    let stop = stop_flag();
    let mut measured = Vec::new();
    for strategy in STRATEGIES {
        for devices in &devices {
            progress.set_message(format!("{strategy} on {}", devices.shown()));
            let runtime = Runtime {
                devices: devices.clone(),
                device_options: GpuSettings::default().device_options(),
                stop: stop.clone(),
                ..Runtime::default()
            };
            let report = sweep(strategy, &data, runtime, args.trials)?;
            if !report.is_complete {
                progress.finish_and_clear();
                return Ok(ExitCode::from(130));
            }
            progress.inc(args.trials);
            measured.push(StrategySpeed { strategy, device: devices.shown(), report });
        }
    }
    progress.finish_and_clear();
    let n_different = different(&measured, devices.len());
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", document(&measured, n_different))?;
    } else {
        write!(out, "{}", table(&measured).render(2, &display.screen))?;
        if devices.len() > 1 {
            writeln!(out, "best trials compared with the CPU: {n_different} differ")?;
        }
    }
    Ok(if n_different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sweep(strategy: &str, data: &Arc<Dataset>, runtime: Runtime, trials: u64) -> Result<SweepReport> {
    let strategy = open_strategy(strategy, &Default::default())?;
    let experiment = Experiment::new(strategy, data.clone()).runtime(runtime);
    let options = SearchOptions { trials, sampler: SamplerKind::Random, ..SearchOptions::default() };
    Ok(experiment.sweep().options(options).verdict(false).run()?)
}

/// Trials among the best that a device and the CPU do not agree on.
fn different(measured: &[StrategySpeed], n_devices: usize) -> usize {
    let best = |measured: &StrategySpeed| -> Vec<(u64, Option<u64>)> {
        let scored = measured.report.best.iter();
        scored.map(|scored| (scored.trial.number, scored.objective().map(f64::to_bits))).collect()
    };
    let differing = |of: &[StrategySpeed]| {
        let cpu = best(&of[0]);
        of[1..]
            .iter()
            .map(|device| best(device).iter().zip(&cpu).filter(|(a, b)| a != b).count())
            .sum::<usize>()
    };
    measured.chunks(n_devices).map(differing).sum()
}

/// Trials and bar-evaluations a second.
fn speed(report: &SweepReport) -> (f64, f64) {
    let seconds = report.summary.wall.as_secs_f64();
    let trials = report.summary.n_trials as f64 / seconds;
    (trials, trials * report.n_bars as f64)
}

fn table(measured: &[StrategySpeed]) -> Table {
    let mut table = Table::new(["strategy", "on", "trials", "seconds", "trials/s", "bar-evaluations/s"]);
    for StrategySpeed { strategy, device, report } in measured {
        let (trials, bars) = speed(report);
        table.row([
            (*strategy).into(),
            device.clone(),
            number::count(report.summary.n_trials),
            format!("{:.2}", report.summary.wall.as_secs_f64()),
            number::count(trials as u64),
            format!("{bars:.2e}"),
        ]);
    }
    table
}

fn document(measured: &[StrategySpeed], n_different: usize) -> Value {
    let rows = measured.iter().map(|StrategySpeed { strategy, device, report }| {
        let (trials, bars) = speed(report);
        json!({
            "strategy": strategy,
            "device": device,
            "trials": report.summary.n_trials,
            "bars": report.n_bars,
            "seconds": report.summary.wall.as_secs_f64(),
            "trials_per_second": trials,
            "bar_evaluations_per_second": bars,
        })
    });
    json!({ "measured": rows.collect::<Vec<_>>(), "different": n_different })
}
