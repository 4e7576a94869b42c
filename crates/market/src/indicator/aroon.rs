//! Aroon: how long ago the extreme of a window was.

use super::column::{common_len, mask_windows};

/// `100 · (w − age) / w`, where `age` is how many bars ago the highest of the last `w + 1` values was, the latest of equal ones.
///
/// Reference: TA-Lib `AROON`. First value at bar `w`; a window with a non-finite value is NaN. `w = 0` is NaN.
pub fn aroon_up(high: &[f64], w: usize, out: &mut [f64]) {
    fill(high, w, out, |new, best| new >= best);
}

/// The same of the lowest.
pub fn aroon_down(low: &[f64], w: usize, out: &mut [f64]) {
    fill(low, w, out, |new, best| new <= best);
}

/// Goes along with the place of the extreme; looks through the window again where it has left it.
fn fill(x: &[f64], w: usize, out: &mut [f64], is_better: impl Fn(f64, f64) -> bool) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    out.fill(f64::NAN);
    if w == 0 || w >= n {
        return;
    }
    let latest = |from: usize, to: usize| {
        (from + 1..=to).fold(from, |best, k| if is_better(x[k], x[best]) { k } else { best })
    };
    let factor = 100.0 / w as f64;
    let mut best = latest(0, w);
    for i in w..n {
        let first = i - w;
        // A value that is not finite may have stopped the comparisons; it leaves the window together with its place.
        if best < first || !x[best].is_finite() {
            best = latest(first, i);
        } else if is_better(x[i], x[best]) {
            best = i;
        }
        out[i] = factor * (w as f64 - (i - best) as f64);
    }
    mask_windows(x, w + 1, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_equal_extremes_counts() {
        let x = [1.0, 5.0, 2.0, 5.0, 1.0, 1.0, 0.0];
        let mut out = [0.0; 7];
        aroon_up(&x, 4, &mut out);
        assert!(out[3].is_nan());
        assert_eq!(out[4..], [75.0, 50.0, 25.0]);
        aroon_down(&x, 4, &mut out);
        assert_eq!(out[4..], [100.0, 100.0, 100.0]);
    }

    #[test]
    fn a_missing_value_leaves_no_trace_behind_its_windows() {
        let mut x: Vec<f64> = (0..40).map(|i| f64::from((i * 13) % 17)).collect();
        for missing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            x[9] = missing;
            for w in 1..8 {
                let (mut all, mut later) = (vec![0.0; 40], vec![0.0; 30]);
                aroon_up(&x, w, &mut all);
                aroon_up(&x[10..], w, &mut later);
                assert!(all[9..10 + w].iter().all(|v| v.is_nan()));
                assert_eq!(all[10 + w..], later[w..]);
            }
        }
    }
}
