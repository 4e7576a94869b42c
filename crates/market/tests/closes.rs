//! Files with closes alone: read as such, marked, written as they came, and never mistaken for bars with all prices.

use std::fs;
use std::path::{Path, PathBuf};

use tidemill_market::{LoadOptions, LoadedData, MarketError, load, write};

fn file(dir: &Path, name: &str, content: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn load_all(paths: &[PathBuf]) -> Result<LoadedData, MarketError> {
    load(paths, &LoadOptions::default())
}

#[test]
fn closes_alone_load_with_a_note_and_are_written_as_they_came() {
    let dir = tempfile::tempdir().unwrap();
    let csv = file(dir.path(), "FUND.csv", "Date;Price\n2024-01-02;10,5\n2024-01-03;11\n2024-01-04;9,25\n");
    let loaded = load_all(std::slice::from_ref(&csv)).unwrap();
    let bars = &loaded.universe.symbols[0];
    assert!(bars.closes_only);
    assert_eq!((bars.symbol.as_str(), &bars.close[..]), ("FUND", &[10.5, 11.0, 9.25][..]));
    assert!(loaded.report.remarks().iter().any(|line| line.contains("closes alone")));
    for name in ["out.parquet", "out.csv"] {
        let out = dir.path().join(name);
        write(&loaded.universe, &out).unwrap();
        let again = load_all(std::slice::from_ref(&out)).unwrap();
        assert_eq!(again.universe, loaded.universe, "{name}");
        assert_eq!(again.universe.fingerprint(), loaded.universe.fingerprint());
    }
    let text = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    assert!(text.starts_with("symbol,timestamp,close,volume\n"), "{text}");
}

#[test]
fn flat_bars_are_other_data_than_closes_alone() {
    let dir = tempfile::tempdir().unwrap();
    let closes = file(dir.path(), "X.csv", "date,close,volume\n2024-01-02,10,1\n2024-01-03,11,2\n");
    fs::create_dir(dir.path().join("flat")).unwrap();
    let flat = "date,open,high,low,close,volume\n2024-01-02,10,10,10,10,1\n2024-01-03,11,11,11,11,2\n";
    let flat = file(&dir.path().join("flat"), "X.csv", flat);
    let (closes, flat) = (load_all(&[closes]).unwrap().universe, load_all(&[flat]).unwrap().universe);
    assert_eq!(closes.symbols[0].open, flat.symbols[0].open);
    assert!(!flat.symbols[0].closes_only);
    assert_ne!(closes.fingerprint(), flat.fingerprint());
}

#[test]
fn resampled_closes_stay_closes_and_do_not_mix_with_all_prices_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..4).map(|hour| format!("2024-01-02T0{hour}:00Z,{}\n", hour + 1)).collect();
    let closes = file(dir.path(), "A.csv", &format!("time,close\n{rows}"));
    let full = file(dir.path(), "B.csv", "time,open,high,low,close,volume\n2024-01-02,1,2,1,2,9\n");
    let options = LoadOptions { resample: Some(7_200_000), ..LoadOptions::default() };
    let resampled = load(std::slice::from_ref(&closes), &options).unwrap().universe;
    assert!(resampled.symbols[0].closes_only);
    assert_eq!(resampled.symbols[0].close, [2.0, 4.0]);
    let both = load_all(&[closes, full]).unwrap().universe;
    let out = dir.path().join("both.parquet");
    let error = write(&both, &out).unwrap_err();
    assert!(matches!(&error, MarketError::WriteMixed { symbol, .. } if symbol == "A"), "{error}");
    assert!(!out.exists());
}

#[test]
fn some_but_not_all_prices_and_numbers_without_a_name_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("two.csv", "date,open,close\n2024-01-02,1,2\n2024-01-03,1,2\n"),
        ("bare.csv", "2024-01-02,10\n2024-01-03,11\n"),
        ("value.csv", "date,value\n2024-01-02,10\n2024-01-03,11\n"),
    ] {
        let path = file(dir.path(), name, text);
        assert!(matches!(load_all(&[path]), Err(MarketError::Columns { .. })), "{name}");
    }
}
