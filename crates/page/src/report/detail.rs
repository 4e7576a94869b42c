//! Which bars go into the file, and at which resolution.
//!
//! All bars within a budget; beyond it, single bars around the trades and equal buckets elsewhere, because a reader
//! zooms into trades and only passes over the rest.

use std::ops::Range;

use super::TradeRow;

/// Bars of context kept beside a trade, tried from the most generous down.
const MARGINS: [usize; 3] = [80, 30, 8];

/// Shares a budget of bars among symbols: each gets what it asks for or an equal part of what the smaller ones leave.
pub fn share(budget: usize, wanted: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i]);
    let mut given = vec![0; wanted.len()];
    let mut left = budget;
    for (done, &i) in order.iter().enumerate() {
        given[i] = wanted[i].min(left / (wanted.len() - done));
        left -= given[i];
    }
    given
}

/// First source bar of every bar to draw: `0..n_bars` one by one if they fit the budget, otherwise as the module
/// says. May exceed the budget by one bucket per gap between trades.
pub fn starts(n_bars: usize, trades: &[TradeRow], budget: usize) -> Vec<i64> {
    if n_bars <= budget {
        return (0..n_bars as i64).collect();
    }
    let budget = budget.max(1);
    let windows = MARGINS
        .iter()
        .map(|&margin| windows(n_bars, trades, margin))
        .find(|windows| windows.iter().map(Range::len).sum::<usize>() <= budget / 4 * 3)
        .unwrap_or_default();
    let fine: usize = windows.iter().map(Range::len).sum();
    let bucket = (n_bars - fine).div_ceil((budget - fine).max(1)).max(1);
    let mut starts = Vec::with_capacity(budget + windows.len());
    let mut at = 0;
    for window in windows.into_iter().chain(std::iter::once(n_bars..n_bars)) {
        starts.extend((at..window.start).step_by(bucket).map(|i| i as i64));
        starts.extend(window.clone().map(|i| i as i64));
        at = window.end;
    }
    starts
}

/// Ranges of bars around the trades, merged and ascending.
fn windows(n_bars: usize, trades: &[TradeRow], margin: usize) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = trades
        .iter()
        .filter(|trade| trade.entry_idx < n_bars)
        .map(|trade| {
            let last = trade.exit_idx.max(trade.entry_idx).saturating_add(margin).min(n_bars - 1);
            trade.entry_idx.min(trade.signal_idx).saturating_sub(margin)..last + 1
        })
        .collect();
    all.sort_by_key(|window| window.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for window in all {
        match merged.last_mut() {
            Some(last) if window.start <= last.end => last.end = last.end.max(window.end),
            _ => merged.push(window),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(entry_idx: usize, exit_idx: usize) -> TradeRow {
        TradeRow { signal_idx: entry_idx, entry_idx, exit_idx, ..TradeRow::default() }
    }

    #[test]
    fn small_symbols_leave_their_share_to_large_ones() {
        assert_eq!(share(100, &[10, 500, 30]), [10, 60, 30]);
        assert_eq!(share(100, &[500, 500]), [50, 50]);
        assert_eq!(share(100, &[]), [0; 0]);
    }

    #[test]
    fn bars_within_the_budget_are_all_kept() {
        assert_eq!(starts(4, &[], 4), [0, 1, 2, 3]);
    }

    #[test]
    fn bars_around_a_trade_stay_single() {
        let starts = starts(100_000, &[trade(50_000, 50_010)], 4_000);
        assert!(starts.len() <= 4_001, "{}", starts.len());
        assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((49_990..50_020).all(|i| starts.binary_search(&i).is_ok()));
        assert_eq!(starts[0], 0);
        assert!(starts[1] > 20);
    }

    #[test]
    fn too_many_trades_give_equal_buckets() {
        let trades: Vec<TradeRow> = (0..1_000).map(|i| trade(i * 100, i * 100 + 90)).collect();
        let starts = starts(100_000, &trades, 4_000);
        assert_eq!(starts.len(), 4_000);
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 25));
    }
}
