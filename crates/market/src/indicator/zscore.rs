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
pub fn zscore(x: &[f64], p: &Prefix, w: usize, out: &mut [f64]) {
    zscore_from(x, p, w, 0, out);
}

/// [`zscore`] of the bars from `first` on.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn zscore_from(x: &[f64], p: &Prefix, w: usize, first: usize, out: &mut [f64]) {
    let (mean, spread) = (Mean::new(w), Spread::population(w));
    let Some((first, newest, out)) = complete(x, w, first, out) else { return };
    p.map_squares(w, first, f64::NAN, out, |k, sum, squares| {
        (newest[k] - mean.of(sum)) / spread.of(sum, squares)
    });
}

/// For the bars from `first` on: a number below 0 only where `sign · zscore` is surely not above `threshold`, which has to be above 0.
///
/// It costs a fraction of [`zscore`]; where it is not below 0, that has to be asked.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn zscore_margin(
    x: &[f64],
    p: &Prefix,
    w: usize,
    (threshold, sign): (f64, f64),
    first: usize,
    out: &mut [f64],
) {
    let Some((first, newest, out)) = complete(x, w, first, out) else { return };
    p.map_margin(newest, w, first, (threshold, sign), out);
}

/// The first bar from `first` on whose window is complete, the values from there on and their part of `out`; the rest of it is NaN.
#[inline(always)]
fn complete<'a, 'b>(
    x: &'a [f64],
    w: usize,
    first: usize,
    out: &'b mut [f64],
) -> Option<(usize, &'a [f64], &'b mut [f64])> {
    let n = x.len().saturating_sub(first).min(out.len());
    let early = if w == 0 { n } else { (w - 1).saturating_sub(first).min(n) };
    out[n..].fill(f64::NAN);
    out[..early].fill(f64::NAN);
    if early == n { None } else { Some((first + early, &x[first + early..first + n], &mut out[early..n])) }
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
    fn a_margin_below_zero_means_that_the_threshold_is_not_passed() {
        // Values with long runs, jumps of many orders of magnitude, gaps and prices far from zero.
        let value = |i: usize| match i % 97 {
            0 => f64::NAN,
            1 => 1e9,
            2..=20 => 5.0,
            _ => 100.0 + (i * i % 89) as f64 * [1.0, 1e-9, 1e3][i / 300 % 3],
        };
        let x: Vec<f64> = (0..2_000).map(value).collect();
        let p = Prefix::new(&x, Moments::SumSquares);
        let (mut z, mut margin, mut sure) = (vec![0.0; x.len()], vec![0.0; x.len()], 0);
        for w in [1, 2, 3, 10, 50, 300, 1_999, 2_001] {
            zscore(&x, &p, w, &mut z);
            // Thresholds that are met exactly are among them.
            for threshold in z.clone().into_iter().step_by(13).chain([1.0, 1e-9, 7.0]).map(f64::abs) {
                for sign in [1.0, -1.0] {
                    zscore_margin(&x, &p, w, (threshold, sign), 0, &mut margin);
                    for (z, margin) in z.iter().zip(&margin) {
                        assert!(
                            !(*margin < 0.0 && sign * z >= threshold),
                            "{z} against {threshold}, window {w}"
                        );
                        sure += usize::from(*margin < 0.0);
                    }
                }
            }
        }
        assert!(sure > 100_000);
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
