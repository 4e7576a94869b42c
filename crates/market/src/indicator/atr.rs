//! Average true range, as a simple mean.

use super::prefix::{Moments, Prefix};
use super::sma::sma;
use super::true_range::true_range;

/// `sma(true_range, w)`.
///
/// Reference: pandas, `rolling(w).mean()` of the true range. First value at bar `w-1`; NaN where the window
/// holds a bar with a non-finite price. Allocates one prefix sum; for many windows of the same bars build a
/// [`Prefix`] of [`true_range`] once and use [`sma`].
pub fn atr(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    true_range(high, low, close, out);
    let p = Prefix::new(out, Moments::Sum);
    sma(&p, w, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atr_counts_the_first_bar() {
        let mut out = [0.0; 3];
        atr(&[2.0, 9.0, 4.0], &[1.0, 8.0, 3.0], &[1.5, 8.5, 3.5], 2, &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [4.25, 6.5]);
    }
}
