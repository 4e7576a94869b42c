//! How many independent trials a search was worth, and how far their results spread.
//!
//! Ten thousand trials of one strategy are not ten thousand ideas: neighbours trade alike. Bailey and López de Prado ("The Deflated
//! Sharpe Ratio", 2014, appendix) take N trials with mean correlation ρ for ρ + (1 − ρ)·N independent ones. It errs on the careful side:
//! counts of clusters or of eigenvalues are lower, and never more than the number of blocks.

use serde::Serialize;

use crate::blocks::Blocks;

/// Number, mean and variance of the Sharpe ratios of all trials, kept while they come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrialSpread {
    n: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl TrialSpread {
    /// Takes in the ratio of a trial; one that is not defined does not count.
    pub fn add(&mut self, sharpe: f64) {
        if !sharpe.is_finite() {
            return;
        }
        self.n += 1;
        let off = sharpe - self.mean;
        self.mean += off / self.n as f64;
        self.squares += off * (sharpe - self.mean);
    }

    /// Number of trials.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Mean ratio.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sample variance of the ratios; 0 for fewer than two.
    pub fn variance(&self) -> f64 {
        if self.n < 2 { 0.0 } else { self.squares / (self.n as f64 - 1.0) }
    }
}

/// Mean correlation of all pairs of trials, from their returns by block; `None` for fewer than two trials that vary.
///
/// With every trial scaled to length 1, the squared length of their sum holds all pairs, so that no loop over pairs is needed.
pub fn mean_correlation(blocks: &Blocks) -> Option<f64> {
    let n_blocks = blocks.n_blocks();
    let mut total = vec![0.0; n_blocks];
    let mut count = 0_u64;
    let mut row = vec![0.0; n_blocks];
    for trial in 0..blocks.len() {
        row.iter_mut().enumerate().for_each(|(block, value)| *value = blocks.sums(block)[trial]);
        let mean = row.iter().sum::<f64>() / n_blocks as f64;
        let length = libm::sqrt(row.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>());
        if length > 1e-13 * mean.abs() && length.is_finite() {
            count += 1;
            total.iter_mut().zip(&row).for_each(|(total, value)| *total += (value - mean) / length);
        }
    }
    if count < 2 {
        return None;
    }
    let n = count as f64;
    let all = total.iter().map(|value| value * value).sum::<f64>();
    Some((all - n) / (n * (n - 1.0)))
}

/// Variance of the Sharpe ratio of a trial by chance alone, by the period; `None` without a trial that varies.
///
/// It is measured within the trials, from how their ratios differ from block to block, and averaged over them. The spread between trials
/// would count skill as noise: of a search that has found an edge, half of the trials have it and half do not. It is never below 1 ÷
/// (n − 1), which is what independent returns would have.
pub fn noise_variance(blocks: &Blocks) -> Option<f64> {
    let n_blocks = blocks.n_blocks();
    let n_days: f64 = blocks.days().iter().map(|days| f64::from(*days)).sum();
    if n_blocks < 2 || n_days < 2.0 {
        return None;
    }
    let (mut total, mut count) = (0.0, 0_u64);
    for trial in 0..blocks.len() {
        let mut spread = TrialSpread::default();
        (0..n_blocks).for_each(|block| spread.add(blocks.sharpe(trial, 1 << block)));
        if spread.variance() > 0.0 {
            total += spread.variance() / n_blocks as f64;
            count += 1;
        }
    }
    (count > 0).then(|| (total / count as f64).max(1.0 / (n_days - 1.0)))
}

/// The number of independent trials that so many with this mean correlation are worth.
pub fn n_independent(n_trials: f64, mean_correlation: f64) -> f64 {
    let shared = mean_correlation.clamp(0.0, 1.0);
    shared + (1.0 - shared) * n_trials
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_the_defined_ratios() {
        let mut spread = TrialSpread::default();
        [1.0, f64::NAN, 2.0, 4.0, f64::INFINITY].into_iter().for_each(|sharpe| spread.add(sharpe));
        assert_eq!(spread.n(), 3);
        assert!((spread.mean() - 7.0 / 3.0).abs() < 1e-15);
        assert!((spread.variance() - 7.0 / 3.0).abs() < 1e-15);
        assert_eq!(TrialSpread::default().variance(), 0.0);
    }

    #[test]
    fn noise_is_that_of_the_estimate_whatever_the_skill() {
        let of = |skill: f64| {
            let mut blocks = Blocks::new(&[30; 16]);
            for trial in 0..200 {
                let stream = tidemill_search::rng::Stream::new(5, trial);
                let mean = if trial % 2 == 0 { skill } else { 0.0 };
                let returns: Vec<f64> = (0..480).map(|day| stream.unit(day) - 0.5 + mean).collect();
                blocks.push_returns(&returns);
            }
            noise_variance(&blocks).unwrap()
        };
        for skill in [0.0, 0.3] {
            assert!((of(skill) * 479.0 - 1.1).abs() < 0.2, "{}", of(skill) * 479.0);
        }
        assert_eq!(noise_variance(&Blocks::new(&[30; 16])), None);
    }

    #[test]
    fn equal_trials_are_one_and_opposite_ones_are_two() {
        let rows = [[1.0, -2.0, 0.5, 0.0], [2.0, -4.0, 1.0, 0.0], [-1.0, 2.0, -0.5, 0.0]];
        let correlation = |of: &[usize]| {
            let mut blocks = Blocks::new(&[5; 4]);
            of.iter().for_each(|at| blocks.push(&rows[*at].map(|sum| [sum, 1.0])));
            mean_correlation(&blocks)
        };
        assert!((correlation(&[0, 1]).unwrap() - 1.0).abs() < 1e-15);
        assert!((correlation(&[0, 2]).unwrap() + 1.0).abs() < 1e-15);
        assert!((correlation(&[0, 1, 2]).unwrap() + 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(correlation(&[0]), None);
        assert!((n_independent(1000.0, 1.0) - 1.0).abs() < 1e-12);
        assert_eq!(n_independent(1000.0, -0.3), 1000.0);
        assert_eq!(n_independent(1000.0, 0.5), 500.5);
    }
}
