//! One module per command.

pub mod backtest;
pub mod bench;
pub mod data;
pub mod doctor;
pub mod parity;
pub mod strategies;
pub mod study;
pub mod sweep;
