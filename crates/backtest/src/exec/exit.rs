//! How a position is closed: its levels, and how they, ruin, time, a signal or the end of the data close it.
//!
//! The rules are those of `docs/semantics.md`, section 3. The lone walk and the convoy both use them; `exit.cu` is their twin.

use tidemill_market::Bars;

use super::fill::Fill;
use crate::strategy::{EndOfData, Execution, FillAt, GapFill, OrderKind};
use crate::trade::Reason;

/// Whether a formula gives a price: positive and finite, in a form that compiles to comparisons of whole vectors.
#[inline(always)]
pub(super) fn is_price(value: f64) -> bool {
    (value > 0.0) & (value <= f64::MAX)
}

/// Whether a stop or a target lies on the wrong side of the fill, or at it. `sign` is 1 for a long and −1 for a short.
#[inline(always)]
pub(super) fn is_wrong(sign: f64, entry: f64, level: f64, favourable: bool) -> bool {
    sign * if favourable { level - entry } else { entry - level } <= 0.0
}

/// What one R is where the strategy does not say: the distance to the first stop.
#[inline(always)]
pub(super) fn stop_distance(sign: f64, entry: f64, stop: f64) -> f64 {
    sign * (entry - stop)
}

/// What one R is, given a distance that may be none.
#[inline(always)]
pub(super) fn risk(distance: f64, entry: f64) -> f64 {
    if is_price(distance) { distance } else { 0.01 * entry }
}

/// The nearer of two levels below the market; one that is NaN is none.
#[inline(always)]
pub(super) fn nearer_below(level: f64, nearest: f64) -> f64 {
    if level > nearest { level } else { nearest }
}

/// The nearer of two levels above the market; one that is NaN is none.
#[inline(always)]
pub(super) fn nearer_above(level: f64, nearest: f64) -> f64 {
    if level < nearest { level } else { nearest }
}

/// The bar at whose close a time exit closes a position; `None` if its formula gives no number of bars.
#[inline(always)]
pub(super) fn time_bar(fill: &Fill, n_bars: f64) -> Option<usize> {
    let held = n_bars.min(u32::MAX as f64).ceil() as usize;
    (n_bars >= 0.0 && n_bars.is_finite()).then(|| (fill.bar + held).max(fill.first))
}

/// The earlier of two bars with their exits; of two on one bar the first.
#[inline(always)]
pub(super) fn earlier(known: (usize, usize), bar: usize, exit: usize) -> (usize, usize) {
    if bar < known.0 { (bar, exit) } else { known }
}

/// How a position was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exited {
    pub(super) bar: usize,
    pub(super) price: f64,
    pub(super) reason: Reason,
    /// The kind of order that closed it.
    pub(super) order: OrderKind,
    /// Whether a signal closed it at the open: the bar before is where a reversal may enter.
    pub(super) by_signal: bool,
    /// Whether the position was open until the close of the bar.
    pub(super) at_close: bool,
    /// Whether another order inside the bar would have closed it otherwise.
    pub(super) ambiguous: bool,
}

impl Exited {
    /// Whether it leaves no trade: it was open at the end of the data.
    #[inline(always)]
    pub(super) fn is_discarded(&self, execution: &Execution) -> bool {
        self.reason == Reason::End && execution.end_of_data == EndOfData::Discard
    }

    /// Whether no trade follows.
    #[inline(always)]
    pub(super) fn is_last(&self) -> bool {
        matches!(self.reason, Reason::End | Reason::Ruin)
    }
}

/// A level as it stands on one bar. One that does not exist has a price of NaN, which nothing reaches.
#[derive(Clone, Copy)]
pub(super) struct ActiveLevel {
    /// Its place among the exits of the side.
    pub(super) exit: usize,
    /// Whether it is a target; the others are against the position.
    pub(super) favourable: bool,
    pub(super) price: f64,
}

/// The prices of a bar as a position sees them.
#[derive(Clone, Copy)]
struct Prices {
    open: f64,
    high: f64,
    low: f64,
    long: bool,
}

impl Prices {
    #[inline(always)]
    fn new(bars: &Bars, bar: usize, long: bool) -> Self {
        Self { open: bars.open[bar], high: bars.high[bar], low: bars.low[bar], long }
    }

    /// Whether the bar opens beyond a level, and whether it touches it. A long's stop and a short's target lie below the market.
    #[inline(always)]
    fn meet(&self, price: f64, favourable: bool) -> (bool, bool) {
        if self.long != favourable {
            (self.open <= price, self.low <= price)
        } else {
            (self.open >= price, self.high >= price)
        }
    }

    /// The fill of a position of which this bar leaves nothing.
    #[inline(always)]
    fn ruined(&self, ruin: f64) -> Option<f64> {
        match self.meet(ruin, false) {
            (true, _) => Some(self.open),
            (false, true) => Some(ruin),
            _ => None,
        }
    }
}

/// Whether a bar whose levels are not looked at ruins a position; `ruin` is NaN if no price does.
#[inline(always)]
pub(super) fn ruin_only(bars: &Bars, bar: usize, long: bool, ruin: f64) -> Option<Exited> {
    let price = Prices::new(bars, bar, long).ruined(ruin)?;
    Some(inside(bar, price, Reason::Ruin, OrderKind::Stop, false))
}

/// Whether an inspected bar closes a position: ruin where no adverse level is nearer, else the levels in their order, each with its gap
/// rule first.
#[inline(always)]
pub(super) fn resolve(
    bars: &Bars,
    bar: usize,
    long: bool,
    execution: &Execution,
    ruin: f64,
    levels: impl Iterator<Item = ActiveLevel> + Clone,
) -> Option<Exited> {
    let prices = Prices::new(bars, bar, long);
    if let Some(price) = prices.ruined(ruin) {
        let nearer = |level: ActiveLevel| {
            !level.favourable && if long { level.price > ruin } else { level.price < ruin }
        };
        if !levels.clone().any(nearer) {
            let ambiguous = is_ambiguous(&prices, ruin, levels);
            return Some(inside(bar, price, Reason::Ruin, OrderKind::Stop, ambiguous));
        }
    }
    for level in levels.clone() {
        let (gapped, touched) = prices.meet(level.price, level.favourable);
        if gapped || touched {
            let rule = if level.favourable { execution.gap_fill_target } else { execution.gap_fill_stop };
            let price = if gapped && rule == GapFill::Open { prices.open } else { level.price };
            let ambiguous = !gapped && is_ambiguous(&prices, ruin, levels);
            let order = if level.favourable { OrderKind::Limit } else { OrderKind::Stop };
            return Some(inside(bar, price, Reason::Exit(level.exit, gapped), order, ambiguous));
        }
    }
    None
}

/// Whether a bar reaches a level on either side and opens beyond none.
#[inline(always)]
fn is_ambiguous(prices: &Prices, ruin: f64, levels: impl Iterator<Item = ActiveLevel>) -> bool {
    let (mut beyond, mut adverse) = prices.meet(ruin, false);
    let mut target = false;
    for level in levels {
        let (gapped, touched) = prices.meet(level.price, level.favourable);
        beyond |= gapped;
        target |= touched && level.favourable;
        adverse |= touched && !level.favourable;
    }
    adverse && target && !beyond
}

#[inline(always)]
fn inside(bar: usize, price: f64, reason: Reason, order: OrderKind, ambiguous: bool) -> Exited {
    Exited { bar, price, reason, order, by_signal: false, at_close: false, ambiguous }
}

/// How a trade closes that no level stops: by time, by signal, or with the data. `time` and `leave` are a bar and an exit each.
#[inline(always)]
pub(super) fn run_out(
    bars: &Bars,
    execution: &Execution,
    time: (usize, usize),
    leave: (usize, usize),
    last: usize,
) -> Exited {
    let next_open = execution.fill == FillAt::NextOpen;
    let time_first = if next_open || time.0 != leave.0 { time.0 <= leave.0 } else { time.1 < leave.1 };
    let at_close = |bar: usize, reason: Reason| Exited {
        bar,
        price: bars.close[bar],
        reason,
        order: OrderKind::Market,
        by_signal: false,
        at_close: true,
        ambiguous: false,
    };
    if time.0 <= last && time_first {
        return at_close(time.0, Reason::Exit(time.1, false));
    }
    let reason = Reason::Exit(leave.1, false);
    if next_open && leave.0 < last {
        let bar = leave.0 + 1;
        let price = bars.open[bar];
        let order = OrderKind::Market;
        return Exited { bar, price, reason, order, by_signal: true, at_close: false, ambiguous: false };
    }
    if !next_open && leave.0 <= last {
        return at_close(leave.0, reason);
    }
    at_close(last, Reason::End)
}
