//! What can be turned while a search runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::ColoringError;
use crate::phase::PhaseKind;

/// The values of the knobs. A search reads them at the beginning of every round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knobs {
    /// Factor on the iterations of a round.
    pub iterations: f64,
    /// Factor on the temperatures of tempering and annealing.
    pub temperature: f64,
    /// Factor on the number of individuals or replicas, where there are many.
    pub population: f64,
    /// Rounds without fewer conflicts after which a search begins anew.
    pub restart: u64,
    /// Share of the work that is split evenly, whatever paid so far.
    pub even_share: f64,
    /// Weight of the transfer entropies among the signals, each of which is on [0, 1]; the others weigh 1.
    pub transfer_weight: f64,
    /// Factors on the iterations of single searches, by name; 1 for all others.
    pub phase_iterations: BTreeMap<String, f64>,
    /// Phases that are switched off for now, by name.
    pub off: Vec<String>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            iterations: 1.0,
            temperature: 1.0,
            population: 1.0,
            restart: 24,
            even_share: 0.4,
            transfer_weight: 1.0,
            phase_iterations: BTreeMap::new(),
            off: Vec::new(),
        }
    }
}

/// A knob and its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnobRange {
    /// Name in records and for [`Knobs::set`].
    pub name: &'static str,
    /// Key in the settings file.
    pub setting: &'static str,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

/// The knobs that are numbers.
pub const RANGES: [KnobRange; 6] = [
    KnobRange { name: "iterations", setting: "knobs.iterations", low: 0.125, high: 16.0 },
    KnobRange { name: "temperature", setting: "knobs.temperature", low: 0.25, high: 4.0 },
    KnobRange { name: "population", setting: "knobs.population", low: 0.25, high: 4.0 },
    KnobRange { name: "restart", setting: "knobs.restart", low: 4.0, high: 1024.0 },
    KnobRange { name: "even_share", setting: "knobs.even_share", low: 0.05, high: 1.0 },
    KnobRange { name: "transfer_weight", setting: "knobs.transfer_weight", low: 0.0, high: 4.0 },
];

/// The range of the iterations of a single search, whose knob is named after it, such as `tabu_iterations`.
pub(crate) const PHASE_ITERATIONS: (f64, f64) = (0.125, 16.0);

/// The search whose iterations a knob is about.
fn of_phase(name: &str) -> Option<PhaseKind> {
    let kind: PhaseKind = name.strip_suffix("_iterations")?.parse().ok()?;
    kind.is_search().then_some(kind)
}

impl Knobs {
    /// The value of a knob: one of [`RANGES`], the iterations of a search, such as `tabu_iterations`, or the name of a phase, which is 1
    /// while it is on.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "iterations" => Some(self.iterations),
            "temperature" => Some(self.temperature),
            "population" => Some(self.population),
            "restart" => Some(self.restart as f64),
            "even_share" => Some(self.even_share),
            "transfer_weight" => Some(self.transfer_weight),
            name if of_phase(name).is_some() => of_phase(name).map(|kind| self.iterations_of(kind)),
            name => name.parse::<PhaseKind>().ok().map(|kind| f64::from(u8::from(self.is_on(kind)))),
        }
    }

    /// Turns a knob, within its range; false if there is none of that name.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        if let Some(kind) = of_phase(name).filter(|_| !value.is_nan()) {
            let (low, high) = PHASE_ITERATIONS;
            self.phase_iterations.insert(kind.name().to_owned(), value.clamp(low, high));
            return true;
        }
        let Some(range) = RANGES.iter().find(|range| range.name == name) else {
            let Ok(kind) = name.parse::<PhaseKind>() else { return false };
            self.off.retain(|off| off != kind.name());
            if value == 0.0 {
                self.off.push(name.to_owned());
            }
            return true;
        };
        if value.is_nan() {
            return false;
        }
        let value = value.clamp(range.low, range.high);
        match name {
            "iterations" => self.iterations = value,
            "temperature" => self.temperature = value,
            "population" => self.population = value,
            "restart" => self.restart = value as u64,
            "transfer_weight" => self.transfer_weight = value,
            _ => self.even_share = value,
        }
        true
    }

    /// Refuses the first knob that is outside its range, and names of phases that do not exist.
    pub(crate) fn check(&self) -> Result<(), ColoringError> {
        let refused =
            |name, value: String, expected: String| Err(ColoringError::Option { name, value, expected });
        for range in RANGES {
            let value = self.get(range.name).unwrap_or(f64::NAN);
            if !(range.low..=range.high).contains(&value) {
                let expected = format!("a number from {} to {}", range.low, range.high);
                return refused(range.setting, value.to_string(), expected);
            }
        }
        for (name, value) in &self.phase_iterations {
            let (low, high) = PHASE_ITERATIONS;
            if !name.parse::<PhaseKind>().is_ok_and(PhaseKind::is_search) || !(low..=high).contains(value) {
                let expected = format!("the name of a search = a number from {low} to {high}");
                return refused("knobs.phase_iterations", format!("{{ {name} = {value} }}"), expected);
            }
        }
        match self.off.iter().find(|name| name.parse::<PhaseKind>().is_err()) {
            Some(name) => refused("knobs.off", name.clone(), "names of phases".to_owned()),
            None => Ok(()),
        }
    }

    /// The factor on the iterations of one search.
    pub fn iterations_of(&self, kind: PhaseKind) -> f64 {
        self.phase_iterations.get(kind.name()).copied().unwrap_or(1.0)
    }

    /// Whether a phase is on.
    pub fn is_on(&self, kind: PhaseKind) -> bool {
        !self.off.iter().any(|off| off == kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_can_be_turned_and_read_and_stays_in_its_range() {
        let mut knobs = Knobs::default();
        for range in RANGES {
            assert!(knobs.set(range.name, range.high * 10.0));
            assert_eq!(knobs.get(range.name), Some(range.high));
            assert!(knobs.set(range.name, -1.0));
            assert_eq!(knobs.get(range.name), Some(range.low));
            assert!(!knobs.set(range.name, f64::NAN));
        }
        assert!(knobs.is_on(PhaseKind::Tabu));
        assert!(knobs.set("tabu", 0.0) && knobs.set("tabu", 0.0));
        assert_eq!((knobs.get("tabu"), knobs.off.len()), (Some(0.0), 1));
        assert!(knobs.set("tabu", 1.0) && knobs.is_on(PhaseKind::Tabu));
        assert!(!knobs.set("luck", 1.0));
        assert_eq!(knobs.get("memetic_iterations"), Some(1.0));
        assert!(knobs.set("memetic_iterations", 99.0) && !knobs.set("memetic_iterations", f64::NAN));
        assert_eq!((knobs.get("memetic_iterations"), knobs.get("tabu_iterations")), (Some(16.0), Some(1.0)));
        assert!(!knobs.set("dsatur_iterations", 2.0), "it makes none");
    }

    #[test]
    fn what_no_knob_can_be_is_named() {
        assert!(Knobs::default().check().is_ok());
        let refused = |knobs: Knobs| knobs.check().unwrap_err().to_string();
        assert_eq!(
            refused(Knobs { iterations: -1.0, ..Knobs::default() }),
            "knobs.iterations = -1: expected a number from 0.125 to 16"
        );
        assert!(
            refused(Knobs { even_share: f64::NAN, ..Knobs::default() }).starts_with("knobs.even_share = NaN")
        );
        assert!(refused(Knobs { restart: 0, ..Knobs::default() }).starts_with("knobs.restart = 0"));
        let of_phase = |name: &str, value: f64| Knobs {
            phase_iterations: BTreeMap::from([(name.to_owned(), value)]),
            ..Knobs::default()
        };
        assert_eq!(
            refused(of_phase("tabu", 99.0)),
            "knobs.phase_iterations = { tabu = 99 }: expected the name of a search = a number from 0.125 to 16"
        );
        assert!(refused(of_phase("rlf", 1.0)).starts_with("knobs.phase_iterations = { rlf = 1 }"));
        let off = vec!["luck".to_owned()];
        assert_eq!(refused(Knobs { off, ..Knobs::default() }), "knobs.off = luck: expected names of phases");
    }
}
