//! Exponential moving average, seeded with the first value.

use super::column::common_len;

/// `y = x` at the first available bar, then `y = a·x + (1−a)·y` with `a = 2/(span+1)`, in exactly this order
/// of operations.
///
/// Reference: pandas `ewm(span, adjust=False, ignore_na=True).mean()`. Valid from the first finite value on,
/// without warm-up; a non-finite value is NaN at its bar and leaves the average as it was. `span = 0` is NaN.
pub fn ema(x: &[f64], span: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    let first = x.iter().position(|v| v.is_finite()).unwrap_or(n);
    if span == 0 || first == n {
        return out.fill(f64::NAN);
    }
    let a = smoothing(span);
    let b = 1.0 - a;
    out[..first].fill(f64::NAN);
    out[first] = x[first];
    let mut y = x[first];
    for (out, &x) in out[first + 1..].iter_mut().zip(&x[first + 1..]) {
        if x.is_finite() {
            y = a * x + b * y;
            *out = y;
        } else {
            *out = f64::NAN;
        }
    }
}

/// The weight of the newest value for a span.
pub(super) fn smoothing(span: usize) -> f64 {
    2.0 / (span as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ema_starts_at_the_first_value() {
        let mut out = [0.0; 3];
        ema(&[1.0, 2.0, 4.0], 3, &mut out);
        assert_eq!(out, [1.0, 1.5, 2.75]);
    }

    #[test]
    fn gap_leaves_the_average_as_it_was() {
        let mut out = [0.0; 5];
        ema(&[f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NAN], 3, &mut out);
        assert!(out[0].is_nan() && out[2].is_nan() && out[4].is_nan());
        assert_eq!((out[1], out[3]), (1.0, 1.5));
    }

    #[test]
    fn ema_without_a_span_or_a_value_is_not_available() {
        let mut out = [0.0; 2];
        ema(&[1.0, 2.0], 0, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        ema(&[f64::NAN; 2], 3, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        ema(&[], 3, &mut []);
    }
}
