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
pub struct Book {
    tally: Tally,
    additive: bool,
    peak: f64,
    mark: f64,
    next_day: u32,
    first_day: u32,
    /// Day on which equity last stood at its peak, plus one; 0 is the day before the first.
    peak_day: u32,
    pnl_peak: f64,
    pnl_peak_ref: f64,
}

impl Book {
    /// Opens the book of a segment: its days, its bars, and whether equity adds rather than compounds.
    pub fn new(first_day: u32, last_day: u32, bars: usize, additive: bool) -> Self {
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
            next_day: first_day,
            first_day,
            peak_day: 0,
            pnl_peak: 0.0,
            pnl_peak_ref: f64::NAN,
        }
    }

    /// Equity now.
    #[inline(always)]
    pub fn equity(&self) -> f64 {
        self.tally.equity
    }

    /// Marks the days before `day`, on which there was no position at the end.
    #[inline]
    pub fn flat_until(&mut self, day: u32, daily: &mut impl FnMut(u32, f64)) {
        if self.next_day >= day {
            return;
        }
        let equity = self.tally.equity;
        self.mark(self.next_day, equity, daily);
        // On the other days nothing changed: no return, but time passes.
        if equity >= self.peak {
            self.peak_day = day - self.first_day;
        } else {
            self.under_water(day - 1);
        }
        self.next_day = day;
    }

    /// Marks a day at whose end equity, with the position at the close, is `value`.
    #[inline]
    pub fn mark(&mut self, day: u32, value: f64, daily: &mut impl FnMut(u32, f64)) {
        let change = if self.additive {
            value - self.mark
        } else if self.mark > 0.0 {
            value / self.mark - 1.0
        } else {
            0.0
        };
        if change != 0.0 {
            self.tally.sum_daily += change;
            self.tally.sum_daily2 += change * change;
            if change < 0.0 {
                self.tally.sum_down2 += change * change;
            }
            daily(day, change);
        }
        self.mark = value;
        self.next_day = day + 1;
        if self.below_peak(value) {
            self.under_water(day);
        } else {
            self.peak_day = day + 1 - self.first_day;
        }
    }

    /// Whether `value` lies below the peak; raises the peak or deepens the drawdown.
    #[inline(always)]
    fn below_peak(&mut self, value: f64) -> bool {
        if value >= self.peak {
            self.peak = value;
            return false;
        }
        let fall = value / self.peak - 1.0;
        if fall < self.tally.drawdown {
            self.tally.drawdown = fall;
        }
        true
    }

    #[inline(always)]
    fn under_water(&mut self, day: u32) {
        let length = day + 1 - self.first_day - self.peak_day;
        if length > self.tally.longest_drawdown {
            self.tally.longest_drawdown = length;
        }
    }

    /// Books a closed trade. `share` is the part of equity it committed.
    #[inline]
    pub fn close(&mut self, trade: &crate::trade::Trade, share: f64) {
        let tally = &mut self.tally;
        tally.trades += 1;
        tally.longs += u32::from(trade.side > 0);
        tally.bars_held += (trade.exit_idx - trade.entry_idx) as u64;
        tally.sum_pnl += trade.pnl;
        if trade.pnl > 0.0 {
            tally.wins += 1;
            tally.sum_win += trade.pnl;
        } else {
            tally.sum_loss += trade.pnl;
        }
        tally.sum_ret += trade.ret;
        tally.sum_r += trade.r;
        tally.sum_r2 += trade.r * trade.r;
        tally.open_at_end += u32::from(trade.reason == crate::trade::Reason::End);
        let cumulated = tally.sum_pnl;
        if self.pnl_peak_ref.is_nan() || cumulated > self.pnl_peak_ref {
            self.pnl_peak_ref = cumulated;
        }
        if cumulated > self.pnl_peak {
            self.pnl_peak = cumulated;
        }
        let (fall, fall_ref) = (cumulated - self.pnl_peak, cumulated - self.pnl_peak_ref);
        if fall < tally.drawdown_pnl {
            tally.drawdown_pnl = fall;
        }
        if fall_ref < tally.drawdown_pnl_ref {
            tally.drawdown_pnl_ref = fall_ref;
        }
        let equity = self.value(self.tally.equity, trade.pnl, trade.ret, share);
        self.tally.equity = equity;
        self.below_peak(equity);
    }

    /// Sets equity at the end of a day, for books that are kept by the day only.
    pub fn move_to(&mut self, day: u32, equity: f64) {
        self.tally.equity = equity;
        self.mark(day, equity, &mut |_, _| {});
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

    /// Marks what is left up to and including `last_day`, and gives the sums.
    pub fn finish(mut self, last_day: u32, daily: &mut impl FnMut(u32, f64)) -> Tally {
        self.flat_until(last_day + 1, daily);
        self.tally
    }
}
