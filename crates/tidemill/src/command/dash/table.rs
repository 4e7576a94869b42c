//! The columns of a study's trials, and the cells of a batch of them.

use serde_json::{Value as Json, json};
use tidemill_backtest::{METRICS, Metric};
use tidemill_dash::web::{Cell, Column, ColumnKind};
use tidemill_search::TrialBatch;
use tidemill_search::folder::Column as Values;

use crate::command::study::text::{self, label};
use tidemill_lab::StudyConfig;
use tidemill_lab::test_column::{TEST_OBJECTIVE, TEST_PREFIX};

/// Metrics that a table shows unless others are chosen.
const SHOWN: [&str; 4] = ["sharpe", "total_return", "max_drawdown", "trades"];

/// Where a column of the table is in a batch.
#[derive(Clone, Copy, Debug)]
enum Place {
    Trial,
    Objective(usize),
    Metric(usize),
    Param(usize),
}

/// The columns of a study.
pub struct Table {
    /// What they are called.
    pub columns: Vec<Column>,
    places: Vec<Place>,
}

impl Table {
    /// The columns that a batch has; a study without trials has the number alone.
    pub fn new(batch: Option<&TrialBatch>, config: &StudyConfig) -> Self {
        let mut table = Self { columns: Vec::new(), places: Vec::new() };
        table.add(Place::Trial, "trial", "Trial", ColumnKind::Trial, true);
        let Some(batch) = batch else { return table };
        let n_objectives = 1 + batch.further_objectives.len();
        for (at, text) in config.objective_names(n_objectives).iter().enumerate() {
            let name = if at == 0 { "objective".to_owned() } else { format!("objective_{}", at + 1) };
            table.add(Place::Objective(at), &name, &objective(text, config), ColumnKind::Objective, true);
        }
        for (at, (name, _)) in batch.metrics.iter().enumerate() {
            let (kind, of) = match name.strip_prefix(TEST_PREFIX) {
                Some(of) => (ColumnKind::Unseen, of),
                None => (ColumnKind::Metric, name.as_str()),
            };
            if name == TEST_OBJECTIVE {
                let first = config.objective.maximize.first().map_or(of, String::as_str);
                table.add(Place::Metric(at), name, &objective(first, config), kind, true);
                continue;
            }
            let is_shown = SHOWN.contains(&of) && !is_objective(of, config);
            table.add(Place::Metric(at), name, label(of), kind, is_shown);
        }
        for (at, (name, _)) in batch.params.iter().enumerate() {
            let is_fixed = config.fixed.iter().any(|(fixed, _)| fixed == name);
            table.add(Place::Param(at), name, name, ColumnKind::Parameter, !is_fixed);
        }
        table
    }

    fn add(&mut self, place: Place, name: &str, label: &str, kind: ColumnKind, is_shown: bool) {
        // A parameter may be called like a metric.
        let is_taken = self.columns.iter().any(|column| column.name == name);
        let name = if is_taken { format!("params.{name}") } else { name.to_owned() };
        self.columns.push(column(name, label, kind, is_shown));
        self.places.push(place);
    }

    /// The columns of figures out of sample that a study does not store: the first objective, and the usual metrics.
    pub fn unseen(config: &StudyConfig) -> Vec<(Column, Option<Metric>)> {
        let kind = ColumnKind::Unseen;
        let first = config.objective.maximize.first().map_or("objective", String::as_str);
        let mut columns =
            vec![(column(TEST_OBJECTIVE.to_owned(), &objective(first, config), kind, true), None)];
        let usual =
            METRICS.iter().filter(|(_, name, _)| text::SHOWN.contains(name) && !is_objective(name, config));
        columns.extend(usual.map(|(metric, name, label)| {
            (column(format!("{TEST_PREFIX}{name}"), label, kind, SHOWN.contains(name)), Some(*metric))
        }));
        columns
    }

    /// The names of all columns.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The place of a column.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// A cell of a batch.
    pub fn cell<'a>(&self, batch: &'a TrialBatch, row_idx: usize, column_idx: usize) -> Cell<'a> {
        let number = |value: Option<f64>| match value {
            Some(value) if !value.is_nan() => Cell::Number(value),
            _ => Cell::Absent,
        };
        match self.places[column_idx] {
            Place::Trial => Cell::Number(batch.trials[row_idx] as f64),
            Place::Objective(0) => number(batch.scores[row_idx].value()),
            Place::Objective(at) => number(batch.further_objectives[at - 1][row_idx]),
            Place::Metric(at) => number(batch.metrics[at].1[row_idx]),
            Place::Param(at) => match &batch.params[at].1 {
                Values::Int(values) => number(values[row_idx].map(|value| value as f64)),
                Values::Float(values) => number(values[row_idx]),
                Values::Bool(values) => match values[row_idx] {
                    Some(true) => Cell::Text("true"),
                    Some(false) => Cell::Text("false"),
                    None => Cell::Absent,
                },
                Values::Text(values) => values[row_idx].as_deref().map_or(Cell::Absent, Cell::Text),
            },
        }
    }

    /// A row of a batch as JSON.
    pub fn row(&self, batch: &TrialBatch, row_idx: usize) -> Vec<Json> {
        let value = |(column_idx, place): (usize, &Place)| match place {
            Place::Param(at) => json!(batch.params[*at].1.value(row_idx)),
            Place::Trial => json!(batch.trials[row_idx]),
            _ => match self.cell(batch, row_idx, column_idx) {
                Cell::Number(value) => json!(value),
                Cell::Text(_) | Cell::Absent => Json::Null,
            },
        };
        self.places.iter().enumerate().map(value).collect()
    }
}

fn column(name: String, label: &str, kind: ColumnKind, is_shown: bool) -> Column {
    let is_figure = matches!(kind, ColumnKind::Metric | ColumnKind::Unseen);
    Column { name, label: label.to_owned(), kind, is_percent: is_figure && label.ends_with("[%]"), is_shown }
}

/// Label of an objective: it says how those of several segments become one.
fn objective(text: &str, config: &StudyConfig) -> String {
    config.reduction().map_or_else(|| text.to_owned(), |reduce| format!("{text}, {reduce}"))
}

/// Whether a metric repeats an objective.
fn is_objective(metric: &str, config: &StudyConfig) -> bool {
    config.reduction().is_none() && config.objective.maximize.iter().any(|text| text == metric)
}
