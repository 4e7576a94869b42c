//! Columns of another file joined to bars, against the plain definition and against pandas.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tidemill_market::report::FeatureReport;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{BarStamp, JoinOptions, LoadOptions, LoadedData, MarketError, load};

const HOUR: i64 = 3_600_000;
const START: i64 = 1_704_067_200_000;

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

/// Hourly bars of these symbols.
fn bars(symbols: &[&str], hours: i64) -> String {
    let mut text = String::from("symbol,timestamp,open,high,low,close,volume\n");
    for symbol in symbols {
        for hour in 0..hours {
            writeln!(text, "{symbol},{},1,1,1,1,1", format_ms(START + hour * HOUR)).unwrap();
        }
    }
    text
}

fn join(
    dir: &Path,
    bars: &str,
    features: &str,
    options: impl Fn(&mut JoinOptions),
) -> Result<LoadedData, MarketError> {
    let path = file(dir, "features.csv", features);
    let mut join = JoinOptions { path, as_of: BarStamp::Close, max_age_ms: None, prefix: "ml_".into() };
    options(&mut join);
    load(&[file(dir, "bars.csv", bars)], &LoadOptions { join: Some(join), ..LoadOptions::default() })
}

fn column<'a>(loaded: &'a LoadedData, symbol: usize, name: &str) -> &'a [f64] {
    let extra = &loaded.universe.symbols[symbol].extra;
    &extra.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}: {extra:?}")).1
}

fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

proptest! {
    #[test]
    fn every_bar_reads_the_last_row_that_exists_by_its_close(
        // Minutes from an hour before the first bar on; a few repeat.
        stamps in prop::collection::vec(-60_i64..700, 1..40),
        max_age in prop::option::of(0_i64..300),
        at_open: bool,
    ) {
        const MINUTE: i64 = 60_000;
        let dir = tempfile::tempdir().unwrap();
        let mut text = String::from("time,score\n");
        for (row, minute) in stamps.iter().enumerate() {
            writeln!(text, "{},{row}", format_ms(START + minute * MINUTE)).unwrap();
        }
        let as_of = if at_open { BarStamp::Open } else { BarStamp::Close };
        let loaded = join(dir.path(), &bars(&["A"], 10), &text, |join| {
            join.max_age_ms = max_age.map(|minutes| minutes * MINUTE);
            join.as_of = as_of;
        });
        // The definition, row by row: the latest stamp by then, of equal ones the last row.
        let expected: Vec<f64> = (0..10)
            .map(|hour| {
                let until = hour * 60 + if at_open { 0 } else { 60 };
                let rows = stamps.iter().enumerate().filter(|(_, stamp)| **stamp <= until);
                let last = rows.max_by_key(|(row, stamp)| (**stamp, *row));
                let fresh = last.filter(|(_, stamp)| max_age.is_none_or(|most| until - **stamp <= most));
                fresh.map_or(f64::NAN, |(row, _)| row as f64)
            })
            .collect();
        if expected.iter().all(|value| value.is_nan()) {
            let is_refused = matches!(loaded, Err(MarketError::Join { .. }));
            prop_assert!(is_refused);
            return Ok(());
        }
        let loaded = loaded.unwrap();
        let found = column(&loaded, 0, "ml_score");
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| same(*a, *b)), "{found:?} {expected:?}");
        let report = loaded.report.features.unwrap();
        let n_missing = expected.iter().filter(|value| value.is_nan()).count();
        prop_assert_eq!(report.bars_without + report.bars_stale, n_missing);
        let mut read: Vec<u64> = expected.iter().filter(|value| !value.is_nan()).map(|value| *value as u64).collect();
        read.dedup();
        prop_assert_eq!(report.rows_unmatched + report.rows_duplicate + read.len(), stamps.len());
    }
}

#[test]
fn rows_meet_their_symbol_and_what_does_not_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let at = |minutes: i64| format_ms(START + minutes * 60_000);
    let features = [
        "time,ticker,score,close,comment".to_string(),
        format!("{},A,1,10,x", at(60)),
        format!("{},A,2,20,x", at(61)),
        format!("{},A,3,30,x", at(61)),
        format!("{},B,4,NaN,x", at(-30)),
        format!("{},C,5,50,x", at(0)),
        "never,A,6,60,x".to_string(),
        format!("{},A,7,70,x", at(60 * 100)),
    ]
    .join("\n");
    let joined =
        join(dir.path(), &bars(&["A", "B"], 4), &features, |join| join.max_age_ms = Some(2 * HOUR)).unwrap();
    let nan = f64::NAN;
    // The row of 01:00 is there at the close of the bar that opened at 00:00, that of 01:01 is not.
    for (symbol, name, expected) in [
        (0, "ml_score", [1.0, 3.0, 3.0, nan]),
        (0, "ml_close", [10.0, 30.0, 30.0, nan]),
        (1, "ml_score", [4.0, nan, nan, nan]),
        (1, "ml_close", [nan; 4]),
    ] {
        let found = column(&joined, symbol, name);
        assert!(found.iter().zip(expected).all(|(a, b)| same(*a, b)), "{name} {symbol}: {found:?}");
    }
    let expected = FeatureReport {
        path: dir.path().join("features.csv").display().to_string(),
        columns: vec!["ml_score".into(), "ml_close".into()],
        rows: 7,
        rows_duplicate: 1,
        rows_without_time: 1,
        rows_unmatched: 2,
        bars_without: 0,
        bars_stale: 4,
    };
    assert_eq!(joined.report.features, Some(expected));
    let said = joined.report.remarks().join("\n");
    assert!(
        said.contains("2 rows that no bar reads; 1 duplicate rows")
            && said.contains("4 bars whose last row is too old"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_joined_is_refused_with_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    let bars = bars(&["A"], 3);
    let row = |columns: &str| format!("time,{columns}\n{},5\n", format_ms(START));
    for (features, prefix, expected) in [
        (row("close"), "", "the bars have a column close already"),
        (row("score"), "9", "cannot begin the name of a series"),
        (row("score"), "Ml ", "cannot begin the name of a series"),
        (row("score").replace("2024", "2034"), "", "no row meets a bar"),
        ("score,other\n1,2\n".to_string(), "", "no column for time"),
        (row("comment").replace(",5", ",text"), "", "no column of numbers"),
        ("nothing".to_string(), "", "at least 2 columns"),
    ] {
        let outcome = join(dir.path(), &bars, &features, |join| join.prefix = prefix.into());
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("hint:"), "{expected}: {message}");
    }
    let gone = join(dir.path(), &bars, "", |join| join.path = "gone.parquet".into());
    assert!(matches!(gone, Err(MarketError::NotFound { .. })));
}

/// `reference/merge_asof.py` wrote the table with pandas.
#[test]
fn a_join_is_what_pandas_calls_merge_asof() {
    let reference = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"));
    let path = reference.join("merge_asof_features.parquet");
    let join = JoinOptions { path, as_of: BarStamp::Close, max_age_ms: Some(2 * HOUR), prefix: "ml_".into() };
    let options = LoadOptions { join: Some(join), ..LoadOptions::default() };
    let loaded = load(&[reference.join("merge_asof_bars.csv")], &options).unwrap();
    let text = fs::read_to_string(reference.join("merge_asof.csv")).unwrap();
    let mut expected = text.lines().skip(1);
    let mut n_rows = 0;
    for (symbol, bars) in loaded.universe.symbols.iter().enumerate() {
        let (score, side) = (column(&loaded, symbol, "ml_score"), column(&loaded, symbol, "ml_side"));
        for row in 0..bars.len() {
            let cells: Vec<&str> = expected.next().unwrap().split(',').collect();
            let number = |text: &str| text.parse().unwrap_or(f64::NAN);
            assert_eq!((cells[0], cells[1].parse()), (bars.symbol.as_str(), Ok(bars.ts_ms[row])));
            assert!(same(number(cells[2]), score[row]) && same(number(cells[3]), side[row]), "{cells:?}");
            n_rows += 1;
        }
    }
    assert!(n_rows > 100 && expected.next().is_none());
}
