//! Answers of the application to the dashboard, as plain data. The names of the fields are those of the answers under `/api`.

use serde::Serialize;
use serde_json::Value;
use tidemill_page::kit::axis::{Axis, PlottedTrials};
use tidemill_page::report::TimeMark;

use super::filter::Filter;

/// Which trials are wanted.
#[derive(Clone, Debug)]
pub struct TrialQuery {
    /// The column to sort by; none for the first objective.
    pub sort: Option<String>,
    /// Whether the highest come first. Trials without a value come last either way.
    pub is_descending: bool,
    /// Which trials count.
    pub filter: Filter,
    /// Whether trials that hardly differ share a row.
    pub fold: Fold,
    /// How many rows to skip.
    pub offset: usize,
    /// How many to return at most.
    pub limit: usize,
}

/// Whether trials that hardly differ share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// One row per trial.
    No,
    /// One row per group of neighbours: the first of them in the requested order.
    Groups,
    /// The trials of one group, named by the trial that stands for it.
    Of(u64),
}

/// Some trials of a run.
#[derive(Clone, Debug, Serialize)]
pub struct TrialPage {
    /// The columns.
    pub columns: Vec<Column>,
    /// The column that they are sorted by.
    pub sort: String,
    /// Number of all trials.
    pub n_trials: u64,
    /// Number of those that the filter accepts.
    pub n_matched: u64,
    /// How many of these, the first in the requested order, were folded into groups; none if they were not.
    pub n_folded: Option<u64>,
    /// Number of all rows: trials, or groups of them.
    pub n_rows: u64,
    /// How many of these were skipped.
    pub offset: usize,
    /// For each row, the number of trials that it stands for.
    pub counts: Vec<u64>,
    /// One value per column for each trial; null where there is none.
    pub rows: Vec<Vec<Value>>,
}

/// A column of the table of trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name, as filters and sorting use it.
    pub name: String,
    /// Its label on the page.
    pub label: String,
    /// What it is.
    pub kind: ColumnKind,
    /// Whether it is a share to show in per cent.
    pub is_percent: bool,
    /// Whether a table shows it by default.
    pub is_shown: bool,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// The number of the trial.
    Trial,
    /// An objective.
    Objective,
    /// A figure of its result in sample.
    Metric,
    /// A figure of its result out of sample.
    Unseen,
    /// A parameter.
    Parameter,
}

/// Some trials out of sample.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UnseenTrials {
    /// The columns; none if the run has no such part.
    pub columns: Vec<Column>,
    /// For each trial its number, and one value per column; null where there is none.
    pub rows: Vec<(u64, Vec<Value>)>,
}

/// Parameters of a run, and the trials drawn across them.
#[derive(Clone, Debug, Serialize)]
pub struct Parameters {
    /// Names of the objectives.
    pub objectives: Vec<String>,
    /// Number of all trials.
    pub n_trials: u64,
    /// Number of trials that have a score.
    pub n_valid: u64,
    /// The parameters that took more than one value.
    pub axes: Vec<Axis>,
    /// The trials that are drawn.
    #[serde(flatten)]
    pub plotted: PlottedTrials,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Number of the trial.
    pub trial: u64,
    /// Its place by the first objective, from 1, if it is valid.
    pub rank: Option<u64>,
    /// Number of all trials.
    pub n_trials: u64,
    /// Columns with their values.
    pub figures: Vec<Figure>,
    /// A command that evaluates it again, if one is known.
    pub command: Option<String>,
}

/// A column and the value of one trial there.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The column.
    #[serde(flatten)]
    pub column: Column,
    /// The value; null where there is none.
    pub value: Value,
}

/// One trial evaluated again.
#[derive(Clone, Debug, Serialize)]
pub struct Backtest {
    /// The symbol that curve and trades are of; none for all together.
    pub symbol: Option<String>,
    /// All symbols.
    pub symbols: Vec<SymbolLine>,
    /// Names of the columns of figures: the parts of the data, then single segments where those are few.
    pub segments: Vec<String>,
    /// Figures of the result: label, and a text for each column.
    pub figures: Vec<(String, Vec<String>)>,
    /// Whether equity is a sum of price differences, and not a product of returns.
    pub is_additive: bool,
    /// Equity by the day.
    pub curve: Curve,
    /// Number of trades.
    pub n_trades: usize,
    /// The trades, of very many the first.
    pub trades: Vec<Trade>,
    /// Times at which something begins, such as the out-of-sample part.
    pub marks: Vec<TimeMark>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Whether the objective equals the one in the study.
    pub is_as_stored: bool,
}

/// A symbol of a back-test.
#[derive(Clone, Debug, Serialize)]
pub struct SymbolLine {
    /// Name of the symbol.
    pub name: String,
    /// Number of trades.
    pub n_trades: usize,
    /// Its result: a return, or a sum of price differences.
    pub change: Option<f64>,
}

/// Equity over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Curve {
    /// Equity before the first day.
    pub start: f64,
    /// Days in milliseconds since 1970.
    pub ms: Vec<i64>,
    /// Equity at the end of each.
    pub equity: Vec<f64>,
    /// How far that is below the highest before, as a share or, where equity is a sum, as a difference; never positive.
    pub drawdown: Vec<f64>,
    /// Equity of buying at the start and holding.
    pub buy_hold: Vec<f64>,
}

/// A closed trade.
#[derive(Clone, Debug, Serialize)]
pub struct Trade {
    /// Symbol that was traded.
    pub symbol: String,
    /// 1 for long, −1 for short.
    pub side: i8,
    /// Time of the entry bar, in milliseconds since 1970.
    pub entry_ms: i64,
    /// Time of the exit bar.
    pub exit_ms: i64,
    /// Entry price.
    pub entry: f64,
    /// Exit price.
    pub exit: f64,
    /// The first stop, if there was one.
    pub stop: Option<f64>,
    /// The target, if there was one.
    pub target: Option<f64>,
    /// Profit over the entry price.
    pub ret: f64,
    /// Profit of one unit in price units.
    pub pnl: f64,
    /// Profit over the risk taken, where that is defined.
    pub r: Option<f64>,
    /// Bars held.
    pub bars: usize,
    /// Why it was closed.
    pub reason: String,
}

/// Which prices are wanted.
#[derive(Clone, Debug)]
pub struct BarQuery {
    /// The symbol; none for the first.
    pub symbol: Option<String>,
    /// The first moment, in milliseconds since 1970; none for the beginning.
    pub from_ms: Option<i64>,
    /// The last moment.
    pub to_ms: Option<i64>,
    /// How many bars at most; neighbours are joined where there are more.
    pub points: usize,
}

/// Prices over a stretch of time.
#[derive(Clone, Debug, Serialize)]
pub struct BarWindow {
    /// The symbol.
    pub symbol: String,
    /// The length of a bar of the data.
    pub timeframe_ms: i64,
    /// The first bar of the data.
    pub first_ms: i64,
    /// The last bar of the data.
    pub last_ms: i64,
    /// Number of bars that were joined into each.
    pub joined: usize,
    /// When each begins.
    pub ms: Vec<i64>,
    /// Opening prices.
    pub open: Vec<f64>,
    /// Highest prices.
    pub high: Vec<f64>,
    /// Lowest prices.
    pub low: Vec<f64>,
    /// Closing prices.
    pub close: Vec<f64>,
}
