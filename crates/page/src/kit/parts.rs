//! Figures by part of the data, as pages show them.

use serde::Serialize;

/// The figures that say most, a column for each part of the data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PartsTable {
    /// The parts.
    pub columns: Vec<PartColumn>,
    /// The figures.
    pub rows: Vec<PartsRow>,
}

/// A part of the data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PartColumn {
    /// Stable name, such as `out_of_sample`.
    pub key: String,
    /// Name to show.
    pub label: String,
    /// First day.
    pub from: String,
    /// Last day.
    pub to: String,
}

/// One figure on all parts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PartsRow {
    /// Stable name, such as `sharpe`.
    pub key: String,
    /// Name to show.
    pub label: String,
    /// The numbers, used for their signs; `None` where not defined.
    pub values: Vec<Option<f64>>,
    /// The numbers as text to show.
    pub texts: Vec<String>,
}
