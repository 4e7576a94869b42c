//! The HTML report of one back-test: a single file that opens offline and fetches nothing.
//!
//! [`html`] turns a [`ReportPage`] into a page. A `ReportPage` is plain data without ties to the engine, so the page can show
//! any back-test that fills it in. The work is split in two: Rust decides *what* goes into the file (how many bars,
//! at which resolution, packed how: `payload`, `detail`, `pack`), and the scripts in `report/` decide how it
//! looks. Numbers that are results (`metrics`) come ready from the caller and are never recomputed by the page; the
//! page derives only views (monthly table, histograms, rolling figures) from the curve and the trades it was given.

mod detail;
mod pack;
mod payload;
mod portfolio;

use serde::Serialize;

use crate::kit::parts::PartsTable;
use crate::kit::{self, Head, Page, Script};
use payload::Payload;

/// Keys of the metrics shown large at the top of the page, in this order; those absent from
/// [`ReportPage::metrics`] are left out.
pub const HEADLINE: [&str; 12] = [
    "total_return",
    "benchmark_return",
    "excess_return",
    "alpha",
    "t_alpha",
    "beta",
    "sharpe",
    "max_drawdown",
    "volatility",
    "win_rate",
    "profit_factor",
    "trades",
];

/// Everything the page shows.
#[derive(Clone, Debug, Default)]
pub struct ReportPage {
    /// Main heading, usually the strategy's name.
    pub title: String,
    /// One line under the heading, usually symbols, timeframe and date range.
    pub subtitle: String,
    /// Source text of the strategy file, shown verbatim.
    pub strategy: String,
    /// When the report was made, as text to show.
    pub generated: String,
    /// Version of the program that made it.
    pub version: String,
    /// Parameter names and values, in the order to show.
    pub parameters: Vec<(String, String)>,
    /// Modelling choices (fees, fills, sizing, …) and their values, in the order to show.
    pub execution: Vec<(String, String)>,
    /// The verdict on these parameters in a line, where a search chose them and judged them.
    pub verdict: Option<String>,
    /// The figures that say most, by part of the data; the last column is the whole period.
    pub parts: PartsTable,
    /// What returns are compared with, as it is called in the page.
    pub benchmark: String,
    /// How the benchmark is defined, in a sentence; there is one definition on the page.
    pub benchmark_note: String,
    /// Remarks a reader must know: annualisation, repairs of the data, warnings. The page adds its own about data
    /// it had to leave out.
    pub notes: Vec<String>,
    /// Result figures, in the order to show; see [`HEADLINE`] for the keys that are shown large.
    pub metrics: Vec<MetricRow>,
    /// Names of the columns where there are several: the parts of the data, the last of which is all of it, then single segments.
    pub segments: Vec<String>,
    /// How equity adds up, which decides whether changes are shown in per cent or in price units.
    pub equity_kind: EquityKind,
    /// Days per year used to annualise the rolling Sharpe ratio; 0 hides that panel.
    pub year_days: f64,
    /// Curve of all symbols together. `None` with several symbols: the page shows the equally weighted mean of their
    /// curves (their sum where equity is additive) and says so in a note.
    pub portfolio: Option<Curve>,
    /// One entry per symbol.
    pub series: Vec<SymbolSeries>,
}

/// How equity adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EquityKind {
    /// Equity multiplies (`all_in`, fraction and risk sizing): changes are relative, shown in per cent.
    #[default]
    Compound,
    /// Equity is a sum of price differences (`unit` sizing): changes are differences, shown in price units.
    Additive,
}

/// One result figure over all data and per segment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MetricRow {
    /// Stable name, such as `sharpe`.
    pub key: String,
    /// Name to show, such as `Sharpe Ratio`. A trailing `[%]` is read as the unit of `text`.
    pub label: String,
    /// The number over all data, where it is defined; used for its sign only.
    pub value: Option<f64>,
    /// The number as text to show.
    pub text: String,
    /// The same figure per entry of [`ReportPage::segments`]; `None` where undefined.
    pub segments: Vec<Option<String>>,
}

/// Equity of one account over time, beside the equity of buying at the start and holding.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Equity before the first bar, of both lines: 1 for [`EquityKind::Compound`], 0 for [`EquityKind::Additive`].
    pub start: f64,
    /// Equity at the end of each UTC day, as (start of the day in ms, equity), ascending.
    pub equity: Vec<(i64, f64)>,
    /// Buy-and-hold equity in the same form; may be empty.
    pub buy_hold: Vec<(i64, f64)>,
}

/// Bars, trades and equity of one symbol.
#[derive(Clone, Debug, Default)]
pub struct SymbolSeries {
    /// Name of the symbol.
    pub symbol: String,
    /// Nominal length of a bar in ms; 0 if unknown.
    pub timeframe_ms: i64,
    /// Days per year used to annualise the rolling Sharpe ratio of this symbol alone.
    pub year_days: f64,
    /// Opening time of each bar in UTC ms, ascending.
    pub ts_ms: Vec<i64>,
    /// Opening prices.
    pub open: Vec<f64>,
    /// Highest prices.
    pub high: Vec<f64>,
    /// Lowest prices.
    pub low: Vec<f64>,
    /// Closing prices.
    pub close: Vec<f64>,
    /// Volumes; may be empty.
    pub volume: Vec<f64>,
    /// Closed trades, in order of entry.
    pub trades: Vec<TradeRow>,
    /// What the strategy computed from the bars, one value per bar; NaN where not available.
    pub lines: Vec<(String, Vec<f64>)>,
    /// The figures of this symbol alone, in the order of [`ReportPage::metrics`]; empty where it is the only one.
    pub figures: Vec<Option<String>>,
    /// Daily equity of this symbol alone.
    pub curve: Curve,
    /// Vertical lines to draw, such as the start of the out-of-sample part.
    pub marks: Vec<TimeMark>,
}

/// A labelled moment, drawn as a vertical line; the label describes what starts there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimeMark {
    /// The moment in UTC ms.
    pub ms: i64,
    /// What starts there.
    pub label: String,
}

/// One closed trade; indexes count bars of its symbol.
#[derive(Clone, Debug, Default)]
pub struct TradeRow {
    /// 1 for long, −1 for short.
    pub side: i8,
    /// Bar whose close gave the signal.
    pub signal_idx: usize,
    /// Bar of the entry. Equal to `signal_idx` means that the entry was at that bar's close.
    pub entry_idx: usize,
    /// Bar of the exit.
    pub exit_idx: usize,
    /// Time of the entry bar in UTC ms.
    pub entry_ms: i64,
    /// Time of the exit bar in UTC ms.
    pub exit_ms: i64,
    /// Entry price.
    pub entry: f64,
    /// Exit price.
    pub exit: f64,
    /// First stop level, if there was one.
    pub stop: Option<f64>,
    /// Target level, if there was one.
    pub target: Option<f64>,
    /// Distance at which a stop trailed the best price, if one did.
    pub trail: Option<f64>,
    /// Profit per unit in price units, after costs.
    pub pnl: f64,
    /// `pnl` over the entry price, as a fraction.
    pub ret: f64,
    /// `pnl` over the risk taken; NaN if undefined.
    pub r: f64,
    /// Bars held.
    pub bars: usize,
    /// Label of the exit.
    pub reason: String,
}

/// How much a page holds; what is more is thinned, and a note in the page reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Bars drawn, over all symbols; about 17 bytes each.
    pub bars: usize,
    /// Trades listed, over all symbols; about 130 bytes each.
    pub trades: usize,
}

impl PageLimits {
    /// A file of its own: below about 8 MB.
    pub const FILE: Self = Self { bars: 250_000, trades: 15_000 };
    /// One of many pages in a notebook: a few hundred kilobytes.
    pub const NOTEBOOK: Self = Self { bars: 6_000, trades: 1_000 };
}

/// The page as one self-contained HTML text, for a file.
pub fn html(report: &ReportPage) -> Result<String, serde_json::Error> {
    html_within(report, PageLimits::FILE)
}

/// The same within limits. Non-finite numbers are shown as gaps. Columns of unequal length are cut to the shortest.
pub fn html_within(report: &ReportPage, limits: PageLimits) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(&Payload::new(report, limits))?;
    let script = Script { data: &data, charts: &kit::PRICE_CHART, parts: &SCRIPTS };
    let body = kit::drawn_body(&HEAD, include_str!("report/report.html"), "");
    Ok(Page { title: &report.title, style: "", body: &body, script: Some(script) }.html())
}

/// The sections of the page, and the choice of a symbol.
const HEAD: Head<'_> = Head {
    sections: &[
        ("symbols", "Symbols"),
        ("price", "Price"),
        ("equity", "Equity"),
        ("months", "Months"),
        ("days", "Days"),
        ("distribution", "Distribution"),
        ("breakdown", "Breakdown"),
        ("trades", "Trades"),
        ("metrics", "Metrics"),
        ("setup", "Setup"),
    ],
    choice: ("scope", "Symbol"),
};

/// The scripts of the page, in an order in which each uses only earlier ones at load time.
const SCRIPTS: [&str; 7] = [
    include_str!("report/statistic.js"),
    include_str!("report/data.js"),
    include_str!("report/curves.js"),
    include_str!("report/panels.js"),
    include_str!("report/trades.js"),
    include_str!("report/setup.js"),
    include_str!("report/main.js"),
];

#[cfg(test)]
mod tests;
