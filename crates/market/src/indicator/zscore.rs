//! Rolling z-score: how many standard deviations a value lies from its window's mean.

use multiversion::multiversion;

use super::prefix::{Mean, Prefix, Spread};

/// `(x - mean) / std` over the last `w` values including the current one, with the population standard
/// deviation. `p` holds the sums of the same `x`.
///
/// Reference: pandas `(x - rolling(w).mean()) / rolling(w).std(ddof=0)`. First value at bar `w-1`; a window
/// with a non-finite value is NaN. A window of equal values is 0/0, NaN; where the spread of unequal values
/// is too small for 106 bits the division by 0 stands as IEEE 754 has it. Needs
/// [`Moments::SumSquares`](super::Moments::SumSquares).
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn zscore(x: &[f64], p: &Prefix, w: usize, out: &mut [f64]) {
    if w == 0 || w > x.len() {
        return out.fill(f64::NAN);
    }
    let n = x.len().min(out.len());
    out[n..].fill(f64::NAN);
    let (mean, spread) = (Mean::new(w), Spread::population(w));
    let newest = &x[w - 1..];
    p.map_squares(w, f64::NAN, &mut out[..n], |start, sum, squares| {
        (newest[start] - mean.of(sum)) / spread.of(sum, squares)
    });
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn zscore_of_flat_window_is_not_available() {
        let x = [2.0, 2.0, 2.0, 4.0];
        let mut out = [0.0; 4];
        zscore(&x, &Prefix::new(&x, Moments::SumSquares), 2, &mut out);
        assert!(out[..3].iter().all(|v| v.is_nan()));
        assert_eq!(out[3], 1.0);
    }

    #[test]
    fn zscore_never_panics_on_odd_lengths() {
        let x = [1.0, 2.0, 4.0];
        let p = Prefix::new(&x, Moments::SumSquares);
        for w in [0, 1, 2, 3, 4, usize::MAX] {
            for n in 0..5 {
                zscore(&x, &p, w, &mut vec![0.0; n]);
                zscore(&x[..n.min(3)], &p, w, &mut vec![0.0; n]);
            }
        }
    }
}
