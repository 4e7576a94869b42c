//! A confidence interval of a mean by bootstrap.
//!
//! Draws are a function of the seed and of their place alone ([`Stream`]), so that an interval is the same everywhere. Values are drawn
//! one by one, as though they were independent; trades that overlap are not, and their interval is somewhat too narrow.

use rayon::prelude::*;
use serde::Serialize;
use tidemill_search::rng::Stream;

/// Draws behind an interval.
pub const N_RESAMPLES: usize = 1000;

/// Where a mean lies with some confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of the values themselves.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Share of the draws whose mean is above 0.
    pub positive: f64,
    /// Number of values.
    pub n: usize,
}

/// The interval that holds the mean with this confidence, an equal part beyond each end; `None` for fewer than two values.
pub fn bootstrap(values: &[f64], n_resamples: usize, confidence: f64, seed: u64) -> Option<Interval> {
    let n = values.len();
    if n < 2 || n_resamples < 2 {
        return None;
    }
    let mean_of = |resample: usize| {
        let stream = Stream::new(seed, resample as u64);
        let sum: f64 = (0..n as u64).map(|draw| values[place(stream.bits(draw), n)]).sum();
        sum / n as f64
    };
    let mut means: Vec<f64> = (0..n_resamples).into_par_iter().map(mean_of).collect();
    let positive = means.iter().filter(|mean| **mean > 0.0).count() as f64 / n_resamples as f64;
    means.sort_by(f64::total_cmp);
    let beyond = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    Some(Interval {
        mean: values.iter().sum::<f64>() / n as f64,
        low: quantile(&means, beyond),
        high: quantile(&means, 1.0 - beyond),
        positive,
        n,
    })
}

/// A place among `n` from 64 random bits.
fn place(bits: u64, n: usize) -> usize {
    ((u128::from(bits) * n as u128) >> 64) as usize
}

/// A quantile of sorted values, between the two nearest.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let below = (at.floor() as usize).min(sorted.len() - 1);
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_mean_and_narrows_with_the_root_of_the_number() {
        let values = |n: usize| -> Vec<f64> { (0..n).map(|at| (at % 11) as f64 - 4.0).collect() };
        let few = bootstrap(&values(110), N_RESAMPLES, 0.9, 1).unwrap();
        let many = bootstrap(&values(11_000), N_RESAMPLES, 0.9, 1).unwrap();
        assert!(few.low < 1.0 && 1.0 < few.high && (few.mean - 1.0).abs() < 1e-12, "{few:?}");
        let ratio = (few.high - few.low) / (many.high - many.low);
        assert!((8.0..12.5).contains(&ratio), "{ratio}");
        assert_eq!(many.positive, 1.0);
        assert_eq!(few, bootstrap(&values(110), N_RESAMPLES, 0.9, 1).unwrap());
        assert_ne!(few, bootstrap(&values(110), N_RESAMPLES, 0.9, 2).unwrap());
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(bootstrap(&[1.0], N_RESAMPLES, 0.9, 1), None);
        assert_eq!(bootstrap(&[], N_RESAMPLES, 0.9, 1), None);
    }

    #[test]
    fn every_place_is_drawn() {
        assert_eq!(place(0, 3), 0);
        assert_eq!(place(u64::MAX, 3), 2);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[5.0], 0.3), 5.0);
    }
}
