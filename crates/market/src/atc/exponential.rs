//! Exponential and double exponential averages of nine lengths side by side.
//!
//! The seed is the mean of the values available among the first w bars, at bar w − 1, or the first value after them if there
//! is none. A missing value leaves an average as it is, and makes the next value weigh more, by the number of bars missed.

use super::family::{N_LENGTHS, Nine};
use super::plan::Smoothing;
use crate::indicator::double_double::DoubleDouble;

/// Exponential averages on their way through a series.
pub(super) struct Exponential<'a> {
    weights: &'a Smoothing,
    lengths: &'a [u32; N_LENGTHS],
    longest: u32,
    /// Number of the next bar.
    bar: u32,
    /// Values before the longest seed.
    sum: DoubleDouble,
    n_seen: u32,
    /// Values missing just before the next bar.
    gap: u32,
    y: Nine,
}

impl<'a> Exponential<'a> {
    pub fn new(weights: &'a Smoothing, lengths: &'a [u32; N_LENGTHS]) -> Self {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        Self {
            weights,
            lengths,
            longest,
            bar: 0,
            sum: DoubleDouble::default(),
            n_seen: 0,
            gap: 0,
            y: [f64::NAN; N_LENGTHS],
        }
    }

    #[inline(always)]
    pub fn push(&mut self, x: f64) -> Nine {
        let is_here = x.is_finite();
        if is_here && self.gap == 0 {
            for k in 0..N_LENGTHS {
                self.y[k] = blend(self.y[k], x, self.weights.a[k], self.weights.b[k]);
            }
        } else if is_here {
            self.after_gap(x);
        }
        if self.bar < self.longest || self.n_seen == 0 {
            self.seed(x, is_here);
        }
        self.gap = if is_here { 0 } else { self.gap + 1 };
        self.bar += 1;
        self.y
    }

    /// The first value after a gap: the older ones have faded for every bar of it.
    #[cold]
    fn after_gap(&mut self, x: f64) {
        for k in 0..N_LENGTHS {
            let (a, b) = (self.weights.a[k], self.weights.b[k]);
            // The seed counts as a value, so a gap begins after it.
            let missed = self.gap.min(self.bar.saturating_sub(self.lengths[k]));
            let mut weight = b;
            for _ in 0..missed {
                weight *= b;
            }
            let y = self.y[k];
            self.y[k] = if missed == 0 {
                blend(y, x, a, b)
            } else if y == x {
                y
            } else {
                (weight * y + a * x) / (weight + a)
            };
        }
    }

    #[cold]
    fn seed(&mut self, x: f64, is_here: bool) {
        if is_here {
            self.sum = self.sum.add_f64(x);
            self.n_seen += 1;
        }
        for k in 0..N_LENGTHS {
            if self.bar + 1 == self.lengths[k] && self.n_seen > 0 {
                let n = f64::from(self.n_seen);
                self.y[k] = self.sum.divide(n, 1.0 / n);
            } else if self.bar >= self.lengths[k] && self.n_seen == 1 && is_here {
                self.y[k] = x;
            }
        }
    }
}

/// The next average. One that has reached the value stays there, whatever rounding says: a flat stretch is flat.
#[inline(always)]
fn blend(y: f64, x: f64, a: f64, b: f64) -> f64 {
    let next = b * y + a * x;
    if y == x { y } else { next }
}

/// Double exponential averages: `2·e − e'`, where `e'` is the average of the averages `e`.
pub(super) struct DoubleExponential<'a> {
    first: Exponential<'a>,
    second: Nine,
}

impl<'a> DoubleExponential<'a> {
    pub fn new(weights: &'a Smoothing, lengths: &'a [u32; N_LENGTHS]) -> Self {
        Self { first: Exponential::new(weights, lengths), second: [f64::NAN; N_LENGTHS] }
    }

    #[inline(always)]
    pub fn push(&mut self, x: f64) -> Nine {
        let first = self.first.push(x);
        let mut out = [0.0; N_LENGTHS];
        for k in 0..N_LENGTHS {
            let second = self.second[k];
            let next = blend(second, first[k], self.first.weights.a[k], self.first.weights.b[k]);
            // The first of the averages is the seed of their average.
            self.second[k] = if second.is_nan() { first[k] } else { next };
            out[k] = 2.0 * first[k] - self.second[k];
        }
        out
    }
}
