//! Rolling z-score: how many standard deviations a value lies from its window's mean.

use multiversion::multiversion;

use super::function::Limit;
use super::prefix::{Mean, Prefix, Rough, ScoreTest, Spread};

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

/// [`zscore`] at bar `i` alone.
pub fn zscore_at(x: &[f64], p: &Prefix, w: usize, i: usize) -> f64 {
    x.get(i).map_or(f64::NAN, |newest| p.zscore_at(*newest, i, w))
}

/// Of 64 bars fewer than this are tested one by one.
const FEW: u32 = 6;

/// For the bars from `first` on, 64 to a word, takes from those that are `left` some where `sign · zscore` reaches no threshold. `first` is the
/// first bar of a word.
///
/// It costs a fraction of [`zscore_may`] where windows of about that length have been asked for often, and does nothing before.
pub fn zscore_screen(p: &Prefix, w: usize, limit: Limit, first: usize, left: &mut [u64]) {
    p.screen_scores(w, limit, first, left);
}

/// For the bars from `first` on, 64 to a word, where `sign · zscore` may reach a threshold. Only bars that are `left` are tested.
///
/// It costs a fraction of [`zscore`], and less than [`zscore_test`].
#[multiversion(targets("x86_64+popcnt"))]
pub fn zscore_may(
    x: &[f64],
    p: &Prefix,
    w: usize,
    limit: Limit,
    first: usize,
    left: &[u64],
    out: &mut [u64],
) {
    // Without a window there is no score, and that passes no threshold.
    if w == 0 {
        return out.fill(0);
    }
    let Some((sums, test)) = p.score_test(w, limit) else { return out.copy_from_slice(left) };
    for (at, (left, out)) in left.iter().zip(out).enumerate() {
        let bar = first + at * 64;
        let whole = || sums.may_word(x.get(bar..)?.first_chunk()?, bar, &test);
        let many = if left.count_ones() < FEW { None } else { whole() };
        *out = match many {
            Some(may) => left & may,
            None => kept(*left, |lane| said(x, sums, bar + lane, &test) >= 0.0),
        };
    }
}

/// For the bars from `first` on, 64 to a word, whether `sign · zscore` passes a threshold: `yes` where it surely does, `ask` where the score
/// has to be asked. Only bars that are `left` are tested, one by one.
pub fn zscore_test(
    x: &[f64],
    p: &Prefix,
    w: usize,
    limit: Limit,
    first: usize,
    left: &[u64],
    [yes, ask]: [&mut [u64]; 2],
) {
    if w == 0 {
        yes.fill(0);
        return ask.fill(0);
    }
    let Some((sums, test)) = p.score_test(w, limit) else {
        yes.fill(0);
        return ask.copy_from_slice(left);
    };
    for (at, ((left, yes), ask)) in left.iter().zip(yes).zip(ask).enumerate() {
        let bar = first + at * 64;
        *yes = 0;
        *ask = kept(*left, |lane| {
            let quickly = said(x, sums, bar + lane, &test);
            let said = if quickly == 0.0 { sums.test_closely(bar + lane, w, limit) } else { quickly };
            *yes |= u64::from(said > 0.0) << lane;
            said == 0.0
        });
    }
}

/// The bits of a word of which something is true.
#[inline(always)]
fn kept(mut bits: u64, mut is_true: impl FnMut(usize) -> bool) -> u64 {
    let mut out = 0;
    while bits != 0 {
        let lane = bits.trailing_zeros();
        bits &= bits - 1;
        out |= u64::from(is_true(lane as usize)) << lane;
    }
    out
}

/// What a test says of one bar: 1 if it surely passes, −1 if it surely does not, else 0.
#[inline(always)]
fn said(x: &[f64], sums: &Rough, bar: usize, test: &ScoreTest) -> f64 {
    x.get(bar).map_or(-1.0, |newest| sums.test_at(*newest, bar, test))
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
        let scaled = |unit: f64| rough(true).iter().map(|v| v * unit).collect::<Vec<f64>>();
        let far = |unit: f64| (0..2_000).map(|i| 1e9 + f64::from(i * i % 89) * unit).collect::<Vec<f64>>();
        let dull = [vec![7.0; 500], vec![0.1; 500], scaled(1e-154), scaled(1e-162), far(1e-6), far(1e-7)];
        let late: Vec<f64> = [f64::NAN; 70].into_iter().chain(rough(false)).collect();
        let near: Vec<f64> = (0..2_000).map(|i| 100.0 + (f64::from(i) * 0.37).sin()).collect();
        let sharp = [rough(false), rough(true), late, far(1e-3), near];
        let mut n_screened = 0;
        for (x, is_sharp) in sharp.map(|x| (x, true)).into_iter().chain(dull.map(|x| (x, false))) {
            let p = Prefix::new(&x, Moments::SumSquares);
            let n_words = x.len().div_ceil(64);
            let (mut z, mut sure) = (vec![0.0; x.len()], [0; 2]);
            let [mut yes, mut ask, mut may, mut some] = [0; 4].map(|none| vec![none; n_words]);
            let few: Vec<u64> = (0..n_words).map(|at| 1 << (at * 7 % 64) | 1 << 63 | 1).collect();
            for w in [1, 2, 3, 10, 16, 50, 300, 319, 1_999, 2_001] {
                zscore(&x, &p, w, &mut z);
                // Thresholds that are met exactly are among them.
                let thresholds = z.clone().into_iter().step_by(13).chain([1.0, 1e-9, 7.0]).map(f64::abs);
                for threshold in thresholds.filter(|threshold| *threshold > 0.0) {
                    for sign in [1.0, -1.0] {
                        let limit = Limit { threshold, sign };
                        zscore_test(&x, &p, w, limit, 0, &vec![u64::MAX; n_words], [&mut yes, &mut ask]);
                        let bit = |words: &[u64], i: usize| words[i / 64] >> (i % 64) & 1 == 1;
                        for (i, z) in z.iter().enumerate() {
                            let (yes, ask) = (bit(&yes, i), bit(&ask, i));
                            let what = || format!("{yes} {ask} of {z} against {threshold}, window {w}");
                            let passes = sign * z >= threshold;
                            assert!(yes || ask || !passes, "{}", what());
                            assert!(!yes || sign * z > threshold && !ask, "{}", what());
                            sure[0] += usize::from(!yes && !ask);
                            sure[1] += usize::from(yes);
                        }
                        // Screens know nothing at first, and rule out what they do from some question on.
                        let mut left = vec![u64::MAX; n_words];
                        zscore_screen(&p, w, limit, 0, &mut left);
                        for (i, z) in z.iter().enumerate() {
                            assert!(
                                bit(&left, i) || sign * z < threshold || z.is_nan(),
                                "{z} {threshold} {w}"
                            );
                            n_screened += usize::from(!bit(&left, i));
                        }
                        // Whole words and single bars have the same answers.
                        zscore_may(&x, &p, w, limit, 0, &vec![u64::MAX; n_words], &mut may);
                        zscore_may(&x, &p, w, limit, 0, &few, &mut some);
                        for at in 0..n_words {
                            let last = if at + 1 == n_words { (1 << (x.len() % 64)) - 1 } else { u64::MAX };
                            assert_eq!((yes[at] | ask[at]) & !may[at] & last, 0, "word {at}, window {w}");
                            assert_eq!(some[at], may[at] & few[at], "word {at}, window {w}");
                        }
                    }
                }
            }
            assert!(!is_sharp || sure[0] > 50_000 && sure[1] > 1_000, "{sure:?}");
        }
        assert!(n_screened > 1_000_000, "{n_screened}");
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
