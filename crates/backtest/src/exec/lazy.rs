//! A column that is computed where it is read, because too few trials would share it.
//!
//! A function over windows of prefix sums needs none of its other values, so that a block of bars, or a single one, costs what it holds.

use tidemill_market::indicator::{Call, Limit, Part, Series, Test};

use crate::point;

/// One call of a function over some bars.
pub struct Lazy<'a> {
    part: Part,
    series: Vec<Series<'a>>,
    arguments: Vec<f64>,
}

impl<'a> Lazy<'a> {
    /// A call over whole inputs.
    pub fn new(part: Part, series: Vec<Series<'a>>, arguments: Vec<f64>) -> Self {
        Self { part, series, arguments }
    }

    fn call(&self) -> Call<'_> {
        Call { series: &self.series, arguments: &self.arguments }
    }

    /// The bars from `ago` bars before `first` on; NaN before the first bar and past the last.
    pub fn fill(&self, first: usize, ago: Option<usize>, out: &mut [f64]) {
        let Some(ago) = ago else { return out.fill(point::NA) };
        let early = ago.saturating_sub(first).min(out.len());
        let (before, out) = out.split_at_mut(early);
        before.fill(point::NA);
        if !out.is_empty() {
            (self.part.bars)(&self.call(), first + early - ago, out);
        }
    }

    /// One bar.
    pub fn at(&self, bar: usize) -> f64 {
        (self.part.bar)(&self.call(), bar)
    }

    /// A quick test of a threshold, if the function has one.
    pub fn test(&'a self, limit: Limit) -> Option<QuickTest<'a>> {
        Some(QuickTest { lazy: self, test: self.part.test?, limit })
    }
}

/// A test that finds out at a fraction of the cost what a condition is on most bars.
pub struct QuickTest<'a> {
    lazy: &'a Lazy<'a>,
    test: Test,
    limit: Limit,
}

impl QuickTest<'_> {
    /// Takes from the bars from `first` on that are `left`, 64 to a word, some where the condition is not true, at next to no cost.
    pub fn screen(&self, first: usize, left: &mut [u64]) {
        (self.test.screen)(&self.lazy.call(), self.limit, first, left);
    }

    /// For the bars from `first` on that are `left`, 64 to a word: where the condition may be true.
    pub fn may(&self, first: usize, left: &[u64], out: &mut [u64]) {
        (self.test.may)(&self.lazy.call(), self.limit, first, left, out);
    }

    /// Likewise where it is true, and where it has to be asked.
    pub fn decide(&self, first: usize, left: &[u64], out: [&mut [u64]; 2]) {
        (self.test.decide)(&self.lazy.call(), self.limit, first, left, out);
    }
}
