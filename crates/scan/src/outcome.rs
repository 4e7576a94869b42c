//! What a scan finds: a row for every symbol with a signal, a reason for every other one.

use std::fmt;

use serde::Serialize;
use tidemill_market::atc::{AtcError, Class};

/// A symbol and its closes, oldest first. NaN is "not available".
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// The name that results carry.
    pub name: &'a str,
    /// Closing prices.
    pub closes: &'a [f64],
}

/// A symbol with a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the symbol.
    pub symbol: String,
    /// Its place in the input.
    pub index: usize,
    /// The last average, from −1 to 1.
    pub signal: f64,
    /// The sign of the signal: 1, 0 or −1.
    pub trend: i32,
    /// What the thresholds make of the signal.
    pub class: Class,
    /// The last close.
    pub price: f64,
    /// Bars that the signal was computed from.
    pub bars: usize,
    /// The average of each of these bars, if the history was requested.
    pub average: Option<Vec<f64>>,
}

/// A symbol without a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// Name of the symbol.
    pub symbol: String,
    /// Its place in the input.
    pub index: usize,
    /// Why it has no signal.
    pub reason: SkipReason,
}

/// A symbol whose signal is below the least strength.
#[derive(Clone, Debug, PartialEq)]
pub struct Filtered {
    /// Name of the symbol.
    pub symbol: String,
    /// Its place in the input.
    pub index: usize,
    /// The last average.
    pub signal: f64,
}

/// Why a symbol has no signal.
#[derive(Clone, Debug, PartialEq)]
pub enum SkipReason {
    /// It has no bar.
    NoBars,
    /// It has fewer bars than the scan uses.
    FewBars {
        /// Bars it has.
        bars: usize,
        /// Bars that the scan uses.
        wanted: usize,
    },
    /// It has more bars than can be counted.
    ManyBars {
        /// Bars it has.
        bars: usize,
    },
    /// Its last price is not a number, infinite, zero or negative.
    BadPrice {
        /// The price.
        price: f64,
    },
    /// The computation refuses it, for example because it is shorter than the longest average.
    Refused {
        /// The error of the computation.
        error: AtcError,
    },
    /// Its last average is not a number.
    NoSignal,
}

impl SkipReason {
    /// Whether something is wrong with the symbol, other than that it is too short to tell.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::BadPrice { .. } | Self::NoSignal)
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBars => write!(f, "it has no bars"),
            Self::FewBars { bars, wanted } => write!(f, "it has {bars} bars, the scan needs {wanted}"),
            Self::ManyBars { bars } => write!(f, "its {bars} bars are more than can be scanned"),
            Self::BadPrice { price } => write!(f, "its last price is {price}"),
            Self::Refused { error: AtcError::TooShort { needs, has } } => {
                write!(f, "it has {has} bars, the longest moving average needs {needs}")
            }
            Self::Refused { error: AtcError::Cutout { cutout, has } } => {
                write!(f, "it has {has} bars, `cutout` leaves out {cutout}")
            }
            Self::Refused { error } => write!(f, "{error}"),
            Self::NoSignal => write!(f, "its last average is not a number"),
        }
    }
}

/// What a scan found. Every symbol of the input is in exactly one of the lists, each in the order of the input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scanned {
    /// Symbols with a signal.
    pub rows: Vec<Row>,
    /// Symbols without one, and why.
    pub skipped: Vec<Skipped>,
    /// Symbols whose signal is below the least strength.
    pub filtered: Vec<Filtered>,
}

/// How many symbols a scan found of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScanCounts {
    /// Symbols of the input, those that could not be read included.
    pub scanned: usize,
    /// Rising trends.
    pub long: usize,
    /// Falling trends.
    pub short: usize,
    /// Signals of exactly zero.
    pub flat: usize,
    /// Signals below the least strength.
    pub filtered: usize,
    /// Symbols without a signal.
    pub skipped: usize,
    /// Those of them that something is wrong with.
    pub errors: usize,
}

impl Scanned {
    /// Counts the symbols; `n_unusable` more could not be read and count as skipped with an error.
    pub fn counts(&self, n_unusable: usize) -> ScanCounts {
        let of = |trend: i32| self.rows.iter().filter(|row| row.trend == trend).count();
        ScanCounts {
            scanned: self.rows.len() + self.filtered.len() + self.skipped.len() + n_unusable,
            long: of(1),
            short: of(-1),
            flat: of(0),
            filtered: self.filtered.len(),
            skipped: self.skipped.len() + n_unusable,
            errors: n_unusable + self.skipped.iter().filter(|skipped| skipped.reason.is_error()).count(),
        }
    }

    /// The rows by direction and strength.
    pub fn ranking(&self) -> Ranking<'_> {
        let of = |trend: i32| self.rows.iter().filter(move |row| row.trend == trend);
        let mut ranking = Ranking { long: of(1).collect(), short: of(-1).collect(), flat: of(0).collect() };
        ranking.long.sort_by(|a, b| b.signal.total_cmp(&a.signal).then_with(|| a.symbol.cmp(&b.symbol)));
        ranking.short.sort_by(|a, b| a.signal.total_cmp(&b.signal).then_with(|| a.symbol.cmp(&b.symbol)));
        ranking.flat.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        ranking
    }
}

/// Rows, the strongest first; of equal signals the first by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking<'a> {
    /// Rising trends.
    pub long: Vec<&'a Row>,
    /// Falling trends.
    pub short: Vec<&'a Row>,
    /// Signals of exactly zero, which only a scan without a least signal keeps.
    pub flat: Vec<&'a Row>,
}
