//! Metrics: what the sums of a walk mean. Defined in `docs/semantics.md`; not defined is NaN here and `null` outside.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::tally::Tally;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Metric {
    /// Closed trades.
    Trades,
    /// Share of trades with a profit.
    WinRate,
    /// Returns of the winners over those of the losers.
    ProfitFactor,
    /// Mean return of a trade.
    Expectancy,
    /// Equity at the end less that at the start.
    TotalReturn,
    /// Return per year.
    AnnualReturn,
    /// Mean over standard deviation of daily returns, per year.
    Sharpe,
    /// Mean over downside deviation of daily returns, per year.
    Sortino,
    /// Deepest relative fall of equity, over daily marks and exits.
    MaxDrawdown,
    /// The same over daily marks alone.
    MaxDrawdownDaily,
    /// The same with open positions marked at their adverse extreme of every bar.
    MaxDrawdownBar,
    /// Return per year over deepest fall.
    Calmar,
    /// Quality of the system: root of trades, times mean over deviation of R.
    Sqn,
    /// Share of bars with a position.
    Exposure,
    /// Most days in a row below a former peak.
    LongestDrawdown,
    /// Profit of one unit, in price units.
    NetPnl,
    /// Deepest fall of the cumulated profit, in price units.
    MaxDrawdownPnl,
    /// The same with the peak starting at the first trade.
    MaxDrawdownPnlRef,
    /// Mean over standard deviation of R.
    SharpeR,
    /// Mean of R.
    AvgR,
    /// Mean return of a winner.
    AvgWin,
    /// Mean return of a loser.
    AvgLoss,
    /// Profit of the winners over loss of the losers, in price units.
    ProfitFactorPnl,
    /// Mean profit of a winner, in price units.
    AvgWinPnl,
    /// Mean loss of a loser, in price units.
    AvgLossPnl,
    /// Share of trades on the long side.
    LongShare,
    /// Mean bars held.
    AvgBars,
    /// Trades closed only because the data ended.
    OpenAtEnd,
    /// Trades whose exit depends on which extreme of a bar came first.
    Ambiguous,
    /// Entries not taken because a level lay on the wrong side of the fill.
    Skipped,
}

/// All metrics, in the order of their numbers, with their names and the labels that reports use.
pub const METRICS: [(Metric, &str, &str); 30] = [
    (Metric::Trades, "trades", "# Trades"),
    (Metric::WinRate, "win_rate", "Win Rate [%]"),
    (Metric::ProfitFactor, "profit_factor", "Profit Factor"),
    (Metric::Expectancy, "expectancy", "Expectancy [%]"),
    (Metric::TotalReturn, "total_return", "Return [%]"),
    (Metric::AnnualReturn, "annual_return", "Return (Ann.) [%]"),
    (Metric::Sharpe, "sharpe", "Sharpe Ratio"),
    (Metric::Sortino, "sortino", "Sortino Ratio"),
    (Metric::MaxDrawdown, "max_drawdown", "Max. Drawdown [%]"),
    (Metric::MaxDrawdownDaily, "max_drawdown_daily", "Max. Drawdown (daily) [%]"),
    (Metric::MaxDrawdownBar, "max_drawdown_bar", "Max. Drawdown (inside bars) [%]"),
    (Metric::Calmar, "calmar", "Calmar Ratio"),
    (Metric::Sqn, "sqn", "SQN"),
    (Metric::Exposure, "exposure", "Exposure Time [%]"),
    (Metric::LongestDrawdown, "longest_drawdown", "Max. Drawdown Duration [days]"),
    (Metric::NetPnl, "net_pnl", "Net P&L [price]"),
    (Metric::MaxDrawdownPnl, "max_drawdown_pnl", "Max. Drawdown [price]"),
    (Metric::MaxDrawdownPnlRef, "max_drawdown_pnl_ref", "Max. Drawdown from first trade [price]"),
    (Metric::SharpeR, "sharpe_r", "Sharpe of R"),
    (Metric::AvgR, "avg_r", "Avg. R"),
    (Metric::AvgWin, "avg_win", "Avg. Win [%]"),
    (Metric::AvgLoss, "avg_loss", "Avg. Loss [%]"),
    (Metric::ProfitFactorPnl, "profit_factor_pnl", "Profit Factor [price]"),
    (Metric::AvgWinPnl, "avg_win_pnl", "Avg. Win [price]"),
    (Metric::AvgLossPnl, "avg_loss_pnl", "Avg. Loss [price]"),
    (Metric::LongShare, "long_share", "Long Trades [%]"),
    (Metric::AvgBars, "avg_bars", "Avg. Bars Held"),
    (Metric::OpenAtEnd, "open_at_end", "Open at End"),
    (Metric::Ambiguous, "ambiguous", "# Ambiguous Exits"),
    (Metric::Skipped, "skipped", "# Entries Not Taken"),
];

/// Values of all metrics; NaN is "not defined".
#[derive(Clone, Copy, Debug)]
pub struct Metrics([f64; METRICS.len()]);

impl Metrics {
    /// From one value for each of [`METRICS`], as a study stores them.
    pub fn from_values(values: [f64; METRICS.len()]) -> Self {
        Self(values)
    }

    /// One value, if defined.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        Some(self.0[metric as usize]).filter(|value| !value.is_nan())
    }

    /// All values in the order of [`METRICS`]; NaN is "not defined".
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Names with values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> + '_ {
        METRICS.iter().map(|(metric, name, _)| (*name, self.get(*metric)))
    }

    /// Finishes the sums of a walk. `year_days` is the number of daily returns in a year.
    pub fn new(tally: &Tally, year_days: f64) -> Self {
        Self::finish(tally, year_days, true)
    }

    /// The same without [`Metric::AnnualReturn`] and [`Metric::Calmar`], which take as long as all others.
    pub fn without_annual(tally: &Tally, year_days: f64) -> Self {
        Self::finish(tally, year_days, false)
    }

    fn finish(tally: &Tally, year_days: f64, has_annual: bool) -> Self {
        let mut values = [f64::NAN; METRICS.len()];
        let mut set = |metric: Metric, value: f64| {
            values[metric as usize] = if value.is_finite() { value } else { f64::NAN };
        };
        let n = f64::from(tally.trades);
        let losses = f64::from(tally.trades - tally.wins);
        let days = f64::from(tally.days);
        set(Metric::Trades, n);
        set(Metric::TotalReturn, tally.equity - 1.0);
        set(Metric::MaxDrawdown, tally.drawdown);
        set(Metric::MaxDrawdownDaily, tally.drawdown_daily);
        set(Metric::MaxDrawdownBar, tally.drawdown_bar);
        set(Metric::LongestDrawdown, f64::from(tally.longest_drawdown));
        set(Metric::NetPnl, tally.sum_pnl);
        set(Metric::MaxDrawdownPnl, tally.drawdown_pnl);
        set(Metric::MaxDrawdownPnlRef, tally.drawdown_pnl_ref);
        set(Metric::Exposure, tally.bars_held as f64 / tally.bars as f64);
        set(Metric::OpenAtEnd, f64::from(tally.open_at_end));
        set(Metric::Ambiguous, f64::from(tally.ambiguous));
        set(Metric::Skipped, f64::from(tally.skipped));
        // 0/0 without trades is NaN: not defined.
        set(Metric::WinRate, f64::from(tally.wins) / n);
        set(Metric::Expectancy, tally.sum_ret / n);
        set(Metric::AvgR, tally.sum_r / n);
        set(Metric::LongShare, f64::from(tally.longs) / n);
        set(Metric::AvgBars, tally.bars_held as f64 / n);
        set(Metric::AvgWin, tally.sum_ret_win / f64::from(tally.wins));
        set(Metric::AvgLoss, tally.sum_ret_loss / losses);
        set(Metric::ProfitFactor, tally.sum_ret_win / -tally.sum_ret_loss);
        set(Metric::AvgWinPnl, tally.sum_win / f64::from(tally.wins));
        set(Metric::AvgLossPnl, tally.sum_loss / losses);
        set(Metric::ProfitFactorPnl, tally.sum_win / -tally.sum_loss);
        if let Some(deviation) = sample_deviation(n, tally.sum_r, tally.sum_r2) {
            let ratio = tally.sum_r / n / deviation;
            set(Metric::SharpeR, ratio);
            set(Metric::Sqn, ratio * n.sqrt());
        }
        if tally.trades > 0 {
            let mean = tally.sum_daily / days;
            let year = year_days.sqrt();
            if let Some(deviation) = sample_deviation(days, tally.sum_daily, tally.sum_daily2) {
                set(Metric::Sharpe, mean / deviation * year);
            }
            if tally.sum_down2 > 0.0 {
                set(Metric::Sortino, mean / (tally.sum_down2 / days).sqrt() * year);
            }
            if !has_annual {
                return Self(values);
            }
            if tally.equity > 0.0 {
                let annual = libm::expm1(libm::log(tally.equity) * (year_days / days));
                set(Metric::AnnualReturn, annual);
                if tally.drawdown < 0.0 {
                    set(Metric::Calmar, annual / -tally.drawdown);
                }
            } else {
                set(Metric::AnnualReturn, -1.0);
            }
        }
        Self(values)
    }
}

/// By name; what is not defined is null.
impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Metrics that are missing are not defined, and names that are not known are skipped.
impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let by_name = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        Ok(Self(METRICS.map(|(_, name, _)| by_name.get(name).copied().flatten().unwrap_or(f64::NAN))))
    }
}

/// Sample standard deviation from sums; `None` for fewer than two values or no variance beyond rounding.
fn sample_deviation(n: f64, sum: f64, squares: f64) -> Option<f64> {
    if n < 2.0 {
        return None;
    }
    let spread = n * squares - sum * sum;
    // Rounding leaves about 1e-16 of n·Σx² even where all values are equal; a ratio built on that would be noise.
    if spread <= 1e-13 * (n * squares) {
        return None;
    }
    Some((spread / (n * (n - 1.0))).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_positions() {
        for (at, (metric, ..)) in METRICS.iter().enumerate() {
            assert_eq!(*metric as usize, at);
        }
    }

    #[test]
    fn no_trades_leave_ratios_undefined() {
        let metrics = Metrics::new(&Tally { equity: 1.0, days: 10, bars: 100, ..Tally::default() }, 365.0);
        assert_eq!(metrics.get(Metric::Trades), Some(0.0));
        for metric in [Metric::Sharpe, Metric::WinRate, Metric::ProfitFactor, Metric::Calmar, Metric::AvgR] {
            assert_eq!(metrics.get(metric), None);
        }
    }

    #[test]
    fn metrics_without_annual_ones_are_otherwise_the_same() {
        let tally = Tally {
            trades: 7,
            wins: 4,
            equity: 1.2,
            days: 30,
            bars: 700,
            drawdown: -0.1,
            sum_daily: 0.2,
            sum_daily2: 0.01,
            sum_down2: 0.004,
            ..Tally::default()
        };
        let (all, some) = (Metrics::new(&tally, 365.0), Metrics::without_annual(&tally, 365.0));
        for (metric, name, _) in METRICS {
            let is_left_out = [Metric::AnnualReturn, Metric::Calmar].contains(&metric);
            assert!(!is_left_out || (all.get(metric).is_some() && some.get(metric).is_none()), "{name}");
            assert!(is_left_out || all.get(metric) == some.get(metric), "{name}");
        }
    }

    #[test]
    fn equal_values_have_no_deviation() {
        let r = 0.1_f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..1000 {
            sum += r;
            squares += r * r;
        }
        assert_eq!(sample_deviation(1000.0, sum, squares), None);
        assert!((sample_deviation(3.0, 6.0, 14.0).unwrap() - 1.0).abs() < 1e-15);
    }
}
