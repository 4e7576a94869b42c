//! The walk of one trial through one segment: from signal to fill to exit to signal, jumping over what cannot matter. One file because the
//! walk is one loop, whose steps share what it knows of the position.
//!
//! The rules are those of `docs/semantics.md`; the oracle in the tests follows them bar by bar.

use std::ops::Range;

use super::book::{Book, Move};
use super::cost::Costs;
use super::exit::{self, ActiveLevel, Exited};
use super::fill::{self, Fill};
use super::formula::Formula;
use super::frame::{Frame, Opening, Scratch};
use super::mask::Signal;
use super::simd::first_touch;
use super::symbol::Symbol;
use crate::plan::{ExitValue, SidePlan, Tape};
use crate::strategy::{Execution, ExitKind, FillAt, InvalidLevel};
use crate::tally::Tally;
use crate::trade::Trade;

/// Trades found before they are booked: few enough to stay in the cache.
const BLOCK: usize = 256;

/// Hears what a walk does. All methods may do nothing.
pub trait Observer {
    /// The signal of a bar is about to be filled; its levels may still forbid it.
    fn entry(&mut self, _signal: usize) {}
    /// A trade was closed.
    fn trade(&mut self, _trade: &Trade) {}
    /// Whether it hears of days at all.
    fn hears_days(&self) -> bool {
        true
    }
    /// Sums up moves of equity in a book, and hears their daily returns if it wants to.
    fn record(&mut self, book: &mut Book, moves: &[Move]) {
        if self.hears_days() {
            book.record(moves, &mut |day, change| self.daily(day, change));
        } else {
            book.record(moves, &mut |_, _| {});
        }
    }
    /// A day had this return; days without return are not reported.
    fn daily(&mut self, _day: u32, _change: f64) {}
}

/// What an exit of one trial watches.
pub(super) enum ExitTrigger<'a> {
    /// A number fixed on the signal bar.
    Number(Formula<'a>),
    /// A condition on closed bars.
    Signal(Signal<'a>),
}

/// An exit of one trial.
pub struct BoundExit<'a> {
    /// Its place among the exits of the strategy.
    pub(super) exit: usize,
    pub(super) kind: ExitKind,
    pub(super) watch: ExitTrigger<'a>,
    /// Condition on the signal bar; one that depends on parameters only has already been decided.
    when: Option<Formula<'a>>,
    /// For the trade at hand: level, trailing distance, or the price that arms the break-even; NaN if it has none.
    level: f64,
    /// For the trade at hand: whether a stop that follows a series exists.
    follows: bool,
}

/// One side of one trial.
pub struct SideRun<'a> {
    pub(super) long: bool,
    pub(super) enter: Signal<'a>,
    pub(super) exits: Vec<BoundExit<'a>>,
    has_stop: bool,
    pub(super) risk: Option<Formula<'a>>,
    /// The share of equity that a trade commits, where the strategy says so.
    size: Option<Formula<'a>>,
}

impl BoundExit<'_> {
    fn is_stop(&self) -> bool {
        matches!(self.kind, ExitKind::Stop | ExitKind::StopSeries)
    }

    /// What its number means.
    pub fn kind(&self) -> ExitKind {
        self.kind
    }

    /// The number of a stop that follows a series, as of a bar, in a trade of some signal; NaN where it has none.
    pub fn followed(&self, signal: usize, bar: usize, opening: &Opening, scratch: &mut Scratch) -> f64 {
        match &self.watch {
            ExitTrigger::Number(formula)
                if self.kind == ExitKind::StopSeries && holds(&self.when, signal, opening, scratch) =>
            {
                formula.value(bar, opening, &mut scratch.points)
            }
            _ => f64::NAN,
        }
    }

    /// Its number on a bar; NaN where it has none.
    pub fn number(&self, bar: usize, opening: &Opening, scratch: &mut Scratch) -> f64 {
        match &self.watch {
            ExitTrigger::Number(formula) if holds(&self.when, bar, opening, scratch) => {
                formula.value(bar, opening, &mut scratch.points)
            }
            _ => f64::NAN,
        }
    }
}

impl<'a> SideRun<'a> {
    /// Whether it buys.
    pub fn is_long(&self) -> bool {
        self.long
    }

    /// Its exits, without those that can never be.
    pub fn exits(&self) -> &[BoundExit<'a>] {
        &self.exits
    }

    /// Binds a side to a trial; `signals` are those of its signal exits, in order.
    pub fn new(
        plan: &'a SidePlan,
        long: bool,
        frame: &Frame<'a>,
        enter: Signal<'a>,
        signals: Vec<Signal<'a>>,
    ) -> Self {
        let mut signals = signals.into_iter();
        let mut exits = Vec::with_capacity(plan.exits.len());
        for (at, exit) in plan.exits.iter().enumerate() {
            let watch = match &exit.value {
                ExitValue::Number(tape) => ExitTrigger::Number(Formula::new(tape, frame)),
                ExitValue::Signal(_) => match signals.next() {
                    Some(signal) => ExitTrigger::Signal(signal),
                    None => continue,
                },
            };
            let mut when = exit.when.as_ref().map(|when| Formula::new(when, frame));
            match when.as_ref().and_then(Formula::constant) {
                Some(1.0) => when = None,
                Some(_) => continue,
                None => {}
            }
            exits.push(BoundExit { exit: at, kind: exit.kind, watch, when, level: f64::NAN, follows: false });
        }
        let has_stop = exits.iter().any(|exit| exit.is_stop());
        let bind = |formula: &'a Option<Tape>| formula.as_ref().map(|formula| Formula::new(formula, frame));
        Self { long, enter, exits, has_stop, risk: bind(&plan.risk), size: bind(&plan.size) }
    }

    /// Sets the levels that follow a series for a bar: their values of the bar before.
    fn follow_series(&mut self, bar: usize, opening: &Opening, points: &mut Vec<f64>) {
        for exit in self.exits.iter_mut().filter(|exit| exit.follows) {
            let ExitTrigger::Number(formula) = &exit.watch else { continue };
            let level = formula.value(bar - 1, opening, points);
            exit.level = if exit::is_price(level) { level } else { f64::NAN };
        }
    }

    /// Whether this trial and another one may walk together: masks decide all signals and are the same, no exit moves or depends on
    /// a condition, both have the same exits, and neither says how much it commits.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let same = |a: &Signal<'_>, b: &Signal<'_>| match (a.exact(), b.exact()) {
            (Some(a), Some(b)) => std::ptr::eq(a, b),
            _ => false,
        };
        let alike = |(a, b): (&BoundExit<'_>, &BoundExit<'_>)| {
            let fixed = a.when.is_none() && b.when.is_none() && a.exit == b.exit;
            fixed
                && match (&a.watch, &b.watch) {
                    (ExitTrigger::Signal(a), ExitTrigger::Signal(b)) => same(a, b),
                    _ => matches!(a.kind, ExitKind::Stop | ExitKind::Target | ExitKind::Time),
                }
        };
        same(&self.enter, &other.enter)
            && self.size.is_none()
            && self.exits.len() == other.exits.len()
            && self.exits.iter().zip(&other.exits).all(alike)
    }
}

/// A position as it was opened.
#[derive(Clone, Copy)]
struct OpenPosition {
    fill: Fill,
    opening: Opening,
    /// Bar and exit of the earliest time exit.
    time: (usize, usize),
    /// Bar and exit of the earliest exit signal.
    leave: (usize, usize),
    /// Nearest fixed levels below and above the market; infinite if there is none.
    below: f64,
    above: f64,
    /// Level of the first target, NaN if absent.
    target: f64,
    /// The price that leaves nothing of equity, NaN if none is reached.
    ruin: f64,
    /// Whether some level moves with the market.
    moving: bool,
    /// The share of equity that it commits.
    share: f64,
}

/// One trial over one symbol, ready to walk.
pub struct Walker<'a> {
    symbol: &'a Symbol<'a>,
    frame: Frame<'a>,
    execution: &'a Execution,
    /// The sides that the strategy has.
    sides: Vec<SideRun<'a>>,
    costs: Costs,
}

/// How far a walk through a range of bars is.
pub struct WalkState {
    range: Range<usize>,
    book: Book,
    /// Trades found and not yet booked.
    trades: Vec<Trade>,
    /// Entries that were not taken since the last trade.
    skipped: u32,
    /// The first bar that may give the next signal; past the range if no trade follows.
    from: usize,
}

impl WalkState {
    /// Whether a signal before a bar may still matter.
    pub fn looks_before(&self, bar: usize) -> bool {
        self.from < bar.min(self.range.end)
    }
}

impl<'a> Walker<'a> {
    /// Prepares a walk.
    pub fn new(
        symbol: &'a Symbol<'a>,
        frame: Frame<'a>,
        execution: &'a Execution,
        sides: Vec<SideRun<'a>>,
    ) -> Self {
        Self { symbol, frame, execution, sides, costs: Costs::new(execution) }
    }

    /// Walks through the bars of a range.
    pub fn walk(
        &mut self,
        range: Range<usize>,
        scratch: &mut Scratch,
        observer: &mut impl Observer,
    ) -> Tally {
        if range.is_empty() {
            return Tally { equity: 1.0, ..Tally::default() };
        }
        let mut state = self.begin(range, scratch);
        self.go_on(&mut state, usize::MAX, scratch, observer);
        self.finish(state, scratch, observer)
    }

    /// Before the first bar of a range that is not empty.
    pub fn begin(&self, range: Range<usize>, scratch: &mut Scratch) -> WalkState {
        let (first_day, last_day) = (self.symbol.day[range.start], self.symbol.day[range.end - 1]);
        let book = Book::new(self.costs, first_day, last_day, range.len());
        let trades = scratch.trades.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
        let from = range.start;
        WalkState { range, book, trades, skipped: 0, from }
    }

    /// Finds the entry signals of the block of a bar for the walk to go on, those that it may still ask for. The
    /// frame has the tiles of the block.
    pub fn look(&mut self, bar: usize, state: &WalkState, frame: &Frame<'_>, scratch: &mut Scratch) {
        for side in &mut self.sides {
            side.enter.look(bar, state.from, frame, scratch);
        }
    }

    /// Takes the trades whose signals come before a bar.
    pub fn go_on(
        &mut self,
        state: &mut WalkState,
        upto: usize,
        scratch: &mut Scratch,
        observer: &mut impl Observer,
    ) {
        let end = state.range.end;
        let upto = upto.min(end);
        let mut reversal: Option<(usize, usize)> = None;
        let mut opened = OpenPosition::NONE;
        while let Some((signal, side)) =
            reversal.take().or_else(|| self.next_entry(state.from, upto, scratch))
        {
            state.from = signal + 1;
            if signal + 1 >= end {
                break;
            }
            observer.entry(signal);
            if !self.open(signal, side, &mut opened, scratch) {
                state.skipped += 1;
                continue;
            }
            let exited = self.find_exit(&opened, side, end - 1, scratch);
            if exited.is_discarded(self.execution) {
                state.from = end;
                break;
            }
            let OpenPosition { fill, opening, target, share, .. } = &opened;
            let (long, before) = (self.sides[side].long, std::mem::take(&mut state.skipped));
            state.trades.push(fill.trade(long, opening, *share, *target, &exited, before));
            if exited.is_last() || (state.trades.len() == BLOCK && !self.book(state, scratch, observer)) {
                state.from = end;
                break;
            }
            state.from = fill::next_signal(self.execution, exited.bar);
            if exited.by_signal && self.execution.cooldown == 0 && self.sides.len() == 2 {
                reversal = self.reversal(exited.bar - 1, side, scratch);
            }
        }
        // What was looked through is not asked for again: its signals may be gone.
        state.from = state.from.max(upto);
    }

    /// Books what is left, and gives the sums.
    pub fn finish(
        &mut self,
        mut state: WalkState,
        scratch: &mut Scratch,
        observer: &mut impl Observer,
    ) -> Tally {
        self.book(&mut state, scratch, observer);
        let WalkState { mut book, trades, skipped, .. } = state;
        scratch.trades.push(trades);
        book.skip(skipped);
        book.finish(&mut |day, change| observer.daily(day, change))
    }

    fn book(&self, state: &mut WalkState, scratch: &mut Scratch, observer: &mut impl Observer) -> bool {
        state.book.book(&mut state.trades, self.symbol, &mut scratch.ledger, observer)
    }

    /// The next bar on which exactly one side wants to enter, and that side.
    #[inline(always)]
    fn next_entry(&mut self, mut from: usize, end: usize, scratch: &mut Scratch) -> Option<(usize, usize)> {
        let Self { sides, frame, .. } = self;
        match &mut sides[..] {
            [only] => {
                let bar = only.enter.next(from, end, frame, scratch);
                (bar < end).then_some((bar, 0))
            }
            [long, short] => loop {
                let mut next = |side: &mut SideRun<'_>| side.enter.next(from, end, frame, scratch);
                let (a, b) = (next(long), next(short));
                if a.min(b) >= end {
                    return None;
                }
                if a != b {
                    return Some(if a < b { (a, 0) } else { (b, 1) });
                }
                from = a + 1;
            },
            _ => None,
        }
    }

    /// After a signal exit on `bar`: the other side enters if it alone wants to.
    fn reversal(&mut self, bar: usize, side: usize, scratch: &mut Scratch) -> Option<(usize, usize)> {
        let Self { sides, frame, .. } = self;
        let mut wants = |side: usize| sides[side].enter.at(bar, frame, scratch);
        (wants(1 - side) && !wants(side)).then_some((bar, 1 - side))
    }

    /// Fills an entry and fixes its levels; false if it must not be taken.
    #[inline(always)]
    fn open(&mut self, signal: usize, side: usize, opened: &mut OpenPosition, scratch: &mut Scratch) -> bool {
        let bars = &*self.symbol.bars;
        let Self { sides, frame, execution, costs, symbol, .. } = self;
        let run = &mut sides[side];
        let (long, sign) = (run.long, if run.long { 1.0 } else { -1.0 });
        let fill = Fill::new(bars, execution, signal);
        let entry = fill.price;
        *opened = OpenPosition { fill, opening: Opening { entry, ..Opening::NONE }, ..OpenPosition::NONE };
        // Stops first: risk needs them, and the other levels need risk.
        if run.has_stop {
            let mut beyond = false;
            for exit in run.exits.iter_mut().filter(|exit| exit.is_stop()) {
                let ExitTrigger::Number(formula) = &exit.watch else { continue };
                let level = formula.value(signal, &opened.opening, &mut scratch.points);
                let exists = holds(&exit.when, signal, &opened.opening, scratch);
                exit.level = f64::NAN;
                exit.follows = exists && exit.kind == ExitKind::StopSeries;
                opened.moving |= exit.follows;
                if exists && exit::is_price(level) {
                    exit.level = level;
                    if opened.opening.stop.is_nan() {
                        opened.opening.stop = level;
                    }
                    if !exit.follows {
                        opened.bound(level, long);
                    }
                    beyond |= exit::is_wrong(sign, entry, level, false);
                }
            }
            if beyond && execution.invalid_stop == InvalidLevel::Skip {
                return false;
            }
        }
        let risk = match &run.risk {
            Some(formula) => formula.value(signal, &opened.opening, &mut scratch.points),
            None => exit::stop_distance(sign, entry, opened.opening.stop),
        };
        opened.opening.risk = exit::risk(risk, entry);
        opened.share = match &run.size {
            None => costs.share(entry, opened.opening.risk),
            Some(size) => {
                let size = size.value(signal, &opened.opening, &mut scratch.points);
                let Some(share) = Costs::share_of_size(size) else { return false };
                share
            }
        };
        opened.ruin = costs.ruin(symbol, long, entry, opened.share);
        opened.bound(opened.ruin, long);
        let opening = opened.opening;
        let mut reached = false;
        for exit in &mut run.exits {
            if exit.is_stop() {
                continue;
            }
            exit.level = f64::NAN;
            if !holds(&exit.when, signal, &opening, scratch) {
                continue;
            }
            let value = match &mut exit.watch {
                ExitTrigger::Number(formula) => formula.value(signal, &opening, &mut scratch.points),
                ExitTrigger::Signal(condition) => {
                    let bar = condition.next(signal + 1, usize::MAX, frame, scratch);
                    opened.leave = exit::earlier(opened.leave, bar, exit.exit);
                    continue;
                }
            };
            if !value.is_finite() {
                continue;
            }
            match exit.kind {
                ExitKind::Target if exit::is_price(value) => {
                    exit.level = value;
                    if opened.target.is_nan() {
                        opened.target = value;
                    }
                    opened.bound(value, !long);
                    reached |= exit::is_wrong(sign, entry, value, true);
                }
                ExitKind::Trail if value >= 0.0 => {
                    exit.level = value;
                    opened.moving = true;
                }
                ExitKind::Breakeven => {
                    exit.level = entry + sign * (value * opening.risk);
                    opened.moving = true;
                }
                ExitKind::Time => {
                    if let Some(bar) = exit::time_bar(&fill, value) {
                        opened.time = exit::earlier(opened.time, bar, exit.exit);
                    }
                }
                _ => {}
            }
        }
        !(reached && execution.invalid_target == InvalidLevel::Skip)
    }

    /// The first bar from the entry on that closes the position, and how.
    #[inline(always)]
    fn find_exit(
        &mut self,
        opened: &OpenPosition,
        side: usize,
        last: usize,
        scratch: &mut Scratch,
    ) -> Exited {
        let (time, leave) = (opened.time, opened.leave);
        let until = last.min(time.0).min(leave.0);
        let bars = &*self.symbol.bars;
        let long = self.sides[side].long;
        // A bar during which the position is open before any bar is inspected.
        if let Some(bar) = opened.fill.uninspected()
            && let Some(exited) = exit::ruin_only(bars, bar, long, opened.ruin)
        {
            return exited;
        }
        if opened.moving {
            if let Some(exited) = self.follow(side, until, opened, scratch) {
                return exited;
            }
        } else if opened.below > f64::NEG_INFINITY || opened.above < f64::INFINITY {
            let bar =
                first_touch(&bars.low, &bars.high, opened.below, opened.above, opened.fill.first, until);
            if bar <= until
                && let Some(exited) = self.resolve(&self.sides[side], bar, f64::NAN, opened)
            {
                return exited;
            }
        }
        exit::run_out(bars, self.execution, time, leave, last)
    }

    /// Bar by bar, for exits whose level moves: the trail follows the best price of the bars before, the break-even is armed by it, and
    /// a stop that follows a series has its value of the bar before.
    fn follow(
        &mut self,
        side: usize,
        until: usize,
        opened: &OpenPosition,
        scratch: &mut Scratch,
    ) -> Option<Exited> {
        let bars = &*self.symbol.bars;
        let long = self.sides[side].long;
        let follows = self.sides[side].exits.iter().any(|exit| exit.follows);
        let mut best = opened.opening.entry;
        let better = |best: f64, bar: usize| {
            let price = if long { bars.high[bar] } else { bars.low[bar] };
            if (long && price > best) || (!long && price < best) { price } else { best }
        };
        // After an entry at the open the position is open during that bar; after one at the close it is not.
        if self.execution.fill == FillAt::NextOpen && opened.fill.first > opened.fill.bar {
            best = better(best, opened.fill.bar);
        }
        for bar in opened.fill.first..=until {
            if follows {
                self.sides[side].follow_series(bar, &opened.opening, &mut scratch.points);
            }
            if let Some(exited) = self.resolve(&self.sides[side], bar, best, opened) {
                return Some(exited);
            }
            best = better(best, bar);
        }
        None
    }

    /// Whether a bar closes the position; `best` is the best price of the bars before.
    #[inline(always)]
    fn resolve(&self, run: &SideRun<'_>, bar: usize, best: f64, opened: &OpenPosition) -> Option<Exited> {
        let long = run.long;
        let levels = run.exits.iter().filter_map(|exit| {
            let price = match exit.kind {
                ExitKind::Stop | ExitKind::StopSeries | ExitKind::Target => exit.level,
                ExitKind::Trail if long => best - exit.level,
                ExitKind::Trail => best + exit.level,
                ExitKind::Breakeven => {
                    let armed = if long { best >= exit.level } else { best <= exit.level };
                    if armed { opened.opening.entry } else { f64::NAN }
                }
                ExitKind::Signal | ExitKind::Time => return None,
            };
            Some(ActiveLevel { exit: exit.exit, favourable: exit.kind == ExitKind::Target, price })
        });
        exit::resolve(&self.symbol.bars, bar, long, self.execution, opened.ruin, levels)
    }
}

impl OpenPosition {
    /// Before anything is known.
    const NONE: Self = Self {
        fill: Fill::NONE,
        opening: Opening::NONE,
        time: (usize::MAX, 0),
        leave: (usize::MAX, 0),
        below: f64::NEG_INFINITY,
        above: f64::INFINITY,
        target: f64::NAN,
        ruin: f64::NAN,
        moving: false,
        share: 1.0,
    };

    /// Takes in a fixed level that lies below or above the market.
    #[inline(always)]
    fn bound(&mut self, level: f64, is_below: bool) {
        if is_below {
            self.below = exit::nearer_below(level, self.below);
        } else {
            self.above = exit::nearer_above(level, self.above);
        }
    }
}

/// Whether a condition of an exit holds on the signal bar.
#[inline(always)]
fn holds(when: &Option<Formula<'_>>, signal: usize, opening: &Opening, scratch: &mut Scratch) -> bool {
    when.as_ref().is_none_or(|when| when.value(signal, opening, &mut scratch.points) == 1.0)
}
