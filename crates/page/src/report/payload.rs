//! What the page receives: the report with its long columns packed and, where it is too large, thinned.

use serde::Serialize;

use super::pack::{self, Bar};
use super::{
    Curve, EquityKind, HEADLINE, MetricRow, PageLimits, ReportPage, SymbolSeries, TimeMark, TradeRow, detail,
    portfolio,
};
use crate::kit::parts::PartsTable;

/// Symbols with a price chart.
const MAX_CHARTS: usize = 48;
/// Lines of a symbol that are computed from its bars, and values of all of them; about 6 bytes each.
const MAX_LINES: usize = 8;
const MAX_LINE_VALUES: usize = 400_000;
/// Points of a curve; longer ones (never reached by daily data of a human lifetime) are thinned.
const MAX_CURVE: usize = 30_000;
/// Points of the curve of a symbol without a chart, enough for its miniature.
const MINIATURE: usize = 64;

/// The page's data, serialised as JSON. Field names are those the scripts read.
#[derive(Serialize)]
pub struct Payload<'a> {
    title: &'a str,
    subtitle: &'a str,
    strategy: &'a str,
    generated: &'a str,
    version: &'a str,
    parameters: &'a [(String, String)],
    execution: &'a [(String, String)],
    notes: Vec<String>,
    verdict: Option<&'a str>,
    parts: &'a PartsTable,
    benchmark: &'a str,
    benchmark_note: &'a str,
    headline: [&'static str; 12],
    metrics: &'a [MetricRow],
    segments: &'a [String],
    additive: bool,
    year_days: f64,
    portfolio: Option<PackedCurve>,
    series: Vec<PackedSeries<'a>>,
    reasons: Vec<&'a str>,
    trades: TradeColumns,
}

#[derive(Serialize)]
struct PackedSeries<'a> {
    symbol: &'a str,
    timeframe_ms: i64,
    year_days: f64,
    n_bars: usize,
    n_trades: usize,
    decimals: u32,
    index: Vec<i64>,
    time: Vec<i64>,
    bars: String,
    volume: String,
    lines: Vec<PackedLine<'a>>,
    figures: &'a [Option<String>],
    curve: PackedCurve,
    summary: Summary,
    marks: &'a [TimeMark],
}

/// What the strategy computed, at the last bar of each bucket.
#[derive(Serialize)]
struct PackedLine<'a> {
    name: &'a str,
    /// Whether it lies among the prices, so that it can be drawn with them.
    on_price: bool,
    values: String,
}

/// Figures of a symbol's own daily curve, for the list of symbols; relative or in price units as equity adds up.
#[derive(Debug, PartialEq, Serialize)]
struct Summary {
    change: Option<f64>,
    hold: Option<f64>,
    drawdown: Option<f64>,
}

#[derive(Serialize)]
struct PackedCurve {
    start: f64,
    days: Vec<i64>,
    equity: String,
    hold_days: Vec<i64>,
    hold: String,
}

/// Trades of all symbols as columns, which is half the size of rows.
#[derive(Default, Serialize)]
struct TradeColumns {
    series: Vec<usize>,
    side: Vec<i8>,
    signal: Vec<usize>,
    entry_idx: Vec<usize>,
    exit_idx: Vec<usize>,
    entry_ms: Vec<i64>,
    exit_ms: Vec<i64>,
    entry: Vec<f64>,
    exit: Vec<f64>,
    stop: Vec<Option<f64>>,
    target: Vec<Option<f64>>,
    trail: Vec<Option<f64>>,
    pnl: Vec<f64>,
    ret: Vec<f64>,
    r: Vec<f64>,
    bars: Vec<usize>,
    reason: Vec<usize>,
    adverse: Vec<f64>,
    favourable: Vec<f64>,
}

impl<'a> Payload<'a> {
    /// Packs a report.
    pub fn new(report: &'a ReportPage, limits: PageLimits) -> Self {
        let mut notes = report.notes.clone();
        let charted = charted(&report.series);
        if charted.iter().any(|shown| !shown) {
            notes.push(format!(
                "Price charts are included for the {MAX_CHARTS} symbols with the most trades; the other {} are listed \
                 with their results.",
                report.series.len() - MAX_CHARTS
            ));
        }
        let combined = match &report.portfolio {
            Some(curve) => Some(PackedCurve::new(curve, MAX_CURVE)),
            None if report.series.len() > 1 => {
                notes.push(match report.equity_kind {
                    EquityKind::Compound => {
                        "The curve of all symbols is the mean of the symbols' curves: equal \
                                             capital each, no rebalancing."
                            .to_owned()
                    }
                    EquityKind::Additive => {
                        "The curve of all symbols is the sum of the symbols' curves.".to_owned()
                    }
                });
                let curves: Vec<&Curve> = report.series.iter().map(|series| &series.curve).collect();
                Some(PackedCurve::new(&portfolio::combine(&curves, report.equity_kind), MAX_CURVE))
            }
            None => None,
        };
        let wanted: Vec<usize> = report
            .series
            .iter()
            .zip(&charted)
            .map(|(series, &shown)| if shown { n_bars(series) } else { 0 })
            .collect();
        let budgets = detail::share(limits.bars, &wanted);
        if budgets.iter().zip(&wanted).any(|(budget, wanted)| budget < wanted) {
            notes.push(format!(
                "The price history ({} bars) is drawn in buckets to keep this file small; single bars are kept around \
                 trades where they fit.",
                wanted.iter().sum::<usize>()
            ));
        }
        let series = report
            .series
            .iter()
            .zip(budgets.iter().zip(&charted))
            .map(|(series, (&budget, &shown))| PackedSeries::new(series, report.equity_kind, budget, shown))
            .collect();
        let (reasons, trades) = pack_trades(&report.series, limits.trades, &mut notes);
        Payload {
            title: &report.title,
            subtitle: &report.subtitle,
            strategy: &report.strategy,
            generated: &report.generated,
            version: &report.version,
            parameters: &report.parameters,
            execution: &report.execution,
            notes,
            verdict: report.verdict.as_deref(),
            parts: &report.parts,
            benchmark: &report.benchmark,
            benchmark_note: &report.benchmark_note,
            headline: HEADLINE,
            metrics: &report.metrics,
            segments: &report.segments,
            additive: report.equity_kind == EquityKind::Additive,
            year_days: report.year_days,
            portfolio: combined,
            series,
            reasons,
            trades,
        }
    }
}

/// Which symbols get a price chart: all, or those with the most trades.
fn charted(series: &[SymbolSeries]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(series[i].trades.len()));
    let mut shown = vec![false; series.len()];
    order.iter().take(MAX_CHARTS).for_each(|&i| shown[i] = true);
    shown
}

/// Bars that have a time and all four prices.
fn n_bars(series: &SymbolSeries) -> usize {
    [&series.open, &series.high, &series.low, &series.close]
        .iter()
        .map(|column| column.len())
        .fold(series.ts_ms.len(), usize::min)
}

impl<'a> PackedSeries<'a> {
    fn new(series: &'a SymbolSeries, kind: EquityKind, budget: usize, shown: bool) -> Self {
        let n_bars = n_bars(series);
        let starts = if shown { detail::starts(n_bars, &series.trades, budget) } else { Vec::new() };
        let ends = starts.iter().skip(1).copied().chain([n_bars as i64]);
        let buckets: Vec<(usize, usize)> =
            starts.iter().zip(ends).map(|(&start, end)| (start as usize, end as usize)).collect();
        let bars: Vec<Bar> = buckets.iter().map(|&(start, end)| bucket(series, start, end)).collect();
        let times: Vec<i64> = buckets.iter().map(|&(start, _)| series.ts_ms[start]).collect();
        let decimals = pack::decimals(&bars);
        let volume = if series.volume.len() >= n_bars && series.volume.iter().any(|&volume| volume > 0.0) {
            // The mean, so that bars of different lengths stand on one scale.
            pack::floats(buckets.iter().map(|&(start, end)| mean_volume(&series.volume[start..end])))
        } else {
            String::new()
        };
        let n_lines = MAX_LINE_VALUES / buckets.len().max(1);
        let line = |(name, values): &'a (String, Vec<f64>)| PackedLine {
            name,
            on_price: is_on_price(values, &series.close),
            values: pack::floats(
                buckets.iter().map(|&(_, end)| values.get(end - 1).copied().unwrap_or(f64::NAN)),
            ),
        };
        PackedSeries {
            lines: series
                .lines
                .iter()
                .take(if shown { n_lines.min(MAX_LINES) } else { 0 })
                .map(line)
                .collect(),
            figures: &series.figures,
            symbol: &series.symbol,
            timeframe_ms: series.timeframe_ms,
            year_days: series.year_days,
            n_bars,
            n_trades: series.trades.len(),
            decimals,
            index: pack::runs(&starts),
            time: pack::runs(&times),
            bars: pack::bars(&bars, decimals),
            volume,
            curve: PackedCurve::new(&series.curve, if shown { MAX_CURVE } else { MINIATURE }),
            summary: Summary::new(&series.curve, kind),
            marks: &series.marks,
        }
    }
}

/// One bar for source bars `start..end`, which is not empty. Comparisons skip NaN.
fn bucket(series: &SymbolSeries, start: usize, end: usize) -> Bar {
    Bar {
        open: series.open[start],
        high: series.high[start..end].iter().copied().fold(f64::NAN, f64::max),
        low: series.low[start..end].iter().copied().fold(f64::NAN, f64::min),
        close: series.close[end - 1],
    }
}

/// Whether a line lies where the prices are: on half of its bars within a quarter of the close.
fn is_on_price(values: &[f64], close: &[f64]) -> bool {
    let pairs = || values.iter().zip(close).filter(|(value, close)| value.is_finite() && close.is_finite());
    let n_near = pairs().filter(|(value, close)| (*value - *close).abs() <= 0.25 * close.abs()).count();
    n_near > 0 && 2 * n_near >= pairs().count()
}

/// Mean of the finite volumes, 0 if there is none.
fn mean_volume(volumes: &[f64]) -> f64 {
    volumes.iter().filter(|volume| volume.is_finite()).sum::<f64>() / volumes.len() as f64
}

impl Summary {
    fn new(curve: &Curve, kind: EquityKind) -> Self {
        let change = |from: f64, to: f64| match kind {
            EquityKind::Compound => to / from - 1.0,
            EquityKind::Additive => to - from,
        };
        let total = |line: &[(i64, f64)]| {
            line.iter()
                .rev()
                .map(|point| point.1)
                .find(|equity| equity.is_finite())
                .map(|last| change(curve.start, last))
        };
        let mut peak = curve.start;
        let mut deepest = 0.0f64;
        for &(_, equity) in &curve.equity {
            peak = peak.max(equity);
            deepest = deepest.min(change(peak, equity));
        }
        Summary {
            change: total(&curve.equity),
            hold: total(&curve.buy_hold),
            drawdown: (!curve.equity.is_empty()).then_some(deepest),
        }
    }
}

impl PackedCurve {
    fn new(curve: &Curve, most: usize) -> Self {
        let equity = thin(&curve.equity, most);
        let hold = thin(&curve.buy_hold, most);
        let days = |line: &[(i64, f64)]| pack::runs(&line.iter().map(|point| point.0).collect::<Vec<i64>>());
        PackedCurve {
            start: curve.start,
            days: days(&equity),
            equity: pack::floats(equity.iter().map(|point| point.1)),
            hold_days: days(&hold),
            hold: pack::floats(hold.iter().map(|point| point.1)),
        }
    }
}

/// At most about `most` points of a line, evenly taken, the last one always; points without a value are left out.
fn thin(line: &[(i64, f64)], most: usize) -> Vec<(i64, f64)> {
    let finite: Vec<(i64, f64)> = line.iter().copied().filter(|point| point.1.is_finite()).collect();
    let step = finite.len().div_ceil(most).max(1);
    let last = finite.len().saturating_sub(1);
    finite
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % step == 0 || *i == last)
        .map(|(_, point)| point)
        .collect()
}

/// The trades of all symbols as columns, with the table of exit labels they point into.
fn pack_trades<'a>(
    series: &'a [SymbolSeries],
    most: usize,
    notes: &mut Vec<String>,
) -> (Vec<&'a str>, TradeColumns) {
    let mut reasons: Vec<&str> = Vec::new();
    let mut columns = TradeColumns::default();
    let total: usize = series.iter().map(|series| series.trades.len()).sum();
    let wanted: Vec<usize> = series.iter().map(|series| series.trades.len()).collect();
    let budgets = detail::share(most, &wanted);
    if total > most {
        notes.push(format!(
            "The trade list and the figures drawn from it hold the latest {most} of {total} trades; metrics, \
             equity and monthly table cover all of them."
        ));
    }
    for (which, (series, &budget)) in series.iter().zip(&budgets).enumerate() {
        for trade in &series.trades[series.trades.len() - budget..] {
            let reason = reasons.iter().position(|known| *known == trade.reason).unwrap_or_else(|| {
                reasons.push(&trade.reason);
                reasons.len() - 1
            });
            columns.push(which, reason, series, trade);
        }
    }
    (reasons, columns)
}

impl TradeColumns {
    fn push(&mut self, which: usize, reason: usize, series: &SymbolSeries, trade: &TradeRow) {
        let last = n_bars(series).saturating_sub(1);
        let (adverse, favourable) = excursions(series, trade);
        self.series.push(which);
        self.side.push(if trade.side < 0 { -1 } else { 1 });
        self.signal.push(trade.signal_idx.min(last));
        self.entry_idx.push(trade.entry_idx.min(last));
        self.exit_idx.push(trade.exit_idx.min(last));
        self.entry_ms.push(trade.entry_ms);
        self.exit_ms.push(trade.exit_ms);
        self.entry.push(pack::short(trade.entry));
        self.exit.push(pack::short(trade.exit));
        self.stop.push(trade.stop.map(pack::short));
        self.target.push(trade.target.map(pack::short));
        self.trail.push(trade.trail.map(pack::short));
        self.pnl.push(pack::short(trade.pnl));
        self.ret.push(pack::short(trade.ret));
        self.r.push(pack::short(trade.r));
        self.bars.push(trade.bars);
        self.reason.push(reason);
        self.adverse.push(pack::short(adverse));
        self.favourable.push(pack::short(favourable));
    }
}

/// How far the price went against (≤ 0) and with (≥ 0) a trade, as fractions of the entry price. The exit bar counts
/// only with its fill, since the rest of that bar may have come after it; so does an entry at a bar's close.
fn excursions(series: &SymbolSeries, trade: &TradeRow) -> (f64, f64) {
    let first = if trade.signal_idx == trade.entry_idx { trade.entry_idx + 1 } else { trade.entry_idx };
    let last = trade.exit_idx.min(n_bars(series));
    let (mut low, mut high) = (trade.entry.min(trade.exit), trade.entry.max(trade.exit));
    for i in first..last {
        low = low.min(series.low[i]);
        high = high.max(series.high[i]);
    }
    if trade.side < 0 {
        ((trade.entry - high) / trade.entry, (trade.entry - low) / trade.entry)
    } else {
        ((low - trade.entry) / trade.entry, (high - trade.entry) / trade.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excursions_ignore_the_rest_of_the_exit_bar() {
        let series = SymbolSeries {
            ts_ms: vec![0, 1, 2, 3],
            open: vec![100.0; 4],
            high: vec![101.0, 104.0, 102.0, 150.0],
            low: vec![99.0, 97.0, 98.0, 50.0],
            close: vec![100.0; 4],
            ..SymbolSeries::default()
        };
        let mut trade = TradeRow {
            side: 1,
            signal_idx: 0,
            entry_idx: 1,
            exit_idx: 3,
            entry: 100.0,
            exit: 103.0,
            ..TradeRow::default()
        };
        assert_eq!(excursions(&series, &trade), (-0.03, 0.04));
        trade.side = -1;
        assert_eq!(excursions(&series, &trade), (-0.04, 0.03));
        trade.entry_idx = 0;
        trade.exit_idx = 1;
        assert_eq!(excursions(&series, &trade), (-0.03, 0.0));
    }

    #[test]
    fn an_average_lies_among_the_prices_and_an_oscillator_does_not() {
        let close = [100.0, 102.0, 101.0, 99.0];
        assert!(is_on_price(&[f64::NAN, 101.0, 101.5, 80.0], &close));
        assert!(!is_on_price(&[1.0, -2.0, 0.5, 1.5], &close));
        assert!(!is_on_price(&[f64::NAN; 4], &close));
    }

    #[test]
    fn summary_counts_the_fall_from_the_start() {
        let curve =
            Curve { start: 1.0, equity: vec![(0, 0.5), (1, 2.0), (2, 1.5), (3, f64::NAN)], buy_hold: vec![] };
        assert_eq!(
            Summary::new(&curve, EquityKind::Compound),
            Summary { change: Some(0.5), hold: None, drawdown: Some(-0.5) }
        );
        assert_eq!(Summary::new(&curve, EquityKind::Additive).drawdown, Some(-0.5));
    }

    #[test]
    fn thinning_keeps_the_last_point_and_drops_gaps() {
        let line: Vec<(i64, f64)> =
            (0..100).map(|i| (i, if i == 98 { f64::NAN } else { i as f64 })).collect();
        let thinned = thin(&line, 10);
        assert_eq!(thinned.len(), 11);
        assert_eq!(thinned.last(), Some(&(99, 99.0)));
    }
}
