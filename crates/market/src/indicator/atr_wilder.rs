//! Average true range, smoothed as Wilder did.

use super::column::{common_len, is_complete};
use super::rma::Wilder;
use super::true_range::range_of;

/// [`rma`](super::rma) of the true range from the second available bar on.
///
/// Reference: TA-Lib `ATR`. First value at the available bar `w` (the `w+1`-th); a bar with a non-finite
/// price is NaN and leaves the state as it was. `w = 0` is NaN.
pub fn atr_wilder(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [high.len(), low.len(), close.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let mut average = Wilder::new(w);
    let mut previous = None;
    for i in 0..n {
        let (h, l, c) = (high[i], low[i], close[i]);
        out[i] = f64::NAN;
        if !is_complete(h, l, c) {
            continue;
        }
        if let Some(previous) = previous {
            out[i] = average.push(range_of(h, l, previous));
        }
        previous = Some(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bar_only_lends_its_close() {
        let mut out = [0.0; 4];
        atr_wilder(&[2.0, 9.0, 4.0, 4.0], &[1.0, 8.0, 3.0, 3.0], &[1.5, 8.5, 3.5, 3.5], 2, &mut out);
        assert!(out[1].is_nan());
        assert_eq!(out[2..], [6.5, 3.75]);
    }
}
