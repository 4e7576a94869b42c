//! Rolling z-score: how many standard deviations a value lies from its window's mean.

use std::ops::Range;

use multiversion::multiversion;

use super::function::Limit;
use super::prefix::{Mean, Prefix, Rough, ScoreTest, Spread, fetch};

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

/// A threshold of the z-scores of one series over one window. It tells most of them from the threshold at a fraction of their cost.
pub struct ZscoreTest<'a> {
    x: &'a [f64],
    sums: &'a Rough,
    test: ScoreTest,
    limit: Limit,
}

impl<'a> ZscoreTest<'a> {
    /// `p` holds the sums of the same `x`. None without squares, and without a window: then there is no score.
    pub fn new(x: &'a [f64], p: &'a Prefix, w: usize, limit: Limit) -> Option<Self> {
        let (sums, test) = p.score_test(w, limit).filter(|_| w > 0)?;
        Some(Self { x, sums, test, limit })
    }

    /// What it reads.
    pub fn series(&self) -> Tested<'a> {
        Tested { x: self.x, sums: self.sums }
    }

    /// For the bars from `first` on, 64 to a word, takes from those that are `left` some where `sign · zscore` reaches no threshold. `first`
    /// is the first bar of a word.
    ///
    /// It costs next to nothing where windows of about that length have been asked for often, and does nothing before.
    pub fn screen(&self, first: usize, left: &mut [u64]) {
        self.sums.screen(self.test.w, self.limit, first, left);
    }

    /// The same for nearly all that do not reach it, at the cost of a test. Returns whether all that are left surely pass the threshold.
    pub fn thin(&self, first: usize, left: &mut [u64]) -> bool {
        thin(self, first, left)
    }

    /// Of some bars, counted from `first`, moves those to the front that may reach the threshold. Returns how many there are, and whether
    /// all of them surely pass it.
    pub fn keep(&self, first: usize, bars: &mut [u16]) -> (usize, bool) {
        let (mut n_kept, mut are_sure) = (0, true);
        // Nothing of this can be predicted, so that nothing branches.
        for at in 0..bars.len() {
            let bar = bars[at];
            let said = self.said(first + usize::from(bar));
            bars[n_kept] = bar;
            n_kept += usize::from(said >= 0.0);
            are_sure &= said != 0.0;
        }
        (n_kept, are_sure)
    }

    /// Whether a bar passes the threshold, if that can be told.
    pub fn passes(&self, bar: usize) -> Option<bool> {
        let quickly = self.said(bar);
        let said =
            if quickly == 0.0 { self.sums.test_closely(bar, self.test.w, self.limit) } else { quickly };
        (said != 0.0).then_some(said > 0.0)
    }

    /// What the test says of one bar: 1 if it surely passes, −1 if it surely does not, else 0.
    #[inline(always)]
    fn said(&self, bar: usize) -> f64 {
        self.x.get(bar).map_or(-1.0, |newest| self.sums.test_at(*newest, bar, &self.test))
    }
}

/// A series of which z-scores are tested, and its sums. Two are equal if they lie in the same memory.
#[derive(Clone, Copy)]
pub struct Tested<'a> {
    x: &'a [f64],
    sums: &'a Rough,
}

impl PartialEq for Tested<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.x, other.x) && std::ptr::eq(self.sums, other.sums)
    }
}

impl Tested<'_> {
    /// Has what tests read of some bars brought into the second cache.
    pub fn fetch(&self, bars: Range<usize>) {
        fetch(self.x, bars.clone());
        self.sums.fetch(bars);
    }
}

#[multiversion(targets("x86_64+popcnt"))]
fn thin(test: &ZscoreTest<'_>, first: usize, left: &mut [u64]) -> bool {
    let mut are_sure = true;
    for (at, left) in left.iter_mut().enumerate() {
        let bar = first + at * 64;
        let whole = || test.sums.may_word(test.x.get(bar..)?.first_chunk()?, bar, &test.test);
        let many = if left.count_ones() < FEW { None } else { whole() };
        let [may, sure] = many.unwrap_or_else(|| one_by_one(test, bar, *left));
        *left &= may;
        are_sure &= *left & !sure == 0;
    }
    are_sure
}

/// Of the bars from `first` on that are `left`, those that may reach the threshold, and those that surely pass it.
#[inline(always)]
fn one_by_one(test: &ZscoreTest<'_>, first: usize, mut left: u64) -> [u64; 2] {
    let [mut may, mut sure] = [0; 2];
    while left != 0 {
        let lane = left.trailing_zeros();
        left &= left - 1;
        let said = test.said(first + lane as usize);
        may |= u64::from(said >= 0.0) << lane;
        sure |= u64::from(said > 0.0) << lane;
    }
    [may, sure]
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
            let all: Vec<u16> = (0..x.len() as u16).collect();
            for w in [1, 2, 3, 10, 16, 50, 300, 319, 1_999, 2_001] {
                zscore(&x, &p, w, &mut z);
                // Thresholds that are met exactly are among them.
                let thresholds = z.clone().into_iter().step_by(13).chain([1.0, 1e-9, 7.0]).map(f64::abs);
                for threshold in thresholds.filter(|threshold| *threshold > 0.0) {
                    for sign in [1.0, -1.0] {
                        let limit = Limit { threshold, sign };
                        let Some(test) = ZscoreTest::new(&x, &p, w, limit) else {
                            panic!("there are squares and a window")
                        };
                        let bit = |words: &[u64], i: usize| words[i / 64] >> (i % 64) & 1 == 1;
                        let mut bars = all.clone();
                        let (n_kept, are_sure) = test.keep(0, &mut bars);
                        let kept = &bars[..n_kept];
                        // Screens know nothing at first, and rule out what they do from some question on.
                        let (mut screened, mut thinned) = (vec![u64::MAX; n_words], vec![u64::MAX; n_words]);
                        test.screen(0, &mut screened);
                        let are_thinned_sure = test.thin(0, &mut thinned);
                        assert_eq!(are_thinned_sure, are_sure, "{threshold}, window {w}");
                        for (i, z) in z.iter().enumerate() {
                            let (is_kept, passes) = (kept.binary_search(&all[i]).is_ok(), test.passes(i));
                            let what =
                                || format!("{is_kept} {passes:?} of {z} against {threshold}, window {w}");
                            let may = is_kept && bit(&screened, i) && bit(&thinned, i);
                            let reaches = sign * z >= threshold;
                            assert!(may || !reaches, "{}", what());
                            assert!(passes != Some(true) || sign * z > threshold, "{}", what());
                            assert!(passes != Some(false) || !reaches, "{}", what());
                            assert!(!are_sure || is_kept == (passes == Some(true)), "{}", what());
                            // Whole words and single bars have the same answers.
                            assert_eq!(bit(&thinned, i), is_kept, "{}", what());
                            sure[0] += usize::from(passes == Some(false));
                            sure[1] += usize::from(passes == Some(true));
                            n_screened += usize::from(!bit(&screened, i));
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
