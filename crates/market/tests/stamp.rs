//! `--stamp close`: files whose times are the ends of bars give the bars that files with open times give.

use tidemill_market::report::IssueKind;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{BarStamp, Bars, LoadOptions, LoadedData, MarketError, load};

/// 2024-01-01T00:00Z.
const START: i64 = 1_704_067_200_000;

fn load_text(content: impl AsRef<[u8]>, options: &LoadOptions) -> Result<LoadedData, MarketError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    std::fs::write(&path, content).unwrap();
    load(&[path], options)
}

fn only(loaded: &LoadedData) -> &Bars {
    assert_eq!(loaded.universe.symbols.len(), 1);
    &loaded.universe.symbols[0]
}

/// Bars at these times, one after the other.
fn at(times: &[&str]) -> String {
    let rows: Vec<String> = times.iter().map(|time| format!("{time},5,6,4,5,9\n")).collect();
    format!("time,open,high,low,close,volume\n{}", rows.concat())
}

fn ends() -> LoadOptions {
    LoadOptions { stamp: BarStamp::Close, ..LoadOptions::default() }
}

fn opens(content: &str, options: &LoadOptions) -> Vec<String> {
    let loaded = load_text(content, options).unwrap();
    only(&loaded).ts_ms.iter().map(|&ts_ms| format_ms(ts_ms)).collect()
}

#[test]
fn ends_of_bars_become_opens_in_every_spelling() {
    let hours = ["2024-01-02T09:00:00Z", "2024-01-02T10:00:00Z", "2024-01-02T12:00:00Z"];
    for ends_at in [
        ["2024-01-02T10:00:00Z", "2024-01-02T11:00:00Z", "2024-01-02T13:00:00Z"],
        ["2024-01-02T09:59:59.999Z", "2024-01-02T10:59:59.999Z", "2024-01-02T12:59:59.999Z"],
        ["2024-01-02T09:59:59Z", "2024-01-02T10:59:59Z", "2024-01-02T12:59:59Z"],
        ["2024-01-02T09:59Z", "2024-01-02T10:59Z", "2024-01-02T12:59Z"],
        // As an exchange has them: milliseconds, and microseconds.
        ["1704189599999", "1704193199999", "1704200399999"],
        ["1704189599999999", "1704193199999999", "1704200399999999"],
    ] {
        assert_eq!(opens(&at(&ends_at), &ends()), hours, "{ends_at:?}");
        assert_ne!(opens(&at(&ends_at), &LoadOptions::default()), hours);
    }
    let days = ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"];
    assert_eq!(opens(&at(&["2024-01-02", "2024-01-03", "2024-01-04"]), &ends()), days);
    assert_eq!(
        opens(&at(&["2024-01-01 23:59:59", "2024-01-02 23:59:59", "2024-01-03 23:59:59"]), &ends()),
        days
    );
    assert_eq!(opens(&at(&["2024-01-02"]), &ends()), days[..1], "a single bar is a day");
    let zone = LoadOptions { timezone: Some("+02:00".into()), ..ends() };
    assert_eq!(opens(&at(&["2024-01-02 12:00", "2024-01-02 13:00", "2024-01-02 15:00"]), &zone), hours);
    let loaded = load_text(at(&["2024-01-02", "2024-01-03"]), &ends()).unwrap();
    assert!(loaded.report.remarks().iter().any(|line| line.contains("ends of bars (--stamp close)")));
}

#[test]
fn ends_are_shifted_before_bars_are_cut_joined_and_resampled() {
    let quarters: Vec<String> =
        (1..=8).map(|at| format!("2024-01-01 {:02}:{:02}", at / 4, at % 4 * 15)).collect();
    let quarters: Vec<&str> = quarters.iter().map(String::as_str).collect();
    let hourly = LoadOptions { resample: Some(3_600_000), ..ends() };
    let loaded = load_text(at(&quarters), &hourly).unwrap();
    assert_eq!(only(&loaded).ts_ms, [START, START + 3_600_000]);
    assert_eq!(
        (only(&loaded).volume.as_slice(), loaded.report.count(IssueKind::PartialBucket)),
        ([36.0, 36.0].as_slice(), 0)
    );
    let part = LoadOptions { from_ms: Some(START + 900_000), to_ms: Some(START + 2_700_000), ..ends() };
    assert_eq!(opens(&at(&quarters), &part), ["2024-01-01T00:15:00Z", "2024-01-01T00:30:00Z"]);
    // Each symbol has its own length of a bar; one with a single bar takes the commonest.
    let mut text = String::from("symbol,time,open,high,low,close\n");
    for (symbol, minute) in [("A", 5), ("A", 10), ("A", 15), ("B", 60), ("B", 120), ("C", 10)] {
        text += &format!("{symbol},{},5,6,4,5\n", START + minute * 60_000);
    }
    let loaded = load_text(text, &ends()).unwrap();
    let first = |at: usize| (loaded.universe.symbols[at].ts_ms[0] - START) / 60_000;
    assert_eq!([first(0), first(1), first(2)], [0, 0, 5]);
}

#[test]
fn ends_that_cannot_be_followed_are_errors_and_doubtful_ones_noted() {
    let message = |content: &str| load_text(content, &ends()).unwrap_err().to_string();
    let mixed = message(&at(&["2024-01-01 23:59:59.999", "2024-01-03 00:00"]));
    assert!(mixed.contains("\"x\": --stamp close") && mixed.contains("hint:"), "{mixed}");
    assert!(message(&at(&["2024-01-31", "2024-02-29", "2024-03-31"])).contains("months"));
    let named = "open_time,open,high,low,close\n2024-01-01,5,6,4,5\n2024-01-02,5,6,4,5\n";
    assert!(message(named).contains("calls them open times"), "{}", message(named));
    let kline: String = (0..3_i64)
        .map(|at| START + at * 60_000)
        .map(|open| format!("{open},5,6,4,5,9,{},11,3,2,3,0\n", open + 59_999))
        .collect();
    assert!(message(&kline).contains("kline dump"));
    // One broken symbol among others is left out where that is asked for.
    let two = "symbol,time,open,high,low,close\nA,2024-01-01,5,6,4,5\nA,2024-01-02,5,6,4,5\nB,2024-01-31,5,6,4,5\nB,2024-02-29,5,6,4,5\n";
    let loaded = load_text(two, &LoadOptions { lenient: true, ..ends() }).unwrap();
    assert_eq!((loaded.universe.symbols.len(), loaded.report.refused[0].symbol.as_str()), (1, "B"));

    let note = |content: &str, options: &LoadOptions, wanted: &str| {
        let loaded = load_text(content, options).unwrap();
        loaded.report.remarks().iter().any(|line| line.contains(wanted))
    };
    // A market's weekdays are its own days; stamped at the midnight after, they run from Tuesday to Saturday.
    let weekdays = at(&["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]);
    assert!(note(&weekdays, &ends(), "Sunday to Thursday (2023-12-31"));
    let after = at(&["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-06", "2024-01-09"]);
    assert!(!note(&after, &ends(), "Sunday"));
    let named = named.replace("open_time", "close_time");
    assert!(note(&named, &LoadOptions::default(), "with --stamp close"));
    assert!(!note(&named, &ends(), "with --stamp close"));
}
