//! `sweep --out`: the study folder, whole and after Ctrl-C.

use std::path::Path;

use tidemill_search::{ExportFormat, Score, StudyFolder, export, read_trials};
use tidemill_telemetry::read_journal;

use crate::process::{caught, kill, spawn_silent, until};
#[cfg(unix)]
use crate::process::{ended, signal, spawn};
use crate::support::Place;

/// Numbers, scores and one metric of all trials.
fn stored(dir: &Path) -> (u64, Vec<Option<f64>>, Vec<Option<f64>>) {
    let (mut n_trials, mut scores, mut sharpe) = (0, Vec::new(), Vec::new());
    for batch in read_trials(dir).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.trials[0], n_trials);
        n_trials += batch.trials.len() as u64;
        scores.extend(batch.scores.iter().map(|score: &Score| score.value()));
        let (_, values) = batch.metrics.into_iter().find(|(name, _)| name == "sharpe").unwrap();
        sharpe.extend(values);
    }
    (n_trials, scores, sharpe)
}

/// Two texts that must be the same; shows the first line that differs, and not ten thousand.
pub fn same_lines(one: &str, other: &str) {
    if let Some((at, (one, other))) = one.lines().zip(other.lines()).enumerate().find(|(_, (a, b))| a != b) {
        panic!("line {}: {one}\n  other: {other}", at + 1);
    }
    assert_eq!(one.len(), other.len(), "one text goes on where the other ends");
}

/// All trials as text.
pub fn exported(dir: &Path) -> String {
    let mut bytes = Vec::new();
    export(dir, ExportFormat::Csv, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_folder_holds_every_trial_and_what_was_run() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 700 --seed 11 --sampler sobol --set use_stop=true --set window=30 --top 700";
    let answer = place.json(&format!("{line} --out deep/study"));
    let dir = place.path("deep/study");
    let mut files: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["journal.jsonl", "study.lock", "study.toml", "trials", "verdict.json"]);
    assert!(dir.join("trials/part-000000.parquet").is_file());

    let (n_trials, scores, sharpe) = stored(&dir);
    assert_eq!(n_trials, 700);
    assert_eq!(scores.iter().flatten().count() as u64, answer["valid"].as_u64().unwrap());
    let best = answer["best"].as_array().unwrap();
    assert!(best.len() > 100 && best.len() as u64 <= answer["valid"].as_u64().unwrap());
    for trial in best {
        let at = trial["trial"].as_u64().unwrap() as usize;
        assert_eq!(scores[at], trial["objective"].as_f64(), "objective of trial {at}");
        assert_eq!(sharpe[at], trial["metrics"]["sharpe"].as_f64(), "sharpe of trial {at}");
    }

    let study = StudyFolder::open(&dir).unwrap();
    assert_eq!(study.header().seed, 11);
    let text = place.read("deep/study/study.toml");
    for part in
        ["zscore-dip", "trials = 700", "sampler = \"sobol\"", "fee_bps = 2.0", "zscore(close, window)"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let fixed = &study.header().config["fixed"];
    assert_eq!(fixed["use_stop"].as_bool(), Some(true), "values, not codes: {fixed}");
    assert_eq!(fixed["window"].as_integer(), Some(30), "values, not codes: {fixed}");
    let events = read_journal(&study.journal_path()).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(!events.is_empty());
}

#[test]
fn another_configuration_is_refused_with_every_difference() {
    let place = Place::with_bars();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --out study");
    let line =
        "sweep zscore-dip --data lcg.csv --trials 30 --sampler sobol --seed 2 --set window=30 --out study";
    let said = place.refused(line, "sweep.trials: 20 in the study, 30 requested");
    for part in
        ["sweep.sampler: auto in the study, sobol", "seed: 1 in the study, 2", "fixed.window: nothing"]
    {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert_eq!(stored(&place.path("study")).0, 20);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --out empty");
    assert_eq!(stored(&place.path("empty")).0, 20);
}

#[test]
fn comments_and_formatting_do_not_make_another_study_and_rules_do() {
    let place = Place::with_bars();
    let text = place.ok("strategies zscore-dip").stdout;
    let line = "sweep mine.toml --data lcg.csv --trials 60";
    place.write("mine.toml", &text);
    place.ok(&format!("{line} --out study"));
    let whole = exported(&place.path("study"));

    let tidy: String = text.lines().filter(|line| !line.starts_with('#')).fold(String::new(), |all, line| {
        all + &line.replace("score < -threshold", "score<-threshold").replace("trades >= 100", "trades>=100")
            + "  # a remark\n"
    });
    assert_ne!(tidy, text);
    place.write("mine.toml", &tidy);
    let again = place.json(&format!("{line} --out study"));
    assert_eq!((again["resumed_from"].as_u64(), again["trials"].as_u64()), (Some(60), Some(60)));
    // It may be raised as well, and then has the text that it was raised with.
    place.ok("sweep mine.toml --data lcg.csv --trials 90 --out study");
    assert!(exported(&place.path("study")).starts_with(&whole));
    assert!(place.read("study/study.toml").contains("# a remark"));

    let (window, threshold) = (
        "window = { int = [10, 200], default = 50 }\n",
        "threshold = { float = [0.5, 4.0], default = 2.0 }\n",
    );
    for (from, to) in [
        ("score < -threshold", "score <= -threshold"),
        ("trades >= 100", "trades >= 99"),
        (&format!("{window}{threshold}"), &format!("{threshold}{window}")),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        place.write("mine.toml", &changed);
        place.refused("sweep mine.toml --data lcg.csv --trials 90 --out study", "with another configuration");
    }
}

#[test]
fn a_finished_study_is_shown_again_without_work() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 200 --out study";
    let first = place.json(line);
    std::fs::copy(place.path("lcg.csv"), place.path("elsewhere.csv")).unwrap();
    // The same bars from another file are the same study.
    let again = place.json("sweep zscore-dip --data elsewhere.csv --trials 200 --out study");
    assert_eq!((first["resumed_from"].as_u64(), again["resumed_from"].as_u64()), (Some(0), Some(200)));
    assert_eq!(first["best"], again["best"]);
}

#[test]
fn two_studies_of_one_seed_export_the_same_bytes_whatever_the_threads_and_the_pipeline() {
    let place = Place::with_bars();
    let study = |options: &str, dir: &str| {
        place.ok(&format!(
            "sweep zscore-dip --data lcg.csv --trials 300 --batch 32 --seed 5 {options} --out {dir}"
        ));
        exported(&place.path(dir))
    };
    for sampler in
        ["auto", "tpe", "ga", "de", "cmaes", "nsga2", "tpe-mv", "ga-seller", "sobol", "random", "grid"]
    {
        let one = study(&format!("--sampler {sampler} --threads 1 --pipeline off"), &format!("{sampler}-1"));
        let two = study(&format!("--sampler {sampler} --threads 2"), &format!("{sampler}-2"));
        assert!(one.lines().count() > 100, "{sampler}");
        assert!(one == two, "{sampler}");
    }
}

#[test]
fn a_raised_study_equals_one_that_was_planned_for_as_few_and_had_all_trials_at_once() {
    let place = Place::with_bars();
    let sweep = "sweep zscore-dip --data lcg.csv --seed 5";
    for (sampler, batch) in [
        ("auto", "auto"),
        ("tpe", "64"),
        ("ga", "auto"),
        ("de", "64"),
        ("cmaes", "48"),
        ("nsga2", "auto"),
        ("tpe-mv", "32"),
        ("ga-seller", "48"),
        ("sobol", "auto"),
        ("random", "auto"),
    ] {
        let line = format!("{sweep} --sampler {sampler} --batch {batch}");
        place.ok(&format!("{line} --trials 500 --out {sampler}-raised"));
        let raised = place.json(&format!("{line} --trials 800 --out {sampler}-raised"));
        let whole = place.json(&format!("{line} --trials 800 --plan-trials 500 --out {sampler}-whole"));
        assert_eq!(raised["trials"], 800, "{sampler}");
        assert_eq!(raised["resumed_from"], 500, "{sampler}");
        for part in ["best", "valid", "batch", "lag", "holding_up"] {
            assert_eq!(raised[part], whole[part], "{sampler}: {part}");
        }
        let [raised, whole] = ["raised", "whole"].map(|name| place.path(&format!("{sampler}-{name}")));
        same_lines(&exported(&raised), &exported(&whole));
        let config = |dir: &Path| StudyFolder::open(dir).unwrap().header().config["sweep"].clone();
        assert_eq!(config(&raised), config(&whole), "{sampler}");
        assert_eq!(config(&raised)["plan_trials"].as_integer(), Some(500), "{sampler}");
    }
    // Trials cannot be taken away, and a grid has the levels that its number of trials gives it.
    let said = place.refused(
        &format!("{sweep} --sampler auto --batch auto --trials 500 --out auto-raised"),
        "has 800 trials, and 500 are requested: trials can be added, not removed",
    );
    assert!(said.stderr.contains("hint: --trials 800 or more goes on with it"), "{}", said.stderr);
    assert_eq!(n_stored(&place.path("auto-raised")), 800);
    place.ok(&format!("{sweep} --sampler grid --trials 200 --out grid"));
    place.refused(
        &format!("{sweep} --sampler grid --trials 300 --out grid"),
        "holds a grid of 200 trials, and 300 are requested",
    );
    place.refused(&format!("{sweep} --plan-trials 0"), "--plan-trials must be at least 1");
}

#[test]
fn a_study_without_a_set_left_to_try_ends_and_says_so() {
    let place = Place::with_bars();
    place.write(
        "small.toml",
        "name = \"small\"\n[params]\nn = { int = [5, 24], default = 10 }\nfar = { bool = true, default = false }\n\
         [long]\nenter = \"close > sma(close, n)\"\nexit = \"close < sma(close, if(far, 2 * n, n))\"\n\
         [objective]\nmaximize = \"sharpe\"\n",
    );
    let line = "sweep small.toml --data lcg.csv --trials 500 --batch 16 --out study";
    let said = place.ok(line);
    assert!(
        said.stderr
            .contains("the study ended before its 500 trials: it tried every parameter set of the space"),
        "{}",
        said.stderr
    );
    let (n_trials, ..) = stored(&place.path("study"));
    assert_eq!(n_trials, 40);
    let again = place.json(line);
    assert_eq!((again["exhausted"].as_bool(), again["resumed_from"].as_u64()), (Some(true), Some(40)));
    assert!(place.ok("study list").stdout.contains("complete"));
    let all = exported(&place.path("study"));
    let sets: std::collections::BTreeSet<&str> =
        all.lines().skip(1).map(|line| line.split(',').nth(1).unwrap_or(line)).collect();
    assert_eq!(sets.len(), 20, "every window");
}

#[test]
fn a_study_without_a_valid_trial_says_why_and_how_near_it_came() {
    let place = Place::with_bars();
    let strict = place.ok("strategies zscore-dip").stdout.replace("trades >= 100", "trades >= 900000");
    assert!(strict.contains("trades >= 900000"), "{strict}");
    place.write("strict.toml", strict);
    let swept = place.ok("sweep strict.toml --data lcg.csv --trials 40 --set window=30 --out study");
    assert!(swept.stdout.contains("did not meet `trades >= 900000`; at best "), "{}", swept.stdout);
    // The trials alone tell the same as the search did.
    assert_eq!(place.ok("study best study").stdout, swept.stdout);
    let shown = place.ok("study show study").stdout;
    assert!(shown.ends_with(&format!("\n{}", swept.stdout)), "{shown}");
    let invalid = place.json("study show study")["invalid"].clone();
    assert_eq!(invalid["n_trials"], 40);
    let condition = &invalid["conditions"][0];
    assert_eq!(
        (condition["text"].as_str(), condition["n_failed"].is_u64()),
        (Some("trades >= 900000"), true)
    );
    assert_eq!(condition["nearest"]["wanted"], 900_000.0);
    let best = place.json("study best study");
    assert_eq!((best["best"].as_array().map(Vec::len), &best["invalid"]), (Some(0), &invalid));
}

#[test]
fn known_sets_are_tried_first() {
    let place = Place::with_bars();
    place.write("sets.json", r#"[{"window": 40, "threshold": 1.5}]"#);
    let line = "sweep zscore-dip --data lcg.csv --trials 50 --enqueue window=30,use_stop=true --enqueue sets.json --out study";
    place.ok(line);
    let batch = read_trials(&place.path("study")).unwrap().next().unwrap().unwrap();
    let (_, window) = batch.params.iter().find(|(name, _)| name == "window").unwrap();
    assert_eq!([0, 1].map(|at| window.value(at)), [30, 40].map(|v| Some(tidemill_search::Value::Int(v))));
}

#[test]
fn the_best_sets_of_a_study_are_tried_first() {
    let place = Place::with_bars();
    place.ok("sweep zscore-dip --data lcg.csv --trials 300 --out first");
    let best = place.json("study best first --top 10")["best"].clone();
    let line = "sweep zscore-dip --data lcg.csv --trials 60 --seed 9";
    let said = place.ok(&format!("{line} --enqueue first --out second"));
    assert!(!said.stderr.contains("left out"), "{}", said.stderr);
    let trials: serde_json::Value =
        serde_json::from_str(&place.ok("study export second --format json").stdout).unwrap();
    for at in 0..10 {
        assert_eq!(trials[at]["params"], best[at]["parameters"], "trial {at}");
        assert_eq!(trials[at]["objective"], best[at]["objective"], "trial {at}");
    }
    // Resumed with the same words it is the same study.
    let again = place.json(&format!("{line} --enqueue first --out second"));
    assert_eq!(again["resumed_from"], 60);

    // An earlier form of a strategy may have had other parameters.
    let zscore = place.ok("strategies zscore-dip").stdout;
    place
        .write("narrow.toml", zscore.replace("use_stop = ", "use_level = ").replace("use_stop", "use_level"));
    let line = "sweep narrow.toml --data lcg.csv --trials 60 --set window=30";
    let said = place.ok(&format!("{line} --enqueue first --out third"));
    for note in [
        "note: --enqueue first: left out what is no parameter of this strategy: use_stop\n",
        "note: --enqueue first: left out what is fixed here: window\n",
    ] {
        assert!(said.stderr.contains(note), "{}", said.stderr);
    }
    // A value outside the range is refused as that of a file is.
    place.write(
        "low.toml",
        zscore.replace("window = { int = [10, 200], default = 50", "window = { int = [3, 4], default = 3"),
    );
    assert_ne!(place.read("low.toml"), zscore);
    place.refused(
        "sweep low.toml --data lcg.csv --trials 9 --enqueue first",
        "which is not an integer from 3 to 4",
    );
    place.write(
        "other.toml",
        zscore
            .replace("window", "w")
            .replace("threshold", "t")
            .replace("max_hold", "m")
            .replace("use_stop", "u")
            .replace("stop_atr", "s"),
    );
    place.refused("sweep other.toml --data lcg.csv --enqueue first", "no parameter that is searched here");
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refused("sweep zscore-dip --data lcg.csv --enqueue empty", "empty is not a study");
}

#[test]
fn several_objectives_give_trials_that_no_other_one_beats() {
    let place = Place::with_bars();
    let answer = place.json("sweep zscore-dip --data lcg.csv --trials 300 --objective sharpe --objective=trades --top 50 --out study");
    let best = answer["best"].as_array().unwrap();
    assert!(!best.is_empty());
    let values: Vec<(f64, f64)> = best
        .iter()
        .map(|trial| (trial["objectives"][0].as_f64().unwrap(), trial["objectives"][1].as_f64().unwrap()))
        .collect();
    for a in &values {
        assert!(!values.iter().any(|b| b.0 >= a.0 && b.1 >= a.1 && b != a), "{values:?}");
    }
    assert_eq!(answer["objectives"], serde_json::json!(["sharpe", "trades"]));
}

#[test]
fn fixed_values_outside_their_range_are_stored_as_given() {
    let place = Place::with_bars();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --set window=500 --out study");
    let batch = read_trials(&place.path("study")).unwrap().next().unwrap().unwrap();
    let (_, window) = batch.params.iter().find(|(name, _)| name == "window").unwrap();
    assert_eq!(window.value(7), Some(tidemill_search::Value::Int(500)));
}

/// How many trials a reader sees, which are none before there is a study.
pub fn n_stored(dir: &Path) -> u64 {
    StudyFolder::open(dir).and_then(|folder| folder.n_trials()).unwrap_or(0)
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done_and_ends_with_130() {
    let place = Place::new();
    place.ok("data generate --bars 20000 --out bars.parquet");
    // More than anybody can wait for, so that only the signal ends it.
    let child = spawn(&place, "sweep zscore-dip --data bars.parquet --trials 1000000000 --out study --json");
    until("a trial", || n_stored(&place.path("study")) > 0);
    signal(&child, "INT");
    let said = ended(child);
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(said.stderr.contains("kept"), "{}", said.stderr);
    let answer = said.json();
    assert_eq!(answer["interrupted"], true);
    let done = answer["trials"].as_u64().unwrap();
    assert!(done > 0 && done < 1_000_000_000);
    assert_eq!(stored(&place.path("study")).0, done, "all finished trials are on disk and readable");
    assert!(!answer["best"].as_array().unwrap().is_empty());
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_study() {
    let place = Place::new();
    place.ok("data generate --bars 4000 --out bars.parquet");
    let line = "sweep zscore-dip --data bars.parquet --trials 6000 --batch 50";
    place.ok(&format!("{line} --out whole"));
    let killed = caught(|folder| {
        let dir = place.path(folder);
        let mut n_kills = 0;
        for nth in 0..8 {
            let n_before = n_stored(&dir);
            let child = spawn_silent(&place, &format!("{line} --out {folder}"));
            // Some are killed while they start, the others once they have got on.
            until("another trial", || nth % 4 == 1 || n_stored(&dir) > n_before || n_before == 6000);
            n_kills += u32::from(kill(child) && nth % 4 != 1);
        }
        n_kills > 0
    });
    place.ok(&format!("{line} --out {killed}"));
    same_lines(&exported(&place.path(&killed)), &exported(&place.path("whole")));
}

#[test]
fn a_second_process_on_a_study_is_refused() {
    let place = Place::new();
    place.ok("data generate --bars 4000 --out bars.parquet");
    let line = "sweep zscore-dip --data bars.parquet --trials 100000000 --out study";
    let child = spawn_silent(&place, line);
    // It is written under the lock.
    until("the study", || place.path("study/study.toml").is_file());
    place.refused(line, &child.id().to_string());
    assert!(kill(child), "it was at work all the time");
}
