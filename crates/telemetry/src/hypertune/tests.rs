//! Each rule is driven to fire, and not to fire just below its threshold.

mod batch_size;
mod recovery;

use super::*;
use crate::event::Event;
use crate::snapshot::Snapshot;
use crate::timestamp::Timestamp;

/// A run whose batches are made by hand.
struct SimulatedRun {
    snapshot: Snapshot,
    at_ms: f64,
    trials: f64,
    valid: f64,
    batch: u64,
}

impl SimulatedRun {
    fn new() -> Self {
        let mut run = Self { snapshot: Snapshot::default(), at_ms: 0.0, trials: 0.0, valid: 0.0, batch: 0 };
        run.tell(Event::new("r", "run", "start"));
        run
    }

    fn tell(&mut self, mut event: Event) {
        event.timestamp = Timestamp::from_ms(self.at_ms as i64);
        self.snapshot.apply(&event);
    }

    /// A batch of 100 trials that takes a second, with more values.
    fn batch(&mut self, values: &[(&'static str, f64)]) {
        self.timed_batch(1000.0, 100.0, values);
    }

    fn timed_batch(&mut self, ms: f64, n_trials: f64, values: &[(&'static str, f64)]) {
        self.at_ms += ms;
        self.trials += n_trials;
        let mut event = Event::new("r", "evaluate", format!("batch_{}", self.batch)).lasting_ms(ms);
        event = event.value("trials", self.trials);
        for (name, value) in values {
            event = event.value(*name, *value);
        }
        self.batch += 1;
        self.tell(event);
    }
}

fn knob(name: &str, value: f64, low: f64, high: f64) -> Knob {
    Knob { name: name.into(), value, low, high, kind: KnobKind::Integer, effect: Effect::ChangesResults }
}

fn remedy(symptom: Symptom, knob: &str, change: Change) -> Remedy {
    Remedy { symptom, knob: knob.into(), change, needs_room: false, until_recovery: false }
}

fn tuner(mode: Mode, symptom: Symptom) -> Tuner {
    tuner_reading(SIGNALS, mode, symptom)
}

fn tuner_reading(signals: Signals, mode: Mode, symptom: Symptom) -> Tuner {
    let knobs = vec![knob("first", 10.0, 1.0, 40.0), knob("second", 1.0, 0.0, 4.0)];
    let remedies =
        vec![remedy(symptom, "first", Change::Multiply(2.0)), remedy(symptom, "second", Change::Add(1.0))];
    Tuner::new(mode, Thresholds::default(), signals, knobs, remedies)
}

/// All values that a rule can read, under the names that sweeps and colourings have for them.
const SIGNALS: Signals = Signals {
    busy: Some("busy"),
    fill: Some("fill"),
    batch: Some(BatchSignals {
        work: "evaluate_ms",
        work_words: "the evaluation",
        idle: "idle_ms",
        host: Some(HostSignals {
            times: ["ask_ms", "tell_ms"],
            words: "asking and telling",
            hidden: "overlap_ms",
        }),
    }),
    failures: Some(FailureSignal {
        rule: "many_invalid",
        succeeded: "valid",
        measure: "invalid",
        words: "trials have no score",
    }),
    falling: Some(FallingSignal { rule: "high_conflicts", value: "conflicts" }),
    occasional: &["verify"],
};

fn decision(proposal: &Proposal) -> &Decision {
    match proposal {
        Proposal::Advise(decision) | Proposal::Apply(decision) => decision,
        Proposal::Effect(outcome) => panic!("{outcome:?}"),
    }
}

/// Runs batches of the same kind and gives every proposal with the number of batches done by then.
fn drive(
    run: &mut SimulatedRun,
    tuner: &mut Tuner,
    n_batches: u64,
    values: &[(&'static str, f64)],
) -> Vec<(u64, Proposal)> {
    let mut said = Vec::new();
    for _ in 0..n_batches {
        run.batch(values);
        said.extend(tuner.look(&run.snapshot, run.batch).into_iter().map(|proposal| (run.batch, proposal)));
    }
    said
}

#[test]
fn no_improvement_fires_after_exactly_so_many_batches_and_is_told_in_words() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Advise, Symptom::NoImprovement);
    assert_eq!(drive(&mut run, &mut tuner, 30, &[("best", 1.5)]), []);
    // The improvement is batch 31, so that batch 80 is the 49th without one.
    assert_eq!(drive(&mut run, &mut tuner, 50, &[("best", 1.75)]), []);
    let said = drive(&mut run, &mut tuner, 1, &[("best", 1.75)]);
    assert_eq!(said.len(), 1);
    let expected = Decision {
        id: 1,
        rule: "no_improvement".into(),
        cause: "nothing better than 1.75 in 50 batches".into(),
        knob: "first".into(),
        old: 10.0,
        new: 20.0,
        effect: Effect::ChangesResults,
        batch: 81,
    };
    assert_eq!(said[0].1, Proposal::Advise(expected.clone()));
    let event = said[0].1.event("r");
    assert!(event.is("hypertune", "advise"));
    assert_eq!((event.values["id"], event.values["batch"]), (1.0, 81.0));
    assert_eq!((&event.parameters["old"], &event.parameters["new"]), (&10.into(), &20.into()));
    run.tell(event);
    let shown = run.snapshot.actions.back().unwrap();
    assert_eq!((shown.rule.as_str(), shown.cause.as_str()), ("no_improvement", expected.cause.as_str()));
    assert!(!shown.is_applied && shown.batch == Some(81));
}

#[test]
fn the_same_advice_is_given_less_and_less_often() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Advise, Symptom::NoImprovement);
    let said = drive(&mut run, &mut tuner, 2000, &[("best", 1.0)]);
    let at: Vec<u64> = said.iter().map(|(batch, _)| *batch).collect();
    assert_eq!(at[..5], [51, 71, 111, 191, 351]);
    assert!(at.len() < 10, "{at:?}");
    assert!(said.iter().all(|(_, proposal)| decision(proposal).new == 20.0));
    assert_eq!(tuner.knob("first"), Some(10.0), "advice turns nothing");
    // Once it has got better, it is news again.
    drive(&mut run, &mut tuner, 1, &[("best", 2.0)]);
    let mut later = drive(&mut run, &mut tuner, 2000, &[("best", 2.0)]);
    let first = later.remove(0).0;
    assert_eq!(later[0].0 - first, 20);
}

#[test]
fn off_says_nothing() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Off, Symptom::NoImprovement);
    assert_eq!(drive(&mut run, &mut tuner, 500, &[("best", 1.0)]), []);
}

#[test]
fn what_does_not_help_gives_way_to_the_next_remedy_and_ranges_are_kept() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::On, Symptom::NoImprovement);
    let said = drive(&mut run, &mut tuner, 3000, &[("best", 1.0)]);
    let turned: Vec<(String, f64, f64)> = said
        .iter()
        .filter(|(_, proposal)| matches!(proposal, Proposal::Apply(_)))
        .map(|(_, proposal)| {
            (decision(proposal).knob.clone(), decision(proposal).old, decision(proposal).new)
        })
        .collect();
    assert_eq!(turned[0], ("first".into(), 10.0, 20.0));
    assert_eq!(turned[1], ("second".into(), 1.0, 2.0), "the first one rests");
    let of = |name: &str| {
        turned.iter().filter(|(knob, ..)| knob == name).map(|(.., new)| *new).collect::<Vec<_>>()
    };
    assert_eq!((of("first"), of("second")), (vec![20.0, 40.0], vec![2.0, 3.0, 4.0]));
    assert_eq!((tuner.knob("first"), tuner.knob("second")), (Some(40.0), Some(4.0)));
    // The effect of each action is reported before the next one of the symptom, and nothing is reverted: it is not about speed.
    let kinds: Vec<bool> = said.iter().map(|(_, proposal)| matches!(proposal, Proposal::Effect(_))).collect();
    assert_eq!(kinds, [false, true].repeat(5));
    let Proposal::Effect(outcome) = &said[1].1 else { panic!() };
    assert_eq!((outcome.id, outcome.measure.as_str(), outcome.before, outcome.after), (1, "best", 1.0, 1.0));
    let event = said[1].1.event("r");
    run.tell(said[0].1.event("r"));
    run.tell(event);
    assert_eq!(run.snapshot.actions.back().unwrap().effect.as_ref().unwrap().measure, "best");
}

#[test]
fn low_efficiency_fires_below_its_threshold_and_is_gone_only_beyond_the_margin() {
    let busy = |share: f64| [("busy", share), ("evaluate_ms", 500.0)];
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Advise, Symptom::LowEfficiency);
    assert_eq!(drive(&mut run, &mut tuner, 100, &busy(0.851)), []);
    let said = drive(&mut run, &mut tuner, 8, &busy(0.8));
    assert_eq!(said.len(), 1, "{said:?}");
    let cause = &decision(&said[0].1).cause;
    assert!(cause.starts_with("busy 84.5 % of the last 8 batches, less than 85.0 %"), "{cause}");
    // Better than the threshold, but not clearly: it is still there, and reported again after the cool-down.
    let said = drive(&mut run, &mut tuner, 40, &busy(0.88));
    assert_eq!(said.len(), 1, "{said:?}");
    drive(&mut run, &mut tuner, 20, &busy(0.95));
    assert_eq!(drive(&mut run, &mut tuner, 200, &busy(0.88)), []);
}

#[test]
fn idle_time_hidden_time_and_short_batches_tell_of_low_efficiency_too() {
    type Case = (&'static [(&'static str, f64)], Option<&'static str>);
    let cases: [Case; 6] = [
        (&[("evaluate_ms", 84.0), ("idle_ms", 16.0)], Some("busy 84.0 %")),
        (&[("evaluate_ms", 86.0), ("idle_ms", 14.0)], None),
        (
            &[
                ("evaluate_ms", 95.0),
                ("idle_ms", 5.0),
                ("ask_ms", 6.0),
                ("tell_ms", 4.0),
                ("overlap_ms", 4.0),
            ],
            Some(
                "40.0 % of asking and telling ran beside the evaluation of the last 8 batches, less than 50.0 %",
            ),
        ),
        (
            &[
                ("evaluate_ms", 95.0),
                ("idle_ms", 5.0),
                ("ask_ms", 3.0),
                ("tell_ms", 4.0),
                ("overlap_ms", 2.5),
            ],
            None,
        ),
        (&[("evaluate_ms", 19.5), ("busy", 0.99)], Some("batches take 19.50 ms, less than 20 ms")),
        (&[("evaluate_ms", 20.5), ("busy", 0.99)], None),
    ];
    for (values, expected) in cases {
        let mut run = SimulatedRun::new();
        let mut tuner = tuner(Mode::Advise, Symptom::LowEfficiency);
        let said = drive(&mut run, &mut tuner, 12, values);
        match expected {
            Some(words) => {
                let cause = &decision(&said[0].1).cause;
                assert!(cause.starts_with(words), "{cause}");
                assert_eq!(said[0].0, 9, "as soon as a window is full");
            }
            None => assert_eq!(said, [], "{values:?}"),
        }
    }
}

#[test]
fn what_needs_room_is_left_alone_on_a_device_that_is_full() {
    let remedies = || {
        let streams = remedy(Symptom::LowEfficiency, "streams", Change::Add(1.0));
        let lag = remedy(Symptom::LowEfficiency, "lag", Change::Add(1.0));
        vec![Remedy { needs_room: true, ..streams }, lag]
    };
    let turned = |values: &[(&'static str, f64)]| {
        let knobs = vec![knob("streams", 2.0, 1.0, 4.0), knob("lag", 1.0, 0.0, 4.0)];
        let mut tuner = Tuner::new(Mode::Advise, Thresholds::default(), SIGNALS, knobs, remedies());
        let said = drive(&mut SimulatedRun::new(), &mut tuner, 12, values);
        decision(&said[0].1).knob.clone()
    };
    let short = ("evaluate_ms", 5.0);
    assert_eq!(turned(&[short, ("busy", 0.99), ("fill", 0.74)]), "streams");
    assert_eq!(turned(&[short, ("busy", 0.99), ("fill", 0.75)]), "lag");
    assert_eq!(turned(&[short, ("busy", 0.99), ("fill", 1.8)]), "lag");
    // A journal of an earlier version does not tell.
    assert_eq!(turned(&[short, ("busy", 0.99)]), "streams");
}

#[test]
fn many_invalid_fires_above_its_share_and_with_enough_trials() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Advise, Symptom::ManyFailures);
    let go = |run: &mut SimulatedRun, tuner: &mut Tuner, n_batches: u64, n_trials: f64, n_valid: f64| {
        let mut said = Vec::new();
        for _ in 0..n_batches {
            run.valid += n_valid;
            let valid = run.valid;
            run.timed_batch(1000.0, n_trials, &[("valid", valid)]);
            said.extend(tuner.look(&run.snapshot, run.batch));
        }
        said
    };
    let mut small = tuner.clone();
    assert_eq!(go(&mut run, &mut tuner, 50, 100.0, 50.0), []);
    let said = go(&mut run, &mut tuner, 8, 100.0, 45.0);
    assert_eq!(said.len(), 1);
    assert!(decision(&said[0]).cause.contains("of the last 800 trials have no score, more than 50.0 %"));
    assert_eq!(decision(&said[0]).rule, "many_invalid");
    assert_eq!(go(&mut run, &mut tuner, 100, 100.0, 60.0), []);
    assert_eq!(
        go(&mut SimulatedRun::new(), &mut small, 100, 24.0, 0.0),
        [],
        "192 trials are too few to tell"
    );
}

#[test]
fn high_conflicts_fires_while_they_do_not_fall() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::Advise, Symptom::NotFalling);
    for idx in 0..200 {
        run.batch(&[("conflicts", 1000.0 - f64::from(idx))]);
        assert_eq!(tuner.look(&run.snapshot, run.batch), []);
    }
    let said = drive(&mut run, &mut tuner, 60, &[("conflicts", 801.0)]);
    assert_eq!(decision(&said[0].1).cause, "801 conflicts, as many as 50 batches ago");
    assert_eq!(decision(&said[0].1).rule, "high_conflicts");
    let mut solved = SimulatedRun::new();
    assert_eq!(drive(&mut solved, &mut tuner.clone(), 300, &[("conflicts", 0.0)]), []);
}

#[test]
fn rules_fire_under_the_declared_names_and_not_at_all_without_them() {
    let values = [("lost", 7.0), ("conflicts", 801.0), ("busy", 0.1), ("evaluate_ms", 1.0), ("idle_ms", 9.0)];
    let symptoms = [Symptom::NotFalling, Symptom::LowEfficiency, Symptom::ManyFailures];
    for symptom in symptoms {
        let mut silent = tuner_reading(Signals::default(), Mode::Advise, symptom);
        assert_eq!(drive(&mut SimulatedRun::new(), &mut silent, 200, &values), [], "{symptom:?}");
    }
    let falling = Some(FallingSignal { rule: "still_lost", value: "lost" });
    let signals = Signals { falling, ..Signals::default() };
    let mut renamed = tuner_reading(signals, Mode::On, Symptom::NotFalling);
    let said = drive(&mut SimulatedRun::new(), &mut renamed, 120, &values);
    let found = decision(&said[0].1);
    assert_eq!(
        (found.rule.as_str(), found.cause.as_str()),
        ("still_lost", "7 lost, as many as 50 batches ago")
    );
    let Proposal::Effect(outcome) = &said[1].1 else { panic!("{said:?}") };
    assert_eq!(outcome.measure, "lost");
}

#[test]
fn a_phase_that_came_regularly_and_stays_away_is_stalled() {
    let thresholds = Thresholds { stalled_factor: 5.0, stalled_s: 3.0, ..Thresholds::default() };
    let remedies = vec![remedy(Symptom::StalledPhase, "streams", Change::Add(-1.0))];
    let mut tuner =
        Tuner::new(Mode::Advise, thresholds, SIGNALS, vec![knob("streams", 4.0, 1.0, 8.0)], remedies);
    let mut run = SimulatedRun::new();
    for idx in 0..25 {
        run.batch(&[]);
        run.tell(Event::new("r", "tell", "batch").lasting_ms(1.0));
        if idx < 19 {
            run.tell(Event::new("r", "once", "setup").lasting_ms(1.0));
        }
        assert_eq!(tuner.look(&run.snapshot, run.batch), []);
    }
    // It comes every second, so 5 seconds are too long; `once` did not come often enough to be missed.
    let said = drive(&mut run, &mut tuner, 5, &[]);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].0, 30);
    assert_eq!(decision(&said[0].1).cause, "`tell` has not reported for 5.0 s, usually 1.000 s");
}

#[test]
fn an_action_that_pays_is_followed_by_more_of_it_and_one_that_does_not_by_the_next_remedy() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::On, Symptom::LowEfficiency);
    let busy = [("busy", 0.84), ("evaluate_ms", 500.0)];
    let mut said = Vec::new();
    for _ in 0..60 {
        // The first knob doubles the speed when it is first turned, and does nothing more.
        let n_trials = if tuner.knob("first") == Some(10.0) { 100.0 } else { 200.0 };
        run.timed_batch(1000.0, n_trials, &busy);
        said.extend(tuner.look(&run.snapshot, run.batch).into_iter().map(|proposal| (run.batch, proposal)));
    }
    let turned: Vec<(u64, &str, f64)> = said
        .iter()
        .filter(|(_, proposal)| matches!(proposal, Proposal::Apply(_)))
        .map(|(at, proposal)| (*at, decision(proposal).knob.as_str(), decision(proposal).new))
        .collect();
    assert_eq!(turned[0], (9, "first", 20.0));
    assert_eq!(turned[1], (18, "first", 40.0), "a window later");
    assert_eq!(turned[2], (27, "second", 2.0), "another window later");
    let outcomes: Vec<(u64, f64, f64)> = said
        .iter()
        .filter_map(|(_, proposal)| match proposal {
            Proposal::Effect(outcome) => Some((outcome.id, outcome.before, outcome.after)),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes[..2], [(1, 100.0, 200.0), (2, 200.0, 200.0)]);
    let Proposal::Effect(outcome) = &said[1].1 else { panic!() };
    assert_eq!(
        (outcome.measure.as_str(), outcome.words.as_str()),
        ("trials_per_s", "first 10 to 20: trials_per_s 100 to 200")
    );
}

#[test]
fn an_action_that_slows_the_run_down_is_taken_back() {
    for (slower, is_reverted) in [(89.0, true), (91.0, false)] {
        let mut run = SimulatedRun::new();
        let mut tuner = tuner(Mode::On, Symptom::LowEfficiency);
        let mut said = Vec::new();
        for _ in 0..20 {
            let n_trials = if tuner.knob("first") == Some(10.0) { 100.0 } else { slower };
            run.timed_batch(1000.0, n_trials, &[("busy", 0.84), ("evaluate_ms", 500.0)]);
            said.extend(tuner.look(&run.snapshot, run.batch));
        }
        let rules: Vec<&str> = said
            .iter()
            .map(|proposal| match proposal {
                Proposal::Effect(_) => "effect",
                other => decision(other).rule.as_str(),
            })
            .collect();
        if is_reverted {
            assert_eq!(rules, ["low_efficiency", "effect", "revert"]);
            let revert = decision(&said[2]);
            assert_eq!((revert.knob.as_str(), revert.old, revert.new, revert.id), ("first", 20.0, 10.0, 2));
            assert!(revert.cause.contains("trials_per_s 100 to 89"), "{}", revert.cause);
            assert_eq!(tuner.knob("first"), Some(10.0));
        } else {
            assert_eq!(rules, ["low_efficiency", "effect", "low_efficiency"]);
            assert_eq!(decision(&said[2]).knob, "second", "the next remedy has its turn");
            assert_eq!(tuner.knob("first"), Some(20.0));
        }
    }
}

#[test]
fn two_symptoms_do_not_turn_the_same_knob_at_once() {
    let remedies = vec![
        remedy(Symptom::LowEfficiency, "batch", Change::Multiply(2.0)),
        remedy(Symptom::NoImprovement, "batch", Change::Multiply(0.5)),
    ];
    let knobs = vec![knob("batch", 64.0, 1.0, 65_536.0)];
    let thresholds = Thresholds { no_improvement_batches: 9, ..Thresholds::default() };
    let mut tuner = Tuner::new(Mode::On, thresholds, SIGNALS, knobs, remedies);
    let mut run = SimulatedRun::new();
    let said = drive(&mut run, &mut tuner, 29, &[("busy", 0.84), ("best", 1.0), ("evaluate_ms", 500.0)]);
    let turned: Vec<(u64, &str)> = said
        .iter()
        .filter(|(_, proposal)| matches!(proposal, Proposal::Apply(_)))
        .map(|(at, proposal)| (*at, decision(proposal).rule.as_str()))
        .collect();
    assert_eq!(turned, [(9, "low_efficiency"), (29, "no_improvement")]);
}

#[test]
fn decisions_are_found_again_in_their_records() {
    let mut run = SimulatedRun::new();
    let mut first = tuner(Mode::On, Symptom::NoImprovement);
    let said = drive(&mut run, &mut first, 200, &[("best", 1.0)]);
    let events: Vec<Event> = said.iter().map(|(_, proposal)| proposal.event("r")).collect();
    let json: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let read = json.iter().map(|line| serde_json::from_str::<Event>(line).unwrap());
    let decisions: Vec<Decision> = read.filter_map(|event| Decision::from_event(&event)).collect();
    let applied: Vec<&Decision> = said
        .iter()
        .filter_map(|(_, proposal)| match proposal {
            Proposal::Apply(decision) => Some(decision),
            _ => None,
        })
        .collect();
    assert_eq!(decisions.iter().collect::<Vec<_>>(), applied);
    let mut second = tuner(Mode::On, Symptom::NoImprovement);
    second.restore(&decisions);
    assert_eq!((second.knob("first"), second.knob("second")), (first.knob("first"), first.knob("second")));
    let next = drive(&mut SimulatedRun::new(), &mut second, 60, &[("best", 1.0)]);
    assert_eq!(decision(&next[0].1).id, decisions.last().unwrap().id + 1);
}

#[test]
fn the_same_snapshots_give_the_same_proposals() {
    let go = || {
        let mut tuner = tuner(Mode::On, Symptom::LowEfficiency);
        drive(&mut SimulatedRun::new(), &mut tuner, 300, &[("busy", 0.5), ("evaluate_ms", 3.0)])
    };
    assert_eq!(go(), go());
}
