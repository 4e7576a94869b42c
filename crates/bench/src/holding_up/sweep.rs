//! One sweep of the bench: a market of which a third is out of sample, and whether the winner holds up.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::Result;
use tidemill_backtest::{Overrides, Strategy};
use tidemill_lab::verdict::VerdictReport;
use tidemill_lab::{Dataset, Experiment, SearchOptions, SweepEvent};
use tidemill_search::SamplerKind;

use super::kind::Market;

/// Trials of a batch.
const BATCH: usize = 128;

/// The verdict and figures of a sweep.
pub struct SweepResult {
    /// None where no verdict was wanted.
    pub report: Option<Arc<VerdictReport>>,
    /// Seconds of the whole sweep.
    pub seconds: f64,
    /// Seconds after the last trial.
    pub verdict_seconds: f64,
}

/// Sweeps a market.
pub fn run(
    market: &Market,
    sampler: SamplerKind,
    trials: u64,
    seed: u64,
    has_verdict: bool,
) -> Result<SweepResult> {
    let Market { universe, strategy, set } = market;
    let set = set.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    let strategy = Strategy::parse("the strategy of the bench", strategy, &overrides)?;
    let experiment = Experiment::new(strategy, Dataset::of(universe.clone())).split(0.67);
    let ended = Arc::new(OnceLock::new());
    let searched = ended.clone();
    let began = Instant::now();
    let report = experiment
        .sweep()
        .options(SearchOptions { trials, sampler, batch: Some(BATCH), seed, ..SearchOptions::default() })
        .top(1)
        .verdict(has_verdict)
        .observe(move |event| {
            if let SweepEvent::Judging = event {
                let _ = searched.set(Instant::now());
            }
        })
        .run()?;
    Ok(SweepResult {
        report: report.verdict,
        seconds: began.elapsed().as_secs_f64(),
        verdict_seconds: ended.get().map_or(0.0, |ended: &Instant| ended.elapsed().as_secs_f64()),
    })
}
