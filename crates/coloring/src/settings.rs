//! The tables of `tidemill.toml` that are about colourings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::ColoringError;
use crate::knob::Knobs;
use crate::phase::{Family, PhaseKind};

/// `[color]`: defaults of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColorSettings {
    /// Number of colours at which it stops.
    pub target: Option<usize>,
    /// Time limit in seconds.
    pub time_s: Option<f64>,
    /// Limit on the iterations of all searches.
    pub iterations: Option<u64>,
    /// Seed.
    pub seed: Option<u64>,
    /// Phases, as `--phases` takes them.
    pub phases: Option<Vec<String>>,
    /// Whether each phase may run on a device; all of them may unless this says otherwise.
    pub gpu: BTreeMap<String, bool>,
    /// Initial values of the knobs.
    pub knobs: Knobs,
}

/// `[iterative]`: the passes of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IterativeSettings {
    /// Limit on the passes.
    pub passes: Option<u64>,
    /// Passes in a row without progress after which it stops.
    pub patience: Option<u64>,
    /// Colours that a pass must save to count as progress.
    pub min_delta: Option<usize>,
    /// Whether a pass begins at the best colouring so far instead of by chance.
    pub warm_start: Option<bool>,
}

/// `[initial_coloring]`: where a run begins.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct InitialSettings {
    /// The ways to a first colouring, of which the best counts: one name or several.
    pub strategy: Option<Strategy>,
}

/// One name, or several.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Strategy {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl ColorSettings {
    /// The phases that stay on the CPU.
    pub fn on_cpu(&self) -> Result<Vec<PhaseKind>, ColoringError> {
        let mut kept = Vec::new();
        for (name, is_on_device) in &self.gpu {
            let kinds = match PhaseKind::aliased(name) {
                Some(kinds) => kinds.to_vec(),
                None => name.parse().map(|kind| vec![kind]).unwrap_or_default(),
            };
            if kinds.is_empty() || !kinds.iter().any(|kind| kind.has_kernel()) {
                let with_kernel: Vec<&str> =
                    PhaseKind::all().filter(|kind| kind.has_kernel()).map(PhaseKind::name).collect();
                return Err(ColoringError::Option {
                    name: "color.gpu",
                    value: name.clone(),
                    expected: format!("phases that can run on a device: {}", with_kernel.join(", ")),
                });
            }
            if !is_on_device {
                kept.extend(kinds.into_iter().filter(|kind| kind.has_kernel()));
            }
        }
        kept.sort_unstable();
        kept.dedup();
        Ok(kept)
    }
}

impl InitialSettings {
    /// The phases of the strategy, if there is one.
    pub fn phases(&self) -> Result<Option<Vec<PhaseKind>>, ColoringError> {
        let names = match &self.strategy {
            None => return Ok(None),
            Some(Strategy::One(name)) => std::slice::from_ref(name),
            Some(Strategy::Several(names)) => names,
        };
        let is_initial = |kind: &PhaseKind| matches!(kind.family(), Family::Initial(_));
        let kinds: Option<Vec<PhaseKind>> =
            names.iter().map(|name| name.parse().ok().filter(is_initial)).collect();
        match kinds {
            Some(kinds) if !kinds.is_empty() => Ok(Some(kinds)),
            _ => {
                let known: Vec<&str> = PhaseKind::all().filter(is_initial).map(PhaseKind::name).collect();
                Err(ColoringError::Option {
                    name: "initial_coloring.strategy",
                    value: names.join(","),
                    expected: format!("one or several of {}", known.join(", ")),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_of_phases_name_those_that_stay_on_the_cpu() {
        let of = |pairs: &[(&str, bool)]| ColorSettings {
            gpu: pairs.iter().map(|(name, is_on)| ((*name).to_owned(), *is_on)).collect(),
            ..ColorSettings::default()
        };
        let kept = of(&[("memetic", false), ("quantum", false), ("tempering", true)]).on_cpu().unwrap();
        assert_eq!(kept, [PhaseKind::Memetic, PhaseKind::Annealing]);
        assert_eq!(of(&[("ensemble", false)]).on_cpu().unwrap(), [PhaseKind::Tabu, PhaseKind::Memetic]);
        let message = of(&[("edge", false)]).on_cpu().unwrap_err().to_string();
        assert!(
            message.starts_with("color.gpu = edge: expected phases that can run on a device: "),
            "{message}"
        );
    }

    #[test]
    fn a_strategy_is_one_name_or_several_and_names_first_colourings() {
        let of = |strategy| InitialSettings { strategy: Some(strategy) }.phases();
        assert_eq!(of(Strategy::One("rlf".into())).unwrap(), Some(vec![PhaseKind::Rlf]));
        assert_eq!(InitialSettings::default().phases().unwrap(), None);
        for wrong in [vec!["tabu".into()], vec!["rlf".into(), "luck".into()], vec![]] {
            let message = of(Strategy::Several(wrong)).unwrap_err().to_string();
            assert!(message.contains("expected one or several of greedy, dsatur, rlf,"), "{message}");
        }
    }
}
