//! The series under `[let]` and the distances of trailing stops, for charts: what a strategy saw.
//!
//! The engine has no column for a name; it has columns for nodes that trials share. So the names are made the levels of exits of a
//! strategy that never trades, and their formulas are read on every bar.

use tidemill_market::Universe;

use super::{Detail, Engine, EngineOptions};
use crate::compile::{DataNames, compile};
use crate::exec::frame::{Opening, Scratch};
use crate::exec::walk::SideRun;
use crate::expr::{Expr, Kind};
use crate::strategy::{Exit, ExitKind, Label, SideRules, Strategy, StrategyError};
use crate::trade::Trade;

/// Numbers by bar of a symbol under a name of `[let]`; NaN where not available.
#[derive(Clone, Debug, PartialEq)]
pub struct LetSeries {
    /// The name.
    pub name: String,
    /// One value per bar.
    pub values: Vec<f64>,
}

/// The numbers under `[let]` on some symbols, for one point of the strategy's space; conditions and constants are left out.
pub fn let_series(
    strategy: &Strategy,
    universe: &Universe,
    row: &[f64],
    symbols: &[usize],
    options: EngineOptions,
) -> Result<Vec<Vec<LetSeries>>, StrategyError> {
    let level = |name: &str| Exit {
        kind: ExitKind::Stop,
        value: Expr { kind: Kind::Name(name.to_owned()), span: 0..0 },
        when: None,
        label: Label::default(),
        gap_label: Label::default(),
    };
    let probe = |names: &[&str]| Strategy {
        long: Some(SideRules {
            // What a strategy that never enters would not need is asked for here.
            enter: Expr { kind: Kind::Bool(true), span: 0..0 },
            exits: names.iter().map(|name| level(name)).collect(),
            risk: None,
            size: None,
        }),
        short: None,
        ..strategy.clone()
    };
    let data = DataNames::of(universe);
    // What is no number cannot be a level.
    let names: Vec<&str> = strategy
        .lets
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| compile(&probe(&[name]), &data).is_ok())
        .collect();
    let probe = probe(&names);
    let mut engine = Engine::new(&probe, universe, Vec::new(), options)?;
    let params = engine.decode(row);
    let mut out = Vec::with_capacity(symbols.len());
    for symbol in symbols {
        let columns = engine.with_sides(&params, *symbol, |sides, n_bars| {
            let mut scratch = Scratch::default();
            let exits = sides.first().map_or(&[][..], |side| side.exits());
            let mut of = |at: usize| -> Vec<f64> {
                (0..n_bars).map(|bar| exits[at].number(bar, &Opening::NONE, &mut scratch)).collect()
            };
            (0..exits.len()).map(&mut of).collect::<Vec<_>>()
        });
        let series =
            names.iter().zip(columns).map(|(name, values)| LetSeries { name: (*name).into(), values });
        out.push(series.filter(|series| varies(&series.values)).collect());
    }
    Ok(out)
}

fn varies(values: &[f64]) -> bool {
    let mut known = values.iter().filter(|value| value.is_finite());
    let first = known.next();
    known.any(|value| Some(value) != first)
}

impl Engine<'_> {
    /// The distance at which the stop of each trade trailed the best price, NaN without one; of several the nearest.
    pub fn trail_distances(&mut self, row: &[f64], details: &[Detail]) -> Vec<Vec<f64>> {
        let params = self.decode(row);
        let mut out: Vec<Vec<f64>> =
            details.iter().map(|detail| vec![f64::NAN; detail.trades.len()]).collect();
        for symbol in 0..self.symbols.len() {
            let own: Vec<usize> = (0..self.measure.segments.len())
                .filter(|at| self.measure.segments[*at].symbol == symbol)
                .collect();
            if own.iter().all(|at| details[*at].trades.is_empty()) {
                continue;
            }
            self.with_sides(&params, symbol, |sides, _| {
                let mut scratch = Scratch::default();
                for at in own {
                    for (trade, out) in details[at].trades.iter().zip(&mut out[at]) {
                        *out = trail_distance(sides, trade, &mut scratch);
                    }
                }
            });
        }
        out
    }

    /// The sides of one trial on one symbol, and the number of its bars.
    fn with_sides<T>(
        &mut self,
        params: &[f64],
        symbol: usize,
        read: impl FnOnce(&[SideRun<'_>], usize) -> T,
    ) -> T {
        let scalars = vec![self.scalars(params, self.symbols[symbol].bars.timeframe_ms)];
        let prepared = self.prepare_one(symbol, &scalars);
        self.with_columns(symbol, 0, &scalars[0], &prepared, |frame| {
            read(&self.bind(0, &prepared, frame), frame.n_bars)
        })
    }
}

fn trail_distance(sides: &[SideRun<'_>], trade: &Trade, scratch: &mut Scratch) -> f64 {
    let opening = Opening { entry: trade.entry, stop: trade.stop, risk: trade.risk };
    let Some(side) = sides.iter().find(|side| side.is_long() == (trade.side > 0)) else { return f64::NAN };
    side.exits()
        .iter()
        .filter(|exit| exit.kind() == ExitKind::Trail)
        .map(|exit| exit.number(trade.signal_idx, &opening, scratch))
        .filter(|distance| *distance >= 0.0)
        .fold(f64::NAN, f64::min)
}

#[cfg(test)]
mod tests {
    use tidemill_market::synth;

    use super::*;
    use crate::segment::Layout;
    use crate::strategy::Overrides;

    const SOURCE: &str = "[params]\nn = 5\n[let]\naverage = 'sma(close, n)'\ngap = 'close - average'\nis_up = 'gap > 0'\ntwice = '2 * n'\n[long]\nenter = 'is_up'\ntrail = 'atr(n) + 0 * gap'\nmax_hold = 20\n";

    #[test]
    fn names_of_numbers_have_their_values_and_others_are_left_out() {
        let strategy = Strategy::parse("s.toml", SOURCE, &Overrides::default()).unwrap();
        let universe = synth::walk(3, 2, 300);
        let row = [5.0];
        let found = let_series(&strategy, &universe, &row, &[1], EngineOptions::default()).unwrap().remove(0);
        let names: Vec<&str> = found.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["average", "gap"]);
        let close = &universe.symbols[1].close;
        for bar in 0..300 {
            let wanted = if bar < 4 { f64::NAN } else { close[bar - 4..=bar].iter().sum::<f64>() / 5.0 };
            let [average, gap] = [&found[0], &found[1]].map(|series| series.values[bar]);
            assert_eq!(average.is_nan(), wanted.is_nan(), "{bar}");
            assert!(wanted.is_nan() || (average - wanted).abs() < 1e-9, "{bar}: {average} {wanted}");
            assert!(wanted.is_nan() || (gap - (close[bar] - wanted)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_trailed_trade_ends_where_its_distance_says() {
        let strategy = Strategy::parse("s.toml", SOURCE, &Overrides::default()).unwrap();
        let universe = synth::walk(3, 1, 600);
        let segments = Layout::default().segments(&universe).unwrap();
        let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        let details = engine.detail(&[5.0]);
        let distances = engine.trail_distances(&[5.0], &details).remove(0);
        let bars = &universe.symbols[0];
        let mut n_trailed = 0;
        for ((trade, label), distance) in details[0].trades.iter().zip(&details[0].labels).zip(distances) {
            assert!(distance > 0.0);
            if label != "TRAIL" {
                continue;
            }
            n_trailed += 1;
            let before =
                bars.high[trade.entry_idx..trade.exit_idx].iter().copied().fold(trade.entry, f64::max);
            let level = before - distance;
            assert!((trade.exit - level.min(bars.open[trade.exit_idx])).abs() < 1e-9);
        }
        assert!(n_trailed > 5, "{n_trailed}");
    }
}
