//! Simple moving average.

use multiversion::multiversion;

use super::prefix::{Mean, Prefix};

/// Mean of the last `w` values: `out[i] = (x[i-w+1] + … + x[i]) / w`, rounded once.
///
/// Reference: pandas `rolling(w).mean()`. First value at bar `w-1`; a window with a non-finite value is NaN.
pub fn sma(p: &Prefix, w: usize, out: &mut [f64]) {
    sma_from(p, w, 0, out);
}

/// [`sma`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn sma_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    let mean = Mean::new(w);
    p.map_sum(w, first, out, |sum| mean.of(sum));
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn sma_of_constant_is_constant() {
        let x = [0.1; 100];
        let mut out = [0.0; 100];
        sma(&Prefix::new(&x, Moments::Sum), 7, &mut out);
        assert!(out[..6].iter().all(|v| v.is_nan()));
        assert!(out[6..].iter().all(|&v| v == 0.1));
    }

    #[test]
    fn sma_without_a_full_window_is_not_available() {
        let p = Prefix::new(&[1.0, 2.0], Moments::Sum);
        for w in [0, 3, usize::MAX] {
            let mut out = [0.0; 2];
            sma(&p, w, &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
        }
        sma(&Prefix::new(&[], Moments::Sum), 3, &mut []);
    }
}
