//! The configuration of a run: the options of the search, and the tuning of it.

use serde_json::{Map, Value, json};
use tidemill_telemetry::hypertune::{Mode, Thresholds};

use crate::controller::Options;
use crate::error::ColoringError;
use crate::knob::Knobs;

/// What a run is made with, all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// Options of the search.
    pub options: Options,
    /// What the tuning rules may do.
    pub hypertune: Mode,
    /// When they fire.
    pub thresholds: Thresholds,
}

impl RunConfig {
    /// The configuration as the folder of the run and the first record of its journal hold it.
    pub fn to_json(&self) -> Map<String, Value> {
        let options = &self.options;
        let names: Vec<&str> = options.phases.iter().map(|kind| kind.name()).collect();
        let config = json!({
            "phases": names,
            "seed": options.seed,
            "target": options.target,
            "time_s": options.time.map(|time| time.as_secs_f64()),
            "iterations": options.max_iterations,
            "passes": options.max_passes,
            "patience": options.patience,
            "min_delta": options.min_delta,
            "warm_start": options.warm_start,
            "on_cpu": options.on_cpu.iter().map(|kind| kind.name()).collect::<Vec<&str>>(),
            "hypertune": self.hypertune,
            "knobs": options.knobs,
        });
        match config {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Checks that a run with the stored configuration `before` can resume with this one: what decides the results must be the same, when
    /// the run ends may change.
    pub fn check_resumes(&self, before: &Value) -> Result<(), ColoringError> {
        let now = Value::Object(self.to_json());
        // What an earlier version did not have stood at its default.
        let knobs = serde_json::from_value::<Knobs>(before["knobs"].clone());
        let differs = |key: &&str| match *key {
            "knobs" => knobs.as_ref().ok() != Some(&self.options.knobs),
            "warm_start" => before[key].as_bool().unwrap_or(true) != self.options.warm_start,
            "on_cpu" if before[key].is_null() => !self.options.on_cpu.is_empty(),
            key => before[key] != now[key],
        };
        match ["seed", "phases", "knobs", "warm_start", "on_cpu"].into_iter().find(differs) {
            Some(key) => Err(ColoringError::OtherConfig {
                key,
                before: before[key].to_string(),
                now: now[key].to_string(),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(seed: u64) -> RunConfig {
        RunConfig {
            options: Options { seed, ..Options::default() },
            hypertune: Mode::Advise,
            thresholds: Thresholds::default(),
        }
    }

    #[test]
    fn a_run_goes_on_with_another_end_but_not_with_another_seed() {
        let before = Value::Object(config(1).to_json());
        let longer = RunConfig {
            options: Options { max_passes: Some(9), ..config(1).options },
            hypertune: Mode::Off,
            ..config(1)
        };
        assert!(longer.check_resumes(&before).is_ok());
        let mut earlier = before.clone();
        earlier["knobs"].as_object_mut().unwrap().remove("transfer_weight");
        earlier.as_object_mut().unwrap().retain(|key, _| key != "warm_start" && key != "on_cpu");
        assert!(config(1).check_resumes(&earlier).is_ok(), "a knob that there was not stood at its default");
        earlier["knobs"]["restart"] = json!(12);
        let error = config(1).check_resumes(&earlier).unwrap_err().to_string();
        assert!(error.starts_with("the run was started with knobs = "), "{error}");
        let error = config(2).check_resumes(&before).unwrap_err().to_string();
        assert!(error.starts_with("the run was started with seed = 1, not 2\n  hint: "), "{error}");
    }
}
