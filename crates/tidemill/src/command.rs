//! One module per command.

pub mod backtest;
pub mod bench;
pub mod data;
pub mod strategies;
pub mod study;
pub mod sweep;
