//! True range: a bar's range, extended to the close before it.

use super::column::{common_len, is_complete};

/// `max(high − low, |high − previous close|, |low − previous close|)`; `high − low` on the first available
/// bar.
///
/// Reference: TA-Lib `TRANGE` from its second bar on; the first bar as pandas' `max` over the columns gives
/// it. A bar with a non-finite price is NaN; the bar after it looks back to the last available close.
pub fn true_range(high: &[f64], low: &[f64], close: &[f64], out: &mut [f64]) {
    let n = common_len(out, [high.len(), low.len(), close.len()]);
    let mut previous = None;
    for i in 0..n {
        let (h, l, c) = (high[i], low[i], close[i]);
        if !is_complete(h, l, c) {
            out[i] = f64::NAN;
            continue;
        }
        out[i] = match previous {
            None => h - l,
            Some(previous) => range_of(h, l, previous),
        };
        previous = Some(c);
    }
}

/// The true range of one bar.
#[inline(always)]
pub(super) fn range_of(high: f64, low: f64, previous_close: f64) -> f64 {
    let range = high - low;
    let up = (high - previous_close).abs();
    let range = if up > range { up } else { range };
    let down = (low - previous_close).abs();
    if down > range { down } else { range }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_counts_as_range() {
        let mut out = [0.0; 3];
        true_range(&[2.0, 9.0, 4.0], &[1.0, 8.0, 3.0], &[1.5, 8.5, 3.5], &mut out);
        assert_eq!(out, [1.0, 7.5, 5.5]);
    }

    #[test]
    fn missing_bar_is_looked_over() {
        let mut out = [0.0; 3];
        true_range(&[2.0, f64::NAN, 9.0], &[1.0, 1.0, 8.0], &[1.5, 1.0, 8.5], &mut out);
        assert!(out[1].is_nan());
        assert_eq!((out[0], out[2]), (1.0, 7.5));
    }
}
