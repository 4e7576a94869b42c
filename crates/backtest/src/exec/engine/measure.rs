//! What turns the sums of trials into metrics.

use tidemill_market::{Bars, Universe};

use super::pool_year_days;
use crate::metric::Metrics;
use crate::segment::{Role, Segment};
use crate::tally::Tally;

/// The segments of an engine, and how many daily returns a year has. It needs neither data nor the engine, so that results can be measured
/// beside the evaluation of others.
#[derive(Clone, Debug)]
pub struct Measure {
    pub(super) segments: Vec<Segment>,
    /// Days of a year of each symbol.
    of_symbol: Vec<f64>,
    /// The same of the pool of each role.
    of_pool: [f64; 2],
}

impl Measure {
    /// Of these segments, and the symbols of both roles.
    pub(super) fn new(universe: &Universe, segments: Vec<Segment>, members: &[Vec<usize>; 2]) -> Self {
        let of_pool = [0, 1]
            .map(|role: usize| pool_year_days(members[role].iter().map(|symbol| &universe.symbols[*symbol])));
        let of_one = |bars: &Bars| pool_year_days(std::iter::once(bars));
        Self { segments, of_symbol: universe.symbols.iter().map(of_one).collect(), of_pool }
    }

    /// The segments, in the order of the results.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Daily returns in a year of the pool of a role: by the days of all its symbols.
    pub fn year_days(&self, role: Role) -> f64 {
        self.of_pool[role as usize]
    }

    /// Daily returns in a year of a symbol, by its own days.
    pub fn symbol_year_days(&self, symbol: usize) -> f64 {
        self.of_symbol[symbol]
    }

    /// The metrics of the pool of a role.
    pub fn pool_metrics(&self, tally: &Tally, role: Role) -> Metrics {
        Metrics::new(tally, self.year_days(role))
    }

    /// The metrics of a segment, with the year of its symbol.
    pub fn segment_metrics(&self, segment: &Segment, tally: &Tally) -> Metrics {
        Metrics::new(tally, self.symbol_year_days(segment.symbol))
    }
}
