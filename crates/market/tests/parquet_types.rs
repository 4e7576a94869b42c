//! Parquet columns of every type that could hold a time, a price or a name.

use std::fs::File;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray, Time32SecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
    UInt64Array,
};
use parquet::arrow::ArrowWriter;
use tidemill_market::report::IssueKind;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{LoadOptions, LoadedData, MarketError, load};

const SECONDS: [i64; 2] = [1_426_843_800, 1_426_843_860]; // 2015-03-20 09:30 and 09:31

fn load_columns(columns: Vec<(&str, ArrayRef)>, options: &LoadOptions) -> Result<LoadedData, MarketError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    load(&[path], options)
}

fn prices() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("Open", Arc::new(Float64Array::from(vec![1.5, 1.625]))),
        ("High", Arc::new(Float32Array::from(vec![1.75, 1.75]))),
        ("Low", Arc::new(Decimal128Array::from(vec![125, 125]).with_precision_and_scale(10, 2).unwrap())),
        ("Close", Arc::new(StringArray::from(vec!["1.625", "1.5"]))),
    ]
}

fn with(
    mut columns: Vec<(&'static str, ArrayRef)>,
    name: &'static str,
    array: ArrayRef,
) -> Vec<(&'static str, ArrayRef)> {
    columns.insert(0, (name, array));
    columns
}

fn times(loaded: &LoadedData) -> Vec<String> {
    loaded.universe.symbols[0].ts_ms.iter().map(|&ts_ms| format_ms(ts_ms)).collect()
}

#[test]
fn times_of_every_type_are_the_same_instants() {
    let scaled = |factor: i64| SECONDS.map(|second| second * factor).to_vec();
    let arrays: Vec<(&'static str, ArrayRef)> = vec![
        ("timestamp", Arc::new(TimestampSecondArray::from(scaled(1)))),
        ("timestamp", Arc::new(TimestampMillisecondArray::from(scaled(1_000)))),
        ("timestamp", Arc::new(TimestampMicrosecondArray::from(scaled(1_000_000)))),
        ("timestamp", Arc::new(TimestampNanosecondArray::from(scaled(1_000_000_000)).with_timezone("UTC"))),
        ("open_time", Arc::new(Int64Array::from(scaled(1_000)))),
        ("t", Arc::new(Int64Array::from(scaled(1_000_000_000)))),
        ("time", Arc::new(Int32Array::from(SECONDS.map(|second| second as i32).to_vec()))),
        ("time", Arc::new(UInt64Array::from(vec![SECONDS[0] as u64, SECONDS[1] as u64]))),
        ("time", Arc::new(Float64Array::from(vec![SECONDS[0] as f64, SECONDS[1] as f64]))),
        ("date", Arc::new(StringArray::from(vec!["2015-03-20 09:30", "2015-03-20 09:31"]))),
        ("date", Arc::new(LargeStringArray::from(vec!["20/03/2015 09:30", "20/03/2015 09:31"]))),
        ("__index_level_0__", Arc::new(TimestampMillisecondArray::from(scaled(1_000)))),
    ];
    for (name, array) in arrays {
        let kind = array.data_type().clone();
        let loaded = load_columns(with(prices(), name, array), &LoadOptions::default()).unwrap();
        assert_eq!(times(&loaded), ["2015-03-20T09:30:00Z", "2015-03-20T09:31:00Z"], "{name} {kind}");
        let bars = &loaded.universe.symbols[0];
        assert_eq!(
            (bars.open[0], bars.high[0], bars.low[0], bars.close[0]),
            (1.5, 1.75, 1.25, 1.625),
            "{kind}"
        );
        assert_eq!(bars.symbol, "x");
    }
}

#[test]
fn a_date_and_a_time_of_day_belong_together() {
    let date: ArrayRef = Arc::new(Date32Array::from(vec![16_514, 16_514]));
    let clock: ArrayRef = Arc::new(Time32SecondArray::from(vec![34_200, 34_260]));
    let loaded =
        load_columns(with(with(prices(), "time", clock), "date", date.clone()), &LoadOptions::default());
    assert_eq!(times(&loaded.unwrap()), ["2015-03-20T09:30:00Z", "2015-03-20T09:31:00Z"]);
    let clock: ArrayRef = Arc::new(StringArray::from(vec!["09:30", "09:31:00"]));
    let loaded = load_columns(with(with(prices(), "time", clock), "date", date), &LoadOptions::default());
    assert_eq!(times(&loaded.unwrap()), ["2015-03-20T09:30:00Z", "2015-03-20T09:31:00Z"]);
}

#[test]
fn only_zoneless_times_follow_the_zone() {
    let options = LoadOptions { timezone: Some("+01:00".into()), ..LoadOptions::default() };
    let millis = SECONDS.map(|second| second * 1_000).to_vec();
    let plain: ArrayRef = Arc::new(TimestampMillisecondArray::from(millis.clone()));
    let zoned: ArrayRef = Arc::new(TimestampMillisecondArray::from(millis).with_timezone("America/New_York"));
    let loaded = load_columns(with(prices(), "time", plain), &options).unwrap();
    assert_eq!(times(&loaded)[0], "2015-03-20T08:30:00Z");
    let loaded = load_columns(with(prices(), "time", zoned), &options).unwrap();
    assert_eq!(times(&loaded)[0], "2015-03-20T09:30:00Z");
}

#[test]
fn symbols_may_be_text_or_dictionary_and_nulls_are_dropped() {
    let time: ArrayRef = Arc::new(Int64Array::from(vec![Some(SECONDS[0]), None]));
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("INF"), Some("INF")]));
    let loaded =
        load_columns(with(with(prices(), "time", time), "ticker", text), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.universe.symbols[0].symbol, "INF");
    assert_eq!(loaded.report.count(IssueKind::NoTime), 1);
    assert_eq!(loaded.report.issues[0].first[0].row, 2);

    let time: ArrayRef = Arc::new(Int64Array::from(SECONDS.to_vec()));
    let dictionary: DictionaryArray<Int32Type> = vec![Some("B"), None].into_iter().collect();
    let columns = with(with(prices(), "time", time), "symbol", Arc::new(dictionary));
    let loaded = load_columns(columns, &LoadOptions::default()).unwrap();
    assert_eq!(loaded.universe.symbols[0].symbol, "B");
    assert_eq!(loaded.report.count(IssueKind::NoSymbol), 1);
}

#[test]
fn further_columns_are_numbers_or_left_out() {
    let mut columns = with(prices(), "time", Arc::new(Int64Array::from(SECONDS.to_vec())));
    columns.push(("Open Interest", Arc::new(Int32Array::from(vec![Some(5), None]))));
    columns.push(("halted", Arc::new(BooleanArray::from(vec![true, false]))));
    columns.push(("comment", Arc::new(StringArray::from(vec!["a", "b"]))));
    let loaded = load_columns(columns, &LoadOptions::default()).unwrap();
    let extra = &loaded.universe.symbols[0].extra;
    let names: Vec<&str> = extra.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["open_interest", "halted"]);
    assert_eq!((extra[0].1[0], extra[1].1[0], extra[1].1[1]), (5.0, 1.0, 0.0));
    assert!(loaded.report.files[0].notes.iter().any(|note| note.contains("comment")));
}

#[test]
fn a_file_without_bars_says_what_it_has() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("date", Arc::new(Date32Array::from(vec![1]))),
        ("open", Arc::new(Float64Array::from(vec![1.0]))),
        ("close", Arc::new(Float64Array::from(vec![1.0]))),
    ];
    let message = load_columns(columns, &LoadOptions::default()).unwrap_err().to_string();
    assert!(message.contains("no column for high, low") && message.contains("close (Float64)"), "{message}");
    let columns: Vec<(&str, ArrayRef)> = vec![("date", Arc::new(Date32Array::from(Vec::<i32>::new())))];
    assert!(matches!(load_columns(columns, &LoadOptions::default()), Err(MarketError::Empty { .. })));
}

#[test]
fn columns_of_two_tickers_are_two_symbols_or_refused_by_name() {
    let number = || -> ArrayRef { Arc::new(Float64Array::from(vec![1.5, 1.625])) };
    let time: ArrayRef = Arc::new(TimestampSecondArray::from(SECONDS.to_vec()));
    for spelling in ["('{price}', '{ticker}')", "{price}_{ticker}", "{price} {ticker}", "{ticker}.{price}"] {
        let name = |price: &str, ticker: &str| spelling.replace("{price}", price).replace("{ticker}", ticker);
        let table = |tickers: &[&str]| -> Vec<(String, ArrayRef)> {
            let mut columns = vec![("Date".to_string(), time.clone())];
            for price in ["Close", "High", "Low", "Open", "Volume"] {
                columns.extend(tickers.iter().map(|ticker| (name(price, ticker), number())));
            }
            columns
        };
        let borrowed = table(&["AAPL", "BRK-B"]);
        let columns = borrowed.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
        let outcome = load_columns(columns, &LoadOptions::default());
        if spelling.starts_with('(') {
            // What pandas makes of two levels of columns.
            let loaded = outcome.unwrap();
            let names: Vec<&str> = loaded.universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
            assert_eq!(names, ["AAPL", "BRK-B"]);
            continue;
        }
        let error = outcome.unwrap_err();
        assert!(matches!(error, MarketError::SeveralInstruments { .. }), "{spelling}: {error}");
        assert!(error.to_string().contains("side by side: AAPL, BRK-B\n"), "{error}");
    }
    // Prices of one instrument beside series that only sound like instruments.
    let mut columns = with(prices(), "Date", time);
    for name in ["mark_open", "mark_close", "index_open", "index_close"] {
        columns.push((name, number()));
    }
    assert_eq!(load_columns(columns, &LoadOptions::default()).unwrap().universe.symbols[0].extra.len(), 4);
}
