//! What holding the market would have made: the daily returns that a strategy is compared with, by one definition everywhere.
//!
//! Every symbol of a part is bought at its first open there and closed at its last close, with the strategy's costs, marked by the day
//! like any other position. Several symbols are pooled by the rule of the pool itself: equal parts, re-weighted daily. Or one named series
//! is held, over the days of the part.

use std::collections::BTreeMap;

use tidemill_market::Bars;

use super::{Detail, Engine};
use crate::exec::cost::Costs;
use crate::segment::{Role, Segment};
use crate::strategy::{OrderKind, Sizing};

/// What holding made on each day of a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmark {
    /// Days since 1970 with the benchmark's returns; in price units where equity adds.
    pub daily: Vec<(i64, f64)>,
    /// What it made in all.
    pub total_return: f64,
}

impl Engine<'_> {
    /// The market over all segments of a role: all their symbols, or one named series in their place. Its days are those of
    /// [`Engine::daily_returns`].
    pub fn benchmark(&self, role: Role, named: Option<&Bars>) -> Benchmark {
        let of_role: Vec<&Segment> =
            self.measure.segments.iter().filter(|segment| segment.role == role).collect();
        self.held(&of_role, named)
    }

    /// The market over some segments, whose symbols are held from the first of them to the last; nothing if there are none. Its days are
    /// those of [`Engine::pool_of`].
    pub fn benchmark_of(&self, which: &[usize], named: Option<&Bars>) -> Benchmark {
        self.held(&which.iter().map(|at| &self.measure.segments[*at]).collect::<Vec<_>>(), named)
    }

    /// How much of the market a strategy held, on average over all bars of some segments: long less short, by the share of equity
    /// committed.
    pub fn net_exposure(&self, details: &[Detail], which: &[usize]) -> f64 {
        let (mut held, mut n_bars) = (0.0, 0);
        for at in which {
            n_bars += self.measure.segments[*at].range.len();
            for trade in &details[*at].trades {
                let share = f64::from(trade.side) * trade.share;
                held += share * (trade.exit_idx - trade.entry_idx) as f64;
            }
        }
        held / n_bars as f64
    }

    /// The same by the day, in days since 1970: the mean over the bars of the day.
    pub fn daily_exposure(&self, details: &[Detail], which: &[usize]) -> Vec<(i64, f64)> {
        let mut days: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
        for at in which {
            let Segment { symbol, range, .. } = &self.measure.segments[*at];
            let bars = &*self.symbols[*symbol].bars;
            for bar in range.clone() {
                days.entry(bars.day(bar)).or_default().1 += 1;
            }
            for trade in &details[*at].trades {
                let share = f64::from(trade.side) * trade.share;
                for bar in trade.entry_idx..trade.exit_idx {
                    days.entry(bars.day(bar)).or_default().0 += share;
                }
            }
        }
        days.into_iter().map(|(day, (held, n_bars))| (day, held / n_bars as f64)).collect()
    }

    fn held(&self, segments: &[&Segment], named: Option<&Bars>) -> Benchmark {
        let costs = Costs::new(&self.strategy.execution).held();
        // A part may have several segments of a symbol; the symbol is held from the first to the last of them.
        let mut parts: Vec<Segment> = Vec::new();
        for segment in segments {
            match parts.iter_mut().find(|part| part.symbol == segment.symbol) {
                Some(part) => {
                    part.range.start = part.range.start.min(segment.range.start);
                    part.range.end = part.range.end.max(segment.range.end);
                }
                None => parts.push((*segment).clone()),
            }
        }
        let place = |symbol: usize, bar: usize| {
            let symbol = &self.symbols[symbol];
            symbol.calendar[symbol.day[bar] as usize]
        };
        let Some(first) = parts.iter().map(|part| place(part.symbol, part.range.start)).min() else {
            return Benchmark::default();
        };
        let last = parts.iter().map(|part| place(part.symbol, part.range.end - 1)).max().unwrap_or(first);
        let mut daily = vec![0.0; self.n_days];
        if let Some(bars) = named {
            let time = |part: &Segment, bar: usize| self.symbols[part.symbol].bars.ts_ms[bar];
            let from = parts.iter().map(|part| time(part, part.range.start)).min().unwrap_or(0);
            let to = parts.iter().map(|part| time(part, part.range.end - 1)).max().unwrap_or(0);
            let range =
                bars.ts_ms.partition_point(|ts| *ts < from)..bars.ts_ms.partition_point(|ts| *ts <= to);
            // A day that no symbol of the data has is counted with the next that one has.
            let day_of =
                |bar: usize| self.days.partition_point(|day| *day < bars.day(bar)).min(last as usize);
            costs.hold(bars, range, day_of, |day, change| daily[day] += change);
        } else {
            for part in &parts {
                let bars = &*self.symbols[part.symbol].bars;
                let day_of = |bar: usize| place(part.symbol, bar) as usize;
                costs.hold(bars, part.range.clone(), day_of, |day, change| daily[day] += change);
            }
            if parts.len() > 1 {
                let summed = std::mem::replace(&mut daily, vec![0.0; self.n_days]);
                let shape = self.shape_among(segments);
                self.marks(&summed, shape, &mut |day, change| daily[day as usize] = change);
            }
        }
        let daily: Vec<(i64, f64)> =
            (first..=last).map(|day| (self.days[day as usize], daily[day as usize])).collect();
        Benchmark { total_return: costs.total(daily.iter().map(|(_, change)| *change)), daily }
    }
}

impl Costs {
    /// The same costs on a position that is held whole: a share of equity is the strategy's choice, not the market's.
    fn held(self) -> Self {
        Self { sizing: if self.is_additive() { Sizing::Unit } else { Sizing::AllIn }, ..self }
    }

    /// Buys at the first open of a range, marks each day at what closing would leave, closes at the last close; reports the days' returns.
    fn hold(
        &self,
        bars: &Bars,
        range: std::ops::Range<usize>,
        day_of: impl Fn(usize) -> usize,
        mut daily: impl FnMut(usize, f64),
    ) {
        let Some(entry) = bars.open.get(range.start).filter(|_| !range.is_empty()) else { return };
        let mut mark = 1.0;
        for bar in range.clone() {
            let is_last_of_day = bar + 1 == range.end || day_of(bar + 1) != day_of(bar);
            if !is_last_of_day {
                continue;
            }
            let close = bars.close[bar];
            let pnl = self.pnl(1.0, *entry, close, OrderKind::Market);
            let value = self.equity(1.0, pnl, pnl / entry, 1.0);
            let change = self.change(mark, value);
            daily(day_of(bar), change);
            mark = value;
        }
    }

    /// The total return of daily returns.
    pub fn total(&self, daily: impl Iterator<Item = f64>) -> f64 {
        daily.fold(1.0, |equity, change| self.equity(equity, change, change, 1.0)) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::{DAY_MS, Universe, synth};

    use super::*;
    use crate::segment::Layout;
    use crate::strategy::{Overrides, Strategy};
    use crate::{Engine, EngineOptions};

    fn strategy(more: &str) -> Strategy {
        let source = format!(
            "[long]\nenter = 'close > 0'\nmax_hold = 1000000\n[execution]\nfee_bps = 10\nslippage_bps = 5\n{more}"
        );
        Strategy::parse("s.toml", &source, &Overrides::default()).unwrap()
    }

    fn engine<'a>(strategy: &'a Strategy, universe: &'a Universe, layout: &Layout) -> Engine<'a> {
        let segments = layout.segments(universe).unwrap();
        Engine::new(strategy, universe, segments, EngineOptions::default()).unwrap()
    }

    #[test]
    fn one_symbol_is_bought_at_the_first_open_and_closed_at_the_last_close() {
        let universe = synth::walk(3, 1, 24 * 40);
        let strategy = strategy("");
        let layout = Layout { split: Some(0.5), ..Layout::default() };
        let engine = engine(&strategy, &universe, &layout);
        let bars = &universe.symbols[0];
        for (at, role) in [(0, Role::Train), (1, Role::Test)] {
            let range = engine.segments()[at].range.clone();
            let (entry, exit) = (bars.open[range.start], bars.close[range.end - 1]);
            let wanted = (exit - entry - (entry + exit) * 0.0015) / entry;
            let market = engine.benchmark(role, None);
            assert!((market.total_return - wanted).abs() < 1e-12, "{role:?}");
            assert_eq!(market, engine.benchmark_of(&[at], None));
            let (day, first) = market.daily[0];
            let close = bars.close[(0..bars.len()).rfind(|bar| bars.day(*bar) == day).unwrap()];
            assert!((first - (close - entry - (entry + close) * 0.0015) / entry).abs() < 1e-12);
            let days: Vec<i64> = market.daily.iter().map(|(day, _)| *day).collect();
            let own: Vec<i64> = engine.daily_returns(&[], role).iter().map(|(day, _)| *day).collect();
            assert_eq!(days, own);
        }
    }

    /// Whoever is always long makes what the market makes, but for the first bar, which it waits for a signal.
    #[test]
    fn a_strategy_that_is_always_long_is_the_market() {
        let mut universe = synth::walk(5, 3, 24 * 60);
        for bars in &mut universe.symbols {
            // Nothing happens while the strategy waits for its fill.
            (bars.open[0], bars.high[0], bars.low[0], bars.close[0]) = (100.0, 100.0, 100.0, 100.0);
            bars.open[1] = 100.0;
        }
        let strategy = strategy("");
        let mut engine = engine(&strategy, &universe, &Layout::default());
        let details = engine.detail(&[]);
        let own = engine.daily_returns(&details, Role::Train);
        let market = engine.benchmark(Role::Train, None);
        assert_eq!(own.len(), 60);
        for ((day, own), (same, held)) in own.iter().zip(&market.daily) {
            assert_eq!(day, same);
            assert!((own - held).abs() < 1e-12, "{own} {held}");
        }
        let exposure = engine.net_exposure(&details, &[0, 1, 2]);
        assert!((exposure - (24.0 * 60.0 - 2.0) / (24.0 * 60.0)).abs() < 1e-12, "{exposure}");
    }

    #[test]
    fn symbols_are_equal_parts_and_one_that_is_not_listed_yet_is_cash() {
        let mut universe = synth::walk(7, 2, 24 * 20);
        let late = &mut universe.symbols[1];
        for column in [&mut late.open, &mut late.high, &mut late.low, &mut late.close, &mut late.volume] {
            column.drain(..24 * 10);
        }
        late.ts_ms.drain(..24 * 10);
        let strategy = strategy("");
        let engine = engine(&strategy, &universe, &Layout::default());
        let pool = engine.benchmark(Role::Train, None).daily;
        let [one, two] = [0, 1].map(|at| engine.benchmark_of(&[at], None).daily);
        assert_eq!((pool.len(), one.len(), two.len()), (20, 20, 10));
        for day in 0..20 {
            let second = if day < 10 { 0.0 } else { two[day - 10].1 };
            assert!((pool[day].1 - (one[day].1 + second) / 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn folds_are_held_through_and_a_share_of_equity_is_not_the_markets() {
        let universe = synth::walk(9, 2, 24 * 30);
        let (whole, part) = (strategy(""), strategy("sizing = { fraction = 0.25 }\n"));
        let folds = Layout { folds: Some(3), ..Layout::default() };
        let plain = engine(&whole, &universe, &Layout::default()).benchmark(Role::Train, None);
        let cut = engine(&whole, &universe, &folds).benchmark(Role::Train, None);
        assert!((plain.total_return - cut.total_return).abs() < 1e-12);
        assert_eq!(plain, engine(&part, &universe, &Layout::default()).benchmark(Role::Train, None));
        let mut quarter = engine(&part, &universe, &Layout::default());
        let details = quarter.detail(&[]);
        assert!((quarter.net_exposure(&details, &[0, 1]) - 0.25).abs() < 0.001);
    }

    #[test]
    fn a_named_series_is_held_over_the_days_of_the_part() {
        let universe = synth::walk(1, 1, 24 * 30);
        let mut named = synth::walk(2, 1, 24 * 30).symbols.remove(0);
        let strategy = strategy("");
        let layout = Layout { split: Some(0.5), ..Layout::default() };
        let engine = engine(&strategy, &universe, &layout);
        let range = engine.segments()[1].range.clone();
        let market = engine.benchmark(Role::Test, Some(&named));
        let (entry, exit) = (named.open[range.start], named.close[range.end - 1]);
        assert!((market.total_return - (exit - entry - (entry + exit) * 0.0015) / entry).abs() < 1e-12);
        assert_eq!(market.daily.len(), engine.benchmark(Role::Test, None).daily.len());
        // Days that only the named series has are not lost.
        let whole = engine.benchmark(Role::Train, Some(&named)).total_return;
        let gone: Vec<usize> =
            (0..universe.symbols[0].len()).filter(|bar| universe.symbols[0].day(*bar) % 7 != 3).collect();
        let bars = &universe.symbols[0];
        let pick = |column: &[f64]| gone.iter().map(|bar| column[*bar]).collect::<Vec<f64>>();
        let fewer = Universe {
            symbols: vec![Bars {
                ts_ms: gone.iter().map(|bar| bars.ts_ms[*bar]).collect(),
                open: pick(&bars.open),
                high: pick(&bars.high),
                low: pick(&bars.low),
                close: pick(&bars.close),
                volume: pick(&bars.volume),
                ..bars.clone()
            }],
        };
        let layout = Layout { cut_ms: Some(bars.ts_ms[engine.segments()[0].range.end]), ..Layout::default() };
        let sparse = self::engine(&strategy, &fewer, &layout).benchmark(Role::Train, Some(&named));
        assert!((sparse.total_return - whole).abs() < 1e-12, "{} {whole}", sparse.total_return);
        named.ts_ms.iter_mut().for_each(|ts| *ts += 10 * 365 * DAY_MS);
        assert_eq!(engine.benchmark(Role::Train, Some(&named)).total_return, 0.0, "it has no bar there");
    }

    #[test]
    fn units_add_in_price() {
        let universe = synth::walk(4, 1, 24 * 10);
        let strategy = strategy("sizing = \"unit\"\n");
        let engine = engine(&strategy, &universe, &Layout::default());
        let bars = &universe.symbols[0];
        let (entry, exit) = (bars.open[0], bars.close[bars.len() - 1]);
        let market = engine.benchmark(Role::Train, None);
        assert!((market.total_return - (exit - entry - (entry + exit) * 0.0015)).abs() < 1e-9);
    }
}
