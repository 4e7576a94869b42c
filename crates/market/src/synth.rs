//! Generated data: the same bytes on every platform, so that tests and demonstrations need no download.
//!
//! [`lcg`] is the small integer generator whose hashes are published with the reference results; [`regime`] makes
//! markets with trends, ranges, bursts of volatility and, if wanted, an edge whose best parameters are known; [`walk`]
//! makes prices in which there is nothing to find, [`walks`] the same with a drift or with clusters of volatility, and
//! [`shuffle_blocks`] takes what there is to find out of real prices.

mod generate;
mod lcg;
mod regime;
mod shuffle;
mod walk;

pub use generate::{GenerateError, GenerateOptions, MarketKind};
pub use lcg::lcg;
pub use regime::{Planted, RegimeOptions, regime};
pub use shuffle::shuffle_blocks;
pub use walk::{WalkOptions, walk, walks};
