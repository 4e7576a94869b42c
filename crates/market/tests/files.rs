//! Files as such: several of one symbol, files whose name does not fit their content, and the messages about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, NullArray, RecordBatch, TimestampMillisecondArray};
use parquet::arrow::ArrowWriter;
use tidemill_market::report::IssueKind;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{
    DataReport, LoadOptions, LoadedData, MarketError, Universe, check_output, load, synth, write,
};

const MINUTE: i64 = 60_000;
const DAY: i64 = 1_440 * MINUTE;
const START: i64 = 1_704_067_200_000;

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Rows at these times; the close tells the time, plus `shift`.
fn rows(symbol: &str, times: impl IntoIterator<Item = i64>, shift: f64) -> String {
    let mut text = String::from("symbol,timestamp,open,high,low,close,volume\n");
    for ts_ms in times {
        let close = 10.0 + ((ts_ms - START) / MINUTE) as f64 / 1e6 + shift;
        text.push_str(&format!("{symbol},{},{close},{close},{close},{close},1\n", format_ms(ts_ms)));
    }
    text
}

fn every(step: i64, from: i64, n: i64) -> impl Iterator<Item = i64> {
    (0..n).map(move |index| START + from + index * step)
}

fn load_all(paths: &[PathBuf]) -> Result<LoadedData, MarketError> {
    load(paths, &LoadOptions::default())
}

#[test]
fn one_symbol_in_two_timeframes_is_an_error_that_names_all() {
    let dir = tempfile::tempdir().unwrap();
    let both = rows("ETH", every(5 * MINUTE, 0, 20), 0.0);
    let fast = rows("BTC", every(5 * MINUTE, 0, 20), 0.0) + both.split_once('\n').unwrap().1;
    let fast = file(dir.path(), "fast.csv", fast);
    let overlapping = file(dir.path(), "slow.csv", rows("BTC", every(60 * MINUTE, 0, 5), 0.0));
    let later = file(dir.path(), "later.csv", rows("BTC", every(60 * MINUTE, DAY, 5), 0.0));
    for slow in [&overlapping, &later] {
        let paths = [fast.clone(), slow.clone()];
        let message = load_all(&paths).unwrap_err().to_string();
        for part in ["fast.csv has 5m", "1h bars", "\"BTC\"", "--symbols", slow.to_str().unwrap()] {
            assert!(message.contains(part), "{part}: {message}");
        }
        // The cure that the message names.
        let options = LoadOptions { symbols: Some(vec!["ETH".into()]), ..LoadOptions::default() };
        assert_eq!(load(&paths, &options).unwrap().universe.symbols[0].symbol, "ETH");
    }
    let (old, new) = ("2023/X.csv", "2024/X.csv");
    let nameless =
        |step, from| rows("", every(step, from, 9), 0.0).replace("symbol,", "").replace("\n,", "\n");
    let paths = [file(dir.path(), old, nameless(MINUTE, 0)), file(dir.path(), new, nameless(DAY, DAY))];
    assert!(matches!(load_all(&paths), Err(MarketError::TimeframeClash { .. })));
}

#[test]
fn files_that_contradict_each_other_are_an_error_and_rows_of_one_file_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let one = file(dir.path(), "one.csv", rows("BTC", every(DAY, 0, 10), 0.0));
    let other = file(dir.path(), "other.csv", rows("BTC", every(DAY, 8 * DAY, 10), 0.5));
    let message = load_all(&[one.clone(), other]).unwrap_err().to_string();
    for part in
        ["one.csv:10 (1d bars)", "other.csv:2 (1d bars)", "\"BTC\"", "2 time(s)", "2024-01-09", "hint:"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    // A conflict within a file is settled by its last row before files are compared.
    let correction =
        rows("BTC", every(DAY, 8 * DAY, 2), 0.5) + &rows("BTC", every(DAY, 8 * DAY, 9), 0.0)[44..];
    let corrected = file(dir.path(), "corrected.csv", correction);
    let loaded = load_all(&[one, corrected]).unwrap();
    assert_eq!(loaded.universe.n_bars(), 17);
    assert_eq!(loaded.report.count(IssueKind::Conflict), 2);
}

#[test]
fn parts_of_one_history_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let part =
        |name: &str, from: i64, n: i64| file(dir.path(), name, rows("BTC", every(DAY, from * DAY, n), 0.0));
    let parts = [part("2023.csv", 0, 10), part("2024.csv", 10, 10)];
    assert_eq!(load_all(&parts).unwrap().universe.n_bars(), 20);
    let overlapping = load_all(&[parts[0].clone(), part("again.csv", 5, 10)]).unwrap();
    assert_eq!((overlapping.universe.n_bars(), overlapping.report.count(IssueKind::Duplicate)), (15, 5));
    assert_eq!(overlapping.report.count(IssueKind::Conflict), 0);
    let twice = load_all(&[parts[0].clone(), parts[0].clone()]).unwrap();
    assert_eq!(twice.universe.n_bars(), 10);
    // A Friday and a Monday are no three-day bars.
    let weekend = file(dir.path(), "weekend.csv", rows("BTC", [START + 25 * DAY, START + 28 * DAY], 0.0));
    assert_eq!(load_all(&[parts[0].clone(), weekend]).unwrap().universe.n_bars(), 12);
    // Months of 30 and of 31 days are months.
    let months =
        |name, days: [i64; 4]| file(dir.path(), name, rows("M", days.map(|day| START + day * DAY), 0.0));
    let months = [months("spring.csv", [91, 121, 152, 182]), months("winter.csv", [335, 366, 397, 425])];
    assert_eq!(load_all(&months).unwrap().universe.n_bars(), 8);
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_told_without_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let binary: Vec<u8> =
        (0..2_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let escapes =
        b"date,open,high,low\x1b[31m,x\n1,2,3,4,5\n2,3,4,5,6\n3,4,5,6,7,aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";
    for content in [binary.as_slice(), b"hello world", b"\xff\xfe\x00\x01", escapes] {
        let message = load_all(&[file(dir.path(), "g.parquet", content)]).unwrap_err().to_string();
        assert!(message.contains("not readable as Parquet: the start mark is missing"), "{message}");
        assert!(!message.contains(['\u{1b}', char::REPLACEMENT_CHARACTER]), "{message}");
    }
    for content in [binary.as_slice(), b"time,open\0", b"\x89\xa0\xb1\xc2\xd3\xe4,\xff,\xfe,\xfd,\xfc"] {
        let message = load_all(&[file(dir.path(), "g.csv", content)]).unwrap_err().to_string();
        assert!(message.contains("looks binary, none of CSV"), "{message}");
        assert!(message.chars().all(|each| !each.is_control() || each == '\n'), "{message}");
    }
    let message = load_all(&[file(dir.path(), "g.csv", escapes)]).unwrap_err().to_string();
    assert!(message.contains("low [31m") && !message.contains('\u{1b}'), "{message}");
    // Text of another encoding is text, and the content decides, not the name.
    let latin = b"time,open,high,low,close,name\n2024-01-01,1,2,1,2,M\xfcnchen\n";
    assert_eq!(load_all(&[file(dir.path(), "l.csv", latin)]).unwrap().universe.n_bars(), 1);
    let loaded = load_all(&[file(dir.path(), "t.parquet", rows("A", every(DAY, 0, 3), 0.0))]).unwrap();
    assert!(loaded.report.remarks().iter().any(|line| line.contains("the content is CSV")));
}

fn assert_funding_is_not_available(loaded: &LoadedData, n_bars: u64) {
    let extra = &loaded.universe.symbols[0].extra;
    assert_eq!(extra.len(), 1, "{extra:?}");
    assert_eq!(extra[0].0, "funding");
    assert!(extra[0].1.len() as u64 == n_bars && extra[0].1.iter().all(|value| value.is_nan()));
    assert_eq!(loaded.report.count(IssueKind::NotAvailable), n_bars);
    let remarks = loaded.report.remarks().join("\n");
    assert!(remarks.contains("not available throughout: funding"), "{remarks}");
}

#[test]
fn a_further_column_without_values_is_there_and_noted() {
    let dir = tempfile::tempdir().unwrap();
    for cell in ["NaN", "", "null"] {
        // The last column has no name and no content: a delimiter too many.
        let text = format!(
            "time,open,high,low,close,volume,Funding,note,\n2024-01-01,1,2,1,2,3,{cell},a,\n2024-01-02,1,2,1,2,3,{cell},b,\n"
        );
        let loaded = load_all(&[file(dir.path(), "X.csv", text)]).unwrap();
        assert_funding_is_not_available(&loaded, 2);
        let remarks = loaded.report.remarks().join("\n");
        assert!(remarks.contains("left out: note, column_9"), "{remarks}");
    }
    let price: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![START, START + DAY, START + 2 * DAY]));
    let empty: [ArrayRef; 2] =
        [Arc::new(NullArray::new(3)), Arc::new(Float64Array::from(vec![None::<f64>; 3]))];
    for funding in empty {
        let mut columns = vec![("timestamp", time.clone())];
        columns.extend(["open", "high", "low", "close", "volume"].map(|name| (name, price.clone())));
        columns.push(("funding", funding));
        let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
        let path = dir.path().join("X.parquet");
        let out = fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_funding_is_not_available(&load_all(&[path]).unwrap(), 3);
    }
}

#[test]
fn remarks_say_everything_once() {
    let dir = tempfile::tempdir().unwrap();
    let bars = "time,open,high,low,close\n2024-01-01,1,2,1,2\n2024-01-02,1,2,1,2\n2024-01-02,1,2,1,1.5\n";
    let mut paths: Vec<PathBuf> =
        (0..3).map(|index| file(dir.path(), &format!("S{index}.csv"), bars)).collect();
    paths.push(file(dir.path(), "Z.csv", "time,open,high,low,close,volume\n2024-01-01,0,2,1,2,1\n"));
    let remarks = load_all(&paths).unwrap().report.remarks();
    let expect = |count: usize, parts: &[&str]| {
        let n_found = remarks.iter().filter(|line| parts.iter().all(|part| line.contains(part))).count();
        assert_eq!(n_found, count, "{parts:?}: {remarks:#?}");
    };
    expect(1, &["disagree (the last stays): 3, first at ", "S0.csv:4 S0 2024-01-02"]);
    expect(1, &["refused Z: no bar left of 1 row(s)"]);
    expect(1, &["S0.csv and 2 more file(s): no volume column"]);
    assert!(remarks.iter().all(|line| !line.contains('\n')));
    assert!(DataReport::default().remarks().is_empty());
}

#[test]
fn what_cannot_be_written_says_so_before_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let universe = Universe { symbols: vec![synth::lcg(3)] };
    fs::create_dir(dir.path().join("folder.csv")).unwrap();
    for (name, expected) in [
        ("no/dir/y.csv", "there is no folder"),
        ("no/dir/y.parquet", "create it first"),
        ("folder.csv", "cannot be written"),
        ("y.txt", "end the name in .parquet or .csv"),
    ] {
        let path = dir.path().join(name);
        for outcome in [check_output(&path), write(&universe, &path)] {
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains(".part:"), "{name}: {message}");
            assert!(message.contains("hint:") && !message.contains("every .csv"), "{name}: {message}");
        }
    }
    assert!(check_output(&dir.path().join("y.CSV")).is_ok());
    assert!(check_output(Path::new("y.parquet")).is_ok());
}

#[test]
fn a_lenient_load_goes_on_without_what_is_broken_and_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "good.csv", rows("ETH", every(5 * MINUTE, 0, 20), 0.0));
    let empty = file(dir.path(), "empty.csv", "");
    let fast = file(dir.path(), "fast.csv", rows("BTC", every(5 * MINUTE, 0, 20), 0.0));
    let slow = file(dir.path(), "slow.csv", rows("BTC", every(60 * MINUTE, 0, 5), 0.0));
    let paths = [good, empty.clone(), fast, slow];
    assert!(matches!(load_all(&paths), Err(MarketError::Empty { .. })));
    let options = LoadOptions { lenient: true, ..LoadOptions::default() };
    let loaded = load(&paths, &options).unwrap();
    let kept: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
    assert_eq!(kept, ["ETH"]);
    let report = &loaded.report;
    assert_eq!(report.unreadable[0].path, empty.display().to_string());
    assert!(report.unreadable[0].reason.contains("the file is empty"));
    assert_eq!(report.refused[0].symbol, "BTC");
    assert!(report.refused[0].reason.contains("slow.csv"), "{}", report.refused[0].reason);
    assert!(report.has_losses() && report.remarks().iter().any(|line| line.contains("empty.csv")));
    // With nothing to go on with, the first problem is the error.
    assert!(matches!(load(&[empty], &options), Err(MarketError::Empty { .. })));
}

#[test]
fn a_dropped_newest_row_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let header = "timestamp,open,high,low,close\n2024-01-01,1,1,1,1\n2024-01-02,1,1,1,1\n";
    for (rest, expected) in [
        ("", None),
        ("2024-01-03,1,1,1,NaN\n", Some(IssueKind::NotANumber)),
        ("2024-01-03,1,1,1,0\n", Some(IssueKind::NotPositive)),
        ("2024-01-03,1,1,1,0\n2024-01-04,1,1,1,1\n", None),
    ] {
        let path = file(dir.path(), "a.csv", format!("{header}{rest}"));
        assert_eq!(load_all(&[path]).unwrap().report.symbols[0].newest_dropped, expected, "{rest}");
    }
}

/// Daily bars of one symbol: price and volume of each.
fn priced(bars: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::from("timestamp,open,high,low,close,volume\n");
    for (at, (price, volume)) in bars.into_iter().enumerate() {
        let time = format_ms(START + at as i64 * DAY);
        text.push_str(&format!("{time},{price},{price},{price},{price},{volume}\n"));
    }
    text
}

#[test]
fn suspected_splits_are_reported_with_their_line_and_never_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let bars = |at: usize| if at < 20 { (400.0, 1_000.0) } else { (100.5, 3_500.0) };
    let split = file(dir.path(), "SPLIT.csv", priced((0..40).map(bars)));
    let loaded = load_all(std::slice::from_ref(&split)).unwrap();
    assert_eq!(loaded.report.count(IssueKind::SuspectedSplit), 1);
    assert_eq!(loaded.report.symbols[0].suspected_splits, 1);
    assert_eq!(&loaded.universe.symbols[0].close[18..22], [400.0, 400.0, 100.5, 100.5]);
    let line = loaded.report.remarks().into_iter().find(|line| line.contains("suspected splits")).unwrap();
    assert!(line.ends_with("SPLIT.csv:22 SPLIT 2024-01-21"), "{line}");
    assert!(loaded.report.to_string().contains("SPLIT.csv:22"), "{}", loaded.report);
    let json = serde_json::to_value(&loaded.report).unwrap();
    assert_eq!(json["issues"][0]["kind"], "suspected_split");
    assert!(!loaded.report.has_losses(), "nothing was lost");
    // It is the bars as they are in the file that are looked at, with their lines, also where longer ones are built.
    let options = LoadOptions { resample: Some(7 * DAY), ..LoadOptions::default() };
    let weekly = load(&[split], &options).unwrap();
    assert_eq!(weekly.report.count(IssueKind::SuspectedSplit), 1);
    assert_eq!(weekly.report.symbols[0].suspected_splits, 1);
    // The same move without volume, and one in which volume fell with the price.
    for (before, after) in [(0.0, 0.0), (1_000.0, 250.0)] {
        let bars = |at: usize| if at < 20 { (400.0, before) } else { (100.5, after) };
        let other = file(dir.path(), "OTHER.csv", priced((0..40).map(bars)));
        assert_eq!(load_all(&[other]).unwrap().report.count(IssueKind::SuspectedSplit), 0);
    }
}

#[test]
fn wild_first_bars_are_reported_once_a_symbol() {
    let dir = tempfile::tempdir().unwrap();
    let listed = |at: usize| (if at < 3 { 0.5 } else { 4.0 }, 7.0);
    let path = file(dir.path(), "NEW.csv", priced((0..20).map(listed)));
    let loaded = load_all(std::slice::from_ref(&path)).unwrap();
    assert_eq!(loaded.report.count(IssueKind::ListingJump), 1);
    assert!(loaded.report.symbols[0].listing_jump);
    assert!(
        loaded.report.remarks()[0].ends_with("NEW.csv:5 NEW 2024-01-04"),
        "{:?}",
        loaded.report.remarks()
    );
    // After a date asked for, the first bars loaded are not the first of the symbol.
    let options = LoadOptions { from_ms: Some(START + 2 * DAY), ..LoadOptions::default() };
    assert_eq!(load(&[path], &options).unwrap().report.count(IssueKind::ListingJump), 0);
    let later = |at: usize| (if at < 10 { 0.5 } else { 4.0 }, 7.0);
    let path = file(dir.path(), "OLD.csv", priced((0..20).map(later)));
    assert_eq!(load_all(&[path]).unwrap().report.count(IssueKind::ListingJump), 0);
}

#[test]
fn a_last_bar_in_the_future_gets_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let daily = file(dir.path(), "daily.csv", rows("D", every(DAY, 0, 3), 0.0));
    let hourly = file(dir.path(), "hourly.csv", rows("H", every(60 * MINUTE, 0, 49), 0.0));
    let other = file(dir.path(), "other.csv", rows("I", every(60 * MINUTE, 0, 49), 0.0));
    let hints = |path: &[&PathBuf], now_ms: i64| {
        let options = LoadOptions { now_ms: Some(now_ms), ..LoadOptions::default() };
        let paths: Vec<PathBuf> = path.iter().map(|path| path.to_path_buf()).collect();
        let remarks = load(&paths, &options).unwrap().report.remarks();
        remarks.into_iter().filter(|line| line.contains("in the future")).collect::<Vec<_>>()
    };
    let last = START + 2 * DAY;
    assert!(hints(&[&hourly], last).is_empty());
    let hint = &hints(&[&hourly], last - 1)[0];
    for part in ["H: ", "2024-01-03T00:00:00Z", "hint:", "--timezone"] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    assert!(hints(&[&hourly, &other], last - 1)[0].starts_with("H and 1 more: "));
    // It is already that day in the east.
    assert!(hints(&[&daily], last - 14 * 60 * MINUTE).is_empty());
    assert_eq!(hints(&[&daily], last - 14 * 60 * MINUTE - 1).len(), 1);
    // Without a time given it is now.
    let far = file(dir.path(), "far.csv", rows("F", every(DAY, 365_000 * DAY, 3), 0.0));
    assert!(load_all(&[far]).unwrap().report.remarks().iter().any(|line| line.contains("in the future")));
    assert!(load_all(&[daily]).unwrap().report.remarks().iter().all(|line| !line.contains("future")));
}

#[test]
fn an_address_is_no_path() {
    let path = PathBuf::from("https://example.org/BTC.csv");
    let error = load(&[path], &LoadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("an address, which is not read") && error.contains("curl -L"), "{error}");
}
