//! The trades of a back-test, in order, and as a file.

use tidemill_backtest::segment::Segment;
use tidemill_backtest::trade::Trade;
use tidemill_market::timestamp;

use crate::backtest::BacktestReport;

impl BacktestReport {
    /// Trades with the segment that they belong to and the reason of their exit.
    pub fn trades(&self) -> impl Iterator<Item = (&Segment, &Trade, &str)> {
        self.segments.iter().zip(&self.details).flat_map(|(segment, detail)| {
            let labelled = detail.trades.iter().zip(&detail.labels);
            labelled.map(move |(trade, label)| (segment, trade, label.as_str()))
        })
    }
}

/// Name of a side, by its sign.
pub fn side_name(side: i8) -> &'static str {
    if side > 0 { "long" } else { "short" }
}

/// All trades as CSV, in the order of the segments.
pub fn csv(report: &BacktestReport) -> String {
    let mut out = String::from(
        "symbol,segment,side,signal_idx,entry_idx,exit_idx,entry_time,exit_time,entry,exit,stop,target,reason,pnl,return,r,bars,ambiguous\n",
    );
    let quote = |text: &str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_string()
        }
    };
    let optional = |value: f64| {
        Some(value).filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
    };
    for (segment, trade, reason) in report.trades() {
        let bars = &report.experiment.data.universe.symbols[segment.symbol];
        out += &format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            quote(&bars.symbol),
            quote(&segment.name),
            side_name(trade.side),
            trade.signal_idx,
            trade.entry_idx,
            trade.exit_idx,
            timestamp::format_ms(bars.ts_ms[trade.entry_idx]),
            timestamp::format_ms(bars.ts_ms[trade.exit_idx]),
            trade.entry,
            trade.exit,
            optional(trade.stop),
            optional(trade.target),
            quote(reason),
            trade.pnl,
            trade.ret,
            trade.r,
            trade.exit_idx - trade.entry_idx,
            trade.ambiguous,
        );
    }
    out
}
