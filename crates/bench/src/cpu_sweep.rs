//! Strategy S1 over a grid, as the peer benchmarks run it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use rayon::prelude::*;
use serde_json::json;
use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::{Engine, EngineOptions, Metrics, Overrides, Strategy};
use tidemill_market::{LoadOptions, load};
use tidemill_search::{SamplerKind, SamplerSettings};

use tidemill::set_threads;

/// Strategy S1, which the rivals run too.
const S1: &str = include_str!("../../../benches/peers/s1.toml");

#[derive(Args)]
pub struct CpuSweepArgs {
    /// Bars to run on (see benches/peers/make_data.py).
    #[arg(long, value_name = "FILE")]
    data: std::path::PathBuf,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Repetitions; the fastest counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeat: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: CpuSweepArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let overrides = Overrides { set: vec![("end_of_data".into(), "discard".into())], ..Overrides::default() };
    let strategy = Strategy::parse("s1.toml", S1, &overrides)?;
    let universe = load(std::slice::from_ref(&args.data), &LoadOptions::default())?.universe;
    let segments = Layout::default().segments(&universe)?;
    let mut seconds = f64::INFINITY;
    let (mut trials, mut trades, mut checksum) = (0, 0_u64, 0.0);
    for _ in 0..args.repeat.max(1) {
        let began = Instant::now();
        let mut engine = Engine::new(&strategy, &universe, segments.clone(), EngineOptions::default())?;
        let space = engine.space();
        let points = SamplerKind::Grid.build(&space, &SamplerSettings::new(0))?.ask(usize::MAX / 2);
        let outcomes = engine.evaluate(&points);
        let metrics: Vec<Metrics> =
            outcomes.par_iter().map(|outcome| engine.pool_metrics(&outcome.train, Role::Train)).collect();
        seconds = seconds.min(began.elapsed().as_secs_f64());
        trials = points.len();
        trades = outcomes.iter().map(|outcome| u64::from(outcome.train.trades)).sum();
        checksum = metrics.iter().flat_map(Metrics::iter).filter_map(|(_, value)| value).sum();
    }
    let bars = universe.n_bars();
    let rate = trials as f64 * bars as f64 / seconds;
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "seconds": seconds, "trials": trials, "bars": bars, "bar_evals_per_s": rate,
            "threads": rayon::current_num_threads(), "checksum": checksum, "total_trades": trades,
        });
        writeln!(out, "{result}")?;
    } else {
        writeln!(
            out,
            "{trials} trials × {bars} bars in {:.1} ms on {} threads: {rate:.3e} bar-evaluations/s, {trades} trades",
            seconds * 1e3,
            rayon::current_num_threads()
        )?;
    }
    out.flush().context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}
