//! A column that is computed where it is read, because too few trials would share it.
//!
//! A function over windows of prefix sums needs none of its other values, so that a block of bars, or a single one, costs what it holds.

use tidemill_market::indicator::{Call, Limit, Part, Series, ZscoreTest};

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
    pub fn test(&'a self, limit: Limit) -> Option<ZscoreTest<'a>> {
        (self.part.test?)(&self.call(), limit)
    }
}
