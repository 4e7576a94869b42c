//! Tuning: rules look at a colouring run between its rounds, and turn its knobs or advise to.
//!
//! All knobs of a colouring change its results, so every decision is in the journal, durably, before the round that it affects; a resumed
//! run repeats the decisions of its journal.

use std::collections::BTreeMap;

use tidemill_telemetry::hypertune::{
    BatchSignals, Change, Decision, Effect, FallingSignal, Knob, KnobKind, Proposal, Remedy, Signals,
    Symptom, Tuner,
};
use tidemill_telemetry::{DeviceMode, Journal};

use crate::config::RunConfig;
use crate::knob::{Knobs, PHASE_ITERATIONS, RANGES};
use crate::phase::{PhaseKind, PhaseReport};

/// The values of a colouring's records that the rules read.
const SIGNALS: Signals = Signals {
    busy: Some("busy"),
    fill: None,
    batch: Some(BatchSignals {
        work: "work_ms",
        work_words: "the search",
        idle: "idle_ms",
        // Nothing of a round can run beside the one before.
        host: None,
    }),
    failures: None,
    falling: Some(FallingSignal { rule: "high_conflicts", value: "conflicts" }),
    // Once for each pass, and passes get longer and longer.
    occasional: &["reduction", "validation", "pass"],
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
    has_memetic: bool,
    has_replicas: bool,
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
        // Until a search turns out to run on a device.
        tuner.set_read("population", has_replicas(phases));
        let mut replayed: BTreeMap<u64, KnobChanges> = BTreeMap::new();
        for decision in earlier {
            replayed.entry(decision.batch).or_default().push((decision.knob.clone(), decision.new));
        }
        let known_until = replayed.last_key_value().map_or(0, |(round, _)| round + 1);
        let has_memetic = phases.contains(&PhaseKind::Memetic);
        Self { tuner, replayed, known_until, has_memetic, has_replicas: has_replicas(phases) }
    }

    /// Takes note of where a search runs: a population is as large as the knob says only on a device.
    pub(crate) fn worked(&mut self, report: &PhaseReport) {
        if report.kind == PhaseKind::Memetic || report.kind == PhaseKind::Tabu && !self.has_memetic {
            let is_on_device = matches!(report.device, DeviceMode::Gpu { .. });
            self.tuner.set_read("population", is_on_device || self.has_replicas);
        }
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

/// Whether replicas at temperatures take part, whose number is a knob on the CPU too.
fn has_replicas(phases: &[PhaseKind]) -> bool {
    phases.contains(&PhaseKind::Tempering) || phases.contains(&PhaseKind::Annealing)
}

/// Everything that can be turned in a run with these phases, and that something reads.
fn turnable(phases: &[PhaseKind], knobs: &Knobs) -> Vec<Knob> {
    let searches: Vec<PhaseKind> = phases.iter().copied().filter(|kind| kind.is_search()).collect();
    let is_read = |name: &str| match name {
        "temperature" => has_replicas(phases),
        "population" => searches.iter().any(|kind| !matches!(kind, PhaseKind::Partial | PhaseKind::Edge)),
        // There is nothing to split.
        "even_share" => searches.len() > 1,
        "transfer_weight" => phases.contains(&PhaseKind::Transfer),
        _ => !searches.is_empty(),
    };
    let knob = |name: String, (low, high): (f64, f64), kind: KnobKind| Knob {
        value: knobs.get(&name).unwrap_or(low),
        name,
        low,
        high,
        kind,
        effect: Effect::ChangesResults,
    };
    let number = RANGES.iter().filter(|range| is_read(range.name)).map(|range| {
        let kind = if range.name == "restart" { KnobKind::Integer } else { KnobKind::Real };
        knob(range.name.to_owned(), (range.low, range.high), kind)
    });
    // The iterations of the only search are those of all.
    let several = searches.iter().filter(|_| searches.len() > 1);
    let iterations = several.map(|kind| knob(iterations_of(*kind), PHASE_ITERATIONS, KnobKind::Real));
    let switch = searches.iter().map(|kind| knob(kind.name().to_owned(), (0.0, 1.0), KnobKind::Switch));
    number.chain(iterations).chain(switch).collect()
}

/// The name of the knob for the iterations of one search.
fn iterations_of(kind: PhaseKind) -> String {
    format!("{}_iterations", kind.name())
}

/// The knobs to turn against each symptom, the best first. One that is not among those that can be turned is never taken.
fn remedies(phases: &[PhaseKind]) -> Vec<Remedy> {
    let remedy = |symptom, knob: &str, change| Remedy {
        symptom,
        knob: knob.to_owned(),
        change,
        needs_room: false,
        // A search that has found something goes on as it was meant to.
        until_recovery: symptom == Symptom::NoImprovement && (knob == "even_share" || knob == "temperature"),
    };
    let has = |kind: PhaseKind| phases.contains(&kind);
    let mut remedies = vec![
        remedy(Symptom::StalledPhase, "iterations", Change::Multiply(0.5)),
        remedy(Symptom::LowEfficiency, "iterations", Change::Multiply(2.0)),
    ];
    // A device that waits for searches on the CPU gets more to do in a round.
    for kind in [PhaseKind::Memetic, PhaseKind::Tempering, PhaseKind::Annealing] {
        if has(kind) {
            remedies.push(remedy(Symptom::LowEfficiency, &iterations_of(kind), Change::Multiply(2.0)));
        }
    }
    remedies.extend([
        remedy(Symptom::NotFalling, "restart", Change::Multiply(0.5)),
        remedy(Symptom::NotFalling, "even_share", Change::Add(0.2)),
        remedy(Symptom::NotFalling, "temperature", Change::Multiply(0.8)),
        remedy(Symptom::NoImprovement, "iterations", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "restart", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "even_share", Change::Set(1.0)),
        remedy(Symptom::NoImprovement, "temperature", Change::Multiply(1.25)),
        remedy(Symptom::NoImprovement, "population", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "transfer_weight", Change::Multiply(2.0)),
    ]);
    if has(PhaseKind::Memetic) {
        remedies.push(remedy(
            Symptom::NoImprovement,
            &iterations_of(PhaseKind::Memetic),
            Change::Multiply(2.0),
        ));
    }
    // Searches that were kept back have their turn; then one that seldom finds the last colour leaves its part to the others.
    for kind in phases.iter().filter(|kind| kind.is_search()) {
        remedies.push(remedy(Symptom::NoImprovement, kind.name(), Change::Set(1.0)));
    }
    if has(PhaseKind::Memetic) {
        remedies.push(remedy(Symptom::NoImprovement, PhaseKind::Partial.name(), Change::Set(0.0)));
    }
    // Where nothing helped, everything is as it was.
    for name in ["iterations", "restart", "population", "transfer_weight"] {
        remedies.push(remedy(Symptom::NoImprovement, name, Change::Reset));
    }
    remedies
}

#[cfg(test)]
mod tests {
    use tidemill_telemetry::hypertune::{Mode, Thresholds};
    use tidemill_telemetry::{Event, Snapshot, Timestamp};

    use super::*;
    use crate::controller::Options;
    use crate::event::{PassEvent, RecordContext, RoundWork};
    use crate::phase::PhaseResult;

    fn config(phases: Vec<PhaseKind>) -> RunConfig {
        RunConfig {
            options: Options { phases, ..Options::default() },
            hypertune: Mode::On,
            thresholds: Thresholds {
                no_improvement_batches: 4,
                cooldown_batches: 1,
                ..Thresholds::default()
            },
        }
    }

    /// What the rules turn in a run that never finds anything, and that does not get shorter rounds than they like.
    fn turned(tuning: &mut Tuning, n_rounds: u64) -> Vec<(String, f64)> {
        let mut snapshot = Snapshot::default();
        let mut start = Event::new("r", "run", "start").parameter("progress", "iterations");
        start = start.parameter("score", "k").parameter("better", "lower");
        start.timestamp = Timestamp::from_ms(0);
        snapshot.apply(&start);
        let mut turned = Vec::new();
        for round in 1..=n_rounds {
            let mut event = Event::new("r", "round", "round").value("iterations", round as f64);
            event = event.value("k", 9.0).value("busy", 0.99).value("work_ms", 1e3).value("idle_ms", 1.0);
            event.timestamp = Timestamp::from_ms(20_000 * round as i64);
            snapshot.apply(&event);
            for proposal in tuning.tuner.look(&snapshot, round) {
                if let Proposal::Apply(decision) = proposal {
                    turned.push((decision.knob, decision.new));
                }
            }
        }
        turned
    }

    fn report(kind: PhaseKind, device: DeviceMode) -> PhaseReport {
        PhaseReport {
            kind,
            device,
            iterations: 1,
            began: std::time::Instant::now(),
            took: std::time::Duration::ZERO,
            values: Vec::new(),
            parameters: Vec::new(),
            result: PhaseResult::Proper(1),
        }
    }

    #[test]
    fn no_knob_is_turned_that_nothing_reads() {
        let has = |turned: &[(String, f64)], name: &str| turned.iter().any(|(knob, _)| knob == name);
        let of = |phases: &[PhaseKind], device: DeviceMode| {
            let mut tuning = Tuning::new(&config(phases.to_vec()), &[]);
            phases.iter().for_each(|kind| tuning.worked(&report(*kind, device.clone())));
            turned(&mut tuning, 300)
        };
        let (cpu, gpu) = (DeviceMode::Cpu, DeviceMode::Gpu { stream: 1 });
        let phases = [PhaseKind::Dsatur, PhaseKind::Tabu, PhaseKind::Memetic];
        let on_cpu = of(&phases, cpu.clone());
        assert!(!has(&on_cpu, "population") && has(&on_cpu, "even_share"), "{on_cpu:?}");
        assert!(!has(&on_cpu, "temperature") && !has(&on_cpu, "transfer_weight"), "{on_cpu:?}");
        assert!(has(&on_cpu, "memetic_iterations"));
        assert!(has(&of(&phases, gpu), "population"));
        let alone = of(&[PhaseKind::Dsatur, PhaseKind::Tabu], cpu.clone());
        assert!(!has(&alone, "even_share") && !has(&alone, "tabu_iterations"), "{alone:?}");
        let signals = of(&[PhaseKind::Dsatur, PhaseKind::Transfer, PhaseKind::Tempering], cpu);
        assert!(has(&signals, "transfer_weight") && has(&signals, "temperature"), "{signals:?}");
        assert!(has(&signals, "population"), "replicas are as many as it says on the CPU too");
    }

    #[test]
    fn a_search_that_was_kept_back_is_switched_on_and_in_the_end_all_is_as_it_was() {
        let mut config = config(vec![PhaseKind::Dsatur, PhaseKind::Tabu, PhaseKind::Memetic]);
        config.options.knobs.set("tabu", 0.0);
        let mut tuning = Tuning::new(&config, &[]);
        let turned = turned(&mut tuning, 600);
        let place = |name: &str, value: f64| turned.iter().position(|known| *known == (name.into(), value));
        let (on, longer, reset) = (place("tabu", 1.0), place("iterations", 2.0), place("iterations", 1.0));
        assert!(longer < on && on < reset && reset.is_some(), "{turned:?}");
    }

    #[test]
    fn the_record_of_a_round_has_every_value_that_the_rules_read() {
        let work = RoundWork {
            round: 3,
            pass: 1,
            k: 9,
            wall: std::time::Duration::from_millis(40),
            work: std::time::Duration::from_millis(30),
            iterations: 100,
        };
        let context = RecordContext::new(std::time::Instant::now(), None);
        let record = PassEvent::RoundEnded(work).to_event(&context).unwrap();
        let times = SIGNALS.batch.unwrap();
        for name in [times.work, times.idle].into_iter().chain(SIGNALS.busy) {
            assert!(record.values.get(name).is_some(), "{name}");
        }
        assert_eq!((record.values["busy"], record.values["idle_ms"]), (0.75, 10.0));
    }

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
