//! `tidemill data` from the outside: what goes to stdout, what to stderr, which exit code.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tidemill(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemill")).arg("data").args(args).current_dir(dir).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn generated_data_survives_conversion_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    let generated = tidemill(
        dir.path(),
        &["generate", "--out", "g.parquet", "--bars", "300", "--symbols", "2", "--seed", "7"],
    );
    assert!(generated.status.success(), "{}", text(&generated.stderr));
    assert!(generated.stdout.is_empty());
    assert!(text(&generated.stderr).contains("zscore(close, 60) < -2"), "{}", text(&generated.stderr));
    let converted = tidemill(dir.path(), &["convert", "g.parquet", "--out", "g.csv"]);
    assert!(converted.status.success() && converted.stdout.is_empty(), "{}", text(&converted.stderr));
    let fingerprint = |file: &str| {
        let output = tidemill(dir.path(), &["inspect", file, "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["symbols"][0]["bars"], 300);
        report["fingerprint"].as_str().unwrap().to_string()
    };
    assert_eq!(fingerprint("g.parquet"), fingerprint("g.csv"));
}

#[test]
fn inspect_shows_a_row_per_symbol_and_what_was_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "time,open,high,low,close\n2024-01-01,1,2,1,2\n2024-01-02,1,2,1,2\n2024-01-02,1,2,1,1.5\n2024-01-03,0,2,1,2\n";
    std::fs::write(dir.path().join("X.csv"), rows).unwrap();
    let output = tidemill(dir.path(), &["inspect", "X.csv"]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(shown.contains("2024-01-01T00:00:00Z  2024-01-02T00:00:00Z  1d"), "{shown}");
    assert!(
        shown.contains("X.csv:3 X 2024-01-02") && shown.contains("price of zero or less, dropped: 1"),
        "{shown}"
    );
}

#[test]
fn a_column_without_values_is_shown_and_noted() {
    let dir = tempfile::tempdir().unwrap();
    let rows =
        "time,open,high,low,close,volume,funding\n2024-01-01,1,2,1,2,3,NaN\n2024-01-02,1,2,1,2,3,NaN\n";
    std::fs::write(dir.path().join("X.csv"), rows).unwrap();
    let shown = text(&tidemill(dir.path(), &["inspect", "X.csv"]).stdout);
    assert!(shown.contains("not available: 2") && shown.contains("further series: funding"), "{shown}");
    assert!(shown.contains("not available throughout: funding"), "{shown}");
}

#[test]
fn resampling_and_selection_apply() {
    let dir = tempfile::tempdir().unwrap();
    assert!(
        tidemill(dir.path(), &["generate", "--out", "g.csv", "--kind", "lcg", "--bars", "40"])
            .status
            .success()
    );
    let args = ["convert", "g.csv", "--resample", "1h", "--symbols", "LCG", "--out", "h.csv"];
    assert!(tidemill(dir.path(), &args).status.success());
    let hours = std::fs::read_to_string(dir.path().join("h.csv")).unwrap();
    assert_eq!(hours.lines().count(), 11);
    assert!(hours.lines().nth(1).unwrap().starts_with("LCG,2024-01-01T00:00:00Z,0.5,"), "{hours}");
}

#[test]
fn bad_input_is_exit_code_two_with_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.csv"), "").unwrap();
    std::fs::write(dir.path().join("bad.parquet"), "PAR1 not really PAR1").unwrap();
    std::fs::write(dir.path().join("garbage.parquet"), b"\x1b[2J\0\x01\x02\xff").unwrap();
    std::fs::write(dir.path().join("garbage.csv"), b"\x1b[2J\0\x01\x02\xff").unwrap();
    for (name, times) in
        [("fast.csv", ["01T00", "01T01", "01T02"]), ("slow.csv", ["01T00", "02T00", "03T00"])]
    {
        let rows = times.map(|time| format!("A,2024-01-{time}:00,1,2,1,2\n")).concat();
        std::fs::write(dir.path().join(name), format!("symbol,time,open,high,low,close\n{rows}")).unwrap();
    }
    for (args, expected) in [
        (vec!["inspect", "missing.csv"], "no such file"),
        (vec!["inspect", "empty.csv"], "empty"),
        (vec!["inspect", "bad.parquet"], "not readable as Parquet"),
        (vec!["inspect", "garbage.parquet"], "not readable as Parquet: the start mark is missing"),
        (vec!["inspect", "garbage.csv"], "looks binary, none of CSV"),
        (vec!["inspect", "fast.csv", "slow.csv"], "fast.csv has 1h bars of symbol \"A\" and slow.csv has 1d"),
        (vec!["generate", "--out", "x.xls"], "end the name in"),
        (vec!["generate", "--out", "no/x.csv"], "there is no folder no"),
        (vec!["convert", "fast.csv", "--out", "no/x.parquet"], "there is no folder no"),
        (vec!["convert", "fast.csv", "--out", "x.txt"], "end the name in"),
        (vec!["generate", "--out", "x.csv", "--bars", "0"], "at least 1"),
        (vec!["generate", "--out", "x.csv", "--edge", "2"], "from 0 to 1"),
        (vec!["generate", "--out", "x.csv", "--timeframe", "soon"], "not a timeframe"),
        (vec!["generate", "--out", "x.csv", "--kind", "lcg", "--seed", "3"], "only --bars"),
    ] {
        let output = tidemill(dir.path(), &args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert!(message.starts_with("error: "), "nothing comes before the error: {args:?}: {message}");
        assert!(message.chars().all(|each| !each.is_control() || each == '\n'), "{args:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn standard_input_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    for out in ["g.parquet", "g.csv"] {
        assert!(
            tidemill(dir.path(), &["generate", "--out", out, "--kind", "lcg", "--bars", "40"])
                .status
                .success()
        );
    }
    let fingerprint = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["fingerprint"].as_str().unwrap().to_string()
    };
    let expected = fingerprint(tidemill(dir.path(), &["inspect", "g.parquet", "--json"]));
    for file in ["g.parquet", "g.csv"] {
        let output = Command::new(env!("CARGO_BIN_EXE_tidemill"))
            .args(["data", "inspect", "-", "--json"])
            .stdin(std::fs::File::open(dir.path().join(file)).unwrap())
            .output()
            .unwrap();
        assert_eq!(fingerprint(output), expected, "{file}");
    }
}

#[test]
fn bad_files_are_refused_alike_by_name_and_through_standard_input() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../market/tests/corpus");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 50, "{}", files.len());
    let mut n_refused = 0;
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let by_name = tidemill(&corpus, &["inspect", name]);
        let piped = Command::new(env!("CARGO_BIN_EXE_tidemill"))
            .args(["data", "inspect", "-"])
            .stdin(std::fs::File::open(file).unwrap())
            .output()
            .unwrap();
        // A symbol is named after its file, without the endings.
        let stem = name.split('.').next().unwrap();
        let expected = text(&by_name.stderr).replace(name, "-").replace(stem, "-");
        assert_eq!(text(&piped.stderr), expected, "{name}");
        assert_eq!(piped.status.code(), by_name.status.code(), "{name}");
        n_refused += usize::from(piped.status.code() == Some(2));
    }
    assert!(n_refused > 40, "{n_refused}");
}

#[cfg(unix)]
#[test]
fn a_pipe_that_has_a_name_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let generate = ["generate", "--out", "g.csv", "--kind", "lcg", "--bars", "40"];
    assert!(tidemill(dir.path(), &generate).status.success());
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (from, to) = (dir.path().join("g.csv"), pipe.clone());
    let writer = std::thread::spawn(move || std::fs::copy(from, to).unwrap());
    let piped = tidemill(dir.path(), &["inspect", "pipe", "--json"]);
    // Before the writer is waited for: a pipe that nobody opened keeps it.
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    writer.join().unwrap();
    let by_name = tidemill(dir.path(), &["inspect", "g.csv", "--json"]);
    let fingerprint = |output: &Output| {
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_eq!(fingerprint(&piped), fingerprint(&by_name));
}
