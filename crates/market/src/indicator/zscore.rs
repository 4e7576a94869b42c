//! Rolling z-score: how many standard deviations a value lies from its window's mean.

use multiversion::multiversion;

use super::function::Limit;
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
    let Some((first, newest, out)) = complete(x, w, first, f64::NAN, out) else { return };
    p.map_squares(w, first, f64::NAN, out, |k, sum, squares| {
        (newest[k] - mean.of(sum)) / spread.of(sum, squares)
    });
}

/// [`zscore`] at bar `i` alone.
pub fn zscore_at(x: &[f64], p: &Prefix, w: usize, i: usize) -> f64 {
    x.get(i).map_or(f64::NAN, |newest| p.zscore_at(*newest, i, w))
}

/// For the bars from `first` on, whether `sign · zscore` passes a threshold: above 0 if it surely does, below 0 if it surely does not.
///
/// It costs a fraction of [`zscore`]; where it says neither, that has to be asked.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub fn zscore_test(x: &[f64], p: &Prefix, w: usize, limit: Limit, first: usize, out: &mut [f64]) {
    // Without a window there is no score, and that passes no threshold.
    let Some((first, newest, out)) = complete(x, w, first, -1.0, out) else { return };
    p.map_test(newest, first, &p.score_test(w, limit), out);
}

/// [`zscore_test`] at bar `i` alone.
pub fn zscore_test_at(x: &[f64], p: &Prefix, w: usize, limit: Limit, i: usize) -> f64 {
    match x.get(i) {
        Some(newest) if w > 0 => p.test_at(*newest, i, &p.score_test(w, limit)),
        _ => -1.0,
    }
}

/// The first bar from `first` on whose window is complete, the values from there on and their part of `out`; the rest of it is `absent`.
#[inline(always)]
fn complete<'a, 'b>(
    x: &'a [f64],
    w: usize,
    first: usize,
    absent: f64,
    out: &'b mut [f64],
) -> Option<(usize, &'a [f64], &'b mut [f64])> {
    let n = x.len().saturating_sub(first).min(out.len());
    let early = if w == 0 { n } else { (w - 1).saturating_sub(first).min(n) };
    out[n..].fill(absent);
    out[..early].fill(absent);
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

    /// Long runs, jumps of many orders of magnitude, prices far from zero, and gaps if wanted.
    fn rough(gaps: bool) -> Vec<f64> {
        let value = |i: usize| match i % 97 {
            0 if gaps => f64::NAN,
            1 => 1e9,
            2..=20 => 5.0,
            _ => 100.0 + (i * i % 89) as f64 * [1.0, 1e-9, 1e3][i / 300 % 3],
        };
        (0..2_000).map(value).collect()
    }

    #[test]
    fn a_quick_test_is_never_wrong() {
        for x in [rough(false), rough(true), vec![7.0; 500]] {
            let p = Prefix::new(&x, Moments::SumSquares);
            let (mut z, mut said, mut sure) = (vec![0.0; x.len()], vec![0.0; x.len()], [0; 2]);
            for w in [1, 2, 3, 10, 50, 300, 1_999, 2_001] {
                zscore(&x, &p, w, &mut z);
                // Thresholds that are met exactly are among them.
                let thresholds = z.clone().into_iter().step_by(13).chain([1.0, 1e-9, 7.0]).map(f64::abs);
                for threshold in thresholds.filter(|threshold| *threshold > 0.0) {
                    for sign in [1.0, -1.0] {
                        let limit = Limit { threshold, sign };
                        zscore_test(&x, &p, w, limit, 0, &mut said);
                        for (i, (z, said)) in z.iter().zip(&said).enumerate() {
                            let what = || format!("{said} of {z} against {threshold}, window {w}");
                            assert!(!(*said < 0.0 && sign * z >= threshold), "{}", what());
                            assert!(*said <= 0.0 || sign * z > threshold, "{}", what());
                            sure[0] += usize::from(*said < 0.0);
                            sure[1] += usize::from(*said > 0.0);
                            let alone = zscore_test_at(&x, &p, w, limit, i);
                            assert!(
                                alone == *said || alone.is_nan() && said.is_nan(),
                                "bar {i}: {alone}, {}",
                                what()
                            );
                        }
                    }
                }
            }
            assert!(x[0] == 7.0 || sure[0] > 50_000 && sure[1] > 1_000, "{sure:?}");
        }
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let x = rough(true);
        let p = Prefix::new(&x, Moments::SumSquares);
        let bits = |v: f64| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() };
        let (mut whole, mut part) = (vec![0.0; x.len()], vec![0.0; 100]);
        for w in [0, 1, 2, 50, 300, 2_001] {
            zscore(&x, &p, w, &mut whole);
            for first in [0, 1, 49, 50, 299, 1_950, 1_999, 2_500] {
                zscore_from(&x, &p, w, first, &mut part);
                for (i, value) in (first..).zip(&part) {
                    let expected = whole.get(i).copied().unwrap_or(f64::NAN);
                    assert_eq!(bits(*value), bits(expected), "bar {i}, window {w}");
                    assert_eq!(bits(zscore_at(&x, &p, w, i)), bits(expected), "bar {i}, window {w}");
                }
            }
        }
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
