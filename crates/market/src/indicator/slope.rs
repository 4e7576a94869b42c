//! Slope of the least-squares line.

use multiversion::multiversion;

use super::prefix::{Prefix, Weighted};

/// Rise per bar of the least-squares line through the last `w` values: `Σ (12·j − 6·(w+1))·x / (w·(w²−1))`, `j = 1` for the oldest.
///
/// Reference: TA-Lib `LINEARREG_SLOPE`. First value at bar `w-1`; a window with a non-finite value is NaN, and so is `w < 2`.
/// Needs [`Moments::SumIndex`](super::Moments::SumIndex).
pub fn slope(p: &Prefix, w: usize, out: &mut [f64]) {
    slope_from(p, w, 0, out);
}

/// [`slope`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn slope_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    if w < 2 {
        return out.fill(f64::NAN);
    }
    let weighted = Weighted::slope(w);
    p.map_index(w, first, out, |start, sum, index| weighted.of(start, sum, index));
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn slope_of_a_line_is_its_rise() {
        let x: Vec<f64> = (0..50).map(|i| 3.0 + 0.5 * f64::from(i)).collect();
        let sums = Prefix::new(&x, Moments::SumIndex);
        let mut out = vec![0.0; 50];
        slope(&sums, 9, &mut out);
        assert!(out[7].is_nan());
        assert!(out[8..].iter().all(|v| *v == 0.5));
        slope(&sums, 1, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
    }
}
