//! Trials that share their signals walk together.
//!
//! What a trade is filled at, when a signal would close it and which bars lie in between is then the same for all of them: it is
//! looked up once, and one search through the bars finds the exits of all lanes. Each lane keeps its own place, so that trials whose
//! trades last longer simply sit out the signals that come meanwhile. The rules are those of [`super::walk`], and so are the bits.

use std::ops::Range;

use multiversion::multiversion;

use super::book::{Book, Ledger};
use super::cost::Costs;
use super::exit::{self, ActiveLevel, Exited};
use super::fill::{self, Fill};
use super::formula::Formula;
use super::frame::Opening;
use super::mask::Mask;
use super::simd::lane_touch;
use super::symbol::Symbol;
use super::walk::{ExitTrigger, Observer, SideRun};
use crate::strategy::{Execution, ExitKind, InvalidLevel};
use crate::tally::Tally;
use crate::trade::Trade;

pub use super::simd::LANES;

/// Trades of a lane that are booked at a time: those of all lanes stay in the cache.
const BLOCK: usize = 32;

/// One number per lane.
type Row = [f64; LANES];

/// A stop, target or time exit of all lanes.
struct Level<'a> {
    exit: usize,
    kind: ExitKind,
    formulas: Vec<Formula<'a>>,
    /// The formulas as `entry + factor × column`, if they are that.
    linear: Option<(Row, &'a [f64])>,
}

/// Trials of one side whose entries and signal exits are the same masks.
pub struct Convoy<'a> {
    symbol: &'a Symbol<'a>,
    execution: &'a Execution,
    costs: Costs,
    long: bool,
    enter: &'a Mask,
    /// Signal exits and their place among the exits.
    leaves: Vec<(usize, &'a Mask)>,
    levels: Vec<Level<'a>>,
    risks: Vec<Formula<'a>>,
    n_lanes: usize,
    /// Whether there are time exits.
    timed: bool,
}

/// Memory that convoys reuse.
#[derive(Default)]
pub struct Buffers {
    trades: [Vec<Trade>; LANES],
    ledger: Ledger,
    points: Vec<f64>,
    /// The levels of the trade at hand, NaN where there is none.
    rows: Vec<Row>,
    lanes: Lanes,
}

/// A trade of one signal: what all lanes share.
struct Shared {
    fill: Fill,
    /// Bar and exit of the earliest exit signal.
    leave: (usize, usize),
}

/// What the lanes do not share.
struct Lanes {
    /// Level of the first stop and of the first target, NaN if absent.
    stop: Row,
    target: Row,
    risk: Row,
    /// The price that leaves nothing of equity, NaN if none is reached.
    ruin: Row,
    /// Nearest fixed levels below and above the market; infinite if there is none.
    below: Row,
    above: Row,
    /// Bar and exit of the earliest time exit.
    time: [(usize, usize); LANES],
    /// Last bar on which a level counts.
    until: [usize; LANES],
}

impl<'a> Convoy<'a> {
    /// Trials that may walk together, or the trials back if they may not.
    pub fn new(
        symbol: &'a Symbol<'a>,
        execution: &'a Execution,
        runs: Vec<SideRun<'a>>,
    ) -> Result<Self, Vec<SideRun<'a>>> {
        let fits = runs.len() <= LANES && runs.iter().all(|run| run.is_like(&runs[0]));
        let Some(enter) = runs.first().and_then(|run| run.enter.exact()).filter(|_| fits) else {
            return Err(runs);
        };
        let mut convoy = Self {
            symbol,
            execution,
            costs: Costs::new(execution),
            long: runs[0].long,
            enter,
            leaves: Vec::new(),
            levels: Vec::new(),
            risks: Vec::new(),
            n_lanes: 0,
            timed: false,
        };
        for run in runs {
            let mut levels = convoy.levels.iter_mut();
            let mut added = Vec::new();
            for exit in run.exits {
                match exit.watch {
                    ExitTrigger::Signal(signal) => {
                        if let Some(mask) = signal.exact()
                            && convoy.n_lanes == 0
                        {
                            convoy.leaves.push((exit.exit, mask));
                        }
                    }
                    ExitTrigger::Number(formula) => match levels.next() {
                        Some(level) => level.formulas.push(formula),
                        None => added.push(Level {
                            exit: exit.exit,
                            kind: exit.kind,
                            formulas: vec![formula],
                            linear: None,
                        }),
                    },
                }
            }
            convoy.levels.extend(added);
            convoy.risks.extend(run.risk);
            convoy.n_lanes += 1;
        }
        for level in &mut convoy.levels {
            level.linear = linear(&level.formulas);
            convoy.timed |= level.kind == ExitKind::Time;
        }
        Ok(convoy)
    }

    /// Walks all trials through the bars of a range; each has its observer.
    pub fn walk(
        &self,
        range: Range<usize>,
        observers: &mut [impl Observer],
        buffers: &mut Buffers,
    ) -> Vec<Tally> {
        if range.is_empty() {
            return vec![Tally { equity: 1.0, ..Tally::default() }; self.n_lanes];
        }
        let day = |bar: usize| self.symbol.day[bar];
        let book = || Book::new(self.costs, day(range.start), day(range.end - 1), range.len());
        let mut books: Vec<Book> = (0..self.n_lanes).map(|_| book()).collect();
        // Where each lane looks for its next signal; a lane that is done, or does not exist, looks nowhere.
        let mut from = [usize::MAX; LANES];
        from[..self.n_lanes].fill(range.start);
        let mut skipped = [0; LANES];
        buffers.trades.iter_mut().for_each(Vec::clear);
        let Buffers { trades, ledger, points, rows, lanes } = buffers;
        loop {
            let earliest = from.iter().copied().fold(usize::MAX, usize::min);
            if earliest >= range.end {
                break;
            }
            let signal = self.enter.next(earliest);
            if signal.saturating_add(1) >= range.end {
                break;
            }
            let last = range.end - 1;
            let shared = self.fill(signal);
            let mut active = bits(|lane| from[lane] <= signal);
            each(active, |lane| from[lane] = signal + 1);
            let wrong = open(self, &shared, last, rows, points, lanes);
            each(active & wrong, |lane| skipped[lane] += 1);
            active &= !wrong;
            self.close(&shared, lanes, rows, active, last, |lane, exited| {
                if exited.is_discarded(self.execution) {
                    from[lane] = usize::MAX;
                    return;
                }
                let trades = &mut trades[lane];
                let opening = lanes.opening(shared.fill.price, lane);
                let skipped = std::mem::take(&mut skipped[lane]);
                let share = self.costs.share(shared.fill.price, opening.risk);
                let target = lanes.target[lane];
                trades.push(shared.fill.trade(self.long, &opening, share, target, &exited, skipped));
                from[lane] = fill::next_signal(self.execution, exited.bar);
                let full = trades.len() == BLOCK;
                let left = !full || books[lane].book(trades, self.symbol, ledger, &mut observers[lane]);
                if exited.is_last() || !left {
                    from[lane] = usize::MAX;
                }
            });
        }
        let mut tallies = Vec::with_capacity(self.n_lanes);
        for (((mut book, trades), observer), skipped) in
            books.into_iter().zip(trades).zip(observers).zip(skipped)
        {
            book.book(trades, self.symbol, ledger, observer);
            book.skip(skipped);
            tallies.push(book.finish(&mut |day, change| observer.daily(day, change)));
        }
        tallies
    }

    fn fill(&self, signal: usize) -> Shared {
        let fill = Fill::new(&self.symbol.bars, self.execution, signal);
        let mut leave = (usize::MAX, 0);
        for (exit, mask) in &self.leaves {
            leave = exit::earlier(leave, mask.next(signal + 1), *exit);
        }
        Shared { fill, leave }
    }

    /// Finds where each of the active lanes closes, and at what price.
    #[inline(always)]
    fn close(
        &self,
        shared: &Shared,
        lanes: &Lanes,
        rows: &[Row],
        active: u32,
        last: usize,
        mut closed: impl FnMut(usize, Exited),
    ) {
        let bars = &*self.symbol.bars;
        let until = lanes.until[..self.n_lanes].iter().copied().fold(0, usize::max);
        let (mut pending, mut from) = (active, shared.fill.first);
        // A bar during which the position is open before any bar is inspected.
        if let Some(bar) = shared.fill.uninspected() {
            each(active, |lane| {
                if let Some(exited) = exit::ruin_only(bars, bar, self.long, lanes.ruin[lane]) {
                    pending &= !(1 << lane);
                    closed(lane, exited);
                }
            });
        }
        let bounded = bits(|lane| lanes.below[lane] > f64::NEG_INFINITY || lanes.above[lane] < f64::INFINITY);
        let mut looking = pending & bounded;
        while looking != 0 {
            let levels = (&lanes.below, &lanes.above);
            let (bar, mut touched) = lane_touch((&bars.low, &bars.high), levels, looking, from, until);
            if touched == 0 {
                break;
            }
            looking &= !touched;
            if self.timed {
                let expired = bits(|lane| lanes.until[lane] < bar);
                looking &= !expired;
                touched &= !expired;
            }
            each(touched, |lane| {
                if let Some(exited) = self.resolve(rows, lane, bar, lanes.ruin[lane]) {
                    pending &= !(1 << lane);
                    closed(lane, exited);
                }
            });
            from = bar + 1;
        }
        each(pending, |lane| {
            closed(lane, exit::run_out(bars, self.execution, lanes.time[lane], shared.leave, last));
        });
    }

    /// Whether a bar closes the position of a lane.
    #[inline(always)]
    fn resolve(&self, rows: &[Row], lane: usize, bar: usize, ruin: f64) -> Option<Exited> {
        let levels = self.levels.iter().zip(rows).filter(|(level, _)| level.kind != ExitKind::Time);
        let standing = levels.map(|(level, row)| ActiveLevel {
            exit: level.exit,
            favourable: level.kind == ExitKind::Target,
            price: row[lane],
        });
        exit::resolve(&self.symbol.bars, bar, self.long, self.execution, ruin, standing)
    }
}

/// Fixes the levels of all lanes; the result are those that must not enter, because a level lies on the wrong side.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn open(
    convoy: &Convoy<'_>,
    shared: &Shared,
    last: usize,
    rows: &mut Vec<Row>,
    points: &mut Vec<f64>,
    lanes: &mut Lanes,
) -> u32 {
    let (long, sign) = (convoy.long, if convoy.long { 1.0 } else { -1.0 });
    let fill = &shared.fill;
    *lanes = Lanes::default();
    lanes.until = [last.min(shared.leave.0); LANES];
    rows.resize(convoy.levels.len(), [f64::NAN; LANES]);
    let (mut beyond, mut reached) = (0, 0);
    // Stops first: risk needs them, and the other levels need risk.
    for (level, row) in convoy.levels.iter().zip(&mut *rows) {
        if level.kind == ExitKind::Stop {
            level.fix(fill, lanes, row, points);
            lanes.bound(row, long);
            first_of(&mut lanes.stop, row);
            beyond |= bits(|lane| exit::is_wrong(sign, fill.price, row[lane], false));
        }
    }
    for lane in 0..LANES {
        lanes.risk[lane] = exit::stop_distance(sign, fill.price, lanes.stop[lane]);
    }
    for (lane, formula) in convoy.risks.iter().enumerate() {
        let opening = Opening { entry: fill.price, stop: lanes.stop[lane], risk: f64::NAN };
        lanes.risk[lane] = formula.value(fill.signal, &opening, points);
    }
    for risk in &mut lanes.risk {
        *risk = exit::risk(*risk, fill.price);
    }
    if convoy.costs.may_ruin(convoy.symbol, long, fill.price) {
        for lane in 0..LANES {
            let share = convoy.costs.share(fill.price, lanes.risk[lane]);
            lanes.ruin[lane] = convoy.costs.ruin(convoy.symbol, long, fill.price, share);
        }
        let ruin = lanes.ruin;
        lanes.bound(&ruin, long);
    }
    for (level, row) in convoy.levels.iter().zip(&mut *rows) {
        match level.kind {
            ExitKind::Target => {
                level.fix(fill, lanes, row, points);
                lanes.bound(row, !long);
                first_of(&mut lanes.target, row);
                reached |= bits(|lane| exit::is_wrong(sign, fill.price, row[lane], true));
            }
            ExitKind::Time => {
                for (lane, formula) in level.formulas.iter().enumerate() {
                    let value = formula.value(fill.signal, &lanes.opening(fill.price, lane), points);
                    if let Some(bar) = exit::time_bar(fill, value) {
                        lanes.time[lane] = exit::earlier(lanes.time[lane], bar, level.exit);
                        lanes.until[lane] = lanes.until[lane].min(bar);
                    }
                }
            }
            _ => {}
        }
    }
    let only_if = |rule: InvalidLevel, lanes: u32| if rule == InvalidLevel::Skip { lanes } else { 0 };
    only_if(convoy.execution.invalid_stop, beyond) | only_if(convoy.execution.invalid_target, reached)
}

impl Level<'_> {
    /// The prices of a stop or target; NaN where there is none.
    #[inline(always)]
    fn fix(&self, fill: &Fill, lanes: &Lanes, row: &mut Row, points: &mut Vec<f64>) {
        match &self.linear {
            Some((factors, column)) => {
                let x = column[fill.signal];
                *row = factors.map(|factor| fill.price + factor * x);
            }
            None => {
                for (lane, formula) in self.formulas.iter().enumerate() {
                    row[lane] = formula.value(fill.signal, &lanes.opening(fill.price, lane), points);
                }
            }
        }
        *row = row.map(|value| if exit::is_price(value) { value } else { f64::NAN });
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            stop: [f64::NAN; LANES],
            target: [f64::NAN; LANES],
            risk: [f64::NAN; LANES],
            ruin: [f64::NAN; LANES],
            below: [f64::NEG_INFINITY; LANES],
            above: [f64::INFINITY; LANES],
            time: [(usize::MAX, 0); LANES],
            until: [0; LANES],
        }
    }
}

impl Lanes {
    /// The values that formulas of a lane may read.
    fn opening(&self, entry: f64, lane: usize) -> Opening {
        Opening { entry, stop: self.stop[lane], risk: self.risk[lane] }
    }

    /// Takes in fixed levels that lie below or above the market.
    #[inline(always)]
    fn bound(&mut self, row: &Row, is_below: bool) {
        if is_below {
            self.below = pairs(row, &self.below, exit::nearer_below);
        } else {
            self.above = pairs(row, &self.above, exit::nearer_above);
        }
    }
}

/// Formulas that are all the entry price plus a multiple of one column: the multiples and the column.
fn linear<'a>(formulas: &[Formula<'a>]) -> Option<(Row, &'a [f64])> {
    let mut factors = [0.0; LANES];
    let (_, first) = formulas.first()?.multiple_from_entry()?;
    for (factor, formula) in factors.iter_mut().zip(formulas) {
        let (own, column) = formula.multiple_from_entry()?;
        if !std::ptr::eq(column, first) {
            return None;
        }
        *factor = own;
    }
    Some((factors, first))
}

/// Keeps what is known, and takes the new value where nothing is.
#[inline(always)]
fn first_of(known: &mut Row, row: &Row) {
    *known = pairs(known, row, |known, value| if known.is_nan() { value } else { known });
}

/// One row of two. It is made anew, because loops that write in place are not turned into vector instructions here.
#[inline(always)]
fn pairs(a: &Row, b: &Row, join: impl Fn(f64, f64) -> f64) -> Row {
    std::array::from_fn(|lane| join(a[lane], b[lane]))
}

/// One bit per lane.
#[inline(always)]
fn bits(holds: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).fold(0, |bits, lane| bits | u32::from(holds(lane)) << lane)
}

/// Visits the lanes of set bits.
#[inline(always)]
fn each(mut lanes: u32, mut visit: impl FnMut(usize)) {
    while lanes != 0 {
        visit(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
    }
}
