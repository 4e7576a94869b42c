//! Weighted moving average with linear weights.

use multiversion::multiversion;

use super::prefix::{Prefix, Weighted};

/// `Σ j·x / (w·(w+1)/2)` over the last `w` values, `j = 1` for the oldest and `w` for the newest.
///
/// Reference: TA-Lib `WMA`. First value at bar `w-1`; a window with a non-finite value is NaN. Needs
/// [`Moments::SumIndex`](super::Moments::SumIndex).
pub fn wma(p: &Prefix, w: usize, out: &mut [f64]) {
    wma_from(p, w, 0, out);
}

/// [`wma`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn wma_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    let weighted = Weighted::wma(w);
    p.map_index(w, first, out, |start, sum, index| weighted.of(start, sum, index));
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn newest_value_weighs_most() {
        let mut out = [0.0; 4];
        wma(&Prefix::new(&[0.0, 0.0, 6.0, 0.0], Moments::SumIndex), 3, &mut out);
        assert!(out[1].is_nan());
        assert_eq!(out[2..], [3.0, 2.0]);
    }
}
