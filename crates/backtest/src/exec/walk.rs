//! The walk of one trial through one segment: from signal to fill to exit to signal, jumping over what cannot matter.
//!
//! The rules are those of `docs/semantics.md`; the oracle in the tests follows them bar by bar.

use std::ops::Range;

use super::frame::{Frame, Opening, Scratch};
use super::mask::Signal;
use super::scan::first_touch;
use super::symbol::Symbol;
use crate::plan::{ExitValue, SidePlan, Tape};
use crate::strategy::{EndOfData, Execution, ExitKind, FillAt, FirstCheck, GapFill, InvalidStop, Sizing};
use crate::tally::{Book, Tally};
use crate::trade::{Reason, Trade};

/// Hears what a walk does. All methods may do nothing.
pub trait Observer {
    /// A trade was closed.
    fn trade(&mut self, _trade: &Trade) {}
    /// A day had this return; days without return are not reported.
    fn daily(&mut self, _day: u32, _change: f64) {}
}

/// Hears nothing.
pub struct Silent;

impl Observer for Silent {}

/// One side of one trial.
pub struct SideRun<'a> {
    plan: &'a SidePlan,
    /// +1 or −1.
    sign: f64,
    enter: Signal<'a>,
    /// A signal per exit of kind signal, in the order of the exits.
    signals: Vec<Signal<'a>>,
}

impl<'a> SideRun<'a> {
    /// Joins a side's plan with its signals.
    pub fn new(plan: &'a SidePlan, long: bool, enter: Signal<'a>, signals: Vec<Signal<'a>>) -> Self {
        Self { plan, sign: if long { 1.0 } else { -1.0 }, enter, signals }
    }
}

/// An exit that exists for the trade at hand.
#[derive(Clone, Copy)]
struct Live {
    exit: usize,
    kind: ExitKind,
    /// Level, trailing distance, or the price that arms the break-even.
    value: f64,
}

/// One trial over one symbol, ready to walk.
pub struct Walker<'a> {
    symbol: &'a Symbol<'a>,
    frame: Frame<'a>,
    execution: &'a Execution,
    sides: [Option<SideRun<'a>>; 2],
    scratch: &'a mut Scratch,
    live: Vec<Live>,
    /// Cost of one unit of turnover, times 10,000.
    cost_bps: f64,
}

struct Exited {
    bar: usize,
    price: f64,
    reason: Reason,
    /// The bar of the exit signal, where a reversal may enter.
    signal: Option<usize>,
}

impl<'a> Walker<'a> {
    /// Prepares a walk.
    pub fn new(
        symbol: &'a Symbol<'a>,
        frame: Frame<'a>,
        execution: &'a Execution,
        sides: [Option<SideRun<'a>>; 2],
        scratch: &'a mut Scratch,
    ) -> Self {
        let cost_bps = execution.fee_bps + execution.slippage_bps;
        Self { symbol, frame, execution, sides, scratch, live: Vec::new(), cost_bps }
    }

    /// Walks through the bars of a range.
    pub fn walk(&mut self, range: Range<usize>, observer: &mut impl Observer) -> Tally {
        let additive = self.execution.sizing == Sizing::Unit;
        if range.is_empty() {
            return Tally { equity: 1.0, ..Tally::default() };
        }
        let (first_day, last_day) = (self.symbol.day[range.start], self.symbol.day[range.end - 1]);
        let mut book = Book::new(first_day, last_day, range.len(), additive);
        let mut from = range.start;
        let mut reversal: Option<(usize, usize)> = None;
        while let Some((signal, side)) = reversal.take().or_else(|| self.next_entry(from, range.end)) {
            from = signal + 1;
            let Some((entry_idx, opening)) = self.open(signal, side, range.end) else { continue };
            let exited = self.find_exit(signal, entry_idx, side, &opening, range.end - 1);
            if exited.reason == Reason::End && self.execution.end_of_data == EndOfData::Discard {
                break;
            }
            self.settle(signal, entry_idx, side, &opening, &exited, &mut book, observer);
            if exited.reason == Reason::End || (!additive && book.equity() <= 0.0) {
                break;
            }
            let cooldown = self.execution.cooldown as usize;
            from = match self.execution.fill {
                FillAt::NextOpen => exited.bar + cooldown,
                FillAt::Close => exited.bar + cooldown.max(1),
            };
            if let (Some(bar), 0) = (exited.signal, cooldown) {
                reversal = self.reversal(bar, side);
            }
        }
        book.finish(last_day, &mut |day, change| observer.daily(day, change))
    }

    /// The next bar on which exactly one side wants to enter.
    fn next_entry(&mut self, mut from: usize, end: usize) -> Option<(usize, usize)> {
        let Self { sides, frame, scratch, .. } = self;
        loop {
            let mut best = (usize::MAX, 0);
            for (side, run) in sides.iter_mut().enumerate() {
                let Some(run) = run else { continue };
                let bar = run.enter.next(from, frame, scratch);
                if bar == best.0 && bar < end {
                    best.1 = 2;
                } else if bar < best.0 {
                    best = (bar, side);
                }
            }
            match best {
                (bar, _) if bar >= end => return None,
                (bar, 2) => from = bar + 1,
                found => return Some(found),
            }
        }
    }

    /// After a signal exit on `bar`: the other side enters if it alone wants to.
    fn reversal(&mut self, bar: usize, side: usize) -> Option<(usize, usize)> {
        let Self { sides, frame, scratch, .. } = self;
        let mut wants =
            |side: usize| sides[side].as_mut().is_some_and(|run| run.enter.at(bar, frame, scratch));
        (wants(1 - side) && !wants(side)).then_some((bar, 1 - side))
    }

    fn value(&mut self, tape: &Tape, signal: usize, opening: &Opening) -> f64 {
        self.frame.point(tape, signal, opening, self.scratch)
    }

    /// Fills an entry and fixes its levels; `None` if it cannot or must not be taken.
    fn open(&mut self, signal: usize, side: usize, end: usize) -> Option<(usize, Opening)> {
        if signal + 1 >= end {
            return None;
        }
        let bars = self.symbol.bars;
        let (entry_idx, entry) = match self.execution.fill {
            FillAt::NextOpen => (signal + 1, bars.open[signal + 1]),
            FillAt::Close => (signal, bars.close[signal]),
        };
        let run = self.sides[side].as_ref()?;
        let (plan, sign) = (run.plan, run.sign);
        let mut opening = Opening { entry, ..Opening::NONE };
        self.live.clear();
        let mut beyond = false;
        // Stops first: risk needs them, and the other levels need risk.
        for (at, exit) in plan.exits.iter().enumerate() {
            let (ExitKind::Stop, ExitValue::Number(tape)) = (exit.kind, &exit.value) else { continue };
            if exit.when.as_ref().is_some_and(|when| self.value(when, signal, &opening) != 1.0) {
                continue;
            }
            let level = self.value(tape, signal, &opening);
            if !level.is_finite() {
                continue;
            }
            if opening.stop.is_nan() {
                opening.stop = level;
            }
            beyond |= sign * (entry - level) <= 0.0;
            self.live.push(Live { exit: at, kind: ExitKind::Stop, value: level });
        }
        if beyond && self.execution.invalid_stop == InvalidStop::Skip {
            return None;
        }
        let risk = match &plan.risk {
            Some(tape) => self.value(tape, signal, &opening),
            None => sign * (entry - opening.stop),
        };
        opening.risk = if risk > 0.0 && risk.is_finite() { risk } else { 0.01 * entry };
        let stops = self.live.len();
        for (at, exit) in plan.exits.iter().enumerate() {
            let ExitValue::Number(tape) = &exit.value else {
                if exit.when.as_ref().is_none_or(|when| self.value(when, signal, &opening) == 1.0) {
                    self.live.push(Live { exit: at, kind: ExitKind::Signal, value: f64::NAN });
                }
                continue;
            };
            if exit.kind == ExitKind::Stop
                || exit.when.as_ref().is_some_and(|when| self.value(when, signal, &opening) != 1.0)
            {
                continue;
            }
            let value = self.value(tape, signal, &opening);
            let exists = match exit.kind {
                ExitKind::Trail | ExitKind::Time => value.is_finite() && value >= 0.0,
                _ => value.is_finite(),
            };
            if exists {
                let value = if exit.kind == ExitKind::Breakeven {
                    entry + sign * (value * opening.risk)
                } else {
                    value
                };
                self.live.push(Live { exit: at, kind: exit.kind, value });
            }
        }
        if stops < self.live.len() && stops > 0 {
            self.live.sort_unstable_by_key(|live| live.exit);
        }
        Some((entry_idx, opening))
    }

    /// The first bar from `entry_idx` on that closes the position, and how.
    fn find_exit(
        &mut self,
        signal: usize,
        entry_idx: usize,
        side: usize,
        opening: &Opening,
        last: usize,
    ) -> Exited {
        let next_open = self.execution.fill == FillAt::NextOpen;
        let first = match (next_open, self.execution.first_check) {
            (true, FirstCheck::EntryBar) => entry_idx,
            _ => entry_idx + 1,
        };
        // The bar and the exit of the earliest time exit and of the earliest exit signal.
        let mut time = (usize::MAX, 0);
        let mut leave = (usize::MAX, 0);
        let mut moving = false;
        let (mut stop, mut target) = (f64::NEG_INFINITY, f64::INFINITY);
        let Self { sides, frame, scratch, live, .. } = self;
        let Some(run) = sides[side].as_mut() else {
            return Exited { bar: last, price: f64::NAN, reason: Reason::End, signal: None };
        };
        let long = run.sign > 0.0;
        let mut signals = run.signals.iter_mut();
        let mut next_signal_exit = 0;
        for exit in live.iter() {
            match exit.kind {
                // Levels of a short are mirrored: the nearest stop is the lowest above, the nearest target the highest below.
                ExitKind::Stop => {
                    let level = if long { exit.value } else { -exit.value };
                    stop = if level > stop { level } else { stop };
                }
                ExitKind::Target => {
                    let level = if long { exit.value } else { -exit.value };
                    target = if level < target { level } else { target };
                }
                ExitKind::Trail | ExitKind::Breakeven => moving = true,
                ExitKind::Time => {
                    let held = exit.value.min(u32::MAX as f64).ceil() as usize;
                    let bar = (entry_idx + held).max(first);
                    if bar < time.0 {
                        time = (bar, exit.exit);
                    }
                }
                ExitKind::Signal => {
                    // The signals stand in the order of the exits; pass over those that this trade does not have.
                    while next_signal_exit < exit.exit {
                        if run.plan.exits[next_signal_exit].kind == ExitKind::Signal {
                            signals.next();
                        }
                        next_signal_exit += 1;
                    }
                    next_signal_exit += 1;
                    if let Some(condition) = signals.next() {
                        let bar = condition.next(signal + 1, frame, scratch);
                        if bar < leave.0 {
                            leave = (bar, exit.exit);
                        }
                    }
                }
            }
        }
        let until = last.min(time.0).min(leave.0);
        let touched = if moving {
            self.follow(first, until, entry_idx, long, opening)
        } else {
            let bars = self.symbol.bars;
            let (below, above) = if long { (stop, target) } else { (-target, -stop) };
            let bar = first_touch(&bars.low, &bars.high, below, above, first, until);
            (bar <= until).then(|| self.resolve(bar, long, f64::NAN, opening)).flatten()
        };
        if let Some(exited) = touched {
            return exited;
        }
        let bars = self.symbol.bars;
        let time_first = if next_open || time.0 != leave.0 { time.0 <= leave.0 } else { time.1 < leave.1 };
        if time.0 <= last && time_first {
            return Exited {
                bar: time.0,
                price: bars.close[time.0],
                reason: Reason::Exit(time.1, false),
                signal: None,
            };
        }
        if next_open && leave.0 < last {
            let bar = leave.0 + 1;
            let reason = Reason::Exit(leave.1, false);
            return Exited { bar, price: bars.open[bar], reason, signal: Some(leave.0) };
        }
        if !next_open && leave.0 <= last {
            let reason = Reason::Exit(leave.1, false);
            return Exited { bar: leave.0, price: bars.close[leave.0], reason, signal: None };
        }
        Exited { bar: last, price: bars.close[last], reason: Reason::End, signal: None }
    }

    /// Bar by bar, for exits whose level moves: the trail follows the best price of the bars before, and the break-even is armed by it.
    fn follow(
        &mut self,
        first: usize,
        until: usize,
        entry_idx: usize,
        long: bool,
        opening: &Opening,
    ) -> Option<Exited> {
        let bars = self.symbol.bars;
        let mut best = opening.entry;
        let better = |best: f64, bar: usize| {
            let price = if long { bars.high[bar] } else { bars.low[bar] };
            if (long && price > best) || (!long && price < best) { price } else { best }
        };
        // An entry at the open lives through its bar; one at the close does not.
        if self.execution.fill == FillAt::NextOpen && first > entry_idx {
            best = better(best, entry_idx);
        }
        for bar in first..=until {
            if let Some(exited) = self.resolve(bar, long, best, opening) {
                return Some(exited);
            }
            best = better(best, bar);
        }
        None
    }

    /// Whether a bar closes the position: exits in their order, each with its gap rule first.
    fn resolve(&self, bar: usize, long: bool, best: f64, opening: &Opening) -> Option<Exited> {
        let bars = self.symbol.bars;
        let (open, high, low) = (bars.open[bar], bars.high[bar], bars.low[bar]);
        for exit in &self.live {
            let level = match exit.kind {
                ExitKind::Stop | ExitKind::Target => exit.value,
                ExitKind::Trail => {
                    if long {
                        best - exit.value
                    } else {
                        best + exit.value
                    }
                }
                ExitKind::Breakeven => {
                    let armed = if long { best >= exit.value } else { best <= exit.value };
                    if !armed {
                        continue;
                    }
                    opening.entry
                }
                ExitKind::Signal | ExitKind::Time => continue,
            };
            let favourable = exit.kind == ExitKind::Target;
            // A long's stop and a short's target lie below the market.
            let (gapped, touched) = if long != favourable {
                (open <= level, low <= level)
            } else {
                (open >= level, high >= level)
            };
            let rule = if favourable { self.execution.gap_fill_target } else { self.execution.gap_fill_stop };
            if gapped {
                let price = if rule == GapFill::Open { open } else { level };
                return Some(Exited { bar, price, reason: Reason::Exit(exit.exit, true), signal: None });
            }
            if touched {
                return Some(Exited {
                    bar,
                    price: level,
                    reason: Reason::Exit(exit.exit, false),
                    signal: None,
                });
            }
        }
        None
    }

    /// Books a trade: the marks of the days it lived through, then its result.
    #[expect(clippy::too_many_arguments, reason = "the facts of one trade, used once")]
    fn settle(
        &mut self,
        signal: usize,
        entry_idx: usize,
        side: usize,
        opening: &Opening,
        exited: &Exited,
        book: &mut Book,
        observer: &mut impl Observer,
    ) {
        let sign = if side == 0 { 1.0 } else { -1.0 };
        let entry = opening.entry;
        let share = match self.execution.sizing {
            Sizing::AllIn | Sizing::Unit => 1.0,
            Sizing::Fraction(share) => share,
            Sizing::Risk(share) => {
                let share = share * entry / opening.risk;
                if share < 1.0 { share } else { 1.0 }
            }
        };
        let result = |exit: f64| sign * (exit - entry) - (entry + exit) * self.cost_bps / 10_000.0;
        let mut daily = |day: u32, change: f64| observer.daily(day, change);
        let symbol = self.symbol;
        let mut day = symbol.day[entry_idx];
        book.flat_until(day, &mut daily);
        while (symbol.last_bar[day as usize] as usize) < exited.bar {
            let pnl = result(symbol.bars.close[symbol.last_bar[day as usize] as usize]);
            let value = book.value(book.equity(), pnl, pnl / entry, share);
            book.mark(day, value, &mut daily);
            day += 1;
        }
        let pnl = result(exited.price);
        let target =
            self.live.iter().find(|live| live.kind == ExitKind::Target).map_or(f64::NAN, |live| live.value);
        let trade = Trade {
            side: if side == 0 { 1 } else { -1 },
            signal_idx: signal,
            entry_idx,
            exit_idx: exited.bar,
            entry,
            exit: exited.price,
            stop: opening.stop,
            target,
            risk: opening.risk,
            pnl,
            ret: pnl / entry,
            r: pnl / opening.risk,
            reason: exited.reason,
        };
        book.close(&trade, share);
        observer.trade(&trade);
    }
}
