//! Hull moving average.

use super::column::common_len;
use super::prefix::{Moments, Prefix};
use super::wma::wma;

/// `wma(2·wma(x, ⌊w/2⌋) − wma(x, w), ⌊√w⌋)`; for `w = 1` the half window is 1, too.
///
/// Reference: this formula on TA-Lib `WMA`. First value at bar `w + ⌊√w⌋ − 2`; NaN where any window involved
/// holds a non-finite value. `w = 0` is NaN. Allocates two prefix sums and one column.
pub fn hma(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    if w == 0 || w > n {
        return out.fill(f64::NAN);
    }
    let p = Prefix::new(x, Moments::SumIndex);
    let mut raw = vec![0.0; n];
    wma(&p, (w / 2).max(1), &mut raw);
    wma(&p, w, out);
    for (half, full) in raw.iter_mut().zip(out.iter()) {
        *half = 2.0 * *half - full;
    }
    wma(&Prefix::new(&raw, Moments::SumIndex), w.isqrt(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hma_follows_a_line_almost_without_lag() {
        // On a line wma lags by (w-1)/3 bars: 2·(3-1)/3 - (7-1)/3 - (2-1)/3 = -1 bar.
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let mut out = vec![0.0; 40];
        hma(&x, 7, &mut out);
        assert!(out[6].is_nan());
        assert!((out[7] - (7.0 + 1.0 / 3.0)).abs() < 1e-12, "{}", out[7]);
    }

    #[test]
    fn hma_of_one_bar_is_the_value() {
        let mut out = [0.0; 3];
        hma(&[3.0, 1.0, 2.0], 1, &mut out);
        assert_eq!(out, [3.0, 1.0, 2.0]);
    }
}
