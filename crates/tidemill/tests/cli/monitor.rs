//! `monitor`: lines, summaries and pictures of runs, from other processes and from the past.

#[path = "../../../dash/tests/terminal/specimen.rs"]
mod specimen;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use tidemill_telemetry::{Event, Timestamp};

use crate::process::{ended, spawn};
use crate::support::Place;

/// A folder of several runs.
fn runs() -> Place {
    let place = Place::new();
    specimen::gpu_sweep(60, 3).write(&place.path("runs/gpu"));
    specimen::coloring().write(&place.path("runs/deep/color"));
    place
}

fn append(dir: &Path, events: &[Event]) {
    std::fs::create_dir_all(dir).unwrap();
    let path = dir.join("journal.jsonl");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    for event in events {
        let mut event = event.clone();
        event.timestamp = Timestamp::now();
        writeln!(file, "{}", serde_json::to_string(&event).unwrap()).unwrap();
    }
}

#[test]
fn without_a_terminal_the_summary_is_printed() {
    let place = runs();
    let said = place.ok("monitor runs/gpu");
    assert_eq!(said.stdout, place.ok("monitor runs/gpu/journal.jsonl --summary").stdout);
    for part in ["complete: all trials are done", "245,760 of 245,760 trials", "kernel", "p99", "best found"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let one = place.ok("monitor runs/gpu --phase kernel").stdout;
    assert!(one.contains("kernel") && !one.contains("upload"), "{one}");
}

#[test]
fn json_is_the_snapshot_or_one_event_per_line() {
    let place = runs();
    let answer = place.json("monitor runs/deep/color --phase tabu");
    assert_eq!((answer["workload"].as_str(), answer["score"].as_str()), (Some("color"), Some("k")));
    assert_eq!((answer["best"].as_f64(), answer["standing"].as_str()), (Some(48.0), Some("silent")));
    assert_eq!(answer["phases"].as_object().unwrap().len(), 1);

    let said = place.ok("monitor runs/gpu --tail --json --lines 3 --phase kernel --phase run");
    let events: Vec<Event> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<&str> = events.iter().map(|event| event.step.as_str()).collect();
    assert_eq!(steps, ["batch_58", "batch_59", "end"]);
}

#[test]
fn a_run_that_ended_is_told_with_its_outcome() {
    let place = runs();
    let said = place.ok("monitor runs/gpu --tail --lines 2");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(
        lines,
        ["[TELL][CPU] batch_59 | 0.90ms", "[RUN] end | outcome=complete | all trials are done"]
    );
    assert_eq!(said.stderr, "sweep-7: complete: all trials are done\n");
}

#[test]
fn a_killed_run_is_told_from_a_complete_one() {
    let place = Place::new();
    let killed = specimen::killed();
    let torn = killed.text() + r#"{"v":1,"timesta"#;
    place.write("killed/journal.jsonl", torn);
    let said = place.line("monitor killed --tail");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!(said.stdout.lines().count(), 10);
    assert!(said.stderr.contains("killed or silent since 2026-01-06 12:00:00 UTC"), "{}", said.stderr);
    // A study whose lock is free is certainly dead.
    place.write("killed/study.lock", "");
    assert!(place.ok("monitor killed").stdout.contains("killed; last event"));
}

#[test]
fn a_line_that_is_no_event_is_passed_over_and_named() {
    let place = runs();
    let text = place.read("runs/gpu/journal.jsonl");
    place.write("odd/journal.jsonl", text.replacen('\n', "\nnonsense\n", 1));
    let said = place.ok("monitor odd");
    assert!(said.stderr.contains("1 line of the journal could not be read"), "{}", said.stderr);
    assert!(said.stderr.contains("journal.jsonl:2"), "{}", said.stderr);
    assert!(said.stdout.contains("245,760 of 245,760 trials"));
}

#[test]
fn several_runs_are_listed_and_the_newest_can_be_taken() {
    let place = runs();
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let journal = std::fs::File::options().append(true).open(place.path("runs/deep/color/journal.jsonl"));
    journal.unwrap().set_modified(later).unwrap();
    let said = place.refused("monitor runs", "runs holds 2 runs, newest first");
    let at = |name: &str| said.stderr.find(name).unwrap_or_else(|| panic!("{name}: {}", said.stderr));
    assert!(at("color") < at("gpu") && said.stderr.contains("--latest"), "{}", said.stderr);
    assert!(place.ok("monitor runs --latest").stdout.contains("DSJC500.5"));
    assert!(place.ok("monitor runs/deep").stdout.contains("DSJC500.5"), "one run beneath is the one");
}

#[test]
fn what_is_missing_is_named_with_its_cure() {
    let place = runs();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refused("monitor empty", "hint: `tidemill sweep --out empty` writes one");
    place.refused("monitor nowhere", "hint: --wait waits for it");
    place.refused("monitor runs/gpu --phase nope", "it has ask, download, kernel, tell, upload");
    place.refused("monitor runs/gpu --tail --phase nope", "no phase `nope`");
    place.refused("monitor runs/gpu --tail --summary", "cannot be used with");
    place.write("blank/journal.jsonl", "");
    place.refused("monitor blank", "has no events");
}

#[test]
fn a_run_that_comes_later_is_followed_to_its_end() {
    let place = Place::new();
    let mut child = spawn(&place, "monitor new/run --tail --wait --phase kernel --phase run");
    // The run begins once the monitor waits for it.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    stderr.read_line(&mut heard).unwrap();
    assert!(heard.starts_with("waiting for "), "{heard}");
    let run = specimen::gpu_sweep(30, 2);
    let dir = place.path("new/run");
    for events in run.events.chunks(40) {
        append(&dir, events);
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = ended(child);
    stderr.read_to_string(&mut heard).unwrap();
    assert_eq!(said.code, Some(0), "{heard}");
    let n_kernels = said.stdout.lines().filter(|line| line.starts_with("[KERNEL][GPU][stream=")).count();
    assert_eq!((n_kernels, said.stdout.lines().count()), (30, 32), "{}", said.stdout);
    assert!(heard.contains("complete"), "{heard}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_lines_cleanly() {
    let place = Place::new();
    let run = specimen::killed();
    append(&place.path("live"), &run.events);
    let mut child = spawn(&place, "monitor live --tail --lines 1");
    // It follows the run once it has said what was there before.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut heard = String::new();
    stdout.read_line(&mut heard).unwrap();
    crate::process::signal(&child, "INT");
    let said = ended(child);
    stdout.read_to_string(&mut heard).unwrap();
    assert_eq!((said.code, heard.lines().count()), (Some(130), 1), "{heard}{}", said.stderr);
}

#[cfg(unix)]
#[test]
fn a_sweep_is_followed_while_it_runs_and_is_not_disturbed() {
    let place = Place::new();
    place.ok("data generate --bars 4000 --out bars.parquet");
    let line = "sweep zscore-dip --data bars.parquet --trials 4000 --batch 50 --json";
    let alone = spawn(&place, &format!("{line} --out alone"));
    let alone = ended(alone).json();
    let watcher = spawn(&place, "monitor watched --tail --wait --lines 200");
    let second = spawn(&place, "monitor watched --tail --wait");
    let sweep = spawn(&place, &format!("{line} --out watched"));
    // Somebody who looks on leaves, at whatever moment.
    crate::process::kill(second);
    let watched = ended(sweep).json();
    assert_eq!(watched["best"], alone["best"]);
    let said = ended(watcher);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let n_batches = said.stdout.lines().filter(|line| line.contains(" batch_79 ")).count();
    assert!(n_batches > 0, "the last batch is there: {}{}", said.stdout, said.stderr);
}

#[test]
fn the_screen_can_be_drawn_as_a_picture() {
    let place = runs();
    place.ok("monitor runs/gpu --picture screen.svg --size 100x30");
    let svg = place.read("screen.svg");
    assert!(svg.contains("viewBox=\"0 0 864.0 564.0\"") && svg.contains("ema-cross"), "{svg}");
    place.refused("monitor runs/gpu --picture screen.svg --size big", "such as 120x36");
}
