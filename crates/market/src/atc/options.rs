//! All options, their presets, and parsing them from text.
//!
//! Three versions of the computation are in use and give very different numbers: the chart indicator, its first port and the
//! repaired port. Every difference between them is an option here, and each version is a preset.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::choice::{HmaMode, KamaMode, LsmaMode, Preset, SignalMode, Undefined, ZeroPrice};
use super::error::AtcError;
use super::family::{Family, N_FAMILIES, N_LENGTHS, Robustness};

/// The longest moving average: its sums of weights are still exact numbers.
pub const MAX_LENGTH: u32 = 100_000;

/// The choices for one classification. [`AtcOptions::default`] is the preset `v2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AtcOptions {
    /// Middle length of the exponential averages.
    pub ema_len: u32,
    /// Middle length of the family called Hull.
    #[serde(alias = "hull_len")]
    pub hma_len: u32,
    /// Middle length of the weighted averages.
    pub wma_len: u32,
    /// Middle length of the double exponential averages.
    pub dema_len: u32,
    /// Middle length of the least-squares lines.
    pub lsma_len: u32,
    /// Middle length of the adaptive averages.
    pub kama_len: u32,
    /// First equity of the family EMA in layer 2.
    pub ema_w: f64,
    /// First equity of the family HMA.
    pub hma_w: f64,
    /// First equity of the family WMA.
    pub wma_w: f64,
    /// First equity of the family DEMA.
    pub dema_w: f64,
    /// First equity of the family LSMA.
    pub lsma_w: f64,
    /// First equity of the family KAMA.
    pub kama_w: f64,
    /// How far the nine lengths of a family lie apart.
    pub robustness: Robustness,
    /// Growth rate of the weight of returns, before scaling.
    #[serde(rename = "lambda", alias = "La", alias = "lambda_param")]
    pub lambda: f64,
    /// Decay of equities per bar, before scaling.
    #[serde(alias = "De")]
    pub decay: f64,
    /// What `lambda` is divided by.
    pub lambda_scale: f64,
    /// What `decay` is divided by.
    pub decay_scale: f64,
    /// Bars at the beginning that are left out.
    pub cutout: u32,
    /// A family votes long where its layer-1 signal is above this.
    pub long_cut: f64,
    /// A family votes short where its layer-1 signal is below this.
    pub short_cut: f64,
    /// LONG where the average is above this.
    pub long_threshold: f64,
    /// SHORT where the average is below this.
    pub short_threshold: f64,
    /// Gives the average one bar later, so that it can be traded on its own bar.
    pub strategy_mode: bool,
    /// Equities do not fall below this.
    pub equity_floor: f64,
    /// How long a crossing counts.
    pub signal_mode: SignalMode,
    /// Which adaptive average KAMA is.
    pub kama_mode: KamaMode,
    /// Where the least-squares line is read.
    pub lsma_mode: LsmaMode,
    /// What HMA stands for.
    pub hma_mode: HmaMode,
    /// Whether layer-1 signals are rounded to two decimals.
    pub l1_round2: bool,
    /// Whether layer 1 leaves the first `cutout` bars out too.
    pub l1_cutout: bool,
    /// Whether a missing price counts as the one before it when returns are computed.
    pub forward_fill: bool,
    /// The return after a price of zero.
    pub zero_price: ZeroPrice,
    /// What becomes of bars without a result.
    pub undefined: Undefined,
}

impl Default for AtcOptions {
    fn default() -> Self {
        Self::preset(Preset::V2)
    }
}

/// The names that [`AtcOptions::set`] knows; `hull_len`, `lambda_param`, `La` and `De` are further names of four of them, and
/// `length` sets all six lengths.
pub const OPTION_NAMES: [&str; 34] = [
    "length",
    "ema_len",
    "hma_len",
    "wma_len",
    "dema_len",
    "lsma_len",
    "kama_len",
    "ema_w",
    "hma_w",
    "wma_w",
    "dema_w",
    "lsma_w",
    "kama_w",
    "robustness",
    "lambda",
    "decay",
    "lambda_scale",
    "decay_scale",
    "cutout",
    "long_cut",
    "short_cut",
    "long_threshold",
    "short_threshold",
    "strategy_mode",
    "equity_floor",
    "signal_mode",
    "kama_mode",
    "lsma_mode",
    "hma_mode",
    "l1_round2",
    "l1_cutout",
    "forward_fill",
    "zero_price",
    "undefined",
];

const LENGTH: &str = "a whole number from 1 to 100000";
const WEIGHT: &str = "a number above 0";
const NUMBER: &str = "a number";
const FLAG: &str = "true or false";

impl AtcOptions {
    /// The choices of a version.
    pub fn preset(preset: Preset) -> Self {
        let v2 = Self {
            ema_len: 28,
            hma_len: 28,
            wma_len: 28,
            dema_len: 28,
            lsma_len: 28,
            kama_len: 28,
            ema_w: 1.0,
            hma_w: 1.0,
            wma_w: 1.0,
            dema_w: 1.0,
            lsma_w: 1.0,
            kama_w: 1.0,
            robustness: Robustness::Medium,
            lambda: 0.02,
            decay: 0.03,
            lambda_scale: 1_000.0,
            decay_scale: 100.0,
            cutout: 0,
            long_cut: 0.1,
            short_cut: -0.1,
            long_threshold: 0.1,
            short_threshold: -0.1,
            strategy_mode: false,
            equity_floor: 0.25,
            signal_mode: SignalMode::Persistent,
            kama_mode: KamaMode::Pine,
            lsma_mode: LsmaMode::Endpoint,
            hma_mode: HmaMode::Sma,
            l1_round2: true,
            l1_cutout: true,
            forward_fill: false,
            zero_price: ZeroPrice::Flat,
            undefined: Undefined::Zero,
        };
        match preset {
            Preset::V2 => v2,
            Preset::Head => Self {
                lambda_scale: 1.0,
                decay_scale: 1.0,
                long_cut: 0.49,
                short_cut: -0.49,
                signal_mode: SignalMode::Impulse,
                kama_mode: KamaMode::Head,
                lsma_mode: LsmaMode::PandasTa0314,
                forward_fill: true,
                zero_price: ZeroPrice::Ieee,
                ..v2
            },
            Preset::Pine => Self { long_cut: 0.49, short_cut: -0.49, ..v2 },
        }
    }

    /// Sets an option from its name and text; see [`OPTION_NAMES`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), AtcError> {
        let value = value.trim();
        match name {
            "length" => {
                let length = length("length", value)?;
                for family in Family::ALL {
                    *self.length_mut(family) = length;
                }
            }
            "ema_len" => self.ema_len = length("ema_len", value)?,
            "hma_len" | "hull_len" => self.hma_len = length("hma_len", value)?,
            "wma_len" => self.wma_len = length("wma_len", value)?,
            "dema_len" => self.dema_len = length("dema_len", value)?,
            "lsma_len" => self.lsma_len = length("lsma_len", value)?,
            "kama_len" => self.kama_len = length("kama_len", value)?,
            "ema_w" => self.ema_w = parse("ema_w", value, WEIGHT)?,
            "hma_w" => self.hma_w = parse("hma_w", value, WEIGHT)?,
            "wma_w" => self.wma_w = parse("wma_w", value, WEIGHT)?,
            "dema_w" => self.dema_w = parse("dema_w", value, WEIGHT)?,
            "lsma_w" => self.lsma_w = parse("lsma_w", value, WEIGHT)?,
            "kama_w" => self.kama_w = parse("kama_w", value, WEIGHT)?,
            "robustness" => self.robustness = robustness(value)?,
            "lambda" | "lambda_param" | "La" => self.lambda = parse("lambda", value, NUMBER)?,
            "decay" | "De" => self.decay = parse("decay", value, NUMBER)?,
            "lambda_scale" => self.lambda_scale = parse("lambda_scale", value, WEIGHT)?,
            "decay_scale" => self.decay_scale = parse("decay_scale", value, WEIGHT)?,
            // A negative cutout leaves out nothing.
            "cutout" => {
                let cutout: i64 = parse("cutout", value, "a whole number")?;
                self.cutout = u32::try_from(cutout.max(0)).map_err(|_| AtcError::Value {
                    name: "cutout",
                    value: value.into(),
                    expected: "a whole number below 4294967296",
                })?;
            }
            "long_cut" => self.long_cut = parse("long_cut", value, NUMBER)?,
            "short_cut" => self.short_cut = parse("short_cut", value, NUMBER)?,
            "long_threshold" => self.long_threshold = parse("long_threshold", value, NUMBER)?,
            "short_threshold" => self.short_threshold = parse("short_threshold", value, NUMBER)?,
            "strategy_mode" => self.strategy_mode = parse("strategy_mode", value, FLAG)?,
            "equity_floor" => self.equity_floor = parse("equity_floor", value, WEIGHT)?,
            "signal_mode" => self.signal_mode = parse("signal_mode", value, SignalMode::EXPECTED)?,
            "kama_mode" => self.kama_mode = parse("kama_mode", value, KamaMode::EXPECTED)?,
            "lsma_mode" => self.lsma_mode = parse("lsma_mode", value, LsmaMode::EXPECTED)?,
            "hma_mode" => self.hma_mode = parse("hma_mode", value, HmaMode::EXPECTED)?,
            "l1_round2" => self.l1_round2 = parse("l1_round2", value, FLAG)?,
            "l1_cutout" => self.l1_cutout = parse("l1_cutout", value, FLAG)?,
            "forward_fill" => self.forward_fill = parse("forward_fill", value, FLAG)?,
            "zero_price" => self.zero_price = parse("zero_price", value, ZeroPrice::EXPECTED)?,
            "undefined" => self.undefined = parse("undefined", value, Undefined::EXPECTED)?,
            _ => return Err(AtcError::Name { name: name.into() }),
        }
        Ok(())
    }

    /// Says what is wrong, the first thing first.
    pub fn validate(&self) -> Result<(), AtcError> {
        let check = |holds: bool, name: &'static str, value: f64, expected: &'static str| {
            if holds { Ok(()) } else { Err(AtcError::Value { name, value: value.to_string(), expected }) }
        };
        let names = ["ema_len", "hma_len", "wma_len", "dema_len", "lsma_len", "kama_len"];
        for (family, name) in Family::ALL.into_iter().zip(names) {
            let length = self.length(family);
            check((1..=MAX_LENGTH).contains(&length), name, f64::from(length), LENGTH)?;
        }
        let names = ["ema_w", "hma_w", "wma_w", "dema_w", "lsma_w", "kama_w"];
        for (weight, name) in self.weights().into_iter().zip(names) {
            check(weight > 0.0 && weight.is_finite(), name, weight, WEIGHT)?;
        }
        for (name, value) in [("lambda_scale", self.lambda_scale), ("decay_scale", self.decay_scale)] {
            check(value > 0.0 && value.is_finite(), name, value, WEIGHT)?;
        }
        check(self.growth_rate().is_finite(), "lambda", self.lambda, "a finite number")?;
        let decay = self.decay_rate();
        check((0.0..=1.0).contains(&decay), "decay", self.decay, "a number from 0 to decay_scale")?;
        check(
            self.equity_floor > 0.0 && self.equity_floor.is_finite(),
            "equity_floor",
            self.equity_floor,
            WEIGHT,
        )?;
        check(self.short_cut < self.long_cut, "long_cut", self.long_cut, "a number above short_cut")?;
        let apart = self.short_threshold < self.long_threshold;
        check(apart, "long_threshold", self.long_threshold, "a number above short_threshold")
    }

    /// Middle length of a family.
    pub fn length(&self, family: Family) -> u32 {
        match family {
            Family::Ema => self.ema_len,
            Family::Hma => self.hma_len,
            Family::Wma => self.wma_len,
            Family::Dema => self.dema_len,
            Family::Lsma => self.lsma_len,
            Family::Kama => self.kama_len,
        }
    }

    fn length_mut(&mut self, family: Family) -> &mut u32 {
        match family {
            Family::Ema => &mut self.ema_len,
            Family::Hma => &mut self.hma_len,
            Family::Wma => &mut self.wma_len,
            Family::Dema => &mut self.dema_len,
            Family::Lsma => &mut self.lsma_len,
            Family::Kama => &mut self.kama_len,
        }
    }

    /// The nine lengths of a family, in the order in which they are added up.
    pub fn lengths(&self, family: Family) -> [u32; N_LENGTHS] {
        self.robustness.lengths(self.length(family))
    }

    /// Bars a series must have: those of the longest moving average.
    pub fn min_bars(&self) -> usize {
        Family::ALL.into_iter().flat_map(|family| self.lengths(family)).max().unwrap_or(1) as usize
    }

    /// First equities of the families in layer 2.
    pub fn weights(&self) -> [f64; N_FAMILIES] {
        [self.ema_w, self.hma_w, self.wma_w, self.dema_w, self.lsma_w, self.kama_w]
    }

    /// Growth per bar, scaled.
    pub fn growth_rate(&self) -> f64 {
        self.lambda / self.lambda_scale
    }

    /// Decay per bar, scaled.
    pub fn decay_rate(&self) -> f64 {
        self.decay / self.decay_scale
    }

    /// Says whether a series of `n_bars` can be classified.
    pub fn check_bars(&self, n_bars: usize) -> Result<(), AtcError> {
        let needs = self.min_bars();
        if n_bars < needs {
            return Err(AtcError::TooShort { needs, has: n_bars });
        }
        if self.cutout as usize >= n_bars {
            return Err(AtcError::Cutout { cutout: self.cutout as usize, has: n_bars });
        }
        Ok(())
    }
}

fn parse<T: FromStr>(name: &'static str, value: &str, expected: &'static str) -> Result<T, AtcError> {
    value.parse().map_err(|_| AtcError::Value { name, value: value.into(), expected })
}

fn length(name: &'static str, value: &str) -> Result<u32, AtcError> {
    let length: u32 = parse(name, value, LENGTH)?;
    if (1..=MAX_LENGTH).contains(&length) {
        Ok(length)
    } else {
        Err(AtcError::Value { name, value: value.into(), expected: LENGTH })
    }
}

fn robustness(value: &str) -> Result<Robustness, AtcError> {
    let all = [("narrow", Robustness::Narrow), ("medium", Robustness::Medium), ("wide", Robustness::Wide)];
    all.into_iter()
        .find(|(name, _)| value.eq_ignore_ascii_case(name))
        .map(|(_, robustness)| robustness)
        .ok_or(AtcError::Value {
            name: "robustness",
            value: value.into(),
            expected: "Narrow, Medium or Wide",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_can_be_set() {
        for name in OPTION_NAMES {
            let mut options = AtcOptions::default();
            let value = match name {
                "length" | "cutout" => "12",
                name if name.ends_with("_len") => "12",
                "robustness" => "Wide",
                "signal_mode" => "impulse",
                "kama_mode" => "head",
                "lsma_mode" => "pandas_ta_0314",
                "hma_mode" => "hull",
                "l1_round2" | "l1_cutout" => "false",
                "strategy_mode" | "forward_fill" => "true",
                "zero_price" => "ieee",
                "undefined" => "skip",
                "short_cut" | "short_threshold" => "-0.3",
                _ => "0.5",
            };
            options.set(name, value).unwrap();
            assert_ne!(options, AtcOptions::default(), "{name}");
            options.validate().unwrap();
            assert!(options.set(name, "what").is_err(), "{name}");
        }
    }

    #[test]
    fn other_names_of_options_are_understood() {
        let mut options = AtcOptions::default();
        for (name, value) in [("hull_len", "9"), ("La", "0.5"), ("De", "0.25"), ("cutout", "-4")] {
            options.set(name, value).unwrap();
        }
        assert_eq!((options.hma_len, options.lambda, options.decay, options.cutout), (9, 0.5, 0.25, 0));
        options.set("lambda_param", "0.75").unwrap();
        assert_eq!(options.lambda, 0.75);
        options.set("length", "14").unwrap();
        assert!(Family::ALL.into_iter().all(|family| options.length(family) == 14));
    }

    #[test]
    fn mistakes_are_named_with_their_cure() {
        let mut options = AtcOptions::default();
        let message = options.set("lenght", "3").unwrap_err().to_string();
        assert!(message.contains("`lenght`") && message.contains("signal_mode"), "{message}");
        let message = options.set("ema_len", "0").unwrap_err().to_string();
        assert!(message.contains("ema_len") && message.contains("from 1"), "{message}");
        let message = options.set("kama_mode", "slow").unwrap_err().to_string();
        assert!(message.contains("pine or head"), "{message}");
        for (name, value) in [("kama_w", "0"), ("decay", "200"), ("lambda", "inf"), ("long_threshold", "-2")]
        {
            let mut options = AtcOptions::default();
            options.set(name, value).unwrap();
            assert!(options.validate().is_err(), "{name} = {value}");
        }
    }

    #[test]
    fn presets_have_names() {
        for preset in [Preset::V2, Preset::Head, Preset::Pine] {
            assert_eq!(preset.to_string().parse::<Preset>().unwrap(), preset);
            AtcOptions::preset(preset).validate().unwrap();
        }
        let error = "v3".parse::<Preset>().unwrap_err();
        assert_eq!(error.to_string(), "`preset` cannot be `v3`: expected v2, head or pine");
    }

    #[test]
    fn stored_options_come_back() {
        let options = AtcOptions { cutout: 7, ..AtcOptions::preset(Preset::Head) };
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<AtcOptions>(&text).unwrap(), options);
        let few: AtcOptions = serde_json::from_str(r#"{"hull_len": 5, "La": 0.5}"#).unwrap();
        assert_eq!((few.hma_len, few.lambda, few.ema_len), (5, 0.5, 28));
        assert!(serde_json::from_str::<AtcOptions>(r#"{"len": 5}"#).is_err());
    }
}
