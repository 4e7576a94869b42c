//! A closed trade.

use crate::strategy::OrderKind;

/// Why a trade was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// By this exit of its side; `true` if the bar opened beyond the level.
    Exit(usize, bool),
    /// Because the data ended.
    End,
    /// Because nothing was left of equity.
    Ruin,
}

/// A closed trade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trade {
    /// +1 long, −1 short.
    pub side: i8,
    /// The bar whose close gave the signal.
    pub signal_idx: usize,
    /// The bar of the fill.
    pub entry_idx: usize,
    /// The bar of the exit.
    pub exit_idx: usize,
    /// Fill price.
    pub entry: f64,
    /// Exit price.
    pub exit: f64,
    /// Level of the first stop, NaN if absent.
    pub stop: f64,
    /// Level of the first target, NaN if absent.
    pub target: f64,
    /// What one R was.
    pub risk: f64,
    /// The share of equity that it committed.
    pub share: f64,
    /// Profit of one unit after costs, in price units.
    pub pnl: f64,
    /// Profit over entry price.
    pub ret: f64,
    /// Profit over risk.
    pub r: f64,
    /// Why it was closed.
    pub reason: Reason,
    /// The kind of order that closed it.
    pub order: OrderKind,
    /// Whether it was closed at the close of its exit bar, and so was open for all of it.
    pub at_close: bool,
    /// Whether the exit depends on which extreme of the bar came first.
    pub ambiguous: bool,
    /// Entries since the trade before that were not taken because a level lay on the wrong side of the fill.
    pub skipped: u32,
}
