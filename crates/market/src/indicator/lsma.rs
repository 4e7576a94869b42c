//! Least-squares moving average.

use multiversion::multiversion;

use super::prefix::{Prefix, Weighted};

/// Value at the newest bar of the least-squares line through the last `w` values: `Σ (6·j − 2·(w+1))·x /
/// (w·(w+1))`, `j = 1` for the oldest.
///
/// Reference: TA-Lib `LINEARREG`. First value at bar `w-1` (for `w = 1`, which TA-Lib refuses, the value
/// itself); a window with a non-finite value is NaN. Needs [`Moments::SumIndex`](super::Moments::SumIndex).
pub fn lsma(p: &Prefix, w: usize, out: &mut [f64]) {
    lsma_from(p, w, 0, out);
}

/// [`lsma`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn lsma_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    let weighted = Weighted::lsma(w);
    p.map_index(w, first, out, |start, sum, index| weighted.of(start, sum, index));
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn lsma_of_a_line_is_the_line() {
        let x: Vec<f64> = (0..50).map(|i| 3.0 + 0.5 * f64::from(i)).collect();
        let mut out = vec![0.0; 50];
        lsma(&Prefix::new(&x, Moments::SumIndex), 9, &mut out);
        assert!(out[7].is_nan());
        assert_eq!(out[8..], x[8..]);
    }
}
