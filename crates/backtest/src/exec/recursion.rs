//! Recursions that a strategy writes down. Twin of `recursion.cu`.

use super::formula::Formula;
use super::frame::{Frame, Opening};
use crate::plan::Tape;

/// Writes a recursion out as a column: the first formula until it has a value, then always the other one. Where that has none, the last value stays the last.
pub fn recursion(start: &Tape, next: &Tape, frame: &Frame<'_>, out: &mut [f64]) {
    let (start, next) = (Formula::new(start, frame), Formula::new(next, frame));
    let mut last = Opening::NONE;
    let mut values = Vec::new();
    for (bar, out) in out.iter_mut().enumerate() {
        let formula = if last.entry.is_nan() { &start } else { &next };
        *out = formula.value(bar, &last, &mut values);
        if !out.is_nan() {
            last.entry = *out;
        }
    }
}
