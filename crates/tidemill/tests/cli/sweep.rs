//! `sweep`: the same answer whatever the threads, another with another seed, and each trial what a back-test says.

use serde_json::Value;
use tidemill_lab::shipped::SHIPPED;

use crate::support::{Place, ranked, settings, timeless};

fn objectives(answer: &Value) -> Vec<f64> {
    answer["best"].as_array().unwrap().iter().map(|trial| trial["objective"].as_f64().unwrap()).collect()
}

#[test]
fn json_of_a_sweep_has_the_documented_shape_best_first() {
    let place = Place::with_bars();
    let answer =
        place.json("sweep zscore-dip --data lcg.csv --trials 300 --top 7 --split 0.8 --objective net_pnl");
    for (name, expected) in [("strategy", "zscore-dip"), ("objective", "net_pnl")] {
        assert_eq!(answer[name], expected);
    }
    assert_eq!(answer["trials"], 300);
    assert_eq!(answer["interrupted"], false);
    assert_eq!(answer["year_days"], 365.0);
    let best = answer["best"].as_array().unwrap();
    assert_eq!(best.len(), 7);
    assert!(objectives(&answer).is_sorted_by(|a, b| a >= b), "{:?}", objectives(&answer));
    for trial in best {
        assert!(trial["trial"].as_u64().unwrap() < 300);
        assert_eq!(trial["objective"], trial["metrics"]["net_pnl"]);
        assert!(trial["out_of_sample"]["metrics"]["trades"].is_number());
        let params = &trial["parameters"];
        assert_eq!(params["stop_atr"].is_null(), params["use_stop"] == false, "inactive is null: {params}");
    }
}

#[test]
fn the_answer_depends_on_the_seed_and_not_on_the_threads() {
    let place = Place::with_bars();
    for sampler in ["random", "sobol", "grid"] {
        let run = |rest: &str| {
            let line = format!(
                "sweep seller-exhaustion --profile legacy --data lcg.csv --trials 400 --top 400 --sampler {sampler}"
            );
            timeless(place.json(&format!("{line} {rest}")))
        };
        let first = run("--seed 5");
        assert!(first["valid"].as_u64() > Some(0), "{sampler}");
        assert_eq!(first, run("--seed 5"), "{sampler}: the same seed");
        assert_eq!(first, run("--seed 5 --threads 1"), "{sampler}: one thread");
        assert_eq!(first, run("--seed 5 --threads 3"), "{sampler}: three threads");
        let other = run("--seed 6");
        assert_eq!(first["best"] == other["best"], sampler == "grid", "{sampler}: another seed");
    }
}

#[test]
fn each_trial_is_what_a_backtest_of_its_parameters_says() {
    let place = Place::new();
    place.with_gate("--bars 3000 --symbols 2 --seed 3", "two.csv");
    for (strategy, _) in SHIPPED {
        let common = format!("{strategy} --data two.csv --split 0.7 --folds 2 --objective trades");
        let answer = place.json(&format!("sweep {common} --trials 60 --top 3 --sampler random"));
        for trial in answer["best"].as_array().unwrap() {
            let given = settings(&trial["parameters"]).join(" ");
            let single = place.json(&format!("backtest {common} {given}"));
            assert_eq!(single["metrics"], trial["metrics"], "{strategy} {given}");
            assert_eq!(single["out_of_sample"], trial["out_of_sample"]["metrics"], "{strategy} {given}");
            assert_eq!(single["objective"]["value"], trial["objective"], "{strategy} {given}");
        }
    }
}

#[test]
fn a_grid_has_each_combination_once_however_many_trials_are_asked_for() {
    let place = Place::with_bars();
    place.write(
        "hold.toml",
        "[params]\nhold = { int = [2, 60], default = 9 }\nuse_stop = { bool = true }\ndepth = { float = [0.1, 0.9], default = 0.5, when = 'use_stop' }\n[long]\nenter = 'close > open'\n[[long.exits]]\nkind = 'time'\nbars = 'hold'\n[[long.exits]]\nkind = 'stop'\nlevel = 'low * depth'\nwhen = 'use_stop'\n[objective]\nmaximize = 'trades'\n",
    );
    let line = "sweep hold.toml --data lcg.csv --set use_stop=false --sampler grid --top 100";
    let answer = place.json(&format!("{line} --trials 18446744073709551615"));
    assert_eq!(answer["trials"], 59, "hold has 59 values, and depth none where it is not used");
    let mut held: Vec<i64> = answer["best"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["parameters"]["hold"].as_i64().unwrap())
        .collect();
    held.sort_unstable();
    assert_eq!(held, (2..=60).collect::<Vec<_>>());
    place.write("switch.toml", "[params]\na = { bool = true }\nb = { choice = ['x', 'y', 'z'] }\n[long]\nenter = 'a and b == \"x\" and close > open'\nmax_hold = '5'\n");
    let answer = place.json("sweep switch.toml --data lcg.csv --sampler grid --trials 1000");
    assert_eq!((&answer["trials"], &answer["valid"]), (&6.into(), &1.into()));
}

#[test]
fn a_set_parameter_is_not_searched() {
    let place = Place::with_bars();
    let answer =
        place.json("sweep zscore-dip --data lcg.csv --set window=33 --objective trades --trials 50 --top 50");
    assert!(!answer["best"].as_array().unwrap().is_empty());
    assert!(answer["best"].as_array().unwrap().iter().all(|trial| trial["parameters"]["window"] == 33));
    let outside =
        place.json("sweep zscore-dip --data lcg.csv --set window=500 --objective trades --trials 50");
    assert!(outside["best"].as_array().unwrap().iter().all(|trial| trial["parameters"]["window"] == 500));
}

#[test]
fn the_table_shows_as_many_trials_as_asked_for() {
    let place = Place::with_bars();
    for (top, rows) in [("1", 1), ("3", 3), ("999999999999", 50)] {
        let said = place.ok(&format!(
            "sweep zscore-dip --data lcg.csv --trials 50 --set threshold=0.5 --set max_hold=5 --objective win_rate --top {top}"
        ));
        let shown = ranked(&said.stdout).lines().count() - 3;
        assert!(shown == rows || (top.len() > 2 && shown > 3 && shown <= rows), "{top}: {}", said.stdout);
    }
    let said =
        place.ok("sweep zscore-dip --data lcg.csv --trials 50 --objective trades --set window=20 --top 0");
    assert!(!said.stdout.contains("No trial was valid"), "{}", said.stdout);
}

#[test]
fn the_objective_has_its_column_once_and_sharpe_stays() {
    let place = Place::with_bars();
    let said = place.ok("sweep zscore-dip --data lcg.csv --trials 100 --objective win_rate");
    let header = ranked(&said.stdout).lines().next().unwrap();
    assert!(header.contains("Sharpe Ratio") || header.contains("sharpe"), "{header}");
    assert!(header.contains("win_rate") && !header.contains("Win Rate"), "{header}");
}

#[test]
fn without_arguments_there_is_a_ranked_table() {
    let place = Place::new();
    let said = place.ok("sweep --trials 300");
    assert!(said.stderr.contains("planted edge") && said.stderr.contains("300 trials"), "{}", said.stderr);
    let table = ranked(&said.stdout);
    assert_eq!(table.lines().count(), 14, "{}", said.stdout);
    assert!(table.lines().next().unwrap().contains("threshold"));
    assert!(said.stdout.contains("(year of 365 days)\n"), "{}", said.stdout);
}

#[test]
fn progress_is_not_drawn_where_nobody_watches() {
    let place = Place::with_bars();
    let said = place.ok("sweep zscore-dip --data lcg.csv --trials 500");
    assert!(!said.stderr.contains('\u{1b}') && !said.stdout.contains('\u{1b}'), "{:?}", said.stderr);
    assert!(!said.stderr.contains("left"), "{}", said.stderr);
}
