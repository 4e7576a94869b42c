//! Generated data: the same bytes on every platform, so that tests and demonstrations need no download.
//!
//! [`lcg`] is the small integer generator whose hashes are published with the reference results; [`regime`] makes
//! markets with trends, ranges, bursts of volatility and, if wanted, an edge whose best parameters are known; [`walk`]
//! makes prices in which there is nothing to find.

mod lcg;
mod regime;
mod walk;

pub use lcg::lcg;
pub use regime::{Planted, RegimeOptions, regime};
pub use walk::walk;
