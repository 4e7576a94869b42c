//! How an entry is filled: where, at what price, which bars count from then on, and where the next signal may be.
//!
//! The rules are those of `docs/semantics.md`, sections 2 and 3. The lone walk and the convoy both use them; `fill.cu` is their twin.

use tidemill_market::Bars;

use super::exit::Exited;
use super::frame::Opening;
use crate::strategy::{Execution, FillAt, FirstCheck};
use crate::trade::Trade;

/// An entry as it is filled.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    /// The bar whose close gave the signal.
    pub(super) signal: usize,
    /// The bar of the fill.
    pub(super) bar: usize,
    pub(super) price: f64,
    /// First bar whose high and low are looked at.
    pub(super) first: usize,
}

impl Fill {
    /// Before anything is known.
    pub(super) const NONE: Self = Self { signal: 0, bar: 0, price: f64::NAN, first: 0 };

    /// The fill of a signal. The bar after it has to exist.
    #[inline(always)]
    pub(super) fn new(bars: &Bars, execution: &Execution, signal: usize) -> Self {
        let (bar, price, first) = match (execution.fill, execution.first_check) {
            (FillAt::NextOpen, FirstCheck::EntryBar) => (signal + 1, bars.open[signal + 1], signal + 1),
            (FillAt::NextOpen, _) => (signal + 1, bars.open[signal + 1], signal + 2),
            (FillAt::Close, _) => (signal, bars.close[signal], signal + 1),
        };
        Self { signal, bar, price, first }
    }

    /// The bar during which a position is open before any bar is inspected.
    #[inline(always)]
    pub(super) fn uninspected(&self) -> Option<usize> {
        (self.first > self.signal + 1).then_some(self.signal + 1)
    }

    /// The trade as it was closed; what it earned is not known yet.
    #[inline(always)]
    pub(super) fn trade(
        &self,
        long: bool,
        opening: &Opening,
        share: f64,
        target: f64,
        exited: &Exited,
        skipped: u32,
    ) -> Trade {
        Trade {
            side: if long { 1 } else { -1 },
            signal_idx: self.signal,
            entry_idx: self.bar,
            exit_idx: exited.bar,
            entry: self.price,
            exit: exited.price,
            stop: opening.stop,
            target,
            risk: opening.risk,
            share,
            pnl: 0.0,
            ret: 0.0,
            r: 0.0,
            reason: exited.reason,
            order: exited.order,
            at_close: exited.at_close,
            ambiguous: exited.ambiguous,
            skipped,
        }
    }
}

/// Bars from the bar of an entry to the first at whose close the position has been open throughout: an entry at the close leaves its bar out.
pub(super) fn lives_after(execution: &Execution) -> u32 {
    u32::from(execution.fill == FillAt::Close)
}

/// The first bar after an exit whose signal may open a position.
#[inline(always)]
pub(super) fn next_signal(execution: &Execution, exit_bar: usize) -> usize {
    let cooldown = execution.cooldown as usize;
    match execution.fill {
        FillAt::NextOpen => exit_bar + cooldown,
        FillAt::Close => exit_bar + cooldown.max(1),
    }
}
