//! What an average means: a class by two thresholds, or a trend by its sign.

use serde::{Deserialize, Serialize};

use super::options::AtcOptions;

/// The class of a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// The average is below the short threshold.
    Short,
    /// Neither.
    #[default]
    Neutral,
    /// The average is above the long threshold.
    Long,
}

impl Class {
    /// Its name in capital letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "SHORT",
            Self::Neutral => "NEUTRAL",
            Self::Long => "LONG",
        }
    }

    /// −1, 0 or 1: how a device writes it.
    pub fn number(self) -> i32 {
        match self {
            Self::Short => -1,
            Self::Neutral => 0,
            Self::Long => 1,
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The class of an average; one that is not available is neutral.
pub fn classify(average: f64, options: &AtcOptions) -> Class {
    if average > options.long_threshold {
        Class::Long
    } else if average < options.short_threshold {
        Class::Short
    } else {
        Class::Neutral
    }
}

/// The sign of an average, as −1, 0 or 1; 0 for one that is not available.
pub fn trend(average: f64) -> i32 {
    i32::from(average > 0.0) - i32::from(average < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_belong_to_the_middle() {
        let options = AtcOptions::default();
        let classes =
            [0.1000001, 0.1, 0.0, -0.1, -0.1000001, f64::NAN].map(|average| classify(average, &options));
        use Class::{Long, Neutral, Short};
        assert_eq!(classes, [Long, Neutral, Neutral, Neutral, Short, Neutral]);
    }

    #[test]
    fn trend_is_the_sign() {
        assert_eq!([1e-300, -0.0, -2.0, f64::NAN].map(trend), [1, 0, -1, 0]);
    }
}
