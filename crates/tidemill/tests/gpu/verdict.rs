//! Verdicts of whole sweeps and walks on the GPU, or under emulation where there is none, against the CPU: the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::device::{gpu_or_host, is_gpu};

/// The program: the one that `TIDEMILL_BINARY` names, that of this build, or the one beside this test.
fn program() -> Option<PathBuf> {
    let named = std::env::var_os("TIDEMILL_BINARY").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| {
        let folder = test.parent()?;
        [folder, folder.parent()?]
            .map(|folder| folder.join("tidemill"))
            .into_iter()
            .find(|path| path.is_file())
    });
    let found = named.or_else(|| {
        let built = PathBuf::from(env!("CARGO_BIN_EXE_tidemill"));
        built.is_file().then_some(built).or(beside)
    });
    if found.is_none() {
        let what = "the program is not beside this test; name it in TIDEMILL_BINARY";
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_GPU", what);
    }
    found
}

/// Runs a line of words in a folder, which must succeed; what it prints.
fn run(program: &Path, dir: &Path, line: &str) -> String {
    let output = Command::new(program).args(line.split_whitespace()).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sweeps_and_walks_have_the_same_verdicts_bit_for_bit() {
    let Some(device) = gpu_or_host() else { return };
    let Some(program) = program() else { return };
    let place = tempfile::tempdir().unwrap();
    let run = |line: &str| run(&program, place.path(), line);
    let read = |name: &str| std::fs::read(place.path().join(name)).unwrap();
    // Emulated kernels are slow.
    let (device, bars, trials) =
        if is_gpu(&device) { ("cuda", 12_000, 3_000) } else { ("emulated", 3_000, 96) };
    run(&format!("data generate --bars {bars} --timeframe 1h --edge 0.5 --seed 4 --out one.parquet"));
    run(&format!("data generate --bars {bars} --timeframe 1h --symbols 3 --seed 5 --out three.parquet"));
    for (at, more) in [
        "zscore-dip --data one.parquet --split 0.7 --holdout 2020-04-10..",
        "zscore-dip --data three.parquet --sampler sobol --split 0.7 --embargo 1d",
        "ema-cross --data three.parquet --sampler random --folds 2 --objective calmar",
    ]
    .into_iter()
    .enumerate()
    {
        let sweep = |device: &str| -> Value {
            let line = format!("sweep {more} --trials {trials} --batch 48 --json --hypertune off");
            let answer = run(&format!("{line} --device {device} --out {device}-{at}"));
            serde_json::from_str(&answer).unwrap()
        };
        let (on_cpu, on_device) = (sweep("cpu"), sweep(device));
        assert_eq!(on_cpu["best"], on_device["best"], "{more}");
        assert_eq!(on_cpu["holding_up"], on_device["holding_up"], "{more}");
        let checks = on_cpu["holding_up"]["winners"][0]["checks"].as_array().map(Vec::len);
        assert!(checks >= Some(5), "{more}: {}", on_cpu["holding_up"]);
        let stored = |device: &str| read(&format!("{device}-{at}/verdict.json"));
        assert!(stored("cpu") == stored(device), "{more}: verdict.json differs");
    }
    let walk = |device: &str| {
        let line = "walkforward zscore-dip --data one.parquet --train 60d --test 30d --batch 48";
        run(&format!("{line} --trials {} --device {device} --out wf-{device}", trials / 2));
        read(&format!("wf-{device}/walkforward.json"))
    };
    assert!(walk("cpu") == walk(device), "walkforward.json differs");
}
