//! `tidemill bench`: speed and search quality on this machine.

mod ask;
mod cpu_sweep;
mod quality;
mod study;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Measure speed and search quality.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill bench ask --json
  tidemill bench study --trials 1000000
  tidemill bench quality --suite small --sampler auto,tpe --seeds 5
  tidemill bench quality --suite planted")]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Strategy S1 over a grid of 1,000 parameter sets, all metrics, cold each time.
    CpuSweep(cpu_sweep::CpuSweepArgs),
    /// How long a sampler takes to propose a batch and to learn from it, by what it already knows.
    Ask(ask::AskArgs),
    /// Trials a second of a whole study with a trivial objective, stored on disk.
    Study(study::StudyArgs),
    /// How good a search is: test functions beside recorded results of others, and a market with a known optimum.
    Quality(quality::QualityArgs),
}

/// Runs the command.
pub fn run(args: BenchArgs) -> Result<ExitCode> {
    match args.bench {
        Bench::CpuSweep(args) => cpu_sweep::run(args),
        Bench::Ask(args) => ask::run(args),
        Bench::Study(args) => study::run(args),
        Bench::Quality(args) => quality::run(args),
    }
}
