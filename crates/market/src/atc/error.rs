//! What can be wrong with a request for Adaptive Trend Classification.

/// Why there is no classification.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AtcError {
    /// The series is shorter than the longest moving average.
    #[error(
        "{has} bars are too few: the longest moving average needs {needs}\n  hint: load more bars, or set a shorter length"
    )]
    TooShort {
        /// Bars that are needed.
        needs: usize,
        /// Bars there are.
        has: usize,
    },
    /// An option has a value it cannot have.
    #[error("`{name}` cannot be `{value}`: expected {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// The expected values.
        expected: &'static str,
    },
    /// There is no option of that name.
    #[error("there is no option `{name}`\n  hint: there are {}", super::OPTION_NAMES.join(", "))]
    Name {
        /// What was given.
        name: String,
    },
    /// All bars would be left out.
    #[error("`cutout` leaves out {cutout} bars, but there are only {has}\n  hint: set a smaller cutout")]
    Cutout {
        /// Bars to leave out.
        cutout: usize,
        /// Bars there are.
        has: usize,
    },
    /// Series that belong together differ in length.
    #[error("`{name}` has {has} values, but there are {needs} bars")]
    Length {
        /// The series.
        name: &'static str,
        /// Number of values given.
        has: usize,
        /// The number of bars, or the least that is needed.
        needs: usize,
    },
}
