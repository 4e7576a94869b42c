//! Rolling extremes: `highest` and `lowest`.
//!
//! van Herk's method: cut the series into blocks of `w` bars; every window is the end of one block and the
//! beginning of the next, so two passes of running maxima and one comparison per bar serve any window length,
//! in place and whatever the data. A minimum is the maximum of the negated series; negation is exact.

use super::column::{common_len, mask_windows};

/// Largest of the last `w` values.
///
/// Reference: pandas `rolling(w).max()`. First value at bar `w-1`; a window with a non-finite value is NaN,
/// `w = 0` is NaN. Zero comes out as +0, whatever its sign was.
pub fn highest(x: &[f64], w: usize, out: &mut [f64]) {
    extreme::<false>(x, w, out);
}

/// Smallest of the last `w` values.
///
/// Reference: pandas `rolling(w).min()`. As [`highest`].
pub fn lowest(x: &[f64], w: usize, out: &mut [f64]) {
    extreme::<true>(x, w, out);
}

/// [`highest`] at bar `i` alone.
pub fn highest_at(x: &[f64], w: usize, i: usize) -> f64 {
    extreme_at::<false>(x, w, i)
}

/// [`lowest`] at bar `i` alone.
pub fn lowest_at(x: &[f64], w: usize, i: usize) -> f64 {
    extreme_at::<true>(x, w, i)
}

fn extreme<const LOW: bool>(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    if w == 0 || w > n {
        return out.fill(f64::NAN);
    }
    rolling_max(w, |i| oriented::<LOW>(x[i]), out);
    for y in out[w - 1..].iter_mut() {
        *y = restored::<LOW>(*y);
    }
    if !x.iter().all(|v| v.is_finite()) {
        mask_windows(x, w, out);
    }
}

fn extreme_at<const LOW: bool>(x: &[f64], w: usize, i: usize) -> f64 {
    if w == 0 || i >= x.len() || i + 1 < w {
        return f64::NAN;
    }
    let window = &x[i + 1 - w..=i];
    if !window.iter().all(|v| v.is_finite()) {
        return f64::NAN;
    }
    restored::<LOW>(maximum_of::<LOW>(window))
}

/// The value itself, or negated where a minimum is sought.
#[inline(always)]
pub(super) fn oriented<const LOW: bool>(v: f64) -> f64 {
    if LOW { -v } else { v }
}

/// The value as a result. Without a negative zero, because `-0 == +0` would let the bits depend on the order
/// of comparisons.
#[inline(always)]
pub(super) fn restored<const LOW: bool>(v: f64) -> f64 {
    oriented::<LOW>(v) + 0.0
}

/// Largest oriented value, −∞ for none.
pub(super) fn maximum_of<const LOW: bool>(values: &[f64]) -> f64 {
    values.iter().fold(f64::NEG_INFINITY, |m, &v| larger(oriented::<LOW>(v), m))
}

/// The larger of two; the second if they do not compare.
#[inline(always)]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// `out[i]` = largest of `load(i-w+1) … load(i)`, NaN before bar `w-1`; for `1 <= w <= out.len()`. Values
/// that do not compare are passed over.
pub(super) fn rolling_max(w: usize, load: impl Fn(usize) -> f64, out: &mut [f64]) {
    let n = out.len();
    let n_windows = n + 1 - w;
    out[..w - 1].fill(f64::NAN);
    // What a window has of the block in which it begins; the window that begins at `start` ends at `start + w
    // - 1`.
    for block in (0..n_windows).step_by(w) {
        let mut running = f64::NEG_INFINITY;
        for start in (block..block + w).rev() {
            running = larger(load(start), running);
            if start < n_windows {
                out[start + w - 1] = running;
            }
        }
    }
    // What it has of the next block.
    for block in (w..n).step_by(w) {
        let mut running = f64::NEG_INFINITY;
        for (i, y) in out.iter_mut().enumerate().take(n.min(block + w)).skip(block) {
            running = larger(load(i), running);
            *y = larger(*y, running);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_of_a_short_series_are_known() {
        let x = [3.0, 1.0, 2.0, 5.0, 4.0, -0.0, 0.0];
        let mut out = [0.0; 7];
        highest(&x, 3, &mut out);
        assert!(out[1].is_nan());
        assert_eq!(out[2..], [3.0, 5.0, 5.0, 5.0, 4.0]);
        lowest(&x, 2, &mut out);
        assert_eq!(out[1..], [1.0, 1.0, 2.0, 4.0, 0.0, 0.0]);
        assert!(out[5].is_sign_positive() && out[6].is_sign_positive());
    }

    #[test]
    fn infinity_is_not_the_highest_value() {
        let x = [1.0, f64::INFINITY, 2.0, 3.0];
        let mut out = [0.0; 4];
        highest(&x, 2, &mut out);
        assert!(out[1].is_nan() && out[2].is_nan());
        assert_eq!(out[3], 3.0);
        assert!(highest_at(&x, 2, 2).is_nan());
    }

    #[test]
    fn extremes_without_a_full_window_are_not_available() {
        for w in [0, 4, usize::MAX] {
            let mut out = [0.0; 3];
            lowest(&[1.0, 2.0, 3.0], w, &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
            assert!(lowest_at(&[1.0, 2.0, 3.0], w, 2).is_nan());
        }
        assert!(highest_at(&[1.0], 1, 1).is_nan());
        highest(&[], 1, &mut []);
    }
}
