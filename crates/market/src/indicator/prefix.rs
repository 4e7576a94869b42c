//! Prefix sums of one source series, which serve rolling sums of every window length.
//!
//! A search asks for the same series under thousands of window lengths. With prefix sums kept in
//! double-double a window is the difference of two entries: O(1) per bar whatever the length, and without the
//! drift of a running sum, because what rounding did before the window cancels. Everything is combined in
//! double-double and rounded once, at the end.
//!
//! Precision: a window sum is off by about `w · 2^-106` of the largest prefix so far. That is far below one
//! rounding of the result unless one value exceeds the rest of the series by more than some fifteen orders of
//! magnitude.
//!
//! Sums are added up in blocks of 256 bars, each from zero and in bar order; an entry is the sum of the blocks before
//! it, itself an entry, plus the sum inside its block. The order of operations is fixed by that, yet blocks do not
//! wait for each other: here several run side by side, on a device all of them do.

use std::ops::Range;

use multiversion::multiversion;

use super::double_double::{DoubleDouble, two_prod};
use super::function::Limit;

/// Magnitudes above this count as not available, so that sums of squares cannot overflow and spoil every
/// later bar.
const LARGEST: f64 = 1e120;

/// Bars of one block. Part of the specification: another length gives other last bits.
const BLOCK: usize = 256;

/// Blocks added up side by side. Each waits for its own last sum most of the time; together they wait less.
const LANES: usize = 8;

/// Bars of each block that are added up before they are moved to where they belong.
const ROWS: usize = 32;

/// Which sums a [`Prefix`] holds, besides that of the values themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moments {
    /// Values only: enough for [`sma`](super::sma).
    Sum,
    /// Also squares: [`stddev`](super::stddev), [`stddev_sample`](super::stddev_sample),
    /// [`zscore`](super::zscore).
    SumSquares,
    /// Also values times bar index: [`wma`](super::wma), [`lsma`](super::lsma).
    SumIndex,
    /// All of them.
    All,
}

/// Prefix sums of one series in double-double, added in bar order.
///
/// Values that are not available (non-finite, or above 1e120 in magnitude) enter the sums as 0 and are
/// counted; a window that holds one is NaN. Asking for a moment that was not built gives NaN, too.
#[derive(Clone, Debug)]
pub struct Prefix {
    n_bars: usize,
    /// No value from this bar on is missing.
    clean_from: usize,
    pairs: Pairs,
    sum: Sums,
    squares: Option<Sums>,
    index: Option<Sums>,
    /// Values not available among the first `i`.
    missing: Vec<u32>,
    /// Bars up to and including `i` whose value differs from the one before.
    changes: Vec<u32>,
}

/// Sums of values and of squares rounded to `f64`, side by side, so that a single window reads few lines of memory.
#[derive(Clone, Debug, Default)]
struct Pairs {
    sums: Vec<[f64; 2]>,
    /// The largest magnitude of each, and of a value.
    largest: [f64; 3],
}

impl Pairs {
    fn new(x: &[f64], sum: &Sums, squares: &Sums) -> Self {
        let larger = |a: f64, b: f64| if b > a { b } else { a };
        let mut largest = [0.0; 3];
        for (pair, v) in sum.hi[1..].iter().zip(&squares.hi[1..]).zip(x) {
            largest = [larger(largest[0], pair.0.abs()), larger(largest[1], *pair.1), largest[2]];
            largest[2] = if is_available(*v) { larger(largest[2], v.abs()) } else { largest[2] };
        }
        Self { sums: sum.hi.iter().zip(&squares.hi).map(|(s, q)| [*s, *q]).collect(), largest }
    }
}

/// `n + 1` prefix sums, as two arrays so that loops over them vectorise.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    hi: Vec<f64>,
    lo: Vec<f64>,
}

impl Sums {
    fn zeros(n_bars: usize) -> Self {
        Self { hi: vec![0.0; n_bars + 1], lo: vec![0.0; n_bars + 1] }
    }

    /// Adds to the blocks from `start` on what the bars before them have come to, itself the entry at `start`.
    #[inline(always)]
    fn offset_blocks(&mut self, start: usize, n_bars: usize) {
        let mut offset = DoubleDouble { hi: self.hi[start], lo: self.lo[start] };
        let (his, los) = (&mut self.hi[start + 1..][..n_bars], &mut self.lo[start + 1..][..n_bars]);
        for (his, los) in his.chunks_mut(BLOCK).zip(los.chunks_mut(BLOCK)) {
            for (hi, lo) in his.iter_mut().zip(los.iter_mut()) {
                let entry = offset.add(DoubleDouble { hi: *hi, lo: *lo });
                *hi = entry.hi;
                *lo = entry.lo;
            }
            offset = DoubleDouble { hi: his[his.len() - 1], lo: los[los.len() - 1] };
        }
    }

    /// Sum of the bars `start .. start + w`.
    fn window(&self, start: usize, w: usize) -> DoubleDouble {
        let end = start + w;
        DoubleDouble { hi: self.hi[end], lo: self.lo[end] }
            .sub(DoubleDouble { hi: self.hi[start], lo: self.lo[start] })
    }

    fn bytes(&self) -> usize {
        (self.hi.capacity() + self.lo.capacity()) * size_of::<f64>()
    }
}

fn is_available(v: f64) -> bool {
    v.abs() <= LARGEST
}

/// Fills the sums, `LANES` blocks at a time; those not asked for are left alone.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn add_up<const SQUARES: bool, const INDEX: bool>(
    x: &[f64],
    sum: &mut Sums,
    squares: &mut Sums,
    index: &mut Sums,
) {
    let mut values = [[0.0; LANES]; ROWS];
    let [mut rows, mut rows_squares, mut rows_index] = [Rows::default(); 3];
    for start in (0..x.len()).step_by(LANES * BLOCK) {
        let n = (x.len() - start).min(LANES * BLOCK);
        let [mut total, mut total_squares, mut total_index] = [Totals::default(); 3];
        for first in (0..BLOCK.min(n)).step_by(ROWS) {
            // Bars of each block; what is missing at the end enters as anything and is not kept.
            let bars = |lane: usize| {
                let from = (lane * BLOCK + first).min(n);
                start + from..start + n.min(from + ROWS)
            };
            for lane in 0..LANES {
                for (row, &v) in values.iter_mut().zip(&x[bars(lane)]) {
                    row[lane] = if is_available(v) { v } else { 0.0 };
                }
            }
            for (row, v) in values.iter().enumerate() {
                total.each(|lane, total| total.add_f64(v[lane]));
                rows.set(row, &total);
                if SQUARES {
                    total_squares.each(|lane, total| total.add(two_prod(v[lane], v[lane])));
                    rows_squares.set(row, &total_squares);
                }
                if INDEX {
                    // Exact: whole numbers.
                    let i = (start + first + row) as f64;
                    total_index.each(|lane, total| total.add(two_prod(i + (lane * BLOCK) as f64, v[lane])));
                    rows_index.set(row, &total_index);
                }
            }
            for lane in 0..LANES {
                rows.move_lane(lane, sum, bars(lane));
                if SQUARES {
                    rows_squares.move_lane(lane, squares, bars(lane));
                }
                if INDEX {
                    rows_index.move_lane(lane, index, bars(lane));
                }
            }
        }
        sum.offset_blocks(start, n);
        if SQUARES {
            squares.offset_blocks(start, n);
        }
        if INDEX {
            index.offset_blocks(start, n);
        }
    }
}

/// The running totals of `LANES` blocks.
#[derive(Clone, Copy, Default)]
struct Totals {
    hi: [f64; LANES],
    lo: [f64; LANES],
}

impl Totals {
    #[inline(always)]
    fn each(&mut self, next: impl Fn(usize, DoubleDouble) -> DoubleDouble) {
        for lane in 0..LANES {
            let total = next(lane, DoubleDouble { hi: self.hi[lane], lo: self.lo[lane] });
            self.hi[lane] = total.hi;
            self.lo[lane] = total.lo;
        }
    }
}

/// Totals after some bars, the same bar of all blocks side by side.
#[derive(Clone, Copy, Default)]
struct Rows {
    hi: [[f64; LANES]; ROWS],
    lo: [[f64; LANES]; ROWS],
}

impl Rows {
    #[inline(always)]
    fn set(&mut self, row: usize, totals: &Totals) {
        self.hi[row] = totals.hi;
        self.lo[row] = totals.lo;
    }

    /// Writes one block's totals behind its `bars`.
    #[inline(always)]
    fn move_lane(&self, lane: usize, sums: &mut Sums, bars: Range<usize>) {
        for (to, row) in sums.hi[1..][bars.clone()].iter_mut().zip(&self.hi) {
            *to = row[lane];
        }
        for (to, row) in sums.lo[1..][bars].iter_mut().zip(&self.lo) {
            *to = row[lane];
        }
    }
}

impl Prefix {
    /// Adds up `x` once. Allocates 24 bytes per bar, 32 more for squares and 16 for indexes.
    pub fn new(x: &[f64], moments: Moments) -> Self {
        match moments {
            Moments::Sum => Self::build::<false, false>(x),
            Moments::SumSquares => Self::build::<true, false>(x),
            Moments::SumIndex => Self::build::<false, true>(x),
            Moments::All => Self::build::<true, true>(x),
        }
    }

    fn build<const SQUARES: bool, const INDEX: bool>(x: &[f64]) -> Self {
        let n = x.len();
        let mut missing = vec![0; n + 1];
        let mut changes = vec![0; n];
        let (mut n_missing, mut n_changes) = (0_u32, 0_u32);
        let mut previous = x.first().copied().unwrap_or_default();
        let clean_from = x.iter().rposition(|v| !is_available(*v)).map_or(0, |last| last + 1);
        for (i, &v) in x.iter().enumerate() {
            n_missing += u32::from(!is_available(v));
            n_changes += u32::from(v != previous);
            missing[i + 1] = n_missing;
            changes[i] = n_changes;
            previous = v;
        }
        let mut sum = Sums::zeros(n);
        let mut squares = Sums::zeros(if SQUARES { n } else { 0 });
        let mut index = Sums::zeros(if INDEX { n } else { 0 });
        add_up::<SQUARES, INDEX>(x, &mut sum, &mut squares, &mut index);
        let pairs = if SQUARES { Pairs::new(x, &sum, &squares) } else { Pairs::default() };
        let (squares, index) = (SQUARES.then_some(squares), INDEX.then_some(index));
        Self { n_bars: n, clean_from, pairs, sum, squares, index, missing, changes }
    }

    /// Number of bars of the source.
    pub fn len(&self) -> usize {
        self.n_bars
    }

    /// Whether the source has no bar.
    pub fn is_empty(&self) -> bool {
        self.n_bars == 0
    }

    /// Memory held, for the caller's budget.
    pub fn bytes(&self) -> usize {
        let sums = [Some(&self.sum), self.squares.as_ref(), self.index.as_ref()];
        let counts = (self.missing.capacity() + self.changes.capacity()) * size_of::<u32>();
        let pairs = self.pairs.sums.capacity() * size_of::<[f64; 2]>();
        sums.into_iter().flatten().map(Sums::bytes).sum::<usize>() + counts + pairs
    }

    /// [`sma`](super::sma) at bar `i`.
    pub fn mean_at(&self, i: usize, w: usize) -> f64 {
        self.at(i, w, |start| Mean::new(w).of(self.sum.window(start, w)))
    }

    /// [`stddev`](super::stddev) at bar `i`.
    pub fn std_pop_at(&self, i: usize, w: usize) -> f64 {
        self.std_at(i, w, Spread::population(w))
    }

    /// [`stddev_sample`](super::stddev_sample) at bar `i`.
    pub fn std_sample_at(&self, i: usize, w: usize) -> f64 {
        if w < 2 {
            return f64::NAN;
        }
        self.std_at(i, w, Spread::sample(w))
    }

    /// [`wma`](super::wma) at bar `i`.
    pub fn wma_at(&self, i: usize, w: usize) -> f64 {
        self.weighted_at(i, w, Weighted::wma(w))
    }

    /// [`lsma`](super::lsma) at bar `i`.
    pub fn lsma_at(&self, i: usize, w: usize) -> f64 {
        self.weighted_at(i, w, Weighted::lsma(w))
    }

    fn std_at(&self, i: usize, w: usize, spread: Spread) -> f64 {
        let Some(squares) = &self.squares else { return f64::NAN };
        self.at(i, w, |start| {
            if self.changes[i] == self.changes[start] {
                return 0.0;
            }
            spread.of(self.sum.window(start, w), squares.window(start, w))
        })
    }

    fn weighted_at(&self, i: usize, w: usize, weighted: Weighted) -> f64 {
        let Some(index) = &self.index else { return f64::NAN };
        self.at(i, w, |start| weighted.of(start, self.sum.window(start, w), index.window(start, w)))
    }

    /// `value(start)` if the window of `w` bars that ends with bar `i` is complete, else NaN.
    fn at(&self, i: usize, w: usize, value: impl Fn(usize) -> f64) -> f64 {
        if w == 0 || i >= self.n_bars || i + 1 < w {
            return f64::NAN;
        }
        let start = i + 1 - w;
        if self.missing[i + 1] != self.missing[start] { f64::NAN } else { value(start) }
    }

    /// Fills `out`, the bars from `first` on, with `value(sum)` of every complete window.
    #[inline(always)]
    pub(super) fn map_sum(
        &self,
        w: usize,
        first: usize,
        out: &mut [f64],
        value: impl Fn(DoubleDouble) -> f64,
    ) {
        let Some((start, out)) = self.begin(w, first, out) else { return };
        let m = out.len();
        let (new_hi, old_hi) = (&self.sum.hi[start + w..][..m], &self.sum.hi[start..][..m]);
        let (new_lo, old_lo) = (&self.sum.lo[start + w..][..m], &self.sum.lo[start..][..m]);
        for k in 0..m {
            let new = DoubleDouble { hi: new_hi[k], lo: new_lo[k] };
            let old = DoubleDouble { hi: old_hi[k], lo: old_lo[k] };
            out[k] = value(new.sub(old));
        }
        self.mask(w, start, out);
    }

    /// Fills `out`, the bars from `first` on, with `value(k, sum, sum of squares)` of the `k`-th complete window, and `flat` where all
    /// values of the window are equal: there the squares would leave a rounding error where the spread is
    /// exactly 0.
    #[inline(always)]
    pub(super) fn map_squares(
        &self,
        w: usize,
        first: usize,
        flat: f64,
        out: &mut [f64],
        value: impl Fn(usize, DoubleDouble, DoubleDouble) -> f64,
    ) {
        let Some(squares) = &self.squares else { return out.fill(f64::NAN) };
        let Some((start, out)) = self.begin(w, first, out) else { return };
        self.map_pair(squares, w, start, out, value);
        let changes = self.changes[start + w - 1..].iter().zip(&self.changes[start..]);
        for (y, (last, first)) in out.iter_mut().zip(changes) {
            *y = if last == first { flat } else { *y };
        }
        self.mask(w, start, out);
    }

    /// Fills `out`, the bars from `first` on, with `value(start, sum, sum of index times value)` of every complete window.
    #[inline(always)]
    pub(super) fn map_index(
        &self,
        w: usize,
        first: usize,
        out: &mut [f64],
        value: impl Fn(usize, DoubleDouble, DoubleDouble) -> f64,
    ) {
        let Some(index) = &self.index else { return out.fill(f64::NAN) };
        let Some((start, out)) = self.begin(w, first, out) else { return };
        self.map_pair(index, w, start, out, |k, sum, index| value(start + k, sum, index));
        self.mask(w, start, out);
    }

    #[inline(always)]
    fn map_pair(
        &self,
        other: &Sums,
        w: usize,
        start: usize,
        out: &mut [f64],
        value: impl Fn(usize, DoubleDouble, DoubleDouble) -> f64,
    ) {
        let m = out.len();
        let (a_new_hi, a_old_hi) = (&self.sum.hi[start + w..][..m], &self.sum.hi[start..][..m]);
        let (a_new_lo, a_old_lo) = (&self.sum.lo[start + w..][..m], &self.sum.lo[start..][..m]);
        let (b_new_hi, b_old_hi) = (&other.hi[start + w..][..m], &other.hi[start..][..m]);
        let (b_new_lo, b_old_lo) = (&other.lo[start + w..][..m], &other.lo[start..][..m]);
        for k in 0..m {
            let a_new = DoubleDouble { hi: a_new_hi[k], lo: a_new_lo[k] };
            let a_old = DoubleDouble { hi: a_old_hi[k], lo: a_old_lo[k] };
            let b_new = DoubleDouble { hi: b_new_hi[k], lo: b_new_lo[k] };
            let b_old = DoubleDouble { hi: b_old_hi[k], lo: b_old_lo[k] };
            out[k] = value(k, a_new.sub(a_old), b_new.sub(b_old));
        }
    }

    /// Fills `out`, the bars from `first` on, with what `test` says of the z-scores of `newest`; the windows are complete.
    #[inline(always)]
    pub(super) fn map_test(&self, newest: &[f64], first: usize, test: &ScoreTest, out: &mut [f64]) {
        let Some(squares) = &self.squares else { return out.fill(f64::NAN) };
        let Some((start, out)) = self.begin(test.w, first, out) else { return };
        let (m, end) = (out.len(), start + test.w);
        let (s_new, s_old) = (&self.sum.hi[end..][..m], &self.sum.hi[start..][..m]);
        let (q_new, q_old) = (&squares.hi[end..][..m], &squares.hi[start..][..m]);
        let newest = &newest[..m];
        for k in 0..m {
            out[k] = test.of(newest[k], s_new[k] - s_old[k], q_new[k] - q_old[k]);
        }
        // A window that holds a missing value has no score, and that passes no threshold.
        let unclean = self.clean_from.saturating_sub(start).min(m);
        for (k, said) in out[..unclean].iter_mut().enumerate() {
            *said = if self.missing[end + k] == self.missing[start + k] { *said } else { -1.0 };
        }
    }

    /// What `test` says of the z-score of `newest` at bar `i`.
    pub(super) fn test_at(&self, newest: f64, i: usize, test: &ScoreTest) -> f64 {
        if i + 1 < test.w {
            return -1.0;
        }
        let (end, start) = (i + 1, i + 1 - test.w);
        let (Some(new), Some(old)) = (self.pairs.sums.get(end), self.pairs.sums.get(start)) else {
            return -1.0;
        };
        if start < self.clean_from && self.missing[end] != self.missing[start] {
            return -1.0;
        }
        test.of(newest, new[0] - old[0], new[1] - old[1])
    }

    /// [`zscore`](super::zscore) of `newest` at bar `i`.
    pub(super) fn zscore_at(&self, newest: f64, i: usize, w: usize) -> f64 {
        let Some(squares) = &self.squares else { return f64::NAN };
        self.at(i, w, |start| {
            if self.changes[i] == self.changes[start] {
                return f64::NAN;
            }
            let sum = self.sum.window(start, w);
            (newest - Mean::new(w).of(sum)) / Spread::population(w).of(sum, squares.window(start, w))
        })
    }

    /// A test of z-scores over windows of `w` values, at least 1.
    #[inline(always)]
    pub(super) fn score_test(&self, w: usize, limit: Limit) -> ScoreTest {
        const ROUNDING: f64 = 1.0 / (1_u64 << 46) as f64;
        let w_bars = w as f64;
        let [sum, squares, value] = self.pairs.largest;
        let squared = limit.threshold * limit.threshold;
        // A window is the difference of two entries.
        let (s, wq, wx) = (2.0 * sum, 2.0 * (w_bars * squares), w_bars * value);
        let (d, n) = (wx + s, wq + s * s);
        let of_d = ROUNDING * d;
        ScoreTest { w, w_bars, sign: limit.sign, squared, of_d, of_excess: ROUNDING * (d * d + squared * n) }
    }

    /// Sets the bars without a complete window to NaN; returns the others of `out`, which begins with bar `first`, and where the
    /// window of the first of them starts.
    fn begin<'a>(&self, w: usize, first: usize, out: &'a mut [f64]) -> Option<(usize, &'a mut [f64])> {
        let n = self.n_bars.saturating_sub(first).min(out.len());
        let early = if w == 0 { n } else { (w - 1).saturating_sub(first).min(n) };
        out[n..].fill(f64::NAN);
        out[..early].fill(f64::NAN);
        if early == n { None } else { Some((first + early + 1 - w, &mut out[early..n])) }
    }

    #[inline(always)]
    fn mask(&self, w: usize, start: usize, out: &mut [f64]) {
        if self.missing[self.n_bars] == 0 {
            return;
        }
        let missing = self.missing[start + w..].iter().zip(&self.missing[start..]);
        for (y, (end, start)) in out.iter_mut().zip(missing) {
            *y = if end == start { *y } else { f64::NAN };
        }
    }
}

/// A window sum turned into a mean.
#[derive(Clone, Copy)]
pub(super) struct Mean {
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
pub(super) struct Spread {
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
/// With S and Q the sums of values and squares, z > t means D = w·x − S > 0 and D² > t²·N, where N = w·Q − S². Prefixes are rounded to
/// `f64`, so that S and Q are off by at most 2⁻⁵¹ of the largest prefix, and each formula, here and in the exact one, rounds a few
/// times more, by 2⁻⁵² of its terms at most. The bounds are more than ten times that for the largest values that the series can give; a
/// score within them is not decided.
pub(super) struct ScoreTest {
    w: usize,
    w_bars: f64,
    sign: f64,
    /// t².
    squared: f64,
    /// Bounds of D and of D² − t²·N.
    of_d: f64,
    of_excess: f64,
}

impl ScoreTest {
    #[inline(always)]
    fn of(&self, newest: f64, s: f64, q: f64) -> f64 {
        let d = self.sign * (self.w_bars * newest - s);
        let excess = d * d - self.squared * (self.w_bars * q - s * s);
        let sure = if d > self.of_d && excess > self.of_excess { 1.0 } else { 0.0 };
        if d < -self.of_d || excess < -self.of_excess { -1.0 } else { sure }
    }
}

/// A window's sum and index sum turned into an average with weights linear in the bar's place `j = 1 … w`:
/// `(slope·Σ j·x + level·Σ x) / divisor`.
#[derive(Clone, Copy)]
pub(super) struct Weighted {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_not_available_before_it_is_full_or_outside_the_series() {
        let p = Prefix::new(&[1.0, 2.0, 3.0], Moments::All);
        assert!(p.mean_at(0, 2).is_nan());
        assert_eq!(p.mean_at(1, 2), 1.5);
        assert!(p.mean_at(3, 2).is_nan());
        assert!(p.mean_at(2, 0).is_nan());
        assert!(p.mean_at(2, 4).is_nan());
        assert!(p.mean_at(usize::MAX - 1, usize::MAX).is_nan());
    }

    #[test]
    fn value_not_available_spoils_only_windows_that_hold_it() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            let p = Prefix::new(&[1.0, 2.0, bad, 4.0, 6.0], Moments::All);
            assert!(p.mean_at(2, 2).is_nan());
            assert!(p.std_pop_at(3, 2).is_nan());
            assert!(p.wma_at(3, 2).is_nan());
            assert_eq!(p.mean_at(4, 2), 5.0);
            assert_eq!(p.std_pop_at(4, 2), 1.0);
        }
    }

    #[test]
    fn moment_that_was_not_built_is_not_available() {
        let p = Prefix::new(&[1.0, 2.0, 4.0], Moments::Sum);
        assert!(p.std_pop_at(2, 2).is_nan());
        assert!(p.lsma_at(2, 2).is_nan());
        assert!(Prefix::new(&[1.0, 2.0, 4.0], Moments::SumSquares).wma_at(2, 2).is_nan());
    }

    #[test]
    fn flat_window_has_no_spread_even_after_a_wild_past() {
        let p = Prefix::new(&[1e15, -3.3e14, 0.1, 0.1, 0.1], Moments::All);
        assert_eq!(p.std_pop_at(4, 3), 0.0);
        assert_eq!(p.std_sample_at(4, 3), 0.0);
        assert!(p.std_pop_at(3, 3) > 0.0);
    }

    #[test]
    fn sums_do_not_depend_on_how_many_blocks_run_side_by_side() {
        for n in [0, 1, 255, 256, 257, 1_023, 1_024, 1_025, 2_600] {
            let x: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin() * 1e3 + 1.0 / (i as f64 + 3.0)).collect();
            let sums = Prefix::new(&x, Moments::All).sum;
            let mut offset = DoubleDouble::default();
            for (block, x) in x.chunks(BLOCK).enumerate() {
                let mut inner = DoubleDouble::default();
                let mut entry = offset;
                for (at, &v) in x.iter().enumerate() {
                    inner = inner.add_f64(v);
                    entry = offset.add(inner);
                    let i = block * BLOCK + at + 1;
                    assert_eq!(
                        (sums.hi[i].to_bits(), sums.lo[i].to_bits()),
                        (entry.hi.to_bits(), entry.lo.to_bits())
                    );
                }
                offset = entry;
            }
        }
    }

    #[test]
    fn window_across_blocks_is_the_sum_of_its_values() {
        // Integers: every sum is exact, whatever the order.
        let x: Vec<f64> = (0..1_500).map(|i| f64::from(i * i % 977)).collect();
        let p = Prefix::new(&x, Moments::All);
        for (i, w) in [(255, 256), (256, 256), (256, 1), (1_499, 1_500), (1_100, 700)] {
            let window = &x[i + 1 - w..=i];
            assert_eq!(p.mean_at(i, w), window.iter().sum::<f64>() / w as f64, "{w} bars to {i}");
            let weighted: f64 = window.iter().zip(1..).map(|(x, j)| x * f64::from(j)).sum();
            assert_eq!(p.wma_at(i, w), weighted / (0.5 * (w * (w + 1)) as f64), "{w} bars to {i}");
        }
    }

    #[test]
    fn bytes_count_what_is_held() {
        let x = vec![1.0; 1_000];
        assert_eq!(Prefix::new(&x, Moments::Sum).bytes(), 1_001 * 16 + 1_001 * 4 + 1_000 * 4);
        assert_eq!(Prefix::new(&x, Moments::All).bytes(), 1_001 * 64 + 1_001 * 4 + 1_000 * 4);
        assert_eq!(Prefix::new(&x, Moments::All).len(), 1_000);
        assert!(Prefix::new(&[], Moments::All).is_empty());
    }
}
