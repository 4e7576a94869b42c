//! The scanner: Adaptive Trend Classification of many symbols, ranked.
//!
//! The centre is [`Scanner`]. It takes symbols as plain closes, on the CPU or streamed through devices, and returns for each
//! its trend, or why it has none. The computation is [`tidemill_market::atc`]; this crate runs it
//! for ten thousand symbols at a time.
//!
//! ```
//! use tidemill_scan::{ScanOptions, Scanner, Symbol};
//!
//! let rising: Vec<f64> = (0..200).map(|i| 100.0 + 0.1 * f64::from(i) + f64::from(i % 7)).collect();
//! let falling: Vec<f64> = rising.iter().rev().copied().collect();
//! let symbols = [
//!     Symbol { name: "UP", closes: &rising },
//!     Symbol { name: "DOWN", closes: &falling },
//!     Symbol { name: "NEW", closes: &rising[..5] },
//! ];
//! let scanned = Scanner::cpu(ScanOptions::default()).unwrap().scan(&symbols, |_| ()).unwrap();
//! let ranking = scanned.ranking();
//! assert_eq!((ranking.long[0].symbol.as_str(), ranking.short[0].symbol.as_str()), ("UP", "DOWN"));
//! assert_eq!(scanned.skipped[0].symbol, "NEW"); // too short for the averages
//! ```
//!
//! # Rules
//!
//! - **One answer.** No bit of a result depends on the device, the number of streams, the size of batches or the order in which
//!   they end.
//! - **A bad symbol is reported, not hidden:** every symbol of the input is a row, is filtered, or is skipped with its reason.
//! - **Memory that does not suffice makes batches smaller.** Any other fault of a device is an error of the scan, unless
//!   [`Scanner::or_cpu`] lets the CPU take over.

mod batch;
mod cpu;
mod device;
mod error;
mod event;
mod lane;
mod option;
mod outcome;
mod overlap;
mod scanner;
mod write;

pub use error::ScanError;
pub use event::{BatchDone, RecordContext, ScanEvent, Stage, StageSpan};
pub use option::{DeviceOptions, MAX_STREAMS, ScanOptions};
pub use outcome::{Filtered, Ranking, Row, ScanCounts, Scanned, SkipReason, Skipped, Symbol};
pub use overlap::Overlap;
pub use scanner::Scanner;
pub use write::{write_history, write_rows};
