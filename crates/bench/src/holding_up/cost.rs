//! What verdicts cost: the same sweeps with and without them, in turn, and the probability of overfitting by itself.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use tidemill_market::synth::{RegimeOptions, regime, walk};
use tidemill_search::SamplerKind;
use tidemill_search::rng::Stream;
use tidemill_verdict::blocks::block_lengths;
use tidemill_verdict::{Blocks, overfit};

use super::kind::Market;
use super::{N_BARS, sweep};
use tidemill_lab::shipped::shipped;

/// Trials of the sweeps that are timed.
const TRIALS: [u64; 3] = [2_000, 10_000, 50_000];

/// One sweep with and without verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The kind of market.
    pub data: &'static str,
    pub trials: u64,
    /// Median seconds without a verdict.
    pub without_s: f64,
    /// Median seconds with one.
    pub with_s: f64,
    /// The second over the first.
    pub ratio: f64,
    /// The same of the fastest rounds, which others at work on the machine disturbed least.
    pub fastest_ratio: f64,
}

/// Times sweeps of several sizes, so many rounds each, with and without verdict in turn; nothing for no rounds.
pub fn measure(kind: SamplerKind, rounds: usize) -> Result<Vec<Cost>> {
    if rounds == 0 {
        return Ok(Vec::new());
    }
    let strategy = shipped("zscore-dip").unwrap_or_default();
    let market = |universe| Market { universe, strategy, set: &[] };
    let one = market(walk(1, 1, N_BARS));
    let four = market(regime(&RegimeOptions::hourly(4, N_BARS)));
    let mut costs = Vec::new();
    for (data, market) in [("random walk", &one), ("four symbols", &four)] {
        for trials in TRIALS {
            costs.push(of(data, market, kind, trials, rounds)?);
        }
    }
    Ok(costs)
}

fn of(data: &'static str, market: &Market, kind: SamplerKind, trials: u64, rounds: usize) -> Result<Cost> {
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        // Whoever comes second finds warm caches, so that they take turns.
        for which in [round % 2, 1 - round % 2] {
            times[which].push(sweep::run(market, kind, trials, 1, which == 1)?.seconds);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [without_s, with_s] = [0, 1].map(|which| times[which][rounds / 2]);
    let fastest_ratio = times[1][0] / times[0][0];
    Ok(Cost { data, trials, without_s, with_s, ratio: with_s / without_s, fastest_ratio })
}

/// Seconds that the probability of overfitting takes for so many trials of noise in 16 blocks.
pub fn overfit_seconds(n_trials: usize) -> f64 {
    let days = block_lengths(1000, 16);
    let mut blocks = Blocks::new(&days);
    for trial in 0..n_trials as u64 {
        let stream = Stream::new(9, trial);
        let sums: Vec<[f64; 2]> = (0..16_u64)
            .map(|block| [stream.unit(2 * block) - 0.5, 0.2 + stream.unit(2 * block + 1)])
            .collect();
        blocks.push(&sums);
    }
    let began = Instant::now();
    std::hint::black_box(overfit(&blocks));
    began.elapsed().as_secs_f64()
}
