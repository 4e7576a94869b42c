//! One module per command.

pub mod backtest;
pub mod bench;
pub mod color;
pub mod completions;
pub mod dash;
pub mod data;
pub mod doctor;
pub mod monitor;
pub mod parity;
pub mod scan;
pub mod signal;
pub mod strategies;
pub mod study;
pub mod sweep;
pub mod walkforward;
pub mod worker;
