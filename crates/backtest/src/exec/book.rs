//! The book of one segment: trades as they close, equity at the end of each day, and the sums of both.
//!
//! A walk first finds its trades, which needs no equity, and books them in blocks. Booking then runs without a branch that could not
//! be predicted and with its divisions off the critical path: first every trade is turned into [`Move`]s of equity, then the moves
//! are summed. The order of every sum is that of time. Drawdowns inside bars come last: what the block has fallen at its marks tells that
//! hardly any of its days needs a look at its bars.

use multiversion::multiversion;

use super::cost::Costs;
use super::symbol::Symbol;
use super::walk::Observer;
use crate::point;
use crate::tally::Tally;
use crate::trade::{Reason, Trade};

/// By how much a fall inside bars has to be less deep than another one, relatively, not to be looked at.
const MARGIN: f64 = 1e-9;

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

/// A day of a trade, during which equity may have been deeper below its peak than at any mark.
#[derive(Clone, Copy, Debug)]
struct Dip {
    /// Equity if the trade met the worst price of the whole day, and its peak, both by the same factor: that takes no division.
    least: f64,
    scale: f64,
    /// The peak until that day, and equity before the trade.
    peak: f64,
    equity: f64,
    /// The trade's place in its block.
    trade: u32,
    day: u32,
}

impl Dip {
    const NONE: Self = Self { least: 0.0, scale: 0.0, peak: 0.0, equity: 0.0, trade: 0, day: 0 };
}

/// What a block of trades does to equity; memory that books use again.
#[derive(Debug, Default)]
pub struct Ledger {
    moves: Vec<Move>,
    dips: Vec<Dip>,
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
        ledger: &mut Ledger,
        observer: &mut impl Observer,
    ) -> bool {
        let Settled { n_trades: n_booked, n_moves, n_dips } = settle(self, trades, symbol, ledger);
        observer.record(self, &ledger.moves[..n_moves]);
        self.sink(trades, symbol, &ledger.dips[..n_dips]);
        trades[..n_booked].iter().for_each(|trade| observer.trade(trade));
        trades.clear();
        self.is_alive()
    }

    /// Looks for falls inside bars that are deeper than all that is known.
    ///
    /// A whole day's extreme is at least as bad as that of its bars with the position. The margin is far above what rounding could turn round.
    fn sink(&mut self, trades: &[Trade], symbol: &Symbol<'_>, dips: &[Dip]) {
        let mut deepest = self.tally.drawdown_bar;
        for dip in dips {
            if dip.least > (1.0 + deepest + MARGIN * (1.0 - deepest)) * dip.scale {
                continue;
            }
            let trade = &trades[dip.trade as usize];
            if let Some(price) = worst_of_day(symbol, trade, self.costs.lives_after, dip.day) {
                let fall = self.costs.worth(dip.equity, trade, price) / dip.peak - 1.0;
                deepest = if fall < deepest { fall } else { deepest };
            }
        }
        self.tally.drawdown_bar = deepest;
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

/// How much of a block was settled, and how much of the ledger it takes.
struct Settled {
    n_trades: usize,
    n_moves: usize,
    n_dips: usize,
}

/// Sums up trades and lists what they do to equity.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn settle(book: &mut Book, trades: &mut [Trade], symbol: &Symbol<'_>, ledger: &mut Ledger) -> Settled {
    let costs = book.costs;
    let mut tally = book.tally;
    let Ledger { moves, dips } = ledger;
    let (mut pnl_peak, mut pnl_peak_ref) = (book.pnl_peak, book.pnl_peak_ref);
    let mut day = book.day;
    let mut peak = book.peak;
    let (mut at, mut n_dips) = (0, 0);
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
        let n_nights = (exit_day - entry_day) as usize;
        if at + n_nights + 2 > moves.len() {
            moves.resize(2 * (at + n_nights + 2), Move::NONE);
        }
        if n_dips + n_nights + 2 > dips.len() {
            dips.resize(2 * (n_dips + n_nights + 2), Dip::NONE);
        }
        // The days without position before the entry: nothing changes after the first of them.
        moves[at] = Move { value: tally.equity, day, next: entry_day };
        at += usize::from(day < entry_day);
        let share = trade.share;
        let equity = tally.equity;
        let trade = &*trade;
        let marked = |day: u32| {
            let value = costs.worth(equity, trade, symbol.day_close[day as usize]);
            Move { value, day, next: day + 1 }
        };
        let extremes = if trade.side > 0 { &symbol.day_low } else { &symbol.day_high };
        let dip = |day: u32, peak: f64| {
            let extreme = extremes[day as usize];
            let pnl = sign * (extreme - entry) - (entry + extreme) * (costs.bps.market * 1e-4);
            let (least, scale) = if costs.is_additive() {
                (equity + pnl - MARGIN * entry, peak)
            } else {
                (equity * (entry + share * pnl), entry * peak)
            };
            Dip { least, scale, peak, equity, trade: n_booked as u32, day }
        };
        // The first mark is written even where the trade closes before it: that cannot be predicted either.
        dips[n_dips] = dip(entry_day, peak);
        n_dips += 1;
        let is_overnight = entry_day < exit_day;
        let first = marked(entry_day);
        moves[at] = first;
        at += usize::from(is_overnight);
        peak = if is_overnight && first.value > peak { first.value } else { peak };
        for held in entry_day + 1..exit_day {
            dips[n_dips] = dip(held, peak);
            n_dips += 1;
            let mark = marked(held);
            moves[at] = mark;
            at += 1;
            peak = if mark.value > peak { mark.value } else { peak };
        }
        dips[n_dips] = dip(exit_day, peak);
        n_dips += usize::from(is_overnight);
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
    Settled { n_trades: n_booked, n_moves: at, n_dips }
}

/// The worst price of a position on the bars of a day during which it is open to the close.
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

/// The extreme of some values, in lanes of their own first: it depends neither on the order nor on how often a value is looked at.
#[inline(always)]
fn reduce(values: &[f64], extreme: impl Fn(f64, f64) -> f64) -> Option<f64> {
    const LANES: usize = 8;
    let Some(last) = values.last_chunk::<LANES>() else { return values.iter().copied().reduce(extreme) };
    let mut lanes = *last;
    for chunk in values.as_chunks::<LANES>().0 {
        lanes = std::array::from_fn(|lane| extreme(lanes[lane], chunk[lane]));
    }
    let halves: [f64; 4] = std::array::from_fn(|lane| extreme(lanes[lane], lanes[lane + 4]));
    let [a, b]: [f64; 2] = std::array::from_fn(|lane| extreme(halves[lane], halves[lane + 2]));
    Some(extreme(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_in_lanes_are_those_of_one_value_after_the_other() {
        let values: Vec<f64> = (0..40_u32).map(|at| 1.0 + f64::from(at * 29 % 41)).collect();
        for from in 0..values.len() {
            for to in from..=values.len() {
                let part = &values[from..to];
                assert_eq!(reduce(part, point::minimum), part.iter().copied().reduce(f64::min));
                assert_eq!(reduce(part, point::maximum), part.iter().copied().reduce(f64::max));
            }
        }
    }
}
