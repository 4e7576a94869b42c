//! Sets A and B of the seller-exhaustion goldens, through the command line, on both profiles and both file formats.

use serde_json::Value;

use crate::support::{Place, settings};

const GOLDEN: &str = include_str!("../../../backtest/tests/golden/seller_exhaustion.json");

fn backtest(place: &Place, file: &str, profile: &str, set: &Value) -> Value {
    let mut args = vec!["backtest", "seller-exhaustion", "--data", file, "--profile", profile, "--json"];
    let given = [settings(&set["seller_params"]), settings(&set["backtest_params"])].concat();
    args.extend(given.iter().map(String::as_str));
    let said = place.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.json()
}

/// Places, reasons, prices, P&L and R are equal, bit for bit.
fn check_trades(ours: &Value, expected: &Value, what: &str) {
    let (ours, expected) = (ours.as_array().unwrap(), expected.as_array().unwrap());
    assert_eq!(ours.len(), expected.len(), "{what}");
    assert!(!ours.is_empty());
    for (at, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        for (name, reference) in [
            ("signal_idx", "signal_idx"),
            ("entry_idx", "entry_idx"),
            ("exit_idx", "exit_idx"),
            ("bars", "bars_held"),
            ("reason", "reason"),
        ] {
            assert_eq!(ours[name], expected[reference], "{what}, trade {at}: {name}");
        }
        for (name, reference) in
            [("entry", "entry"), ("exit", "exit"), ("pnl", "pnl"), ("r", "R"), ("stop", "stop")]
        {
            let (ours, expected) = (ours[name].as_f64(), expected[reference].as_f64());
            assert_eq!(ours.map(f64::to_bits), expected.map(f64::to_bits), "{what}, trade {at}: {name}");
        }
        assert_eq!(ours["side"], "long", "{what}, trade {at}");
    }
}

fn check_number(ours: &Value, expected: &Value, what: &str) {
    let (ours, expected) = (ours.as_f64().unwrap(), expected.as_f64().unwrap());
    let tolerance = 1e-12 * expected.abs().max(1.0);
    assert!((ours - expected).abs() <= tolerance, "{what}: {ours}, expected {expected}");
}

fn check_metrics(ours: &Value, expected: &Value, what: &str) {
    for (name, reference) in [
        ("trades", "n"),
        ("win_rate", "win_rate"),
        ("avg_r", "avg_R"),
        ("net_pnl", "total_pnl"),
        ("max_drawdown_pnl_ref", "max_dd"),
        ("sharpe_r", "sharpe"),
    ] {
        check_number(&ours[name], &expected[reference], &format!("{what}: {name}"));
    }
}

#[test]
fn sets_a_and_b_are_reproduced_by_both_profiles_from_both_formats() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let place = Place::new();
    for file in ["lcg.csv", "lcg.parquet"] {
        place.ok(&format!("data generate --kind lcg --bars 5000 --out {file}"));
        for set in golden["sets"].as_array().unwrap() {
            let what = format!("set {} of {file}", set["name"]);
            let reference = backtest(&place, file, "reference", set);
            check_trades(&reference["trades"], &set["trades"], &what);
            check_metrics(&reference["metrics"], &set["metrics"], &what);
            for name in ["profit_factor", "avg_win", "avg_loss"] {
                let ours = &reference["metrics"][format!("{name}_pnl")];
                check_number(ours, &set["extended_metrics"][name], name);
            }
            check_number(&reference["objective"]["value"], &set["fitness"]["balanced"], &what);

            let (legacy, expected) = (backtest(&place, file, "legacy", set), &set["legacy_engine"]);
            check_trades(&legacy["trades"], &expected["trades"], &format!("legacy {what}"));
            check_metrics(&legacy["metrics"], &expected["metrics"], &format!("legacy {what}"));
        }
    }
}

#[test]
fn a_sweep_may_fix_parameters_outside_their_search_range_as_a_backtest_may() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let place = Place::with_bars();
    let set = &golden["sets"][0];
    let mut args = vec![
        "sweep",
        "seller-exhaustion",
        "--data",
        "lcg.csv",
        "--profile",
        "reference",
        "--trials",
        "8",
        "--json",
    ];
    let given = [settings(&set["seller_params"]), settings(&set["backtest_params"])].concat();
    args.extend(given.iter().map(String::as_str).filter(|text| !text.contains("reward_r")));
    let said = place.run(&args);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer = said.json();
    assert_eq!(answer["trials"], 8);
    let best = &answer["best"][0]["parameters"];
    assert_eq!(best["ema_fast"], 24, "a fixed value outside the range is used as given");
    assert_eq!(best["fib_target_level"], 0.5);
}
