//! Real market data, where a checkout has it beside itself; skipped with the reason where it has not.

use std::path::PathBuf;

use tidemill_market::report::IssueKind;
use tidemill_market::{Bars, LoadOptions, LoadedData, load};

/// A file of the shared data, or `None` with a printed reason.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if !path.exists() {
        tidemill_skip::skipped(format!("shared data {name} is not there"));
        return None;
    }
    Some(path)
}

fn load_one(path: PathBuf) -> LoadedData {
    load(&[path], &LoadOptions::default()).unwrap()
}

fn assert_clean(bars: &Bars) {
    assert!(bars.timeframe_ms > 0);
    for row in 0..bars.len() {
        assert!(row == 0 || bars.ts_ms[row - 1] < bars.ts_ms[row]);
        assert!(bars.low[row] > 0.0 && bars.high[row].is_finite());
        assert!(bars.low[row] <= bars.open[row].min(bars.close[row]));
        assert!(bars.high[row] >= bars.open[row].max(bars.close[row]));
        assert!(bars.volume[row] >= 0.0 && bars.volume[row].is_finite());
    }
}

#[test]
fn clean_files_load_without_loss() {
    for (name, rows, n_symbols, timeframe_minutes) in [
        ("crypto_btc_eth_15m_2023.parquet", 69_988, 2, 15),
        ("crypto_majors_5m_2024.parquet", 385_920, 4, 5),
        ("crypto_ada_15m_2024_derived.parquet", 32_160, 1, 15),
        ("crypto_btc_1m_2026_03_05.parquet", 132_480, 1, 1),
        ("crypto_universe136_1h.parquet", 755_566, 136, 60),
        ("us_sp500_1d_2017_2021.parquet", 538_838, 504, 1_440),
        ("fx_eurusd_ask_1h_2017.parquet", 6_225, 1, 60),
        ("csv/btcusdt_15m_2023q1.csv", 8_635, 1, 15),
    ] {
        let Some(path) = shared(name) else { continue };
        let loaded = load_one(path);
        assert!(!loaded.report.has_losses(), "{name}: {}", loaded.report);
        assert_eq!(loaded.universe.n_bars(), rows, "{name}");
        assert_eq!(loaded.universe.symbols.len(), n_symbols, "{name}");
        assert!(loaded.universe.symbols.is_sorted_by(|a, b| a.symbol < b.symbol));
        for bars in &loaded.universe.symbols {
            assert_clean(bars);
            assert_eq!(bars.timeframe_ms, timeframe_minutes * 60_000, "{name} {}", bars.symbol);
        }
    }
}

#[test]
fn the_exchange_halt_is_one_gap_of_five_bars() {
    let Some(path) = shared("crypto_btc_eth_15m_2023.parquet") else { return };
    let loaded = load_one(path);
    let symbol = &loaded.report.symbols[0];
    assert_eq!((symbol.symbol.as_str(), symbol.gaps, symbol.missing_bars), ("BTCUSDT", 1, 5));
    assert_eq!((symbol.zero_volume, symbol.longest_gap_ms), (5, 90 * 60_000));
}

#[test]
fn currencies_have_a_gap_every_weekend() {
    let Some(path) = shared("fx_eurusd_ask_1h_2017.parquet") else { return };
    assert_eq!(load_one(path).report.symbols[0].gaps, 52);
}

#[test]
fn the_awkward_parquet_is_repaired_as_counted() {
    let Some(path) = shared("awkward_us_equities_1d.parquet") else { return };
    let loaded = load_one(path);
    let report = &loaded.report;
    assert_eq!(report.files[0].rows, 44_506);
    assert_eq!(report.count(IssueKind::NoTime), 1);
    assert_eq!(report.count(IssueKind::Duplicate), 44_505 - 22_749);
    assert_eq!(report.count(IssueKind::Conflict), 2_646);
    assert!(report.count(IssueKind::Unsorted) > 20_000);
    for symbol in ["NAN", "TRUE", "INF", "ON", "E", "T", "F", "ALL"] {
        assert!(loaded.universe.symbols.iter().any(|bars| bars.symbol == symbol), "{symbol} is a ticker");
    }
    assert_eq!(loaded.universe.symbols.len(), 55);
    assert_eq!(report.refused.len(), 1);
    let dropped = report.count(IssueKind::NotPositive) + report.count(IssueKind::NotANumber);
    assert_eq!(loaded.universe.n_bars() as u64, 22_749 - dropped);
    loaded.universe.symbols.iter().for_each(assert_clean);
}

#[test]
fn a_header_in_the_middle_is_found_and_reported() {
    let Some(path) = shared("csv/awkward_us_equities_raw_2015.csv") else { return };
    let loaded = load_one(path);
    let report = &loaded.report;
    assert_eq!(report.count(IssueKind::HeaderLine), 1);
    assert_eq!(report.issues[0].first[0].row, 466);
    assert_eq!(report.files[0].rows, 1_021);
    assert_eq!(loaded.universe.symbols.len(), 47);
    assert!(loaded.universe.symbols.iter().all(|bars| bars.extra[0].0 == "adj_close"));
    loaded.universe.symbols.iter().for_each(assert_clean);
}

#[test]
fn two_digit_years_and_null_cells_are_understood() {
    let Some(path) = shared("csv/awkward_nifty50_raw.csv") else { return };
    let text = std::fs::read_to_string(&path).unwrap();
    let n_null = text.lines().filter(|line| line.contains("null")).count();
    let loaded = load_one(path);
    let bars = &loaded.universe.symbols[0];
    assert_eq!(loaded.report.files[0].rows, 3_037);
    assert_eq!(loaded.report.count(IssueKind::NotANumber), n_null as u64);
    assert_eq!(bars.len() + n_null, 3_037);
    assert_eq!(tidemill_market::timestamp::format_ms(bars.ts_ms[0]), "2008-01-02T00:00:00Z");
    assert_eq!(bars.extra[0].0, "adj_close");
    assert_clean(bars);
}

#[test]
fn five_minutes_resampled_are_the_published_quarter_hours() {
    let (Some(source), Some(target)) =
        (shared("crypto_majors_5m_2024.parquet"), shared("crypto_ada_15m_2024_derived.parquet"))
    else {
        return;
    };
    let options = LoadOptions {
        symbols: Some(vec!["ADAUSDT".into()]),
        resample: Some(15 * 60_000),
        ..LoadOptions::default()
    };
    let resampled = load(&[source], &options).unwrap();
    let expected = load_one(target);
    assert_eq!(resampled.report.count(IssueKind::PartialBucket), 0);
    assert_eq!(resampled.universe.symbols[0].len(), 32_160);
    let (ours, theirs) = (&resampled.universe.symbols[0], &expected.universe.symbols[0]);
    assert!(ours.ts_ms == theirs.ts_ms);
    for (name, ours, theirs) in [
        ("open", &ours.open, &theirs.open),
        ("high", &ours.high, &theirs.high),
        ("low", &ours.low, &theirs.low),
        ("close", &ours.close, &theirs.close),
        ("volume", &ours.volume, &theirs.volume),
    ] {
        let differing = (0..ours.len()).find(|&row| ours[row] != theirs[row]);
        assert_eq!(differing.map(|row| (row, ours[row], theirs[row])), None, "{name}");
    }
}
