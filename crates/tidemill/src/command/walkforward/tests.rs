//! Whole walks over small data: the same results however they are run.

use std::path::Path;

use clap::Parser;
use serde_json::Value;
use tidemill_market::synth::{Planted, RegimeOptions, regime, walk};
use tidemill_market::{Universe, write_parquet};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: WalkforwardArgs,
}

fn args(data: &Path, more: &[&str]) -> WalkforwardArgs {
    let line = [
        "walkforward",
        "zscore-dip",
        "--train",
        "60d",
        "--test",
        "20d",
        "--trials",
        "48",
        "--batch",
        "16",
        "--json",
    ];
    let line = line.iter().map(Into::into).chain(["--data".into(), data.into()]);
    Line::try_parse_from(line.chain(more.iter().map(std::ffi::OsString::from))).unwrap().args
}

fn walked(data: &Path, more: &[&str]) -> String {
    let devices = Devices::choose(DeviceChoice::Cpu).unwrap();
    let (code, text) = run_on(&args(data, more), &Settings::default(), devices, &Display::default()).unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
    text
}

fn stored(universe: &Universe, dir: &Path) -> PathBuf {
    let path = dir.join("bars.parquet");
    write_parquet(universe, &path).unwrap();
    path
}

#[test]
fn a_walk_is_the_same_with_a_folder_again_and_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let data = stored(&walk(1, 1, 24 * 130), dir.path());
    let plain = walked(&data, &["--windows", "1"]);
    let out = dir.path().join("wf");
    let kept = walked(&data, &["--windows", "3", "--out", out.to_str().unwrap()]);
    assert_eq!(plain, kept);
    assert!(out.join("window-0001").join("study.toml").exists() && out.join("walkforward.json").exists());
    // A window that was lost is searched again, the others are read back.
    std::fs::remove_dir_all(out.join("window-0002")).unwrap();
    let page = dir.path().join("wf.html");
    assert_eq!(plain, walked(&data, &["--out", out.to_str().unwrap(), "--html", page.to_str().unwrap()]));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("<polyline class=\"held\"")
            && html.contains("Monthly returns")
            && html.contains("Parameters through time")
            && !html.contains("<script")
    );
    let document: Value = serde_json::from_str(&plain).unwrap();
    let windows = document["walk_forward"]["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 4);
    assert_eq!(document["walk_forward"]["equity"].as_array().unwrap().len(), 70);
    let anchored: Value = serde_json::from_str(&walked(&data, &["--anchored"])).unwrap();
    assert_eq!(anchored["walk_forward"]["windows"][3]["train_from"], windows[0]["train_from"]);
}

#[test]
fn a_planted_edge_survives_the_walk() {
    let dir = tempfile::tempdir().unwrap();
    let edge = Planted { strength: 1.0, ..Planted::default() };
    let options = RegimeOptions { planted: Some(edge), ..RegimeOptions::hourly(2, 24 * 260) };
    let data = stored(&regime(&options), dir.path());
    let document: Value = serde_json::from_str(&walked(&data, &["--seed", "2"])).unwrap();
    let all = &document["walk_forward"];
    assert!(all["total_return"].as_f64().unwrap() > 0.0, "{all}");
    assert!(all["efficiency"].as_f64().unwrap() > 0.3, "{all}");
}

#[test]
fn what_has_no_place_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = stored(&walk(1, 1, 24 * 90), dir.path());
    for more in
        [&["--split", "0.5"][..], &["--folds", "3"], &["--holdout", "2020-02-01.."], &["--windows", "0"]]
    {
        let devices = Devices::choose(DeviceChoice::Cpu).unwrap();
        assert!(
            run_on(&args(&data, more), &Settings::default(), devices, &Display::default()).is_err(),
            "{more:?}"
        );
    }
}
