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
