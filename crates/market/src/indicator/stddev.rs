//! Rolling standard deviation, population and sample.

use multiversion::multiversion;

use super::prefix::{Prefix, Spread};

/// Population standard deviation of the last `w` values: `√((w·Σx² − (Σx)²) / w²)`, combined in
/// double-double.
///
/// Reference: pandas `rolling(w).std(ddof=0)`. First value at bar `w-1`; a window with a non-finite value is
/// NaN; a window of equal values gives exactly 0. Needs [`Moments::SumSquares`](super::Moments::SumSquares).
pub fn stddev(p: &Prefix, w: usize, out: &mut [f64]) {
    stddev_from(p, w, 0, out);
}

/// [`stddev`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn stddev_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    let spread = Spread::population(w);
    p.map_squares(w, first, 0.0, out, |_, sum, squares| spread.of(sum, squares));
}

/// Sample standard deviation of the last `w` values: `√((w·Σx² − (Σx)²) / (w·(w−1)))`.
///
/// Reference: pandas `rolling(w).std(ddof=1)`. As [`stddev`], and NaN for `w = 1`.
pub fn stddev_sample(p: &Prefix, w: usize, out: &mut [f64]) {
    stddev_sample_from(p, w, 0, out);
}

/// [`stddev_sample`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn stddev_sample_from(p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    if w < 2 {
        return out.fill(f64::NAN);
    }
    let spread = Spread::sample(w);
    p.map_squares(w, first, 0.0, out, |_, sum, squares| spread.of(sum, squares));
}

#[cfg(test)]
mod tests {
    use super::super::Moments;
    use super::*;

    #[test]
    fn spread_of_two_values_is_known() {
        let p = Prefix::new(&[1.0, 3.0, 3.0], Moments::SumSquares);
        let mut out = [0.0; 3];
        stddev(&p, 2, &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [1.0, 0.0]);
        stddev_sample(&p, 2, &mut out);
        assert_eq!(out[1..], [2f64.sqrt(), 0.0]);
    }

    #[test]
    fn single_value_has_no_population_spread_and_no_sample_spread_at_all() {
        let p = Prefix::new(&[1.0, 3.0], Moments::SumSquares);
        let mut out = [9.0; 2];
        stddev(&p, 1, &mut out);
        assert_eq!(out, [0.0, 0.0]);
        stddev_sample(&p, 1, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
    }
}
