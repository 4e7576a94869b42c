//! `tidemill scan`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::device::{emulates, hidden, spans};
use crate::support::Place;

/// A file of hourly bars with these closes.
fn bars(closes: impl IntoIterator<Item = f64>) -> String {
    let mut text = String::from("timestamp,open,high,low,close,volume\n");
    for (bar, close) in closes.into_iter().enumerate() {
        text += &format!("{},{close},{close},{close},{close},1\n", 1_700_000_000 + 3_600 * bar);
    }
    text
}

/// Series S1 of the reference.
fn s1(n: u32) -> impl Iterator<Item = f64> {
    (0..n).map(|i| 100.0 + 10.0 * (f64::from(i) / 7.0).sin() + 0.05 * f64::from(i))
}

/// A folder `data` with symbols of three lengths and directions.
fn with_folder() -> Place {
    let place = Place::new();
    place.write("data/UP.csv", bars(s1(400)));
    place.write("data/DOWN.csv", bars(s1(400).map(|close| 10_000.0 / close)));
    place.write("data/TWIN.csv", bars(s1(400)));
    place.write("data/YOUNG.csv", bars(s1(40)));
    place
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["symbol"].as_str().unwrap()).collect()
}

fn close_to(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-12, "{value} is not {expected}");
}

#[test]
fn the_reference_series_gives_the_reference_numbers() {
    let place = Place::new();
    place.write("S1.csv", bars(s1(400)));
    let answer = place.json("scan S1.csv --history");
    let row = &answer["symbols"][0];
    assert_eq!(
        (&row["symbol"], &row["trend"], &row["class"], &row["bars"]),
        (&"S1".into(), &1.into(), &"LONG".into(), &400.into())
    );
    assert_eq!(row["price"], 124.31164755247825);
    close_to(&row["signal"], 1.0);
    let average = row["average"].as_array().unwrap();
    for (bar, expected) in [
        (27, -0.1712303891257045),
        (28, -0.1726624911935465),
        (34, -0.01120567271751145),
        (50, 1.0),
        (100, 0.606461056358246),
        (200, -1.0),
        (300, -0.3394366993665249),
        (399, 1.0),
    ] {
        close_to(&average[bar], expected);
    }
    // The first port, at bar 217: the last of its 17 signals.
    place.write("HEAD.csv", bars(s1(218)));
    let answer = place.json("scan HEAD.csv --preset head --min-signal 0.001 --history");
    close_to(&answer["symbols"][0]["signal"], 0.008804398728285576);
    let average = answer["symbols"][0]["average"].as_array().unwrap();
    assert_eq!(average.iter().filter(|value| value.as_f64() != Some(0.0)).count(), 17);
    close_to(&average[23], -0.16871969760991348);
    // It is weaker than what is kept by default.
    let answer = place.json("scan HEAD.csv --preset head");
    assert_eq!((names(&answer["symbols"]).len(), names(&answer["filtered"])), (0, vec!["HEAD"]));
    close_to(&answer["filtered"][0]["signal"], 0.008804398728285576);
}

#[test]
fn a_folder_is_ranked_into_two_lists() {
    let place = with_folder();
    let answer = place.json("scan data");
    assert_eq!(names(&answer["symbols"]), ["TWIN", "UP", "YOUNG", "DOWN"]);
    let said = place.ok("scan data");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines[0] == "LONG (3)" && lines.contains(&"SHORT (1)"), "{}", said.stdout);
    assert!(lines[3].starts_with("1  TWIN") && lines[3].contains('█'), "{}", said.stdout);
    for part in
        ["preset v2", "window: 40 to 400 bars, 2023-11-14T22:13:20Z to ", "3 long, 1 short", "0 errors"]
    {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    // The same window for all: the young one has none.
    let answer = place.json("scan data --bars 300 --top 1");
    assert_eq!(names(&answer["symbols"]), ["TWIN", "DOWN"]);
    assert_eq!(answer["symbols"][0]["bars"], 300);
    assert_eq!(answer["skipped"][0]["reason"], "it has 40 bars, the scan needs 300");
    assert_eq!((&answer["counts"]["skipped"], &answer["counts"]["errors"]), (&1.into(), &0.into()));
    let tail = bars(s1(400))
        .lines()
        .enumerate()
        .filter(|(at, _)| *at == 0 || *at > 100)
        .map(|(_, line)| format!("{line}\n"))
        .collect::<String>();
    place.write("TAIL.csv", tail);
    let tail = place.json("scan TAIL.csv --history");
    let window = place.json("scan data/UP.csv --history --bars 300");
    assert_eq!(tail["symbols"][0]["average"], window["symbols"][0]["average"]);
    // Equality is kept, and nothing else of the same size.
    let signal = place.json("scan data/YOUNG.csv")["symbols"][0]["signal"].as_f64().unwrap();
    let kept = place.json(&format!("scan data/YOUNG.csv --min-signal {signal}"));
    assert_eq!(names(&kept["symbols"]), ["YOUNG"]);
    if signal < 1.0 {
        let above = place.json(&format!("scan data/YOUNG.csv --min-signal {}", signal.next_up()));
        assert_eq!((names(&above["symbols"]).len(), names(&above["filtered"]).len()), (0, 1));
    }
}

#[test]
fn alone_it_shows_something() {
    let said = Place::new().ok("scan");
    assert!(said.stdout.contains("LONG (") && said.stdout.contains("SHORT ("), "{}", said.stdout);
    assert!(said.stderr.contains("generated data (100 symbols"), "{}", said.stderr);
}

#[test]
fn what_is_broken_is_told_and_spoils_nothing() {
    let place = with_folder();
    let clean = place.json("scan data");
    let with_last = |cell: &str| bars(s1(60)) + &format!("1710000000,1,1,1,{cell},1\n");
    place.write("data/ZERO.csv", with_last("0"));
    place.write("data/HOLE.csv", with_last("NaN"));
    place.write("data/EMPTY.csv", "");
    place.write("data/TEXT.csv", "once upon a time\nthere was a market\n");
    place.write("data/GONE.csv", bars([f64::NAN, f64::NAN, 0.0]));
    place.write("data/SHORT.csv", bars(s1(33)));
    place.write("data/BTC.USD.csv", "");
    let answer = place.json("scan data");
    assert_eq!(answer["symbols"], clean["symbols"]);
    let skipped = answer["skipped"].as_array().unwrap();
    let reason = |name: &str| {
        let one = skipped.iter().find(|one| one["symbol"] == name);
        one.unwrap_or_else(|| panic!("{name}: {skipped:?}"))["reason"].as_str().unwrap()
    };
    for (name, part) in [
        ("ZERO", "its newest row has a price of zero or less"),
        ("HOLE", "its newest row has a price that is missing"),
        ("EMPTY", "the file is empty"),
        ("BTC.USD", "the file is empty"),
        ("TEXT", "columns"),
        ("GONE", "no bar left of 3 row(s)"),
        ("SHORT", "it has 33 bars, the longest moving average needs 34"),
    ] {
        assert!(reason(name).contains(part), "{name}: {}", reason(name));
    }
    assert_eq!(
        (skipped.len(), &answer["counts"]["errors"], &answer["counts"]["scanned"]),
        (7, &6.into(), &11.into())
    );
    let said = place.ok("scan data");
    assert!(said.stderr.contains("skipped ZERO: its newest row"), "{}", said.stderr);
    assert!(said.stderr.contains("skipped data/EMPTY.csv: the file is empty"), "{}", said.stderr);
    assert!(said.stderr.contains("skipped data/TEXT.csv:1: "), "the file is named once: {}", said.stderr);
    assert!(said.stderr.contains("7 skipped, 6 errors"), "{}", said.stderr);
    // Holes before the end are the loader's matter, and it says so.
    let hole = bars(s1(60)).replacen(",1\n", ",x\n", 1);
    place.write("MIDDLE.csv", hole);
    let said = place.ok("scan MIDDLE.csv");
    assert!(said.stderr.contains("note: rows with missing"), "{}", said.stderr);
    // Nothing but broken files is an error.
    place.refused("scan data/EMPTY.csv", "the file is empty");
    place.refused("scan data/GONE.csv", "no usable bar");
}

#[test]
fn mistakes_are_refused_with_a_cure() {
    let place = with_folder();
    for (given, reason) in [
        ("nosuch.csv", "nosuch.csv: no such file"),
        ("data --preset v3", "v2, head or pine"),
        ("data --set lenght=3", "there is no option `lenght`; did you mean `length`?"),
        ("data --set Robustness=Wide", "did you mean `robustness`?"),
        ("data --set xyzzy=3", "there is no option `xyzzy`\n  hint: there are length, ema_len"),
        ("data --set length=0", "--set length=0: `length` cannot be `0`"),
        ("data --set length", "expected NAME=VALUE"),
        ("data --set robustness=Huge", "Narrow, Medium or Wide"),
        ("data --set De=200", "decay"),
        ("data --set ema_w=0", "ema_w"),
        ("data --set long_threshold=-0.5", "long_threshold"),
        ("data --min-signal -1", "--min-signal -1: expected"),
        ("data --min-signal much", "--min-signal"),
        ("data --bars 0", "--bars 0: expected at least 1"),
        ("data --bars -5", "--bars"),
        ("data --streams 0", "--streams 0: expected a number from 1 to 16"),
        ("data --streams 17", "--streams 17"),
        ("data --device gpu", "expected auto, cpu, cuda or cuda:N"),
        ("data --out rows.csv", "expected a .parquet file or a folder"),
        ("data --out none/rows.parquet", "rows.parquet"),
        ("data --journal none/journal.jsonl", "--journal"),
        ("data --timeline none/trace.json", "--timeline none/trace.json"),
        ("data --symbols NOPE", "\"NOPE\" is not in the data"),
        ("data --resample 7x", "--resample"),
        ("--watch", "--watch needs DATA"),
        ("--symbols UP", "--symbols needs DATA"),
    ] {
        place.refused(&format!("scan {given}"), reason);
    }
    let said = hidden(&place, "scan data --device cuda");
    said.is_refusal("--device cuda", "--device cuda: ");
}

#[test]
fn options_and_settings_reach_the_computation() {
    let place = with_folder();
    let answer =
        place.json("scan data --set length=14 --set La=0.05 --set robustness=Wide --symbols UP,DOWN");
    let options = &answer["options"];
    assert_eq!(
        (&options["ema_len"], &options["kama_len"], &options["lambda"]),
        (&14.into(), &14.into(), &0.05.into())
    );
    assert_eq!(answer["counts"]["scanned"], 2);
    place.write("tidemill.toml", "[data]\nfiles = ['data']\n[gpu]\nstreams = 3\n");
    assert_eq!(place.json("scan"), place.json("scan data"));
}

#[test]
fn results_are_written_as_parquet() {
    let place = with_folder();
    let said = place.ok("scan data --out rows.parquet --history");
    assert!(said.stderr.contains("wrote rows.parquet") && said.stderr.contains("wrote rows.history.parquet"));
    for (file, columns) in [("rows.parquet", 4), ("rows.history.parquet", 3 * 400 + 40)] {
        let bytes = std::fs::read(place.path(file)).unwrap();
        assert_eq!(
            (&bytes[..4], &bytes[bytes.len() - 4..]),
            (&b"PAR1"[..], &b"PAR1"[..]),
            "{file} {columns}"
        );
    }
    place.ok("scan data --out runs/one --device cpu");
    assert!(place.path("runs/one/results.parquet").is_file());
    assert!(!place.path("runs/one/history.parquet").exists());
    let journal = place.read("runs/one/journal.jsonl");
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // On a machine that is busy enough it also says that it is alive.
    let records: Vec<Value> = records.filter(|record| record["step"] != "alive").collect();
    let phases: Vec<&str> = records.iter().map(|record| record["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["run", "kernel", "run"]);
    assert_eq!(
        (&records[0]["step"], &records[0]["parameters"]["workload"]),
        (&"start".into(), &"scan".into())
    );
    assert_eq!(records[1]["device"]["mode"], "cpu");
    let end = &records[2];
    assert_eq!((&end["step"], &end["parameters"]["outcome"]), (&"end".into(), &"complete".into()));
    assert_eq!((&end["values"]["long"], &end["values"]["short"]), (&3.into(), &1.into()));
}

#[test]
fn a_device_prints_what_the_cpu_prints() {
    if !emulates() {
        return;
    }
    let place = with_folder();
    let line = "scan data --history --min-signal 0 --set cutout=3";
    let expected = place.ok(&format!("{line} --device cpu --json")).stdout;
    for streams in [1, 2, 5, 16] {
        let said = place.ok(&format!("{line} --device emulated --streams {streams} --json"));
        assert!(said.stdout == expected, "{streams} streams");
    }
    assert!(place.ok(&format!("{line} --device emulated:2 --json")).stdout == expected);
    place.ok("scan data --device emulated --streams 3 --journal journal.jsonl --timeline trace.json");
    let journal = place.read("journal.jsonl");
    for phase in ["upload", "kernel", "download"] {
        let record = journal.lines().find(|line| line.contains(&format!("\"phase\":\"{phase}\"")));
        let record: Value = serde_json::from_str(record.unwrap()).unwrap();
        assert_eq!(record["device"]["mode"], "gpu", "{record}");
        assert!(record["device"]["stream"].is_u64() && record["duration_ms"].is_number(), "{record}");
    }
    let names: Vec<String> = spans(&place, "trace.json").into_iter().map(|span| span.0).collect();
    for stage in ["upload 0", "kernel 0 (", "download 0"] {
        assert!(names.iter().any(|name| name.starts_with(stage)), "{stage}: {names:?}");
    }
}

#[cfg(unix)]
#[test]
fn watching_scans_again_when_a_file_changes_and_ends_with_ctrl_c() {
    let place = with_folder();
    let mut child = place
        .command(&["scan", "data", "--watch", "--json", "--device", "cpu"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["counts"]["scanned"], 4);
    // In one step, so that no scan sees half of it.
    place.write("new.csv", bars(s1(300)));
    std::fs::rename(place.path("new.csv"), place.path("data/NEW.csv")).unwrap();
    let answer = next();
    assert_eq!(answer["counts"]["scanned"], 5);
    assert!(names(&answer["symbols"]).contains(&"NEW"));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
