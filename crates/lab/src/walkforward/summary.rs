//! The result of a walk-forward: the stitched equity, and how much of what the searches promised was kept.

use serde::Serialize;
use serde_json::{Map, Value};
use tidemill_backtest::Benchmark;
use tidemill_market::{DAY_MS, timestamp};
use tidemill_verdict::Moments;

use crate::benchmark::AgainstMarket;
use crate::number;

/// One window.
#[derive(Clone, Debug, Serialize)]
pub struct WindowResult {
    /// First day of the search.
    pub train_from: String,
    /// First day of the trading.
    pub test_from: String,
    /// First day after it.
    pub test_to: String,
    /// Trials of the search.
    pub trials: u64,
    /// What was chosen; `null` if no trial was valid, and nothing is traded.
    pub trial: Option<u64>,
    /// Its parameters.
    pub parameters: Map<String, Value>,
    /// The objective on the searched and on the traded period.
    pub objective: [Option<f64>; 2],
    /// Sharpe ratios by the year, likewise.
    pub sharpe: [Option<f64>; 2],
    /// Mean daily returns, likewise.
    pub mean_daily: [Option<f64>; 2],
    /// Return of the traded period.
    pub total_return: f64,
    /// What the benchmark, held through all windows, made on its days; `null` where equity adds in price units.
    pub benchmark_return: Option<f64>,
    /// Maximum drawdown over the ends of its days.
    pub max_drawdown: f64,
    /// Trades of the traded period.
    pub trades: u32,
    /// Its daily returns: days since 1970, and returns.
    #[serde(skip)]
    pub daily: Vec<(i64, f64)>,
}

impl WindowResult {
    /// The result in a sentence.
    pub fn sentence(&self) -> String {
        let [searched, traded] = self.sharpe.map(number::short);
        format!(
            "{} to {}: Sharpe {searched} where it was searched, {traded} where it was traded",
            self.test_from, self.test_to
        )
    }
}

/// All windows together.
#[derive(Clone, Debug, Serialize)]
pub struct WalkForwardSummary {
    /// The windows.
    pub windows: Vec<WindowResult>,
    /// Return of the stitched equity.
    pub total_return: f64,
    /// Its Sharpe ratio, by the year.
    pub sharpe: Option<f64>,
    /// Its maximum drawdown.
    pub max_drawdown: f64,
    /// Probability that its true Sharpe ratio is above 0. Nothing was chosen by it, so that nothing has to be deflated.
    pub probabilistic_sharpe: Option<f64>,
    /// Probability that it beats the benchmark: that the Sharpe ratio of its daily returns less the benchmark's is above 0.
    pub probability_of_excess: Option<f64>,
    /// Mean daily return of what was traded over that of what was searched: 1 keeps all that was promised.
    pub efficiency: Option<f64>,
    /// Share of the windows that made money.
    pub winning_windows: f64,
    /// Trades in all.
    pub trades: u64,
    /// Comparison with holding from the first day to the last; `null` where equity adds in price units.
    pub market: Option<AgainstMarket>,
    /// Maximum drawdown of the benchmark.
    pub benchmark_drawdown: Option<f64>,
    /// Returns by month of what was traded.
    pub months: Vec<MonthResult>,
    /// Equity at the end of each day: days since 1970, and values from 1 on.
    pub equity: Vec<(i64, f64)>,
    /// Value of the benchmark at the end of the same days; empty where equity adds in price units.
    pub benchmark_equity: Vec<(i64, f64)>,
}

/// One month of the stitched equity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MonthResult {
    /// Year and month, such as `2024-03`.
    pub month: String,
    /// Return; a difference where equity adds.
    pub total_return: f64,
    /// The benchmark's.
    pub benchmark_return: Option<f64>,
}

impl WalkForwardSummary {
    /// Stitches windows together. `year_days` is that of the days traded, `is_additive` for equity that adds instead of compounding,
    /// `held` what the benchmark made from the first of the days to the last.
    pub fn new(
        mut windows: Vec<WindowResult>,
        year_days: f64,
        is_additive: bool,
        held: Option<&Benchmark>,
    ) -> Self {
        let daily = stitched(&windows);
        let returns: Vec<f64> = daily.iter().map(|(_, change)| *change).collect();
        let equity = grown(&daily, is_additive);
        let benchmark_equity = held.map_or_else(Vec::new, |held| {
            let value = grown(&held.daily, false);
            let by = |day: i64| {
                value[..value.partition_point(|(at, _)| *at <= day)].last().map_or(1.0, |last| last.1)
            };
            equity.iter().map(|(day, _)| (*day, by(*day))).collect()
        });
        for window in &mut windows {
            window.max_drawdown = drawdown(&grown(&window.daily, is_additive));
            window.benchmark_return = held.map(|held| {
                let ends = window.daily.first().zip(window.daily.last());
                let own = held.daily.iter().copied().filter(|(day, _)| {
                    ends.is_some_and(|((first, _), (last, _))| (first..=last).contains(&day))
                });
                grown(&own.collect::<Vec<_>>(), false).last().map_or(0.0, |last| last.1 - 1.0)
            });
        }
        let value = equity.last().map_or(1.0, |last| last.1);
        let moments = Moments::new(&returns);
        let benchmark: Vec<f64> =
            daily.iter().map(|(day, _)| held.map_or(0.0, |held| change_on(held, *day))).collect();
        let market = held.map(|held| AgainstMarket::new(&returns, &benchmark, held.total_return, year_days));
        let beyond: Vec<f64> = returns.iter().zip(&benchmark).map(|(own, held)| own - held).collect();
        // A window without a choice was searched too: it promised nothing.
        let mean = |which: usize| {
            let sum: f64 = windows.iter().map(|step| step.mean_daily[which].unwrap_or(0.0)).sum();
            sum / windows.len() as f64
        };
        let traded = returns.iter().sum::<f64>() / returns.len() as f64;
        let promised = mean(0);
        let n_winning = windows.iter().filter(|step| step.total_return > 0.0).count();
        Self {
            total_return: value - 1.0,
            sharpe: moments.map(|moments| moments.sharpe * year_days.sqrt()),
            max_drawdown: drawdown(&equity),
            probabilistic_sharpe: moments.map(|moments| moments.probabilistic(0.0)),
            probability_of_excess: held
                .and_then(|_| Moments::new(&beyond))
                .map(|moments| moments.probabilistic(0.0))
                .filter(|share| share.is_finite()),
            efficiency: (promised > 0.0 && !returns.is_empty()).then(|| traded / promised),
            winning_windows: n_winning as f64 / windows.len().max(1) as f64,
            trades: windows.iter().map(|step| u64::from(step.trades)).sum(),
            market,
            benchmark_drawdown: held.map(|_| drawdown(&benchmark_equity)),
            months: months(&equity, &benchmark_equity, is_additive),
            equity,
            benchmark_equity,
            windows,
        }
    }
}

impl WalkForwardSummary {
    /// The results of all windows together, as names and texts.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let probability = |share: f64| format!("{:.1} %", 100.0 * share);
        let optional = |share: Option<f64>| share.map_or_else(|| "–".into(), percent);
        let likely = |share: Option<f64>| share.map_or_else(|| "–".into(), probability);
        let mut figures = vec![("stitched return", percent(self.total_return))];
        if let Some(market) = &self.market {
            figures.extend([
                ("return of the benchmark", percent(market.benchmark_return)),
                ("excess over the benchmark", percent(market.excess_return)),
            ]);
        }
        figures.extend([
            ("Sharpe ratio", number::short(self.sharpe)),
            ("maximum drawdown", percent(self.max_drawdown)),
            ("probability that the Sharpe ratio is above 0", likely(self.probabilistic_sharpe)),
        ]);
        if let Some(market) = &self.market {
            figures.extend([
                ("probability of beating the benchmark", likely(self.probability_of_excess)),
                ("drawdown of the benchmark", optional(self.benchmark_drawdown)),
                ("beta", number::short(market.fit.beta)),
                ("alpha, a year", optional(market.fit.alpha)),
                ("t of alpha", number::short(market.fit.t_alpha)),
            ]);
        }
        figures.extend([
            ("walk-forward efficiency", number::short(self.efficiency)),
            ("windows that made money", format!("{:.0} %", 100.0 * self.winning_windows)),
            ("trades", number::count(self.trades)),
        ]);
        figures
    }

    /// The same in a line.
    pub fn line(&self) -> String {
        let texts: Vec<String> =
            self.figures().iter().take(5).map(|(name, value)| format!("{name} {value}")).collect();
        texts.join(", ")
    }
}

/// Value at the end of each day, from 1 on.
fn grown(daily: &[(i64, f64)], is_additive: bool) -> Vec<(i64, f64)> {
    let mut value = 1.0_f64;
    let next = |(day, change): &(i64, f64)| {
        value = if is_additive { value + change } else { (value * (1.0 + change)).max(0.0) };
        (*day, value)
    };
    daily.iter().map(next).collect()
}

/// Deepest fall from a peak, which is 1 at first.
fn drawdown(equity: &[(i64, f64)]) -> f64 {
    let mut peak = 1.0_f64;
    let fall = |(_, value): &(i64, f64)| {
        peak = peak.max(*value);
        value / peak - 1.0
    };
    equity.iter().map(fall).fold(0.0, f64::min)
}

/// Returns by month.
fn months(equity: &[(i64, f64)], benchmark: &[(i64, f64)], is_additive: bool) -> Vec<MonthResult> {
    let mut months: Vec<MonthResult> = Vec::new();
    // Values at the end of the month before, of the strategy and of the benchmark.
    let (mut before, mut last) = ([1.0; 2], [1.0; 2]);
    for (at, (day, value)) in equity.iter().enumerate() {
        let month: String = timestamp::format_ms(day * DAY_MS).chars().take(7).collect();
        if months.last().is_none_or(|of| of.month != month) {
            before = last;
            months.push(MonthResult { month, total_return: 0.0, benchmark_return: None });
        }
        let held = benchmark.get(at).map(|(_, held)| *held);
        last = [*value, held.unwrap_or(1.0)];
        if let Some(of) = months.last_mut() {
            of.total_return = if is_additive { value - before[0] } else { value / before[0] - 1.0 };
            of.benchmark_return = held.map(|held| held / before[1] - 1.0);
        }
    }
    months
}

/// What the benchmark made on a day.
fn change_on(held: &Benchmark, day: i64) -> f64 {
    held.daily.binary_search_by_key(&day, |(day, _)| *day).map_or(0.0, |at| held.daily[at].1)
}

/// Daily returns of all windows in the order of time; a day that two windows share has both.
fn stitched(windows: &[WindowResult]) -> Vec<(i64, f64)> {
    let mut daily: Vec<(i64, f64)> = Vec::new();
    for (day, change) in windows.iter().flat_map(|step| &step.daily) {
        match daily.last_mut() {
            Some((last, sum)) if last == day => *sum += change,
            _ => daily.push((*day, *change)),
        }
    }
    daily
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(promised: f64, daily: &[(i64, f64)]) -> WindowResult {
        WindowResult {
            train_from: String::new(),
            test_from: String::new(),
            test_to: String::new(),
            trials: 1,
            trial: Some(0),
            parameters: Map::new(),
            objective: [None; 2],
            sharpe: [None; 2],
            mean_daily: [Some(promised), None],
            total_return: daily.iter().map(|(_, change)| change).sum(),
            benchmark_return: None,
            max_drawdown: 0.0,
            trades: 2,
            daily: daily.to_vec(),
        }
    }

    #[test]
    fn equity_is_stitched_and_compared_with_what_was_promised() {
        let windows = vec![step(0.1, &[(1, 0.1), (2, -0.5)]), step(0.3, &[(2, 0.0), (3, 1.0), (5, 0.2)])];
        let daily = vec![(1, 0.1), (2, -0.1), (3, 0.05), (4, 0.02), (5, 0.1)];
        let held = Benchmark { daily, total_return: 0.25 };
        let summary = WalkForwardSummary::new(windows, 365.0, false, Some(&held));
        let market = summary.market.unwrap();
        assert!((market.excess_return - (0.32 - 0.25)).abs() < 1e-12);
        assert_eq!((market.fit.days, market.fit.t_alpha), (4, None));
        // Least squares by hand: r = (0.1, -0.5, 1, 0.2) over h = (0.1, -0.1, 0.05, 0.1).
        let beta = market.fit.beta.unwrap();
        assert!((beta - 0.1 / 0.026_875).abs() < 1e-9, "{beta}");
        assert!((market.fit.alpha.unwrap() - 365.0 * (0.2 - beta * 0.0375)).abs() < 1e-9);
        let days: Vec<i64> = summary.equity.iter().map(|(day, _)| *day).collect();
        assert_eq!(days, [1, 2, 3, 5]);
        let wanted = [1.1, 0.55, 1.1, 1.32];
        assert!(summary.equity.iter().zip(wanted).all(|((_, value), wanted)| (value - wanted).abs() < 1e-12));
        assert!((summary.max_drawdown + 0.5).abs() < 1e-12);
        assert!((summary.efficiency.unwrap() - 0.2 / 0.2).abs() < 1e-12);
        assert_eq!((summary.winning_windows, summary.trades), (0.5, 4));
        // The benchmark goes on through days without trading: the fifth has what the fourth made too.
        let held: Vec<f64> = summary.benchmark_equity.iter().map(|(_, value)| *value).collect();
        let wanted = [1.1, 0.99, 1.0395, 1.0395 * 1.02 * 1.1];
        assert!(held.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-12), "{held:?}");
        assert!((summary.benchmark_drawdown.unwrap() - (0.99 / 1.1 - 1.0)).abs() < 1e-12);
        let of_windows =
            summary.windows.iter().map(|step| (step.benchmark_return.unwrap(), step.max_drawdown));
        let wanted = [(-0.01, -0.5), (0.9 * 1.05 * 1.02 * 1.1 - 1.0, 0.0)];
        for ((held, fall), wanted) in of_windows.zip(wanted) {
            assert!((held - wanted.0).abs() < 1e-12 && (fall - wanted.1).abs() < 1e-12, "{held} {fall}");
        }
        let [month] = &summary.months[..] else { panic!("{:?}", summary.months) };
        assert_eq!(month.month, "1970-01");
        assert!((month.total_return - 0.32).abs() < 1e-12);
        assert!((0.0..=1.0).contains(&summary.probability_of_excess.unwrap()));
        let flat = WalkForwardSummary::new(vec![step(-0.1, &[(1, 0.0), (2, 0.0)])], 365.0, true, None);
        assert!(
            flat.market.is_none() && flat.probability_of_excess.is_none() && flat.benchmark_equity.is_empty()
        );
        assert_eq!((flat.efficiency, flat.sharpe, flat.total_return), (None, None, 0.0));
    }
}
