//! A trial that was evaluated again, as the dashboard draws it.

use tidemill_dash::web::{Backtest, BarQuery, BarWindow, Curve, SourceError, SymbolLine, Trade};
use tidemill_market::{Bars, Universe};
use tidemill_page::report::{self, EquityKind, SymbolSeries};

use super::evaluation::Evaluated;

/// Most trades in an answer; of more, the first.
const MAX_TRADES: usize = 5000;

/// Days of a curve of a trial.
const MAX_DAYS: usize = 3000;

/// Curve, figures and trades of one symbol or of all.
pub fn backtest(evaluated: &Evaluated, symbol: Option<&str>) -> Result<Backtest, SourceError> {
    let report = &evaluated.report;
    let is_additive = report.equity_kind == EquityKind::Additive;
    let series =
        match symbol {
            Some(name) => {
                Some(report.series.iter().find(|series| series.symbol == name).ok_or_else(|| {
                    SourceError::Missing { what: format!("the data has no symbol `{name}`") }
                })?)
            }
            // One symbol is all symbols.
            None if report.portfolio.is_none() => report.series.first(),
            None => None,
        };
    let told: Vec<&SymbolSeries> = series.map_or_else(|| report.series.iter().collect(), |one| vec![one]);
    let mut trades: Vec<(&str, &report::TradeRow)> = told
        .iter()
        .flat_map(|series| series.trades.iter().map(|trade| (series.symbol.as_str(), trade)))
        .collect();
    trades.sort_by_key(|(_, trade)| (trade.entry_ms, trade.exit_ms));
    let drawn = match (series, &report.portfolio) {
        (Some(series), _) => Some(&series.curve),
        (None, portfolio) => portfolio.as_ref(),
    };
    let marks = told.first().map(|series| series.marks.as_slice()).unwrap_or_default();
    Ok(Backtest {
        symbol: series.map(|series| series.symbol.clone()),
        symbols: report.series.iter().map(|series| line(series, is_additive)).collect(),
        segments: report.segments.clone(),
        figures: report.metrics.iter().map(|row| (row.label.clone(), figure(row))).collect(),
        is_additive,
        curve: drawn.map(|drawn| curve(drawn, is_additive, MAX_DAYS)).unwrap_or_default(),
        n_trades: trades.len(),
        trades: trades
            .into_iter()
            .take(MAX_TRADES)
            .map(|(symbol, trade)| told_trade(symbol, trade))
            .collect(),
        marks: marks.to_vec(),
        notes: report.notes.clone(),
        is_as_stored: evaluated.is_as_stored,
    })
}

fn figure(row: &report::MetricRow) -> Vec<String> {
    if row.segments.is_empty() {
        return vec![row.text.clone()];
    }
    row.segments.iter().map(|text| text.clone().unwrap_or_else(|| "–".into())).collect()
}

fn line(series: &SymbolSeries, is_additive: bool) -> SymbolLine {
    let last = series.curve.equity.last().map(|(_, equity)| *equity);
    let change = last
        .map(|last| if is_additive { last - series.curve.start } else { last / series.curve.start - 1.0 });
    SymbolLine {
        name: series.symbol.clone(),
        n_trades: series.trades.len(),
        change: change.filter(|change| change.is_finite()),
    }
}

fn told_trade(symbol: &str, trade: &report::TradeRow) -> Trade {
    Trade {
        symbol: symbol.to_owned(),
        side: trade.side,
        entry_ms: trade.entry_ms,
        exit_ms: trade.exit_ms,
        entry: trade.entry,
        exit: trade.exit,
        stop: trade.stop,
        target: trade.target,
        ret: trade.ret,
        pnl: trade.pnl,
        r: Some(trade.r).filter(|r| r.is_finite()),
        bars: trade.bars,
        reason: trade.reason.clone(),
    }
}

/// Equity and how far it is below its highest, which counts from the start; of more days than `most`, evenly spread ones.
pub fn curve(of: &report::Curve, is_additive: bool, most: usize) -> Curve {
    let mut highest = of.start;
    let drawdown: Vec<f64> = of
        .equity
        .iter()
        .map(|(_, equity)| {
            highest = highest.max(*equity);
            if is_additive { equity - highest } else { equity / highest - 1.0 }
        })
        .collect();
    // Evenly spread days would miss the deepest one, which is what a drawdown is looked at for.
    let step = of.equity.len().div_ceil(most).max(1);
    let deepest = |from: usize| {
        let stretch = &drawdown[from..(from + step).min(drawdown.len())];
        stretch.iter().copied().fold(0.0, f64::min)
    };
    let places: Vec<usize> = (0..of.equity.len()).step_by(step).collect();
    let ends = || places.iter().map(|from| (from + step - 1).min(of.equity.len() - 1));
    Curve {
        start: of.start,
        ms: ends().map(|at| of.equity[at].0).collect(),
        equity: ends().map(|at| of.equity[at].1).collect(),
        drawdown: places.iter().map(|from| deepest(*from)).collect(),
        buy_hold: ends().filter_map(|at| of.buy_hold.get(at).map(|(_, held)| *held)).collect(),
    }
}

/// Prices over a stretch of time, joined where there are too many.
pub fn bars(universe: &Universe, query: &BarQuery) -> Result<BarWindow, SourceError> {
    let found = match &query.symbol {
        Some(name) => universe.symbols.iter().find(|bars| bars.symbol == *name),
        None => universe.symbols.first(),
    };
    let Some(bars) = found else {
        let name = query.symbol.as_deref().unwrap_or("any");
        return Err(SourceError::Missing { what: format!("the data has no symbol `{name}`") });
    };
    let begin = query.from_ms.map_or(0, |from| bars.ts_ms.partition_point(|ms| *ms < from));
    let end = query.to_ms.map_or(bars.len(), |to| bars.ts_ms.partition_point(|ms| *ms <= to)).max(begin);
    let joined = (end - begin).div_ceil(query.points).max(1);
    let mut window = BarWindow {
        symbol: bars.symbol.clone(),
        timeframe_ms: bars.timeframe_ms,
        first_ms: bars.ts_ms.first().copied().unwrap_or(0),
        last_ms: bars.ts_ms.last().copied().unwrap_or(0),
        joined,
        ms: Vec::new(),
        open: Vec::new(),
        high: Vec::new(),
        low: Vec::new(),
        close: Vec::new(),
    };
    let mut at = begin;
    while at < end {
        // Joined bars begin at the same places wherever the window does, so that they stand still when it moves.
        let next = ((at / joined + 1) * joined).min(end);
        join(bars, at..next, &mut window);
        at = next;
    }
    Ok(window)
}

fn join(bars: &Bars, range: std::ops::Range<usize>, window: &mut BarWindow) {
    let highest = bars.high[range.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = bars.low[range.clone()].iter().copied().fold(f64::INFINITY, f64::min);
    window.ms.push(bars.ts_ms[range.start]);
    window.open.push(bars.open[range.start]);
    window.high.push(highest);
    window.low.push(lowest);
    window.close.push(bars.close[range.end - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawdown_counts_from_the_start_and_survives_thinning() {
        let mut equity: Vec<(i64, f64)> = (0..10_000).map(|day| (day, 2.0)).collect();
        equity[0].1 = 0.5;
        equity[5001].1 = 1.0;
        let curve = curve(&report::Curve { start: 1.0, equity, buy_hold: Vec::new() }, false, MAX_DAYS);
        assert!(curve.ms.len() <= MAX_DAYS);
        assert_eq!(curve.ms.last(), Some(&9999));
        assert_eq!(curve.drawdown[0], -0.5);
        assert_eq!(curve.drawdown.iter().filter(|depth| **depth == -0.5).count(), 2);
    }

    #[test]
    fn joined_bars_keep_extremes_and_stand_still() {
        let universe = tidemill_market::synth::regime(&tidemill_market::synth::RegimeOptions {
            n_bars: 1000,
            n_symbols: 1,
            ..Default::default()
        });
        let bars = &universe.symbols[0];
        let ask = |from: usize, points: usize| {
            let query = BarQuery { symbol: None, from_ms: Some(bars.ts_ms[from]), to_ms: None, points };
            super::bars(&universe, &query).unwrap()
        };
        let all = ask(0, 100);
        assert_eq!((all.ms.len(), all.joined), (100, 10));
        let highest = bars.high.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(all.high.iter().copied().fold(f64::NEG_INFINITY, f64::max), highest);
        assert_eq!((all.open[1], all.close[1]), (bars.open[10], bars.close[19]));
        let later = ask(15, 100);
        assert_eq!((later.joined, later.ms[1]), (10, bars.ts_ms[20]));
        let unknown = BarQuery { symbol: Some("none".into()), from_ms: None, to_ms: None, points: 10 };
        assert!(matches!(super::bars(&universe, &unknown), Err(SourceError::Missing { .. })));
        let beyond = BarQuery { symbol: None, from_ms: Some(i64::MAX), to_ms: Some(i64::MIN), points: 1 };
        assert!(super::bars(&universe, &beyond).unwrap().ms.is_empty());
    }
}
