//! The parameters of a study as its trials show them.
//!
//! A study folder does not hold the space that was searched. Its trials show what is needed to compare and to draw them: which
//! values a parameter took, between which bounds. Only whether a range is logarithmic comes from the strategy, where there is one.

use std::collections::{BTreeMap, BTreeSet};

use tidemill_backtest::{Overrides, Strategy};
use tidemill_search::folder::Column;
use tidemill_search::{Choice, Domain, Param, Space, TrialBatch};

use crate::config::StudyConfig;

/// Without a strategy to ask, positive values that span more than this ratio count as logarithmic.
const LOG_RATIO: f64 = 100.0;

/// The values that one parameter took.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the parameter.
    pub name: String,
    /// The kind of its values, and their range.
    pub values: Values,
}

/// Values of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Number {
        /// The lowest; above `high` if there is none.
        low: f64,
        /// The highest.
        high: f64,
        /// Whether all are whole numbers.
        whole: bool,
        /// Whether the axis is logarithmic.
        log: bool,
    },
    /// Off and on.
    Switch {
        /// Whether it was off, and on.
        seen: [bool; 2],
    },
    /// Names, in alphabetical order.
    Names {
        /// The names.
        options: BTreeSet<String>,
    },
}

impl Axis {
    /// Whether it took more than one value.
    pub fn is_varied(&self) -> bool {
        match &self.values {
            Values::Number { low, high, .. } => high > low,
            Values::Switch { seen } => seen[0] && seen[1],
            Values::Names { options } => options.len() > 1,
        }
    }

    fn new(name: &str, column: &Column) -> Self {
        let values = match column {
            Column::Int(_) | Column::Float(_) => Values::Number {
                low: f64::INFINITY,
                high: f64::NEG_INFINITY,
                whole: matches!(column, Column::Int(_)),
                log: false,
            },
            Column::Bool(_) => Values::Switch { seen: [false; 2] },
            Column::Text(_) => Values::Names { options: BTreeSet::new() },
        };
        Self { name: name.to_owned(), values }
    }

    fn widen(&mut self, column: &Column) {
        match (&mut self.values, column) {
            (Values::Number { low, high, .. }, Column::Int(values)) => {
                for value in values.iter().flatten() {
                    *low = low.min(*value as f64);
                    *high = high.max(*value as f64);
                }
            }
            (Values::Number { low, high, .. }, Column::Float(values)) => {
                for value in values.iter().flatten() {
                    *low = low.min(*value);
                    *high = high.max(*value);
                }
            }
            (Values::Switch { seen }, Column::Bool(values)) => {
                values.iter().flatten().for_each(|on| seen[usize::from(*on)] = true);
            }
            (Values::Names { options }, Column::Text(values)) => {
                for name in values.iter().flatten() {
                    if !options.contains(name) {
                        options.insert(name.clone());
                    }
                }
            }
            // The columns of a study do not change their kind; the reader checks it.
            _ => {}
        }
    }

    /// Values as numbers: a switch is 0 or 1, a name its index; NaN where there is none.
    pub fn encode(&self, column: &Column) -> Vec<f64> {
        match (&self.values, column) {
            (_, Column::Int(values)) => {
                values.iter().map(|value| value.map_or(f64::NAN, |value| value as f64)).collect()
            }
            (_, Column::Float(values)) => values.iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
            (_, Column::Bool(values)) => {
                values.iter().map(|on| on.map_or(f64::NAN, |on| f64::from(u8::from(on)))).collect()
            }
            (Values::Names { options }, Column::Text(values)) => {
                let places: BTreeMap<&str, f64> =
                    options.iter().zip(0..).map(|(name, place)| (name.as_str(), f64::from(place))).collect();
                let place = |name: &String| places.get(name.as_str()).copied();
                values.iter().map(|name| name.as_ref().and_then(place).unwrap_or(f64::NAN)).collect()
            }
            (_, Column::Text(values)) => vec![f64::NAN; values.len()],
        }
    }

    /// As a parameter of a space. One that was not varied is fixed, so that it has no importance.
    fn param(&self) -> Param {
        let domain = match &self.values {
            Values::Number { low, high, log, .. } if high > low => {
                Domain::Float { low: *low, high: *high, step: None, log: *log }
            }
            Values::Number { .. } | Values::Switch { .. } => Domain::Bool,
            Values::Names { options } => {
                Domain::Choice { options: options.iter().cloned().map(Choice::Text).collect() }
            }
        };
        let default = if let Domain::Float { low, .. } = domain { low } else { 0.0 };
        let fixed = (!self.is_varied()).then_some(default);
        Param { fixed, ..Param::new(self.name.clone(), domain, default) }
    }
}

/// All parameters, in the order of the study.
#[derive(Clone, Debug, Default)]
pub struct Axes(pub Vec<Axis>);

impl Axes {
    /// Adds the values of more trials.
    pub fn widen(&mut self, batch: &TrialBatch) {
        if self.0.is_empty() {
            self.0 = batch.params.iter().map(|(name, column)| Axis::new(name, column)).collect();
        }
        for (axis, (_, column)) in self.0.iter_mut().zip(&batch.params) {
            axis.widen(column);
        }
    }

    /// Decides which axes are logarithmic.
    pub fn scale(&mut self, config: &StudyConfig) {
        let strategy = config.strategy.source.as_ref().and_then(|source| {
            let overrides = Overrides { profile: config.strategy.profile.clone(), ..Overrides::default() };
            Strategy::parse(config.about.file.as_deref().unwrap_or("strategy"), source, &overrides).ok()
        });
        for axis in &mut self.0 {
            let Values::Number { low, high, log, .. } = &mut axis.values else { continue };
            let param = strategy.as_ref().and_then(|s| s.params.iter().find(|p| p.name == axis.name));
            let is_log = match param.map(|param| &param.domain) {
                Some(Domain::Float { log, .. } | Domain::Int { log, .. }) => *log,
                Some(_) => false,
                None => *high / *low > LOG_RATIO,
            };
            *log = is_log && *low > 0.0 && high > low;
        }
    }

    /// A space of these parameters.
    pub fn space(&self) -> Space {
        Space { params: self.0.iter().map(Axis::param).collect() }
    }
}
