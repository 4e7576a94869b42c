//! What to do now: what one parameter set holds and wants after the last closed bar.
//!
//! It is the state of a back-test over all bars up to there, so that what is said today is what the back-test will have done
//! tomorrow ([docs/signal.md](../../../docs/signal.md)).

mod text;
mod watch;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::strategy::{ExitKind, FillAt, Strategy};
use tidemill_backtest::{Engine, EngineOptions, Outlook, OutlookPosition};
use tidemill_market::timestamp::format_ms;
use tidemill_market::{Bars, Universe};

use crate::backtest::param_values;
use crate::cut;
use crate::error::LabError;
use crate::trades::side_name;

pub use watch::SignalWatch;

/// What a strategy does at the next chance. On a reversal it exits and enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A signal of the bar closes the position.
    Exit,
    /// The next open opens a position.
    Enter,
    /// The position stays open.
    Hold,
    /// There is no position, and none is wanted.
    Nothing,
}

/// A level at which a position is closed inside the next bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalLevel {
    /// `stop`, `target`, `trail` or `breakeven`.
    pub kind: &'static str,
    /// The reason that a trade closed by it has.
    pub label: String,
    /// The price.
    pub price: f64,
    /// Whether the price depends on the fill, in whose place the last close stands.
    pub provisional: bool,
}

/// A position that is open, or about to be opened or closed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalPosition {
    /// `long` or `short`.
    pub side: &'static str,
    /// Open time of the bar whose close gave the signal.
    pub signal_time: String,
    /// Open time of the bar of the fill; `None` before it.
    pub entry_time: Option<String>,
    /// Fill price; the last close for an entry to come.
    pub entry: f64,
    /// What one R is.
    pub risk: f64,
    /// The levels of the next bar, in order of priority.
    pub levels: Vec<SignalLevel>,
    /// At which close from now a time exit closes it: 1 is that of the next bar.
    pub closes_in: Option<usize>,
    /// Why a signal closes it, if one does.
    pub reason: Option<String>,
}

/// The state of one symbol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SymbolSignal {
    /// The symbol.
    pub symbol: String,
    /// Open time of the last closed bar.
    pub bar_time: String,
    /// When it closed.
    pub close_time: String,
    /// Its close.
    pub close: f64,
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// The position that a signal closes.
    pub exit: Option<SignalPosition>,
    /// The position that the next open opens.
    pub enter: Option<SignalPosition>,
    /// The position that stays open.
    pub hold: Option<SignalPosition>,
    /// Whether nothing was left of equity before, so that trading has ended.
    pub ruined: bool,
}

/// What one parameter set holds and wants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalReport {
    /// Name of the strategy.
    pub strategy: String,
    /// Where entries and signal exits fill: `next_open` or `close`.
    pub fill: FillAt,
    /// The parameters.
    pub params: Map<String, Value>,
    /// The symbols that are traded, ordered by name.
    pub symbols: Vec<SymbolSignal>,
    /// What was left out, and what else to know.
    pub notes: Vec<String>,
    /// When the first of the bars that were left out closes, UTC milliseconds.
    #[serde(skip)]
    pub due_ms: Option<i64>,
}

/// Now, UTC milliseconds.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// The time by which bars have to have closed: as a user writes it, but not later than now.
pub fn at_ms(text: Option<&str>) -> Result<i64, LabError> {
    Ok(cut::time(text, "--at")?.map_or_else(now_ms, |at_ms| at_ms.min(now_ms())))
}

/// The state of a strategy with its default parameters after the last bar that has closed by `at_ms`, UTC milliseconds. `trade` names the
/// symbols that are traded, with `*` and `?`; the others are only read.
pub fn signal(
    strategy: &Strategy,
    universe: &Universe,
    trade: Option<&[String]>,
    at_ms: i64,
) -> Result<SignalReport, LabError> {
    let layout = Layout { trade: trade.map(<[String]>::to_vec), ..Layout::default() };
    layout.check_trade(universe)?;
    let mut notes = Vec::new();
    let (mut known, mut due_ms) = (Universe::default(), None::<i64>);
    for bars in &universe.symbols {
        let n_closed = bars.ts_ms.partition_point(|ts_ms| ts_ms.saturating_add(bars.timeframe_ms) <= at_ms);
        if n_closed < bars.len() {
            let (n_open, time) = (bars.len() - n_closed, format_ms(bars.ts_ms[n_closed]));
            let what = if n_open == 1 { "bar" } else { "bars" };
            let (symbol, at) = (&bars.symbol, format_ms(at_ms));
            due_ms = due_ms.into_iter().chain([bars.ts_ms[n_closed].saturating_add(bars.timeframe_ms)]).min();
            notes.push(format!("{symbol}: {n_open} {what} from {time} on left out, not closed by {at}"));
        }
        // One without a bar yet is still a symbol of the data, which others may read.
        known.symbols.push(if n_closed > 0 {
            with_next_bar(bars, n_closed, at_ms)
        } else {
            without_bars(bars)
        });
    }
    if known.symbols.iter().filter(|bars| layout.is_traded(bars)).all(|bars| bars.is_empty()) {
        let traded = universe.symbols.iter().filter(|bars| layout.is_traded(bars));
        let closes = traded.filter_map(|bars| Some(bars.ts_ms.first()? + bars.timeframe_ms));
        return Err(LabError::NoClosedBar { at_ms, first_ms: closes.min().unwrap_or(at_ms) });
    }
    let mut engine = Engine::new(strategy, &known, Vec::new(), EngineOptions::default())?;
    let space = engine.space();
    let row = space.default_point();
    let symbols =
        known.symbols.iter().enumerate().filter(|(_, bars)| !bars.is_empty() && layout.is_traded(bars));
    let symbols = symbols.map(|(at, bars)| describe(bars, engine.outlook(&row, at))).collect();
    Ok(SignalReport {
        strategy: strategy.name.clone(),
        fill: strategy.execution.fill,
        params: param_values(&space, &row).into_iter().collect(),
        symbols,
        notes,
        due_ms,
    })
}

/// A symbol before its first bar.
fn without_bars(bars: &Bars) -> Bars {
    let extra = bars.extra.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
    let (symbol, timeframe_ms, closes_only) = (bars.symbol.clone(), bars.timeframe_ms, bars.closes_only);
    Bars { symbol, timeframe_ms, closes_only, extra, ..Bars::default() }
}

/// The first bars, and one that has not closed by `at_ms`, at the last close. After a gap that is not the bar right behind
/// the last one: that would have closed, and other symbols would read it.
fn with_next_bar(bars: &Bars, n_bars: usize, at_ms: i64) -> Bars {
    let last = n_bars - 1;
    let close = bars.close[last];
    let column = |values: &[f64], next: f64| [&values[..n_bars], &[next]].concat();
    let timeframe_ms = bars.timeframe_ms.max(1);
    let n_ahead = at_ms.saturating_sub(bars.ts_ms[last]) / timeframe_ms;
    let next_ms = bars.ts_ms[last].saturating_add(n_ahead.max(1).saturating_mul(timeframe_ms));
    Bars {
        symbol: bars.symbol.clone(),
        timeframe_ms: bars.timeframe_ms,
        ts_ms: [&bars.ts_ms[..n_bars], &[next_ms]].concat(),
        open: column(&bars.open, close),
        high: column(&bars.high, close),
        low: column(&bars.low, close),
        close: column(&bars.close, close),
        volume: column(&bars.volume, 0.0),
        closes_only: bars.closes_only,
        extra: bars.extra.iter().map(|(name, values)| (name.clone(), column(values, f64::NAN))).collect(),
    }
}

fn describe(bars: &Bars, outlook: Outlook) -> SymbolSignal {
    let last = bars.len() - 2;
    let position = |found: OutlookPosition| SignalPosition {
        side: side_name(found.side),
        signal_time: format_ms(bars.ts_ms[found.signal_idx]),
        entry_time: (found.entry_idx <= last).then(|| format_ms(bars.ts_ms[found.entry_idx])),
        entry: found.entry,
        risk: found.risk,
        levels: found
            .levels
            .into_iter()
            .map(|level| SignalLevel {
                kind: kind_name(level.kind),
                label: level.label,
                price: level.price,
                provisional: level.is_provisional,
            })
            .collect(),
        closes_in: found.closes_in,
        reason: found.exit_label,
    };
    let Outlook { exit, enter, hold, is_ruined } = outlook;
    let wanted =
        [(exit.is_some(), Action::Exit), (enter.is_some(), Action::Enter), (hold.is_some(), Action::Hold)];
    let mut actions: Vec<Action> =
        wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, action)| action).collect();
    if actions.is_empty() {
        actions.push(Action::Nothing);
    }
    SymbolSignal {
        symbol: bars.symbol.clone(),
        bar_time: format_ms(bars.ts_ms[last]),
        close_time: format_ms(bars.ts_ms[last].saturating_add(bars.timeframe_ms)),
        close: bars.close[last],
        actions,
        exit: exit.map(position),
        enter: enter.map(position),
        hold: hold.map(position),
        ruined: is_ruined,
    }
}

fn kind_name(kind: ExitKind) -> &'static str {
    match kind {
        ExitKind::Stop | ExitKind::StopSeries => "stop",
        ExitKind::Target => "target",
        ExitKind::Trail => "trail",
        ExitKind::Breakeven => "breakeven",
        ExitKind::Signal => "signal",
        ExitKind::Time => "time",
    }
}
