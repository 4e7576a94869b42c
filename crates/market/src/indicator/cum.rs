//! Running sum.

use super::column::common_len;

/// Sum of all values so far, added in bar order.
///
/// Reference: pandas `cumsum()`, with infinite values missing, too. A non-finite value is NaN at its bar and
/// adds nothing.
pub fn cum(x: &[f64], out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let mut sum = 0.0;
    for (out, &x) in out[..n].iter_mut().zip(x) {
        if x.is_finite() {
            sum += x;
            *out = sum;
        } else {
            *out = f64::NAN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_goes_on_after_a_gap() {
        let mut out = [9.0; 4];
        cum(&[1.0, f64::NAN, 2.0, f64::NEG_INFINITY], &mut out);
        assert!(out[1].is_nan() && out[3].is_nan());
        assert_eq!((out[0], out[2]), (1.0, 3.0));
    }
}
