//! The book of one segment: trades as they close, equity at the end of each day, and the sums of both.
//!
//! A walk first finds its trades, which needs no equity, and books them in blocks. Booking then runs without a branch that could not
//! be predicted and with its divisions off the critical path: first every trade is turned into [`Move`]s of equity, then the moves
//! are summed. The order of every sum is that of time.

use multiversion::multiversion;

use super::cost::Costs;
use super::symbol::Symbol;
use super::walk::Observer;
use crate::point;
use crate::strategy::OrderKind;
use crate::tally::Tally;
use crate::trade::{Reason, Trade};

/// Equity at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// Equity then, with an open position at the close.
    value: f64,
    /// The day at whose end it is marked, or [`Move::CLOSE`].
    day: u32,
    /// The next day to be marked; later than the one after if nothing changes in between.
    next: u32,
}

impl Move {
    /// Stands for the day where a trade closes, which is no mark.
    const CLOSE: u32 = u32::MAX;
    const NONE: Self = Self { value: 0.0, day: 0, next: 0 };
}

/// Keeps equity through a segment.
pub struct Book {
    tally: Tally,
    costs: Costs,
    peak: f64,
    /// The same over daily marks alone.
    peak_daily: f64,
    mark: f64,
    /// The next day to be marked.
    day: u32,
    first_day: u32,
    /// Day on which equity last stood at its peak, plus one; 0 is the day before the first.
    peak_day: u32,
    pnl_peak: f64,
    pnl_peak_ref: f64,
}

impl Book {
    /// Opens the book of a segment with its days and its bars.
    pub fn new(costs: Costs, first_day: u32, last_day: u32, bars: usize) -> Self {
        Self {
            tally: Tally {
                equity: 1.0,
                days: last_day - first_day + 1,
                bars: bars as u64,
                ..Tally::default()
            },
            costs,
            peak: 1.0,
            peak_daily: 1.0,
            mark: 1.0,
            day: first_day,
            first_day,
            peak_day: 0,
            pnl_peak: 0.0,
            pnl_peak_ref: f64::NEG_INFINITY,
        }
    }

    /// Equity now.
    pub fn equity(&self) -> f64 {
        self.tally.equity
    }

    /// Counts entries that were not taken after the last trade; with nothing left there were none.
    pub fn skip(&mut self, n_entries: u32) {
        if self.is_alive() {
            self.tally.skipped += n_entries;
        }
    }

    fn is_alive(&self) -> bool {
        self.costs.is_additive() || self.tally.equity > 0.0
    }

    /// Computes the results of trades and books them in order, until nothing is left to trade with; whether there is something left.
    pub fn book(
        &mut self,
        trades: &mut Vec<Trade>,
        symbol: &Symbol<'_>,
        moves: &mut Vec<Move>,
        observer: &mut impl Observer,
    ) -> bool {
        let (n_booked, n_moves) = settle(self, trades, symbol, moves);
        observer.record(self, &moves[..n_moves]);
        trades[..n_booked].iter().for_each(|trade| observer.trade(trade));
        trades.clear();
        self.is_alive()
    }

    /// Sums up moves of equity: daily returns, drawdown, days under water.
    pub fn record(&mut self, moves: &[Move], daily: &mut impl FnMut(u32, f64)) {
        let costs = self.costs;
        let mut tally = self.tally;
        let (mut peak, mut mark, mut peak_day) = (self.peak, self.mark, self.peak_day);
        let mut peak_daily = self.peak_daily;
        for &Move { value, day, next } in moves {
            let is_mark = day != Move::CLOSE;
            let change = costs.change(mark, value);
            let change = if is_mark { change } else { 0.0 };
            let square = change * change;
            tally.sum_daily += change;
            tally.sum_daily2 += square;
            tally.sum_down2 += if change < 0.0 { square } else { 0.0 };
            if change != 0.0 {
                daily(day, change);
            }
            mark = if is_mark { value } else { mark };
            peak = if value > peak { value } else { peak };
            let fall = value / peak - 1.0;
            tally.drawdown = if fall < tally.drawdown { fall } else { tally.drawdown };
            peak_daily = if is_mark && value > peak_daily { value } else { peak_daily };
            let fall = if is_mark { value / peak_daily - 1.0 } else { 0.0 };
            tally.drawdown_daily = if fall < tally.drawdown_daily { fall } else { tally.drawdown_daily };
            let today = next.wrapping_sub(self.first_day);
            peak_day = if is_mark && value >= peak { today } else { peak_day };
            let length = if is_mark { today - peak_day } else { 0 };
            tally.longest_drawdown = tally.longest_drawdown.max(length);
        }
        // What was marked inside bars counts besides all that is marked here.
        let inside = tally.drawdown_bar;
        tally.drawdown_bar = if tally.drawdown < inside { tally.drawdown } else { inside };
        self.tally = tally;
        (self.peak, self.mark, self.peak_day) = (peak, mark, peak_day);
        self.peak_daily = peak_daily;
    }

    /// Sets equity at the end of a day, for books that are kept by the day only.
    pub fn move_to(&mut self, day: u32, equity: f64, daily: &mut impl FnMut(u32, f64)) {
        if self.day < day {
            self.record(&[Move { value: self.tally.equity, day: self.day, next: day }], daily);
        }
        self.tally.equity = equity;
        self.record(&[Move { value: equity, day, next: day + 1 }], daily);
        self.day = day + 1;
    }

    /// Marks the days that are left, and gives the sums.
    pub fn finish(mut self, daily: &mut impl FnMut(u32, f64)) -> Tally {
        let end = self.first_day + self.tally.days;
        if self.day < end {
            self.record(&[Move { value: self.tally.equity, day: self.day, next: end }], daily);
        }
        self.tally
    }
}

/// Sums up trades and lists what they do to equity.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn settle(
    book: &mut Book,
    trades: &mut [Trade],
    symbol: &Symbol<'_>,
    moves: &mut Vec<Move>,
) -> (usize, usize) {
    let costs = book.costs;
    let mut tally = book.tally;
    // Sharper than the marks inside bars alone, and so fewer of them are looked at.
    tally.drawdown_bar = point::minimum(tally.drawdown_bar, tally.drawdown);
    let (mut pnl_peak, mut pnl_peak_ref) = (book.pnl_peak, book.pnl_peak_ref);
    let mut day = book.day;
    let mut peak = book.peak;
    let mut at = 0;
    let mut n_booked = 0;
    for trade in trades {
        let Trade { entry, exit, risk, .. } = *trade;
        let sign = f64::from(trade.side);
        let pnl = costs.pnl(sign, entry, exit, trade.order);
        let ret = pnl / entry;
        let r = pnl / risk;
        (trade.pnl, trade.ret, trade.r) = (pnl, ret, r);
        tally.trades += 1;
        tally.longs += u32::from(trade.side > 0);
        tally.open_at_end += u32::from(trade.reason == Reason::End);
        tally.ambiguous += u32::from(trade.ambiguous);
        tally.skipped += trade.skipped;
        tally.bars_held += (trade.exit_idx - trade.entry_idx) as u64;
        // Selects instead of branches: which trades win cannot be predicted, and adding 0 changes no bit.
        let won = pnl > 0.0;
        tally.wins += u32::from(won);
        tally.sum_pnl += pnl;
        tally.sum_win += if won { pnl } else { 0.0 };
        tally.sum_loss += if won { 0.0 } else { pnl };
        tally.sum_ret += ret;
        tally.sum_ret_win += if won { ret } else { 0.0 };
        tally.sum_ret_loss += if won { 0.0 } else { ret };
        tally.sum_r += r;
        tally.sum_r2 += r * r;
        let cumulated = tally.sum_pnl;
        pnl_peak_ref = if cumulated > pnl_peak_ref { cumulated } else { pnl_peak_ref };
        pnl_peak = if cumulated > pnl_peak { cumulated } else { pnl_peak };
        let (fall, fall_ref) = (cumulated - pnl_peak, cumulated - pnl_peak_ref);
        tally.drawdown_pnl = if fall < tally.drawdown_pnl { fall } else { tally.drawdown_pnl };
        tally.drawdown_pnl_ref =
            if fall_ref < tally.drawdown_pnl_ref { fall_ref } else { tally.drawdown_pnl_ref };

        let (entry_day, exit_day) = (symbol.day[trade.entry_idx], symbol.day[trade.exit_idx]);
        let room = at + 2 + (exit_day - entry_day) as usize;
        if room > moves.len() {
            moves.resize(2 * room, Move::NONE);
        }
        // The days without position before the entry: nothing changes after the first of them.
        moves[at] = Move { value: tally.equity, day, next: entry_day };
        at += usize::from(day < entry_day);
        let share = trade.share;
        let equity = tally.equity;
        let worth = |price: f64| {
            let pnl = costs.pnl(sign, entry, price, OrderKind::Market);
            costs.equity(equity, pnl, pnl / entry, share)
        };
        let marked = |day: u32| Move { value: worth(symbol.day_close[day as usize]), day, next: day + 1 };
        // A whole day's extreme is at least as bad as that of its bars with the position, and a multiplication tells whether even that
        // would be deeper than before, so the bars are rarely looked at one by one. The margin is far above what rounding could turn round.
        let extremes = if trade.side > 0 { &symbol.day_low } else { &symbol.day_high };
        let sunk = |day: u32, peak: f64, deepest: f64| {
            let extreme = extremes[day as usize];
            let pnl = sign * (extreme - entry) - (entry + extreme) * (costs.bps.market * 1e-4);
            let floor = (1.0 + deepest + 1e-9 * (1.0 - deepest)) * peak;
            let is_above = if costs.is_additive() {
                equity + pnl > floor + 1e-9 * entry
            } else {
                equity * (entry + share * pnl) > floor * entry
            };
            if is_above {
                return deepest;
            }
            worst_of_day(symbol, trade, costs.lives_after, day).map_or(deepest, |price| {
                let fall = worth(price) / peak - 1.0;
                if fall < deepest { fall } else { deepest }
            })
        };
        // The first mark is written even where the trade closes before it: that cannot be predicted either.
        tally.drawdown_bar = sunk(entry_day, peak, tally.drawdown_bar);
        let is_overnight = entry_day < exit_day;
        let first = marked(entry_day);
        moves[at] = first;
        at += usize::from(is_overnight);
        peak = if is_overnight && first.value > peak { first.value } else { peak };
        for held in entry_day + 1..exit_day {
            tally.drawdown_bar = sunk(held, peak, tally.drawdown_bar);
            let mark = marked(held);
            moves[at] = mark;
            at += 1;
            peak = if mark.value > peak { mark.value } else { peak };
        }
        if is_overnight {
            tally.drawdown_bar = sunk(exit_day, peak, tally.drawdown_bar);
        }
        let after = costs.equity(tally.equity, pnl, ret, share);
        tally.equity = if trade.reason == Reason::Ruin { 0.0 } else { after };
        peak = if tally.equity > peak { tally.equity } else { peak };
        moves[at] = Move { value: tally.equity, day: Move::CLOSE, next: 0 };
        at += 1;
        day = exit_day;
        n_booked += 1;
        if !costs.is_additive() && tally.equity <= 0.0 {
            break;
        }
    }
    book.tally = tally;
    (book.pnl_peak, book.pnl_peak_ref) = (pnl_peak, pnl_peak_ref);
    book.day = day;
    (n_booked, at)
}

/// The worst price of a position on the bars of a day during which it is open to the close.
#[cold]
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn worst_of_day(symbol: &Symbol<'_>, trade: &Trade, lives_after: u32, day: u32) -> Option<f64> {
    let start = if day == 0 { 0 } else { symbol.day_end[day as usize - 1] as usize };
    let next = symbol.day_end[day as usize] as usize;
    let from = start.max(trade.entry_idx + lives_after as usize);
    let to = next.min(trade.exit_idx + usize::from(trade.at_close));
    let bars = from..to.max(from);
    let (low, high) = (&symbol.bars.low[bars.clone()], &symbol.bars.high[bars]);
    if trade.side > 0 { reduce(low, point::minimum) } else { reduce(high, point::maximum) }
}

/// The extreme of some values, in lanes of their own first: it does not depend on the order.
#[inline(always)]
fn reduce(values: &[f64], extreme: impl Fn(f64, f64) -> f64) -> Option<f64> {
    const LANES: usize = 8;
    let mut lanes = [*values.first()?; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = extreme(*lane, *value);
        }
    }
    lanes.iter().chain(rest).copied().reduce(extreme)
}
