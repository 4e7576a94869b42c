//! Fills in the report page.

use serde_json::Value;
use tidemill_backtest::segment::Role;
use tidemill_backtest::strategy::Sizing;
use tidemill_backtest::{Benchmark, METRICS, Metrics, POOL_NOTE};
use tidemill_market::{DAY_MS, timeframe, timestamp};
use tidemill_page::report::{Curve, EquityKind, MetricRow, ReportPage, SymbolSeries, TimeMark, TradeRow};

use tidemill_lab::BacktestReport;

use super::{finite, market_figures};
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
    if evaluation.test.is_some() {
        notes.insert(0, "The headline figures are those of the in-sample part; the table shows both.".into());
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

fn metric_rows(evaluation: &BacktestReport) -> (Vec<String>, Vec<MetricRow>) {
    let mut names = Vec::new();
    let mut columns: Vec<Metrics> = Vec::new();
    if let Some(test) = evaluation.test {
        names.extend(["in-sample".to_string(), "out-of-sample".to_string()]);
        columns.extend([evaluation.train, test]);
    }
    if super::shows_segments(evaluation, MAX_COLUMNS) {
        names.extend(evaluation.segments.iter().map(|segment| segment.name.clone()));
        columns.extend(&evaluation.segment_metrics);
    }
    let mut rows: Vec<MetricRow> = METRICS
        .iter()
        .map(|(metric, key, label)| MetricRow {
            key: key.to_string(),
            label: label.to_string(),
            value: evaluation.train.get(*metric),
            text: number::metric(label, evaluation.train.get(*metric)),
            segments: columns
                .iter()
                .map(|metrics| metrics.get(*metric).map(|value| number::metric(label, Some(value))))
                .collect(),
        })
        .collect();
    let label = "Buy & Hold Return [%]";
    let held = |market: &Benchmark| finite(market.total_return);
    let mut of_columns = Vec::new();
    if evaluation.test.is_some() {
        of_columns.extend(evaluation.held.parts.iter().map(held));
    }
    if columns.len() > of_columns.len() {
        of_columns.extend(evaluation.held.segments.iter().map(held));
    }
    let text = |label: &str, value: Option<f64>| value.map(|value| number::metric(label, Some(value)));
    let value = held(&evaluation.held.parts[0]);
    let mut extra = vec![MetricRow {
        key: "buy_hold_return".into(),
        label: label.into(),
        value,
        text: number::metric(label, value),
        segments: of_columns.into_iter().map(|value| text(label, value)).collect(),
    }];
    // What is compared with the market are totals; single segments have no such figures.
    let compared: Vec<_> = evaluation.against.iter().map(market_figures).collect();
    for (at, (key, label, value)) in compared.first().into_iter().flatten().enumerate() {
        let mut segments: Vec<Option<String>> = Vec::new();
        if evaluation.test.is_some() {
            segments.extend(compared.iter().map(|figures| text(label, figures[at].2)));
        }
        segments.resize(columns.len(), None);
        extra.push(MetricRow {
            key: (*key).into(),
            label: (*label).into(),
            value: *value,
            text: number::metric(label, *value),
            segments,
        });
    }
    let place = 5.min(rows.len());
    rows.splice(place..place, extra);
    (names, rows)
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
            let label = match segment.role {
                Role::Test => "out-of-sample".to_string(),
                Role::Train => segment.name.clone(),
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

/// What holding came to by the end of each of these days: its parts one after the other.
fn held_by(days: &[i64], parts: &[Benchmark; 2], additive: bool) -> Vec<(i64, f64)> {
    let mut changes: Vec<(i64, f64)> = parts.iter().flat_map(|part| part.daily.iter().copied()).collect();
    changes.sort_by_key(|(day, _)| *day);
    let mut changes = changes.into_iter().peekable();
    let mut value = if additive { 0.0 } else { 1.0 };
    let mut held = Vec::with_capacity(days.len());
    for day in days {
        while let Some((_, change)) = changes.next_if(|(changed, _)| changed <= day) {
            value = if additive { value + change } else { value * (1.0 + change) };
        }
        held.push((day * DAY_MS, value));
    }
    held
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
    let buy_hold = held_by(&shown, &evaluation.held.symbols[symbol], additive);
    Curve { start, equity, buy_hold }
}

/// All symbols together as the pooled metrics see them: equal parts of capital in each, kept by the day.
fn portfolio(evaluation: &BacktestReport, additive: bool) -> Curve {
    let symbols = &evaluation.experiment.data.universe.symbols;
    let start = if additive { 0.0 } else { 1.0 };
    // Changes of all symbols by day.
    let mut changes: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
    for at in 0..symbols.len() {
        let mine: Vec<usize> =
            (0..evaluation.segments.len()).filter(|s| evaluation.segments[*s].symbol == at).collect();
        let curve = curve(evaluation, at, &mine, additive);
        let change = |now: f64, before: f64| if additive { now - before } else { now / before - 1.0 };
        let mut before = start;
        for (day, equity) in &curve.equity {
            *changes.entry(*day).or_default() +=
                if before > 0.0 || additive { change(*equity, before) } else { 0.0 };
            before = *equity;
        }
    }
    let share = if additive { 1.0 } else { 1.0 / symbols.len() as f64 };
    let mut value = start;
    let mut equity = Vec::with_capacity(changes.len());
    for (day, change) in changes {
        value = if additive { value + change } else { value * (1.0 + change * share) };
        equity.push((day, value));
    }
    let days: Vec<i64> = equity.iter().map(|(ms, _)| ms / DAY_MS).collect();
    let buy_hold = held_by(&days, &evaluation.held.parts, additive);
    Curve { start, equity, buy_hold }
}
