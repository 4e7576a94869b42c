//! Sums of a window turned into what is wanted of them: means, spreads, weighted averages, and a quick test of z-scores.

use crate::indicator::double_double::DoubleDouble;
use crate::indicator::function::Limit;

/// A window sum turned into a mean.
#[derive(Clone, Copy)]
pub(in crate::indicator) struct Mean {
    w: f64,
    reciprocal: f64,
}

impl Mean {
    pub fn new(w: usize) -> Self {
        Self { w: w as f64, reciprocal: 1.0 / w as f64 }
    }

    #[inline(always)]
    pub fn of(self, sum: DoubleDouble) -> f64 {
        sum.divide(self.w, self.reciprocal)
    }
}

/// A window's sum and sum of squares turned into a standard deviation: `√((w·Sxx − Sx²) / divisor)`.
#[derive(Clone, Copy)]
pub(in crate::indicator) struct Spread {
    w: f64,
    divisor: f64,
}

impl Spread {
    pub fn population(w: usize) -> Self {
        Self { w: w as f64, divisor: w as f64 * w as f64 }
    }

    pub fn sample(w: usize) -> Self {
        Self { w: w as f64, divisor: w as f64 * (w as f64 - 1.0) }
    }

    #[inline(always)]
    pub fn of(self, sum: DoubleDouble, squares: DoubleDouble) -> f64 {
        let numerator = squares.mul_f64(self.w).sub(sum.square()).hi;
        let variance = numerator / self.divisor;
        (if variance > 0.0 { variance } else { 0.0 }).sqrt()
    }
}

/// Tells most z-scores above a threshold t > 0 from those that are not, without double-doubles, roots and divisions.
///
/// With S and Q the sums of values and squares, z > t means D = w·x − S > 0 and D² > t²·N, where N = w·Q − S². Here all values are less by the
/// same number, a centre, which changes neither. What is compared rounds in three ways: S and Q are off by at most 2⁻⁵¹ of the bounds of
/// their sums; each formula, here and in the exact one, rounds a few times more, by 2⁻⁵² of its terms at most, the exact one also the mean,
/// about 0 as it is; and the exact one takes sums that are good to about 2⁻¹⁰⁴ of all that is in them. The bounds are more than ten times all
/// that, and a score within them is not decided.
pub(in crate::indicator) struct ScoreTest {
    pub w: usize,
    centre: f64,
    w_bars: f64,
    sign: f64,
    /// t².
    squared: f64,
    /// Bounds of D and of D² − t²·N.
    of_d: f64,
    of_excess: f64,
}

/// What bounds the rounding of sums about a centre.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub centre: f64,
    /// More than any sum of values and of squares, so that each is off by at most 2⁻⁵¹ of it, and more than any value.
    pub sum: f64,
    pub squares: f64,
    pub value: f64,
    /// How far double-double sums of the series itself may be off: of values, of squares, and of the square of a sum.
    pub exact: [f64; 3],
}

/// How far D and D² − t²·N may be off over windows of some length: the latter by `of_square` + t² · `of_spread`.
pub(super) struct Margins {
    pub of_d: f64,
    pub of_square: f64,
    pub of_spread: f64,
}

impl Margins {
    pub fn new(bounds: &Bounds, w: usize) -> Self {
        const ROUNDING: f64 = 1.0 / (1_u64 << 46) as f64;
        // Squares so small that they lose digits, or vanish, stay far below.
        const TINY: f64 = 1e-290;
        let w_bars = w as f64;
        let Bounds { centre, sum, squares, value, exact } = *bounds;
        // A window is the difference of two entries.
        let (s, wq, wx) = (2.0 * sum, 2.0 * (w_bars * squares), w_bars * value);
        let (d, n) = (wx + s, wq + s * s);
        let exact_d = d + w_bars * centre.abs();
        Self {
            of_d: ROUNDING * exact_d + exact[0],
            of_square: ROUNDING * (d * exact_d) + d * exact[0] + TINY,
            of_spread: ROUNDING * n + w_bars * exact[1] + exact[2] + TINY,
        }
    }
}

impl ScoreTest {
    pub(super) fn new(bounds: &Bounds, w: usize, limit: Limit) -> Self {
        let Margins { of_d, of_square, of_spread } = Margins::new(bounds, w);
        let squared = limit.threshold * limit.threshold;
        Self {
            w,
            centre: bounds.centre,
            w_bars: w as f64,
            sign: limit.sign,
            squared,
            of_d,
            of_excess: of_square + squared * of_spread,
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, newest: f64, s: f64, q: f64) -> f64 {
        let d = self.sign * (self.w_bars * (newest - self.centre) - s);
        let excess = d * d - self.squared * (self.w_bars * q - s * s);
        let sure = if (d > self.of_d) & (excess > self.of_excess) { 1.0 } else { 0.0 };
        if (d < -self.of_d) | (excess < -self.of_excess) { -1.0 } else { sure }
    }

    /// Of 64 windows those of which it does not say −1, and those of which it says 1.
    #[inline(always)]
    pub(super) fn may(&self, sums: &WordSums<'_>) -> [u64; 2] {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has AVX-512F, as was just asked.
            return unsafe { x86::may(self, sums) };
        }
        self.may_plain(sums)
    }

    /// The specification of [`Self::may`].
    fn may_plain(&self, sums: &WordSums<'_>) -> [u64; 2] {
        let WordSums { newest, old, new } = sums;
        (0..64).fold([0; 2], |[may, sure], k| {
            let said = self.of(newest[k], new[k][0] - old[k][0], new[k][1] - old[k][1]);
            [may | u64::from(said >= 0.0) << k, sure | u64::from(said > 0.0) << k]
        })
    }
}

/// The newest values of 64 windows, and the sums of values and squares before their starts and at their ends.
pub(super) struct WordSums<'a> {
    pub newest: &'a [f64; 64],
    pub old: &'a [[f64; 2]; 64],
    pub new: &'a [[f64; 2]; 64],
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ScoreTest, WordSums};

    /// [`ScoreTest::of`] eight windows at a time, with the same operations in the same order.
    #[target_feature(enable = "avx512f")]
    pub(super) fn may(test: &ScoreTest, sums: &WordSums<'_>) -> [u64; 2] {
        let eight = |values: &[f64]| {
            assert!(values.len() == 8);
            // SAFETY: the slice holds the eight values that are read.
            unsafe { _mm512_loadu_pd(values.as_ptr()) }
        };
        // Four windows, a sum and a sum of squares each.
        let four = |part: usize| {
            let of = |sums: &[[f64; 2]; 64]| eight(sums[part * 4..part * 4 + 4].as_flattened());
            _mm512_sub_pd(of(sums.new), of(sums.old))
        };
        let (firsts, seconds) =
            (_mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
        let [centre, w, sign, squared] =
            [test.centre, test.w_bars, test.sign, test.squared].map(|value| _mm512_set1_pd(value));
        let [under_d, under_excess, over_d, over_excess] =
            [-test.of_d, -test.of_excess, test.of_d, test.of_excess].map(|value| _mm512_set1_pd(value));
        let (mut may, mut sure) = (0, 0);
        for part in 0..8 {
            let (a, b) = (four(2 * part), four(2 * part + 1));
            let (s, q) = (_mm512_permutex2var_pd(a, firsts, b), _mm512_permutex2var_pd(a, seconds, b));
            let newest = _mm512_sub_pd(eight(&sums.newest[part * 8..part * 8 + 8]), centre);
            let d = _mm512_mul_pd(sign, _mm512_sub_pd(_mm512_mul_pd(w, newest), s));
            let n = _mm512_sub_pd(_mm512_mul_pd(w, q), _mm512_mul_pd(s, s));
            let excess = _mm512_sub_pd(_mm512_mul_pd(d, d), _mm512_mul_pd(squared, n));
            // Not below the bounds, or not comparable with them.
            let not_under = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(d, under_d);
            let open = _mm512_mask_cmp_pd_mask::<_CMP_NLT_UQ>(not_under, excess, under_excess);
            may |= u64::from(open) << (part * 8);
            let over = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(d, over_d);
            let passed = _mm512_mask_cmp_pd_mask::<_CMP_GT_OQ>(over, excess, over_excess);
            sure |= u64::from(passed) << (part * 8);
        }
        [may, sure]
    }
}

/// A window's sum and index sum turned into an average with weights linear in the bar's place `j = 1 … w`:
/// `(slope·Σ j·x + level·Σ x) / divisor`.
#[derive(Clone, Copy)]
pub(in crate::indicator) struct Weighted {
    slope: f64,
    level: f64,
    divisor: f64,
    reciprocal: f64,
}

impl Weighted {
    /// Weights `j`.
    pub fn wma(w: usize) -> Self {
        Self::new(1.0, 0.0, 0.5 * (w as f64 * (w as f64 + 1.0)))
    }

    /// Weights `6·j − 2·(w + 1)`: the value of the least-squares line at the newest bar.
    pub fn lsma(w: usize) -> Self {
        Self::new(6.0, -2.0 * (w as f64 + 1.0), w as f64 * (w as f64 + 1.0))
    }

    /// Weights `12·j − 6·(w + 1)`: the slope of the least-squares line.
    pub fn slope(w: usize) -> Self {
        let w = w as f64;
        Self::new(12.0, -6.0 * (w + 1.0), w * (w * w - 1.0))
    }

    fn new(slope: f64, level: f64, divisor: f64) -> Self {
        Self { slope, level, divisor, reciprocal: 1.0 / divisor }
    }

    /// `index` sums `i·x` with the bar's absolute index; its place in the window is `j = i − start + 1`.
    #[inline(always)]
    pub fn of(self, start: usize, sum: DoubleDouble, index: DoubleDouble) -> f64 {
        let shift = self.level - self.slope * (start as f64 - 1.0);
        index.mul_f64(self.slope).add(sum.mul_f64(shift)).divide(self.divisor, self.reciprocal)
    }
}
