//! The wire form of every event. Journals are kept for years: what is expected here may gain fields, and changes in no other way.

use std::time::Duration;

use tidemill_telemetry::hypertune::{Decision, Effect, Mode, Outcome as Measured, Thresholds};

use super::*;
use crate::config::RunConfig;
use crate::controller::{Options, PhaseTotal};
use crate::reduce::Reduction;

fn context(fallback: Option<&str>) -> RecordContext {
    RecordContext { run: "color-1".into(), began: Instant::now(), fallback: fallback.map(str::to_owned) }
}

/// The record without what all records of a run share.
fn wire(event: PassEvent<'_>, context: &RecordContext) -> String {
    let mut record = event.to_event(context).unwrap();
    record.timestamp = Timestamp::from_ms(0);
    let text = serde_json::to_string(&record).unwrap();
    let shared = r#"{"v":1,"timestamp":"1970-01-01T00:00:00.000Z","run":"color-1","#;
    text.strip_prefix(shared).unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn instance() -> Instance {
    Instance::new("ring", 3, [(0, 1), (1, 2), (2, 0)])
}

fn report(context: &RecordContext, kind: PhaseKind, result: PhaseResult) -> PhaseReport {
    PhaseReport {
        kind,
        device: DeviceMode::Cpu,
        iterations: 0,
        began: context.began + Duration::from_millis(250),
        took: Duration::from_micros(1_500),
        values: Vec::new(),
        parameters: Vec::new(),
        result,
    }
}

fn outcome(ending: Ending) -> Outcome {
    Outcome {
        k: 11,
        colors: Vec::new(),
        bound: 7,
        passes: 3,
        iterations: 300_005,
        seconds: 1.5,
        found_s: 0.2,
        by: PhaseKind::Tabu,
        ending,
        phases: Vec::<PhaseTotal>::new(),
    }
}

#[test]
fn the_first_record_has_the_graph_and_the_whole_configuration() {
    let config = RunConfig {
        options: Options {
            phases: vec![PhaseKind::Greedy, PhaseKind::Tabu],
            max_iterations: Some(300_000),
            ..Options::default()
        },
        hypertune: Mode::On,
        thresholds: Thresholds::default(),
    };
    let (instance, config) = (instance(), config.to_json());
    let started = |is_resumed, max_iterations| PassEvent::Started {
        instance: &instance,
        is_resumed,
        max_iterations,
        config: &config,
    };
    let parameters = r#""parameters":{"workload":"color","title":"ring","progress":"iterations","score":"k","better":"lower","vertices":3,"edges":3,"hypertune":"on","iterations":300000,"knobs":{"even_share":0.4,"iterations":1.0,"off":[],"phase_iterations":{},"population":1.0,"restart":24,"temperature":1.0,"transfer_weight":1.0},"min_delta":1,"on_cpu":[],"passes":null,"patience":null,"phases":["greedy","tabu"],"seed":1,"target":null,"time_s":null,"warm_start":true},"notes":null}"#;
    assert_eq!(
        wire(started(false, Some(300_000)), &context(None)),
        format!(
            r#""phase":"run","step":"start","duration_ms":null,"device":{{"mode":"cpu"}},"values":{{"total":300000}},{parameters}"#
        )
    );
    assert_eq!(
        wire(started(true, None), &context(Some("no driver"))),
        format!(
            r#""phase":"run","step":"resume","duration_ms":null,"device":{{"mode":"cpu_fallback","reason":"no driver"}},"values":{{}},{parameters}"#
        )
    );
}

#[test]
fn steps_of_phases_have_their_measurements() {
    let context = context(None);
    let worked = |report: &PhaseReport| {
        let event =
            PassEvent::PhaseWorked { report, k: 12, pass: 1, round: 4, iterations: 90_000, best: Some(13) };
        wire(event, &context)
    };
    let colored = report(&context, PhaseKind::Dsatur, PhaseResult::Colored(vec![0, 1, 2]));
    assert_eq!(
        worked(&colored),
        r#""phase":"dsatur","step":"k=12","duration_ms":1.5,"device":{"mode":"cpu"},"values":{"start_ms":250},"parameters":{"k":12,"pass":1,"round":4,"iterations":0},"notes":null}"#
    );
    let reduction = Reduction::new(&instance().graph(), 2, || false);
    let mut reduced = report(&context, PhaseKind::Reduction, PhaseResult::Reduced(Box::new(reduction)));
    reduced.values.push(("removed", 0.0));
    assert_eq!(
        worked(&reduced),
        r#""phase":"reduction","step":"k=12","duration_ms":1.5,"device":{"mode":"cpu"},"values":{"start_ms":250,"removed":0,"vertices_left":3},"parameters":{"k":12,"pass":1,"round":4,"iterations":0},"notes":null}"#
    );
    let found = PhaseResult::Searched { colors: vec![0, 1, 1], conflicts: 1 };
    let searched = PhaseReport {
        device: DeviceMode::Gpu { stream: 2 },
        iterations: 3_000,
        values: vec![("starts", 1.0)],
        parameters: vec![("tenure", 5.5)],
        ..report(&context, PhaseKind::Tabu, found)
    };
    assert_eq!(
        worked(&searched),
        r#""phase":"tabu","step":"k=12","duration_ms":1.5,"device":{"mode":"gpu","stream":2},"values":{"start_ms":250,"conflicts":1,"iterations":90000,"it_per_s":2000000,"starts":1},"parameters":{"k":12,"tenure":5.5,"pass":1,"round":4,"iterations":3000},"notes":null}"#
    );
}

#[test]
fn work_on_the_cpu_is_a_fallback_only_where_the_gpu_could_not_be_used() {
    let context = context(Some("no driver"));
    let device = |device: DeviceMode| {
        let report = PhaseReport { device, ..report(&context, PhaseKind::Tabu, PhaseResult::Proper(3)) };
        let event =
            PassEvent::PhaseWorked { report: &report, k: 3, pass: 0, round: 0, iterations: 0, best: None };
        event.to_event(&context).unwrap().device
    };
    assert_eq!(device(DeviceMode::Cpu), Some(DeviceMode::CpuFallback { reason: "no driver".into() }));
    let own = DeviceMode::CpuFallback { reason: "out of memory".into() };
    assert_eq!(device(own.clone()), Some(own));
    assert_eq!(device(DeviceMode::Gpu { stream: 1 }), Some(DeviceMode::Gpu { stream: 1 }));
}

#[test]
fn improvements_warnings_and_decisions_have_their_records() {
    let context = context(None);
    let improved = PassEvent::Improved {
        k: 11,
        colors: &[0, 1, 2],
        by: PhaseKind::Tabu,
        pass: 2,
        iterations: 4_096,
        at: context.began + Duration::from_micros(21_400),
    };
    assert_eq!(
        wire(improved, &context),
        r#""phase":"improvement","step":"coloring_11","duration_ms":null,"device":null,"values":{"k":11,"iterations":4096},"parameters":{"by":"tabu","pass":2,"found_s":0.021},"notes":null}"#
    );
    let warning = PassEvent::Warning { step: "graph", text: "2 loops were left out" };
    assert_eq!(
        wire(warning, &context),
        r#""phase":"warning","step":"graph","duration_ms":null,"device":null,"values":{},"parameters":{},"notes":"2 loops were left out"}"#
    );
    let decision = Decision {
        id: 1,
        rule: "high_conflicts".into(),
        cause: "8 conflicts, as many as 50 batches ago".into(),
        knob: "restart".into(),
        old: 24.0,
        new: 12.0,
        effect: Effect::ChangesResults,
        batch: 60,
    };
    let written = |step: &str| {
        format!(
            r#""phase":"hypertune","step":"{step}","duration_ms":null,"device":null,"values":{{"id":1,"batch":60}},"parameters":{{"rule":"high_conflicts","knob":"restart","old":24,"new":12,"effect":"changes_results"}},"notes":"8 conflicts, as many as 50 batches ago"}}"#
        )
    };
    let tuned = |proposal: Proposal| wire(PassEvent::Tuned(&proposal), &context);
    assert_eq!(tuned(Proposal::Apply(decision.clone())), written("apply"));
    assert_eq!(tuned(Proposal::Advise(decision)), written("advise"));
    let effect = Measured {
        id: 1,
        measure: "conflicts".into(),
        before: 8.0,
        after: 6.0,
        words: "restart 24 to 12: conflicts 8 to 6".into(),
        batch: 120,
    };
    assert_eq!(
        tuned(Proposal::Effect(effect)),
        r#""phase":"hypertune","step":"effect","duration_ms":null,"device":null,"values":{"id":1,"batch":120,"before":8,"after":6},"parameters":{"measure":"conflicts"},"notes":"restart 24 to 12: conflicts 8 to 6"}"#
    );
}

#[test]
fn the_last_record_says_how_the_run_ended() {
    let ended = |ending, fallback| wire(PassEvent::Ended(&outcome(ending)), &context(fallback));
    assert_eq!(
        ended(Ending::Iterations, None),
        r#""phase":"run","step":"end","duration_ms":null,"device":{"mode":"cpu"},"values":{"k":11,"iterations":300005,"passes":3,"bound":7,"wall_s":1.5},"parameters":{"outcome":"complete"},"notes":"the limit of iterations is reached"}"#
    );
    assert_eq!(
        ended(Ending::Stopped, Some("no driver")),
        r#""phase":"run","step":"end","duration_ms":null,"device":{"mode":"cpu_fallback","reason":"no driver"},"values":{"k":11,"iterations":300005,"passes":3,"bound":7,"wall_s":1.5},"parameters":{"outcome":"stopped"},"notes":"it was stopped"}"#
    );
    assert_eq!(
        wire(PassEvent::Failed { reason: "the device is gone" }, &context(None)),
        r#""phase":"run","step":"end","duration_ms":null,"device":null,"values":{},"parameters":{"outcome":"failed"},"notes":"the device is gone"}"#
    );
}

#[test]
fn the_ends_of_rounds_and_passes_have_their_records() {
    let ended = PassEvent::PassEnded {
        pass: 2,
        k: 12,
        is_solved: false,
        best: 13,
        pass_iterations: 40_000,
        iterations: 90_000,
    };
    assert_eq!(
        wire(ended, &context(None)),
        r#""phase":"pass","step":"pass_2","duration_ms":null,"device":null,"values":{"iterations":90000},"parameters":{"k":12,"pass":2,"solved":false,"best":13,"iterations":40000},"notes":null}"#
    );
    let work = RoundWork {
        round: 7,
        pass: 2,
        k: 12,
        wall: Duration::from_millis(8),
        work: Duration::from_millis(6),
        iterations: 90_000,
    };
    assert_eq!(
        wire(PassEvent::RoundEnded(work), &context(None)),
        r#""phase":"round","step":"round_7","duration_ms":null,"device":null,"values":{"iterations":90000,"busy":0.75,"wall_ms":8,"work_ms":6,"idle_ms":2},"parameters":{"k":12,"pass":2,"round":7},"notes":null}"#
    );
}
