//! Returns beyond the market: α and β by least squares, and the t-statistic of α.
//!
//! Daily returns are regressed on those of a benchmark, `r = a + β·h + u`. Whoever is always long has β = 1 and a = 0, whatever the market
//! did; only `a` is the strategy's own. Its error is Newey and West's (Econometrica 55, 1987), because daily returns of positions that are
//! held for weeks are neither independent nor equally volatile: Bartlett kernel, lag ⌊4 (T/100)^(2/9)⌋, no correction for small samples
//! (`use_correction=False` in statsmodels).

use serde::{Deserialize, Serialize};

/// Fewest days for which the error of α is estimated.
const LEAST_DAYS: usize = 30;

/// Shares of a series below this are rounding.
const ROUNDING: f64 = 1e-12;

/// A series of returns against a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alpha {
    /// Number of days.
    pub days: usize,
    /// How much of the benchmark is in the returns; `None` if the benchmark does not move.
    pub beta: Option<f64>,
    /// Yearly return beyond the market; `None` likewise.
    pub alpha: Option<f64>,
    /// `alpha` over its error; `None` for fewer than 30 days, or if the benchmark does not move.
    pub t_alpha: Option<f64>,
}

impl Alpha {
    /// Compares daily returns with a benchmark's on the same days; `year_days` is the number of such days in a year.
    ///
    /// # Panics
    /// If the two series differ in length.
    pub fn new(returns: &[f64], benchmark: &[f64], year_days: f64) -> Self {
        assert_eq!(returns.len(), benchmark.len(), "a benchmark has the days of the returns");
        let days = returns.len();
        let none = Self { days, beta: None, alpha: None, t_alpha: None };
        let n = days as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (mean_r, mean_h) = (mean(returns), mean(benchmark));
        let pairs = || returns.iter().zip(benchmark);
        let square_h: f64 = benchmark.iter().map(|h| (h - mean_h) * (h - mean_h)).sum();
        let size_h: f64 = benchmark.iter().map(|h| h * h).sum();
        // Rounding leaves a trace of variance where all values are equal.
        if days < 2 || square_h <= ROUNDING * ROUNDING * size_h || !square_h.is_finite() {
            return none;
        }
        let beta = pairs().map(|(r, h)| (r - mean_r) * (h - mean_h)).sum::<f64>() / square_h;
        let daily = mean_r - beta * mean_h;
        if !daily.is_finite() {
            return none;
        }
        let size_r = libm::sqrt(returns.iter().map(|r| r * r).sum::<f64>() / n);
        // Returns that are a multiple of the benchmark's have no α, and what rounding leaves of one has no error to be measured by.
        let is_multiple = daily.abs() <= ROUNDING * size_r;
        let daily = if is_multiple { 0.0 } else { daily };
        let fit = Self { beta: Some(beta), alpha: Some(daily * year_days), ..none };
        if days < LEAST_DAYS {
            return fit;
        }
        if is_multiple {
            return Self { t_alpha: Some(0.0), ..fit };
        }
        // How far each day moves the estimate: its weight in the intercept times what the line leaves of it.
        let parts: Vec<f64> = pairs()
            .map(|(r, h)| (1.0 / n - mean_h * (h - mean_h) / square_h) * (r - daily - beta * h))
            .collect();
        let lags = newey_west_lags(days);
        let mut variance: f64 = parts.iter().map(|part| part * part).sum();
        for lag in 1..=lags.min(days - 1) {
            let product: f64 = parts[lag..].iter().zip(&parts).map(|(now, before)| now * before).sum();
            variance += 2.0 * (1.0 - lag as f64 / (lags as f64 + 1.0)) * product;
        }
        let t_alpha = Some(daily / libm::sqrt(variance)).filter(|t| t.is_finite());
        Self { t_alpha, ..fit }
    }

    /// The returns without the benchmark's part, as they would have been with it sold short; the returns themselves if it does not move.
    pub fn beyond(&self, returns: &[f64], benchmark: &[f64]) -> Vec<f64> {
        let beta = self.beta.unwrap_or(0.0);
        returns.iter().zip(benchmark).map(|(r, h)| r - beta * h).collect()
    }
}

/// Days whose dependence counts: Newey and West's rule ⌊4 (T/100)^(2/9)⌋.
pub fn newey_west_lags(n_days: usize) -> usize {
    libm::floor(4.0 * libm::pow(n_days as f64 / 100.0, 2.0 / 9.0)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market(n: usize) -> Vec<f64> {
        (0..n).map(|day| 0.002 + 0.01 * (((day * 7919 + 13) % 101) as f64 / 50.0 - 1.0)).collect()
    }

    #[test]
    fn a_multiple_of_the_market_has_no_alpha() {
        let h = market(300);
        for beta in [1.0, 0.3, -0.7] {
            let r: Vec<f64> = h.iter().map(|h| beta * h).collect();
            let fit = Alpha::new(&r, &h, 365.0);
            assert!((fit.beta.unwrap() - beta).abs() < 1e-12, "{fit:?}");
            assert_eq!((fit.alpha, fit.t_alpha), (Some(0.0), Some(0.0)));
        }
        let idle = Alpha::new(&vec![0.0; 300], &h, 365.0);
        assert_eq!((idle.beta, idle.alpha, idle.t_alpha), (Some(0.0), Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_constant_gain_beside_the_market_is_alpha_by_the_year() {
        let h = market(300);
        let noise = |day: usize| if day.is_multiple_of(2) { 1e-4 } else { -1e-4 };
        let r: Vec<f64> = h.iter().enumerate().map(|(day, h)| 0.001 + 0.5 * h + noise(day)).collect();
        let fit = Alpha::new(&r, &h, 252.0);
        assert!((fit.alpha.unwrap() - 0.252).abs() < 0.01 && fit.t_alpha.unwrap() > 50.0, "{fit:?}");
        let beyond = fit.beyond(&r, &h);
        let mean = beyond.iter().sum::<f64>() / 300.0;
        assert!((mean * 252.0 - fit.alpha.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn short_records_and_still_markets_have_no_t() {
        let h = market(30);
        let r: Vec<f64> = h.iter().rev().map(|h| 0.5 * h).collect();
        assert!(Alpha::new(&r, &h, 365.0).t_alpha.is_some());
        let short = Alpha::new(&r[..29], &h[..29], 365.0);
        assert!(short.t_alpha.is_none() && short.alpha.is_some() && short.beta.is_some());
        let still = Alpha::new(&r, &[0.01; 30], 365.0);
        assert_eq!((still.beta, still.alpha, still.t_alpha), (None, None, None));
        assert_eq!(still.beyond(&r, &[0.01; 30]), r);
        assert_eq!(Alpha::new(&[], &[], 365.0).alpha, None);
    }

    #[test]
    fn the_lag_grows_slowly() {
        assert_eq!([30, 99, 100, 252, 1000, 10_000].map(newey_west_lags), [3, 3, 4, 4, 6, 11]);
    }
}
