//! What `backtest` gives: JSON, table, trades as CSV, the report; and how it behaves in a pipe.

use std::process::Stdio;

use serde_json::Value;
use tidemill_lab::shipped::SHIPPED;

use crate::support::{CommandOutput, Place};

/// The metrics of docs/semantics.md.
const METRICS: [&str; 30] = [
    "trades",
    "win_rate",
    "profit_factor",
    "expectancy",
    "total_return",
    "annual_return",
    "sharpe",
    "sortino",
    "max_drawdown",
    "max_drawdown_daily",
    "max_drawdown_bar",
    "calmar",
    "sqn",
    "exposure",
    "longest_drawdown",
    "net_pnl",
    "max_drawdown_pnl",
    "max_drawdown_pnl_ref",
    "sharpe_r",
    "avg_r",
    "avg_win",
    "avg_loss",
    "profit_factor_pnl",
    "avg_win_pnl",
    "avg_loss_pnl",
    "long_share",
    "avg_bars",
    "open_at_end",
    "ambiguous",
    "skipped",
];

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn has_all(value: &Value, expected: &[&str]) {
    let names = names(value);
    for name in expected {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
}

#[test]
fn json_of_a_backtest_has_the_documented_shape() {
    let place = Place::with_bars();
    let answer = place.json("backtest ema-cross --data lcg.csv --split 0.6 --folds 2");
    has_all(
        &answer,
        &[
            "strategy",
            "profile",
            "data",
            "parameters",
            "execution",
            "year_days",
            "objective",
            "metrics",
            "out_of_sample",
            "segments",
            "trades",
            "notes",
        ],
    );
    let mut expected = METRICS.to_vec();
    expected.sort_unstable();
    for metrics in [&answer["metrics"], &answer["out_of_sample"], &answer["segments"][0]["metrics"]] {
        let mut found = names(metrics);
        found.sort_unstable();
        assert_eq!(found, expected);
    }
    let roles: Vec<&str> = answer["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| segment["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["train", "train", "test"]);
    let trades = answer["trades"].as_array().unwrap();
    assert!(trades.len() > 10);
    for trade in trades {
        has_all(
            trade,
            &[
                "symbol",
                "segment",
                "side",
                "signal_idx",
                "entry_idx",
                "exit_idx",
                "entry_time",
                "exit_time",
                "entry",
                "exit",
                "stop",
                "target",
                "reason",
                "pnl",
                "ret",
                "r",
                "bars",
            ],
        );
        assert!(["long", "short"].contains(&trade["side"].as_str().unwrap()));
        let number = |name: &str| trade[name].as_f64().unwrap();
        let side = if trade["side"] == "long" { 1.0 } else { -1.0 };
        // Fees of 5, and slippage by the kind of order that closes the trade.
        let cost = match trade["reason"].as_str().unwrap() {
            "STOP" | "STOP_GAP" => (number("entry") * 10.0 + number("exit") * 15.0) / 10_000.0,
            "TARGET" | "TARGET_GAP" => (number("entry") * 10.0 + number("exit") * 5.0) / 10_000.0,
            _ => (number("entry") + number("exit")) * 10.0 / 10_000.0,
        };
        assert_eq!(number("pnl"), side * (number("exit") - number("entry")) - cost);
        assert_eq!(number("ret"), number("pnl") / number("entry"));
    }
    let sum = |role: &str| -> f64 {
        let segments = answer["segments"].as_array().unwrap().iter();
        segments.filter(|s| s["role"] == role).map(|s| s["metrics"]["trades"].as_f64().unwrap()).sum()
    };
    assert_eq!(answer["metrics"]["trades"], sum("train"));
    assert_eq!(answer["out_of_sample"]["trades"], sum("test"));
    assert_eq!(trades.len() as f64, sum("train") + sum("test"));
    let plain = place.json("backtest ema-cross --data lcg.csv");
    assert!(plain["out_of_sample"].is_null());
    assert_eq!(plain["year_days"], 365.0);
}

#[test]
fn trades_as_csv_are_the_trades_of_the_json() {
    let place = Place::with_bars();
    let odd = place.read("lcg.csv").replace("LCG,", "\"A,B\",");
    place.write("odd.csv", odd);
    let answer = place.json("backtest ema-cross --data odd.csv --trades trades.csv");
    let csv = place.read("trades.csv");
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().starts_with("symbol,segment,side,signal_idx,entry_idx,exit_idx"));
    let trades = answer["trades"].as_array().unwrap();
    assert_eq!(lines.clone().count(), trades.len());
    for (line, trade) in lines.zip(trades) {
        let rest = line.strip_prefix("\"A,B\",\"A,B\",").unwrap_or_else(|| panic!("{line}"));
        let cells: Vec<&str> = rest.split(',').collect();
        assert_eq!(cells[0], trade["side"]);
        assert_eq!(cells[1], trade["signal_idx"].to_string());
        for (at, name) in [(6, "entry"), (7, "exit"), (11, "pnl"), (13, "r")] {
            assert_eq!(cells[at].parse::<f64>().unwrap(), trade[name].as_f64().unwrap(), "{name}");
        }
    }
}

#[test]
fn the_report_needs_no_network_and_runs_nobody_elses_script() {
    let place = Place::with_bars();
    let odd = place.read("lcg.csv").replace("LCG,", "<script>alert(1)</script>,");
    place.write("odd.csv", odd);
    let said = place.ok("backtest ema-cross --data odd.csv --split 0.7 --report report.html");
    assert!(said.stderr.contains("report.html"));
    let html = place.read("report.html");
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "//cdn", "@import", "src=\"/"] {
        assert!(!html.contains(outside), "the report must open offline, but has {outside}");
    }
    assert!(!html.contains("<script>alert(1)"), "a symbol name must not become markup");
    assert!(html.contains("ema-cross"));
}

#[test]
fn the_table_names_the_objective_and_why_it_is_missing() {
    let place = Place::with_bars();
    let said = place.ok("backtest seller-exhaustion --data lcg.csv --profile reference");
    for text in ["Sharpe Ratio", "# Trades", "Win Rate [%]", "year of 365 days", "FIB_61.8"] {
        assert!(said.stdout.contains(text), "{text}: {}", said.stdout);
    }
    let said = place.ok("backtest ema-cross --data lcg.csv");
    assert!(said.stdout.contains("trades >= 30"), "why it is missing: {}", said.stdout);
}

#[cfg(unix)]
#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let place = Place::with_bars();
    for line in [
        "backtest ema-cross --data lcg.csv --json",
        "backtest ema-cross --data lcg.csv",
        "sweep zscore-dip --data lcg.csv --trials 50 --json",
        "strategies seller-exhaustion",
        "data inspect lcg.csv",
    ] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let said = CommandOutput::new(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{line}: {}", said.stderr);
        assert!(!said.stderr.contains("panicked"), "{line}: {}", said.stderr);
    }
}

#[test]
fn help_and_version_are_on_stdout() {
    let place = Place::new();
    for command in ["--help", "sweep --help", "backtest --help", "data --help", "--version"] {
        let said = place.ok(command);
        assert!(said.stderr.is_empty() && said.stdout.contains("tidemill"), "{command}");
    }
    place.with_gate("--bars 3000 --symbols 2", "bars.csv");
    let listed = place.ok("strategies").stdout;
    for (name, _) in SHIPPED {
        assert!(listed.contains(name), "{listed}");
        place.write("own.toml", place.ok(&format!("strategies {name}")).stdout);
        let own = place.json("backtest own.toml --data bars.csv");
        assert_eq!(
            own,
            place.json(&format!("backtest {name} --data bars.csv")),
            "{name}: a printed strategy is the shipped one"
        );
    }
    // A strategy that reads another symbol tells what the data lacks, and what to do.
    place.refused("backtest btc-gate", "there is no symbol 'BTCUSDT' in the data");
    place.refused("backtest btc-gate", "the data has SYN0, SYN1, SYN2, SYN3: add that of BTCUSDT to --data");
}

#[test]
fn a_bench_says_how_fast_this_machine_is() {
    let place = Place::with_bars();
    let answer = place.json("bench --trials 32 --bars 500 --device cpu");
    assert_eq!((answer["measured"].as_array().unwrap().len(), &answer["different"]), (4, &0.into()));
    assert!(answer["measured"][0]["trials_per_second"].as_f64().unwrap() > 0.0);
    let shown = place.ok("bench --trials 16 --bars 500 --device cpu").stdout;
    assert!(shown.contains("seller-exhaustion") && shown.contains("trials/s"), "{shown}");
    place.refused("bench --trials 0", "at least 1");
}
