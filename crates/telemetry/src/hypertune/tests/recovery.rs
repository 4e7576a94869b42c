//! Knobs that go back, knobs that nothing reads, and phases that are meant to be silent.

use super::*;

/// A tuner that raises `share` against no improvement, and then `second`.
fn borrowing() -> Tuner {
    let share = remedy(Symptom::NoImprovement, "share", Change::Add(3.0));
    let second = remedy(Symptom::NoImprovement, "second", Change::Add(1.0));
    let knobs = vec![knob("share", 1.0, 0.0, 9.0), knob("second", 1.0, 0.0, 4.0)];
    let remedies = vec![Remedy { until_recovery: true, ..share }, second];
    Tuner::new(Mode::On, Thresholds::default(), SIGNALS, knobs, remedies)
}

fn applied(said: &[(u64, Proposal)]) -> Vec<(&str, &str, f64, f64)> {
    let decisions = said.iter().filter_map(|(_, proposal)| match proposal {
        Proposal::Apply(decision) => Some(decision),
        _ => None,
    });
    decisions.map(|it| (it.rule.as_str(), it.knob.as_str(), it.old, it.new)).collect()
}

#[test]
fn what_was_turned_until_recovery_goes_back_when_the_score_gets_better() {
    let mut run = SimulatedRun::new();
    let mut tuner = borrowing();
    let said = drive(&mut run, &mut tuner, 100, &[("best", 1.0)]);
    assert_eq!(applied(&said), [("no_improvement", "share", 1.0, 4.0)]);
    // Something better, and as many batches as its effect is measured over.
    let said = drive(&mut run, &mut tuner, 49, &[("best", 2.0)]);
    assert_eq!(applied(&said), [("recovered", "share", 4.0, 1.0)]);
    let Proposal::Apply(decision) = &said.last().unwrap().1 else { panic!("{said:?}") };
    assert_eq!(decision.cause, "no_improvement is over");
    assert_eq!(tuner.knob("share"), Some(1.0));
}

#[test]
fn without_recovery_it_stays_and_a_later_one_takes_it_back_also_in_a_resumed_run() {
    let mut run = SimulatedRun::new();
    let mut tuner = borrowing();
    // Two windows without anything better: the second remedy has its turn, and the first stays turned.
    let said = drive(&mut run, &mut tuner, 110, &[("best", 1.0)]);
    let turned = [("no_improvement", "share", 1.0, 4.0), ("no_improvement", "second", 1.0, 2.0)];
    assert_eq!(applied(&said), turned);
    let decisions: Vec<Decision> =
        said.iter().filter_map(|(_, proposal)| Decision::from_event(&proposal.event("r"))).collect();
    let mut resumed = borrowing();
    resumed.restore(&decisions);
    for tuner in [&mut tuner, &mut resumed] {
        assert_eq!(tuner.knob("share"), Some(4.0));
        let mut run = SimulatedRun {
            snapshot: run.snapshot.clone(),
            at_ms: run.at_ms,
            trials: run.trials,
            valid: 0.0,
            batch: run.batch,
        };
        let said = drive(&mut run, tuner, 49, &[("best", 2.0)]);
        assert_eq!(applied(&said)[0], ("recovered", "share", 4.0, 1.0));
        assert_eq!((tuner.knob("share"), tuner.knob("second")), (Some(1.0), Some(2.0)));
    }
    // What was given back before the interruption is not given back again.
    let given_back = Decision { rule: "recovered".into(), new: 1.0, old: 4.0, ..decisions[0].clone() };
    let mut later = borrowing();
    later.restore([&decisions[0], &given_back]);
    let said = drive(&mut SimulatedRun::new(), &mut later, 40, &[("best", 1.0)]);
    assert_eq!(applied(&said), []);
}

#[test]
fn a_reset_goes_back_to_the_start() {
    let remedies = vec![
        remedy(Symptom::NoImprovement, "first", Change::Multiply(4.0)),
        remedy(Symptom::NoImprovement, "first", Change::Reset),
    ];
    let knobs = vec![knob("first", 10.0, 1.0, 40.0)];
    let mut tuner = Tuner::new(Mode::On, Thresholds::default(), SIGNALS, knobs, remedies);
    let said = drive(&mut SimulatedRun::new(), &mut tuner, 160, &[("best", 1.0)]);
    let turned = [("no_improvement", "first", 10.0, 40.0), ("no_improvement", "first", 40.0, 10.0)];
    assert_eq!(applied(&said), turned);
}

#[test]
fn a_knob_that_nothing_reads_is_left_alone_until_something_does() {
    let mut run = SimulatedRun::new();
    let mut tuner = tuner(Mode::On, Symptom::NoImprovement);
    tuner.set_read("first", false);
    tuner.set_read("none", false);
    let said = drive(&mut run, &mut tuner, 60, &[("best", 1.0)]);
    assert_eq!(applied(&said), [("no_improvement", "second", 1.0, 2.0)]);
    tuner.set_read("first", true);
    let said = drive(&mut run, &mut tuner, 60, &[("best", 1.0)]);
    assert_eq!(applied(&said), [("no_improvement", "first", 10.0, 20.0)]);
}

/// Rounds of a phase that has a switch, of one that has none, and of one that comes now and then.
fn rounds(run: &mut SimulatedRun, tuner: &mut Tuner, n: u64, phases: &[&str]) -> Vec<(u64, Proposal)> {
    let mut said = Vec::new();
    for _ in 0..n {
        run.batch(&[]);
        for phase in phases {
            run.tell(Event::new("r", phase.to_string(), "step").lasting_ms(1.0));
        }
        said.extend(tuner.look(&run.snapshot, run.batch).into_iter().map(|proposal| (run.batch, proposal)));
    }
    said
}

#[test]
fn a_phase_that_is_switched_off_or_comes_now_and_then_is_not_stalled() {
    let switch = |value: f64| {
        let switch = Knob { kind: KnobKind::Switch, ..knob("partial", 1.0, 0.0, 1.0) };
        let knobs = vec![switch, knob("streams", 4.0, 1.0, 8.0)];
        let thresholds = Thresholds { stalled_factor: 5.0, stalled_s: 3.0, ..Thresholds::default() };
        let remedies = vec![remedy(Symptom::StalledPhase, "streams", Change::Add(-1.0))];
        let mut tuner = Tuner::new(Mode::Advise, thresholds, SIGNALS, knobs, remedies);
        let turned = Decision {
            id: 1,
            rule: "no_improvement".into(),
            cause: String::new(),
            knob: "partial".into(),
            old: 1.0,
            new: value,
            effect: Effect::ChangesResults,
            batch: 1,
        };
        tuner.restore([&turned]);
        tuner
    };
    for (value, is_stalled) in [(0.0, false), (1.0, true)] {
        let (mut run, mut tuner) = (SimulatedRun::new(), switch(value));
        assert_eq!(rounds(&mut run, &mut tuner, 25, &["partial", "verify"]), []);
        let said = rounds(&mut run, &mut tuner, 20, &[]);
        assert_eq!(!said.is_empty(), is_stalled, "{said:?}");
        if let Some((_, proposal)) = said.first() {
            assert!(decision(proposal).cause.starts_with("`partial` has not reported"), "not `verify`");
        }
    }
}

#[test]
fn a_phase_that_was_just_switched_on_has_its_time_to_report() {
    let switch = Knob { kind: KnobKind::Switch, ..knob("partial", 1.0, 0.0, 1.0) };
    let thresholds = Thresholds {
        stalled_factor: 5.0,
        stalled_s: 3.0,
        no_improvement_batches: 30,
        cooldown_batches: 1,
        cooldown_s: 0.0,
        ..Thresholds::default()
    };
    let remedies = vec![
        remedy(Symptom::NoImprovement, "partial", Change::Set(0.0)),
        remedy(Symptom::NoImprovement, "partial", Change::Set(1.0)),
        remedy(Symptom::StalledPhase, "streams", Change::Add(-1.0)),
    ];
    let knobs = vec![switch, knob("streams", 4.0, 1.0, 8.0)];
    let mut tuner = Tuner::new(Mode::On, thresholds, SIGNALS, knobs, remedies);
    let mut run = SimulatedRun::new();
    assert_eq!(applied(&rounds(&mut run, &mut tuner, 29, &["partial"])), []);
    let mut said = Vec::new();
    for _ in 0..100 {
        said.extend(rounds(&mut run, &mut tuner, 1, &[]));
        if applied(&said).len() == 2 {
            break;
        }
    }
    let turned = [("no_improvement", "partial", 1.0, 0.0), ("no_improvement", "partial", 0.0, 1.0)];
    assert_eq!(applied(&said), turned, "off and on again, and never stalled");
    let said = rounds(&mut run, &mut tuner, 4, &[]);
    assert_eq!(applied(&said), [], "it is on, but not for long");
    let said = rounds(&mut run, &mut tuner, 4, &[]);
    assert_eq!(applied(&said), [("stalled_phase", "streams", 4.0, 3.0)]);
}
