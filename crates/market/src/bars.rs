//! One symbol's bars, as columns.
//!
//! A `Bars` value is always clean: timestamps strictly rise, prices are finite and positive, `low` and `high`
//! enclose `open` and `close`, volume is finite and not negative. Loaders and generators guarantee it, so that nothing downstream has to ask.

use serde::{Deserialize, Serialize};

/// Milliseconds of one UTC day.
pub const DAY_MS: i64 = 86_400_000;

/// Clean OHLCV columns of one symbol, oldest bar first.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Bars {
    /// The instrument's name, as the data spelled it.
    pub symbol: String,
    /// Length of one bar; the most frequent step between timestamps.
    pub timeframe_ms: i64,
    /// Open time of each bar, UTC milliseconds.
    pub ts_ms: Vec<i64>,
    /// First price.
    pub open: Vec<f64>,
    /// Highest price.
    pub high: Vec<f64>,
    /// Lowest price.
    pub low: Vec<f64>,
    /// Last price.
    pub close: Vec<f64>,
    /// Traded volume; zeros where the source has none.
    pub volume: Vec<f64>,
    /// Whether the data has closes alone. Open, high and low then repeat the close: a strategy that needs them is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closes_only: bool,
    /// Further numeric columns of the data, usable as series in a strategy. NaN is "not available".
    pub extra: Vec<(String, Vec<f64>)>,
}

impl Bars {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.ts_ms.len()
    }

    /// Whether there is no bar at all.
    pub fn is_empty(&self) -> bool {
        self.ts_ms.is_empty()
    }

    /// UTC day number (days since 1970-01-01) of a bar.
    pub fn day(&self, bar_idx: usize) -> i64 {
        self.ts_ms[bar_idx].div_euclid(DAY_MS)
    }
}

/// Many symbols, ordered by name; what every back-test runs on.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Universe {
    /// The symbols, ordered by name.
    pub symbols: Vec<Bars>,
}

impl Universe {
    /// Bars of all symbols together.
    pub fn n_bars(&self) -> usize {
        self.symbols.iter().map(Bars::len).sum()
    }
}
