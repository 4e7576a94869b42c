//! The book of one segment: trades as they close, equity at the end of each day, and the sums of both.
//!
//! A walk first finds its trades, which needs no equity, and books them in blocks. Booking then runs without a branch that could not
//! be predicted and with its divisions off the critical path: first every trade is turned into [`Move`]s of equity, then the moves
//! are summed. The order of every sum is that of time.

use multiversion::multiversion;

use super::symbol::Symbol;
use super::walk::Observer;
use crate::strategy::{Execution, Sizing};
use crate::tally::Tally;
use crate::trade::{Reason, Trade};

/// What booking a trade needs to know of the strategy.
#[derive(Clone, Copy)]
pub struct Terms {
    /// Cost of one unit of turnover, times 10,000.
    pub cost_bps: f64,
    /// How much of equity a trade commits.
    pub sizing: Sizing,
}

impl Terms {
    /// Those of a strategy.
    pub fn new(execution: &Execution) -> Self {
        Self { cost_bps: execution.fee_bps + execution.slippage_bps, sizing: execution.sizing }
    }

    /// Whether equity adds rather than compounds.
    pub fn is_additive(&self) -> bool {
        self.sizing == Sizing::Unit
    }

    /// Equity after a result: it compounds, and does not fall below nothing; or it adds in price units.
    #[inline(always)]
    pub fn equity(&self, equity: f64, pnl: f64, ret: f64, share: f64) -> f64 {
        if self.is_additive() {
            return equity + pnl;
        }
        let value = equity * (1.0 + share * ret);
        if value > 0.0 { value } else { 0.0 }
    }

    /// The part of equity that a trade commits.
    #[inline(always)]
    pub fn share(&self, entry: f64, risk: f64) -> f64 {
        match self.sizing {
            Sizing::AllIn | Sizing::Unit => 1.0,
            Sizing::Fraction(share) => share,
            Sizing::Risk(share) => {
                let share = share * entry / risk;
                if share < 1.0 { share } else { 1.0 }
            }
        }
    }
}

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
    terms: Terms,
    peak: f64,
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
    pub fn new(terms: Terms, first_day: u32, last_day: u32, bars: usize) -> Self {
        Self {
            tally: Tally {
                equity: 1.0,
                days: last_day - first_day + 1,
                bars: bars as u64,
                ..Tally::default()
            },
            terms,
            peak: 1.0,
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
        self.terms.is_additive() || self.tally.equity > 0.0
    }

    /// Sums up moves of equity: daily returns, drawdown, days under water.
    pub fn record(&mut self, moves: &[Move], daily: &mut impl FnMut(u32, f64)) {
        let additive = self.terms.is_additive();
        let mut tally = self.tally;
        let (mut peak, mut mark, mut peak_day) = (self.peak, self.mark, self.peak_day);
        for &Move { value, day, next } in moves {
            let is_mark = day != Move::CLOSE;
            let change = if additive {
                value - mark
            } else if mark > 0.0 {
                value / mark - 1.0
            } else {
                0.0
            };
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
            let today = next.wrapping_sub(self.first_day);
            peak_day = if is_mark && value >= peak { today } else { peak_day };
            let length = if is_mark { today - peak_day } else { 0 };
            tally.longest_drawdown = tally.longest_drawdown.max(length);
        }
        self.tally = tally;
        (self.peak, self.mark, self.peak_day) = (peak, mark, peak_day);
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
    let terms = book.terms;
    let mut tally = book.tally;
    let (mut pnl_peak, mut pnl_peak_ref) = (book.pnl_peak, book.pnl_peak_ref);
    let mut day = book.day;
    let mut at = 0;
    let mut n_booked = 0;
    for trade in trades {
        let Trade { entry, exit, risk, .. } = *trade;
        let sign = f64::from(trade.side);
        let result = |exit: f64| sign * (exit - entry) - (entry + exit) * terms.cost_bps / 10_000.0;
        let pnl = result(exit);
        let ret = pnl / entry;
        let r = pnl / risk;
        (trade.pnl, trade.ret, trade.r) = (pnl, ret, r);
        tally.trades += 1;
        tally.longs += u32::from(trade.side > 0);
        tally.open_at_end += u32::from(trade.reason == Reason::End);
        tally.bars_held += (trade.exit_idx - trade.entry_idx) as u64;
        // Selects instead of branches: which trades win cannot be predicted, and adding 0 changes no bit.
        let won = pnl > 0.0;
        tally.wins += u32::from(won);
        tally.sum_pnl += pnl;
        tally.sum_win += if won { pnl } else { 0.0 };
        tally.sum_loss += if won { 0.0 } else { pnl };
        tally.sum_ret += ret;
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
        let share = terms.share(entry, risk);
        let equity = tally.equity;
        let marked = |day: u32| {
            let pnl = result(symbol.day_close[day as usize]);
            Move { value: terms.equity(equity, pnl, pnl / entry, share), day, next: day + 1 }
        };
        // The first mark is written even where the trade closes before it: that cannot be predicted either.
        moves[at] = marked(entry_day);
        at += usize::from(entry_day < exit_day);
        for held in entry_day + 1..exit_day {
            moves[at] = marked(held);
            at += 1;
        }
        tally.equity = terms.equity(tally.equity, pnl, ret, share);
        moves[at] = Move { value: tally.equity, day: Move::CLOSE, next: 0 };
        at += 1;
        day = exit_day;
        n_booked += 1;
        if !terms.is_additive() && tally.equity <= 0.0 {
            break;
        }
    }
    book.tally = tally;
    (book.pnl_peak, book.pnl_peak_ref) = (pnl_peak, pnl_peak_ref);
    book.day = day;
    (n_booked, at)
}
