//! Fills in the report page.

use serde_json::Value;
use tidemill_backtest::POOL_NOTE;
use tidemill_backtest::strategy::Sizing;
use tidemill_market::{DAY_MS, timeframe, timestamp};
use tidemill_page::report::{Curve, EquityKind, MetricRow, ReportPage, SymbolSeries, TimeMark, TradeRow};

use tidemill_lab::{BacktestReport, LabError, PartFigures, PartName};

use super::finite;
use crate::parts_text;
use tidemill_lab::number;

/// Most segments shown as columns.
const MAX_COLUMNS: usize = 12;

/// The same with the lines that the strategy computes, for the charts of a page.
pub(super) fn report_with_lines(evaluation: &BacktestReport) -> Result<ReportPage, LabError> {
    let mut page = report(evaluation);
    let symbols: Vec<usize> = (0..page.series.len()).collect();
    for (series, lines) in page.series.iter_mut().zip(evaluation.let_series(&symbols)?) {
        series.lines = lines.into_iter().map(|line| (line.name, line.values)).collect();
    }
    Ok(page)
}

/// The report as plain data for a page.
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
        verdict: evaluation.verdict.clone(),
        parts: parts_text::page_table(&evaluation.parts),
        benchmark: evaluation.parts.benchmark.clone(),
        benchmark_note: benchmark_note(evaluation),
        notes,
        metrics,
        segments,
        equity_kind: if additive { EquityKind::Additive } else { EquityKind::Compound },
        year_days: evaluation.year_days,
        portfolio: (symbols.len() > 1).then(|| curve(&evaluation.parts.whole, additive)),
        series: (0..symbols.len()).map(|at| symbol_series(evaluation, at, additive)).collect(),
    }
}

/// The one definition of the benchmark that all figures of the page follow.
fn benchmark_note(evaluation: &BacktestReport) -> String {
    let what = match &evaluation.experiment.data.benchmark {
        None if evaluation.experiment.data.universe.symbols.len() == 1 => "buys the symbol".into(),
        None => "buys every symbol".into(),
        Some(bars) => format!("buys {}", bars.symbol),
    };
    let parts = match evaluation.parts.shown().len() {
        1 => "",
        _ => {
            " The column of a part compares with holding over that part alone; curve, months and the whole period with holding through."
        }
    };
    format!(
        "The benchmark ({}) {what} at the first open and closes at the last close, with the strategy's costs.{parts}",
        evaluation.parts.benchmark
    )
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Costs by kind of order, and sizing.
        Value::Object(map) => {
            let parts: Vec<String> =
                map.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect();
            parts.join(", ")
        }
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
    // One column alone is the whole period, which every row has anyway.
    let is_several = names.len() + n_segments > 1;
    names.extend(evaluation.segments[..n_segments].iter().map(|segment| segment.name.clone()));
    let rows = parts.table().into_iter().map(|row| {
        let text = |value: f64| number::metric(&row.label, Some(value));
        let of_segments = (0..n_segments).map(|at| super::segment_value(evaluation, at, row.key));
        let whole = row.values.last().copied().flatten();
        let of_columns = row.values.iter().copied().chain(of_segments).filter(|_| is_several);
        MetricRow {
            key: row.key.into(),
            value: whole,
            text: number::metric(&row.label, whole),
            segments: of_columns.map(|value| value.map(text)).collect(),
            label: row.label,
        }
    });
    let rows = rows.collect();
    (if is_several { names } else { Vec::new() }, rows)
}

fn symbol_series(evaluation: &BacktestReport, symbol: usize, additive: bool) -> SymbolSeries {
    let bars = &evaluation.experiment.data.universe.symbols[symbol];
    let mine: Vec<usize> =
        (0..evaluation.segments.len()).filter(|at| evaluation.segments[*at].symbol == symbol).collect();
    let trades = mine
        .iter()
        .flat_map(|at| {
            let detail = &evaluation.details[*at];
            detail.trades.iter().zip(&detail.labels).zip(&evaluation.trail_distances[*at])
        })
        .map(|((trade, reason), trail)| TradeRow {
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
            trail: finite(*trail),
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
    let own = evaluation.by_symbol.get(symbol).and_then(Option::as_ref);
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
        lines: Vec::new(),
        figures: own.map_or_else(Vec::new, |own| {
            let values = evaluation.parts.row_of(own);
            let rows = evaluation.parts.table();
            rows.iter()
                .zip(values)
                .map(|(row, value)| value.map(|value| number::metric(&row.label, Some(value))))
                .collect()
        }),
        curve: match own {
            Some(own) => curve(own, additive),
            // One symbol is the whole; of several, one without a bar has no curve.
            None if evaluation.by_symbol.is_empty() => curve(&evaluation.parts.whole, additive),
            None => Curve::default(),
        },
        marks,
    }
}

/// Equity at the end of each day beside holding the benchmark.
fn curve(figures: &PartFigures, additive: bool) -> Curve {
    let marks = figures.equity(additive);
    Curve {
        start: if additive { 0.0 } else { 1.0 },
        equity: marks.iter().map(|mark| (mark.0 * DAY_MS, mark.1)).collect(),
        buy_hold: marks.iter().map(|mark| (mark.0 * DAY_MS, mark.2)).collect(),
    }
}
