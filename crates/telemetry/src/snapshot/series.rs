//! A value through time, in a bounded number of buckets.

use serde::{Deserialize, Serialize};

/// Buckets that are kept; when there are more, neighbours are joined and each covers twice the time.
const MAX_BUCKETS: usize = 512;

/// The width of a bucket at first.
const FIRST_WIDTH_S: f64 = 0.25;

/// Means of a value over equal stretches of time, from the start of the run on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    width_s: f64,
    /// Sum and weight of each bucket.
    buckets: Vec<(f64, f64)>,
    newest: Option<f64>,
}

impl Default for Series {
    fn default() -> Self {
        Self { width_s: FIRST_WIDTH_S, buckets: Vec::new(), newest: None }
    }
}

impl Series {
    /// Takes in a value with its weight, such as the time it covers. What is not finite is left out.
    pub fn push(&mut self, at_s: f64, value: f64, weight: f64) {
        if !(at_s >= 0.0 && at_s.is_finite() && value.is_finite() && weight > 0.0 && weight.is_finite()) {
            return;
        }
        self.newest = Some(value);
        while at_s / self.width_s >= MAX_BUCKETS as f64 {
            self.width_s *= 2.0;
            self.buckets = self
                .buckets
                .chunks(2)
                .map(|pair| pair.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
                .collect();
        }
        let idx = (at_s / self.width_s) as usize;
        if self.buckets.len() <= idx {
            self.buckets.resize(idx + 1, (0.0, 0.0));
        }
        let bucket = &mut self.buckets[idx];
        *bucket = (bucket.0 + value * weight, bucket.1 + weight);
    }

    /// The middle of each bucket in seconds, and its mean; buckets without a value are left out.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let width_s = self.width_s;
        self.buckets
            .iter()
            .enumerate()
            .filter(|(_, (_, weight))| *weight > 0.0)
            .map(move |(idx, (sum, weight))| ((idx as f64 + 0.5) * width_s, sum / weight))
    }

    /// The mean over about `over_s` seconds up to the newest value.
    pub fn recent(&self, over_s: f64) -> Option<f64> {
        let n_buckets = (over_s / self.width_s).ceil().max(1.0) as usize;
        let newest = &self.buckets[self.buckets.len().saturating_sub(n_buckets)..];
        let (sum, weight) = newest.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        (weight > 0.0).then(|| sum / weight)
    }

    /// Seconds that a bucket covers.
    pub fn width_s(&self) -> f64 {
        self.width_s
    }

    /// The value that came last.
    pub fn newest(&self) -> Option<f64> {
        self.newest
    }
}
