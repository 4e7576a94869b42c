//! `sweep --out`: the study folder, whole and after Ctrl-C.

use std::path::Path;

use tidemill_search::{Score, StudyFolder, read_trials};
use tidemill_telemetry::read_journal;

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

#[test]
fn the_folder_holds_every_trial_and_what_was_run() {
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 700 --seed 11 --set use_stop=true --set window=30 --top 700";
    let answer = place.json(&format!("{line} --out deep/study"));
    let dir = place.path("deep/study");
    let mut files: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["journal.jsonl", "study.toml", "trials"]);
    assert!(dir.join("trials/part-000000.parquet").is_file());

    let (n_trials, scores, sharpe) = stored(&dir);
    assert_eq!(n_trials, 700);
    assert_eq!(scores.iter().flatten().count() as u64, answer["valid"].as_u64().unwrap());
    let best = answer["best"].as_array().unwrap();
    assert_eq!(best.len() as u64, answer["valid"].as_u64().unwrap());
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
fn a_folder_that_holds_a_study_is_left_alone() {
    let place = Place::with_bars();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --out study");
    place.refused("sweep zscore-dip --data lcg.csv --trials 30 --out study", "already holds a study");
    assert_eq!(stored(&place.path("study")).0, 20);
    std::fs::create_dir(place.path("empty")).unwrap();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --out empty");
    assert_eq!(stored(&place.path("empty")).0, 20);
}

#[test]
fn fixed_values_outside_their_range_are_stored_as_given() {
    let place = Place::with_bars();
    place.ok("sweep zscore-dip --data lcg.csv --trials 20 --set window=500 --out study");
    let batch = read_trials(&place.path("study")).unwrap().next().unwrap().unwrap();
    let (_, window) = batch.params.iter().find(|(name, _)| name == "window").unwrap();
    assert_eq!(window.value(7), Some(tidemill_search::Value::Int(500)));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_done_and_ends_with_130() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use crate::support::Said;

    let place = Place::new();
    place.ok("data generate --bars 20000 --out bars.parquet");
    let args: Vec<&str> = "sweep zscore-dip --data bars.parquet --trials 1000000000 --out study --json"
        .split_whitespace()
        .collect();
    let child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = place.path("study/journal.jsonl");
    let began = Instant::now();
    while std::fs::metadata(&journal).map_or(0, |file| file.len()) == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "the sweep did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let said = Said::new(child.wait_with_output().unwrap());
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(said.stderr.contains("kept"), "{}", said.stderr);
    let answer = said.json();
    assert_eq!(answer["interrupted"], true);
    let done = answer["trials"].as_u64().unwrap();
    assert!(done > 0 && done < 1_000_000_000);
    assert_eq!(stored(&place.path("study")).0, done, "all finished trials are on disk and readable");
    assert!(!answer["best"].as_array().unwrap().is_empty());
}
