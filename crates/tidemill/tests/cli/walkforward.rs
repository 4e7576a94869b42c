//! `walkforward`: it can be watched like a sweep, stopped and killed, and comes to the same bytes.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemill_telemetry::{Event, read_journal};

use crate::support::{Place, Said};

const LINE: &str = "walkforward zscore-dip --data bars.parquet --train 150d --test 25d --batch 16";

fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --bars 8000 --timeframe 1h --edge 0.5 --seed 8 --out bars.parquet");
    place
}

fn spawn(place: &Place, line: &str) -> Child {
    let args: Vec<&str> = line.split_whitespace().collect();
    place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn events(place: &Place, dir: &str) -> Vec<Event> {
    // A kill may tear the last line.
    read_journal(&place.path(dir).join("journal.jsonl")).unwrap().filter_map(Result::ok).collect()
}

/// Waits until so many batches are in the journal.
fn wait_for_batches(place: &Place, dir: &str, n_batches: usize) {
    let began = Instant::now();
    loop {
        let is_there = place.path(dir).join("journal.jsonl").is_file();
        let batches = if is_there { events(place, dir) } else { Vec::new() };
        if batches.iter().filter(|event| event.phase == "kernel").count() >= n_batches {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no batch was heard of");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The trials of all windows, and what came of them.
fn kept(place: &Place, dir: &str, n_windows: usize) -> Vec<String> {
    let export = |at: usize| place.ok(&format!("study export {dir}/window-{at:04} --format csv")).stdout;
    let mut all: Vec<String> = (1..=n_windows).map(export).collect();
    all.push(place.read(&format!("{dir}/walkforward.json")));
    all
}

#[test]
fn a_walk_is_watched_like_a_sweep() {
    let place = place();
    let answer = place.json(&format!("{LINE} --trials 64 --out runs/wf"));
    let windows = answer["walk_forward"]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 8);

    let seen = place.json("monitor runs");
    assert_eq!(
        (seen["workload"].as_str(), seen["standing"].as_str()),
        (Some("walkforward"), Some("complete"))
    );
    assert_eq!((seen["done"].as_f64(), seen["total"].as_f64()), (Some(8.0 * 64.0), Some(8.0 * 64.0)));
    assert_eq!(seen["phases"]["trade"]["count"], 8);
    assert_eq!(seen["phases"]["kernel"]["count"], 8 * 4);
    let best = windows.iter().filter_map(|window| window["objective"][0].as_f64()).fold(f64::MIN, f64::max);
    assert_eq!(seen["best"].as_f64(), Some(best), "the best of all searches");

    let traded: Vec<Event> =
        events(&place, "runs/wf").into_iter().filter(|event| event.phase == "trade").collect();
    for event in traded {
        let at: usize = event.step.strip_prefix("window_").unwrap().parse().unwrap();
        let window = &windows[at - 1];
        assert_eq!(event.values["return"], window["total_return"].as_f64().unwrap(), "{event:?}");
        let given: Value = serde_json::to_value(&event.parameters).unwrap();
        assert_eq!(given, window["parameters"], "{event:?}");
    }
    let said = place.ok("monitor runs/wf").stdout;
    assert!(said.contains("stitched return") && said.contains("window_"), "{said}");
}

#[cfg(unix)]
#[test]
fn stopped_and_killed_on_the_way_it_comes_to_the_same_bytes() {
    let place = place();
    let line = format!("{LINE} --trials 2400");
    place.ok(&format!("{line} --out whole"));

    let broken = format!("{line} --out broken");
    let child = spawn(&place, &broken);
    wait_for_batches(&place, "broken", 6);
    let second = place.line(&broken);
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let said = Said::new(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}", said.stderr);
    assert!(said.stderr.contains("the same command goes on"), "{}", said.stderr);
    assert!(said.stdout.is_empty() && !place.path("broken/walkforward.json").exists());
    assert!(!place.path("broken/window-0008").exists(), "no window is begun after the stop");
    second.is_refusal("two at a time", "is in use by process");
    let end = events(&place, "broken").pop().unwrap();
    assert!(end.is("run", "end") && end.parameters["outcome"] == "stopped", "{end:?}");

    let n_before = events(&place, "broken").iter().filter(|event| event.phase == "kernel").count();
    let mut child = spawn(&place, &broken);
    wait_for_batches(&place, "broken", n_before + 6);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path("broken/walkforward.json").exists(), "it was killed on the way");

    place.ok(&format!("{broken} --windows 3"));
    assert_eq!(kept(&place, "whole", 8), kept(&place, "broken", 8));
    let seen = place.json("monitor broken");
    assert_eq!((seen["state"].as_str(), seen["n_resumes"].as_u64()), (Some("complete"), Some(2)));
    assert_eq!(seen["done"], seen["total"]);
}
