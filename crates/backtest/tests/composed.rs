//! Indicators that the language composes against TA-Lib, pandas and PyneCore, by way of the table that `composed/make_table.py` wrote:
//! through the engine, as a strategy reads them.

use tidemill_backtest::{EngineOptions, Overrides, Strategy, let_series};
use tidemill_market::{Bars, Universe};

/// What separates two ways to compute the same thing in `f64`, relative to the value, or to 1 where it is smaller.
const TOLERANCE: f64 = 1e-12;

/// Pandas' rolling correlation and TA-Lib's sums run along the series and gather what they round.
const RUNNING: f64 = 1e-10;

fn tolerance(header: &str) -> f64 {
    let same_arithmetic =
        ["median", "quantile", "donchian", "ichimoku", "heikin_ashi", "aroon", "williams_r"];
    let name = header.split_once(": ").map_or(header, |(_, call)| call);
    if same_arithmetic.iter().any(|of| name.starts_with(of)) {
        0.0
    } else if ["correlation", "mfi", "vwma"].iter().any(|of| name.starts_with(of)) {
        RUNNING
    } else {
        TOLERANCE
    }
}

fn table() -> Vec<(&'static str, Vec<f64>)> {
    let mut lines = include_str!("composed/expected.tsv").lines();
    let mut columns: Vec<(&str, Vec<f64>)> =
        lines.next().expect("a header").split('\t').map(|name| (name, Vec::new())).collect();
    for line in lines {
        for ((_, column), field) in columns.iter_mut().zip(line.split('\t')) {
            column.push(if field.is_empty() { f64::NAN } else { field.parse().expect("a number") });
        }
    }
    columns
}

#[test]
fn composed_indicators_reproduce_their_references() {
    let table = table();
    let column = |name: &str| table.iter().find(|(n, _)| *n == name).expect("a column").1.clone();
    let bars = Bars {
        symbol: "X".into(),
        timeframe_ms: 3_600_000,
        ts_ms: column("ts_ms").iter().map(|ms| *ms as i64).collect(),
        open: column("open"),
        high: column("high"),
        low: column("low"),
        close: column("close"),
        volume: column("volume"),
        ..Bars::default()
    };
    let calls: Vec<(&str, &Vec<f64>)> =
        table.iter().filter(|(name, _)| name.contains(": ")).map(|(name, column)| (*name, column)).collect();
    assert!(calls.len() > 30);
    let mut source = String::from("[let]\n");
    for (at, (header, _)) in calls.iter().enumerate() {
        let call = header.split_once(": ").expect("a library and a call").1;
        source += &format!("v{at} = \"{call}\"\n");
    }
    source += "[long]\nenter = \"false\"\n";
    let strategy = Strategy::parse("composed.toml", &source, &Overrides::default()).unwrap();
    let universe = Universe { symbols: vec![bars] };
    let got = let_series(&strategy, &universe, &[], &[0], EngineOptions::default()).unwrap().remove(0);
    assert_eq!(got.len(), calls.len(), "every call is a series of numbers");
    let mut bad: Vec<String> = Vec::new();
    for ((header, expected), got) in calls.iter().zip(&got) {
        let allowed = tolerance(header);
        let mut n_bad = 0;
        for (bar, (got, expected)) in got.values.iter().zip(*expected).enumerate() {
            let is_same = (got.is_nan() && expected.is_nan())
                || (got - expected).abs() <= allowed * expected.abs().max(1.0);
            n_bad += usize::from(!is_same);
            if !is_same && n_bad <= 3 {
                bad.push(format!("{header} at bar {bar}: {got} instead of {expected}"));
            }
        }
    }
    assert!(bad.is_empty(), "{} differences:\n{}", bad.len(), bad.join("\n"));
}
