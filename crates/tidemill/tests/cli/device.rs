//! `--device`, `doctor` and `parity`, with GPUs hidden or emulated.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use tidemill_search::{ExportFormat, export};

use crate::process::{caught, kill, spawn_silent, until};
use crate::study::{n_stored, same_lines};
use crate::support::{CommandOutput, Place, timeless};

/// Runs a command with all GPUs hidden.
pub fn hidden(place: &Place, line: &str) -> CommandOutput {
    let args: Vec<&str> = line.split_whitespace().collect();
    CommandOutput::new(place.command(&args).env("CUDA_VISIBLE_DEVICES", "-1").output().unwrap())
}

/// Whether kernels can be compiled for the host.
pub fn emulates() -> bool {
    let compiler = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
    let found = std::process::Command::new(&compiler).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        let reason = format!("there is no C++ compiler `{compiler}`");
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", reason);
    }
    found
}

fn exported(place: &Place, dir: &str) -> String {
    let mut bytes = Vec::new();
    export(&place.path(dir), ExportFormat::Csv, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_device_that_is_not_there_is_refused_with_a_cure() {
    let place = Place::with_bars();
    for device in ["cuda", "cuda:0", "cuda:7"] {
        let line = format!("sweep zscore-dip --data lcg.csv --trials 20 --device {device}");
        let said = hidden(&place, &line);
        said.is_refusal(&line, &format!("--device {device}: "));
        assert!(said.stderr.contains("hint: ") && said.stderr.contains("tidemill doctor"), "{}", said.stderr);
    }
    place.refused("sweep zscore-dip --data lcg.csv --device gpu", "expected auto, cpu, cuda or cuda:N");
    place.refused("sweep zscore-dip --data lcg.csv --device cuda:x", "cuda:0");
    place.write("tidemill.toml", "[gpu]\ndevice = 'gpu'\n");
    place.refused("sweep zscore-dip --data lcg.csv", "gpu.device: expected auto, cpu, cuda or cuda:N");
}

#[test]
fn auto_says_what_it_took() {
    let place = Place::with_bars();
    let said = hidden(&place, "sweep zscore-dip --data lcg.csv --trials 20 --threads 2");
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("on the CPU, 2 threads"), "{}", said.stderr);
}

#[test]
fn emulated_devices_find_what_the_cpu_finds() {
    if !emulates() {
        return;
    }
    let place = Place::with_bars();
    let line = "sweep ema-cross --data lcg.csv --trials 100 --batch 16 --split 0.7";
    let on = |device: &str| timeless(place.json(&format!("{line} --device {device}")));
    let expected = on("cpu");
    assert_eq!(on("emulated"), expected);
    assert_eq!(on("emulated:3"), expected);
    // Streams, their mode and the share of memory are matters of speed.
    place.write("tidemill.toml", "[gpu]\ndevice = 'emulated'\nstreams = 4\nmemory_fraction = 0.1\n");
    assert_eq!(timeless(place.json(line)), expected);
    place.write("tidemill.toml", "[gpu]\ndevice = 'emulated'\nstream_mode = 'sequential'\n");
    assert_eq!(timeless(place.json(line)), expected);
}

/// Spans of a trace: name, process and track.
pub fn spans(place: &Place, file: &str) -> Vec<(String, u64, u64)> {
    let trace: Value = serde_json::from_slice(&std::fs::read(place.path(file)).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let number = |value: &Value| value.as_u64().unwrap();
    events.map(|e| (e["name"].as_str().unwrap().into(), number(&e["pid"]), number(&e["tid"]))).collect()
}

#[test]
fn a_timeline_shows_every_stage_on_its_device() {
    let place = Place::with_bars();
    let line = "sweep ema-cross --data lcg.csv --trials 64 --batch 16 --timeline trace.json";
    place.refused(&format!("{line}/none"), "--timeline trace.json/none");
    let said = place.ok(&format!("{line} --device cpu -v"));
    assert!(said.stderr.contains("note: no stage ran on a device"), "{}", said.stderr);
    assert_eq!(spans(&place, "trace.json"), []);
    if !emulates() {
        return;
    }
    place.ok(&format!("{line} --device emulated:2"));
    let spans = spans(&place, "trace.json");
    for stage in ["upload", "walk", "book", "download"] {
        for device in [0, 1] {
            let n = spans.iter().filter(|span| (span.0.as_str(), span.1) == (stage, device)).count();
            assert!(n >= 2, "{stage} on device {device}: {spans:?}");
        }
    }
    for phase in ["ask", "tell"] {
        assert!(spans.iter().any(|span| (span.0.as_str(), span.1) == (phase, 2)), "{phase} on the host");
    }
}

#[test]
fn settings_of_the_gpu_decide_on_which_streams_a_sweep_runs() {
    if !emulates() {
        return;
    }
    let place = Place::with_bars();
    let n_streams = |settings: &str| {
        place.write("tidemill.toml", format!("[gpu]\ndevice = 'emulated'\n{settings}\n"));
        place.ok("sweep ema-cross --data lcg.csv --trials 96 --batch 8 --lag 4 --timeline trace.json");
        let tracks: BTreeSet<u64> = spans(&place, "trace.json").iter().map(|(_, _, track)| *track).collect();
        tracks.len()
    };
    // Another one has the batch that waits on the device.
    assert_eq!(n_streams("streams = 1"), 2);
    assert_eq!(n_streams("streams = 2"), 3);
    assert_eq!(n_streams("streams = 3\nstream_mode = 'sequential'"), 1);
}

#[test]
fn a_colouring_keeps_to_its_share_of_the_memory() {
    if !emulates() {
        return;
    }
    let place = Place::with_bars();
    place.ok("color generate random --vertices 60 --density 0.5 --out random.col");
    place.write("tidemill.toml", "[gpu]\ndevice = 'emulated'\nmemory_fraction = 1e-12\n");
    let said = place.refused("color random.col --iterations 2000", "raise gpu.memory_fraction");
    assert!(said.stderr.contains("the searches need 1 MiB of the device"), "{}", said.stderr);
}

#[test]
fn a_sweep_tells_how_full_the_device_was() {
    let place = Place::with_bars();
    let line = "sweep ema-cross --data lcg.csv --trials 160 --batch 16 --verdict off";
    let shares = |answer: &Value| ["busy", "fill"].map(|key| answer[key].as_f64().unwrap());
    let [busy, fill] = shares(&place.json(&format!("{line} --device cpu")));
    assert!(busy > 0.0 && busy == fill, "the CPU is as full as it is busy: {busy} {fill}");
    let said = place.ok(&format!("{line} --device cpu -v"));
    assert!(!said.stderr.contains("% full"), "{}", said.stderr);
    if !emulates() {
        return;
    }
    let [busy, fill] = shares(&place.json(&format!("{line} --device emulated")));
    assert!(busy > 0.0 && busy <= 1.0 && fill > 0.0, "{busy} {fill}");
    let said = place.ok(&format!("{line} --device emulated --out runs/full -v"));
    let (before, after) = said.stderr.split_once(" % full, sampler ").unwrap();
    assert!(before.contains("% of the time, device ") && after.contains("beside"), "{}", said.stderr);
    // Every record of the kernels but those of the first batch, before which there is no time to take a share of.
    let journal = std::fs::read_to_string(place.path("runs/full/journal.jsonl")).unwrap();
    let records: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kernels = records.iter().filter(|record| record["phase"] == "kernel");
    let told = of_kernels.filter(|record| record["values"]["busy"].is_number());
    let fills: Vec<f64> = told.map(|record| record["values"]["fill"].as_f64().unwrap()).collect();
    assert!(!fills.is_empty() && fills.iter().all(|fill| *fill > 0.0), "{fills:?}");
    let summary = place.ok("monitor runs/full --summary").stdout;
    let device = summary.lines().find(|line| line.trim_start().starts_with("device ")).unwrap();
    assert!(device.contains("busy ") && device.contains("; full "), "{device}");
}

#[test]
fn a_sweep_killed_on_a_device_goes_on_with_the_cpu_to_the_same_study() {
    if !emulates() {
        return;
    }
    let place = Place::with_bars();
    let line = "sweep zscore-dip --data lcg.csv --trials 400 --batch 16";
    place.ok(&format!("{line} --device emulated --out whole"));
    let killed = caught(|folder| {
        let dir = place.path(folder);
        let mut n_kills = 0;
        for _ in 0..2 {
            let n_before = n_stored(&dir);
            let child = spawn_silent(&place, &format!("{line} --device emulated --out {folder}"));
            until("another trial", || n_stored(&dir) > n_before || n_before == 400);
            n_kills += u32::from(kill(child));
        }
        n_kills > 0
    });
    let resumed = place.json(&format!("{line} --device cpu --out {killed}"));
    assert!(resumed["resumed_from"].as_u64().unwrap() > 0);
    same_lines(&exported(&place, &killed), &exported(&place, "whole"));
}

#[test]
fn settings_of_the_gpu_are_checked() {
    let place = Place::with_bars();
    for (content, reason) in [
        ("streams = 0", "gpu.streams must lie between 1 and 16"),
        ("streams = 99", "gpu.streams"),
        ("memory_fraction = 1.5", "gpu.memory_fraction must lie between 0 and 1"),
        ("memory_fraction = 0", "gpu.memory_fraction"),
        ("wait_limit_s = 0", "gpu.wait_limit_s must be at least 1"),
        ("wait_limit_s = nan", "gpu.wait_limit_s"),
        ("stream_mode = 'both'", "sequential"),
        ("stream = 3", "unknown field `stream`"),
    ] {
        place.write("tidemill.toml", format!("[gpu]\n{content}\n"));
        place.refused("sweep zscore-dip --data lcg.csv", reason);
    }
}

#[test]
fn doctor_names_a_cure_for_all_that_is_missing() {
    let place = Place::new();
    let said = hidden(&place, "doctor --json");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let answer = said.json();
    assert_eq!(answer["usable"], false);
    let checks = answer["checks"].as_array().unwrap();
    let named = |what: &str| checks.iter().find(|check| check["what"] == what).unwrap_or(&Value::Null);
    for what in ["driver", "NVRTC", "kernel cache"] {
        assert!(named(what)["state"].is_string(), "{what}: {answer}");
    }
    for check in checks.iter().filter(|check| check["state"] == "missing") {
        assert!(check["cure"].is_string(), "{check}");
    }
    assert!(answer["verdict"].as_str().unwrap().contains("The CPU needs none of this"), "{answer}");
    let text = hidden(&place, "doctor");
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains("missing") && text.stdout.contains("cure: "), "{}", text.stdout);
}

#[test]
fn doctor_tries_everything_under_emulation() {
    if !emulates() {
        return;
    }
    let answer = Place::new().json("doctor --device emulated");
    assert_eq!(answer["usable"], true, "{answer}");
    let found = answer["checks"].as_array().unwrap();
    let n_kernels =
        found.iter().filter(|check| check["what"].as_str().unwrap().starts_with("kernels of ")).count();
    assert!(n_kernels >= 8, "{answer}");
    let round_trip = found.iter().find(|check| check["what"] == "round trip 0").unwrap();
    assert!(round_trip["found"].as_str().unwrap().contains("the same bits as the CPU"), "{round_trip}");
}

#[test]
fn a_quick_doctor_compiles_the_kernels_of_one_strategy() {
    if !emulates() {
        return;
    }
    let answer = Place::new().json("doctor --device emulated --quick");
    assert_eq!(answer["usable"], true, "{answer}");
    let found = answer["checks"].as_array().unwrap().iter().map(|check| check["what"].as_str().unwrap());
    let kernels: Vec<&str> = found.filter(|what| what.starts_with("kernels of ")).collect();
    assert_eq!(kernels, ["kernels of zscore-dip"], "{answer}");
}

#[test]
fn parity_needs_a_device_and_compares_every_data_set() {
    let place = Place::with_bars();
    let said = hidden(&place, "parity --trials 10");
    said.is_refusal("parity", "--device emulated");
    place.refused("parity --device cpu", "compared with");
    if !emulates() {
        return;
    }
    let answer =
        place.json("parity zscore-dip --data lcg.csv --trials 200 --device emulated --random 1 --seed 3");
    assert_eq!((&answer["different"], &answer["first"]), (&0.into(), &Value::Null));
    assert!(
        answer["trials"].as_u64().unwrap() >= 200 && answer["trades"].as_u64().unwrap() > 1_000,
        "{answer}"
    );
    let rows = answer["rows"].as_array().unwrap();
    let data: Vec<&str> = rows.iter().map(|row| row["data"].as_str().unwrap()).collect();
    // The second `lcg` is the file.
    assert_eq!(data, ["lcg", "regimes", "lengths", "awkward", "few bars", "one bar", "lcg", "random"]);
    let text = place.ok("parity zscore-dip --trials 20 --device emulated").stdout;
    assert!(text.trim_end().ends_with("not one bit differs"), "{text}");
}
