//! The bars that series live on besides those that are walked: longer ones, those of other symbols, and how bars find each other.

use std::borrow::Cow;
use std::sync::OnceLock;

use tidemill_market::align::{self, CrossSections};
use tidemill_market::resample::resample;

use super::symbol::Symbol;
use crate::graph::{Age, Grid};
use crate::plan::{Plan, Route};

/// All grids of a plan over some symbols.
#[derive(Default)]
pub struct Grids<'a> {
    /// Longer bars of all symbols, by their length in milliseconds.
    longer: Vec<(i64, Vec<Symbol<'a>>)>,
    /// By route of the plan, then by the symbol that reads: the bar that each of its bars reads.
    routes: Vec<Vec<Vec<u32>>>,
    /// The first bar of each symbol where all are counted through, and the end.
    pub start: Vec<usize>,
    /// Only where a strategy compares symbols.
    sections: OnceLock<CrossSections>,
}

impl<'a> Grids<'a> {
    /// Makes the bars and routes that a plan asks for.
    pub fn new(plan: &Plan, symbols: &[Symbol<'a>], extra_columns: &[String]) -> Self {
        let mut out = Self::default();
        let mut end = 0;
        out.start.push(0);
        for symbol in symbols {
            end += symbol.bars.len();
            out.start.push(end);
        }
        for bucket_ms in plan.grids.iter().filter_map(|grid| grid.bucket_ms) {
            if out.longer.iter().all(|(known, _)| *known != bucket_ms) {
                // Lengths that no bars can be made of were refused when the strategy was compiled; of other symbols nothing is asked.
                let longer = |symbol: &Symbol<'a>| {
                    let made = resample(&symbol.bars, bucket_ms).map(|made| made.bars);
                    Symbol::new(
                        Cow::Owned(made.unwrap_or_default()),
                        extra_columns,
                        &[],
                        plan.graph.sources(),
                    )
                };
                out.longer.push((bucket_ms, symbols.iter().map(longer).collect()));
            }
        }
        out.routes = plan.routes.iter().map(|route| out.route_maps(route, symbols)).collect();
        out
    }

    /// The series that a symbol reads on a grid.
    pub fn series<'b>(&'b self, grid: Grid, symbols: &'b [Symbol<'a>], symbol: usize) -> &'b Symbol<'a> {
        let symbol = grid.symbol.map_or(symbol, |symbol| symbol as usize);
        match grid.bucket_ms {
            None => &symbols[symbol],
            Some(bucket_ms) => self
                .longer
                .iter()
                .find(|(known, _)| *known == bucket_ms)
                .map_or(&symbols[symbol], |(_, longer)| &longer[symbol]),
        }
    }

    /// All series of a grid: that of one symbol, or of each.
    pub fn all_series<'b>(&'b self, grid: Grid, symbols: &'b [Symbol<'a>]) -> Vec<&'b Symbol<'a>> {
        let readers = if grid.symbol.is_some() { 0..1 } else { 0..symbols.len() };
        readers.map(|symbol| self.series(grid, symbols, symbol)).collect()
    }

    /// The bar that each bar of a symbol reads by a route.
    pub fn route(&self, route: usize, symbol: usize) -> &[u32] {
        &self.routes[route][symbol]
    }

    /// The bars of all symbols by the time at which they close.
    pub fn sections(&self, symbols: &[Symbol<'a>]) -> &CrossSections {
        self.sections.get_or_init(|| CrossSections::new(symbols.iter().map(|symbol| &*symbol.bars)))
    }

    fn route_maps(&self, route: &Route, symbols: &[Symbol<'a>]) -> Vec<Vec<u32>> {
        let map = |symbol: usize| {
            // A grid of one symbol is read by all in the same way.
            if route.to.symbol.is_some_and(|own| own as usize != symbol) {
                return Vec::new();
            }
            let (from, to) =
                (self.series(route.from, symbols, symbol), self.series(route.to, symbols, symbol));
            let base = self.series(Grid { bucket_ms: None, ..route.from }, symbols, symbol);
            let known = match route.from.bucket_ms {
                None => align::close_times(&from.bars),
                Some(_) => align::finish_times(&from.bars, &base.bars),
            };
            let most_ms = match route.age {
                Age::Any => None,
                Age::Usual => Some(align::usual_age_ms(from.bars.timeframe_ms, to.bars.timeframe_ms)),
                Age::Most(most_ms) => Some(most_ms),
            };
            align::last_known(&known, &align::close_times(&to.bars), most_ms)
        };
        (0..symbols.len()).map(map).collect()
    }
}
