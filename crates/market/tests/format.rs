//! Every layout a data vendor is known to use, and what becomes of each kind of dirt.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tidemill_market::report::IssueKind;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{Bars, LoadOptions, LoadedData, MarketError, Universe, load, synth, write};

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn load_text(content: impl AsRef<[u8]>, options: &LoadOptions) -> Result<LoadedData, MarketError> {
    let dir = tempfile::tempdir().unwrap();
    load(&[file(dir.path(), "EURUSD.csv", content)], options)
}

fn read(content: impl AsRef<[u8]>) -> LoadedData {
    load_text(content, &LoadOptions::default()).unwrap()
}

fn only(loaded: &LoadedData) -> &Bars {
    assert_eq!(loaded.universe.symbols.len(), 1);
    &loaded.universe.symbols[0]
}

fn error(content: impl AsRef<[u8]>) -> String {
    load_text(content, &LoadOptions::default()).unwrap_err().to_string()
}

/// Two bars, 09:30 and 09:31 on 2015-03-20, however they are written.
fn assert_two_bars(loaded: &LoadedData) {
    let bars = only(loaded);
    let times: Vec<String> = bars.ts_ms.iter().map(|&ts_ms| format_ms(ts_ms)).collect();
    assert_eq!(times, ["2015-03-20T09:30:00Z", "2015-03-20T09:31:00Z"]);
    assert_eq!((bars.open[0], bars.high[0], bars.low[0], bars.close[0]), (1.5, 1.75, 1.25, 1.625));
    assert_eq!((bars.close[1], bars.volume[0], bars.volume[1]), (1.5, 7.0, 9.0));
    assert_eq!(bars.timeframe_ms, 60_000);
    assert!(!loaded.report.has_losses(), "{}", loaded.report);
}

#[test]
fn the_usual_layouts_give_the_same_bars() {
    let layouts = [
        "timestamp,open,high,low,close,volume\n2015-03-20T09:30:00Z,1.5,1.75,1.25,1.625,7\n2015-03-20T09:31:00Z,1.625,1.75,1.25,1.5,9\n",
        "\u{feff}Date;Open;High;Low;Close;Vol\r\n20.03.2015 09:30;1,5;1,75;1,25;1,625;7\r\n20.03.2015 09:31;1,625;1,75;1,25;1,5;9\r\n",
        "2015.03.20,09:30,1.5,1.75,1.25,1.625,7\n2015.03.20,09:31,1.625,1.75,1.25,1.5,9\n",
        "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n2015.03.20\t09:30:00\t1.5\t1.75\t1.25\t1.625\t7\t0\t2\n2015.03.20\t09:31:00\t1.625\t1.75\t1.25\t1.5\t9\t0\t2\n",
        "20150320 093000;1.5;1.75;1.25;1.625;7\n20150320 093100;1.625;1.75;1.25;1.5;9\n",
        "<TICKER>,<DTYYYYMMDD>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>\nEURUSD,20150320,093000,1.5,1.75,1.25,1.625,7\nEURUSD,20150320,093100,1.625,1.75,1.25,1.5,9\n",
        "1426843800000,1.5,1.75,1.25,1.625,7,1426843859999,11,3,2,3,0\n1426843860000,1.625,1.75,1.25,1.5,9,1426843919999,14,4,2,3,0\n",
        "t,o,h,l,c,v\n1426843800,1.5,1.75,1.25,1.625,7\n1426843860,1.625,1.75,1.25,1.5,9\n",
        "unix,date,symbol,open,high,low,close,Volume EUR\n1426843800,2015-03-20 09:30:00,EURUSD,1.5,1.75,1.25,1.625,7\n1426843860,2015-03-20 09:31:00,EURUSD,1.625,1.75,1.25,1.5,9\n",
        "Gmt time,Open,High,Low,Close,Volume\n20.03.2015 09:30:00.000 GMT+0000,1.5,1.75,1.25,1.625,7\n20.03.2015 09:31:00.000 GMT+0000,1.625,1.75,1.25,1.5,9\n",
        "time|open|high|low|close|volume\n2015-03-20T11:30:00+02:00|1.5|1.75|1.25|1.625|7\n2015-03-20T11:31:00+02:00|1.625|1.75|1.25|1.5|9\n",
        "Date,Timestamp,Open,High,Low,Close,Volume\n20150320,09:30:00,1.5,1.75,1.25,1.625,7\n20150320,09:31:00,1.625,1.75,1.25,1.5,9\n",
        ",Close,Volume,Low,High,Open\n2015-03-20 09:30:00,1.625,7,1.25,1.75,1.5\n2015-03-20 09:31:00,1.5,9,1.25,1.75,1.625\n",
        "\"timestamp\",\"1. open\",\"2. high\",\"3. low\",\"4. close\",\"5. volume\"\n\"2015-03-20 09:30:00\",\"1.5\",\"1.75\",\"1.25\",\"1.625\",\"7\"\n\"2015-03-20 09:31:00\",\"1.625\",\"1.75\",\"1.25\",\"1.5\",\"9\"\n",
    ];
    for layout in layouts {
        let loaded =
            load_text(layout, &LoadOptions::default()).unwrap_or_else(|error| panic!("{layout}\n{error}"));
        assert_two_bars(&loaded);
    }
    let utf16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(layouts[3].encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert_two_bars(&read(utf16));
}

#[test]
fn gzip_is_unpacked_and_its_damage_is_an_error() {
    let text = "timestamp,open,high,low,close,volume\n2015-03-20T09:30:00Z,1.5,1.75,1.25,1.625,7\n2015-03-20T09:31:00Z,1.625,1.75,1.25,1.5,9\n";
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let loaded = load(&[file(dir.path(), "EURUSD.csv.gz", &packed)], &LoadOptions::default()).unwrap();
    assert_two_bars(&loaded);
    assert_eq!(only(&loaded).symbol, "EURUSD");
    let cut = load(&[file(dir.path(), "cut.csv.gz", &packed[..packed.len() / 2])], &LoadOptions::default());
    assert!(matches!(cut, Err(MarketError::Packed { .. })));
}

#[test]
fn further_numeric_columns_become_series_and_text_is_named() {
    let loaded = read(
        "time,open,high,low,close,RSI (14),note\n1426843800,1,2,1,2,55.5,hello\n1426843860,1,2,1,2,null,world\n",
    );
    let bars = only(&loaded);
    assert_eq!(bars.extra.len(), 1);
    assert_eq!((bars.extra[0].0.as_str(), bars.extra[0].1[0]), ("rsi_14", 55.5));
    assert!(bars.extra[0].1[1].is_nan());
    assert_eq!(loaded.report.count(IssueKind::NotAvailable), 1);
    assert_eq!(bars.volume, [0.0, 0.0]);
    let notes = loaded.report.files[0].notes.join("\n");
    assert!(notes.contains("note") && notes.contains("no volume column"), "{notes}");
}

#[test]
fn every_kind_of_dirt_is_counted_with_its_line() {
    let text = "time,open,high,low,close,volume
2024-01-01,10,11,9,10,1
2024-01-02,10,11,9,10,1
soon,10,11,9,10,1
2024-01-04,10,11,9,,1
2024-01-05,10,inf,9,10,1
2024-01-06,0,11,9,10,1
2024-01-07,10,11,-9,10,1
2024-01-08,10,11,9,10,-1
2024-01-09,10,11,9,10,null
2024-01-10,10,9,11,10,1
time,open,high,low,close,volume
2024-01-11,10,11,9,10,0
2024-01-03,10,11,9,10.5,1
2024-01-02,10,11,9,10.25,1
2024-01-02,10,11,9,10.75,2
short
";
    let loaded = read(text);
    let report = &loaded.report;
    let lines = |kind: IssueKind| -> Vec<u64> {
        let issue = report.issues.iter().find(|issue| issue.kind == kind);
        issue.map_or(Vec::new(), |issue| issue.first.iter().map(|place| place.row).collect())
    };
    assert_eq!(lines(IssueKind::HeaderLine), [12]);
    assert_eq!(lines(IssueKind::NoTime), [4, 17]);
    assert_eq!(lines(IssueKind::Unsorted), [14, 15]);
    assert_eq!(lines(IssueKind::Duplicate), [3, 15]);
    assert_eq!(lines(IssueKind::Conflict), [16]);
    assert_eq!(lines(IssueKind::NotANumber), [5, 6]);
    assert_eq!(lines(IssueKind::NotPositive), [7, 8]);
    assert_eq!(lines(IssueKind::BadVolume), [9, 10]);
    assert_eq!(lines(IssueKind::BadRange), [11]);
    assert_eq!(lines(IssueKind::ZeroVolume), [13]);
    let bars = only(&loaded);
    assert_eq!(bars.close, [10.0, 10.75, 10.5, 10.0, 10.0]);
    assert_eq!((bars.high[3], bars.low[3]), (11.0, 9.0));
    // The 4th to the 9th without the weekend in between.
    assert_eq!(report.symbols[0].missing_bars, 4);
    assert_eq!(report.symbols[0].dropped + bars.len(), report.symbols[0].rows);
    let shown = report.to_string();
    assert!(shown.contains("EURUSD.csv:11 EURUSD 2024-01-10") && shown.contains("widened: 1"), "{shown}");
    assert!(serde_json::to_string(report).unwrap().contains("\"bad_range\""));
}

#[test]
fn rows_without_header_may_start_with_a_symbol() {
    let rows = "AMZN,2015-03-30,371.87,376.12,371.55,374.59,1811800,374.59\nAMZN,2015-03-27,367.11,373.17,366.57,370.56,2603800,370.56\n";
    let loaded = read(rows);
    let bars = only(&loaded);
    assert_eq!((bars.symbol.as_str(), bars.volume[0], bars.close[1]), ("AMZN", 2_603_800.0, 374.59));
    assert_eq!(bars.extra[0].0, "column_8");
    // The same with the header in the middle: it names the columns of the whole file.
    let header = "symbol,date,open,high,low,close,volume,adj_close\n";
    let later = "ALL,2015-04-06,71.07,72.51,70.87,72.12,2402200,72.12\n";
    let loaded = read(format!("{rows}{header}{later}"));
    assert_eq!(loaded.universe.symbols.len(), 2);
    assert!(loaded.universe.symbols.iter().all(|bars| bars.extra[0].0 == "adj_close"));
    assert_eq!(loaded.report.issues[0].first[0].row, 3);
    assert!(loaded.report.files[0].notes[0].contains("line 3"), "{:?}", loaded.report.files[0].notes);
}

#[test]
fn a_stray_quote_costs_one_line() {
    let loaded =
        read("time,open,high,low,close\n2024-01-01,1,2,1,2\n2024-01-02,\"1,2,1,2\n2024-01-03,1,2,1,2\n");
    assert_eq!(only(&loaded).len(), 2);
    assert_eq!(loaded.report.count(IssueKind::NotANumber), 1);
}

#[test]
fn symbols_that_look_like_values_stay_text() {
    let mut text = String::from("symbol,date,open,high,low,close,volume\n");
    let names = ["NAN", "TRUE", "INF", "null", "E", "1", "NaN"];
    for name in names {
        text.push_str(&format!("{name},2024-01-01,1,2,1,2,3\n"));
    }
    text.push_str(",2024-01-01,1,2,1,2,3\n");
    let loaded = read(text);
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let found: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
    assert_eq!(found, sorted);
    assert_eq!(loaded.report.count(IssueKind::NoSymbol), 1);
}

#[test]
fn a_symbol_without_bars_is_refused_and_the_rest_loads() {
    let loaded = read(
        "symbol,date,open,high,low,close\nA,2024-01-01,1,2,1,2\nB,2024-01-01,0,0,0,0\nB,2024-01-02,,,,\n",
    );
    assert_eq!(only(&loaded).symbol, "A");
    assert_eq!(loaded.report.refused[0].symbol, "B");
    assert!(loaded.report.refused[0].reason.contains("2 row(s)"), "{:?}", loaded.report.refused);
    // One bar alone has no step; a day is assumed.
    assert_eq!(only(&loaded).timeframe_ms, 86_400_000);
}

#[test]
fn a_zone_shifts_local_times() {
    let text = "time,open,high,low,close\n2015-03-20 09:30,1,2,1,2\n2015-03-20 09:31,1,2,1,2\n";
    let options = LoadOptions { timezone: Some("-05:00".into()), ..LoadOptions::default() };
    let loaded = load_text(text, &options).unwrap();
    assert_eq!(format_ms(only(&loaded).ts_ms[0]), "2015-03-20T14:30:00Z");
    let options = LoadOptions { timezone: Some("Moon/Base".into()), ..LoadOptions::default() };
    assert!(matches!(load_text(text, &options), Err(MarketError::Timezone { .. })));
}

#[test]
fn spans_and_symbols_select() {
    let text = "symbol,date,open,high,low,close\nA,2024-01-01,1,2,1,2\nA,2024-01-02,1,2,1,2\nA,2024-01-03,1,2,1,2\nB,2024-01-01,1,2,1,2\n";
    let from_ms = tidemill_market::timestamp::parse_ms("2024-01-02");
    let to_ms = tidemill_market::timestamp::parse_ms("2024-01-03");
    let options = LoadOptions { from_ms, to_ms, ..LoadOptions::default() };
    let loaded = load_text(text, &options).unwrap();
    assert_eq!(only(&loaded).ts_ms, [from_ms.unwrap()]);
    assert!(loaded.report.refused[0].reason.contains("between the requested dates"));
    let options = LoadOptions { symbols: Some(vec!["B".into()]), ..LoadOptions::default() };
    assert_eq!(only(&load_text(text, &options).unwrap()).symbol, "B");
    let options = LoadOptions { symbols: Some(vec!["C".into()]), ..LoadOptions::default() };
    let message = load_text(text, &options).unwrap_err().to_string();
    assert!(message.contains("\"C\"") && message.contains("A, B"), "{message}");
}

#[test]
fn errors_name_the_place_and_the_cure() {
    assert!(error("").contains("empty"));
    assert!(error("\n  \n").contains("empty"));
    assert!(error("time,open,high,low,close\n").contains("empty"));
    let message = error("hello world\n");
    assert!(message.contains("EURUSD.csv:1") && message.contains("hello world"), "{message}");
    let message = error("date,price_a,price_b,x,y\n2024-01-01,1,2,3,4\n");
    assert!(message.contains("hint:"), "{message}");
    let message = error("open,high,low,close,x\n1,2,1,2,text\n");
    assert!(
        message.contains("no column for time") && message.contains("open, high, low, close, x"),
        "{message}"
    );
    let message = error("2024-01-01,5,1,9,2,3\n2024-01-02,5,1,9,2,3\n");
    assert!(message.contains("high is not highest"), "{message}");
    let message = error("time,open,high,low,close\n2024-01-01,,,,\n2024-01-02,,,,\n");
    assert!(
        message.contains("no usable bar") && message.contains("missing or non-finite price"),
        "{message}"
    );
    let missing =
        load(&[PathBuf::from("no/such/file.csv")], &LoadOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("no/such/file.csv") && missing.contains("no such file"), "{missing}");
    assert!(matches!(load(&[], &LoadOptions::default()), Err(MarketError::NoPaths)));
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(load(&[dir.path().into()], &LoadOptions::default()), Err(MarketError::NoFiles { .. })));
    let fake = load(&[file(dir.path(), "x.parquet", b"PAR1 and nothing else")], &LoadOptions::default());
    assert!(matches!(fake, Err(MarketError::Parquet { .. })));
}

#[test]
fn directories_hold_one_symbol_per_file_and_parts_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let bar = |day: u32| format!("time,open,high,low,close\n2024-01-{day:02},1,2,1,2\n");
    file(dir.path(), "BBB.csv", bar(1));
    file(dir.path(), "AAA.CSV", bar(1));
    file(dir.path(), "README.md", "not data");
    let loaded = load(&[dir.path().into()], &LoadOptions::default()).unwrap();
    let names: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
    assert_eq!(names, ["AAA", "BBB"]);
    let (old, new) = (dir.path().join("2023"), dir.path().join("2024"));
    fs::create_dir(&old).unwrap();
    fs::create_dir(&new).unwrap();
    let paths = [file(&new, "X.csv", bar(2)), file(&old, "X.csv", bar(1))];
    assert_eq!(only(&load(&paths, &LoadOptions::default()).unwrap()).len(), 2);
    let same = [paths[0].clone(), paths[0].clone()];
    assert!(matches!(load(&same, &LoadOptions::default()), Err(MarketError::SymbolClash { .. })));
}

fn sample() -> Universe {
    let mut universe = synth::regime(&synth::RegimeOptions {
        n_bars: 700,
        n_symbols: 3,
        missing_every: 50,
        ..synth::RegimeOptions::default()
    });
    universe.symbols[0].symbol = "A, Inc".into();
    universe.symbols[1].symbol = "NAN".into();
    universe.symbols[1].extra = vec![("funding".into(), (0..700).map(|row| 0.1 / f64::from(row)).collect())];
    universe.symbols[1].extra[0].1[0] = f64::NAN;
    universe.symbols[2].close[5] = universe.symbols[2].low[5] + 1e-13;
    universe.symbols.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    universe
}

#[test]
fn what_is_written_reads_back_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    let mut universe = sample();
    for name in ["out.parquet", "out.csv"] {
        let path = dir.path().join(name);
        write(&universe, &path).unwrap();
        let back = load(&[path], &LoadOptions::default()).unwrap();
        // A column that one symbol has, all have in a common file: not available there.
        for bars in &mut universe.symbols {
            if bars.extra.is_empty() {
                bars.extra = vec![("funding".into(), vec![f64::NAN; 700])];
            }
        }
        assert_eq!(back.universe.fingerprint(), universe.fingerprint(), "{name}");
        assert!(!dir.path().join(format!("{name}.part")).exists());
    }
    assert!(matches!(write(&universe, &dir.path().join("out.xls")), Err(MarketError::OutputFormat { .. })));
    assert!(write(&universe, &dir.path().join("no/dir/out.csv")).is_err());
}

#[test]
fn loading_resamples_and_reports_partial_buckets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    write(&Universe { symbols: vec![synth::lcg(10)] }, &path).unwrap();
    let options = LoadOptions { resample: Some(3_600_000), ..LoadOptions::default() };
    let loaded = load(std::slice::from_ref(&path), &options).unwrap();
    assert_eq!(only(&loaded).len(), 3);
    assert_eq!(loaded.report.symbols[0].timeframe_ms, 3_600_000);
    assert_eq!(loaded.report.count(IssueKind::PartialBucket), 1);
    let options = LoadOptions { resample: Some(1_000_000), ..LoadOptions::default() };
    let message = load(&[path], &options).unwrap_err().to_string();
    assert!(message.contains("not a whole multiple"), "{message}");
}

/// What yfinance writes: tickers beside the header, and a line with the name of the index.
const TWO_TICKERS: [&str; 4] = [
    "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\nTicker,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT\nDate,,,,,,,,,,\n",
    "Ticker,AAPL,AAPL,AAPL,AAPL,AAPL,MSFT,MSFT,MSFT,MSFT,MSFT\nPrice,Open,High,Low,Close,Volume,Open,High,Low,Close,Volume\nDate,,,,,,,,,,\n",
    ",Adj Close,Adj Close,Close,Close,High,High,Low,Low,Open,Open\n,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT,AAPL,MSFT\nDate,,,,,,,,,,\n",
    "Date,AAPL_Open,AAPL_High,AAPL_Low,AAPL_Close,AAPL_Volume,MSFT_Open,MSFT_High,MSFT_Low,MSFT_Close,MSFT_Volume\n",
];

#[test]
fn two_tickers_side_by_side_are_two_symbols_or_refused_by_name() {
    let rows: String = (1..9).map(|day| format!("2024-01-0{day},5,6,4,5,9,5,6,4,5,9\n")).collect();
    let (pandas, flat) = TWO_TICKERS.split_at(3);
    for header in pandas {
        let loaded = read(format!("{header}{rows}"));
        let names: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
        assert_eq!(names, ["AAPL", "MSFT"], "{header}");
        assert_eq!(loaded.universe.n_bars(), 16, "{header}");
    }
    for header in flat {
        let error = load_text(format!("{header}{rows}"), &LoadOptions::default()).unwrap_err();
        assert!(matches!(error, MarketError::SeveralInstruments { .. }), "{header}{error}");
        let message = error.to_string();
        for part in ["EURUSD.csv:", "AAPL, MSFT", "one file per instrument", "`symbol`", "future_stack"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    // Read by pandas and written again, the tickers are gone and the columns numbered.
    let header = "Date,Close,Close.1,High,High.1,Low,Low.1,Open,Open.1,Volume,Volume.1\n";
    assert!(error(format!("{header}{rows}")).contains("several instruments"));
    // The cure that the message names, and one ticker as yfinance writes it.
    let long =
        "Date,Ticker,Close,High,Low,Open,Volume\n2024-01-02,AAPL,5,6,4,5,9\n2024-01-02,MSFT,7,8,6,7,9\n";
    let loaded = read(long);
    let names: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
    assert_eq!(names, ["AAPL", "MSFT"]);
    let one = "Price,Close,High,Low,Open,Volume\nTicker,AAPL,AAPL,AAPL,AAPL,AAPL\nDate,,,,,\n2024-01-02,5,6,4,5,9\n2024-01-03,5,6,4,5,9\n";
    assert_eq!(only(&read(one)).len(), 2);
}
