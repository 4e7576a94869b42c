//! Real market data, where a checkout has it: every family loads, back-tests and sweeps.

use crate::support::{Place, shared_data};

#[test]
fn every_family_loads_backtests_and_sweeps() {
    let Some(dir) = shared_data() else { return };
    let place = Place::new();
    for (file, symbols, year_days, trades) in [
        ("awkward_us_equities_1d.parquet", 55, 255.0, true),
        ("crypto_ada_15m_2024_derived.parquet", 1, 365.0, true),
        ("crypto_btc_1m_2026_03_05.parquet", 1, 365.0, true),
        ("crypto_btc_eth_15m_2023.parquet", 2, 365.0, true),
        ("crypto_majors_5m_2024.parquet", 4, 365.0, true),
        ("crypto_universe136_1h.parquet", 136, 365.0, true),
        ("fx_eurusd_ask_1h_2017.parquet", 1, 312.0, true),
        ("us_sp500_1d_2017_2021.parquet", 504, 252.0, true),
        ("csv/awkward_nifty50_raw.csv", 1, 244.0, true),
        ("csv/awkward_us_equities_raw_2015.csv", 47, 252.0, false),
        ("csv/btcusdt_15m_2023q1.csv", 1, 365.0, true),
    ] {
        let path = dir.join(file);
        let path = path.to_str().unwrap();
        if !dir.join(file).is_file() {
            tidemill_skip::skipped(format!("{file} is not there"));
            continue;
        }
        let said = place.run(&["backtest", "ema-cross", "--data", path, "--json"]);
        assert_eq!(said.code, Some(0), "{file}: {}", said.stderr);
        let answer = said.json();
        assert_eq!(answer["segments"].as_array().unwrap().len(), symbols, "{file}");
        assert_eq!(answer["year_days"], year_days, "{file}");
        assert_eq!(!answer["trades"].as_array().unwrap().is_empty(), trades, "{file}");
        assert_eq!(file.contains("awkward"), said.stderr.contains("dropped"), "{file}: {}", said.stderr);

        let said = place.run(&[
            "sweep",
            "ema-cross",
            "--data",
            path,
            "--trials",
            "20",
            "--objective",
            "trades",
            "--json",
        ]);
        assert_eq!(said.code, Some(0), "{file}: {}", said.stderr);
        assert_eq!(said.json()["trials"], 20, "{file}");
    }
}

#[test]
fn kernels_have_the_bits_of_the_cpu_on_real_bars() {
    let Some(dir) = shared_data() else { return };
    let data = dir.join("crypto_ada_15m_2024_derived.parquet");
    if !data.is_file() {
        tidemill_skip::skipped(format_args!("{} is not there", data.display()));
        return;
    }
    let place = Place::new();
    let data = data.to_str().unwrap();
    let said = place.run(&[
        "parity",
        "seller-exhaustion",
        "--data",
        data,
        "--trials",
        "1000",
        "--device",
        "emulated",
        "--json",
    ]);
    if said.stderr.contains("C++ compiler") {
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", said.stderr.trim());
        return;
    }
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let answer = said.json();
    assert_eq!(answer["different"], 0, "{}", answer["first"]);
    let rows = answer["rows"].as_array().unwrap();
    let real: Vec<_> = rows.iter().filter(|row| row["data"].as_str().unwrap().contains("ada")).collect();
    assert!(!real.is_empty());
    for row in real {
        assert!(row["trials"].as_u64().unwrap() >= 24 && row["trades"].as_u64().unwrap() > 0, "{row}");
    }
}
