//! Averages over windows: simple, linearly weighted, least squares, Hull's.
//!
//! Two running sums in double-double serve all of them. `P` is the sum of all values so far and `Q` the sum of all earlier
//! `P`; a dash marks the sums as they were before the window. Then the window's sum is `P − P'`, and the sum with the weights 1 … w is
//! `w·P − (Q − Q')`, because the newest value is in all w partial sums from the end. Every average is such a combination, divided
//! and rounded once, so that it does not drift and a flat stretch of prices has exactly that price as its average.
//!
//! A value that is not finite enters the sums as 0, and no window that holds one has an average.

use super::family::{N_LENGTHS, Nine};
use super::plan::{HULL, Plan, Weights};
use crate::indicator::double_double::{DoubleDouble, two_prod, two_sum};

/// The running sums before a bar, or after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub sum: DoubleDouble,
    pub sums: DoubleDouble,
}

/// The running sums of a series.
pub(super) struct Sums {
    /// `entries[bar]` is what was before the bar.
    pub entries: Vec<Entry>,
    /// How many of the latest values are available, without a gap.
    pub run: u32,
}

impl Sums {
    pub fn new(n_bars: usize) -> Self {
        let mut entries = Vec::with_capacity(n_bars + 1);
        entries.push(Entry::default());
        Self { entries, run: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, x: f64) {
        let is_here = x.is_finite();
        let last = self.entries[self.entries.len() - 1];
        self.entries.push(Entry {
            sum: last.sum.add_f64(if is_here { x } else { 0.0 }),
            sums: last.sums.add(last.sum),
        });
        self.run = if is_here { self.run + 1 } else { 0 };
    }

    /// The entry so many bars before the one that is `ago` bars before the latest.
    #[inline(always)]
    fn before(&self, ago: usize, length: u32) -> Entry {
        (self.entries.len() - 1)
            .checked_sub(ago + length as usize)
            .map_or(Entry::default(), |at| self.entries[at])
    }
}

/// `a − b`, not brought into order: `hi` is the rounded difference and `lo` what it lacks.
#[inline(always)]
fn difference(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble {
    let s = two_sum(a.hi, -b.hi);
    DoubleDouble { hi: s.hi, lo: s.lo + (a.lo - b.lo) }
}

#[inline(always)]
fn sum(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble {
    let s = two_sum(a.hi, b.hi);
    DoubleDouble { hi: s.hi, lo: s.lo + (a.lo + b.lo) }
}

#[inline(always)]
fn product(a: DoubleDouble, b: f64) -> DoubleDouble {
    let p = two_prod(a.hi, b);
    DoubleDouble { hi: p.hi, lo: p.lo + a.lo * b }
}

/// The simple mean.
#[inline(always)]
fn mean(now: &Entry, then: &Entry, weights: &Weights, k: usize) -> f64 {
    difference(now.sum, then.sum).divide(weights.divisor[k], weights.reciprocal[k])
}

/// The average with weights that rise by one from bar to bar.
#[inline(always)]
fn linear(now: &Entry, then: &Entry, weights: &Weights, k: usize) -> f64 {
    let all = product(now.sum, weights.now[k]);
    difference(all, difference(now.sums, then.sums)).divide(weights.divisor[k], weights.reciprocal[k])
}

/// A point of the least-squares line.
#[inline(always)]
fn line(now: &Entry, then: &Entry, weights: &Weights, k: usize) -> f64 {
    let ends = sum(product(now.sum, weights.now[k]), product(then.sum, weights.then[k]));
    let between = product(difference(now.sums, then.sums), weights.sums[k]);
    sum(ends, between).divide(weights.divisor[k], weights.reciprocal[k])
}

/// Simple means or Hull's averages.
#[inline(always)]
pub(super) fn hma(sums: &Sums, plan: &Plan) -> Nine {
    if plan.has(HULL) {
        return hull(sums, plan);
    }
    each(sums, &plan.lengths[1], |now, then, k| mean(now, then, &plan.hma, k))
}

/// Weighted averages.
#[inline(always)]
pub(super) fn wma(sums: &Sums, plan: &Plan) -> Nine {
    each(sums, &plan.lengths[2], |now, then, k| linear(now, then, &plan.wma, k))
}

/// Points of least-squares lines.
#[inline(always)]
pub(super) fn lsma(sums: &Sums, plan: &Plan) -> Nine {
    each(sums, &plan.lengths[4], |now, then, k| line(now, then, &plan.lsma, k))
}

#[inline(always)]
fn each(sums: &Sums, lengths: &[u32; N_LENGTHS], of: impl Fn(&Entry, &Entry, usize) -> f64) -> Nine {
    let now = sums.before(0, 0);
    let then: [Entry; N_LENGTHS] = std::array::from_fn(|k| sums.before(0, lengths[k]));
    let mut out = [0.0; N_LENGTHS];
    for k in 0..N_LENGTHS {
        out[k] = of(&now, &then[k], k);
    }
    for k in 0..N_LENGTHS {
        out[k] = if sums.run >= lengths[k] { out[k] } else { f64::NAN };
    }
    out
}

/// Hull's averages: the weighted average of √w values of twice the weighted average of w/2 bars less that of w bars. The few
/// inner values are computed anew at every bar, so that nothing but the sums has to be kept.
fn hull(sums: &Sums, plan: &Plan) -> Nine {
    std::array::from_fn(|k| {
        let (length, half, root) = (plan.lengths[1][k], plan.half_lengths[k], plan.root_lengths[k]);
        if half == 0 || sums.run < length + root - 1 {
            return f64::NAN;
        }
        let mut total = DoubleDouble::default();
        for ago in (0..root as usize).rev() {
            let now = sums.before(ago, 0);
            let short = linear(&now, &sums.before(ago, half), &plan.half, k);
            let long = linear(&now, &sums.before(ago, length), &plan.hma, k);
            total = total.add(two_prod(2.0 * short - long, f64::from(root) - ago as f64));
        }
        let divisor = f64::from(root) * (f64::from(root) + 1.0) / 2.0;
        total.divide(divisor, 1.0 / divisor)
    })
}
