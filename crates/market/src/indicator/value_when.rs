//! A series' value when a condition was last true.

use super::column::common_len;

/// `x` at the latest bar where `cond` holds, that bar included; NaN before the first, and where `x` was
/// non-finite then.
pub fn value_when(cond: &[bool], x: &[f64], out: &mut [f64]) {
    let n = common_len(out, [cond.len(), x.len()]);
    let mut latest = f64::NAN;
    for i in 0..n {
        if cond[i] {
            latest = if x[i].is_finite() { x[i] } else { f64::NAN };
        }
        out[i] = latest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_kept_until_the_next_time() {
        let mut out = [9.0; 5];
        value_when(&[false, true, false, true, true], &[1.0, 2.0, 3.0, f64::INFINITY, 5.0], &mut out);
        assert!(out[0].is_nan() && out[3].is_nan());
        assert_eq!((out[1], out[2], out[4]), (2.0, 2.0, 5.0));
    }
}
