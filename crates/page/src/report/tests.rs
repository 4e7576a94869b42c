//! Facts about the page as a whole: it stands alone, hostile text stays text, odd data still makes a page.

use super::*;

/// The JSON the page carries, parsed back.
fn data(page: &str) -> serde_json::Value {
    let start = page.find("id=\"data\">").expect("data element") + "id=\"data\">".len();
    let end = page[start..].find("</script>").expect("end of data") + start;
    serde_json::from_str(&page[start..end]).expect("valid JSON")
}

fn series(n: usize) -> SymbolSeries {
    let close: Vec<f64> = (0..n).map(|i| 100.0 + ((i * 37) % 101) as f64 / 100.0).collect();
    SymbolSeries {
        symbol: "ABC".to_owned(),
        timeframe_ms: 900_000,
        year_days: 365.0,
        ts_ms: (0..n as i64).map(|i| i * 900_000).collect(),
        open: close.clone(),
        high: close.iter().map(|price| price + 0.5).collect(),
        low: close.iter().map(|price| price - 0.5).collect(),
        volume: close.clone(),
        close,
        curve: Curve { start: 1.0, equity: vec![(0, 1.0), (86_400_000, 1.1)], buy_hold: vec![(0, 1.0)] },
        ..SymbolSeries::default()
    }
}

fn trade(entry_idx: usize, exit_idx: usize) -> TradeRow {
    TradeRow {
        side: 1,
        signal_idx: entry_idx.saturating_sub(1),
        entry_idx,
        exit_idx,
        entry: 100.0,
        exit: 101.0,
        stop: Some(99.0),
        pnl: 1.0,
        ret: 0.01,
        r: 1.0,
        bars: exit_idx - entry_idx,
        reason: "TARGET".to_owned(),
        ..TradeRow::default()
    }
}

#[test]
fn page_fetches_nothing() {
    let page = html(&ReportPage { series: vec![series(50)], ..ReportPage::default() }).unwrap();
    for address in
        ["http:", "https:", "//www", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!page.contains(address), "{address}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</script><script>alert(1)</script><!-- \u{2028} %%data%% &amp;".to_owned();
    let mut one = series(3);
    one.symbol = hostile.clone();
    one.trades = vec![TradeRow { reason: hostile.clone(), ..trade(1, 2) }];
    one.marks = vec![TimeMark { ms: 0, label: hostile.clone() }];
    let report = ReportPage {
        title: hostile.clone(),
        subtitle: hostile.clone(),
        strategy: hostile.clone(),
        notes: vec![hostile.clone()],
        parameters: vec![(hostile.clone(), hostile.clone())],
        segments: vec![hostile.clone()],
        series: vec![one],
        ..ReportPage::default()
    };
    let page = html(&report).unwrap();
    let plain = html(&ReportPage::default()).unwrap();
    for tag in ["<script", "</script", "<!--"] {
        assert_eq!(page.matches(tag).count(), plain.matches(tag).count(), "{tag}");
    }
    let escaped = page.split("id=\"data\">").nth(1).unwrap();
    assert!(!escaped.contains('\u{2028}'));
    let data = data(&page);
    assert_eq!(data["strategy"], hostile.as_str());
    assert_eq!(data["series"][0]["symbol"], hostile.as_str());
    assert_eq!(data["reasons"][0], hostile.as_str());
}

#[test]
fn report_without_anything_is_a_page() {
    let page = html(&ReportPage::default()).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    assert_eq!(data(&page)["series"], serde_json::json!([]));
}

#[test]
fn report_without_trades_or_bars_is_a_page() {
    let report =
        ReportPage { series: vec![series(10), series(1), SymbolSeries::default()], ..ReportPage::default() };
    let data = data(&html(&report).unwrap());
    assert_eq!(data["trades"]["side"], serde_json::json!([]));
    assert_eq!(data["series"][2]["n_bars"], 0);
    assert!(data["portfolio"].is_object());
}

#[test]
fn non_finite_numbers_become_null() {
    let mut one = series(4);
    one.close[2] = f64::NAN;
    one.curve.equity.push((2 * 86_400_000, f64::NAN));
    one.trades = vec![TradeRow { r: f64::NAN, stop: Some(f64::INFINITY), ..trade(1, 2) }];
    let metrics = vec![MetricRow { value: Some(f64::NAN), ..MetricRow::default() }];
    let data = data(&html(&ReportPage { metrics, series: vec![one], ..ReportPage::default() }).unwrap());
    assert!(data["trades"]["r"][0].is_null());
    assert!(data["trades"]["stop"][0].is_null());
    assert!(data["metrics"][0]["value"].is_null());
}

#[test]
fn indexes_beyond_the_bars_are_held_inside() {
    let mut one = series(4);
    one.trades = vec![trade(100, 200)];
    let data = data(&html(&ReportPage { series: vec![one], ..ReportPage::default() }).unwrap());
    assert_eq!(data["trades"]["exit_idx"][0], 3);
}

#[test]
fn hundred_thousand_bars_stay_single_and_small() {
    let mut one = series(100_000);
    one.trades = (0..2_000).map(|i| trade(i * 50 + 1, i * 50 + 20)).collect();
    let page = html(&ReportPage { series: vec![one], ..ReportPage::default() }).unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert_eq!(data(&page)["series"][0]["index"], serde_json::json!([0, 1, 100_000]));
}

#[test]
fn large_universe_is_thinned_and_says_so() {
    let many: Vec<SymbolSeries> = (0..60)
        .map(|i| SymbolSeries {
            symbol: format!("S{i}"),
            trades: vec![trade(1, 2); i * 20],
            ..series(10_000)
        })
        .collect();
    let page = html(&ReportPage { series: many, ..ReportPage::default() }).unwrap();
    assert!(page.len() < 8_000_000, "{} bytes", page.len());
    let data = data(&page);
    assert_eq!(data["trades"]["side"].as_array().unwrap().len(), 15_000);
    assert_eq!(data["series"][0]["bars"], "", "fewest trades, no chart");
    assert_ne!(data["series"][59]["bars"], "");
    assert_eq!(data["notes"].as_array().unwrap().len(), 4);
}

#[test]
fn a_page_for_a_notebook_is_small_and_says_what_it_left_out() {
    let many = ReportPage { series: vec![series(60_000)], ..ReportPage::default() };
    let file = html(&many).unwrap();
    let page = html_within(&many, PageLimits::NOTEBOOK).unwrap();
    assert!(page.len() < 400_000 && page.len() + 400_000 < file.len(), "{} of {}", page.len(), file.len());
    let notes = |page: &str| data(page)["notes"].to_string();
    assert!(notes(&page).contains("drawn in buckets") && !notes(&file).contains("drawn in buckets"));
}
