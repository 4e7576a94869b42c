//! Open of Heikin-Ashi bars.

use super::column::{common_len, is_complete};

/// The mean of open and close on the first bar, then `(y + m) / 2`: half-way between the last one and the mean price `m` of the bar
/// before, which is the Heikin-Ashi close.
///
/// Reference: the recursion itself, as in Pine's `ticker.heikinashi`. Valid from the first available bar on; a bar with a non-finite
/// value is NaN and leaves the state as it was.
pub fn heikin_open(open: &[f64], close: &[f64], mean: &[f64], out: &mut [f64]) {
    let n = common_len(out, [open.len(), close.len(), mean.len()]);
    let mut state: Option<(f64, f64)> = None;
    for i in 0..n {
        if !is_complete(open[i], close[i], mean[i]) {
            out[i] = f64::NAN;
            continue;
        }
        let y = match state {
            None => (open[i] + close[i]) / 2.0,
            Some((y, before)) => (y + before) / 2.0,
        };
        state = Some((y, mean[i]));
        out[i] = y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_half_way_between_what_was() {
        let mut out = [0.0; 4];
        heikin_open(&[1.0, 9.0, 9.0, 9.0], &[3.0, 9.0, 9.0, 9.0], &[4.0, f64::NAN, 8.0, 9.0], &mut out);
        assert!(out[1].is_nan());
        assert_eq!((out[0], out[2], out[3]), (2.0, 3.0, 5.5));
    }
}
