//! Checks of lengths and windows that all indicators share.

/// Number of bars that `out` and all `inputs` have in common; what `out` holds beyond them becomes NaN.
///
/// Callers pass slices of one length. Should they not, the shortest decides, because a panic in the middle of
/// a search of millions of trials helps no user.
pub(super) fn common_len<const N: usize>(out: &mut [f64], inputs: [usize; N]) -> usize {
    let n = inputs.into_iter().fold(out.len(), usize::min);
    out[n..].fill(f64::NAN);
    n
}

/// Sets to NaN every bar whose window of `w` bars is incomplete or holds a non-finite value of `x`.
pub(super) fn mask_windows(x: &[f64], w: usize, out: &mut [f64]) {
    let mut n_clean = 0;
    for (y, v) in out.iter_mut().zip(x) {
        n_clean = if v.is_finite() { n_clean + 1 } else { 0 };
        if n_clean < w {
            *y = f64::NAN;
        }
    }
}

/// Whether a bar has all three of its prices.
pub(super) fn is_complete(high: f64, low: f64, close: f64) -> bool {
    high.is_finite() && low.is_finite() && close.is_finite()
}
