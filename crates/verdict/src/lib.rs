//! How likely the winner of a search is to be luck: a [`Verdict`] over [`Check`]s, and the statistics behind them.
//!
//! The best of a million trials is mostly luck. What is here says how much of it: from the daily returns of a winner
//! ([`sharpe`]) and the market they were earned in ([`alpha`]), from all trials by the block of time ([`Blocks`], [`overfit`](mod@overfit), [`trials`]), from its trades
//! ([`bootstrap`](mod@bootstrap)) and from what lies around it ([`neighborhood`]). Nothing here knows what a trade or a strategy is, and
//! everything is a function of its arguments alone: no clock, no state, no order of threads.
//!
//! ```
//! use tidemill_verdict::{Moments, expected_maximum};
//!
//! let returns: Vec<f64> = (0..500).map(|day| 0.001 + if day % 2 == 0 { 0.01 } else { -0.01 }).collect();
//! let moments = Moments::new(&returns).unwrap();
//! // One trial of this quality is hardly luck; the best of ten thousand may be.
//! assert!(moments.probabilistic(0.0) > 0.98);
//! assert!(moments.deflated(10_000.0, 1.0 / 499.0) < 0.1);
//! assert!(expected_maximum(10_000.0) > 3.8);
//! ```

pub mod alpha;
pub mod blocks;
pub mod bootstrap;
pub mod check;
pub mod neighborhood;
mod normal;
pub mod overfit;
pub mod sharpe;
pub mod trials;

pub use alpha::Alpha;
pub use blocks::Blocks;
pub use bootstrap::{Interval, bootstrap};
pub use check::{Check, Evidence, Grade, MarketEvidence, Standard, Verdict};
pub use neighborhood::{Plateau, neighbors, plateau};
pub use overfit::{Overfit, overfit};
pub use sharpe::{Moments, expected_maximum};
pub use trials::{TrialSpread, mean_correlation, n_independent, noise_variance};
