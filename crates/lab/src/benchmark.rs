//! A strategy compared with its benchmark: its return beyond holding, on one part of the data.

use serde::{Deserialize, Serialize};
use tidemill_backtest::Strategy;
use tidemill_backtest::strategy::Sizing;
use tidemill_market::Bars;
use tidemill_verdict::Alpha;

/// Description of the default benchmark.
const HELD: &str = "buy and hold";

/// One part of the data: returns as shares, α by the year; what is not defined is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgainstMarket {
    /// Return of holding the benchmark.
    pub benchmark_return: f64,
    /// Return of the strategy beyond it.
    pub excess_return: f64,
    /// Mean share of equity in the market, long less short, over all bars; not known for stitched windows.
    pub net_exposure: Option<f64>,
    /// Return of holding that share of the benchmark, re-weighted daily.
    pub exposure_matched_return: Option<f64>,
    /// β, α and its t.
    #[serde(flatten)]
    pub fit: Alpha,
}

impl AgainstMarket {
    /// Compares daily returns with a benchmark's, which came to this in all.
    pub fn new(returns: &[f64], benchmark: &[f64], benchmark_return: f64, year_days: f64) -> Self {
        Self {
            benchmark_return,
            excess_return: total(returns.iter().copied()) - benchmark_return,
            net_exposure: None,
            exposure_matched_return: None,
            fit: Alpha::new(returns, benchmark, year_days),
        }
    }
}

/// Whether a strategy can be compared with a market: returns in price units cannot.
pub fn has_market(strategy: &Strategy) -> bool {
    strategy.execution.sizing != Sizing::Unit
}

/// Display name of the benchmark.
pub fn benchmark_name(named: Option<&Bars>) -> &str {
    named.map_or(HELD, |bars| &bars.symbol)
}

/// The total return of daily returns; equity that reached 0 stays there.
pub(crate) fn total(daily: impl Iterator<Item = f64>) -> f64 {
    daily.fold(1.0, |equity: f64, change| (equity * (1.0 + change)).max(0.0)) - 1.0
}
