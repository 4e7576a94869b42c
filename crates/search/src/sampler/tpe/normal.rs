//! The normal distribution by table: a look-up in place of an error function.
//!
//! Densities are summed over hundreds of kernels and cells, and only their ratios matter. A linear interpolation of a fine table
//! is off by at most two millionths, far below the prior that every density contains.

use std::sync::LazyLock;

/// Beyond this many standard deviations a kernel is taken to be nothing.
pub(super) const REACH: f64 = 5.0;

/// Table entries per standard deviation.
const PER_DEVIATION: usize = 128;

/// Number of intervals of the table.
const N_INTERVALS: usize = 2 * REACH as usize * PER_DEVIATION;

/// The distribution function of the standard normal, tabulated from `-REACH` to `REACH`.
pub(super) struct Normal {
    table: [f64; N_INTERVALS + 2],
}

static NORMAL: LazyLock<Normal> = LazyLock::new(|| Normal {
    table: std::array::from_fn(|entry_idx| {
        let deviations = entry_idx as f64 / PER_DEVIATION as f64 - REACH;
        0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2)
    }),
});

impl Normal {
    /// The table, made at first use.
    pub(super) fn table() -> &'static Self {
        &NORMAL
    }

    /// The probability of a number below `deviations`.
    #[inline]
    pub(super) fn below(&self, deviations: f64) -> f64 {
        let place = (deviations.clamp(-REACH, REACH) + REACH) * PER_DEVIATION as f64;
        let entry_idx = (place as usize).min(N_INTERVALS);
        let (low, high) = (self.table[entry_idx], self.table[entry_idx + 1]);
        low + (place - entry_idx as f64) * (high - low)
    }

    /// The number below which a standard normal falls with a given probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let entry_idx = self.table.partition_point(|below| *below < probability).clamp(1, N_INTERVALS) - 1;
        let (low, high) = (self.table[entry_idx], self.table[entry_idx + 1]);
        let share = ((probability - low) / (high - low)).clamp(0.0, 1.0);
        (entry_idx as f64 + share) / PER_DEVIATION as f64 - REACH
    }

    /// The probability that a normal around `mean` falls into the unit interval.
    #[inline]
    pub(super) fn inside(&self, mean: f64, deviation: f64) -> f64 {
        self.below((1.0 - mean) / deviation) - self.below(-mean / deviation)
    }

    /// A draw from a normal around `mean` truncated to the unit interval, from a uniform number.
    pub(super) fn truncated(&self, mean: f64, deviation: f64, uniform: f64) -> f64 {
        let low = self.below(-mean / deviation);
        let high = self.below((1.0 - mean) / deviation);
        (mean + deviation * self.quantile(low + uniform * (high - low))).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_close_to_the_error_function() {
        for step in -520..=520 {
            let deviations = f64::from(step) * 0.009_7;
            let exact = 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2);
            assert!((Normal::table().below(deviations) - exact).abs() < 2e-6, "{deviations}");
        }
        assert!(Normal::table().below(-1e300) < 1e-6 && Normal::table().below(f64::INFINITY) > 1.0 - 1e-6);
    }

    #[test]
    fn quantiles_invert_the_distribution_function() {
        for step in 1..1000 {
            let probability = f64::from(step) / 1000.0;
            let back = Normal::table().below(Normal::table().quantile(probability));
            assert!((back - probability).abs() < 1e-12, "{probability} {back}");
        }
    }

    #[test]
    fn truncated_draws_stay_inside_and_keep_the_median() {
        let normal = Normal::table();
        for (mean, deviation) in [(0.5, 1.0), (0.0, 0.1), (1.0, 0.01), (0.3, 0.2)] {
            for uniform in [0.0, 0.25, 0.5, 0.999_999] {
                assert!((0.0..=1.0).contains(&normal.truncated(mean, deviation, uniform)));
            }
        }
        assert!((normal.truncated(0.5, 0.1, 0.5) - 0.5).abs() < 1e-9);
        assert!((normal.truncated(0.0, 0.1, 0.5) - 0.067_449).abs() < 1e-4);
    }
}
