//! What a trial holds and wants after the last closed bar of a symbol.
//!
//! The bars end with one that has not happened yet, where signals of the bar before it may fill; all its prices are the last close.
//! The walk is the one of a back-test, so that both agree by construction.

use super::Engine;
use crate::exec::exit;
use crate::exec::fill::Fill;
use crate::exec::frame::{Opening, Scratch};
use crate::exec::walk::{Observer, SideRun, Walker};
use crate::strategy::{EndOfData, Execution, ExitKind, FillAt, InvalidLevel, Sizing};
use crate::trade::{Reason, Trade};

/// A level at which a position is closed inside the next bar.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlookLevel {
    /// Stop, target, trail or break-even.
    pub kind: ExitKind,
    /// The reason that a trade closed by it has.
    pub label: String,
    /// The price.
    pub price: f64,
    /// Whether the price depends on the fill, in whose place the last close stands.
    pub is_provisional: bool,
}

/// A position that is open, or about to be opened or closed.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlookPosition {
    /// +1 long, −1 short.
    pub side: i8,
    /// The bar whose close gave the signal.
    pub signal_idx: usize,
    /// The bar of the fill; not there yet for an entry to come.
    pub entry_idx: usize,
    /// Fill price; the last close for an entry to come.
    pub entry: f64,
    /// What one R is.
    pub risk: f64,
    /// The levels that are looked for in the next bar, in order of priority.
    pub levels: Vec<OutlookLevel>,
    /// At which close from now a time exit closes it: 1 is that of the next bar.
    pub closes_in: Option<usize>,
    /// Why a signal closes it, if one does.
    pub exit_label: Option<String>,
}

/// What one trial holds and wants after the last closed bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// The position that a signal of the bar closes: at the next open, or with `fill = "close"` at the bar's own close.
    pub exit: Option<OutlookPosition>,
    /// The position that the next open opens.
    pub enter: Option<OutlookPosition>,
    /// The position that stays open.
    pub hold: Option<OutlookPosition>,
    /// Whether nothing is left of equity, so that trading has ended.
    pub is_ruined: bool,
}

/// Trades, and the last signal that was filled or would have been.
#[derive(Default)]
struct Record {
    trades: Vec<Trade>,
    entry: Option<usize>,
}

impl Observer for Record {
    fn entry(&mut self, signal: usize) {
        self.entry = Some(signal);
    }

    fn trade(&mut self, trade: &Trade) {
        self.trades.push(*trade);
    }

    fn hears_days(&self) -> bool {
        false
    }
}

impl Engine<'_> {
    /// The outlook of one trial on a symbol whose last bar has not happened yet; nothing if it has no other.
    pub fn outlook(&mut self, row: &[f64], symbol: usize) -> Outlook {
        let n_bars = self.symbols[symbol].bars.len();
        let Some(last) = n_bars.checked_sub(2) else { return Outlook::default() };
        let params = self.decode(row);
        let scalars = vec![self.scalars(&params, self.symbols[symbol].bars.timeframe_ms)];
        let prepared = self.prepare_one(symbol, &scalars);
        let this = &*self;
        this.with_columns(symbol, 0, &scalars[0], &prepared, |frame| {
            let (bars, mut scratch) = (&this.symbols[symbol], Scratch::default());
            // A position that is open now is open, whatever becomes of it in the end.
            let execution = Execution { end_of_data: EndOfData::Close, ..this.strategy.execution.clone() };
            let mut walk = |execution: &Execution, first: usize| {
                let (sides, mut record) = (this.bind(0, &prepared, frame), Record::default());
                let mut walker = Walker::new(bars, *frame, execution, sides);
                let tally = walker.walk(first..n_bars, &mut scratch, &mut record);
                (record, tally.equity)
            };
            let (record, equity) = walk(&execution, 0);
            if equity <= 0.0 && execution.sizing != Sizing::Unit {
                return Outlook { is_ruined: true, ..Outlook::default() };
            }
            let fills_next = execution.fill == FillAt::NextOpen;
            let wants_entry = fills_next && record.entry == Some(last);
            // What the open will be decides whether the levels are valid; here they are shown in any case.
            let taken = Execution {
                invalid_stop: InvalidLevel::Take,
                invalid_target: InvalidLevel::Take,
                ..execution.clone()
            };
            let entering = wants_entry.then(|| walk(&taken, last).0.trades.first().copied()).flatten();
            let sides = this.bind(0, &prepared, frame);
            let mut position = |trade: &Trade| {
                this.position(trade, symbol, &sides, &execution, &scalars[0], &mut Scratch::default())
            };
            let closing = if fills_next { last + 1 } else { last };
            let by_signal = |trade: &Trade| {
                trade.exit_idx == closing && trade.at_close != fills_next && this.is_by_signal(trade)
            };
            let is_open =
                |trade: &&Trade| trade.entry_idx <= last && trade.exit_idx > last && !by_signal(trade);
            // A trade is at most the second from the end: the entry to come follows the one that a signal closes.
            let recent = &record.trades[record.trades.len().saturating_sub(2)..];
            Outlook {
                exit: recent.iter().find(|trade| by_signal(trade)).map(|trade| OutlookPosition {
                    exit_label: Some(this.label(trade, &scalars[0])),
                    levels: Vec::new(),
                    closes_in: None,
                    ..position(trade)
                }),
                enter: entering.as_ref().map(&mut position),
                hold: recent.iter().find(is_open).map(&mut position),
                is_ruined: false,
            }
        })
    }

    fn is_by_signal(&self, trade: &Trade) -> bool {
        let side = &self.plan.sides[usize::from(trade.side < 0)];
        match (trade.reason, side) {
            (Reason::Exit(exit, _), Some(side)) => side.exits[exit].kind == ExitKind::Signal,
            _ => false,
        }
    }

    /// A trade with its levels for the bar that has not happened yet.
    fn position(
        &self,
        trade: &Trade,
        symbol: usize,
        sides: &[SideRun<'_>],
        execution: &Execution,
        scalars: &[f64],
        scratch: &mut Scratch,
    ) -> OutlookPosition {
        let bars = &*self.symbols[symbol].bars;
        let next = bars.len() - 1;
        let (long, sign) = (trade.side > 0, f64::from(trade.side));
        let is_new = trade.entry_idx == next;
        // The best price since the position is open; an entry at the close leaves its bar out.
        let from = trade.entry_idx + usize::from(execution.fill == FillAt::Close);
        let best = (from..next).fold(trade.entry, |best, bar| {
            let price = if long { bars.high[bar] } else { bars.low[bar] };
            if sign * price > sign * best { price } else { best }
        });
        let fill = Fill::new(bars, execution, trade.signal_idx);
        let opening = Opening { entry: trade.entry, stop: trade.stop, risk: trade.risk };
        let roots = self.program.sides[usize::from(!long)].as_ref();
        let (mut levels, mut closes_at) = (Vec::new(), None::<usize>);
        let run = sides.iter().find(|side| side.is_long() == long);
        for bound in run.map_or(&[][..], SideRun::exits) {
            let (at, kind) = (bound.exit, bound.kind());
            let number = bound.number(trade.signal_idx, &opening, scratch);
            let armed = trade.entry + sign * (number * trade.risk);
            let followed = bound.followed(trade.signal_idx, next.saturating_sub(1), &opening, scratch);
            let price = match kind {
                ExitKind::StopSeries if exit::is_price(followed) => followed,
                ExitKind::Stop | ExitKind::Target if exit::is_price(number) => number,
                ExitKind::Trail if number >= 0.0 && number.is_finite() => best - sign * number,
                ExitKind::Breakeven if number.is_finite() && sign * best >= sign * armed => trade.entry,
                ExitKind::Time => {
                    let bar = exit::time_bar(&fill, number);
                    closes_at = closes_at.into_iter().chain(bar).min();
                    continue;
                }
                _ => continue,
            };
            let reads_fill = roots.is_some_and(|side| self.program.graph.info(side.exits[at].value).position);
            let moves = matches!(kind, ExitKind::Trail | ExitKind::Breakeven);
            levels.push(OutlookLevel {
                kind,
                label: self.label(&Trade { reason: Reason::Exit(at, false), ..*trade }, scalars),
                price,
                is_provisional: is_new && (reads_fill || moves),
            });
        }
        OutlookPosition {
            side: trade.side,
            signal_idx: trade.signal_idx,
            entry_idx: trade.entry_idx,
            entry: trade.entry,
            risk: trade.risk,
            levels,
            closes_in: closes_at.map(|bar| (bar + 1).saturating_sub(next)),
            exit_label: None,
        }
    }
}
