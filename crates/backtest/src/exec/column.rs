//! Computes one slot of the plan for one tuple of scalars.

use tidemill_market::indicator::{Call, HostFunction, Prefix, Series};

use super::frame::{Frame, Scratch};
use super::mask::Mask;
use super::spare::Spare;
use crate::graph::Func;
use crate::plan::Tape;

/// What a slot holds.
#[derive(Debug)]
pub enum Item {
    /// One number per bar.
    Column(Vec<f64>),
    /// Prefix sums.
    Prefix(Box<Prefix>),
    /// One bit per bar: the condition is true.
    Mask(Mask),
    /// The same without an index, for a part of a condition. Bits past the last bar are undefined.
    Bits(Vec<u64>),
}

impl Item {
    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Column(column) => column.len() * 8,
            Self::Prefix(prefix) => prefix.bytes(),
            Self::Mask(mask) => mask.bytes(),
            Self::Bits(bits) => bits.len() * 8,
        }
    }
}

/// An input of a function: a series of numbers, prefix sums, or bits.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// Numbers.
    Column(&'a [f64]),
    /// Prefix sums.
    Prefix(&'a Prefix),
    /// Bits.
    Mask(&'a Mask),
}

/// Runs a function over its inputs.
pub fn call(func: Func, inputs: &[Input<'_>], arguments: &[f64], n_bars: usize, spare: &Spare) -> Item {
    let conditions: Vec<Vec<bool>> = inputs
        .iter()
        .map(|input| match input {
            Input::Mask(mask) => (0..n_bars).map(|bar| mask.at(bar)).collect(),
            _ => Vec::new(),
        })
        .collect();
    let series: Vec<Series<'_>> = inputs
        .iter()
        .zip(&conditions)
        .map(|(input, condition)| match input {
            Input::Column(column) => Series::Column(column),
            Input::Prefix(prefix) => Series::Sums(prefix),
            Input::Mask(_) => Series::Condition(condition),
        })
        .collect();
    match (func.run, series.as_slice()) {
        (HostFunction::Sums(moments), [Series::Column(column)]) => {
            Item::Prefix(Box::new(spare.sums(column, moments)))
        }
        (HostFunction::Sums(_), _) => unreachable!("the plan gives prefix sums one column"),
        (HostFunction::Column(run), series) => {
            let mut out = spare.column(n_bars);
            run(&Call { series, arguments }, &mut out);
            Item::Column(out)
        }
    }
}

/// Writes a formula out as a column.
pub fn formula(tape: &Tape, frame: &Frame<'_>, scratch: &mut Scratch, spare: &Spare) -> Item {
    let mut out = spare.column(frame.n_bars);
    frame.numbers(tape, scratch, &mut out);
    Item::Column(out)
}

/// Writes a condition out as bits.
pub fn mask(tape: &Tape, frame: &Frame<'_>, scratch: &mut Scratch) -> Item {
    Item::Mask(Mask::new(frame.truth(tape, scratch)))
}
