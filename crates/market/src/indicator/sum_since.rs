//! Running sum that starts again.

use super::column::common_len;

/// Sum of all values since the flag was last above 0, that bar included; of all so far where it never was.
///
/// Reference: pandas `groupby(flag.cumsum()).cumsum()`. A non-finite value is NaN at its bar and adds nothing; the flag of such a
/// bar counts all the same. A flag that is not available is not above 0.
pub fn sum_since(flag: &[f64], x: &[f64], out: &mut [f64]) {
    let n = common_len(out, [flag.len(), x.len()]);
    let mut sum = 0.0;
    for ((out, flag), x) in out[..n].iter_mut().zip(flag).zip(x) {
        if *flag > 0.0 {
            sum = 0.0;
        }
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
    fn sum_starts_again_even_where_the_value_is_missing() {
        let mut out = [9.0; 6];
        sum_since(&[0.0, f64::NAN, 1.0, 0.0, 1.0, 0.0], &[1.0, 2.0, 4.0, 8.0, f64::NAN, 16.0], &mut out);
        assert!(out[4].is_nan());
        assert_eq!((out[..4].to_vec(), out[5]), (vec![1.0, 3.0, 4.0, 12.0], 16.0));
    }
}
