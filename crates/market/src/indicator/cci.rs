//! Commodity channel index.

use super::column::{common_len, is_complete};
use super::prefix::{Moments, Prefix};
use super::sma::sma;

/// `(t − mean) / (0.015 · mean |t − mean|)` of the typical price `t = (high + low + close)/3` over the last
/// `w` bars.
///
/// Reference: TA-Lib `CCI`. First value at bar `w-1`; NaN where the window holds a bar with a non-finite
/// price. 0 where `t` equals the mean or all are equal, as in TA-Lib (whose mean, however, may miss equal
/// values by a rounding). `w = 0` is NaN. The deviations cost O(w) per bar; they are added up in four
/// interleaved sums. Allocates one column and one prefix sum.
pub fn cci(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [high.len(), low.len(), close.len()]);
    out.fill(f64::NAN);
    if w == 0 || w > n {
        return;
    }
    let typical: Vec<f64> = (0..n)
        .map(|i| {
            let (h, l, c) = (high[i], low[i], close[i]);
            if is_complete(h, l, c) { ((h + l) + c) / 3.0 } else { f64::NAN }
        })
        .collect();
    let p = Prefix::new(&typical, Moments::Sum);
    sma(&p, w, out);
    for (start, window) in typical.windows(w).enumerate() {
        let i = start + w - 1;
        let mean = out[i];
        if mean.is_nan() {
            continue;
        }
        let distance = typical[i] - mean;
        let deviation = sum_of_distances(window, mean);
        out[i] = if deviation == 0.0 { 0.0 } else { distance / (0.015 * (deviation / w as f64)) };
    }
}

fn sum_of_distances(window: &[f64], mean: f64) -> f64 {
    let (quads, rest) = window.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for quad in quads {
        for (sum, t) in sums.iter_mut().zip(quad) {
            *sum += (t - mean).abs();
        }
    }
    let mut total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for t in rest {
        total += (t - mean).abs();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_of_two_lies_at_two_thirds_of_a_hundred() {
        // Two values: the distance equals the mean deviation, so the index is ±1/0.015.
        let x = [3.0, 5.0, 4.0, 4.0];
        let mut out = [0.0; 4];
        cci(&x, &x, &x, 2, &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [1.0 / 0.015, -0.5 / (0.015 * 0.5), 0.0]);
    }

    #[test]
    fn flat_window_gives_0_even_where_the_price_is_no_short_binary_fraction() {
        let x = [0.1; 30];
        let mut out = [1.0; 30];
        cci(&x, &x, &x, 7, &mut out);
        assert!(out[6..].iter().all(|&v| v == 0.0));
    }
}
