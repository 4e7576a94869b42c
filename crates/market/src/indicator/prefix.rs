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

mod add_up;
mod window;

use multiversion::multiversion;

use super::double_double::DoubleDouble;
use super::function::Limit;
use add_up::add_up;
use window::WordSums;

pub(super) use window::{Mean, ScoreTest, Spread, Weighted};

/// Magnitudes above this count as not available, so that sums of squares cannot overflow and spoil every
/// later bar.
const LARGEST: f64 = 1e120;

/// Bars of one block. Part of the specification: another length gives other last bits.
const BLOCK: usize = 256;

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
    /// Sums, sums of squares and sums weighted by the bar.
    All,
}

/// Prefix sums of one series in double-double, added in bar order.
///
/// Values that are not available (non-finite, or above 1e120 in magnitude) enter the sums as 0 and are
/// counted; a window that holds one is NaN. Asking for a moment that was not built gives NaN, too.
#[derive(Clone, Debug, Default)]
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
    fn new(x: &[f64], sum: &Sums, squares: &Sums, mut sums: Vec<[f64; 2]>) -> Self {
        sums.resize(sum.hi.len(), [0.0; 2]);
        let mut largest = [0.0; 3];
        fill_pairs(x, &sum.hi, &squares.hi, &mut sums, &mut largest);
        Self { sums, largest }
    }
}

/// Fills the pairs, and finds the largest magnitudes: in lanes of their own first, because a maximum does not depend on the order.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn fill_pairs(x: &[f64], sum: &[f64], squares: &[f64], pairs: &mut [[f64; 2]], largest: &mut [f64; 3]) {
    const LANES: usize = 8;
    for ((pair, s), q) in pairs.iter_mut().zip(sum).zip(squares) {
        *pair = [*s, *q];
    }
    let mut lanes = [[0.0; LANES]; 3];
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut take = |values: [&[f64]; 3]| {
        for lane in 0..values[0].len().min(LANES) {
            lanes[0][lane] = larger(lanes[0][lane], values[0][lane].abs());
            lanes[1][lane] = larger(lanes[1][lane], values[1][lane]);
            let v = values[2][lane].abs();
            lanes[2][lane] = larger(lanes[2][lane], if v <= LARGEST { v } else { 0.0 });
        }
    };
    let (sum, squares) = (sum[1..].as_chunks::<LANES>(), squares[1..].as_chunks::<LANES>());
    let x = x.as_chunks::<LANES>();
    for ((s, q), x) in sum.0.iter().zip(squares.0).zip(x.0) {
        take([s, q, x]);
    }
    take([sum.1, squares.1, x.1]);
    for (largest, lanes) in largest.iter_mut().zip(lanes) {
        *largest = lanes.into_iter().fold(0.0, larger);
    }
}

/// `n + 1` prefix sums, as two arrays so that loops over them vectorise.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    hi: Vec<f64>,
    lo: Vec<f64>,
}

impl Sums {
    /// Room for so many bars, with a first entry of 0; the others may be anything.
    fn sized(mut self, n_bars: usize) -> Self {
        for part in [&mut self.hi, &mut self.lo] {
            part.resize(n_bars + 1, 0.0);
            part[0] = 0.0;
        }
        self
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

impl Prefix {
    /// Adds up `x` once. Allocates 24 bytes per bar, 32 more for squares and 16 for indexes.
    pub fn new(x: &[f64], moments: Moments) -> Self {
        Self::default().refilled(x, moments)
    }

    /// The sums of `x`, in the memory of these, whatever they were of.
    pub fn refilled(self, x: &[f64], moments: Moments) -> Self {
        match moments {
            Moments::Sum => self.build::<false, false>(x),
            Moments::SumSquares => self.build::<true, false>(x),
            Moments::SumIndex => self.build::<false, true>(x),
            Moments::All => self.build::<true, true>(x),
        }
    }

    fn build<const SQUARES: bool, const INDEX: bool>(self, x: &[f64]) -> Self {
        let n = x.len();
        let Self { pairs, sum, squares, index, mut missing, mut changes, .. } = self;
        missing.resize(n + 1, 0);
        missing[0] = 0;
        changes.resize(n, 0);
        let (mut n_missing, mut n_changes) = (0_u32, 0_u32);
        let mut previous = x.first().copied().unwrap_or_default();
        let clean_from = x.iter().rposition(|v| !is_available(*v)).map_or(0, |last| last + 1);
        for ((&v, missing), changes) in x.iter().zip(&mut missing[1..]).zip(&mut changes) {
            n_missing += u32::from(!is_available(v));
            n_changes += u32::from(v != previous);
            *missing = n_missing;
            *changes = n_changes;
            previous = v;
        }
        let mut sum = sum.sized(n);
        let mut squares = squares.unwrap_or_default().sized(if SQUARES { n } else { 0 });
        let mut index = index.unwrap_or_default().sized(if INDEX { n } else { 0 });
        add_up::<SQUARES, INDEX>(x, &mut sum, &mut squares, &mut index);
        let pairs = if SQUARES { Pairs::new(x, &sum, &squares, pairs.sums) } else { Pairs::default() };
        let (squares, index) = (SQUARES.then_some(squares), INDEX.then_some(index));
        Self { n_bars: n, clean_from, pairs, sum, squares, index, missing, changes }
    }

    /// The sums that it holds.
    pub fn moments(&self) -> Moments {
        match (&self.squares, &self.index) {
            (None, None) => Moments::Sum,
            (Some(_), None) => Moments::SumSquares,
            (None, Some(_)) => Moments::SumIndex,
            (Some(_), Some(_)) => Moments::All,
        }
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

    /// [`slope`](super::slope) at bar `i`.
    pub fn slope_at(&self, i: usize, w: usize) -> f64 {
        if w < 2 {
            return f64::NAN;
        }
        self.weighted_at(i, w, Weighted::slope(w))
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

    /// Where `test` does not rule out the z-scores of the 64 bars from `first` on, of which `newest` are the values. None if a window is not
    /// complete, or may hold a missing value.
    #[inline(always)]
    pub(super) fn may_word<'a>(
        &'a self,
        newest: &'a [f64; 64],
        first: usize,
        test: &ScoreTest,
    ) -> Option<u64> {
        let start = (first + 1).checked_sub(test.w).filter(|start| *start >= self.clean_from)?;
        let squares = self.squares.as_ref()?;
        let at = |sums: &'a Sums, entry: usize| sums.hi.get(entry..)?.first_chunk();
        let end = start + test.w;
        Some(test.may(&WordSums {
            newest,
            sum: [at(&self.sum, start)?, at(&self.sum, end)?],
            squares: [at(squares, start)?, at(squares, end)?],
        }))
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
        ScoreTest::new(self.pairs.largest, w, limit)
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

#[cfg(test)]
mod tests;
