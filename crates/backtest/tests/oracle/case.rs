//! One random case: a strategy, data, segments and parameter sets, and the comparison.

use std::fmt::Write;

use rayon::ThreadPoolBuilder;
use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::strategy::{ExitKind, ParamSpec};
use tidemill_backtest::tally::Tally;
use tidemill_backtest::trade::{Reason, Trade};
use tidemill_backtest::{Engine, EngineOptions, Outcome, Overrides, Strategy};
use tidemill_market::Universe;
use tidemill_search::{Choice, Domain, Points};

use crate::book::{self, Booked};
use crate::coverage::Coverage;
use crate::data;
use crate::eval::Evaluator;
use crate::tape::{Stream, Tape};
use crate::text;
use crate::walk::Walk;

pub struct Case {
    source: String,
    strategy: Strategy,
    universe: Universe,
    segments: Vec<Segment>,
    /// Encoded parameter sets, NaN where inactive.
    rows: Vec<Vec<f64>>,
    cache_bytes: usize,
    /// Small blocks end within the few bars that there are.
    block_words: usize,
    threads: usize,
}

/// What the oracle says about one trial.
struct Expected {
    segments: Vec<Booked>,
    trades: Vec<Vec<Trade>>,
    labels: Vec<Vec<String>>,
    train: Tally,
    test: Option<Tally>,
}

impl Case {
    pub fn new(numbers: &[u32]) -> Self {
        let mut tape = Tape::new(numbers);
        let universe = data::universe(&mut tape);
        let segments = data::segments(&mut tape, &universe);
        let most_trials = *tape.pick(&[1, 4, 12, 40, 20, 100]);
        let n_trials = 1 + tape.below(most_trials);
        let cache_bytes = *tape.pick(&[1 << 28, 10_000, 1_000, 100_000, 0]);
        let threads = *tape.pick(&[1, 2, 3]);
        let mut stream = tape.stream();
        let source = text::strategy(&mut tape, &universe);
        let strategy = Strategy::parse("random.toml", &source, &Overrides::default())
            .unwrap_or_else(|error| panic!("{error}\n{source}"));
        let block_words = [1, 16, 2, 3][n_trials % 4];
        let rows = Vec::new();
        let mut case = Self { source, strategy, universe, segments, rows, cache_bytes, block_words, threads };
        case.rows = case.points(n_trials, &mut stream);
        case
    }

    fn engine(&self, cache_bytes: usize) -> Engine<'_> {
        let options = EngineOptions { cache_bytes, block_words: self.block_words };
        Engine::new(&self.strategy, &self.universe, self.segments.clone(), options)
            .unwrap_or_else(|error| panic!("{error}\n{}", self.source))
    }

    /// Parameter sets with repeated values, some of them equal.
    fn points(&self, n_trials: usize, stream: &mut Stream) -> Vec<Vec<f64>> {
        let levels = 1 + stream.below(6);
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for _ in 0..n_trials {
            if !rows.is_empty() && stream.chance(15.0) {
                let copy = rows[stream.below(rows.len())].clone();
                rows.push(copy);
                continue;
            }
            let mut row: Vec<f64> = Vec::new();
            for param in &self.strategy.params {
                let unit = stream.below(levels) as f64 / levels as f64 + 0.5 / levels as f64;
                row.push(param.fixed.unwrap_or_else(|| param.domain.from_unit(unit)));
            }
            self.deactivate(&mut row);
            rows.push(row);
        }
        rows
    }

    /// Parameters whose condition does not hold become NaN. Conditions look backwards only.
    fn deactivate(&self, row: &mut [f64]) {
        for at in 0..row.len() {
            let values = self.decode(row);
            let evaluator = Evaluator::new(&self.strategy, &self.universe, 0, &values);
            if let Some(when) = &self.strategy.params[at].when
                && !evaluator.holds(when, 0)
            {
                row[at] = f64::NAN;
            }
        }
    }

    /// What expressions see: the default where inactive, the option itself for a choice of numbers.
    fn decode(&self, row: &[f64]) -> Vec<f64> {
        let value = |(param, code): (&ParamSpec, &f64)| {
            let code = if code.is_nan() { param.default } else { *code };
            match &param.domain {
                Domain::Choice { options } => match options[code as usize] {
                    Choice::Number(number) => number,
                    Choice::Text(_) => code,
                },
                _ => code,
            }
        };
        self.strategy.params.iter().zip(row).map(value).collect()
    }

    fn expected(&self, row: &[f64], coverage: &mut Coverage) -> Expected {
        let params = self.decode(row);
        let mut out = Expected {
            segments: Vec::new(),
            trades: Vec::new(),
            labels: Vec::new(),
            train: Tally::default(),
            test: None,
        };
        for segment in &self.segments {
            let bars = &self.universe.symbols[segment.symbol];
            let evaluator = Evaluator::new(&self.strategy, &self.universe, segment.symbol, &params);
            let mut walk = Walk::new(&self.strategy, bars, &evaluator, segment.range.clone());
            walk.run(coverage);
            let labels = walk.trades.iter().map(|trade| self.label(&evaluator, trade, coverage)).collect();
            let booked =
                book::book(&self.strategy.execution, bars, segment.range.clone(), &walk.trades, walk.skipped);
            coverage.ruined += u64::from(booked.tally.equity == 0.0);
            out.segments.push(booked);
            out.trades.push(walk.trades);
            out.labels.push(labels);
        }
        let pool = |role: Role| {
            book::pool(self.strategy.execution.sizing, &self.universe, &self.segments, &out.segments, role)
        };
        (out.train, out.test) = (pool(Role::Train).unwrap_or_default(), pool(Role::Test));
        coverage.trials += 1;
        coverage.traded += u64::from(out.trades.iter().any(|trades| !trades.is_empty()));
        coverage.pooled += u64::from(self.segments.iter().filter(|s| s.role == Role::Train).count() > 1);
        out
    }

    fn label(&self, evaluator: &Evaluator, trade: &Trade, coverage: &mut Coverage) -> String {
        let Reason::Exit(index, gap) = trade.reason else {
            coverage.ending(format!("{:?}", trade.reason));
            return if trade.reason == Reason::Ruin { "RUIN".into() } else { "END".into() };
        };
        let rules = if trade.side > 0 { &self.strategy.long } else { &self.strategy.short };
        let exit = &rules.as_ref().expect("the side that traded").exits[index];
        coverage.ending(format!("{:?}{}", exit.kind, if gap { " gap" } else { "" }));
        evaluator.label(if gap && exit.kind != ExitKind::Signal { &exit.gap_label } else { &exit.label })
    }

    /// Compares everything; the difference, if there is one, with what led to it.
    pub fn check(&self, coverage: &mut Coverage) -> Result<(), String> {
        self.compare(coverage).map_err(|difference| {
            format!(
                "{difference}\n{}\nsegments {:?}\ntrials {}, cache {} bytes, {} threads\nbars: {}",
                self.source,
                self.segments,
                self.rows.len(),
                self.cache_bytes,
                self.threads,
                self.show_bars()
            )
        })
    }

    fn compare(&self, coverage: &mut Coverage) -> Result<(), String> {
        coverage.cases += 1;
        coverage.strategy(&self.source);
        let rows = &self.rows;
        let expected: Vec<Expected> = rows.iter().map(|row| self.expected(row, coverage)).collect();
        let mut engine = self.engine(self.cache_bytes);
        let by_engine = {
            let mut points = Points::new(self.strategy.params.len());
            rows.iter().for_each(|row| points.push(row));
            engine.space().deactivate(&mut points);
            points
        };
        for (at, row) in rows.iter().enumerate() {
            for (param, value) in row.iter().enumerate() {
                let other = by_engine.value(at, param);
                if value.to_bits() != other.to_bits() && !(value.is_nan() && other.is_nan()) {
                    return Err(format!("parameter {param} of {row:?} is {other} to the space"));
                }
            }
        }
        let outcomes = self.run(&mut engine, rows, 1);
        for (at, (outcome, expected)) in outcomes.iter().zip(&expected).enumerate() {
            compare_outcome(outcome, expected)
                .map_err(|what| format!("trial {at} {:?}: {what}", self.decode(&rows[at])))?;
        }
        // Other batches, another order, another number of threads, another budget: the same numbers.
        let cut = rows.len() / 3;
        let mut turned: Vec<Vec<f64>> = rows.iter().rev().cloned().collect();
        let first: Vec<Vec<f64>> = turned.drain(..cut).collect();
        let mut other = self.engine(if self.cache_bytes > 50_000 { 5_000 } else { 1 << 28 });
        let mut again = self.run(&mut other, &first, self.threads);
        again.extend(self.run(&mut other, &turned, self.threads));
        again.reverse();
        for (at, (a, b)) in outcomes.iter().zip(&again).enumerate() {
            let pairs = a.segments().iter().zip(b.segments()).chain([(&a.train, &b.train)]);
            for (a, b) in pairs {
                if let Some(field) = tally_difference(a, b) {
                    return Err(format!(
                        "trial {at} depends on its batch, the budget or the threads: {field}"
                    ));
                }
            }
        }
        for at in [0, rows.len() / 2, rows.len() - 1] {
            self.compare_detail(&mut engine, &rows[at], &expected[at])
                .map_err(|what| format!("trial {at} {:?}: {what}", self.decode(&rows[at])))?;
        }
        Ok(())
    }

    fn run(&self, engine: &mut Engine, rows: &[Vec<f64>], threads: usize) -> Vec<Outcome> {
        let mut points = Points::new(self.strategy.params.len());
        rows.iter().for_each(|row| points.push(row));
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| engine.evaluate(&points))
    }

    fn compare_detail(&self, engine: &mut Engine, row: &[f64], expected: &Expected) -> Result<(), String> {
        let params = self.decode(row);
        for (at, detail) in engine.detail(row).iter().enumerate() {
            if let Some(field) = tally_difference(&detail.tally, &expected.segments[at].tally) {
                return Err(format!("detail of segment {at}: {field}"));
            }
            compare_trades(&detail.trades, &expected.trades[at])
                .map_err(|what| format!("segment {at}: {what}"))?;
            if detail.labels != expected.labels[at] {
                return Err(format!(
                    "segment {at}: labels {:?} not {:?}",
                    detail.labels, expected.labels[at]
                ));
            }
            let ours: Vec<u64> = detail.daily.iter().map(|(_, change)| bits(*change)).collect();
            let theirs: Vec<u64> = expected.segments[at]
                .daily
                .values()
                .filter(|change| **change != 0.0)
                .map(|change| bits(*change))
                .collect();
            if ours != theirs {
                return Err(format!("segment {at}: daily returns {:?}", detail.daily));
            }
        }
        for (symbol, bars) in self.universe.symbols.iter().enumerate() {
            let evaluator = Evaluator::new(&self.strategy, &self.universe, symbol, &params);
            for (side, rules) in [&self.strategy.long, &self.strategy.short].into_iter().enumerate() {
                let ours = engine.entry_signals(row, symbol, side);
                let theirs: Vec<usize> = (0..bars.len())
                    .filter(|bar| rules.as_ref().is_some_and(|rules| evaluator.holds(&rules.enter, *bar)))
                    .collect();
                if ours != theirs {
                    return Err(format!(
                        "signals of side {side} on symbol {symbol}: {ours:?} not {theirs:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn show_bars(&self) -> String {
        let mut out = String::new();
        for bars in &self.universe.symbols {
            let _ = writeln!(out, "{}, {} bars of {} ms", bars.symbol, bars.len(), bars.timeframe_ms);
            for bar in 0..bars.len().min(30) {
                let _ = writeln!(
                    out,
                    "{bar:3} {} o {} h {} l {} c {} v {} x {} y {}",
                    bars.ts_ms[bar],
                    bars.open[bar],
                    bars.high[bar],
                    bars.low[bar],
                    bars.close[bar],
                    bars.volume[bar],
                    bars.extra[0].1[bar],
                    bars.extra[1].1[bar]
                );
            }
        }
        out
    }
}

/// The bits, with one NaN for all.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

fn compare_outcome(outcome: &Outcome, expected: &Expected) -> Result<(), String> {
    for (at, (ours, theirs)) in outcome.segments().iter().zip(&expected.segments).enumerate() {
        if let Some(field) = tally_difference(ours, &theirs.tally) {
            return Err(format!("segment {at}: {field}; oracle's trades {:#?}", expected.trades[at]));
        }
    }
    if let Some(field) = tally_difference(&outcome.train, &expected.train) {
        return Err(format!("pool: {field}"));
    }
    match (&outcome.test, &expected.test) {
        (None, None) => Ok(()),
        (Some(ours), Some(theirs)) => match tally_difference(ours, theirs) {
            Some(field) => Err(format!("pool of the test segments: {field}")),
            None => Ok(()),
        },
        _ => Err("only one of them has a pool of test segments".into()),
    }
}

/// The first field that differs.
fn tally_difference(ours: &Tally, theirs: &Tally) -> Option<String> {
    let words = ours.bits().into_iter().zip(theirs.bits());
    if words.clone().all(|(a, b)| a == b) {
        return None;
    }
    let pairs = ours.fields().into_iter().zip(theirs.fields());
    let mut differing = pairs.filter(|((_, a), (_, b))| bits(*a) != bits(*b));
    let (name, a, b) = differing.next().map_or(("?", 0.0, 0.0), |((name, a), (_, b))| (name, a, b));
    Some(format!("{name} is {a:e}, the oracle has {b:e}"))
}

fn compare_trades(ours: &[Trade], theirs: &[Trade]) -> Result<(), String> {
    let same = |a: &Trade, b: &Trade| {
        let whole = |t: &Trade| {
            (t.side, t.signal_idx, t.entry_idx, t.exit_idx, t.reason, t.at_close, t.ambiguous, t.skipped)
        };
        let float = |t: &Trade| [t.entry, t.exit, t.stop, t.target, t.risk, t.pnl, t.ret, t.r].map(bits);
        whole(a) == whole(b) && float(a) == float(b)
    };
    for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
        if !same(a, b) {
            return Err(format!("trade {at} is {a:?}, the oracle has {b:?}"));
        }
    }
    if ours.len() != theirs.len() {
        return Err(format!("{} trades, the oracle has {}", ours.len(), theirs.len()));
    }
    Ok(())
}
