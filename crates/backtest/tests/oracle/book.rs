//! What the trades of a segment add up to, day by day, and the pool of several segments. Follows `docs/semantics.md`, sections 4 and 5.

use std::collections::BTreeMap;
use std::ops::Range;

use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::strategy::{Execution, FillAt, OrderKind, Sizing};
use tidemill_backtest::tally::Tally;
use tidemill_backtest::trade::{Reason, Trade};
use tidemill_market::{Bars, Universe};

use crate::walk::{equity_after, equity_after_trade, result};

/// Sums of a segment, and its daily returns by UTC day.
pub struct Booked {
    pub tally: Tally,
    pub daily: BTreeMap<i64, f64>,
}

/// Highest equity so far, and what fell below it.
struct HighWaterMark {
    peak: f64,
    deepest: f64,
    days_below: u32,
    longest: u32,
}

impl HighWaterMark {
    fn new() -> Self {
        Self { peak: 1.0, deepest: 0.0, days_below: 0, longest: 0 }
    }

    /// Notes a value; whether it lies below the peak.
    fn note(&mut self, value: f64) -> bool {
        if value >= self.peak {
            self.peak = value;
            return false;
        }
        self.deepest = self.deepest.min(value / self.peak - 1.0);
        true
    }

    fn note_day(&mut self, value: f64) {
        self.days_below = if self.note(value) { self.days_below + 1 } else { 0 };
        self.longest = self.longest.max(self.days_below);
    }
}

/// Sums of daily returns; those of nothing add nothing.
#[derive(Default)]
struct Days {
    count: u32,
    sum: f64,
    squares: f64,
    down: f64,
}

impl Days {
    fn add(&mut self, change: f64) {
        self.count += 1;
        if change != 0.0 {
            self.sum += change;
            self.squares += change * change;
        }
        if change < 0.0 {
            self.down += change * change;
        }
    }
}

/// Books the trades of a segment, bar by bar.
pub fn book(
    execution: &Execution,
    bars: &Bars,
    range: Range<usize>,
    trades: &[Trade],
    skipped: u32,
) -> Booked {
    let mut tally = Tally { equity: 1.0, skipped, bars: range.len() as u64, ..Tally::default() };
    let mut water = HighWaterMark::new();
    let mut by_day = HighWaterMark::new();
    let mut inside_bars = 0.0_f64;
    let mut days = Days::default();
    let mut daily = BTreeMap::new();
    // The worst price of the open position since its entry or the last mark.
    let mut worst: Option<f64> = None;
    let mut mark = 1.0;
    let (mut pnl_peak, mut pnl_peak_ref) = (0.0_f64, f64::NEG_INFINITY);
    // The lowest mark of a position lies on a bar during which it is open to the close.
    let worse = |worst: Option<f64>, trade: &Trade, bar: usize| {
        let first = trade.entry_idx + usize::from(execution.fill == FillAt::Close);
        if bar < first {
            return worst;
        }
        let price = if trade.side > 0 { bars.low[bar] } else { bars.high[bar] };
        Some(match worst {
            None => price,
            Some(worst) if trade.side > 0 => worst.min(price),
            Some(worst) => worst.max(price),
        })
    };
    let fall_to = |worst: Option<f64>, trade: &Trade, equity: f64, peak: f64| {
        worst.map_or(0.0, |price| {
            let (pnl, ret) = result(execution, OrderKind::Market, trade.side, trade.entry, price);
            equity_after(execution.sizing, equity, trade.share, pnl, ret) / peak - 1.0
        })
    };
    for bar in range.clone() {
        for trade in trades.iter().filter(|trade| trade.exit_idx == bar) {
            count(&mut tally, trade);
            if trade.at_close {
                worst = worse(worst, trade, bar);
            }
            inside_bars = inside_bars.min(fall_to(worst.take(), trade, tally.equity, water.peak));
            pnl_peak = pnl_peak.max(tally.sum_pnl);
            pnl_peak_ref = pnl_peak_ref.max(tally.sum_pnl);
            tally.drawdown_pnl = tally.drawdown_pnl.min(tally.sum_pnl - pnl_peak);
            tally.drawdown_pnl_ref = tally.drawdown_pnl_ref.min(tally.sum_pnl - pnl_peak_ref);
            tally.equity = equity_after_trade(execution.sizing, tally.equity, trade);
            water.note(tally.equity);
        }
        let open = trades.iter().find(|trade| trade.entry_idx <= bar && bar < trade.exit_idx);
        if let Some(open) = open {
            worst = worse(worst, open, bar);
        }
        let day_ends = bar + 1 == range.end || bars.day(bar + 1) != bars.day(bar);
        if !day_ends {
            continue;
        }
        let mut value = tally.equity;
        if let Some(open) = open {
            inside_bars = inside_bars.min(fall_to(worst.take(), open, tally.equity, water.peak));
            let (pnl, ret) = result(execution, OrderKind::Market, open.side, open.entry, bars.close[bar]);
            value = equity_after(execution.sizing, tally.equity, open.share, pnl, ret);
        }
        let change = daily_return(execution.sizing, mark, value);
        days.add(change);
        daily.insert(bars.day(bar), change);
        water.note_day(value);
        by_day.note(value);
        mark = value;
    }
    tally.drawdown_bar = inside_bars.min(water.deepest);
    tally.drawdown_daily = by_day.deepest;
    Booked { tally: with_days(tally, &water, &days), daily }
}

/// The return of a day from mark to mark; nothing comes of nothing.
fn daily_return(sizing: Sizing, before: f64, after: f64) -> f64 {
    if sizing == Sizing::Unit {
        after - before
    } else if before > 0.0 {
        after / before - 1.0
    } else {
        0.0
    }
}

fn with_days(tally: Tally, water: &HighWaterMark, days: &Days) -> Tally {
    Tally {
        drawdown: water.deepest,
        longest_drawdown: water.longest,
        days: days.count,
        sum_daily: days.sum,
        sum_daily2: days.squares,
        sum_down2: days.down,
        ..tally
    }
}

fn count(tally: &mut Tally, trade: &Trade) {
    tally.trades += 1;
    tally.longs += u32::from(trade.side > 0);
    tally.open_at_end += u32::from(trade.reason == Reason::End);
    tally.ambiguous += u32::from(trade.ambiguous);
    tally.bars_held += (trade.exit_idx - trade.entry_idx) as u64;
    tally.sum_pnl += trade.pnl;
    if trade.pnl > 0.0 {
        tally.wins += 1;
        tally.sum_win += trade.pnl;
        tally.sum_ret_win += trade.ret;
    } else {
        tally.sum_loss += trade.pnl;
        tally.sum_ret_loss += trade.ret;
    }
    tally.sum_ret += trade.ret;
    tally.sum_r += trade.r;
    tally.sum_r2 += trade.r * trade.r;
}

/// Several segments of one role as one; a single segment is itself.
pub fn pool(
    sizing: Sizing,
    universe: &Universe,
    segments: &[Segment],
    booked: &[Booked],
    role: Role,
) -> Option<Tally> {
    let members: Vec<(&Segment, &Booked)> =
        segments.iter().zip(booked).filter(|(segment, _)| segment.role == role).collect();
    match members[..] {
        [] => return None,
        [(_, only)] => return Some(only.tally),
        _ => {}
    }
    let mut pooled = Tally { equity: 1.0, ..Tally::default() };
    for (_, Booked { tally, .. }) in &members {
        pooled.trades += tally.trades;
        pooled.wins += tally.wins;
        pooled.longs += tally.longs;
        pooled.open_at_end += tally.open_at_end;
        pooled.ambiguous += tally.ambiguous;
        pooled.skipped += tally.skipped;
        pooled.bars_held += tally.bars_held;
        pooled.bars += tally.bars;
        pooled.sum_pnl += tally.sum_pnl;
        pooled.sum_win += tally.sum_win;
        pooled.sum_loss += tally.sum_loss;
        pooled.sum_ret += tally.sum_ret;
        pooled.sum_ret_win += tally.sum_ret_win;
        pooled.sum_ret_loss += tally.sum_ret_loss;
        pooled.sum_r += tally.sum_r;
        pooled.sum_r2 += tally.sum_r2;
        pooled.drawdown_bar = pooled.drawdown_bar.min(tally.drawdown_bar);
        pooled.drawdown_pnl = pooled.drawdown_pnl.min(tally.drawdown_pnl);
        pooled.drawdown_pnl_ref = pooled.drawdown_pnl_ref.min(tally.drawdown_pnl_ref);
    }
    let mut symbols: Vec<usize> = members.iter().map(|(segment, _)| segment.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    let first = members.iter().filter_map(|(_, booked)| booked.daily.keys().next()).min().copied();
    let last = members.iter().filter_map(|(_, booked)| booked.daily.keys().last()).max().copied();
    let mut calendar: Vec<i64> = universe
        .symbols
        .iter()
        .flat_map(|bars| (0..bars.len()).map(|bar| bars.day(bar)))
        .filter(|day| Some(*day) >= first && Some(*day) <= last)
        .collect();
    calendar.sort_unstable();
    calendar.dedup();
    let mut water = HighWaterMark::new();
    let mut days = Days::default();
    for day in calendar {
        let mut sum = 0.0;
        for (_, booked) in &members {
            sum += booked.daily.get(&day).copied().unwrap_or(0.0);
        }
        let before = pooled.equity;
        pooled.equity = if sizing == Sizing::Unit {
            before + sum
        } else {
            let after = before * (1.0 + sum / symbols.len() as f64);
            if after > 0.0 { after } else { 0.0 }
        };
        days.add(daily_return(sizing, before, pooled.equity));
        water.note_day(pooled.equity);
    }
    pooled.drawdown_daily = water.deepest;
    Some(with_days(pooled, &water, &days))
}
