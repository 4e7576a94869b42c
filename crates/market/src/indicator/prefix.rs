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
mod ceiling;
mod rough;
mod window;

use std::sync::{Mutex, OnceLock, PoisonError};

use multiversion::multiversion;

use super::double_double::DoubleDouble;
use super::function::Limit;
use add_up::add_up;

pub(super) use rough::{Rough, fetch};
pub(super) use window::{Mean, ScoreTest, Spread, Weighted};

/// Magnitudes above this count as not available, so that sums of squares cannot overflow and spoil every
/// later bar.
const LARGEST: f64 = 1e120;

/// Bars of one block. Part of the specification: another length gives other last bits.
const BLOCK: usize = 256;

/// Which sums a [`Prefix`] holds, besides that of the values themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Moments {
    /// Values only: enough for [`sma`](super::sma).
    #[default]
    Sum,
    /// Also squares: [`stddev`](super::stddev), [`stddev_sample`](super::stddev_sample),
    /// [`zscore`](super::zscore).
    SumSquares,
    /// Also values times bar index: [`wma`](super::wma), [`lsma`](super::lsma).
    SumIndex,
    /// Sums, sums of squares and sums weighted by the bar.
    All,
}

impl Moments {
    fn have_squares(self) -> bool {
        matches!(self, Self::SumSquares | Self::All)
    }
}

/// Prefix sums of one series in double-double, added in bar order.
///
/// Values that are not available (non-finite, or above 1e120 in magnitude) enter the sums as 0 and are
/// counted; a window that holds one is NaN. Asking for a moment that was not built gives NaN, too.
///
/// Where squares are summed, thresholds can be tested by plain sums, and the others are added up when they are first asked for: a search
/// that tests thousands of windows hardly ever asks.
#[derive(Debug, Default)]
pub struct Prefix {
    n_bars: usize,
    moments: Moments,
    rough: Option<Rough>,
    exact: OnceLock<Exact>,
    /// Memory for what is not added up yet.
    memory: Mutex<Exact>,
}

/// The sums themselves.
#[derive(Debug, Default)]
struct Exact {
    sum: Sums,
    squares: Option<Sums>,
    index: Option<Sums>,
    /// Values not available among the first `i`.
    missing: Vec<u32>,
    /// Bars up to and including `i` whose value differs from the one before.
    changes: Vec<u32>,
}

impl Exact {
    /// The sums of `x`, in the memory of these.
    fn refilled(self, x: &[f64], moments: Moments) -> Self {
        match moments {
            Moments::Sum => self.build::<false, false>(x),
            Moments::SumSquares => self.build::<true, false>(x),
            Moments::SumIndex => self.build::<false, true>(x),
            Moments::All => self.build::<true, true>(x),
        }
    }

    fn build<const SQUARES: bool, const INDEX: bool>(self, x: &[f64]) -> Self {
        let n = x.len();
        let Self { sum, squares, index, mut missing, mut changes } = self;
        missing.resize(n + 1, 0);
        missing[0] = 0;
        changes.resize(n, 0);
        count(x, &mut missing[1..], &mut changes);
        let mut sum = sum.sized(n);
        let mut squares = squares.unwrap_or_default().sized(if SQUARES { n } else { 0 });
        let mut index = index.unwrap_or_default().sized(if INDEX { n } else { 0 });
        add_up::<SQUARES, INDEX>(x, &mut sum, &mut squares, &mut index);
        Self { sum, squares: SQUARES.then_some(squares), index: INDEX.then_some(index), missing, changes }
    }

    fn bytes(&self) -> usize {
        let sums = [Some(&self.sum), self.squares.as_ref(), self.index.as_ref()];
        let counts = (self.missing.capacity() + self.changes.capacity()) * size_of::<u32>();
        sums.into_iter().flatten().map(Sums::bytes).sum::<usize>() + counts
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

    /// Fills `out` with `value(k, sum, other sum)` of the window that starts `k` bars after `start`.
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
        let (a_new_hi, a_old_hi) = (&self.hi[start + w..][..m], &self.hi[start..][..m]);
        let (a_new_lo, a_old_lo) = (&self.lo[start + w..][..m], &self.lo[start..][..m]);
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
}

/// Counts, up to and including each bar, the values that are not available and those that differ from the one before.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn count(x: &[f64], missing: &mut [u32], changes: &mut [u32]) {
    const LANES: usize = 16;
    let (mut n_missing, mut n_changes) = (0_u32, 0_u32);
    for from in (0..x.len()).step_by(LANES) {
        let to = x.len().min(from + LANES);
        let (here, missing, changes) = (&x[from..to], &mut missing[from..to], &mut changes[from..to]);
        // As nearly all are.
        let is_plain = from > 0
            && here
                .iter()
                .zip(&x[from - 1..])
                .fold(true, |all, (v, last)| all & is_available(*v) & (v != last));
        if is_plain {
            missing.fill(n_missing);
            changes.iter_mut().zip(n_changes + 1..).for_each(|(changes, n)| *changes = n);
            n_changes += here.len() as u32;
            continue;
        }
        for (at, (missing, changes)) in (from..).zip(missing.iter_mut().zip(changes)) {
            n_missing += u32::from(!is_available(x[at]));
            n_changes += u32::from(x[at] != x[at.saturating_sub(1)]);
            (*missing, *changes) = (n_missing, n_changes);
        }
    }
}

#[inline(always)]
fn is_available(v: f64) -> bool {
    v.abs() <= LARGEST
}

impl Prefix {
    /// Adds up `x` once. Allocates 24 bytes per bar, 44 more for squares and 16 for indexes.
    pub fn new(x: &[f64], moments: Moments) -> Self {
        Self::default().refilled(x, moments)
    }

    /// The sums of `x`, in the memory of these, whatever they were of.
    pub fn refilled(self, x: &[f64], moments: Moments) -> Self {
        let Self { rough, exact, memory, .. } = self;
        let memory = memory.into_inner().unwrap_or_else(PoisonError::into_inner);
        let memory = exact.into_inner().unwrap_or(memory);
        let n_bars = x.len();
        if !moments.have_squares() {
            let exact = OnceLock::from(memory.refilled(x, moments));
            return Self { n_bars, moments, rough: None, exact, memory: Mutex::default() };
        }
        let rough = Some(rough.unwrap_or_default().refilled(x));
        Self { n_bars, moments, rough, exact: OnceLock::new(), memory: Mutex::new(memory) }
    }

    /// The sums, added up if they are not yet.
    fn exact(&self) -> &Exact {
        self.exact.get_or_init(|| {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            let x = self.rough.as_ref().map_or(&[][..], Rough::series);
            std::mem::take(&mut *memory).refilled(x, self.moments)
        })
    }

    /// The sums that it holds.
    pub fn moments(&self) -> Moments {
        self.moments
    }

    /// Number of bars of the source.
    pub fn len(&self) -> usize {
        self.n_bars
    }

    /// Whether the source has no bar.
    pub fn is_empty(&self) -> bool {
        self.n_bars == 0
    }

    /// Memory held, for the caller's budget. It grows when sums are first asked for that were not added up yet.
    pub fn bytes(&self) -> usize {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).bytes();
        let exact = self.exact.get().map_or(memory, Exact::bytes);
        exact + self.rough.as_ref().map_or(0, Rough::bytes)
    }

    /// [`sma`](super::sma) at bar `i`.
    pub fn mean_at(&self, i: usize, w: usize) -> f64 {
        self.at(i, w, |exact, start| Mean::new(w).of(exact.sum.window(start, w)))
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
        self.at(i, w, |exact, start| {
            let Some(squares) = &exact.squares else { return f64::NAN };
            if exact.changes[i] == exact.changes[start] {
                return 0.0;
            }
            spread.of(exact.sum.window(start, w), squares.window(start, w))
        })
    }

    fn weighted_at(&self, i: usize, w: usize, weighted: Weighted) -> f64 {
        self.at(i, w, |exact, start| {
            let Some(index) = &exact.index else { return f64::NAN };
            weighted.of(start, exact.sum.window(start, w), index.window(start, w))
        })
    }

    /// `value(sums, start)` if the window of `w` bars that ends with bar `i` is complete, else NaN.
    fn at(&self, i: usize, w: usize, value: impl Fn(&Exact, usize) -> f64) -> f64 {
        if w == 0 || i >= self.n_bars || i + 1 < w {
            return f64::NAN;
        }
        let (exact, start) = (self.exact(), i + 1 - w);
        if exact.missing[i + 1] != exact.missing[start] { f64::NAN } else { value(exact, start) }
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
        let sum = &self.exact().sum;
        let (new_hi, old_hi) = (&sum.hi[start + w..][..m], &sum.hi[start..][..m]);
        let (new_lo, old_lo) = (&sum.lo[start + w..][..m], &sum.lo[start..][..m]);
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
        let exact = self.exact();
        let Some(squares) = &exact.squares else { return out.fill(f64::NAN) };
        let Some((start, out)) = self.begin(w, first, out) else { return };
        exact.sum.map_pair(squares, w, start, out, value);
        let changes = exact.changes[start + w - 1..].iter().zip(&exact.changes[start..]);
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
        let exact = self.exact();
        let Some(index) = &exact.index else { return out.fill(f64::NAN) };
        let Some((start, out)) = self.begin(w, first, out) else { return };
        exact.sum.map_pair(index, w, start, out, |k, sum, index| value(start + k, sum, index));
        self.mask(w, start, out);
    }

    /// [`zscore`](super::zscore) of `newest` at bar `i`.
    pub(super) fn zscore_at(&self, newest: f64, i: usize, w: usize) -> f64 {
        self.at(i, w, |exact, start| {
            let Some(squares) = &exact.squares else { return f64::NAN };
            if exact.changes[i] == exact.changes[start] {
                return f64::NAN;
            }
            let sum = exact.sum.window(start, w);
            (newest - Mean::new(w).of(sum)) / Spread::population(w).of(sum, squares.window(start, w))
        })
    }

    /// What tests z-scores over windows of `w` values, at least 1; none if there are no squares.
    #[inline(always)]
    pub(super) fn score_test(&self, w: usize, limit: Limit) -> Option<(&Rough, ScoreTest)> {
        self.rough.as_ref().map(|rough| (rough, rough.test(w, limit)))
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
        let missing = &self.exact().missing;
        if missing[self.n_bars] == 0 {
            return;
        }
        let missing = missing[start + w..].iter().zip(&missing[start..]);
        for (y, (end, start)) in out.iter_mut().zip(missing) {
            *y = if end == start { *y } else { f64::NAN };
        }
    }
}

#[cfg(test)]
mod tests;
