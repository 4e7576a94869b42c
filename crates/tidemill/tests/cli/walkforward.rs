//! `walkforward`: it can be watched like a sweep, stopped and killed, and comes to the same bytes.

use serde_json::Value;
use tidemill_telemetry::{Event, read_journal};

#[cfg(unix)]
use crate::process::{caught, ended, kill, signal, spawn, until};
use crate::support::Place;

const LINE: &str = "walkforward zscore-dip --data bars.parquet --train 150d --test 25d --batch 16";

fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --bars 8000 --timeframe 1h --edge 0.5 --seed 8 --out bars.parquet");
    place
}

fn events(place: &Place, dir: &str) -> Vec<Event> {
    // A kill may tear the last line.
    read_journal(&place.path(dir).join("journal.jsonl")).unwrap().filter_map(Result::ok).collect()
}

/// Waits until so many batches are in the journal, or all there are.
#[cfg(unix)]
fn wait_for_batches(place: &Place, dir: &str, n_batches: usize) {
    let is_complete = |event: &Event| event.is("run", "end") && event.parameters["outcome"] == "complete";
    until("a batch", || {
        let is_there = place.path(dir).join("journal.jsonl").is_file();
        let batches = if is_there { events(place, dir) } else { Vec::new() };
        n_kernels(&batches) >= n_batches || batches.last().is_some_and(is_complete)
    });
}

#[cfg(unix)]
fn n_kernels(events: &[Event]) -> usize {
    events.iter().filter(|event| event.phase == "kernel").count()
}

/// The trials of all windows, and the summary of the walk.
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

    let broken = caught(|folder| {
        let broken = format!("{line} --out {folder}");
        let child = spawn(&place, &broken);
        wait_for_batches(&place, folder, 6);
        // Held up while another one tries, and told to stop before it goes on.
        signal(&child, "STOP");
        let second = place.line(&broken);
        signal(&child, "INT");
        signal(&child, "CONT");
        let said = ended(child);
        if said.code == Some(0) {
            return false;
        }
        assert_eq!(said.code, Some(130), "{}", said.stderr);
        assert!(said.stderr.contains("the same command resumes it"), "{}", said.stderr);
        assert!(said.stdout.is_empty() && !place.path(folder).join("walkforward.json").exists());
        assert!(!place.path(folder).join("window-0008").exists(), "no window is begun after the stop");
        second.is_refusal("two at a time", "is in use by process");
        let end = events(&place, folder).pop().unwrap();
        assert!(end.is("run", "end") && end.parameters["outcome"] == "stopped", "{end:?}");

        let n_before = n_kernels(&events(&place, folder));
        let child = spawn(&place, &broken);
        wait_for_batches(&place, folder, n_before + 6);
        kill(child) && !place.path(folder).join("walkforward.json").exists()
    });
    place.ok(&format!("{line} --out {broken} --windows 3"));
    for (at, (whole, broken)) in kept(&place, "whole", 8).iter().zip(kept(&place, &broken, 8)).enumerate() {
        assert!(*whole == broken, "window {} of 8, or what came of all", at + 1);
    }
    let seen = place.json(&format!("monitor {broken}"));
    assert_eq!((seen["state"].as_str(), seen["n_resumes"].as_u64()), (Some("complete"), Some(2)));
    assert_eq!(seen["done"], seen["total"]);
}
