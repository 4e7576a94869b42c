//! What a walk counts: the accumulators of one trial over one segment.
//!
//! Sums only, in the order of time, so that a GPU can keep them too; roots and powers are taken on the host by [`crate::metric`].

/// Accumulators of one trial over one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Closed trades.
    pub trades: u32,
    /// Those with a profit after costs.
    pub wins: u32,
    /// Those on the long side.
    pub longs: u32,
    /// Those closed only because the data ended.
    pub open_at_end: u32,
    /// Bars from entry to exit, all trades together.
    pub bars_held: u64,
    /// Profit per unit, in price units.
    pub sum_pnl: f64,
    /// The winners' part of it.
    pub sum_win: f64,
    /// The losers' part of it, not positive.
    pub sum_loss: f64,
    /// Returns of the trades.
    pub sum_ret: f64,
    /// Results in multiples of risk.
    pub sum_r: f64,
    /// Their squares.
    pub sum_r2: f64,
    /// Deepest fall of the cumulated profit from its peak, the peak starting at 0.
    pub drawdown_pnl: f64,
    /// The same with the peak starting at the first trade.
    pub drawdown_pnl_ref: f64,
    /// Equity at the end.
    pub equity: f64,
    /// Deepest relative fall of equity from its peak.
    pub drawdown: f64,
    /// Days marked.
    pub days: u32,
    /// Daily returns.
    pub sum_daily: f64,
    /// Their squares.
    pub sum_daily2: f64,
    /// Squares of the negative ones.
    pub sum_down2: f64,
    /// Most days in a row below a former peak.
    pub longest_drawdown: u32,
    /// Bars of the segment.
    pub bars: u64,
}

/// Keeps equity through a segment: trades as they close, marks at the end of each day.
pub struct Book<'a> {
    tally: Tally,
    additive: bool,
    peak: f64,
    mark: f64,
    /// Last bar of each day.
    last_bar: &'a [u32],
    /// The next day to be marked, and its last bar.
    day: u32,
    day_end: usize,
    first_day: u32,
    /// Day on which equity last stood at its peak, plus one; 0 is the day before the first.
    peak_day: u32,
    pnl_peak: f64,
    pnl_peak_ref: f64,
}

impl<'a> Book<'a> {
    /// Opens the book of a segment: its days (the last bar of each), its bars, and whether equity adds rather than compounds.
    pub fn new(last_bar: &'a [u32], first_day: u32, last_day: u32, bars: usize, additive: bool) -> Self {
        Self {
            tally: Tally {
                equity: 1.0,
                days: last_day - first_day + 1,
                bars: bars as u64,
                ..Tally::default()
            },
            additive,
            peak: 1.0,
            mark: 1.0,
            last_bar,
            day: first_day,
            day_end: last_bar[first_day as usize] as usize,
            first_day,
            peak_day: 0,
            pnl_peak: 0.0,
            pnl_peak_ref: f64::NEG_INFINITY,
        }
    }

    /// Equity now.
    #[inline(always)]
    pub fn equity(&self) -> f64 {
        self.tally.equity
    }

    /// The next day to be marked.
    #[inline(always)]
    pub fn day(&self) -> u32 {
        self.day
    }

    /// Last bar of the next day to be marked.
    #[inline(always)]
    pub fn day_end(&self) -> usize {
        self.day_end
    }

    /// Marks the days that end before `bar`, on which there was no position at the end.
    #[inline(always)]
    pub fn flat_until(&mut self, bar: usize, daily: &mut impl FnMut(u32, f64)) {
        if self.day_end < bar {
            self.flat_days(bar, daily);
        }
    }

    fn flat_days(&mut self, bar: usize, daily: &mut impl FnMut(u32, f64)) {
        let equity = self.tally.equity;
        self.mark(equity, daily);
        // On the other days nothing changed: no return, but time passes.
        if self.day_end < bar {
            while self.day_end < bar {
                self.next_day();
            }
            if equity >= self.peak {
                self.peak_day = self.day - self.first_day;
            } else {
                self.under_water();
            }
        }
    }

    #[inline(always)]
    fn next_day(&mut self) {
        self.day += 1;
        self.day_end = self.last_bar.get(self.day as usize).map_or(usize::MAX, |bar| *bar as usize);
    }

    /// Marks the next day, at whose end equity, with the position at the close, is `value`.
    #[inline(always)]
    pub fn mark(&mut self, value: f64, daily: &mut impl FnMut(u32, f64)) {
        let change = if self.additive {
            value - self.mark
        } else if self.mark > 0.0 {
            value / self.mark - 1.0
        } else {
            0.0
        };
        // Selects instead of branches: which way a day went cannot be predicted, and adding 0 changes no bit.
        let square = change * change;
        self.tally.sum_daily += change;
        self.tally.sum_daily2 += square;
        self.tally.sum_down2 += if change < 0.0 { square } else { 0.0 };
        if change != 0.0 {
            daily(self.day, change);
        }
        self.mark = value;
        self.next_day();
        let below = self.below_peak(value);
        let today = self.day - self.first_day;
        self.peak_day = if below { self.peak_day } else { today };
        self.under_water();
    }

    /// Raises the peak or deepens the drawdown; whether `value` lies below the peak.
    #[inline(always)]
    fn below_peak(&mut self, value: f64) -> bool {
        let peak = if value > self.peak { value } else { self.peak };
        let fall = value / peak - 1.0;
        self.peak = peak;
        self.tally.drawdown = if fall < self.tally.drawdown { fall } else { self.tally.drawdown };
        value < peak
    }

    /// Counts the days since the peak.
    #[inline(always)]
    fn under_water(&mut self) {
        let length = self.day - self.first_day - self.peak_day;
        self.tally.longest_drawdown = self.tally.longest_drawdown.max(length);
    }

    /// Books a closed trade. `share` is the part of equity it committed.
    #[inline(always)]
    pub fn close(&mut self, trade: &crate::trade::Trade, share: f64) {
        let tally = &mut self.tally;
        tally.trades += 1;
        tally.longs += u32::from(trade.side > 0);
        tally.bars_held += (trade.exit_idx - trade.entry_idx) as u64;
        tally.sum_pnl += trade.pnl;
        let won = trade.pnl > 0.0;
        tally.wins += u32::from(won);
        tally.sum_win += if won { trade.pnl } else { 0.0 };
        tally.sum_loss += if won { 0.0 } else { trade.pnl };
        tally.sum_ret += trade.ret;
        tally.sum_r += trade.r;
        tally.sum_r2 += trade.r * trade.r;
        tally.open_at_end += u32::from(trade.reason == crate::trade::Reason::End);
        let cumulated = tally.sum_pnl;
        self.pnl_peak_ref = if cumulated > self.pnl_peak_ref { cumulated } else { self.pnl_peak_ref };
        self.pnl_peak = if cumulated > self.pnl_peak { cumulated } else { self.pnl_peak };
        let (fall, fall_ref) = (cumulated - self.pnl_peak, cumulated - self.pnl_peak_ref);
        tally.drawdown_pnl = if fall < tally.drawdown_pnl { fall } else { tally.drawdown_pnl };
        tally.drawdown_pnl_ref =
            if fall_ref < tally.drawdown_pnl_ref { fall_ref } else { tally.drawdown_pnl_ref };
        let equity = self.value(self.tally.equity, trade.pnl, trade.ret, share);
        self.tally.equity = equity;
        self.below_peak(equity);
    }

    /// Sets equity at the end of the next day, for books that are kept by the day only.
    pub fn move_to(&mut self, equity: f64) {
        self.tally.equity = equity;
        self.mark(equity, &mut |_, _| {});
    }

    /// Equity after a result: it compounds, and does not fall below nothing; or it adds in price units.
    #[inline(always)]
    pub fn value(&self, equity: f64, pnl: f64, ret: f64, share: f64) -> f64 {
        if self.additive {
            return equity + pnl;
        }
        let value = equity * (1.0 + share * ret);
        if value > 0.0 { value } else { 0.0 }
    }

    /// Marks the days that are left, and gives the sums.
    pub fn finish(mut self, daily: &mut impl FnMut(u32, f64)) -> Tally {
        let end = self.first_day + self.tally.days;
        if self.day < end {
            let equity = self.tally.equity;
            self.mark(equity, daily);
            if self.day < end {
                self.day = end;
                if equity < self.peak {
                    self.under_water();
                }
            }
        }
        self.tally
    }
}
