//! Folders as people have them: dumps cut by date, foreign files in between, names that have to be told.

use std::fs;
use std::path::{Path, PathBuf};

use tidemill_market::report::IssueKind;
use tidemill_market::{LoadOptions, LoadedData, MarketError, load};

const HOUR: i64 = 3_600_000;
/// 2017-08-01.
const START: i64 = 1_501_545_600_000;

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// Rows of a kline dump for these hours, without header, as Binance writes them.
fn klines(hours: std::ops::Range<i64>) -> String {
    let row = |hour: i64| {
        let (open_ms, price) = (START + hour * HOUR, 100.0 + (hour % 7) as f64);
        let end = open_ms + HOUR - 1;
        format!("{open_ms},{price},{},{},{price},5,{end},500,3,2,200,0\n", price + 1.0, price - 1.0)
    };
    hours.map(row).collect()
}

fn symbols(loaded: &LoadedData) -> Vec<&str> {
    loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect()
}

#[test]
fn a_folder_survives_a_foreign_file_and_strict_refuses_it() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "BTC.csv", klines(0..30));
    let foreign = file(dir.path(), "A-list.csv", "ticker,sector\nBTC,coins\nETH,coins\n");
    file(dir.path(), "broken.parquet", "PAR1 nothing PAR1");
    let folder = [dir.path().to_path_buf()];
    let loaded = load(&folder, &LoadOptions::default()).unwrap();
    assert_eq!(symbols(&loaded), ["BTC"]);
    let left_out: Vec<&str> = loaded.report.unreadable.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(left_out.len(), 2);
    assert!(left_out[0].ends_with("A-list.csv") && left_out[1].ends_with("broken.parquet"), "{left_out:?}");
    assert!(loaded.report.has_losses());
    for said in [loaded.report.to_string(), loaded.report.remarks().join("\n")] {
        assert!(said.contains("left out") && said.contains("A-list.csv"), "{said}");
    }
    let strict = LoadOptions { strict: true, ..LoadOptions::default() };
    assert!(load(&folder, &strict).unwrap_err().to_string().contains("A-list.csv"));
    // A file that was given by itself is the error, beside a folder too.
    let message =
        load(&[folder[0].clone(), foreign.clone()], &LoadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("A-list.csv"), "{message}");
    // A folder in which nothing can be read is an error.
    fs::remove_file(dir.path().join("BTC.csv")).unwrap();
    assert!(load(&folder, &LoadOptions::default()).is_err());
}

#[test]
fn many_files_left_out_are_counted_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "BTC.csv", klines(0..30));
    for at in 0..14 {
        file(dir.path(), &format!("bad{at:02}.csv"), "");
    }
    let report = load(&[dir.path().to_path_buf()], &LoadOptions::default()).unwrap().report;
    assert_eq!(report.unreadable.len(), 14);
    let said = report.to_string();
    assert!(said.contains("bad09.csv") && !said.contains("bad10.csv"), "{said}");
    assert!(said.contains("left out 4 more file(s)"), "{said}");
}

#[test]
fn dumps_cut_by_date_are_one_symbol() {
    let dir = tempfile::tempdir().unwrap();
    let whole = file(dir.path(), "whole/BTCUSDT.csv", klines(0..100));
    let folder = dir.path().join("dumps");
    file(&folder, "BTCUSDT-1h-2017-08.csv", klines(0..40));
    file(&folder, "BTCUSDT-1h-2017-09.csv", klines(40..70));
    file(&folder, "BTCUSDT-1h-2017-10.csv", klines(70..100));
    let expected = load(&[whole], &LoadOptions::default()).unwrap();
    let loaded = load(std::slice::from_ref(&folder), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.universe, expected.universe);
    assert_eq!(loaded.universe.fingerprint(), expected.universe.fingerprint());
    let joined = &loaded.report.joined[0];
    assert_eq!((joined.files, joined.overlaps.len(), joined.holes.len()), (3, 0, 0));
    assert!(loaded.report.remarks().contains(&"BTCUSDT: 3 files joined end to end".to_string()));
    assert!(loaded.report.files.iter().all(|file| file.symbols == ["BTCUSDT"]));
    assert!(expected.report.joined.is_empty());

    // Days that repeat the month's end agree with it: an overlap. A day that is missing is a hole.
    file(&folder, "BTCUSDT-1h-2017-10-05.csv", klines(95..104));
    file(&folder, "BTCUSDT-1h-2017-10-07.csv", klines(128..140));
    let loaded = load(std::slice::from_ref(&folder), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.universe.n_bars(), 116);
    assert_eq!(loaded.report.count(IssueKind::Duplicate), 5);
    let joined = &loaded.report.joined[0];
    let [overlap] = &joined.overlaps[..] else { panic!("{joined:?}") };
    assert_eq!((overlap.from_ms, overlap.to_ms, overlap.bars), (START + 95 * HOUR, START + 99 * HOUR, 5));
    let [hole] = &joined.holes[..] else { panic!("{joined:?}") };
    assert_eq!((hole.from_ms, hole.to_ms, hole.bars), (START + 103 * HOUR, START + 128 * HOUR, 24));
    let said = loaded.report.to_string();
    for part in
        ["5 files joined", "1 overlap, first of", "1 hole, first between", "2017-10-07.csv: 24 bar(s)"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }

    // What disagrees is no part of the same history.
    file(&folder, "BTCUSDT-1h-2017-10-05.csv", klines(95..104).replace(",5,", ",6,"));
    let error = load(&[folder], &LoadOptions::default()).unwrap_err();
    assert!(matches!(error, MarketError::Contradiction { count: 5, .. }), "{error}");
}

#[test]
fn names_are_given_or_found_by_a_pattern() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "spot_BTC_a.csv", klines(0..30));
    file(dir.path(), "spot_BTC_b.csv", klines(30..60));
    file(dir.path(), "spot_ETH_a.csv", klines(0..30));
    let folder = [dir.path().to_path_buf()];
    let load_with = |name: Option<&str>, name_from: Option<&str>| {
        let [name, name_from] = [name, name_from].map(|text| text.map(str::to_string));
        load(&folder, &LoadOptions { name, name_from, ..LoadOptions::default() })
    };
    assert_eq!(symbols(&load_with(None, None).unwrap()), ["spot_BTC_a", "spot_BTC_b", "spot_ETH_a"]);
    let by_pattern = load_with(None, Some("spot_([A-Z]+)_")).unwrap();
    assert_eq!(symbols(&by_pattern), ["BTC", "ETH"]);
    assert_eq!(by_pattern.universe.symbols[0].len(), 60);
    let only = load_with(None, Some("BTC")).unwrap();
    assert_eq!(symbols(&only), ["BTC"], "a file of a folder without a match is left out");
    assert!(only.report.unreadable[0].reason.contains("--name-from finds no symbol"));
    assert_eq!(symbols(&load_with(Some("MINE"), None).unwrap()), ["MINE"]);
    assert!(matches!(load_with(None, Some("(")), Err(MarketError::NamePattern { .. })));
    assert!(load_with(None, Some("XRP")).unwrap_err().to_string().contains("finds no symbol"));

    let own = file(dir.path(), "own/x.csv", "symbol,time,open,high,low,close\nA,2024-01-01,1,1,1,1\n");
    let options = LoadOptions { name: Some("B".into()), ..LoadOptions::default() };
    assert!(matches!(load(std::slice::from_ref(&own), &options), Err(MarketError::NameUnused)));
    let options = LoadOptions { name_from: Some("Z".into()), ..LoadOptions::default() };
    assert_eq!(symbols(&load(&[own], &options).unwrap()), ["A"], "its own symbols need no name");
}

#[test]
fn partitions_name_the_symbol() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("lake");
    file(&folder, "symbol=BTC%2FUSDT/year=2017/month=08/part-0.csv", klines(0..30));
    file(&folder, "symbol=BTC%2FUSDT/year=2017/month=09/part-0.csv", klines(30..60));
    file(&folder, "symbol=ETH/year=2017/part-0.csv", klines(0..30));
    file(&folder, "symbol=ETH/_SUCCESS", "");
    file(&folder, "notes/other.csv", "a folder that is no partition is not looked into");
    let loaded = load(std::slice::from_ref(&folder), &LoadOptions::default()).unwrap();
    assert_eq!(symbols(&loaded), ["BTC/USDT", "ETH"]);
    assert_eq!(loaded.universe.symbols[0].len(), 60);
    assert!(loaded.report.unreadable.is_empty());
    let named = LoadOptions { name_from: Some("symbol=([A-Z]+)".into()), ..LoadOptions::default() };
    assert_eq!(symbols(&load(std::slice::from_ref(&folder), &named).unwrap()), ["BTC", "ETH"], "flags win");
    file(&folder, &format!("{}x.csv", "a=b/".repeat(9)), klines(0..3));
    assert!(matches!(load(&[folder], &LoadOptions::default()), Err(MarketError::PartitionDepth { .. })));
}

/// Prices of two instruments on each day, as yfinance has them; the second was not traded on the first two days.
fn side_by_side(lines: [&str; 3], columns: [[usize; 2]; 6]) -> String {
    let mut text = lines.join("\n");
    for day in 1..9 {
        let mut cells = vec![String::new(); 13];
        cells[0] = format!("2024-01-0{day}");
        // close, high, low, open, volume, adjusted close
        for (offset, places) in [0.0, 1.0, -1.0, 0.5, 90.0, -0.5].into_iter().zip(columns) {
            for (which, at) in places.into_iter().enumerate() {
                let is_listed = which == 0 || day > 2;
                let price = 10.0 * (which + 1) as f64 + day as f64 + offset;
                cells[at] = if is_listed { price.to_string() } else { String::new() };
            }
        }
        text += &format!("\n{}", cells.join(","));
    }
    text
}

#[test]
fn instruments_side_by_side_are_read_as_pandas_wrote_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut plain = String::from("symbol,date,open,high,low,close,adj_close,volume\n");
    for (which, symbol) in ["AAPL", "MSFT"].into_iter().enumerate() {
        for day in 1..9 {
            let price = 10.0 * (which + 1) as f64 + f64::from(day);
            if which == 0 || day > 2 {
                let (open, high, low) = (price + 0.5, price + 1.0, price - 1.0);
                let (adjusted, volume) = (price - 0.5, price + 90.0);
                plain +=
                    &format!("{symbol},2024-01-0{day},{open},{high},{low},{price},{adjusted},{volume}\n");
            }
        }
    }
    let expected = load(&[file(dir.path(), "plain.csv", plain)], &LoadOptions::default()).unwrap();
    let by_price = side_by_side(
        [
            "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume,Adj Close,Adj Close",
            "Ticker,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT",
            "Date,,,,,,,,,,,,",
        ],
        [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]],
    );
    let by_ticker = side_by_side(
        [
            "Ticker,MSFT,MSFT,MSFT,MSFT,MSFT,MSFT,AAPL,AAPL,AAPL,AAPL,AAPL,AAPL",
            "Price,Open,High,Low,Close,Adj Close,Volume,Open,High,Low,Close,Adj Close,Volume",
            "Date,,,,,,,,,,,,",
        ],
        [[10, 4], [8, 2], [9, 3], [7, 1], [12, 6], [11, 5]],
    );
    let mut paths = vec![file(dir.path(), "price.csv", by_price), file(dir.path(), "ticker.csv", by_ticker)];
    // What pandas' `to_parquet` writes for the same frame; `reference/side_by_side.py`.
    let reference = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"));
    paths.push(reference.join("side_by_side.parquet"));
    for path in paths {
        let loaded = load(std::slice::from_ref(&path), &LoadOptions::default()).unwrap();
        assert_eq!(loaded.universe, expected.universe, "{}", path.display());
        assert_eq!(loaded.universe.fingerprint(), expected.universe.fingerprint());
        let notes = loaded.report.files[0].notes.join("\n");
        assert!(notes.contains("2 instruments side by side"), "{notes}");
        assert!(notes.contains("2 row(s) without a price"), "{notes}");
        assert_eq!(loaded.report.issues, [], "{}", path.display());
    }
}

/// `reference/polars_files.py` wrote the files.
#[test]
fn an_arrow_file_of_polars_is_its_parquet() {
    let reference = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"));
    let fingerprint = |name: &str| {
        let options = LoadOptions { name: Some("X".into()), ..LoadOptions::default() };
        load(&[reference.join(name)], &options).unwrap().universe.fingerprint()
    };
    assert_eq!(fingerprint("polars.arrow"), fingerprint("polars.parquet"));
}
