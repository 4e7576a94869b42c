//! Parameters as axes, and the trials that are drawn across them: what `axis.js` and `parallel.js` read, on the page of a study and
//! on the dashboard.

use serde::Serialize;

/// A parameter and the values it took.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// Name of the parameter.
    pub name: String,
    /// Its share in what separates good trials from the others; the shares of all parameters sum to one. NaN if unknown.
    pub importance: f64,
    /// The kind of its values, and their range.
    #[serde(flatten)]
    pub values: AxisValues,
}

/// The values of a parameter.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AxisValues {
    /// Numbers.
    Number {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
        /// Whether all are whole numbers.
        is_whole: bool,
        /// Whether the axis is logarithmic.
        is_log: bool,
    },
    /// Names, of which a value is the index; a switch has `off` and `on`.
    Names {
        /// The names in their order.
        options: Vec<String>,
    },
}

/// Trials as numbers to draw.
#[derive(Clone, Debug, Serialize)]
pub struct PlottedTrials {
    /// Numbers of the trials: the best, best first, then a sample of the others.
    pub trials: Vec<u64>,
    /// How many of them are the best ones.
    pub n_best: usize,
    /// Per objective, one value per trial.
    pub scores: Vec<Vec<Option<f64>>>,
    /// Per axis, one value per trial.
    pub values: Vec<Vec<Option<f64>>>,
}
