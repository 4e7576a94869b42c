//! The figures of a report page agree: tiles, tables, months and curve are recomputed from the trades and daily marks inside the page.

use serde_json::Value;

use crate::chromium::{self, Page};
use crate::support::Place;

/// What the page holds, read from its own data.
struct Embedded {
    year_days: f64,
    /// Days in ms, equity of the strategy and of the benchmark at their ends.
    days: Vec<i64>,
    equity: Vec<f64>,
    held: Vec<f64>,
    /// Returns of the trades.
    trades: Vec<f64>,
}

impl Embedded {
    fn read(page: &mut Page) -> Self {
        let text = page.eval(
            "(() => { const all = JSON.parse(document.getElementById('data').textContent); \
             const floats = (text) => [...new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)]; \
             const curve = all.portfolio ?? all.series[0].curve; const days = []; \
             for (let i = 0; i < curve.days.length; i += 3) \
               for (let k = 0; k < curve.days[i + 2]; k++) days.push(curve.days[i] + k * curve.days[i + 1]); \
             return { days, equity: floats(curve.equity), held: floats(curve.hold), trades: all.trades.ret, \
               year_days: all.year_days }; })()",
        );
        let numbers = |key: &str| -> Vec<f64> {
            text[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        Self {
            year_days: text["year_days"].as_f64().unwrap(),
            days: numbers("days").iter().map(|ms| *ms as i64).collect(),
            equity: numbers("equity"),
            held: numbers("held"),
            trades: numbers("trades"),
        }
    }

    fn daily(line: &[f64]) -> Vec<f64> {
        let before = std::iter::once(&1.0).chain(line);
        before.zip(line).map(|(before, now)| now / before - 1.0).collect()
    }

    /// Figures by key, in the unit of the page.
    fn figures(&self) -> Vec<(&'static str, f64)> {
        let daily = Self::daily(&self.equity);
        let n = daily.len() as f64;
        let mean = daily.iter().sum::<f64>() / n;
        let deviation = (daily.iter().map(|day| (day - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let mut peak = 1.0_f64;
        let fall = self.equity.iter().map(|value| {
            peak = peak.max(*value);
            value / peak - 1.0
        });
        let won: Vec<f64> = self.trades.iter().copied().filter(|ret| *ret > 0.0).collect();
        let lost: f64 = self.trades.iter().filter(|ret| **ret <= 0.0).sum();
        let [total, held] = [&self.equity, &self.held].map(|line| line.last().unwrap() - 1.0);
        vec![
            ("total_return", 100.0 * total),
            ("benchmark_return", 100.0 * held),
            ("excess_return", 100.0 * (total - held)),
            ("sharpe", mean / deviation * self.year_days.sqrt()),
            ("volatility", 100.0 * deviation * self.year_days.sqrt()),
            ("value_at_risk", 100.0 * (mean - 1.644_853_626_951_472_2 * deviation)),
            ("max_drawdown_daily", 100.0 * fall.fold(0.0, f64::min)),
            ("trades", self.trades.len() as f64),
            ("win_rate", 100.0 * won.len() as f64 / self.trades.len() as f64),
            ("profit_factor", won.iter().sum::<f64>() / -lost),
        ]
    }

    /// Return between two days in ms, the second excluded.
    fn change(&self, from: i64, to: i64) -> f64 {
        let at = |ms: i64| match self.days.partition_point(|day| *day < ms) {
            0 => 1.0,
            place => self.equity[place - 1],
        };
        at(to) / at(from) - 1.0
    }
}

/// A number as the page writes it.
fn number(text: &str) -> f64 {
    let plain = text.replace('−', "-").replace([',', '%', '+'], "");
    plain.trim().parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Whether a text says a value: to its last digit, give or take what the curve's seven digits leave.
fn says(text: &str, value: f64) -> bool {
    let digits = text.split('.').nth(1).map_or(0, |rest| rest.chars().filter(char::is_ascii_digit).count());
    (number(text) - value).abs() <= 0.51 * 10_f64.powi(-(digits as i32)) + 2e-5 * value.abs()
}

fn texts(page: &mut Page, selector: &str) -> Vec<String> {
    let found = page.eval(&format!(
        "[...document.querySelectorAll({})].map((node) => node.textContent)",
        Value::from(selector)
    ));
    found.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn open(page: &mut Page, place: &Place, file: &str) {
    let address = format!("file://{}", place.path(file).display());
    page.call("Page.navigate", serde_json::json!({ "url": address }));
    page.wait(&format!(
        "location.href === {address:?} && document.documentElement?.classList.contains('ready')"
    ));
}

#[test]
fn tiles_tables_and_months_are_those_of_the_embedded_trades_and_days() {
    let Some(mut page) = chromium::open() else { return };
    let place = Place::new();
    for (n_symbols, holdout) in [(1, "2020-05-01"), (3, "2020-05-01")] {
        place.ok(&format!(
            "data generate --kind walk --bars 4000 --symbols {n_symbols} --seed 5 --drift 0.5 --out data.parquet"
        ));
        let line = format!("backtest zscore-dip --data data.parquet --split 0.6 --holdout {holdout}");
        place.ok(&format!("{line} --report report.html"));
        let answer = place.json(&line);
        open(&mut page, &place, "report.html");
        let embedded = Embedded::read(&mut page);
        assert!(embedded.trades.len() > 20 && embedded.days.len() > 100);
        for (key, value) in embedded.figures() {
            let shown =
                texts(&mut page, &format!("#metric-table [data-figure={key}][data-column='whole period']"));
            assert!(says(&shown[0], value), "{key} in the table: {shown:?}, recomputed {value}");
            for tile in texts(&mut page, &format!("#headline [data-figure={key}] dd")) {
                assert!(says(&tile, value), "{key} in a tile: {tile}, recomputed {value}");
            }
            for cell in texts(&mut page, &format!("#parts [data-figure={key}][data-part=whole]")) {
                assert!(says(&cell, value), "{key} by part: {cell}, recomputed {value}");
            }
        }
        // Every part of the table above is that of the JSON document.
        for (key, part) in
            [("in_sample", "in sample"), ("out_of_sample", "out of sample"), ("holdout", "holdout")]
        {
            let stored = answer["parts"][key]["metrics"]["total_return"].as_f64().unwrap();
            for cell in [
                format!("#parts [data-figure=total_return][data-part={key}]"),
                format!("#metric-table [data-figure=total_return][data-column='{part}']"),
            ] {
                let shown = texts(&mut page, &cell);
                assert!(says(&shown[0], 100.0 * stored), "{cell}: {shown:?} {stored}");
            }
        }
        let from = page.eval(&format!("Date.parse('{holdout}')")).as_f64().unwrap() as i64;
        let shown = texts(&mut page, "#parts [data-figure=total_return][data-part=holdout]");
        assert!(says(&shown[0], 100.0 * embedded.change(from, i64::MAX)), "{shown:?}");
        // Months, their year, and the benchmark's year.
        let cells = texts(&mut page, "#month-table tbody td");
        assert_eq!(cells.len(), 15, "{cells:?}");
        let month = |month: u32| -> i64 {
            let date = format!("2020-{month:02}-01T00:00:00Z");
            date.parse::<jiff::Timestamp>().unwrap().as_millisecond()
        };
        let mut n_months = 0;
        for at in 1..=11 {
            let value = 100.0 * embedded.change(month(at), month(at + 1));
            let cell = &cells[at as usize - 1];
            if cell != "·" {
                n_months += 1;
                assert!(says(cell, value), "month {at}: {cell} {value}");
            }
        }
        assert!(n_months >= 5);
        let figures = embedded.figures();
        for (cell, (key, value)) in cells[12..].iter().zip(&figures) {
            assert!(says(cell, *value), "{key} of the year: {cell} {value}");
        }
        // The end of the curve, under the pointer.
        let readout = texts(&mut page, "#curve-readout .own").remove(0);
        assert!(says(readout.trim_start_matches("Strategy"), figures[0].1), "{readout}");
        assert!(page.text("#verdict").contains("Over the whole period it returned"));
        assert_eq!(page.problems, Vec::<String>::new());
    }
}

#[test]
fn equity_has_a_logarithmic_axis_and_prices_the_lines_of_the_strategy() {
    let Some(mut page) = chromium::open() else { return };
    let place = Place::new();
    place.ok("data generate --kind walk --bars 3000 --seed 5 --out data.parquet");
    place.ok("backtest donchian-breakout --data data.parquet --report report.html");
    open(&mut page, &place, "report.html");
    let picture = |page: &mut Page| page.eval("document.querySelector('#curve-canvas').toDataURL()");
    page.wait("document.querySelector('#curve-canvas').width > 300");
    let linear = picture(&mut page);
    page.click("#curve-log");
    page.wait("document.querySelector('#curve-log').getAttribute('aria-pressed') === 'true'");
    page.wait(&format!("document.querySelector('#curve-canvas').toDataURL() !== {linear}"));
    let lines = texts(&mut page, "#price-readout .computed i");
    assert!(!lines.is_empty(), "the strategy has numbers under [let]");
    // A trailed trade has its distance, from which the chart draws the path.
    let trailed = page.eval(
        "JSON.parse(document.getElementById('data').textContent).trades.trail.filter((one) => one > 0).length",
    );
    assert!(trailed.as_u64().unwrap() > 5, "{trailed}");
    assert!(page.eval("document.querySelectorAll('#extreme-table tbody tr').length").as_u64().unwrap() >= 5);
    page.click("#extreme-table tbody tr");
    page.wait("document.querySelector('#trade-detail').textContent.includes('Entry')");
    assert_eq!(page.problems, Vec::<String>::new());
}
