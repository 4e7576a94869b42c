//! The benchmarks run, and compare before they measure.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tidemill_gpu::{Device, HostOptions, Source};

fn bench(dir: &Path, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_tidemill-bench");
    Command::new(program).args(line.split_whitespace()).current_dir(dir).output().unwrap()
}

fn ok(dir: &Path, line: &str) -> String {
    let output = bench(dir, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(dir: &Path, line: &str) -> Value {
    serde_json::from_str(&ok(dir, &format!("{line} --json"))).unwrap()
}

fn refused(dir: &Path, line: &str, reason: &str) {
    let output = bench(dir, line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains(reason), "{line}: {said}");
}

/// Whether kernels can be compiled for the host.
fn emulates() -> bool {
    match Device::host(HostOptions::default()).load(&Source::splice("nothing.cu", &[])) {
        Ok(_) => true,
        Err(error) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            false
        }
    }
}

#[test]
fn the_matrix_has_a_row_for_each_strategy_on_each_kind_of_data() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let line = "matrix --quick --rounds 2 --strategies zscore-dip,ema-cross --device cpu";
    let measured = json(dir, line);
    let cells = measured["cells"].as_array().unwrap();
    let rows: BTreeSet<(u64, &str)> = cells
        .iter()
        .map(|cell| (cell["symbols"].as_u64().unwrap(), cell["strategy"].as_str().unwrap()))
        .collect();
    let wanted = [1, 3, 5].map(|n_symbols| ["ema-cross", "zscore-dip"].map(|name| (n_symbols, name)));
    assert_eq!(rows, wanted.into_iter().flatten().collect());
    for cell in cells {
        let number = |key: &str| cell[key].as_f64().unwrap();
        assert_eq!((cell["on"].as_str(), cell["trials"].as_u64()), (Some("cpu"), Some(64)), "{cell}");
        assert_eq!(cell["seconds_of_rounds"].as_array().unwrap().len(), 2);
        assert!((number("trials_per_second") * number("seconds") - 64.0).abs() < 1e-6, "{cell}");
        let bars = number("trials_per_second") * number("bars");
        assert!((number("bar_evaluations_per_second") / bars - 1.0).abs() < 1e-9, "{cell}");
        assert!(number("busy") > 0.0 && number("busy") == number("fill"), "{cell}");
    }
    let table = ok(dir, &format!("{line} --shapes daily --trials 32"));
    assert!(table.contains("\n## 5 symbols, 2,000 bars of 1d\n\n| strategy | on | trials |"), "{table}");
    assert!(table.contains("\n| zscore-dip | the CPU") && table.contains(" | 32 | 16 | "), "{table}");
    refused(dir, "matrix --strategies nosuch", "nosuch");
    refused(dir, "matrix --data nosuch.csv --device cpu", "nosuch.csv");
    if emulates() {
        let measured =
            json(dir, "matrix --quick --rounds 1 --shapes series --strategies ema-cross --device emulated");
        let cell = &measured["cells"][0];
        assert_eq!((cell["on"].as_str(), &measured["different"]), (Some("gpu"), &Value::from(0)));
        assert!(cell["fill"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

#[test]
fn the_benches_measure_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let asked = json(dir, "ask --history 500,2000 --batch 64 --repeat 1 --sampler tpe,auto");
    assert!(asked["ask_tell_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(asked["series"].as_array().unwrap().len(), 2);
    assert_eq!(asked["samplers"][1]["sampler"], "auto");
    let study = json(dir, "study --trials 5000 --batch 512");
    assert_eq!(study["trials"], 5000);
    assert!(study["trials_per_second"].as_f64().unwrap() > 0.0);
    let planted = ok(dir, "quality --suite planted --sampler auto --seeds 1");
    assert!(planted.contains("zscore-dip") && planted.contains("4,096"), "{planted}");
    refused(dir, "quality --suite nosuch", "sequential, small, large, planted");
    let tuned = json(dir, "hypertune --trials 2000 --good-batch 512 --rounds 1 --skip-bad --device cpu");
    assert!(tuned["tuned_over_by_hand"].as_f64().unwrap() > 0.0, "{tuned}");
}

#[test]
fn the_scan_is_compared_before_it_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let answer = json(dir, "scan --quick --device cpu --dump dump");
    assert_eq!((&answer["different"], &answer["stress"]), (&0.into(), &Value::Null));
    assert!(answer["cpu"]["median_ms"].as_f64().unwrap() > 0.0);
    let closes = std::fs::read(dir.join("dump/closes.npy")).unwrap();
    assert_eq!(closes.len(), 128 + 100 * 120 * 8);
    refused(dir, "scan --quick --streams 0", "--streams 0");
    if !emulates() {
        return;
    }
    let answer = json(dir, "scan --quick --device emulated --streams 1,3");
    assert_eq!((&answer["different"], &answer["steady"]), (&0.into(), &true.into()), "{answer}");
    assert_eq!(answer["streams"].as_array().unwrap().len(), 2);
    assert_eq!(answer["streams"][0]["hidden_share"], 0.0, "one stream overlaps nothing");
    assert_eq!((&answer["stress"]["scans"], &answer["stress"]["streams"]), (&8.into(), &16.into()));
}

#[test]
fn overlapped_batches_give_the_results_of_those_in_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    refused(dir, "overlap --device cpu", "needs a GPU");
    if !emulates() {
        return;
    }
    let answer = json(dir, "overlap --batches 6 --repeat 2 --timeline trace.json --device emulated");
    assert_eq!((&answer["compared"], &answer["different"]), (&24.into(), &0.into()), "{answer}");
    for run in ["sequential", "overlapped"] {
        assert!(answer[run]["wall_ms"].as_f64().unwrap() > 0.0, "{answer}");
    }
    assert_eq!(answer["sequential"]["overlap_ms"], 0.0, "{answer}");
    let trace: Value = serde_json::from_slice(&std::fs::read(dir.join("trace.json")).unwrap()).unwrap();
    let spans: Vec<&Value> =
        trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(spans.len(), 18);
    let tracks: BTreeSet<String> =
        spans.iter().map(|span| format!("{}-{}", span["pid"], span["tid"])).collect();
    assert_eq!(tracks.len(), 3, "each purpose has a track: {tracks:?}");
}
