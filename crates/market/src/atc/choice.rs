//! Options that choose between named rules: the versions of the computation and each place where they differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::AtcError;

/// An enumeration whose values have names.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident, $option:literal, $expected:literal { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            pub(super) const EXPECTED: &'static str = $expected;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }

        impl FromStr for $name {
            type Err = AtcError;

            fn from_str(text: &str) -> Result<Self, AtcError> {
                $(if text.eq_ignore_ascii_case($text) {
                    return Ok(Self::$variant);
                })+
                Err(AtcError::Value { name: $option, value: text.into(), expected: Self::EXPECTED })
            }
        }
    };
}

choice! {
    /// A version of the computation.
    Preset, "preset", "v2, head or pine" {
        /// The repaired port, the default: latched signals, scaled growth and decay, cuts at ±0.1.
        V2 = "v2",
        /// The first public port, its mistakes included.
        Head = "head",
        /// The chart indicator: as `V2`, with cuts at ±0.49.
        Pine = "pine",
    }
}

choice! {
    /// How long a crossing counts.
    SignalMode, "signal_mode", "persistent or impulse" {
        /// Until the opposite crossing.
        Persistent = "persistent",
        /// On its own bar only.
        Impulse = "impulse",
    }
}

choice! {
    /// Which adaptive average KAMA is.
    KamaMode, "kama_mode", "pine or head" {
        /// The net move over the way walked by the same bars; rounded smoothing constants.
        Pine = "pine",
        /// The net move over a way that is one bar short, clipped.
        Head = "head",
    }
}

choice! {
    /// Where the least-squares line is read.
    LsmaMode, "lsma_mode", "endpoint or pandas_ta_0314" {
        /// At the newest bar.
        Endpoint = "endpoint",
        /// One bar early, as pandas_ta 0.3.14 did.
        PandasTa0314 = "pandas_ta_0314",
    }
}

choice! {
    /// What HMA stands for.
    HmaMode, "hma_mode", "sma or hull" {
        /// A simple mean, as in the original.
        Sma = "sma",
        /// Hull's average.
        Hull = "hull",
    }
}

choice! {
    /// The return of a bar after a price of zero.
    ZeroPrice, "zero_price", "flat or ieee" {
        /// The bar has no return.
        Flat = "flat",
        /// What the division gives: infinite, or not available.
        Ieee = "ieee",
    }
}

choice! {
    /// What becomes of bars without a result.
    Undefined, "undefined", "zero or skip" {
        /// The average is 0 there, as it is where any equity is not available.
        Zero = "zero",
        /// Bars before the cutout are not available; an equity that is not available weighs nothing.
        Skip = "skip",
    }
}
