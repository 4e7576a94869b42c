//! Text of several blocks is one table, and a load tells how far it is.

use std::fs;
use std::path::{Path, PathBuf};

use tidemill_market::report::IssueKind;
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_market::{
    BarStamp, JoinOptions, LoadOptions, LoadProgress, LoadStage, LoadState, LoadedData, load, write,
};

/// A CSV file of three blocks or more, and the fingerprint of the same bars in Parquet.
fn large(dir: &Path) -> (PathBuf, String) {
    let universe = regime(&RegimeOptions { n_bars: 20_000, n_symbols: 2, ..RegimeOptions::default() });
    let [csv, parquet] = ["large.csv", "large.parquet"].map(|name| dir.join(name));
    write(&universe, &csv).unwrap();
    write(&universe, &parquet).unwrap();
    assert!(fs::metadata(&csv).unwrap().len() > 2 << 20);
    let fingerprint = load_one(&parquet).universe.fingerprint();
    (csv, fingerprint)
}

fn load_one(path: &Path) -> LoadedData {
    load(&[path.to_path_buf()], &LoadOptions::default()).unwrap()
}

#[test]
fn rows_of_many_blocks_are_those_of_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, fingerprint) = large(dir.path());
    assert_eq!(load_one(&csv).universe.fingerprint(), fingerprint);
    // Symbols in turn, so that every block names both; the later one first.
    let text = fs::read_to_string(&csv).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let in_turn: Vec<&str> = rows[20_000..].iter().zip(&rows).flat_map(|(b, a)| [*b, *a]).collect();
    fs::write(&csv, format!("{header}\r\n{}", in_turn.join("\r\n"))).unwrap();
    assert_eq!(load_one(&csv).universe.fingerprint(), fingerprint);
}

#[test]
fn a_header_and_bad_rows_are_found_far_behind_the_first_block() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, fingerprint) = large(dir.path());
    let text = fs::read_to_string(&csv).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut lines: Vec<&str> = rows.lines().collect();
    lines.insert(30_000, header);
    lines.insert(35_000, "SYN0,2020-01-01T00:00:00Z,no price,1,1,1,1");
    fs::write(&csv, lines.join("\n")).unwrap();
    let loaded = load_one(&csv);
    assert!(loaded.report.files[0].notes[0].contains("on line 30001"), "{:?}", loaded.report.files[0].notes);
    let row = |kind: IssueKind| {
        let issue = loaded.report.issues.iter().find(|issue| issue.kind == kind).unwrap();
        (issue.count, issue.first[0].row)
    };
    assert_eq!(row(IssueKind::HeaderLine), (1, 30_001));
    assert!(row(IssueKind::NotANumber).0 == 1 && row(IssueKind::NotANumber).1 == 35_001);
    // The unreadable correction takes its time with it, and nothing else.
    assert_ne!(loaded.universe.fingerprint(), fingerprint);
    assert_eq!(loaded.universe.n_bars(), 39_999);
}

#[test]
fn a_load_ends_with_all_of_its_last_file_read() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, _) = large(dir.path());
    let progress = LoadProgress::default();
    let options = LoadOptions { progress: progress.clone(), ..LoadOptions::default() };
    assert_eq!(progress.state(), LoadState::default());
    load(std::slice::from_ref(&csv), &options).unwrap();
    assert_eq!(progress.state().stage, LoadStage::Cleaning(2));
    let path = dir.path().join("scores.csv");
    fs::write(&path, "time,score\n2020-01-01T00:00:00Z,1\n").unwrap();
    let join = JoinOptions {
        path: path.clone(),
        as_of: BarStamp::Close,
        max_age_ms: None,
        prefix: "ml_".to_string(),
    };
    load(&[csv], &LoadOptions { join: Some(join), ..options }).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    let expected = LoadState {
        stage: LoadStage::Joining(path),
        files: 1,
        files_done: 1,
        bytes: Some(size),
        bytes_done: size,
    };
    assert_eq!(progress.state(), expected);
}
