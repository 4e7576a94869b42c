//! The same bars as each source writes them have the fingerprint of their plain Parquet.
//!
//! `reference/source_files.py` wrote the files of pandas, polars, DuckDB and yfinance; the others are written here in the layout
//! of their source.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tidemill_market::timestamp::format_ms;
use tidemill_market::{Bars, LoadOptions, Universe, load, write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const HOUR_MS: i64 = 3_600_000;
/// 2024-03-30T00:00:00Z, the day before clocks change in Europe.
const FIRST_MS: i64 = 1_711_756_800_000;
const N_BARS: usize = 60;

/// The bars that `reference/source_files.py` writes.
fn bars(symbol: &str) -> Bars {
    let base = |bar: usize| 100.0 + (bar * 37 % 11) as f64 / 7.0;
    let column = |of: &dyn Fn(usize) -> f64| (0..N_BARS).map(of).collect::<Vec<f64>>();
    Bars {
        symbol: symbol.into(),
        timeframe_ms: HOUR_MS,
        ts_ms: (0..N_BARS as i64).map(|bar| FIRST_MS + bar * HOUR_MS).collect(),
        open: column(&base),
        high: column(&|bar| base(bar).max(base(bar + 1)) + 0.25),
        low: column(&|bar| base(bar).min(base(bar + 1)) - 0.25),
        close: column(&|bar| base(bar + 1)),
        volume: column(&|bar| (bar * bar % 97 + 1) as f64),
        ..Bars::default()
    }
}

/// The same with further columns that have one value throughout.
fn with_extra(mut bars: Bars, extra: &[(&str, f64)]) -> Bars {
    bars.extra = extra.iter().map(|(name, value)| (name.to_string(), vec![*value; N_BARS])).collect();
    bars
}

/// Loads a source and compares it with the plain Parquet of these bars, written and read again.
fn assert_same(paths: &[PathBuf], options: &LoadOptions, symbols: Vec<Bars>) {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain.parquet");
    let universe = Universe { symbols };
    write(&universe, &plain).unwrap();
    let plain = load(&[plain], &LoadOptions::default()).unwrap().universe;
    assert_eq!(plain.fingerprint(), universe.fingerprint(), "plain Parquet keeps every bit");
    let loaded = load(paths, options).unwrap_or_else(|error| panic!("{paths:?}: {error}"));
    assert_eq!(loaded.universe, universe, "{paths:?}");
    assert_eq!(loaded.universe.fingerprint(), plain.fingerprint(), "{paths:?}");
    assert!(!loaded.report.has_losses(), "{}", loaded.report);
}

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn named(symbol: &str) -> LoadOptions {
    LoadOptions { name: Some(symbol.into()), ..LoadOptions::default() }
}

#[test]
fn pandas_polars_and_duckdb() {
    let reference = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference"));
    for name in [
        "pandas.parquet",
        "pandas.csv",
        "pandas.feather",
        "polars_bars.parquet",
        "polars_bars.csv",
        "polars_bars.arrow",
        "duckdb.parquet",
        "duckdb.csv",
    ] {
        assert_same(&[reference.join(name)], &named("X"), vec![bars("X")]);
    }
    for name in ["yfinance.csv", "yfinance.parquet"] {
        let expected = vec![bars("AAPL"), bars("MSFT")];
        assert_same(&[reference.join(name)], &LoadOptions::default(), expected);
    }
}

/// The clock of a broker in Athens: two hours ahead of UTC, three from 2024-03-31T01:00Z on.
fn athens(ts_ms: i64) -> String {
    let summer_ms = 1_711_846_800_000;
    format_ms(ts_ms + if ts_ms < summer_ms { 2 } else { 3 } * HOUR_MS)
}

#[test]
fn metatrader() {
    let bars = bars("EURUSD");
    let mut five =
        String::from("<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\r\n");
    let mut four = String::new();
    for at in 0..N_BARS {
        let local = athens(bars.ts_ms[at]);
        let (date, clock) = (local[..10].replace('-', "."), &local[11..19]);
        let (open, high, low) = (bars.open[at], bars.high[at], bars.low[at]);
        let (close, volume) = (bars.close[at], bars.volume[at]);
        five += &format!("{date}\t{clock}\t{open}\t{high}\t{low}\t{close}\t{volume}\t0\t3\r\n");
        four += &format!("{date},{},{open},{high},{low},{close},{volume}\r\n", &clock[..5]);
    }
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions { timezone: Some("Europe/Athens".into()), ..named("EURUSD") };
    let expected = with_extra(bars.clone(), &[("vol", 0.0), ("spread", 3.0)]);
    // MetaTrader 5 writes UTF-16 with a byte order mark, 4 plain text without a header.
    let utf16: Vec<u8> = format!("\u{feff}{five}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_same(&[file(dir.path(), "EURUSD_H1.csv", utf16)], &options, vec![expected.clone()]);
    assert_same(&[file(dir.path(), "five.csv", five)], &options, vec![expected]);
    assert_same(&[file(dir.path(), "four.csv", four)], &options, vec![bars]);
}

#[test]
fn tradingview() {
    let bars = bars("BTCUSDT");
    let dir = tempfile::tempdir().unwrap();
    let options = LoadOptions { name_from: Some("_([A-Z]+),".into()), ..LoadOptions::default() };
    let expected = with_extra(bars.clone(), &[("ma", 7.5)]);
    for is_epoch in [true, false] {
        let mut text = String::from("time,open,high,low,close,Volume,MA\n");
        for at in 0..N_BARS {
            let (open, high, low) = (bars.open[at], bars.high[at], bars.low[at]);
            let (close, volume) = (bars.close[at], bars.volume[at]);
            let time = match is_epoch {
                true => (bars.ts_ms[at] / 1_000).to_string(),
                false => format_ms(bars.ts_ms[at]),
            };
            text += &format!("{time},{open},{high},{low},{close},{volume},7.5\n");
        }
        let path = file(dir.path(), "BINANCE_BTCUSDT, 60.csv", text);
        assert_same(&[path], &options, vec![expected.clone()]);
    }
}

#[test]
fn binance() {
    let bars = bars("BTCUSDT");
    let mut expected = bars.clone();
    let constant = |value: f64| vec![value; N_BARS];
    let ends = bars.ts_ms.iter().map(|ts_ms| (ts_ms + HOUR_MS - 1) as f64).collect();
    expected.extra = vec![
        ("close_time".into(), ends),
        ("quote_volume".into(), constant(9.5)),
        ("trades".into(), constant(3.0)),
        ("taker_buy_volume".into(), constant(4.0)),
        ("taker_buy_quote_volume".into(), constant(5.5)),
        ("ignore".into(), constant(0.0)),
    ];
    // A zip for each day, a file for the last one.
    let dir = tempfile::tempdir().unwrap();
    let rows = |range: std::ops::Range<usize>| -> String {
        range
            .map(|at| {
                let (ts_ms, open, high) = (bars.ts_ms[at], bars.open[at], bars.high[at]);
                let (low, close, volume) = (bars.low[at], bars.close[at], bars.volume[at]);
                let end = ts_ms + HOUR_MS - 1;
                format!("{ts_ms},{open},{high},{low},{close},{volume},{end},9.5,3,4,5.5,0\n")
            })
            .collect()
    };
    for (day, range) in [(30, 0..24), (31, 24..48)] {
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stem = format!("BTCUSDT-1h-2024-03-{day}");
        zip.start_file(format!("{stem}.csv"), SimpleFileOptions::default()).unwrap();
        zip.write_all(rows(range).as_bytes()).unwrap();
        file(dir.path(), &format!("{stem}.zip"), zip.finish().unwrap().into_inner());
    }
    file(dir.path(), "BTCUSDT-1h-2024-04-01.csv", rows(48..60));
    assert_same(&[dir.path().to_path_buf()], &LoadOptions::default(), vec![expected]);
}
