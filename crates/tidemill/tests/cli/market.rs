//! Strategies against the market they trade in: what everybody got is no edge, and the benchmark can be named.

use serde_json::Value;

use crate::support::Place;

const ALWAYS_LONG: &str = "name = 'always-long'\n[params]\nmax_hold = { int = [24, 480], default = 240 }\n\
    [long]\nenter = 'close > 0'\nmax_hold = 'max_hold'\n\
    [objective]\nmaximize = 'sharpe'\nrequire = 'trades >= 5'\n";

fn check<'a>(winner: &'a Value, name: &str) -> Option<&'a Value> {
    winner["checks"].as_array().unwrap().iter().find(|check| check["name"] == name)
}

#[track_caller]
fn near(found: &Value, wanted: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

#[test]
fn always_long_on_a_rising_series_does_not_hold_up() {
    let place = Place::new();
    place.write("long.toml", ALWAYS_LONG);
    // Holding has a Sharpe ratio of about 4 in every part.
    place.ok("data generate --kind walk --bars 17520 --drift 2.1 --seed 11 --out bull.parquet");
    let line = "sweep long.toml --data bull.parquet --trials 300 --top 3 --split 0.6 --holdout 2021-08-01..";
    let answer = place.json(&format!("{line} --set fee_bps=0 --set slippage_bps=0"));
    let winners = answer["holding_up"]["winners"].as_array().unwrap();
    assert_eq!(winners.len(), 3);
    for winner in winners {
        assert_ne!(winner["grade"], "good", "{winner}");
        let market = check(winner, "market").unwrap();
        assert_eq!(market["survived"], false, "{market}");
        // All that looks at its own returns is fine with it: they are far above luck, and unseen data confirms them.
        assert!(winner["deflated"].as_f64() > Some(0.95), "{winner}");
        for name in ["out of sample", "holdout", "delay", "neighbours"] {
            assert_eq!(check(winner, name).unwrap()["survived"], true, "{name}: {winner}");
        }
        let beta = winner["market"]["in_sample"]["beta"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&beta), "{beta}");
        assert!(
            check(winner, "luck").unwrap()["words"].as_str().unwrap().contains("by the spread of all trials")
        );
    }
    let shown = place.ok(line);
    assert!(shown.stdout.contains("(the benchmark is buy and hold)"), "{}", shown.stdout);
    assert!(shown.stderr.contains("by the spread of all trials)"), "{}", shown.stderr);
}

#[test]
fn sizing_by_the_unit_has_no_market_and_says_so() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 40 --top 1 --set sizing=unit --objective trades";
    let winner = place.json(line)["holding_up"]["winners"][0].take();
    assert!(check(&winner, "market").is_none() && winner["market"].is_null(), "{winner}");
    let sentence = winner["sentence"].as_str().unwrap();
    assert!(sentence.contains("(not compared with the market: sizing is by the unit)"), "{sentence}");
    assert!(place.json("backtest zscore-dip --data lcg.csv --set sizing=unit")["market"].is_null());
}

#[test]
fn the_benchmark_is_every_symbol_held_or_the_one_that_is_named() {
    let place = Place::new();
    place.ok("data generate --kind walk --bars 3000 --symbols 2 --drift 1 --seed 3 --out two.parquet");
    place.ok("data generate --kind clustered --bars 3000 --seed 9 --out other.csv");
    let line = "backtest zscore-dip --data two.parquet --set fee_bps=0 --set slippage_bps=0";
    let market = |more: &str| place.json(&format!("{line} {more}"))["market"].take();
    let both = market("");
    assert_eq!(both["benchmark"], "buy and hold");
    let alone =
        |name: &str| market(&format!("--symbols {name}"))["in_sample"]["benchmark_return"].as_f64().unwrap();
    let (one, two) = (alone("WALK0"), alone("WALK1"));
    let named = |name: &str| market(&format!("--benchmark {name}"));
    assert_eq!(named("WALK1")["benchmark"], "WALK1");
    near(&named("WALK0")["in_sample"]["benchmark_return"], one);
    near(&named("WALK1")["in_sample"]["benchmark_return"], two);
    // Equal parts, re-weighted daily: between the two, and neither of them.
    let pool = both["in_sample"]["benchmark_return"].as_f64().unwrap();
    assert!(pool > one.min(two) && pool < one.max(two), "{one} {two} {pool}");
    // A symbol that is not traded, and a file.
    let untraded = market("--symbols WALK0 --benchmark WALK1");
    near(&untraded["in_sample"]["benchmark_return"], two);
    let file = named("other.csv");
    let text = place.read("other.csv");
    let price = |line: &str, column: &str| -> f64 {
        let at = text.lines().next().unwrap().split(',').position(|name| name == column).unwrap();
        line.split(',').nth(at).unwrap().parse().unwrap()
    };
    let (first, last) = (text.lines().nth(1).unwrap(), text.lines().last().unwrap());
    near(&file["in_sample"]["benchmark_return"], price(last, "close") / price(first, "open") - 1.0);
    let excess = both["in_sample"]["excess_return"].as_f64().unwrap();
    let answer = place.json(line);
    near(&answer["metrics"]["total_return"], excess + pool);
    place.refused(&format!("{line} --benchmark nothing"), "neither a symbol of the data nor a file");
    place.refused(&format!("{line} --symbols WALK0 --benchmark nothing"), "hint: the data has WALK0");
    place.refused(&format!("{line} --benchmark two.parquet"), "the file has 2 symbols");
}

#[test]
fn the_report_holds_what_the_verdict_holds() {
    let place = Place::new();
    place.ok("data generate --kind walk --bars 3000 --symbols 2 --drift 1 --seed 3 --out two.parquet");
    let line = "backtest zscore-dip --data two.parquet --split 0.7 --report page.html";
    let answer = place.json(line);
    let page = place.read("page.html");
    let row =
        page.split("\"metrics\":[").nth(1).unwrap().split("\"key\":\"benchmark_return\"").nth(1).unwrap();
    let value: f64 = row.split("\"value\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    near(&answer["parts"]["whole"]["market"]["benchmark_return"], value);
    for key in ["excess_return", "beta", "alpha", "t_alpha", "net_exposure", "exposure_matched_return"] {
        assert!(page.contains(&format!("\"key\":\"{key}\"")), "{key}");
    }
    assert!(page.contains("re-weighted daily at no cost"));
    let shown = place.ok("backtest zscore-dip --data two.parquet").stdout;
    assert!(
        shown.contains("re-weighted daily at no cost") && shown.contains("Return of buy and hold [%]"),
        "{shown}"
    );
    let one = place.ok("backtest zscore-dip --data two.parquet --symbols WALK0").stdout;
    assert!(!one.contains("re-weighted"), "{one}");
}

#[test]
fn a_pool_is_described_wherever_its_figures_are_shown() {
    let place = Place::new();
    place.ok("data generate --kind walk --bars 3000 --symbols 2 --seed 3 --out two.parquet");
    let sweep = place.ok("sweep zscore-dip --data two.parquet --trials 60 --split 0.7 --out study").stdout;
    let study = place.ok("study show study --html study.html").stdout;
    let line = "walkforward zscore-dip --data two.parquet --train 40d --test 20d --trials 40 --html wf.html";
    let walk = place.ok(line).stdout;
    for (what, text) in [
        ("sweep", sweep),
        ("study", study.split_whitespace().collect::<Vec<_>>().join(" ")),
        ("page of the study", place.read("study.html")),
        ("walk", walk.clone()),
        ("page of the walk", place.read("wf.html")),
    ] {
        assert!(text.contains("re-weighted daily at no cost"), "{what}: {text}");
    }
    assert!(walk.contains("return of the benchmark") && walk.contains("t of alpha"), "{walk}");
}
