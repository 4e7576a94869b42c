//! Indicators as plain functions over slices, one file each.
//!
//! Every function reads its inputs from slices and writes one value per bar into `out`, a slice of the same
//! length (if lengths differ, the shortest decides and the rest of `out` is NaN). Bar `i` of the result
//! depends on bars `0 … i` only. No function panics, whatever the window or the data; a window of 0 is NaN
//! throughout, and so is one longer than the series, except where the first value does not wait for it: [`ema`],
//! [`dema`] and [`tema`] start with the first bar, whatever their span, and `fast` and `slow` of [`kama`] are
//! smoothing lengths too, only its window has to fit.
//!
//! **Not available.** A non-finite input (NaN or infinite) is not available, and NaN is how the result says
//! so. *Windowed* functions are NaN while a window is incomplete or holds such a value. *Recursive* ones skip
//! it: NaN at its bar, the state stays as it was, as if the bar did not exist. Where several columns enter, a
//! bar with any of them non-finite counts as missing.
//!
//! **Numbers.** `+ − × ÷ √` and comparisons in one fixed order, no fused operations, so that a twin on
//! another device can give the same bits. Windowed sums come from a [`Prefix`] in double-double; recursive
//! averages run along time in plain `f64`.
//!
//! | file | functions | kind |
//! |---|---|---|
//! | `prefix` | [`Prefix`], [`Moments`]: what rolling sums are made of, also one bar at a time | – |
//! | `sma`, `wma`, `lsma`, `hma` | [`sma`], [`wma`], [`lsma`], [`hma`] | windowed |
//! | `stddev`, `zscore` | [`stddev`], [`stddev_sample`], [`zscore`] | windowed |
//! | `ema`, `ema_sma`, `rma`, `dema`, `tema`, `kama` | [`ema`], [`ema_sma`], [`rma`], [`dema`], [`tema`], [`kama`] | recursive |
//! | `true_range` | [`true_range`] | recursive: looks back to the last available close |
//! | `atr` | [`atr`] | windowed |
//! | `atr_wilder`, `rsi`, `adx` | [`atr_wilder`], [`rsi`], [`adx()`], [`plus_di`], [`minus_di`], [`directional`] | recursive |
//! | `cci` | [`cci`] | windowed |
//! | `obv`, `cum` | [`obv`], [`cum`] | recursive |
//! | `extreme` | [`highest`], [`lowest`], [`highest_at`], [`lowest_at`] | windowed |
//! | `swing` | [`swing_high`], [`swing_low`], [`swing_high_at`], [`swing_low_at`] | windowed |
//! | `atc` | [`atc`] | recursive: each of its averages in its way |
//! | `bars_since`, `value_when` | [`bars_since`], [`value_when`] | latest true bar |
//!
//! Private to them: `column` (lengths and masks) and `double_double` (the arithmetic of [`Prefix`]).
//!
//! The `.cu` and `.cuh` files beside them are their twins for a GPU; [`device`] says how they are called.
//!
//! ```
//! use tidemill_market::indicator::{Moments, Prefix, ema, sma};
//!
//! let close = [1.0, 2.0, 4.0, 8.0];
//! let mut fast = [0.0; 4];
//! ema(&close, 3, &mut fast);
//! assert_eq!(fast, [1.0, 1.5, 2.75, 5.375]);
//!
//! // One prefix serves every window length.
//! let sums = Prefix::new(&close, Moments::Sum);
//! let mut mean = [0.0; 4];
//! sma(&sums, 2, &mut mean);
//! assert_eq!(mean[1..], [1.5, 3.0, 6.0]);
//! assert_eq!(sums.mean_at(3, 4), 3.75);
//! ```

mod adx;
mod atc;
mod atr;
mod atr_wilder;
mod bars_since;
mod cci;
mod column;
mod cum;
mod dema;
pub mod device;
pub(crate) mod double_double;
mod ema;
mod ema_sma;
mod extreme;
mod hma;
mod kama;
mod lsma;
mod obv;
mod prefix;
mod rma;
mod rsi;
mod sma;
mod stddev;
mod swing;
mod tema;
mod true_range;
mod value_when;
mod wma;
mod zscore;

pub use adx::{Directional, adx, directional, minus_di, plus_di};
pub use atc::atc;
pub use atr::atr;
pub use atr_wilder::atr_wilder;
pub use bars_since::bars_since;
pub use cci::cci;
pub use cum::cum;
pub use dema::dema;
pub use ema::{EMA_LANES, ema, ema_many};
pub use ema_sma::ema_sma;
pub use extreme::{highest, highest_at, lowest, lowest_at};
pub use hma::hma;
pub use kama::kama;
pub use lsma::lsma;
pub use obv::obv;
pub use prefix::{Moments, Prefix};
pub use rma::rma;
pub use rsi::rsi;
pub use sma::sma;
pub use stddev::{stddev, stddev_sample};
pub use swing::{swing_high, swing_high_at, swing_low, swing_low_at};
pub use tema::tema;
pub use true_range::true_range;
pub use value_when::value_when;
pub use wma::wma;
pub use zscore::zscore;
