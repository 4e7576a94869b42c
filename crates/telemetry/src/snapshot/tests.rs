//! The fold of every kind of event, its bounds, and what a resumption does to it.

use serde_json::json;

use super::*;
use crate::event::DeviceMode;

/// A run with a clock that is set by hand.
#[derive(Default)]
struct SimulatedRun {
    snapshot: Snapshot,
    at_s: f64,
}

impl SimulatedRun {
    fn started() -> Self {
        let mut run = Self::default();
        let start = Event::new("r", "run", "start").value("total", 1000.0);
        run.tell(
            start.parameter("workload", "sweep").parameter("title", "ema-cross").parameter("sampler", "auto"),
        );
        run
    }

    fn tell(&mut self, mut event: Event) {
        event.timestamp = Timestamp::from_ms((self.at_s * 1e3).round() as i64);
        self.snapshot.apply(&event);
    }

    fn batch(&mut self, at_s: f64, trials: f64) {
        self.at_s = at_s;
        self.tell(Event::new("r", "evaluate", "batch").lasting_ms(100.0).value("trials", trials));
    }

    fn rates(&self) -> Vec<f64> {
        self.snapshot.rate.points().map(|(_, rate)| rate).collect()
    }
}

#[test]
fn a_start_says_what_the_run_is() {
    let run = SimulatedRun::started();
    let snapshot = &run.snapshot;
    assert_eq!(
        (snapshot.run.as_str(), snapshot.workload.as_str(), snapshot.title.as_str()),
        ("r", "sweep", "ema-cross")
    );
    assert_eq!(
        (snapshot.progress.as_str(), snapshot.score.as_str(), snapshot.is_lower_better),
        ("trials", "best", false)
    );
    assert_eq!((snapshot.total, snapshot.config["sampler"].as_str()), (Some(1000.0), Some("auto")));
    assert_eq!((snapshot.state, snapshot.n_resumes, snapshot.n_events), (RunState::Running, 0, 1));
}

#[test]
fn a_run_counts_in_its_own_unit_and_less_may_be_better() {
    let mut run = SimulatedRun::default();
    let start = Event::new("r", "run", "start").parameter("progress", "moves").parameter("score", "k");
    run.tell(start.parameter("better", "lower"));
    for (moves, k) in [(10.0, 30.0), (20.0, 28.0), (30.0, 29.0)] {
        run.at_s += 1.0;
        run.tell(Event::new("r", "tabu", "step").value("moves", moves).value("k", k).value("trials", 1.0));
    }
    assert_eq!((run.snapshot.done, run.snapshot.best, run.snapshot.n_batches), (30.0, Some(28.0), 3));
    let reached: Vec<_> =
        run.snapshot.convergence.points().iter().map(|point| (point.done, point.score)).collect();
    assert_eq!(reached, [(10.0, 30.0), (20.0, 28.0)]);
    assert_eq!((run.snapshot.n_improvements, run.snapshot.improved_at_batch), (2, 2));
    assert_eq!(run.snapshot.values["k"], 29.0, "values are the newest, not the best");
}

#[test]
fn phases_know_their_steps_durations_and_devices() {
    let mut run = SimulatedRun::started();
    for ms in 1..=100 {
        run.at_s = f64::from(ms);
        let device = match ms {
            1..=50 => Some(DeviceMode::Gpu { stream: 1 }),
            51..=75 => Some(DeviceMode::CpuFallback { reason: "lost".into() }),
            _ => None,
        };
        let mut event = Event::new("r", "kernel", "batch").lasting_ms(f64::from(ms));
        event.device = device;
        run.tell(event);
    }
    run.tell(Event::new("r", "kernel", "note"));
    let phase = &run.snapshot.phases["kernel"];
    assert_eq!(
        (phase.count, phase.n_lasting(), phase.total_ms, phase.max_ms, phase.last_ms),
        (101, 100, 5050.0, 100.0, 100.0)
    );
    assert_eq!((phase.gpu_ms, phase.fallback_ms, phase.cpu_ms), (1275.0, 1575.0, 2200.0));
    assert_eq!((phase.first_at_s, phase.last_at_s), (1.0, 100.0));
    for (share, ms) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
        let quantile = phase.quantile_ms(share).unwrap();
        assert!((quantile / ms - 1.0).abs() < 0.023, "{share}: {quantile}");
    }
    assert_eq!(phase.mean_ms(), Some(50.5));
    assert_eq!(PhaseStats::default().quantile_ms(0.5), None);
    assert_eq!((run.snapshot.n_fallbacks, run.snapshot.fallbacks[0].text.as_str()), (1, "lost"));
}

#[test]
fn spans_lie_on_lanes_and_begin_where_they_say_or_end_now() {
    let mut run = SimulatedRun::started();
    run.tell(Event::new("r", "run", "start").parameter("lanes", json!({ "plan": "planner" })));
    run.at_s = 2.0;
    run.tell(
        Event::new("r", "kernel", "a")
            .lasting_ms(5.0)
            .on(DeviceMode::Gpu { stream: 3 })
            .value("start_ms", 7.0),
    );
    run.tell(Event::new("r", "plan", "a").lasting_ms(500.0));
    run.tell(Event::new("r", "load", "a").lasting_ms(1.0).on(DeviceMode::Cpu));
    let spans: Vec<_> = run.snapshot.spans.iter().map(|span| (span.lane.as_str(), span.start_ms)).collect();
    assert_eq!(spans, [("stream 3", 7.0), ("planner", 1500.0), ("cpu", 1999.0)]);
    assert!(run.snapshot.values.get("start_ms").is_none());
}

#[test]
fn improvements_are_ranked_and_told_once() {
    let mut run = SimulatedRun::started();
    let found = |trial: u32, score: f64| {
        Event::new("r", "improvement", format!("trial_{trial}")).value("best", score).parameter("fast", trial)
    };
    for (trial, score) in [(1, 1.0), (2, 3.0), (3, 2.0), (2, 3.0)] {
        run.tell(found(trial, score));
    }
    run.tell(Event::new("r", "improvement", "trial_9"));
    let top: Vec<_> = run.snapshot.top.iter().map(|top| (top.name.as_str(), top.score)).collect();
    assert_eq!(top, [("trial_2", 3.0), ("trial_3", 2.0), ("trial_1", 1.0)]);
    assert_eq!(run.snapshot.top[0].parameters["fast"], json!(2));
    assert_eq!((run.snapshot.best, run.snapshot.n_improvements), (Some(3.0), 2));
    // The batch that it was found in tells of the same score, which is no second improvement.
    run.tell(Event::new("r", "tell", "batch").value("best", 3.0));
    assert_eq!(run.snapshot.n_improvements, 2);
}

#[test]
fn actions_get_their_effects() {
    let mut run = SimulatedRun::started();
    let action = |step: &'static str, id: f64| {
        let event = Event::new("r", "hypertune", step).value("id", id).value("batch", 7.0).note("why");
        event
            .parameter("rule", "low_efficiency")
            .parameter("knob", "batch")
            .parameter("old", 64)
            .parameter("new", 256)
    };
    run.tell(action("advise", 1.0));
    run.tell(action("apply", 2.0));
    let effect = Event::new("r", "hypertune", "effect").value("before", 10.0).value("after", f64::NAN);
    run.tell(effect.clone().value("id", 2.0).parameter("measure", "trials_per_s"));
    run.tell(effect.value("id", 99.0));
    let actions = &run.snapshot.actions;
    assert_eq!((run.snapshot.n_actions, actions[0].is_applied, actions[1].is_applied), (2, false, true));
    assert_eq!((&actions[1].old, &actions[1].new, actions[1].batch), (&json!(64), &json!(256), Some(7)));
    assert_eq!((actions[1].cause.as_str(), actions[0].effect.as_ref()), ("why", None));
    let effect = actions[1].effect.as_ref().unwrap();
    assert!(effect.measure == "trials_per_s" && effect.before == 10.0 && effect.after.is_nan());
}

#[test]
fn warnings_and_drops_are_counted() {
    let mut run = SimulatedRun::started();
    run.tell(Event::new("r", "warning", "data").note("a gap"));
    for n_dropped in [5.0, 7.0] {
        run.tell(
            Event::new("r", "journal", "dropped").value("dropped", n_dropped).value("dropped_in_all", 12.0),
        );
    }
    assert_eq!((run.snapshot.n_warnings, run.snapshot.n_dropped), (1, 12));
    let warning = &run.snapshot.warnings[0];
    assert_eq!((warning.source.as_str(), warning.text.as_str()), ("warning data", "a gap"));
    assert!(run.snapshot.phases.is_empty(), "neither is work");
}

#[test]
fn an_end_says_how() {
    for (outcome, state) in
        [("complete", RunState::Complete), ("stopped", RunState::Stopped), ("failed", RunState::Failed)]
    {
        let mut run = SimulatedRun::started();
        run.batch(1.0, 10.0);
        run.at_s = 2.0;
        run.tell(
            Event::new("r", "run", "end").parameter("outcome", outcome).value("trials", 20.0).note("done"),
        );
        assert_eq!((run.snapshot.state, run.snapshot.outcome.as_deref()), (state, Some("done")));
        assert_eq!((run.snapshot.done, run.snapshot.eta_s()), (20.0, None));
        assert!(!run.snapshot.is_live(Timestamp::from_ms(2000), 10.0));
    }
}

#[test]
fn a_word_now_and_then_keeps_a_run_alive() {
    let mut run = SimulatedRun::started();
    run.at_s = 60.0;
    run.tell(Event::new("r", "run", "alive"));
    assert_eq!((run.snapshot.n_events, run.snapshot.elapsed_s(), run.snapshot.recent.len()), (1, 60.0, 1));
    assert!(run.snapshot.is_live(Timestamp::from_ms(70_000), 10.0));
    assert!(!run.snapshot.is_live(Timestamp::from_ms(70_001), 10.0));
}

#[test]
fn speed_is_measured_between_reports_of_something_new() {
    let mut run = SimulatedRun::started();
    for (at_s, trials) in [(1.0, 100.0), (2.0, 300.0), (2.1, 310.0), (3.0, 400.0)] {
        run.batch(at_s, trials);
    }
    assert_eq!(run.rates(), [100.0, 200.0, 100.0]);
    assert_eq!(run.snapshot.eta_s(), Some(600.0 / (400.0 / 3.0)));
    assert_eq!(run.snapshot.n_batches, 4);
}

#[test]
fn a_resumed_run_counts_neither_the_pause_nor_the_replay() {
    let mut run = SimulatedRun::started();
    for second in 1..=5 {
        run.batch(f64::from(second), f64::from(second) * 100.0);
    }
    // Killed; an hour later it is resumed and replays its 500 trials within a second.
    run.at_s = 3600.0;
    run.tell(Event::new("r", "run", "resume").value("total", 1000.0));
    assert_eq!((run.snapshot.elapsed_s(), run.snapshot.n_resumes, run.snapshot.spans.len()), (5.0, 1, 0));
    for tenth in 1..=5 {
        run.batch(3600.0 + f64::from(tenth) * 0.2, f64::from(tenth) * 100.0);
    }
    assert_eq!((run.snapshot.n_batches, run.snapshot.done, run.rates().len()), (5, 500.0, 5));
    run.batch(3602.0, 600.0);
    run.batch(3603.0, 700.0);
    assert_eq!(run.snapshot.n_batches, 7);
    assert!(run.rates().iter().all(|rate| (80.0..=120.0).contains(rate)), "{:?}", run.rates());
    assert_eq!(run.snapshot.elapsed_s(), 8.0);
}

#[test]
fn what_a_journal_missed_before_a_kill_is_no_speed() {
    let mut run = SimulatedRun::started();
    run.batch(1.0, 100.0);
    run.at_s = 100.0;
    run.tell(Event::new("r", "run", "resume"));
    // The study kept 900 trials that the journal has no record of.
    run.batch(101.0, 1000.0);
    run.batch(102.0, 1100.0);
    assert_eq!(run.rates(), [100.0, 100.0]);
    assert_eq!(run.snapshot.spans.len(), 2);
}

#[test]
fn a_clock_that_was_set_back_does_no_harm() {
    let mut run = SimulatedRun::started();
    run.batch(10.0, 100.0);
    run.batch(5.0, 200.0);
    assert_eq!((run.snapshot.elapsed_s(), run.snapshot.done), (10.0, 200.0));
    run.at_s = -3600.0;
    run.tell(Event::new("r", "run", "resume"));
    assert_eq!(run.snapshot.elapsed_s(), 10.0);
    run.batch(-3598.0, 300.0);
    assert_eq!(run.snapshot.elapsed_s(), 12.0);
}

#[test]
fn events_of_threads_may_come_in_any_order() {
    let events: Vec<(f64, Event)> = (0..50)
        .map(|idx| {
            (
                f64::from(idx) * 0.01,
                Event::new("r", format!("phase_{}", idx % 5), "s").lasting_ms(f64::from(idx)),
            )
        })
        .collect();
    let fold = |order: &mut dyn Iterator<Item = &(f64, Event)>| {
        let mut run = SimulatedRun::started();
        for (at_s, event) in order {
            run.at_s = *at_s;
            run.tell(event.clone());
        }
        run.snapshot
    };
    let (forth, back) = (fold(&mut events.iter()), fold(&mut events.iter().rev()));
    assert_eq!(forth.last, back.last);
    for (name, phase) in &forth.phases {
        assert_eq!((phase.count, phase.total_ms, phase.max_ms), {
            let other = &back.phases[name];
            (other.count, other.total_ms, other.max_ms)
        });
    }
}

#[test]
fn a_journal_without_a_beginning_is_folded_all_the_same() {
    let mut run = SimulatedRun { at_s: 50.0, ..SimulatedRun::default() };
    run.batch(50.0, 100.0);
    run.batch(51.0, 200.0);
    assert_eq!((run.snapshot.run.as_str(), run.snapshot.done, run.snapshot.elapsed_s()), ("r", 200.0, 1.0));
    assert_eq!((run.rates(), run.snapshot.n_events), (vec![200.0], 2));
}

#[test]
fn nothing_grows_without_bound() {
    let mut run = SimulatedRun::started();
    for idx in 0..5000 {
        run.at_s += 60.0;
        let name = |kind: &str| format!("{kind}_{idx}");
        run.tell(
            Event::new("r", name("phase"), "s").lasting_ms(1.0 + f64::from(idx)).value(name("value"), 1.0),
        );
        run.tell(Event::new("r", "improvement", name("trial")).value("best", f64::from(idx)));
        run.tell(Event::new("r", "warning", name("step")));
        run.tell(Event::new("r", "hypertune", "advise").value("id", f64::from(idx)));
        let reason = name("reason");
        run.tell(Event::new("r", "kernel", "s").on(DeviceMode::CpuFallback { reason }).value("busy", 0.5));
        run.batch(run.at_s, f64::from(idx + 1));
    }
    let snapshot = &run.snapshot;
    assert_eq!((snapshot.phases.len(), snapshot.values.len()), (MAX_NAMES, MAX_NAMES));
    assert_eq!(
        (snapshot.recent.len(), snapshot.spans.len(), snapshot.top.len()),
        (RECENT_EVENTS, RECENT_SPANS, TOP)
    );
    assert_eq!(
        (snapshot.warnings.len(), snapshot.actions.len(), snapshot.fallbacks.len()),
        (KEPT, KEPT, KEPT)
    );
    assert_eq!((snapshot.n_warnings, snapshot.n_actions, snapshot.n_fallbacks), (5000, 5000, 5000));
    assert!(snapshot.convergence.points().len() <= 1024 && snapshot.rate.points().count() <= 512);
    let points = snapshot.convergence.points();
    assert_eq!((points[0].score, points[points.len() - 1].score), (0.0, 4999.0));
    assert!(points.is_sorted_by(|one, next| one.at_s <= next.at_s && one.score < next.score));
    assert_eq!((snapshot.top[0].score, snapshot.top[TOP - 1].score), (4999.0, 4980.0));
    assert!(serde_json::to_string(snapshot).unwrap().len() < 1 << 20);
}

#[test]
fn a_snapshot_survives_json_with_what_json_lacks() {
    let mut run = SimulatedRun::started();
    run.tell(Event::new("r", "kernel", "s").lasting_ms(3.0).value("lost", f64::NAN).value("best", 0.1 + 0.2));
    run.tell(Event::new("r", "hypertune", "apply").value("id", 1.0));
    run.tell(Event::new("r", "hypertune", "effect").value("id", 1.0));
    let json = serde_json::to_string(&run.snapshot).unwrap();
    let back: Snapshot = serde_json::from_str(&json).unwrap();
    assert!(back.values["lost"].is_nan());
    assert_eq!(serde_json::to_string(&back).unwrap(), json);
    assert_eq!(back.best, Some(0.1 + 0.2));
}

#[test]
fn a_series_keeps_means_however_long_it_is() {
    let mut series = Series::default();
    assert_eq!((series.newest(), series.recent(10.0)), (None, None));
    for second in 0..10_000 {
        series.push(f64::from(second), f64::from(second % 2), 1.0);
    }
    assert!(series.points().count() <= 512 && series.width_s() <= 32.0);
    assert!(series.points().all(|(_, mean)| mean == 0.5));
    assert_eq!((series.newest(), series.recent(64.0)), (Some(1.0), Some(0.5)));
    for (at_s, value, weight) in
        [(-1.0, 1.0, 1.0), (1.0, f64::NAN, 1.0), (1.0, 1.0, 0.0), (f64::INFINITY, 1.0, 1.0)]
    {
        let before = series.clone();
        series.push(at_s, value, weight);
        assert_eq!(series, before);
    }
}

#[test]
fn workers_have_a_line_and_a_lane_each_and_leave_the_values_of_the_run_alone() {
    let mut snapshot = Snapshot::default();
    let at = |step: &str, lane: f64| Event::new("r", "worker", step).value("lane", lane);
    let shard = |lane: u64, trials: f64, copy: f64| {
        let lane_name = format!("worker {lane}");
        let event = Event::new("r", "shard", "batch_3").lasting_ms(50.0).value("lane", lane as f64);
        event.value("shard_trials", trials).value("copy", copy).parameter("lane", lane_name)
    };
    for event in [
        Event::new("r", "run", "start"),
        at("joined", 0.0).parameter("name", "a:1").parameter("device", "the CPU"),
        at("joined", 1.0).parameter("name", "b:2").parameter("device", "H200"),
        shard(0, 100.0, 0.0),
        shard(1, 300.0, 0.0),
        shard(1, 100.0, 1.0),
        at("lost", 0.0).value("resent", 2.0),
    ] {
        snapshot.take(event);
    }
    let [a, b] = [&snapshot.workers[&0], &snapshot.workers[&1]];
    assert_eq!((a.name.as_str(), a.is_present, a.n_lost, a.n_resent, a.n_trials), ("a:1", false, 1, 2, 100));
    assert_eq!((b.is_present, b.n_shards, b.n_copies, b.rate()), (true, 2, 1, Some(4000.0)));
    let lanes: Vec<&str> = snapshot.spans.iter().map(|span| span.lane.as_str()).collect();
    assert_eq!(lanes, ["worker 0", "worker 1", "worker 1"]);
    assert!(snapshot.values.iter().next().is_none());
    snapshot.take(Event::new("r", "run", "end"));
    assert!(!snapshot.workers[&1].is_present);
}
