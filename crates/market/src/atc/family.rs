//! The six families of moving averages, and the nine lengths each of them has.

use serde::{Deserialize, Serialize};

/// How many families there are.
pub const N_FAMILIES: usize = 6;

/// How many lengths every family has.
pub const N_LENGTHS: usize = 9;

/// One value for each length of a family.
pub(super) type Nine = [f64; N_LENGTHS];

/// A family of moving averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Exponential, seeded with a simple mean.
    Ema,
    /// What the original calls Hull: a simple mean, unless the options ask for Hull's average.
    Hma,
    /// Linearly weighted.
    Wma,
    /// Double exponential.
    Dema,
    /// A point of the least-squares line.
    Lsma,
    /// Kaufman's adaptive average.
    Kama,
}

impl Family {
    /// All families, in the order in which they are added up.
    pub const ALL: [Self; N_FAMILIES] = [Self::Ema, Self::Hma, Self::Wma, Self::Dema, Self::Lsma, Self::Kama];

    /// Its name in capital letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ema => "EMA",
            Self::Hma => "HMA",
            Self::Wma => "WMA",
            Self::Dema => "DEMA",
            Self::Lsma => "LSMA",
            Self::Kama => "KAMA",
        }
    }
}

/// How far the nine lengths of a family lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Robustness {
    /// 1, 2, 3 and 4 bars from the middle.
    Narrow,
    /// 1, 2, 4 and 6 bars.
    #[default]
    Medium,
    /// 1, 3, 5 and 7 bars.
    Wide,
}

impl Robustness {
    /// Distances from the middle length.
    pub fn steps(self) -> [u32; 4] {
        match self {
            Self::Narrow => [1, 2, 3, 4],
            Self::Medium => [1, 2, 4, 6],
            Self::Wide => [1, 3, 5, 7],
        }
    }

    /// The nine lengths around `length`, in the order in which they are added up. None is below 1, so that short ones may occur twice.
    pub fn lengths(self, length: u32) -> [u32; N_LENGTHS] {
        let mut lengths = [length; N_LENGTHS];
        for (k, step) in self.steps().into_iter().enumerate() {
            lengths[1 + k] = length.saturating_add(step);
            lengths[5 + k] = length.saturating_sub(step).max(1);
        }
        lengths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_original_in_its_order() {
        assert_eq!(Robustness::Medium.lengths(28), [28, 29, 30, 32, 34, 27, 26, 24, 22]);
        assert_eq!(Robustness::Wide.lengths(28), [28, 29, 31, 33, 35, 27, 25, 23, 21]);
        assert_eq!(Robustness::Narrow.lengths(28), [28, 29, 30, 31, 32, 27, 26, 25, 24]);
    }

    #[test]
    fn no_length_is_below_one() {
        assert_eq!(Robustness::Medium.lengths(3), [3, 4, 5, 7, 9, 2, 1, 1, 1]);
        assert_eq!(Robustness::Wide.lengths(1), [1, 2, 4, 6, 8, 1, 1, 1, 1]);
    }
}
