//! `study judge`, `compare`, `rename` and `delete`.

use serde_json::Value;

use crate::process::{caught, kill, spawn_silent, until};
use crate::study::n_stored;
use crate::support::Place;

/// A place with the study `study`, which has all parts of the data.
fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --bars 6000 --timeframe 4h --seed 5 --out bars.csv");
    place.ok("data generate --bars 6000 --timeframe 4h --seed 7 --symbols 2 --out two.csv");
    let index: String = place
        .read("two.csv")
        .lines()
        .filter(|line| !line.contains("SYN0"))
        .fold(String::new(), |all, line| all + line + "\n");
    place.write("index.csv", index);
    place.ok(SWEEP);
    place
}

const SWEEP: &str = "sweep zscore-dip --data bars.csv --trials 400 --split 0.7 --holdout 2022-01-01 --benchmark index.csv --out study";

fn verdict(place: &Place) -> Value {
    serde_json::from_str(&place.read("study/verdict.json")).unwrap()
}

#[test]
fn a_verdict_is_made_again_from_the_study_alone_and_is_the_same() {
    let place = place();
    let whole = place.read("study/verdict.json");
    let first = verdict(&place);
    let winners = first["holding_up"]["winners"].as_array().unwrap();
    assert!(winners.len() > 2 && winners[0]["objective"]["holdout"].is_number(), "{first:#}");
    std::fs::remove_file(place.path("study/verdict.json")).unwrap();
    // From another folder, without the settings of the sweep.
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    let said =
        place.command(&["study", "judge", "../study"]).current_dir(place.path("elsewhere")).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(place.read("study/verdict.json") == whole, "byte for byte");
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.starts_with("Does it hold up?\n") && text.contains("(the benchmark is SYN1)"), "{text}");
    assert!(place.ok("study show study").stdout.contains("Does it hold up?"));
}

#[test]
fn a_run_that_judges_fewer_leaves_the_verdict_as_it_is() {
    let place = place();
    let whole = place.read("study/verdict.json");
    place.ok(&format!("{SWEEP} --top 1"));
    assert!(place.read("study/verdict.json") == whole);
    let said = place.ok("study judge study --top 2");
    assert!(said.stderr.contains("the study keeps its verdict, which judges more trials"), "{}", said.stderr);
    assert!(place.read("study/verdict.json") == whole);
    assert_eq!(place.json("study judge study --top 2")["holding_up"]["winners"].as_array().unwrap().len(), 2);
    // More trials are another matter.
    place.ok(&SWEEP.replace("400", "500").replace("--out", "--top 1 --out"));
    assert_eq!(verdict(&place)["trials"], 500);
}

#[test]
fn a_study_that_was_stopped_is_judged_as_far_as_it_got() {
    let place = Place::new();
    place.ok("data generate --bars 4000 --out bars.parquet");
    let line = "sweep zscore-dip --data bars.parquet --trials 1000000000 --batch 50";
    let folder = caught(|folder| {
        let child = spawn_silent(&place, &format!("{line} --out {folder}"));
        until("trials", || n_stored(&place.path(folder)) >= 200);
        let running = place.line(&format!("study judge {folder}"));
        let is_refused = running.code == Some(2) && running.stderr.contains("is in use by process");
        kill(child) && is_refused
    });
    let judged = place.json(&format!("study judge {folder}"));
    assert_eq!(judged["trials"].as_u64(), Some(n_stored(&place.path(&folder))));
    assert!(!judged["holding_up"]["winners"].as_array().unwrap().is_empty());
    let shown = place.json(&format!("study show {folder}"));
    assert_eq!((&shown["state"], &shown["holding_up"]), (&"stopped".into(), &judged["holding_up"]));
}

#[test]
fn the_data_of_a_study_may_have_moved_and_must_be_the_same() {
    let place = place();
    std::fs::rename(place.path("bars.csv"), place.path("moved.csv")).unwrap();
    place.ok("data generate --bars 6000 --timeframe 4h --seed 6 --out other.csv");
    let said = place.refused("study judge study", "bars.csv of the study in study is not there any more");
    assert!(said.stderr.contains("hint: put it back, or name it with --data"), "{}", said.stderr);
    place.refused("study judge study --data other.csv", "the data is not that of the study in study");
    let whole = place.read("study/verdict.json");
    place.ok("study judge study --data moved.csv");
    assert!(place.read("study/verdict.json") == whole);
    // A benchmark that is a file may have moved as well, or be another.
    std::fs::rename(place.path("index.csv"), place.path("moved-index.csv")).unwrap();
    place.refused("study judge study --data moved.csv", "--benchmark index.csv: neither a symbol");
    place.ok("study judge study --data moved.csv --benchmark moved-index.csv");
    assert!(place.read("study/verdict.json") == whole);
    let judged = place.json("study judge study --data moved.csv --benchmark SYN0");
    assert_eq!(judged["holding_up"]["benchmark"], "SYN0");
    std::fs::copy(place.path("other.csv"), place.path("bars.csv")).unwrap();
    place.refused("study judge study", "the data is not that of the study");
}

#[test]
fn studies_are_renamed_and_deleted_but_nothing_else_is() {
    let place = Place::with_bars();
    for name in ["one", "two", "three"] {
        place.ok(&format!("sweep zscore-dip --data lcg.csv --trials 30 --verdict off --out runs/{name}"));
    }
    assert_eq!(place.ok("study rename runs/one first").stderr, "runs/one is now runs/first\n");
    place.refused("study rename runs/first two", "runs/two is there already");
    place.ok("study rename runs/first archive/first");
    assert_eq!(place.json("study best archive/first")["trials"], 30);
    // The study goes on under its new name.
    place.ok("sweep zscore-dip --data lcg.csv --trials 40 --verdict off --out archive/first");

    // Nobody can be asked, so that nothing happens.
    let said = place.refused("study delete runs/two runs/three", "2 studies with 60 trials would be deleted");
    assert!(said.stderr.contains("hint: add --yes"), "{}", said.stderr);
    place.refused("study delete runs/two runs --yes", "runs is not a study");
    assert!(place.path("runs/two/study.toml").is_file(), "all are checked before the first goes");
    place.write("runs/two/notes.txt", "mine");
    let said = place.ok("study delete runs/two runs/three --yes");
    assert!(said.stderr.contains("note: runs/two stays, because it also holds notes.txt"), "{}", said.stderr);
    assert!(said.stderr.contains("deleted 2 studies with 60 trials"), "{}", said.stderr);
    assert_eq!(place.read("runs/two/notes.txt"), "mine");
    assert!(!place.path("runs/three").exists() && !place.path("runs/two/trials").exists());
    place.refused("study show runs/two", "is not a study");
}

#[test]
fn studies_are_compared_by_what_differs_and_what_came_of_it() {
    let place = place();
    let other = SWEEP
        .replace("study", "other")
        .replace("--trials 400", "--trials 90 --sampler random --set fee_bps=9");
    place.ok(&other);
    let text = place.ok("strategies zscore-dip").stdout;
    place.write("zscore-dip.toml", format!("# mine\n{text}"));
    let worded = SWEEP.replace("zscore-dip", "zscore-dip.toml").replace("study", "worded");
    place.ok(&worded.replace("--benchmark index.csv", "--verdict off"));

    let answer = place.json("study compare study other worded --html compare.html");
    let settings: Vec<&str> =
        answer["settings"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert!(!settings.contains(&"strategy.source"), "comments do not count: {settings:?}");
    for name in ["sweep.sampler", "sweep.trials", "execution.fee_bps"] {
        assert!(settings.contains(&name), "{name}: {settings:?}");
    }
    let sampler =
        answer["settings"].as_array().unwrap().iter().find(|of| of["name"] == "sweep.sampler").unwrap();
    assert_eq!(sampler["values"], serde_json::json!(["auto", "random", "auto"]));
    let studies = answer["studies"].as_array().unwrap();
    let winner = &verdict(&place)["holding_up"]["winners"][0];
    let judged = &studies[0]["judged"];
    assert_eq!(judged["trial"], winner["trial"]);
    assert_eq!(judged["parts"], winner["parts"]);
    assert_eq!(studies[2]["judged"], Value::Null);
    assert_eq!(studies[1]["trials"], 90);
    let best = place.json("study best other")["best"][0].clone();
    assert_eq!(studies[1]["best"], serde_json::json!([best["trial"], best["objective"]]));
    assert_eq!(answer["warnings"], serde_json::json!([]));

    let said = place.ok("study compare study other worded");
    for part in
        ["What differs", "Best trials", "out of sample", "whole period", "not judged", "after so many trials"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    assert!(said.stderr.contains("`tidemill study judge worded` judges its winners"), "{}", said.stderr);
    let page = place.read("compare.html");
    for part in [
        judged["headline"].as_str().unwrap(),
        "execution.fee_bps",
        "class=\"curve c2\"",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"));

    place.ok("data generate --bars 3000 --timeframe 4h --seed 9 --out short.csv");
    place.ok("sweep zscore-dip --data short.csv --trials 20 --objective calmar --out third");
    let answer = place.json("study compare study third");
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("objectives differ") && warnings.contains("the data differs"), "{warnings}");
    let line = place.line("study compare study");
    assert_eq!(line.code, Some(2), "{}", line.stdout);
}
