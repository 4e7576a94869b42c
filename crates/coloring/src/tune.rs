//! Tuning: rules look at a colouring run between its rounds, and turn its knobs or advise to.
//!
//! All knobs of a colouring change its results, so every decision is in the journal, durably, before the round that it affects; a resumed
//! run repeats the decisions of its journal.

use std::collections::BTreeMap;

use tidemill_telemetry::Journal;
use tidemill_telemetry::hypertune::{
    Change, Decision, Effect, FallingSignal, Knob, KnobKind, Proposal, Remedy, Signals, Symptom, Tuner,
};

use crate::config::RunConfig;
use crate::knob::{Knobs, RANGES};
use crate::phase::PhaseKind;

/// The values of a colouring's records that the rules read.
const SIGNALS: Signals = Signals {
    busy: None,
    fill: None,
    batch: None,
    failures: None,
    falling: Some(FallingSignal { rule: "high_conflicts", value: "conflicts" }),
};

/// Knobs to turn, by name, and their new values.
pub(crate) type KnobChanges = Vec<(String, f64)>;

/// Asks the tuner before each round.
pub(crate) struct Tuning {
    tuner: Tuner,
    /// Decisions of the interrupted run, by the round that they affect.
    replayed: BTreeMap<u64, KnobChanges>,
    /// Rounds before this one were decided in the interrupted run.
    known_until: u64,
}

impl Tuning {
    /// For a run with this configuration, after these decisions of the interrupted run.
    pub(crate) fn new(config: &RunConfig, earlier: &[Decision]) -> Self {
        let (phases, knobs) = (&config.options.phases, &config.options.knobs);
        let mut tuner = Tuner::new(
            config.hypertune,
            config.thresholds.clone(),
            SIGNALS,
            turnable(phases, knobs),
            remedies(phases),
        );
        tuner.restore(earlier);
        let mut replayed: BTreeMap<u64, KnobChanges> = BTreeMap::new();
        for decision in earlier {
            replayed.entry(decision.batch).or_default().push((decision.knob.clone(), decision.new));
        }
        let known_until = replayed.last_key_value().map_or(0, |(round, _)| round + 1);
        Self { tuner, replayed, known_until }
    }

    /// What the interrupted run turned before this round; none if it did not get that far.
    pub(crate) fn replayed(&self, round: u64) -> Option<KnobChanges> {
        match self.replayed.get(&round) {
            Some(changes) => Some(changes.clone()),
            None => (round < self.known_until).then(Vec::new),
        }
    }

    /// What the rules propose before a round, from what the journal holds so far.
    pub(crate) fn look(&mut self, journal: &Journal, round: u64) -> Vec<Proposal> {
        let tuner = &mut self.tuner;
        journal.look(|snapshot| tuner.look(snapshot, round))
    }
}

/// Everything that can be turned in a run with these phases.
fn turnable(phases: &[PhaseKind], knobs: &Knobs) -> Vec<Knob> {
    let number = RANGES.iter().map(|range| Knob {
        name: range.name.to_owned(),
        value: knobs.get(range.name).unwrap_or(range.low),
        low: range.low,
        high: range.high,
        kind: if range.name == "restart" { KnobKind::Integer } else { KnobKind::Real },
        effect: Effect::ChangesResults,
    });
    let switch = phases.iter().filter(|kind| kind.is_search()).map(|kind| Knob {
        name: kind.name().to_owned(),
        value: f64::from(u8::from(knobs.is_on(*kind))),
        low: 0.0,
        high: 1.0,
        kind: KnobKind::Switch,
        effect: Effect::ChangesResults,
    });
    number.chain(switch).collect()
}

/// The knobs to turn against each symptom, the best first.
fn remedies(phases: &[PhaseKind]) -> Vec<Remedy> {
    let remedy =
        |symptom, knob: &str, change| Remedy { symptom, knob: knob.to_owned(), change, needs_room: false };
    let has = |kind: PhaseKind| phases.contains(&kind);
    let is_hot = has(PhaseKind::Tempering) || has(PhaseKind::Annealing);
    let mut remedies = vec![
        remedy(Symptom::StalledPhase, "iterations", Change::Multiply(0.5)),
        remedy(Symptom::LowEfficiency, "iterations", Change::Multiply(2.0)),
        remedy(Symptom::NotFalling, "restart", Change::Multiply(0.5)),
        remedy(Symptom::NotFalling, "even_share", Change::Add(0.2)),
        remedy(Symptom::NoImprovement, "iterations", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "restart", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "even_share", Change::Set(1.0)),
    ];
    if is_hot {
        remedies.push(remedy(Symptom::NotFalling, "temperature", Change::Multiply(0.8)));
        remedies.push(remedy(Symptom::NoImprovement, "temperature", Change::Multiply(1.25)));
    }
    if has(PhaseKind::Memetic) {
        remedies.push(remedy(Symptom::NoImprovement, "population", Change::Multiply(2.0)));
        if has(PhaseKind::Partial) {
            remedies.push(remedy(Symptom::NoImprovement, "partial", Change::Set(0.0)));
        }
    }
    remedies
}

#[cfg(test)]
mod tests {
    use tidemill_telemetry::hypertune::{Mode, Thresholds};

    use super::*;
    use crate::controller::Options;

    #[test]
    fn every_remedy_turns_a_knob_that_the_search_has() {
        let phases: Vec<PhaseKind> = PhaseKind::all().collect();
        let mut knobs = Knobs::default();
        let names: Vec<String> = turnable(&phases, &knobs).into_iter().map(|knob| knob.name).collect();
        for remedy in remedies(&phases) {
            assert!(names.contains(&remedy.knob), "{}", remedy.knob);
            assert!(knobs.set(&remedy.knob, 1.0), "{}", remedy.knob);
        }
    }

    #[test]
    fn a_resumed_run_repeats_earlier_decisions_and_decides_nothing_new_before_the_last_of_them() {
        let decision = |batch: u64, new: f64| Decision {
            id: batch,
            rule: "no_improvement".into(),
            cause: String::new(),
            knob: "iterations".into(),
            old: new / 2.0,
            new,
            effect: Effect::ChangesResults,
            batch,
        };
        let config = RunConfig {
            options: Options::default(),
            hypertune: Mode::Off,
            thresholds: Thresholds::default(),
        };
        let tuning = Tuning::new(&config, &[decision(3, 2.0), decision(7, 4.0)]);
        let repeated = |round| tuning.replayed(round);
        assert_eq!(repeated(3), Some(vec![("iterations".to_owned(), 2.0)]));
        assert_eq!(repeated(7), Some(vec![("iterations".to_owned(), 4.0)]));
        assert_eq!((repeated(0), repeated(5), repeated(8)), (Some(vec![]), Some(vec![]), None));
        assert_eq!(tuning.tuner.knob("iterations"), Some(4.0));
    }
}
