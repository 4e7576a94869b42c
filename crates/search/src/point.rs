//! Parameter sets and their scores, stored compactly.

use serde::{Deserialize, Serialize};

/// Many parameter sets of one space: column-major, one `f64` per value.
///
/// Integers are exact, a choice is the index of its option, a switch is 0 or 1, and NaN marks a parameter whose condition does not hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    len: usize,
    columns: Vec<Vec<f64>>,
}

impl Points {
    /// No parameter sets yet, of a space with `n_params` parameters.
    pub fn new(n_params: usize) -> Self {
        Self { len: 0, columns: vec![Vec::new(); n_params] }
    }

    /// Number of parameter sets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of parameters.
    pub fn n_params(&self) -> usize {
        self.columns.len()
    }

    /// Adds one parameter set.
    ///
    /// # Panics
    /// If `row` has not one value per parameter.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns.len(), "a point has one value per parameter");
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
        self.len += 1;
    }

    /// All values of one parameter.
    pub fn column(&self, param_idx: usize) -> &[f64] {
        &self.columns[param_idx]
    }

    /// One value.
    pub fn value(&self, point_idx: usize, param_idx: usize) -> f64 {
        self.columns[param_idx][point_idx]
    }

    /// Copies one parameter set into `row`.
    pub fn read_row(&self, point_idx: usize, row: &mut [f64]) {
        for (slot, column) in row.iter_mut().zip(&self.columns) {
            *slot = column[point_idx];
        }
    }
}

/// What a trial was worth to the objective.
///
/// `Invalid` is an outcome, not an error: no trade, no variance, or a requirement not met. It ranks below every valid score and is shown as `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Score {
    /// A finite value, larger is better.
    Valid(f64),
    /// No meaningful value.
    Invalid,
}

impl Score {
    /// A valid score if the value is finite.
    pub fn new(value: f64) -> Self {
        if value.is_finite() { Self::Valid(value) } else { Self::Invalid }
    }

    /// The value, if valid.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Invalid => None,
        }
    }

    /// Best first, invalid last.
    pub fn cmp_best_first(self, other: Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Valid(a), Self::Valid(b)) => b.total_cmp(&a),
            (Self::Valid(_), Self::Invalid) => std::cmp::Ordering::Less,
            (Self::Invalid, Self::Valid(_)) => std::cmp::Ordering::Greater,
            (Self::Invalid, Self::Invalid) => std::cmp::Ordering::Equal,
        }
    }
}
