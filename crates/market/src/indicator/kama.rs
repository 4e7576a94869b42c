//! Kaufman's adaptive moving average.

use super::column::common_len;
use super::double_double::DoubleDouble;

/// `y = (x − y)·c² + y`, `c = er·(2/(fast+1) − 2/(slow+1)) + 2/(slow+1)`, where the efficiency ratio `er` is
/// the net move over `w` bars divided by the way walked. Seeded with the value before the first output.
///
/// Reference: TA-Lib `KAMA` for `fast = 2, slow = 30`. First value at the available bar `w` (the `w+1`-th); a
/// non-finite value is NaN at its bar and leaves the state as it was, so the window is the last `w+1`
/// available values. A flat window has `er = 1`, as in TA-Lib, which however calls every way below 1e-14
/// flat. A zero among `w, fast, slow` is NaN.
pub fn kama(x: &[f64], w: usize, fast: usize, slow: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    out.fill(f64::NAN);
    if w == 0 || fast == 0 || slow == 0 {
        return;
    }
    let slowest = 2.0 / (slow as f64 + 1.0);
    let range = 2.0 / (fast as f64 + 1.0) - slowest;
    let Some(mut oldest) = next_available(x, 0) else { return };
    let mut newest = oldest;
    // The way walked in the window; double-double, so that adding and taking away does not drift.
    let mut way = DoubleDouble::default();
    let (mut n_steps, mut n_moves) = (0, 0);
    let mut y = f64::NAN;
    while let Some(i) = next_available(x, newest + 1) {
        if n_steps == w {
            // `oldest` is before `newest`, so there is an available value after it.
            let next = next_available(x, oldest + 1).unwrap_or(newest);
            let step = (x[next] - x[oldest]).abs();
            way = way.add_f64(-step);
            n_moves -= usize::from(step != 0.0);
            oldest = next;
        } else {
            n_steps += 1;
            y = x[newest];
        }
        let step = (x[i] - x[newest]).abs();
        way = way.add_f64(step);
        n_moves += usize::from(step != 0.0);
        newest = i;
        if n_steps == w {
            let net = (x[i] - x[oldest]).abs();
            let er = if n_moves == 0 || way.hi <= net { 1.0 } else { net / way.hi };
            let c = er * range + slowest;
            y = (x[i] - y) * (c * c) + y;
            out[i] = y;
        }
    }
}

fn next_available(x: &[f64], from: usize) -> Option<usize> {
    (from..x.len()).find(|&i| x[i].is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_move_is_followed_at_the_fast_rate() {
        let mut out = [0.0; 4];
        kama(&[1.0, 2.0, 3.0, 4.0], 2, 2, 30, &mut out);
        assert!(out[1].is_nan());
        let first = (3.0 - 2.0) * (4.0 / 9.0) + 2.0;
        assert!((out[2] - first).abs() < 1e-15);
        assert!((out[3] - ((4.0 - first) * (4.0 / 9.0) + first)).abs() < 1e-15);
    }

    #[test]
    fn kama_of_constant_is_constant() {
        let mut out = [0.0; 9];
        kama(&[0.3; 9], 3, 2, 30, &mut out);
        assert!(out[3..].iter().all(|&v| v == 0.3));
    }

    #[test]
    fn flat_window_counts_as_steady_even_after_a_wild_past() {
        // What is left of the way in double-double after the flat stretch is 5.6e-17, not 0.
        let x = [1.0 / 3.0, 1e-3, 1e16 / 3.0, 1e-3, 1e-3, 0.3, 0.3, 0.3, 0.3, 0.3];
        let mut out = [0.0; 10];
        kama(&x, 3, 2, 30, &mut out);
        for i in [8, 9] {
            let expected = (0.3 - out[i - 1]) * (4.0 / 9.0) + out[i - 1];
            assert!((out[i] - expected).abs() <= 1e-15 * expected.abs(), "{} instead of {expected}", out[i]);
        }
    }

    #[test]
    fn kama_without_parameters_or_values_is_not_available() {
        let mut out = [0.0; 3];
        for (w, fast, slow) in [(0, 2, 30), (2, 0, 30), (2, 2, 0), (3, 2, 30), (usize::MAX, 2, 30)] {
            kama(&[1.0, 2.0, 3.0], w, fast, slow, &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
        }
        kama(&[f64::NAN; 3], 1, 2, 30, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        kama(&[], 1, 2, 30, &mut []);
    }
}
