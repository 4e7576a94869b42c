//! Verdicts: what is held out stays unseen, and what is found does not depend on how the sweep was run.

use serde_json::Value;

use crate::support::{Place, settings};

fn winners(answer: &Value) -> &Vec<Value> {
    answer["holding_up"]["winners"].as_array().unwrap()
}

#[test]
fn the_holdout_is_tried_after_the_search_and_never_seen_by_it() {
    let place = Place::new();
    place.ok("data generate --bars 6000 --symbols 2 --seed 3 --timeframe 1h --out two.parquet");
    let common = "sweep zscore-dip --data two.parquet --objective sharpe --trials 200 --top 3";
    let held = place.json(&format!("{common} --holdout 2020-07-01.. --split 0.7"));
    let cut = place.json(&format!("{common} --to 2020-07-01 --split 0.7"));
    assert_eq!(held["best"], cut["best"], "the search saw the same");
    assert_eq!(winners(&held).len(), 3);
    for (winner, trial) in winners(&held).iter().zip(held["best"].as_array().unwrap()) {
        assert_eq!(winner["trial"], trial["trial"]);
        assert_eq!(winner["objective"]["in_sample"], trial["objective"]);
        assert_eq!(winner["objective"]["out_of_sample"], trial["out_of_sample"]["objective"]);
        let given = settings(&trial["parameters"]).join(" ");
        let alone = place.json(&format!("backtest zscore-dip --data two.parquet --from 2020-07-01 {given}"));
        assert_eq!(winner["sharpe"]["holdout"], alone["metrics"]["sharpe"], "{given}");
        let names: Vec<&str> = winner["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| check["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "luck",
                "market",
                "overfitting",
                "out of sample",
                "holdout",
                "costs",
                "delay",
                "neighbours",
                "trades"
            ]
        );
        assert_eq!(winner["n_checks"], 9);
        let market = &winner["market"];
        for part in ["in_sample", "out_of_sample", "holdout"] {
            assert!(
                market[part]["alpha"].is_number() && market[part]["benchmark_return"].is_number(),
                "{market}"
            );
        }
        assert_eq!(market["holdout"]["benchmark_return"], alone["market"]["in_sample"]["benchmark_return"]);
    }
    assert!(winners(&cut).iter().all(|winner| winner["sharpe"]["holdout"].is_null()));
}

#[test]
fn what_is_held_out_is_refused_as_anything_else() {
    let place = Place::with_bars();
    let common = "sweep zscore-dip --data lcg.csv --trials 10";
    let said =
        place.refused(&format!("{common} --objective holdout_sharpe --holdout 2024-02-01.."), "no metric");
    assert!(said.stderr.contains("never an objective"), "{}", said.stderr);
    place.refused(&format!("{common} --holdout 2999-01-01.."), "no bar lies in --holdout");
    place.refused(&format!("{common} --holdout 2020"), "write 2024-01-01 or");
    place.refused(&format!("{common} --holdout ..2020-01-01"), "write 2024-01-01 or");
    place.refused(&format!("{common} --embargo soon"), "--embargo");
    let answer = place.json("backtest zscore-dip --data lcg.csv");
    let first = answer["segments"][0]["from"].as_str().unwrap();
    place.refused(&format!("{common} --holdout {first}.."), "no bar lies between");
    place.refused(&format!("{common} --holdout {first}.. --from {first}"), "must not see");
}

#[test]
fn a_verdict_depends_neither_on_threads_nor_on_what_was_read_back() {
    let place = Place::new();
    place.ok("data generate --bars 4000 --symbols 1 --seed 5 --timeframe 1h --out bars.parquet");
    let line = "sweep zscore-dip --data bars.parquet --trials 400 --top 2 --split 0.8";
    let plain = place.json(line);
    let verdict = &plain["holding_up"];
    assert!(verdict["overfit"]["n_combinations"] == 12_870, "{verdict}");
    assert!(verdict["independent_trials"].as_f64() <= verdict["trials"].as_f64());
    assert_eq!(*verdict, place.json(&format!("{line} --threads 1"))["holding_up"]);
    let kept = format!("{line} --out study");
    assert_eq!(*verdict, place.json(&kept)["holding_up"]);
    let stored = place.read("study/verdict.json");
    // The second time every trial is read back, and the blocks of the sample are evaluated again.
    let again = place.json(&kept);
    assert_eq!(again["resumed_from"], 400);
    assert_eq!(*verdict, again["holding_up"]);
    assert_eq!(stored, place.read("study/verdict.json"));

    assert_eq!(*verdict, place.json("study show study")["holding_up"]);
    let shown = place.ok("study show study --html page.html").stdout;
    let sentence = winners(&plain)[0]["sentence"].as_str().unwrap();
    assert!(shown.contains("Does it hold up?") && shown.contains(sentence), "{shown}");
    let page = place.read("page.html");
    assert!(page.contains("\"holding\":{") && page.contains(sentence));

    assert!(place.json(&format!("{line} --verdict off"))["holding_up"].is_null());
}
