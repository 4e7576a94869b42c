//! On-balance volume.

use super::column::common_len;

/// Running sum of volume, added on a higher close and taken away on a lower one; starts with the first
/// available volume.
///
/// Reference: TA-Lib `OBV`. Valid from the first available bar on; a bar whose close or volume is non-finite
/// is NaN and leaves the state as it was.
pub fn obv(close: &[f64], volume: &[f64], out: &mut [f64]) {
    let n = common_len(out, [close.len(), volume.len()]);
    let mut state: Option<(f64, f64)> = None;
    for i in 0..n {
        let (c, v) = (close[i], volume[i]);
        if !(c.is_finite() && v.is_finite()) {
            out[i] = f64::NAN;
            continue;
        }
        let balance = match state {
            None => v,
            // Selected, not branched: the direction of a close cannot be predicted.
            Some((previous, balance)) => {
                let rise = if c > previous { v } else { 0.0 };
                balance + if c < previous { -v } else { rise }
            }
        };
        state = Some((c, balance));
        out[i] = balance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_follows_the_direction_of_the_close() {
        let mut out = [0.0; 5];
        obv(&[1.0, 2.0, f64::NAN, 2.0, 1.0], &[10.0, 5.0, 99.0, 7.0, 4.0], &mut out);
        assert!(out[2].is_nan());
        assert_eq!((out[0], out[1], out[3], out[4]), (10.0, 15.0, 15.0, 11.0));
    }
}
