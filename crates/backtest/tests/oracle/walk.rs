//! The walk: every bar of a segment is visited, in order, and nothing is skipped. Follows `docs/semantics.md`, sections 2 and 3.
//! One file because the rules of a position stand in the order in which they apply.

use std::ops::Range;

use tidemill_backtest::Strategy;
use tidemill_backtest::strategy::{
    CostBps, EndOfData, Execution, ExitKind, FillAt, FirstCheck, GapFill, InvalidLevel, OrderKind, SideRules,
    Sizing,
};
use tidemill_backtest::trade::{Reason, Trade};
use tidemill_market::Bars;

use crate::coverage::Coverage;
use crate::eval::{Evaluator, Position};

/// An exit that exists for the trade.
struct Live {
    /// Its place among the side's exits.
    index: usize,
    kind: ExitKind,
    /// Level, distance, multiple of risk or bars; of no meaning for a signal.
    value: f64,
}

/// An open position.
struct Open {
    /// The share of equity that it commits; none where equity adds.
    share: Option<f64>,
    side: i8,
    signal_idx: usize,
    entry_idx: usize,
    entry: f64,
    stop: f64,
    target: f64,
    risk: f64,
    /// The price that leaves nothing of equity, NaN if there is none.
    ruin: f64,
    /// Best price while open, starting from the entry.
    best: f64,
    exits: Vec<Live>,
}

/// How a position is closed.
struct Closing {
    price: f64,
    reason: Reason,
    at_close: bool,
    ambiguous: bool,
}

/// A level as it stands on one bar.
struct ActiveLevel {
    index: usize,
    favourable: bool,
    price: f64,
}

/// An entry decided at the close of a bar.
#[derive(Clone, Copy)]
struct Order {
    side: i8,
    signal_idx: usize,
}

pub struct Walk<'a> {
    strategy: &'a Strategy,
    bars: &'a Bars,
    evaluator: &'a Evaluator<'a>,
    range: Range<usize>,
    equity: f64,
    pub trades: Vec<Trade>,
    /// Entries not taken because a level lay on the wrong side, all of them.
    pub skipped: u32,
    /// Those since the last trade.
    skipped_lately: u32,
}

impl<'a> Walk<'a> {
    pub fn new(
        strategy: &'a Strategy,
        bars: &'a Bars,
        evaluator: &'a Evaluator<'a>,
        range: Range<usize>,
    ) -> Self {
        Self {
            strategy,
            bars,
            evaluator,
            range,
            equity: 1.0,
            trades: Vec::new(),
            skipped: 0,
            skipped_lately: 0,
        }
    }

    pub fn run(&mut self, coverage: &mut Coverage) {
        let execution = &self.strategy.execution;
        let last = self.range.end - 1;
        let mut position: Option<Open> = None;
        let mut exit_order: Option<usize> = None;
        let mut entry_order: Option<Order> = None;
        // First bar whose signals count.
        let mut signals_from = self.range.start;
        for bar in self.range.clone() {
            // Orders of the bar before fill at the open, the exit first.
            if let Some(index) = exit_order.take() {
                let open = position.take().expect("only a position has an exit order");
                let (price, reason) = (self.bars.open[bar], Reason::Exit(index, false));
                self.close(open, bar, Closing { price, reason, at_close: false, ambiguous: false });
                signals_from = bar + execution.cooldown as usize;
                if entry_order.is_some() {
                    coverage.reversals += 1;
                }
            }
            if let Some(order) = entry_order.take()
                && self.alive()
            {
                position = self.enter(order, bar, self.bars.open[bar], coverage);
            }
            // Inside the bar, then at its close.
            if let Some(open) = &position
                && let Some(closing) = self.inside(open, bar).or_else(|| self.at_close(open, bar))
            {
                let open = position.take().expect("it is open");
                coverage.ambiguous += u64::from(closing.ambiguous);
                self.close(open, bar, closing);
                let pause = execution.cooldown as usize;
                signals_from = bar + if execution.fill == FillAt::Close { pause.max(1) } else { pause };
            }
            if let Some(open) = &mut position {
                // A position opened at a close is not here yet on its first bar: it was not open during it.
                open.best = if open.side > 0 {
                    open.best.max(self.bars.high[bar])
                } else {
                    open.best.min(self.bars.low[bar])
                };
                if bar == last {
                    let open = position.take().expect("it is open");
                    match execution.end_of_data {
                        EndOfData::Close => {
                            let (price, reason) = (self.bars.close[bar], Reason::End);
                            self.close(
                                open,
                                bar,
                                Closing { price, reason, at_close: true, ambiguous: false },
                            );
                        }
                        EndOfData::Discard => coverage.discards += 1,
                    }
                    return;
                }
            }
            // Decisions at the close; the last bar can no longer act on them.
            if bar == last {
                return;
            }
            if let Some(open) = &position {
                if execution.fill == FillAt::NextOpen
                    && let Some(index) = self.exit_signal(open, bar)
                {
                    exit_order = Some(index);
                    let (same, opposite) = (self.wants(open.side, bar), self.wants(-open.side, bar));
                    if execution.cooldown == 0 && opposite && !same {
                        entry_order = Some(Order { side: -open.side, signal_idx: bar });
                    }
                }
            } else if self.alive() {
                let (long, short) = (self.wants(1, bar), self.wants(-1, bar));
                if bar < signals_from {
                    coverage.paused += u64::from(long || short);
                } else if long != short {
                    let order = Order { side: if long { 1 } else { -1 }, signal_idx: bar };
                    match execution.fill {
                        FillAt::NextOpen => entry_order = Some(order),
                        FillAt::Close => {
                            position = self.enter(order, bar, self.bars.close[bar], coverage);
                        }
                    }
                } else {
                    coverage.both_sides += u64::from(long);
                }
            }
        }
    }

    fn rules(&self, side: i8) -> Option<&'a SideRules> {
        if side > 0 { self.strategy.long.as_ref() } else { self.strategy.short.as_ref() }
    }

    fn wants(&self, side: i8, bar: usize) -> bool {
        self.rules(side).is_some_and(|rules| self.evaluator.holds(&rules.enter, bar))
    }

    fn alive(&self) -> bool {
        self.strategy.execution.sizing == Sizing::Unit || self.equity > 0.0
    }

    /// Fixes the levels on the signal bar: stops, then risk, then the rest.
    fn enter(&mut self, order: Order, entry_idx: usize, entry: f64, coverage: &mut Coverage) -> Option<Open> {
        let rules = self.rules(order.side).expect("a side that wants to enter");
        let signal_idx = order.signal_idx;
        let exists = |when: Option<&_>| when.is_none_or(|when| self.evaluator.holds(when, signal_idx));
        let mut position = Position { entry, ..Position::NONE };
        let mut invalid = false;
        let is_stop = |kind: ExitKind| matches!(kind, ExitKind::Stop | ExitKind::StopSeries);
        for exit in rules.exits.iter().filter(|exit| is_stop(exit.kind)) {
            let level = self.evaluator.value(&exit.value, signal_idx, position_without_stop(position));
            if !exists(exit.when.as_ref()) || !level.is_finite() || level <= 0.0 {
                continue;
            }
            if position.stop.is_nan() {
                position.stop = level;
            }
            invalid |= if order.side > 0 { level >= entry } else { level <= entry };
        }
        if invalid && self.strategy.execution.invalid_stop == InvalidLevel::Skip {
            coverage.invalid_stops += 1;
            self.skip();
            return None;
        }
        position.risk = match &rules.risk {
            Some(risk) => self.evaluator.value(risk, signal_idx, position),
            None if order.side > 0 => entry - position.stop,
            None => position.stop - entry,
        };
        if !(position.risk.is_finite() && position.risk > 0.0) {
            position.risk = 0.01 * entry;
        }
        let share = match &rules.size {
            None => share(self.strategy.execution.sizing, entry, position.risk),
            Some(size) => {
                let size = self.evaluator.value(size, signal_idx, position);
                if size.is_nan() || size <= 0.0 {
                    coverage.no_size += 1;
                    self.skip();
                    return None;
                }
                Some(size.min(1.0))
            }
        };
        let mut open = Open {
            share,
            side: order.side,
            signal_idx,
            entry_idx,
            entry,
            stop: position.stop,
            target: f64::NAN,
            risk: position.risk,
            ruin: self.ruin(order.side, entry, share),
            best: entry,
            exits: Vec::new(),
        };
        let mut invalid = false;
        for (index, exit) in rules.exits.iter().enumerate() {
            if !exists(exit.when.as_ref()) {
                continue;
            }
            let value = match exit.kind {
                ExitKind::Signal | ExitKind::StopSeries => 0.0,
                ExitKind::Stop => {
                    self.evaluator.value(&exit.value, signal_idx, position_without_stop(position))
                }
                _ => self.evaluator.value(&exit.value, signal_idx, position),
            };
            let absent = !value.is_finite()
                || (matches!(exit.kind, ExitKind::Trail | ExitKind::Time) && value < 0.0)
                || (matches!(exit.kind, ExitKind::Stop | ExitKind::Target) && value <= 0.0);
            if absent {
                continue;
            }
            if exit.kind == ExitKind::Target {
                invalid |= if order.side > 0 { value <= entry } else { value >= entry };
                if open.target.is_nan() {
                    open.target = value;
                }
            }
            open.exits.push(Live { index, kind: exit.kind, value });
        }
        if invalid && self.strategy.execution.invalid_target == InvalidLevel::Skip {
            coverage.invalid_targets += 1;
            self.skip();
            return None;
        }
        Some(open)
    }

    fn skip(&mut self) {
        self.skipped += 1;
        self.skipped_lately += 1;
    }

    /// The price at which a position has used up all equity.
    fn ruin(&self, side: i8, entry: f64, share: Option<f64>) -> f64 {
        let execution = &self.strategy.execution;
        let Some(share) = share else { return f64::NAN };
        let cost_in = bps(execution, OrderKind::Market) / 10_000.0;
        let cost_out = bps(execution, OrderKind::Stop) / 10_000.0;
        let price = if side > 0 {
            entry * (1.0 + cost_in - 1.0 / share) / (1.0 - cost_out)
        } else {
            entry * (1.0 - cost_in + 1.0 / share) / (1.0 + cost_out)
        };
        if price.is_finite() && price > 0.0 { price } else { f64::NAN }
    }

    fn inspected(&self, open: &Open, bar: usize) -> bool {
        let execution = &self.strategy.execution;
        let from_entry = execution.fill == FillAt::NextOpen && execution.first_check == FirstCheck::EntryBar;
        bar > open.entry_idx || from_entry
    }

    /// What closes the position inside a bar: ruin where no adverse level is nearer, else the first level that applies, in the order written.
    fn inside(&self, open: &Open, bar: usize) -> Option<Closing> {
        let execution = &self.strategy.execution;
        let long = open.side > 0;
        let inspected = self.inspected(open, bar);
        let levels = if inspected { self.levels(open, bar) } else { Vec::new() };
        let (first, high, low) = (self.bars.open[bar], self.bars.high[bar], self.bars.low[bar]);
        // A long's stop and a short's target lie below, a long's target and a short's stop above.
        let gapped =
            |price: f64, favourable: bool| if long != favourable { first <= price } else { first >= price };
        let touched =
            |price: f64, favourable: bool| if long != favourable { low <= price } else { high >= price };
        let reached = |price: f64, favourable: bool| gapped(price, favourable) || touched(price, favourable);
        let adverse = levels.iter().any(|level| !level.favourable && reached(level.price, false));
        let target = levels.iter().any(|level| level.favourable && reached(level.price, true));
        let any_gap =
            levels.iter().any(|level| gapped(level.price, level.favourable)) || gapped(open.ruin, false);
        let ambiguous = inspected && (adverse || reached(open.ruin, false)) && target && !any_gap;
        let close = |price: f64, reason: Reason| Some(Closing { price, reason, at_close: false, ambiguous });
        let nearer = |level: &ActiveLevel| {
            !level.favourable && if long { level.price > open.ruin } else { level.price < open.ruin }
        };
        if !levels.iter().any(nearer) && reached(open.ruin, false) {
            return close(if gapped(open.ruin, false) { first } else { open.ruin }, Reason::Ruin);
        }
        for ActiveLevel { index, favourable, price } in levels {
            let fill = if favourable { execution.gap_fill_target } else { execution.gap_fill_stop };
            if gapped(price, favourable) {
                return close(if fill == GapFill::Open { first } else { price }, Reason::Exit(index, true));
            }
            if touched(price, favourable) {
                return close(price, Reason::Exit(index, false));
            }
        }
        None
    }

    /// The levels of a position as they stand before a bar.
    fn levels(&self, open: &Open, bar: usize) -> Vec<ActiveLevel> {
        let long = open.side > 0;
        let mut levels = Vec::new();
        for exit in &open.exits {
            let price = match exit.kind {
                ExitKind::Stop | ExitKind::Target => exit.value,
                ExitKind::StopSeries => {
                    let rules = self.rules(open.side).expect("its side");
                    let level = self.evaluator.value(&rules.exits[exit.index].value, bar - 1, Position::NONE);
                    if !(level.is_finite() && level > 0.0) {
                        continue;
                    }
                    level
                }
                ExitKind::Trail if long => open.best - exit.value,
                ExitKind::Trail => open.best + exit.value,
                ExitKind::Breakeven => {
                    let reached = if long {
                        open.best >= open.entry + exit.value * open.risk
                    } else {
                        open.best <= open.entry - exit.value * open.risk
                    };
                    if !reached {
                        continue;
                    }
                    open.entry
                }
                ExitKind::Signal | ExitKind::Time => continue,
            };
            levels.push(ActiveLevel { index: exit.index, favourable: exit.kind == ExitKind::Target, price });
        }
        levels
    }

    /// Time exits, and signals that fill at the close, in the order written.
    fn at_close(&self, open: &Open, bar: usize) -> Option<Closing> {
        if !self.inspected(open, bar) {
            return None;
        }
        let signal_here = self.strategy.execution.fill == FillAt::Close;
        let held = (bar - open.entry_idx) as f64;
        let applies = |exit: &&Live| match exit.kind {
            ExitKind::Time => held >= exit.value,
            ExitKind::Signal => signal_here && self.signals(open, exit.index, bar),
            _ => false,
        };
        let exit = open.exits.iter().find(applies)?;
        let (price, reason) = (self.bars.close[bar], Reason::Exit(exit.index, false));
        Some(Closing { price, reason, at_close: true, ambiguous: false })
    }

    /// The first exit condition that is true on the bar.
    fn exit_signal(&self, open: &Open, bar: usize) -> Option<usize> {
        let mut signals = open.exits.iter().filter(|exit| exit.kind == ExitKind::Signal);
        signals.find(|exit| self.signals(open, exit.index, bar)).map(|exit| exit.index)
    }

    fn signals(&self, open: &Open, index: usize, bar: usize) -> bool {
        let rules = self.rules(open.side).expect("the side of the position");
        bar > open.signal_idx && self.evaluator.holds(&rules.exits[index].value, bar)
    }

    fn close(&mut self, open: Open, exit_idx: usize, closing: Closing) {
        let execution = &self.strategy.execution;
        let Closing { price: exit, reason, at_close, ambiguous } = closing;
        let order = match reason {
            Reason::End => OrderKind::Market,
            Reason::Ruin => OrderKind::Stop,
            Reason::Exit(index, _) => match self.rules(open.side).expect("its side").exits[index].kind {
                ExitKind::Stop | ExitKind::StopSeries | ExitKind::Trail | ExitKind::Breakeven => {
                    OrderKind::Stop
                }
                ExitKind::Target => OrderKind::Limit,
                ExitKind::Signal | ExitKind::Time => OrderKind::Market,
            },
        };
        let (pnl, ret) = result(execution, order, open.side, open.entry, exit);
        let trade = Trade {
            side: open.side,
            signal_idx: open.signal_idx,
            entry_idx: open.entry_idx,
            exit_idx,
            entry: open.entry,
            exit,
            stop: open.stop,
            target: open.target,
            risk: open.risk,
            share: open.share.unwrap_or(1.0),
            pnl,
            ret,
            r: pnl / open.risk,
            reason,
            order,
            at_close,
            ambiguous,
            skipped: std::mem::take(&mut self.skipped_lately),
        };
        self.equity = equity_after_trade(execution.sizing, self.equity, &trade);
        self.trades.push(trade);
    }
}

/// A stop level knows the entry only.
fn position_without_stop(position: Position) -> Position {
    Position { entry: position.entry, ..Position::NONE }
}

/// Profit per unit after costs, and as a share of the entry price.
pub fn result(execution: &Execution, order: OrderKind, side: i8, entry: f64, exit: f64) -> (f64, f64) {
    let (bps_in, bps_out) = (bps(execution, OrderKind::Market), bps(execution, order));
    let cost = match bps_in == bps_out {
        true => (entry + exit) * bps_in / 10_000.0,
        false => (entry * bps_in + exit * bps_out) / 10_000.0,
    };
    let pnl = f64::from(side) * (exit - entry) - cost;
    (pnl, pnl / entry)
}

/// What an order of a kind costs.
fn bps(execution: &Execution, order: OrderKind) -> f64 {
    let of = |costs: CostBps| match order {
        OrderKind::Market => costs.market,
        OrderKind::Stop => costs.stop,
        OrderKind::Limit => costs.limit,
    };
    of(execution.fee_bps) + of(execution.slippage_bps)
}

/// The share of equity that a trade commits; none where equity adds.
fn share(sizing: Sizing, entry: f64, risk: f64) -> Option<f64> {
    match sizing {
        Sizing::Unit => None,
        Sizing::AllIn => Some(1.0),
        Sizing::Fraction(share) => Some(share),
        Sizing::Risk(share) => Some((share * entry / risk).min(1.0)),
    }
}

/// Equity after a trade; ruin leaves nothing, whatever rounding says.
pub fn equity_after_trade(sizing: Sizing, equity: f64, trade: &Trade) -> f64 {
    if trade.reason == Reason::Ruin {
        return 0.0;
    }
    equity_after(sizing, equity, trade.share, trade.pnl, trade.ret)
}

/// Equity after a result.
pub fn equity_after(sizing: Sizing, equity: f64, share: f64, pnl: f64, ret: f64) -> f64 {
    if sizing == Sizing::Unit {
        return equity + pnl;
    }
    let after = equity * (1.0 + share * ret);
    if after > 0.0 { after } else { 0.0 }
}
