//! Random strategies and random data: what executors are compared on, by the tests and by `tidemill parity`.
//!
//! Everything is read from a [`tape`] of numbers, so that the same numbers make the same case everywhere.

pub mod data;
pub mod tape;
pub mod text;
