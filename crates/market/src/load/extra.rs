//! Further columns of text: which are numbers is known only at the end.

use super::column::unnamed;
use super::number::{Decimal, is_null, parse_number};

/// A further column, kept if at least half of its filled cells are numbers. One without a filled cell is kept too, not
/// available throughout, if the header names it; without a name it is only a delimiter too many.
pub(super) struct ExtraColumn {
    pub(super) column: usize,
    values: Vec<f64>,
    n_numbers: usize,
    n_text: usize,
}

impl ExtraColumn {
    pub(super) fn new(column: usize) -> Self {
        Self { column, values: Vec::new(), n_numbers: 0, n_text: 0 }
    }

    pub(super) fn push(&mut self, cell: &[u8], decimal: Decimal) {
        let value = parse_number(cell, decimal);
        if !value.is_nan() {
            self.n_numbers += 1;
        } else if !is_null(cell) {
            self.n_text += 1;
        }
        self.values.push(value);
    }

    /// Adds the rows that follow.
    pub(super) fn append(&mut self, next: &Self) {
        self.values.extend_from_slice(&next.values);
        self.n_numbers += next.n_numbers;
        self.n_text += next.n_text;
    }

    pub(super) fn finish(self, name: &str) -> Option<Vec<f64>> {
        let is_named = name != unnamed(self.column);
        (self.n_numbers >= self.n_text && (self.n_numbers > 0 || is_named)).then_some(self.values)
    }
}
