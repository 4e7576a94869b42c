//! Applies decisions about `streams`: from the next batch on the devices run that many parts at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use tidemill_backtest::segment::Layout;
use tidemill_backtest::{DeviceOptions, Engine, EngineOptions, Overrides, Strategy};
use tidemill_gpu::{Device, HostOptions, Source};
use tidemill_market::Universe;
use tidemill_market::synth::lcg;
use tidemill_search::{Batch, Evaluator, Points, SamplerKind, SamplerSettings};
use tidemill_telemetry::{Event, Journal, Timestamp};

use super::*;
use crate::device::Devices;
use crate::evaluator::StudyEvaluator;
use crate::shipped::shipped;

/// A sweep whose batches are as long as possible, so that only streams and lag are left to be turned.
fn tuned(mode: Mode) -> TuningConfig {
    let thresholds = Thresholds { window_batches: 2, window_s: 0.0, ..Thresholds::default() };
    TuningConfig { mode, thresholds, batch: 16, most_batch: 16, lag: 1, learns: false, knobs: Vec::new() }
}

fn tuning(mode: Mode, earlier: &[Decision], view: &Arc<EvaluatorView>) -> Tuning {
    let journal = Arc::new(Journal::without_file().unwrap());
    let reporter = Reporter::new(journal, "test".into(), Arc::new(|_| ()));
    Tuning::new(&tuned(mode), earlier, reporter, view.clone())
}

/// Tells the tuner of a device that is idle most of the time: batches of 16 trials, each so many milliseconds after the last. It is ahead of
/// the time of this machine, so that what the tuner itself records does not move it.
struct Clock {
    at_ms: i64,
    n_batches: u64,
}

impl Clock {
    fn start(tuning: &Tuning) -> Self {
        let clock = Self { at_ms: Timestamp::now().as_ms() + 1_000_000_000_000, n_batches: 0 };
        clock.tell(tuning, Event::new("test", "run", "start"));
        clock
    }

    fn tell(&self, tuning: &Tuning, mut event: Event) {
        event.timestamp = Timestamp::from_ms(self.at_ms);
        // Durably, so that it is folded in when the tuner looks.
        tuning.reporter.journal().record_durable(event).unwrap();
    }

    /// Batches go by until the tuner turns the streams, and how, in its words; none if two hundred go by without it.
    fn until_turned(&mut self, tuning: &mut Tuning, batch_ms: i64) -> Option<String> {
        let said = |tuning: &Tuning| {
            let of_streams = |sentence: &String| sentence.starts_with("hypertune changed streams ");
            tuning.advice().sentences().into_iter().find(of_streams)
        };
        let before = said(tuning);
        for _ in 0..200 {
            self.at_ms += batch_ms;
            self.n_batches += 1;
            let event = Event::new("test", "kernel", format!("batch_{}", self.n_batches - 1))
                .lasting_ms(batch_ms as f64)
                .value("trials", 16.0 * self.n_batches as f64)
                .value("busy", 0.1);
            self.tell(tuning, event);
            let now = Settings { batch: 16, lag: 1, knobs: Vec::new() };
            tuning.changes(self.n_batches, &now, &[]).unwrap();
            let after = said(tuning);
            if after != before {
                return after;
            }
        }
        None
    }
}

/// The lanes that batches are on when many are submitted before one is collected: one more than compute, because one waits. A batch may end
/// before another one begins, and leave it its lane, so that they are submitted ten times, and then until so many lanes were used, or for a minute.
fn used(evaluator: &mut StudyEvaluator<'_, '_>, points: &Arc<Points>, n_wanted: usize) -> BTreeSet<usize> {
    let view = evaluator.view();
    view.take_spans();
    let (mut lanes, began) = (BTreeSet::new(), Instant::now());
    for round in 0.. {
        let is_enough = lanes.len() >= n_wanted || began.elapsed() > Duration::from_secs(60);
        if round >= 10 && is_enough {
            break;
        }
        for index in 0..6 {
            evaluator.submit(Batch { index, first_trial: 0, points: points.clone() }).unwrap();
        }
        for _ in 0..6 {
            evaluator.collect().unwrap();
        }
        lanes.extend(view.take_spans().iter().map(|span| span.span.lane));
    }
    lanes
}

#[test]
fn what_the_tuner_decides_is_done_by_the_devices_and_taken_back() {
    let device = Device::host(HostOptions::default());
    if let Err(error) = device.load(&Source::splice("nothing.cu", &[])) {
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
        return;
    }
    let source = shipped("zscore-dip").unwrap();
    let strategy = Strategy::parse("zscore-dip.toml", source, &Overrides::default()).unwrap();
    let universe = Universe { symbols: vec![lcg(600)] };
    let segments = Layout::default().segments(&universe).unwrap();
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
    let space = engine.space();
    let points = SamplerKind::Sobol.build(&space, &SamplerSettings::new(1)).unwrap().ask(4);
    let points = Arc::new(points);
    let options = DeviceOptions::default();
    let devices = Devices::of(vec![device], false);
    let mut evaluator = StudyEvaluator::new(&mut engine, &strategy, &devices, options, None).unwrap();
    let view = evaluator.view();
    assert_eq!(view.lanes(), Some(2));
    assert_eq!(used(&mut evaluator, &points, 3), BTreeSet::from([0, 1, 2]));

    let mut tuning = tuning(Mode::On, &[], &view);
    let mut clock = Clock::start(&tuning);
    let said = clock.until_turned(&mut tuning, 100).unwrap();
    assert!(said.starts_with("hypertune changed streams 2 → 3: busy 10.0 %"), "{said}");
    assert_eq!(view.lanes(), Some(3));
    assert_eq!(used(&mut evaluator, &points, 4), BTreeSet::from([0, 1, 2, 3]));

    // From then on batches take ten times as long, so that it is taken back.
    let said = clock.until_turned(&mut tuning, 1000).unwrap();
    assert!(said.starts_with("hypertune changed streams 3 → 2: action "), "{said}");
    assert_eq!(view.lanes(), Some(2));
    assert_eq!(used(&mut evaluator, &points, 3), BTreeSet::from([0, 1, 2]));
}

#[test]
fn advice_leaves_the_lanes_alone() {
    let view = Arc::new(EvaluatorView::of_cpu());
    view.set_lanes(2);
    let mut tuning = tuning(Mode::Advise, &[], &view);
    let mut clock = Clock::start(&tuning);
    assert_eq!(clock.until_turned(&mut tuning, 100), None);
    let said = tuning.advice().sentences();
    assert!(said.iter().any(|said| said.starts_with("hypertune would change streams 2 → 3")), "{said:?}");
    assert_eq!(view.lanes(), Some(2));
}

#[test]
fn a_resumed_sweep_has_the_lanes_that_were_decided_last() {
    let decision = |id: u64, old: f64, new: f64| Decision {
        id,
        rule: "low_efficiency".into(),
        cause: "busy 10 %".into(),
        knob: "streams".into(),
        old,
        new,
        effect: Effect::Neutral,
        batch: 10 * id,
    };
    let earlier = [decision(1, 2.0, 3.0), decision(2, 3.0, 4.0)];
    for (mode, wanted) in [(Mode::On, 4), (Mode::Advise, 4), (Mode::Off, 2)] {
        let view = Arc::new(EvaluatorView::of_cpu());
        view.set_lanes(2);
        drop(tuning(mode, &earlier, &view));
        assert_eq!(view.lanes(), Some(wanted), "{mode:?}");
    }
    // Resumed on a machine without a device there is nothing to set.
    let view = Arc::new(EvaluatorView::of_cpu());
    drop(tuning(Mode::On, &earlier, &view));
    assert_eq!(view.lanes(), None);
}
