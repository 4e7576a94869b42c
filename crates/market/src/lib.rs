//! Market data for Tidemill: [`Bars`] of one symbol, a [`Universe`] of many, where they come from and what is computed from them.

pub mod bars;
pub mod indicator;

pub use bars::{Bars, DAY_MS, Universe};
