//! Triple exponential moving average.

use super::column::common_len;
use super::ema::smoothing;

/// `3·e1 − 3·e2 + e3` with `e1 = ema(x, w)`, `e2 = ema(e1, w)`, `e3 = ema(e2, w)`, all seeded with their
/// first value.
///
/// Reference: pandas, `ewm(span=w, adjust=False, ignore_na=True)` applied three times. Valid from the first
/// finite value on; a non-finite value is NaN at its bar and leaves the state as it was. `w = 0` is NaN.
pub fn tema(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let a = smoothing(w);
    let b = 1.0 - a;
    let mut state: Option<[f64; 3]> = None;
    for (out, &x) in out[..n].iter_mut().zip(x) {
        if !x.is_finite() {
            *out = f64::NAN;
            continue;
        }
        let [e1, e2, e3] = match state {
            None => [x; 3],
            Some([e1, e2, e3]) => {
                let e1 = a * x + b * e1;
                let e2 = a * e1 + b * e2;
                [e1, e2, a * e2 + b * e3]
            }
        };
        state = Some([e1, e2, e3]);
        *out = (3.0 * e1 - 3.0 * e2) + e3;
    }
}

#[cfg(test)]
mod tests {
    use super::super::ema;
    use super::*;

    #[test]
    fn tema_combines_three_averages() {
        let x = [1.0, 2.0, f64::NAN, 4.0, 3.0, 8.0];
        let (mut e1, mut e2, mut e3, mut out) = ([0.0; 6], [0.0; 6], [0.0; 6], [0.0; 6]);
        ema(&x, 3, &mut e1);
        ema(&e1, 3, &mut e2);
        ema(&e2, 3, &mut e3);
        tema(&x, 3, &mut out);
        for i in [0, 1, 3, 4, 5] {
            assert_eq!(out[i], (3.0 * e1[i] - 3.0 * e2[i]) + e3[i]);
        }
        assert!(out[2].is_nan());
    }
}
