//! The trades of a back-test, in order, and as a file.

use tidemill_backtest::segment::Segment;
use tidemill_backtest::trade::Trade;
use tidemill_market::{TableColumn, timestamp};

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

/// All trades as columns, in the order of the segments.
pub fn columns(report: &BacktestReport) -> Vec<(&'static str, TableColumn)> {
    let symbols = &report.experiment.data.universe.symbols;
    let bars = |segment: &Segment| &symbols[segment.symbol];
    let text = |of: &dyn Fn(&Segment, &Trade, &str) -> String| {
        TableColumn::Text(
            report.trades().map(|(segment, trade, reason)| of(segment, trade, reason)).collect(),
        )
    };
    let number = |of: fn(&Trade) -> f64| {
        let finite = |value: f64| if value.is_finite() { value } else { f64::NAN };
        TableColumn::Number(report.trades().map(|(_, trade, _)| finite(of(trade))).collect())
    };
    let whole = |of: fn(&Trade) -> usize| {
        TableColumn::Whole(report.trades().map(|(_, trade, _)| of(trade) as i64).collect())
    };
    let time = |of: fn(&Trade) -> usize| {
        TableColumn::Time(report.trades().map(|(segment, trade, _)| bars(segment).ts_ms[of(trade)]).collect())
    };
    vec![
        ("symbol", text(&|segment, _, _| bars(segment).symbol.clone())),
        ("segment", text(&|segment, _, _| segment.name.clone())),
        ("side", text(&|_, trade, _| side_name(trade.side).into())),
        ("signal_idx", whole(|trade| trade.signal_idx)),
        ("entry_idx", whole(|trade| trade.entry_idx)),
        ("exit_idx", whole(|trade| trade.exit_idx)),
        ("entry_time", time(|trade| trade.entry_idx)),
        ("exit_time", time(|trade| trade.exit_idx)),
        ("entry", number(|trade| trade.entry)),
        ("exit", number(|trade| trade.exit)),
        ("stop", number(|trade| trade.stop)),
        ("target", number(|trade| trade.target)),
        ("reason", text(&|_, _, reason| reason.to_owned())),
        ("pnl", number(|trade| trade.pnl)),
        ("return", number(|trade| trade.ret)),
        ("r", number(|trade| trade.r)),
        ("bars", whole(|trade| trade.exit_idx - trade.entry_idx)),
        ("ambiguous", TableColumn::Flag(report.trades().map(|(_, trade, _)| trade.ambiguous).collect())),
    ]
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
