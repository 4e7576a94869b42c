//! Statistics of Sharpe ratios: probabilistic and deflated ratio, minimum track record.
//!
//! All ratios here are by the period (a day), not by the year. Sources: Bailey and López de Prado, "The Sharpe Ratio Efficient
//! Frontier" (2012) for the probabilistic Sharpe ratio and the minimum track record; "The Deflated Sharpe Ratio" (2014) for the rest.

use std::f64::consts::E;

use serde::Serialize;

use crate::normal;

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The Sharpe ratio of a series of returns, with the moments that decide its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moments {
    /// Number of returns.
    pub n: usize,
    /// Mean over sample standard deviation, by the period.
    pub sharpe: f64,
    /// Third moment: negative where the losses are the large ones.
    pub skew: f64,
    /// Fourth moment: 3 for a normal distribution, more where extremes are frequent.
    pub kurtosis: f64,
}

impl Moments {
    /// Moments of returns; `None` for fewer than three, or if they do not vary.
    pub fn new(returns: &[f64]) -> Option<Self> {
        let n = returns.len();
        if n < 3 {
            return None;
        }
        let count = n as f64;
        let mean = returns.iter().sum::<f64>() / count;
        let mut powers = [0.0; 3];
        for value in returns {
            let off = value - mean;
            let square = off * off;
            powers[0] += square;
            powers[1] += square * off;
            powers[2] += square * square;
        }
        let variance = powers[0] / count;
        // Rounding leaves a trace of variance where all values are equal.
        if variance <= 1e-26 * mean * mean || !variance.is_finite() {
            return None;
        }
        Some(Self {
            n,
            sharpe: mean / libm::sqrt(powers[0] / (count - 1.0)),
            skew: powers[1] / count / (variance * libm::sqrt(variance)),
            kurtosis: powers[2] / count / (variance * variance),
        })
    }

    /// Probability that the true ratio is above a benchmark: the probabilistic Sharpe ratio. NaN if the moments contradict each other.
    pub fn probabilistic(&self, benchmark: f64) -> f64 {
        normal::cdf((self.sharpe - benchmark) * libm::sqrt(self.n as f64 - 1.0) / libm::sqrt(self.spread()))
    }

    /// Probability that the true ratio is above 0, given that this is the best of so many independent trials whose ratios have this
    /// variance: the deflated Sharpe ratio.
    pub fn deflated(&self, n_trials: f64, variance: f64) -> f64 {
        self.probabilistic(libm::sqrt(variance.max(0.0)) * expected_maximum(n_trials))
    }

    /// Number of returns from which on the ratio is above the benchmark with this confidence; `None` if no record is long enough,
    /// because the ratio is not above it.
    pub fn min_track_record(&self, benchmark: f64, confidence: f64) -> Option<f64> {
        if self.sharpe <= benchmark {
            return None;
        }
        let z = normal::upper_quantile(1.0 - confidence) / (self.sharpe - benchmark);
        Some(1.0 + self.spread() * z * z).filter(|length| length.is_finite())
    }

    /// Variance of the estimated ratio, times the number of returns less one.
    fn spread(&self) -> f64 {
        1.0 - self.skew * self.sharpe + (self.kurtosis - 1.0) / 4.0 * self.sharpe * self.sharpe
    }
}

/// How many standard deviations the best of so many independent trials without skill is expected to lie above 0.
pub fn expected_maximum(n_trials: f64) -> f64 {
    if n_trials <= 1.0 {
        return 0.0;
    }
    (1.0 - EULER) * normal::upper_quantile(1.0 / n_trials)
        + EULER * normal::upper_quantile(1.0 / (n_trials * E))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_that_do_not_vary_have_no_moments() {
        assert_eq!(Moments::new(&[0.1; 50]), None);
        assert_eq!(Moments::new(&[0.0; 50]), None);
        assert_eq!(Moments::new(&[0.1, 0.2]), None);
        assert_eq!(Moments::new(&[0.1, f64::NAN, 0.2]), None);
    }

    #[test]
    fn a_record_of_the_minimum_length_is_just_sure_enough() {
        let returns: Vec<f64> = (0..40).map(|at| 0.004 + 0.01 * f64::from(at % 7 - 3)).collect();
        let moments = Moments::new(&returns).unwrap();
        let length = moments.min_track_record(0.05, 0.95).unwrap();
        // The probability at that very length, were it a whole number.
        let sure = |n: f64| {
            normal::cdf((moments.sharpe - 0.05) * libm::sqrt(n - 1.0) / libm::sqrt(moments.spread()))
        };
        assert!((sure(length) - 0.95).abs() < 1e-12);
        assert_eq!(moments.min_track_record(moments.sharpe, 0.95), None);
    }

    #[test]
    fn more_trials_expect_a_better_best() {
        assert_eq!(expected_maximum(1.0), 0.0);
        assert_eq!(expected_maximum(0.0), 0.0);
        let mut last = 0.0;
        for n_trials in [2.0, 10.0, 1e3, 1e6, 1e12] {
            let now = expected_maximum(n_trials);
            assert!(now > last && now.is_finite());
            last = now;
        }
    }
}
