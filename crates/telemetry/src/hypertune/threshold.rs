//! When a rule fires.

use serde::{Deserialize, Serialize};

/// What the rules compare with. As a table of settings every key may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// Batches over which a rule looks, and over which an effect is measured. Default 8.
    pub window_batches: u64,
    /// Seconds that these batches have to cover at least; more batches are taken if they are quick. Default 0.25.
    pub window_s: f64,
    /// Batches for which a symptom and a knob rest after an action. Default 20.
    pub cooldown_batches: u64,
    /// Seconds for which they rest at least. Default 10.
    pub cooldown_s: f64,
    /// `no_improvement`: batches without a better score. Default 50.
    pub no_improvement_batches: u64,
    /// `stalled_phase`: silence of a phase, as a multiple of the 99th percentile of its durations, or of its mean distance if that is
    /// longer. Default 20.
    pub stalled_factor: f64,
    /// `stalled_phase`: the least silence in seconds. Default 10.
    pub stalled_s: f64,
    /// `stalled_phase`: steps after which a phase counts as one that comes regularly. Default 20.
    pub stalled_steps: u64,
    /// `low_efficiency`: share of the time for which the device should be busy. Default 0.85.
    pub low_busy: f64,
    /// How full the device may be for a remedy that puts more work beside what it has, such as another stream. Default 0.75.
    pub enough_fill: f64,
    /// `low_efficiency`: share of the host's work on a batch that should run beside that of the device, where it takes more than a
    /// twentieth of the time. Default 0.5.
    pub low_overlap: f64,
    /// `low_efficiency`: milliseconds that the device should work on a batch, because what a batch costs beside that is then
    /// small. Default 20.
    pub short_batch_ms: f64,
    /// `many_invalid`: share of items that failed. Default 0.5.
    // Three keys have the name that the first workload gave the rule; settings files hold them.
    #[serde(rename = "many_invalid")]
    pub failure_share: f64,
    /// `many_invalid`: items over which it is taken at least. Default 200.
    #[serde(rename = "many_invalid_trials")]
    pub failure_items: u64,
    /// `high_conflicts`: batches for which the value that has to fall does not. Default 50.
    #[serde(rename = "high_conflicts_batches")]
    pub falling_batches: u64,
    /// How far beyond its threshold a share has to get before a symptom counts as gone. Default 0.05.
    pub hysteresis: f64,
    /// Gain at which an action paid, so that it may be followed by another one at once. Default 0.1.
    pub pays: f64,
    /// Loss of speed at which an action is taken back. Default 0.1.
    pub worse: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            window_batches: 8,
            window_s: 0.25,
            cooldown_batches: 20,
            cooldown_s: 10.0,
            no_improvement_batches: 50,
            stalled_factor: 20.0,
            stalled_s: 10.0,
            stalled_steps: 20,
            low_busy: 0.85,
            enough_fill: 0.75,
            low_overlap: 0.5,
            short_batch_ms: 20.0,
            failure_share: 0.5,
            failure_items: 200,
            falling_batches: 50,
            hysteresis: 0.05,
            pays: 0.1,
            worse: 0.1,
        }
    }
}

/// A threshold outside its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {value}: expected {expected}")]
pub struct ThresholdError {
    /// Its key among the settings.
    pub name: &'static str,
    /// The value that was given.
    pub value: f64,
    /// The values that are allowed.
    pub expected: &'static str,
}

impl Thresholds {
    /// Refuses the first threshold outside its range.
    pub fn check(&self) -> Result<(), ThresholdError> {
        let counts = [
            ("window_batches", self.window_batches),
            ("no_improvement_batches", self.no_improvement_batches),
            ("stalled_steps", self.stalled_steps),
            ("many_invalid_trials", self.failure_items),
            ("high_conflicts_batches", self.falling_batches),
        ];
        for (name, value) in counts {
            if value == 0 {
                return Err(ThresholdError { name, value: 0.0, expected: "at least 1" });
            }
        }
        let shares = [
            ("low_busy", self.low_busy),
            ("enough_fill", self.enough_fill),
            ("low_overlap", self.low_overlap),
            ("many_invalid", self.failure_share),
            ("hysteresis", self.hysteresis),
            ("pays", self.pays),
            ("worse", self.worse),
        ];
        for (name, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(ThresholdError { name, value, expected: "a share from 0 to 1" });
            }
        }
        let amounts = [
            ("window_s", self.window_s),
            ("cooldown_s", self.cooldown_s),
            ("stalled_factor", self.stalled_factor),
            ("stalled_s", self.stalled_s),
            ("short_batch_ms", self.short_batch_ms),
        ];
        for (name, value) in amounts {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(ThresholdError { name, value, expected: "a number that is not negative" });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense_and_settings_change_single_ones() {
        Thresholds::default().check().unwrap();
        let set: Thresholds = serde_json::from_str(r#"{"low_busy": 0.9, "window_batches": 4}"#).unwrap();
        assert_eq!(set, Thresholds { low_busy: 0.9, window_batches: 4, ..Thresholds::default() });
        let keys = r#"{"many_invalid": 0.6, "many_invalid_trials": 9, "high_conflicts_batches": 7}"#;
        let set: Thresholds = serde_json::from_str(keys).unwrap();
        assert_eq!((set.failure_share, set.failure_items, set.falling_batches), (0.6, 9, 7));
        let error = serde_json::from_str::<Thresholds>(r#"{"low_bussy": 0.9}"#).unwrap_err().to_string();
        assert!(error.contains("low_bussy") && error.contains("low_busy"), "{error}");
    }

    #[test]
    fn nonsense_is_named() {
        let check = |thresholds: Thresholds| thresholds.check().unwrap_err().to_string();
        let good = Thresholds::default;
        assert_eq!(
            check(Thresholds { low_busy: 85.0, ..good() }),
            "low_busy = 85: expected a share from 0 to 1"
        );
        assert_eq!(
            check(Thresholds { window_batches: 0, ..good() }),
            "window_batches = 0: expected at least 1"
        );
        let text = check(Thresholds { stalled_s: f64::NAN, ..good() });
        assert_eq!(text, "stalled_s = NaN: expected a number that is not negative");
    }
}
