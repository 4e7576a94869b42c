//! What a trade costs, the share of equity it commits, what it leaves, and the price that leaves nothing.
//!
//! The lone walk, the convoy and the book all use these rules; `cost.cu` is their twin.

use super::fill;
use super::symbol::Symbol;
use crate::strategy::{CostBps, Execution, OrderKind, Sizing};
use crate::trade::Trade;

/// What a trade costs, how much of equity it commits and what it leaves of it.
#[derive(Clone, Copy)]
pub struct Costs {
    /// Cost of one unit of turnover, times 10,000, by kind of order.
    pub bps: CostBps,
    /// How much of equity a trade commits.
    pub sizing: Sizing,
    /// Bars from the bar of the entry to the first during which the position is open throughout.
    pub lives_after: u32,
}

impl Costs {
    /// Those of a strategy.
    pub fn new(execution: &Execution) -> Self {
        Self {
            bps: CostBps {
                market: execution.fee_bps.market + execution.slippage_bps.market,
                stop: execution.fee_bps.stop + execution.slippage_bps.stop,
                limit: execution.fee_bps.limit + execution.slippage_bps.limit,
            },
            sizing: execution.sizing,
            lives_after: fill::lives_after(execution),
        }
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

    /// Equity with an open position at a price.
    #[inline(always)]
    pub fn worth(&self, equity: f64, trade: &Trade, price: f64) -> f64 {
        let pnl = self.pnl(f64::from(trade.side), trade.entry, price, OrderKind::Market);
        self.equity(equity, pnl, pnl / trade.entry, trade.share)
    }

    /// The return between two marks of equity: a share of the first, or the difference in price units.
    #[inline(always)]
    pub fn change(&self, before: f64, now: f64) -> f64 {
        if self.is_additive() {
            now - before
        } else if before > 0.0 {
            now / before - 1.0
        } else {
            0.0
        }
    }

    /// The price that leaves nothing of equity: NaN if there is none, or if no bar of the symbol reaches it.
    #[inline(always)]
    pub fn ruin(&self, symbol: &Symbol<'_>, long: bool, entry: f64, share: f64) -> f64 {
        if self.is_additive() || !self.may_ruin(symbol, long, entry) {
            return f64::NAN;
        }
        let price = self.ruin_at(long, entry, share);
        if price > 0.0 && price <= f64::MAX { price } else { f64::NAN }
    }

    /// Whether some bar may reach the price at which all of equity would be lost if all of it were committed: less of it lasts longer.
    /// A multiplication tells, with a margin far above what rounding could turn round.
    #[inline(always)]
    pub fn may_ruin(&self, symbol: &Symbol<'_>, long: bool, entry: f64) -> bool {
        let (cost_in, cost_out) = (self.bps.market * 1e-4, self.bps.stop * 1e-4);
        // With costs near a whole side the formula is badly conditioned, and beyond it turns round: nothing is known before it is computed.
        let unreached = if long {
            entry * (cost_in * (1.0 + 1e-9) + 1e-12) < symbol.lowest * (1.0 - cost_out)
        } else {
            entry * ((2.0 - cost_in) * (1.0 - 1e-9)) > symbol.highest * (1.0 + cost_out)
        };
        !(unreached && self.bps.market < 9_000.0 && self.bps.stop < 9_000.0)
    }

    #[inline(always)]
    fn ruin_at(&self, long: bool, entry: f64, share: f64) -> f64 {
        let (cost_in, cost_out) = (self.bps.market / 10_000.0, self.bps.stop / 10_000.0);
        if long {
            entry * (1.0 + cost_in - 1.0 / share) / (1.0 - cost_out)
        } else {
            entry * (1.0 - cost_in + 1.0 / share) / (1.0 + cost_out)
        }
    }

    /// Profit of one unit after costs, in price units, if it is closed by this kind of order. Where both sides cost the same their prices are
    /// added first, which leaves the bits that results had before there were kinds.
    #[inline(always)]
    pub fn pnl(&self, sign: f64, entry: f64, exit: f64, order: OrderKind) -> f64 {
        let CostBps { market, stop, limit } = self.bps;
        let out = match order {
            OrderKind::Market => market,
            OrderKind::Stop => stop,
            OrderKind::Limit => limit,
        };
        let cost = if out == market { (entry + exit) * market } else { entry * market + exit * out };
        sign * (exit - entry) - cost / 10_000.0
    }

    /// The part of equity that a formula of the strategy gives: all of it at most, `None` if there is none.
    #[inline(always)]
    pub fn share_of_size(size: f64) -> Option<f64> {
        (size > 0.0).then_some(if size < 1.0 { size } else { 1.0 })
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
