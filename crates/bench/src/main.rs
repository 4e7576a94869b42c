//! `tidemill-bench`: benchmarks for those who develop Tidemill. The program runs alone, also on a machine without Rust.

mod ask;
mod color;
mod cpu_sweep;
mod device;
mod fleet;
mod holding_up;
mod hypertune;
mod matrix;
mod overlap;
mod perps;
mod quality;
mod scan;
mod study;

use std::process::ExitCode;

/// That of the program, which is what benchmarks measure.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use clap::{Parser, Subcommand};

/// Measure speed and search quality.
#[derive(Parser)]
#[command(name = "tidemill-bench", version, propagate_version = true, max_term_width = 120)]
#[command(after_help = "Examples:
  tidemill-bench matrix > matrix.md
  tidemill-bench ask --json
  tidemill-bench overlap --timeline trace.json
  tidemill-bench scan --streams 1,4,16 --json
  tidemill-bench color --graphs graphs/ --only DSJC250.5,le450_25c --seeds 5
  tidemill-bench study --trials 1000000
  tidemill-bench fleet --workers 1,4,16 --lags 0,2,16
  tidemill-bench holding-up --sweeps 100 --trials 10000
  tidemill-bench quality --suite small --sampler auto,tpe --seeds 5
  tidemill-bench quality --suite planted")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Default sweeps: all shipped strategies × one series, 51 symbols, 500 symbols × CPU and GPU: trials a second, busy, fill.
    Matrix(matrix::MatrixArgs),
    /// Strategy S1 over a grid of 1,000 parameter sets, all metrics, cold each time.
    CpuSweep(cpu_sweep::CpuSweepArgs),
    /// Seller exhaustion on the GPU: 262,144 random parameter sets × 50,000 bars, cold, compared with the CPU.
    #[command(name = "exhaustion-50k")]
    Exhaustion(device::DeviceBenchArgs),
    /// A study of 142 parameters over 51 symbols × 5,000 bars on the GPU: 1,000,000 trials, sampler tpe.
    #[command(name = "perps-142")]
    Perps(perps::PerpsArgs),
    /// Seller exhaustion on 2,600,000 one-minute bars, 16,384 parameter sets.
    #[command(name = "long-1m")]
    Long(device::DeviceBenchArgs),
    /// What triple buffering gains where upload, computation and download take 2 : 5 : 2; results compared.
    Overlap(overlap::OverlapArgs),
    /// Trends of 10,000 symbols × 1,500 bars: streams, overlap, scaling, and many scans in a row; compared with the CPU.
    Scan(scan::ScanBenchArgs),
    /// A ladder of graphs with known numbers of colours: successes, time, speed; with --ablation what single phases contribute.
    Color(color::ColorBenchArgs),
    /// How long a sampler takes to propose a batch and to learn from it, by what it already knows.
    Ask(ask::AskArgs),
    /// Trials a second of a whole study with a trivial objective, stored on disk.
    Study(study::StudyArgs),
    /// How a study scales over workers that only take time, beside the formula of docs/cluster.md.
    Fleet(fleet::FleetArgs),
    /// What tuning a sweep while it runs is worth, from a bad batch and lag.
    Hypertune(hypertune::HypertuneArgs),
    /// How often luck is called good, and an edge luck: sweeps of random walks and of markets with a planted edge.
    HoldingUp(holding_up::HoldingUpArgs),
    /// How good a search is: test functions beside recorded results of others, and a market with a known optimum.
    Quality(quality::QualityArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().bench {
        Bench::Matrix(args) => matrix::run(args),
        Bench::CpuSweep(args) => cpu_sweep::run(args),
        Bench::Exhaustion(args) => device::exhaustion(args),
        Bench::Perps(args) => perps::run(args),
        Bench::Long(args) => device::long(args),
        Bench::Overlap(args) => overlap::run(args),
        Bench::Scan(args) => scan::run(args),
        Bench::Color(args) => color::run(args),
        Bench::Ask(args) => ask::run(args),
        Bench::Study(args) => study::run(args),
        Bench::Fleet(args) => fleet::run(args),
        Bench::Hypertune(args) => hypertune::run(args),
        Bench::HoldingUp(args) => holding_up::run(args),
        Bench::Quality(args) => quality::run(args),
    };
    result.unwrap_or_else(|error: anyhow::Error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
