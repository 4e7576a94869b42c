//! Adaptive Trend Classification as an indicator.

use super::column::common_len;
use crate::atc::{AtcOptions, Growth, average};

/// The average vote of 54 moving averages on the trend, from −1 to 1, for one length of all families; see [`crate::atc`], whose
/// default options hold for the rest. `lambda` is the growth of the weight of returns, `decay` the fading of equities.
///
/// Reference: [`average`](crate::atc::average). Valid from bar `length + 5` on, where the longest moving average has its window. A missing price is no move;
/// the moving averages treat it each in its way. A length, growth or decay that [`AtcOptions`] refuses is NaN throughout.
pub fn atc(x: &[f64], length: usize, lambda: f64, decay: f64, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    let length = u32::try_from(length).unwrap_or(0);
    let defaults = AtcOptions::default();
    let options = AtcOptions {
        ema_len: length,
        hma_len: length,
        wma_len: length,
        dema_len: length,
        lsma_len: length,
        kama_len: length,
        lambda,
        decay,
        ..defaults
    };
    if options.validate().is_err() || average(x, &options, &Growth::new(&options, n), out).is_err() {
        return out.fill(f64::NAN);
    }
    // The first bars would know how long the series is.
    out[..options.min_bars() - 1].fill(f64::NAN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classification_begins_with_the_longest_average() {
        let x: Vec<f64> = (0..60).map(|bar| 100.0 + f64::from(bar * bar % 17)).collect();
        let mut out = [0.0; 60];
        atc(&x, 10, 0.02, 0.03, &mut out);
        assert!(out[..15].iter().all(|v| v.is_nan()));
        assert!(out[15..].iter().all(|v| v.abs() <= 1.0));
        assert!(out[15..].iter().any(|v| *v != 0.0));
    }

    #[test]
    fn senseless_arguments_are_not_available() {
        let x = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 4.0];
        for (length, lambda, decay) in
            [(0, 0.02, 0.03), (usize::MAX, 0.02, 0.03), (1, f64::NAN, 0.03), (1, 0.02, -1.0), (3, 0.02, 0.03)]
        {
            let mut out = [0.0; 8];
            atc(&x, length, lambda, decay, &mut out);
            assert!(out.iter().all(|v| v.is_nan()), "{length} {lambda} {decay}");
        }
        let mut out = [0.0; 8];
        atc(&x, 1, 0.02, 0.03, &mut out);
        assert!(out[6..].iter().all(|v| !v.is_nan()));
    }
}
