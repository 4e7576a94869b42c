//! Fills in the report page.

use serde_json::Value;
use tidemill_backtest::strategy::Sizing;
use tidemill_backtest::{Benchmark, POOL_NOTE};
use tidemill_market::{DAY_MS, timeframe, timestamp};
use tidemill_page::report::{Curve, EquityKind, MetricRow, ReportPage, SymbolSeries, TimeMark, TradeRow};

use tidemill_lab::{BacktestReport, PartName};

use super::finite;
use tidemill_lab::number;

/// Most segments shown as columns.
const MAX_COLUMNS: usize = 12;

pub(super) fn report(evaluation: &BacktestReport) -> ReportPage {
    let strategy = &evaluation.experiment.strategy;
    let symbols = &evaluation.experiment.data.universe.symbols;
    let additive = strategy.execution.sizing == Sizing::Unit;
    let first = symbols.iter().filter_map(|bars| bars.ts_ms.first()).min().copied().unwrap_or(0);
    let last = symbols.iter().filter_map(|bars| bars.ts_ms.last()).max().copied().unwrap_or(0);
    let names: Vec<&str> = symbols.iter().take(4).map(|bars| bars.symbol.as_str()).collect();
    let more = if symbols.len() > 4 { format!(" and {} more", symbols.len() - 4) } else { String::new() };
    let bar = symbols.first().map_or_else(String::new, |bars| timeframe::format_duration(bars.timeframe_ms));
    let mut notes = vec![format!(
        "Sharpe and Sortino are annualised ({}), from equity marked at the end of each UTC day, open positions at the close less costs.",
        super::year_text(evaluation)
    )];
    notes.push(match &evaluation.experiment.data.benchmark {
        None => "Buy & hold buys every symbol at the first open of a part and closes it at the last close there, with the same costs.".into(),
        Some(bars) => format!(
            "Buy & hold is that of {}, bought at the first open of a part and closed at the last close there, with the same costs.",
            bars.symbol
        ),
    });
    if symbols.len() > 1 {
        notes.push(POOL_NOTE.into());
    }
    notes.extend(super::notes(evaluation).cloned());
    let (segments, metrics) = metric_rows(evaluation);
    ReportPage {
        title: strategy.name.clone(),
        subtitle: format!(
            "{}{more} · {bar} bars · {} to {}",
            names.join(", "),
            &timestamp::format_ms(first)[..10.min(timestamp::format_ms(first).len())],
            &timestamp::format_ms(last)[..10.min(timestamp::format_ms(last).len())]
        ),
        strategy: strategy.source.clone(),
        generated: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        version: format!("Tidemill {}", env!("CARGO_PKG_VERSION")),
        parameters: evaluation
            .params
            .iter()
            .map(|(name, value)| {
                (name.clone(), if value.is_null() { "not active".into() } else { plain(value) })
            })
            .collect(),
        execution: execution_rows(evaluation),
        notes,
        metrics,
        segments,
        equity_kind: if additive { EquityKind::Additive } else { EquityKind::Compound },
        year_days: evaluation.year_days,
        portfolio: (symbols.len() > 1).then(|| portfolio(evaluation, additive)),
        series: (0..symbols.len()).map(|at| symbol_series(evaluation, at, additive)).collect(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn execution_rows(evaluation: &BacktestReport) -> Vec<(String, String)> {
    match serde_json::to_value(&evaluation.experiment.strategy.execution) {
        Ok(Value::Object(map)) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        _ => Vec::new(),
    }
}

/// All figures, a column for each part that is shown and for single segments where those say more.
fn metric_rows(evaluation: &BacktestReport) -> (Vec<String>, Vec<MetricRow>) {
    let parts = &evaluation.parts;
    let mut names: Vec<String> = parts.shown().iter().map(|part| part.part.label().to_owned()).collect();
    let n_segments =
        if super::shows_segments(evaluation, MAX_COLUMNS) { evaluation.segments.len() } else { 0 };
    names.extend(evaluation.segments[..n_segments].iter().map(|segment| segment.name.clone()));
    let rows = parts.table().into_iter().map(|row| {
        let text = |value: f64| number::metric(&row.label, Some(value));
        let of_segments = (0..n_segments).map(|at| super::segment_value(evaluation, at, row.key));
        let whole = row.values.last().copied().flatten();
        MetricRow {
            key: row.key.into(),
            value: whole,
            text: number::metric(&row.label, whole),
            segments: row.values.iter().copied().chain(of_segments).map(|value| value.map(text)).collect(),
            label: row.label,
        }
    });
    (names, rows.collect())
}

fn symbol_series(evaluation: &BacktestReport, symbol: usize, additive: bool) -> SymbolSeries {
    let bars = &evaluation.experiment.data.universe.symbols[symbol];
    let mine: Vec<usize> =
        (0..evaluation.segments.len()).filter(|at| evaluation.segments[*at].symbol == symbol).collect();
    let trades = mine
        .iter()
        .flat_map(|at| evaluation.details[*at].trades.iter().zip(&evaluation.details[*at].labels))
        .map(|(trade, reason)| TradeRow {
            side: trade.side,
            signal_idx: trade.signal_idx,
            entry_idx: trade.entry_idx,
            exit_idx: trade.exit_idx,
            entry_ms: bars.ts_ms[trade.entry_idx],
            exit_ms: bars.ts_ms[trade.exit_idx],
            entry: trade.entry,
            exit: trade.exit,
            stop: finite(trade.stop),
            target: finite(trade.target),
            pnl: trade.pnl,
            ret: trade.ret,
            r: trade.r,
            bars: trade.exit_idx - trade.entry_idx,
            reason: reason.clone(),
        })
        .collect();
    let marks = mine
        .iter()
        .skip(1)
        .map(|at| {
            let segment = &evaluation.segments[*at];
            let label = match evaluation.segment_parts[*at] {
                PartName::InSample => segment.name.clone(),
                unseen => unseen.label().to_owned(),
            };
            TimeMark { ms: bars.ts_ms[segment.range.start], label }
        })
        .collect();
    SymbolSeries {
        symbol: bars.symbol.clone(),
        timeframe_ms: bars.timeframe_ms,
        year_days: evaluation.symbol_year_days[symbol],
        ts_ms: bars.ts_ms.clone(),
        open: bars.open.clone(),
        high: bars.high.clone(),
        low: bars.low.clone(),
        close: bars.close.clone(),
        volume: bars.volume.clone(),
        trades,
        curve: curve(evaluation, symbol, &mine, additive),
        marks,
    }
}

/// What holding came to by the end of each of these days.
fn held_by(days: &[i64], held: &Benchmark, additive: bool) -> Vec<(i64, f64)> {
    let mut changes = held.daily.iter().copied().peekable();
    let mut value = if additive { 0.0 } else { 1.0 };
    let mut values = Vec::with_capacity(days.len());
    for day in days {
        while let Some((_, change)) = changes.next_if(|(changed, _)| changed <= day) {
            value = if additive { value + change } else { value * (1.0 + change) };
        }
        values.push((day * DAY_MS, value));
    }
    values
}

/// Equity at the end of each day, carried on from segment to segment, beside holding the benchmark.
fn curve(evaluation: &BacktestReport, symbol: usize, segments: &[usize], additive: bool) -> Curve {
    let bars = &evaluation.experiment.data.universe.symbols[symbol];
    let start = if additive { 0.0 } else { 1.0 };
    let mut equity: Vec<(i64, f64)> = Vec::new();
    // Days of the symbol, as the engine counts them.
    let mut days: Vec<i64> = Vec::new();
    for bar in 0..bars.len() {
        if days.last() != Some(&bars.day(bar)) {
            days.push(bars.day(bar));
        }
    }
    let mut value = start;
    for at in segments {
        let range = &evaluation.segments[*at].range;
        let mut changes = evaluation.details[*at].daily.iter().peekable();
        let (from, to) = (bars.day(range.start), bars.day(range.end - 1));
        for (day, date) in days.iter().enumerate().filter(|(_, date)| (from..=to).contains(*date)) {
            while let Some((_, change)) = changes.next_if(|(changed, _)| *changed as usize <= day) {
                value = if additive { value + change } else { value * (1.0 + change) };
            }
            // A day that two segments share is shown as the later one leaves it.
            if equity.last().is_some_and(|(ms, _)| *ms == date * DAY_MS) {
                equity.pop();
            }
            equity.push((date * DAY_MS, value));
        }
    }
    let shown: Vec<i64> = equity.iter().map(|(ms, _)| ms / DAY_MS).collect();
    let buy_hold = held_by(&shown, &evaluation.symbol_held[symbol], additive);
    Curve { start, equity, buy_hold }
}

/// All symbols together over the whole period, as its figures see them.
fn portfolio(evaluation: &BacktestReport, additive: bool) -> Curve {
    let marks = evaluation.parts.equity();
    Curve {
        start: if additive { 0.0 } else { 1.0 },
        equity: marks.iter().map(|mark| (mark.0 * DAY_MS, mark.1)).collect(),
        buy_hold: marks.iter().map(|mark| (mark.0 * DAY_MS, mark.2)).collect(),
    }
}
