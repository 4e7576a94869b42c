//! `--hypertune`: rules look at a colouring run between its rounds, and turn its knobs or say what they would do.
//!
//! All knobs of a colouring change its results, so every decision is in the journal, durably, before the round that it affects; a resumed
//! run lives through them again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{ColoringError, Knobs, RANGES};
use tidemill_telemetry::hypertune::{
    Change, Decision, Effect, Knob, KnobKind, Mode, Proposal, Remedy, Symptom, Thresholds, Tuner,
};
use tidemill_telemetry::{SmolStr, find};

use super::store::Store;

/// What was decided earlier in a run, by the round that it affects.
pub fn earlier(journal: Option<&Path>) -> Result<Vec<Decision>> {
    match journal {
        Some(journal) if journal.exists() => {
            let events = find(journal, "hypertune").context("cannot read what was decided earlier")?;
            Ok(events.iter().filter_map(Decision::from_event).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// Asks the tuner before each round.
pub struct Tuning {
    tuner: Tuner,
    run: SmolStr,
    /// Decisions of an earlier run that are still to come.
    replayed: BTreeMap<u64, Vec<(String, f64)>>,
    /// Rounds before this one were lived through before; nothing new is decided in them.
    known_until: u64,
    sentences: BTreeMap<String, String>,
}

impl Tuning {
    /// For a run with these phases; what was decided earlier is taken from there.
    pub fn new(
        mode: Mode,
        thresholds: Thresholds,
        phases: &[PhaseKind],
        knobs: &Knobs,
        earlier: &[Decision],
        run: SmolStr,
    ) -> Self {
        let mut tuner = Tuner::new(mode, thresholds, turnable(phases, knobs), remedies(phases));
        tuner.restore(earlier);
        let mut replayed: BTreeMap<u64, Vec<(String, f64)>> = BTreeMap::new();
        for decision in earlier {
            replayed.entry(decision.batch).or_default().push((decision.knob.clone(), decision.new));
        }
        let known_until = replayed.last_key_value().map_or(0, |(round, _)| round + 1);
        Self { tuner, run, replayed, known_until, sentences: BTreeMap::new() }
    }

    /// Knobs to turn before a round.
    pub fn changes(&mut self, round: u64, store: &Store) -> Result<Vec<(String, f64)>, ColoringError> {
        if let Some(changes) = self.replayed.get(&round) {
            return Ok(changes.clone());
        }
        if round < self.known_until {
            return Ok(Vec::new());
        }
        let tuner = &mut self.tuner;
        let proposals = store.journal.look(|snapshot| tuner.look(snapshot, round));
        let mut changes = Vec::new();
        for proposal in proposals {
            let event = proposal.event(self.run.clone());
            match &proposal {
                Proposal::Apply(decision) => {
                    store.record_durable(event)?;
                    changes.push((decision.knob.clone(), decision.new));
                    self.say(decision, "turned");
                }
                Proposal::Advise(decision) => {
                    store.record(event);
                    self.say(decision, "would turn");
                }
                Proposal::Effect(_) => store.record(event),
            }
        }
        Ok(changes)
    }

    fn say(&mut self, decision: &Decision, verb: &str) {
        let Decision { knob, old, new, cause, .. } = decision;
        self.sentences.insert(knob.clone(), format!("hypertune {verb} {knob} {old} → {new}: {cause}"));
    }

    /// The newest words about each knob.
    pub fn sentences(&self) -> Vec<String> {
        self.sentences.values().cloned().collect()
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

/// What helps against what.
fn remedies(phases: &[PhaseKind]) -> Vec<Remedy> {
    let remedy = |symptom, knob: &str, change| Remedy { symptom, knob: knob.to_owned(), change };
    let has = |kind: PhaseKind| phases.contains(&kind);
    let is_hot = has(PhaseKind::Tempering) || has(PhaseKind::Annealing);
    let mut remedies = vec![
        remedy(Symptom::StalledPhase, "iterations", Change::Multiply(0.5)),
        remedy(Symptom::LowEfficiency, "iterations", Change::Multiply(2.0)),
        remedy(Symptom::HighConflicts, "restart", Change::Multiply(0.5)),
        remedy(Symptom::HighConflicts, "even_share", Change::Add(0.2)),
        remedy(Symptom::NoImprovement, "iterations", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "restart", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "even_share", Change::Set(1.0)),
    ];
    if is_hot {
        remedies.push(remedy(Symptom::HighConflicts, "temperature", Change::Multiply(0.8)));
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
    use super::*;

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
}
