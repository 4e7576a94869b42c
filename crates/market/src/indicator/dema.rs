//! Double exponential moving average.

use super::column::common_len;
use super::ema::smoothing;

/// `2·e1 − e2` with `e1 = ema(x, w)` and `e2 = ema(e1, w)`, both seeded with their first value.
///
/// Reference: pandas, `ewm(span=w, adjust=False, ignore_na=True)` applied twice. Valid from the first finite
/// value on; a non-finite value is NaN at its bar and leaves the state as it was. `w = 0` is NaN.
pub fn dema(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let a = smoothing(w);
    let b = 1.0 - a;
    let mut state: Option<[f64; 2]> = None;
    for (out, &x) in out[..n].iter_mut().zip(x) {
        if !x.is_finite() {
            *out = f64::NAN;
            continue;
        }
        let [e1, e2] = match state {
            None => [x; 2],
            Some([e1, e2]) => {
                let e1 = a * x + b * e1;
                [e1, a * e1 + b * e2]
            }
        };
        state = Some([e1, e2]);
        *out = 2.0 * e1 - e2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::ema;
    use super::*;

    #[test]
    fn dema_is_twice_the_average_less_its_average() {
        let x = [1.0, 2.0, f64::NAN, 4.0, 3.0, 8.0];
        let (mut e1, mut e2, mut out) = ([0.0; 6], [0.0; 6], [0.0; 6]);
        ema(&x, 3, &mut e1);
        ema(&e1, 3, &mut e2);
        dema(&x, 3, &mut out);
        for i in [0, 1, 3, 4, 5] {
            assert_eq!(out[i], 2.0 * e1[i] - e2[i]);
        }
        assert!(out[2].is_nan());
    }
}
