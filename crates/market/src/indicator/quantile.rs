//! Quantiles of a window.

use super::column::common_len;

/// The value below which the share `q` of the last `w` values lies, between two of them on a straight line.
///
/// Reference: pandas `rolling(w).quantile(q)`. First value at bar `w-1`; a window with a non-finite value is NaN, and so
/// is everything for a `q` outside 0 to 1 or `w = 0`. Costs O(w) per bar; keeps the window sorted.
pub fn quantile(x: &[f64], w: usize, q: f64, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    out[..n].fill(f64::NAN);
    if w == 0 || w > n || !(0.0..=1.0).contains(&q) {
        return;
    }
    let place = q * (w as f64 - 1.0);
    let below = place as usize;
    let share = place - below as f64;
    let mut sorted: Vec<f64> = Vec::with_capacity(w);
    for i in 0..n {
        // Without a negative zero, which would let the bits depend on the order of equal values.
        let v = x[i] + 0.0;
        if !v.is_finite() {
            sorted.clear();
            continue;
        }
        let to = sorted.partition_point(|s| *s < v);
        if sorted.len() < w {
            sorted.insert(to, v);
        } else {
            let oldest = x[i - w] + 0.0;
            let from = sorted.partition_point(|s| *s < oldest);
            if from < to {
                sorted.copy_within(from + 1..to, from);
                sorted[to - 1] = v;
            } else {
                sorted.copy_within(to..from, to + 1);
                sorted[to] = v;
            }
        }
        if sorted.len() == w {
            let low = sorted[below];
            out[i] = if share == 0.0 { low } else { low + (sorted[below + 1] - low) * share };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_lies_between_two_values_of_the_window() {
        let x = [4.0, 1.0, 3.0, 2.0, 9.0];
        let mut out = [0.0; 5];
        quantile(&x, 4, 0.5, &mut out);
        assert!(out[2].is_nan());
        assert_eq!(out[3..], [2.5, 2.5]);
        quantile(&x, 4, 1.0, &mut out);
        assert_eq!(out[3..], [4.0, 9.0]);
        quantile(&x, 3, 0.25, &mut out);
        assert_eq!(out[2..], [2.0, 1.5, 2.5]);
    }

    #[test]
    fn missing_value_clears_the_window_and_a_share_beyond_1_is_none() {
        let mut out = [0.0; 5];
        quantile(&[1.0, f64::NAN, 2.0, 3.0, 3.0], 2, 0.5, &mut out);
        assert!(out[..3].iter().all(|v| v.is_nan()));
        assert_eq!(out[3..], [2.5, 3.0]);
        for q in [-0.1, 1.1, f64::NAN] {
            quantile(&[1.0, 2.0], 1, q, &mut out[..2]);
            assert!(out[..2].iter().all(|v| v.is_nan()));
        }
    }
}
