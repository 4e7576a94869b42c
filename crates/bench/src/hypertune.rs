//! Measures tuning at run time: a sweep that starts with a bad batch and lag, left alone and tuned, beside one tuned by hand.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use tidemill_lab::{
    Dataset, DeviceChoice, Devices, Experiment, Runtime, SearchOptions, TuneOptions, number, open_strategy,
};
use tidemill_telemetry::hypertune::Mode;

#[derive(Args)]
pub struct HypertuneArgs {
    /// Strategy file, or the name of a shipped strategy.
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    /// Number of trials.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    trials: u64,
    /// Trials at a time of the bad start; its lag is 0.
    #[arg(long, value_name = "B", default_value_t = 16)]
    bad_batch: usize,
    /// Trials at a time by hand; its lag is 1.
    #[arg(long, value_name = "B", default_value_t = 4096)]
    good_batch: usize,
    /// Sampler.
    #[arg(long, value_name = "NAME", default_value = "sobol")]
    sampler: String,
    /// Where trials are evaluated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Rounds; medians are printed.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Leave out the run with a bad start and no tuning, which can take long.
    #[arg(long)]
    skip_bad: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: HypertuneArgs) -> Result<ExitCode> {
    let mut cases = vec![("by hand", args.good_batch, 1, Mode::Off), ("tuned", args.bad_batch, 0, Mode::On)];
    if !args.skip_bad {
        cases.push(("left alone", args.bad_batch, 0, Mode::Off));
    }
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    for _ in 0..args.rounds.max(1) {
        for ((_, batch, lag, mode), seconds) in cases.iter().zip(&mut seconds) {
            seconds.push(sweep(&args, *batch, *lag, *mode)?);
        }
    }
    let medians: Vec<f64> = seconds
        .iter_mut()
        .map(|seconds| {
            seconds.sort_by(f64::total_cmp);
            seconds[seconds.len() / 2]
        })
        .collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        let rows: Vec<Value> = cases
            .iter()
            .zip(&medians)
            .map(|((name, batch, lag, mode), s)| {
                json!({ "case": name, "batch": batch, "lag": lag, "hypertune": mode, "wall_s": s })
            })
            .collect();
        let tuned_over_by_hand = medians[1] / medians[0];
        let answer = json!({ "bench": "hypertune", "trials": args.trials, "cases": rows, "tuned_over_by_hand": tuned_over_by_hand });
        writeln!(out, "{answer}")?;
    } else {
        let trials = number::count(args.trials);
        writeln!(out, "hypertune: {trials} trials of {}, sampler {}", args.strategy, args.sampler)?;
        for ((name, batch, lag, _), s) in cases.iter().zip(&medians) {
            let batch = number::count(*batch as u64);
            writeln!(
                out,
                "  {name:<11} {s:9.2} s   {:.2} times by hand   (batch {batch}, lag {lag})",
                s / medians[0]
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Wall seconds of one sweep.
fn sweep(args: &HypertuneArgs, batch: usize, lag: usize, mode: Mode) -> Result<f64> {
    let strategy = open_strategy(&args.strategy, &Default::default())?;
    let runtime = Runtime { devices: Arc::new(Devices::choose(args.device)?), ..Runtime::default() };
    let options = SearchOptions {
        trials: args.trials,
        sampler: args.sampler.parse()?,
        batch: Some(batch),
        lag: Some(lag),
        ..SearchOptions::default()
    };
    let report = Experiment::new(strategy, Dataset::generated())
        .runtime(runtime)
        .sweep()
        .options(options)
        .tuning(TuneOptions { mode, ..TuneOptions::default() })
        .run()?;
    Ok(report.summary.wall.as_secs_f64())
}
