//! Exponential moving average, seeded with a simple average.

use super::column::common_len;
use super::ema::smoothing;

/// The mean of the first `w` values, then `y = (x − y)·a + y` with `a = 2/(w+1)`.
///
/// Reference: TA-Lib `EMA`. First value at the `w`-th available bar; a non-finite value is NaN at its bar and
/// leaves the state as it was. `w = 0` is NaN.
pub fn ema_sma(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let a = smoothing(w);
    let (mut n_seen, mut y) = (0, 0.0);
    for (out, &x) in out[..n].iter_mut().zip(x) {
        *out = f64::NAN;
        if !x.is_finite() {
            continue;
        }
        if n_seen < w {
            n_seen += 1;
            y += x;
            if n_seen < w {
                continue;
            }
            y /= w as f64;
        } else {
            y = (x - y) * a + y;
        }
        *out = y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_is_the_mean_of_the_first_window() {
        let mut out = [0.0; 4];
        ema_sma(&[1.0, 2.0, 6.0, 5.0], 3, &mut out);
        assert!(out[1].is_nan());
        assert_eq!(out[2..], [3.0, 4.0]);
    }

    #[test]
    fn gap_in_the_seed_is_skipped() {
        let mut out = [0.0; 4];
        ema_sma(&[1.0, f64::NAN, 3.0, f64::NAN], 2, &mut out);
        assert!(out[0].is_nan() && out[1].is_nan() && out[3].is_nan());
        assert_eq!(out[2], 2.0);
    }
}
