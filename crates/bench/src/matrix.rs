//! Speed of default sweeps: all shipped strategies, over one long series, over some symbols and over many, on the CPU and on the GPU.
//!
//! Each is the sweep that `tidemill sweep NAME --data FILE --trials N --verdict off` runs: sampler, batch and lag are what a user gets who sets
//! nothing. The CPU gets fewer trials, or the whole would take an hour; the batch follows from the trials, so that the table says both.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tidemill::set_threads;
use tidemill_backtest::Overrides;
use tidemill_lab::shipped::{GATE, SHIPPED};
use tidemill_lab::{
    Dataset, DeviceChoice, Devices, Experiment, Runtime, SearchOptions, SweepReport, TuneOptions, number,
    open_strategy,
};
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_telemetry::hypertune::Mode;

/// Trials of the sweep that comes before the measurement: it compiles the kernels, and its winners are compared between devices.
const COMPARED_TRIALS: u64 = 64;

/// A strategy with more parameters than this gets an eighth of the trials on the CPU, where each takes many times as long.
const MANY_PARAMETERS: usize = 64;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill-bench matrix > matrix.md
  tidemill-bench matrix --device cpu --strategies ema-cross,zscore-dip --rounds 1
  tidemill-bench matrix --device cuda --shapes series --trials 50000 --json
  tidemill-bench matrix --data btc.parquet --rounds 5

Without --trials there are 100,000 on a GPU over one series and 10,000 over several symbols; on the CPU 8,192 over one
series, 2,048 over some symbols and 512 over many, and an eighth of that for a strategy with more than 64 parameters.")]
pub struct MatrixArgs {
    /// Bars of your own instead of the generated ones: a CSV or Parquet file, or a folder of them. Repeatable.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shapes", "quick"])]
    data: Vec<PathBuf>,
    /// Which generated data.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "series,symbols,daily")]
    shapes: Vec<Shape>,
    /// Strategies: names of shipped ones, or files [default: all shipped].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    strategies: Vec<String>,
    /// Trials of each sweep [default: see below].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: Option<u64>,
    /// Trials of each sweep on the CPU [default: --trials, or see below].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cpu_trials: Option<u64>,
    /// Repetitions; the median by time counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=999))]
    rounds: u32,
    /// Where it runs: auto (the CPU, then all GPUs if there are any), cpu, cuda (all GPUs), cuda:N or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Everything small: does it run?
    #[arg(long)]
    quick: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A shape of generated data.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// One hourly series of 60,000 bars.
    Series,
    /// 51 symbols of 5,000 hourly bars.
    Symbols,
    /// 500 symbols of 2,500 daily bars.
    Daily,
}

impl Shape {
    fn universe(self, is_quick: bool) -> RegimeOptions {
        let options = match (self, is_quick) {
            (Self::Series, false) => RegimeOptions::hourly(1, 60_000),
            (Self::Series, true) => RegimeOptions::hourly(1, 1_000),
            (Self::Symbols, false) => RegimeOptions::hourly(51, 5_000),
            (Self::Symbols, true) => RegimeOptions::hourly(3, 600),
            (Self::Daily, false) => RegimeOptions::hourly(500, 2_500),
            (Self::Daily, true) => RegimeOptions::hourly(5, 400),
        };
        match self {
            Self::Daily => RegimeOptions { timeframe_ms: 24 * 3_600_000, ..options },
            _ => options,
        }
    }
}

/// How many trials a sweep has where none are given, on the GPU and on the CPU.
#[derive(Clone, Copy)]
struct Trials {
    gpu: u64,
    cpu: u64,
}

impl Trials {
    fn of(n_symbols: usize, is_quick: bool) -> Self {
        match n_symbols {
            _ if is_quick => Self { gpu: 64, cpu: 64 },
            0..=1 => Self { gpu: 100_000, cpu: 8_192 },
            2..=100 => Self { gpu: 10_000, cpu: 2_048 },
            _ => Self { gpu: 10_000, cpu: 512 },
        }
    }
}

/// A strategy over data on a device.
struct Cell {
    data: usize,
    strategy: String,
    /// Its place among the devices.
    device: usize,
    trials: u64,
    /// One for each round.
    runs: Vec<TimedSweep>,
}

/// One round of a cell.
#[derive(Clone, Copy)]
struct TimedSweep {
    n_trials: u64,
    n_bars: u64,
    batch: usize,
    seconds: f64,
    /// None if nothing was evaluated.
    busy: Option<f64>,
    fill: Option<f64>,
}

impl TimedSweep {
    fn of(report: &SweepReport) -> Self {
        Self {
            n_trials: report.summary.n_trials,
            n_bars: report.n_bars,
            batch: report.batch,
            seconds: report.summary.wall.as_secs_f64(),
            busy: report.device_use.map(|used| used.busy),
            fill: report.device_use.map(|used| used.fill),
        }
    }

    fn trials_per_s(&self) -> f64 {
        self.n_trials as f64 / self.seconds
    }

    fn bar_evaluations_per_s(&self) -> f64 {
        self.trials_per_s() * self.n_bars as f64
    }
}

pub fn run(args: MatrixArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let strategies: Vec<String> = if args.strategies.is_empty() {
        SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect()
    } else {
        args.strategies.clone()
    };
    // Before the work: what cannot be opened is an error at once.
    for strategy in &strategies {
        open_strategy(strategy, &Overrides::default())?;
    }
    let devices = devices(args.device)?;
    let data = data(&args)?;
    let mut cells = Vec::new();
    let mut n_different = 0;
    let n_all = data.len() * strategies.len();
    for (data_idx, data) in data.iter().enumerate() {
        for (at, strategy) in strategies.iter().enumerate() {
            let number = data_idx * strategies.len() + at + 1;
            // Some compare symbols, others need bars within the day.
            let opened = open_strategy(strategy, &Overrides::default())?;
            if let Err(error) = Experiment::new(opened, data.clone()).check() {
                let error = error.to_string();
                let reason = error.lines().next().unwrap_or_default();
                eprintln!("{number} of {n_all}: left out over {}: {reason}", data.origin);
                continue;
            }
            eprintln!("{number} of {n_all}: {strategy} over {}", data.origin);
            let mut of_devices = Vec::new();
            for (device, devices) in devices.iter().enumerate() {
                let trials = n_trials(&args, strategy, data, devices)?;
                let (strategy, runs) = (strategy.clone(), Vec::new());
                of_devices.push(Cell { data: data_idx, strategy, device, trials, runs });
            }
            n_different += different(strategy, data, &devices)?;
            // Each device once per round, so that a machine that is busy for a while does not hurt one of them alone.
            for _ in 0..args.rounds {
                for cell in &mut of_devices {
                    let run = TimedSweep::of(&sweep(strategy, data, &devices[cell.device], cell.trials)?);
                    let rate = number::count(run.trials_per_s() as u64);
                    eprintln!("  {}: {:.3} s, {rate} trials/s", devices[cell.device].shown(), run.seconds);
                    cell.runs.push(run);
                }
            }
            cells.extend(of_devices);
        }
    }
    if cells.is_empty() {
        bail!("none of the strategies runs on this data");
    }
    let matrix = Matrix { args: &args, data: &data, devices: &devices, cells: &cells, n_different };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", matrix.json())?;
    } else {
        write!(out, "{}", matrix.markdown())?;
    }
    out.flush()?;
    Ok(if n_different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is measured, one after the other.
fn devices(choice: DeviceChoice) -> Result<Vec<Arc<Devices>>> {
    let mut chosen = Devices::choose(choice)?;
    // A GPU that fails ends the measurement: the CPU under its name would be a wrong number.
    chosen.may_fall_back = false;
    if let Some(note) = &chosen.note {
        eprintln!("note: {note}");
    }
    let mut devices = Vec::new();
    if choice == DeviceChoice::Auto || chosen.devices.is_empty() {
        devices.push(Arc::new(Devices::choose(DeviceChoice::Cpu)?));
    }
    if !chosen.devices.is_empty() {
        devices.push(Arc::new(chosen));
    }
    Ok(devices)
}

fn data(args: &MatrixArgs) -> Result<Vec<Arc<Dataset>>> {
    if !args.data.is_empty() {
        let data = Dataset::load(&args.data)?;
        data.notes.iter().for_each(|note| eprintln!("note: {note}"));
        return Ok(vec![Arc::new(data)]);
    }
    let of = |shape: &Shape| {
        let mut universe = regime(&shape.universe(args.quick));
        if let [first, _, ..] = &mut universe.symbols[..] {
            first.symbol = GATE.into();
        }
        Arc::new(Dataset::of(universe))
    };
    Ok(args.shapes.iter().map(of).collect())
}

/// Trials of a sweep: those that are asked for, or as many as take a while on such a device.
fn n_trials(args: &MatrixArgs, strategy: &str, data: &Dataset, devices: &Devices) -> Result<u64> {
    let usual = Trials::of(data.universe.symbols.len(), args.quick);
    if !devices.devices.is_empty() {
        return Ok(args.trials.unwrap_or(usual.gpu));
    }
    let n_params = open_strategy(strategy, &Overrides::default())?.params.len();
    let usual = if n_params > MANY_PARAMETERS { (usual.cpu / 8).max(1) } else { usual.cpu };
    Ok(args.cpu_trials.or(args.trials).unwrap_or(usual))
}

fn sweep(strategy: &str, data: &Arc<Dataset>, devices: &Arc<Devices>, trials: u64) -> Result<SweepReport> {
    let strategy = open_strategy(strategy, &Overrides::default())?;
    let runtime = Runtime { devices: devices.clone(), ..Runtime::default() };
    let report = Experiment::new(strategy, data.clone())
        .runtime(runtime)
        .sweep()
        .options(SearchOptions { trials, ..SearchOptions::default() })
        .tuning(TuneOptions { mode: Mode::Advise, ..TuneOptions::default() })
        .verdict(false)
        .run()?;
    if report.summary.n_trials == 0 {
        bail!("there was nothing to evaluate");
    }
    Ok(report)
}

/// Runs a small sweep on every device, which compiles what is not compiled yet; returns how many of its winners differ from those of the first
/// device.
fn different(strategy: &str, data: &Arc<Dataset>, devices: &[Arc<Devices>]) -> Result<usize> {
    let winners = |devices: &Arc<Devices>| -> Result<Vec<(u64, Option<u64>)>> {
        let report = sweep(strategy, data, devices, COMPARED_TRIALS)?;
        let bits =
            |of: &tidemill_lab::score::ScoredTrial| (of.trial.number, of.objective().map(f64::to_bits));
        Ok(report.best.iter().map(bits).collect())
    };
    let all: Vec<_> = devices.iter().map(winners).collect::<Result<_>>()?;
    let n_differing = |of: &Vec<(u64, Option<u64>)>| {
        let n_same = of.iter().zip(&all[0]).filter(|(a, b)| a == b).count();
        of.len().max(all[0].len()) - n_same
    };
    Ok(all.iter().map(n_differing).sum())
}

/// Everything that was measured.
struct Matrix<'a> {
    args: &'a MatrixArgs,
    data: &'a [Arc<Dataset>],
    devices: &'a [Arc<Devices>],
    cells: &'a [Cell],
    n_different: usize,
}

impl Matrix<'_> {
    fn is_cpu(&self, cell: &Cell) -> bool {
        self.devices[cell.device].devices.is_empty()
    }

    /// A table for each kind of data.
    fn markdown(&self) -> String {
        let mut out = format!(
            "Sweeps with the flags of `tidemill sweep` at their defaults and `--verdict off`, tidemill {}.\n",
            env!("CARGO_PKG_VERSION")
        );
        out += &match self.args.rounds {
            1 => "Each was measured once; kernels were compiled before.\n".to_owned(),
            n => format!("Medians of {n} rounds; kernels were compiled before.\n"),
        };
        if self.devices.len() > 1 {
            let of = number::counted(self.cells.len() as u64 / self.devices.len() as u64, "small sweep");
            out += &format!("Winners of {of} compared between devices: {} differ.\n", self.n_different);
        }
        for (at, data) in self.data.iter().enumerate() {
            out += &format!("\n## {}\n\n", data.origin);
            out +=
                "| strategy | on | trials | batch | seconds | trials/s | bar-evaluations/s | busy | fill |\n";
            out += "|---|---|---:|---:|---:|---:|---:|---:|---:|\n";
            for cell in self.cells.iter().filter(|cell| cell.data == at) {
                let run = cell.median();
                let percent = |share: Option<f64>| {
                    share.map_or("–".into(), |share| format!("{:.0} %", share * 100.0))
                };
                out += &format!(
                    "| {} | {} | {} | {} | {:.3} | {} | {:.2e} | {} | {} |\n",
                    cell.strategy,
                    self.devices[cell.device].shown(),
                    number::count(run.n_trials),
                    number::count(run.batch as u64),
                    run.seconds,
                    number::count(run.trials_per_s() as u64),
                    run.bar_evaluations_per_s(),
                    percent(run.busy),
                    percent(run.fill),
                );
            }
        }
        out
    }

    fn json(&self) -> Value {
        let cells = self.cells.iter().map(|cell| {
            let run = cell.median();
            let seconds: Vec<f64> = cell.runs.iter().map(|run| run.seconds).collect();
            json!({
                "data": self.data[cell.data].origin,
                "symbols": self.data[cell.data].universe.symbols.len(),
                "bars": run.n_bars,
                "strategy": cell.strategy,
                "device": self.devices[cell.device].shown(),
                "on": if self.is_cpu(cell) { "cpu" } else { "gpu" },
                "trials": run.n_trials,
                "batch": run.batch,
                "seconds": run.seconds,
                "seconds_of_rounds": seconds,
                "trials_per_second": run.trials_per_s(),
                "bar_evaluations_per_second": run.bar_evaluations_per_s(),
                "busy": run.busy,
                "fill": run.fill,
            })
        });
        json!({
            "bench": "matrix",
            "version": env!("CARGO_PKG_VERSION"),
            "threads": rayon::current_num_threads(),
            "rounds": self.args.rounds,
            "different": self.n_different,
            "cells": cells.collect::<Vec<_>>(),
        })
    }
}

impl Cell {
    fn median(&self) -> TimedSweep {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        runs[runs.len() / 2]
    }
}
