use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::generate::Family;
use crate::phase::PhaseKind;
use crate::verify::verify;

/// Keeps the events of a run, and turns knobs as told.
#[derive(Default)]
struct EventLog {
    states: Vec<State>,
    improved: Vec<usize>,
    worked: Vec<(PhaseKind, u64)>,
    changes: Vec<(u64, String, f64)>,
}

impl Observer for EventLog {
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError> {
        match event {
            PassEvent::PhaseWorked { report, .. } => self.worked.push((report.kind, report.iterations)),
            PassEvent::Improved { k, .. } => self.improved.push(k),
            PassEvent::PassBegan { state, .. } => self.states.push(state.clone()),
            _ => {}
        }
        Ok(())
    }

    fn changes(&mut self, round: u64, _knobs: &Knobs) -> Result<Vec<(String, f64)>, ColoringError> {
        let now = self.changes.iter().filter(|change| change.0 == round);
        Ok(now.map(|(_, name, value)| (name.clone(), *value)).collect())
    }
}

fn instance() -> Instance {
    Family::Random { n: 90, p: 0.5 }.generate(4).unwrap()
}

fn options() -> Options {
    Options { max_iterations: Some(400_000), seed: 3, ..Options::default() }
}

fn run(instance: &Instance, options: Options) -> (Outcome, EventLog) {
    let mut log = EventLog::default();
    let outcome = Controller::new(instance, options).unwrap().run(&mut log, &AtomicBool::new(false)).unwrap();
    (outcome, log)
}

/// What does not depend on the clock.
fn timeless(outcome: &Outcome) -> (usize, &[u32], u64, u64, Ending) {
    (outcome.k, &outcome.colors, outcome.passes, outcome.iterations, outcome.ending)
}

#[test]
fn a_search_beats_the_first_colourings_and_every_step_is_verified() {
    let instance = instance();
    let (outcome, log) = run(&instance, options());
    assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
    let first = Options { phases: vec![PhaseKind::Dsatur], ..options() };
    let (dsatur, _) = run(&instance, first);
    assert!(outcome.k + 2 <= dsatur.k, "{} for {}", outcome.k, dsatur.k);
    assert_eq!(dsatur.ending, Ending::Done);
    assert!(log.improved.windows(2).all(|pair| pair[1] < pair[0]), "{:?}", log.improved);
    assert_eq!(log.improved.last(), Some(&outcome.k));
    assert!(outcome.bound <= outcome.k && outcome.iterations >= 400_000);
}

#[test]
fn a_seed_is_an_answer() {
    let instance = instance();
    let ((one, log), (two, again)) = (run(&instance, options()), run(&instance, options()));
    assert_eq!(timeless(&one), timeless(&two));
    assert_eq!(log.worked, again.worked);
    let (other, _) = run(&instance, Options { seed: 4, ..options() });
    assert_ne!(one.colors, other.colors);
}

#[test]
fn a_run_that_goes_on_from_any_pass_ends_like_one_that_was_not_interrupted() {
    let instance = instance();
    let (whole, log) = run(&instance, options());
    assert!(log.states.len() > 2);
    for state in [&log.states[0], &log.states[log.states.len() / 2], &log.states[log.states.len() - 1]] {
        // As it would be read from a file.
        let text = serde_json::to_string(state).unwrap();
        let state: State = serde_json::from_str(&text).unwrap();
        let controller = Controller::new(&instance, options()).unwrap().resume(state).unwrap();
        let outcome = controller.run(&mut Quiet, &AtomicBool::new(false)).unwrap();
        assert_eq!(timeless(&outcome), timeless(&whole));
    }
    let other = Family::Random { n: 90, p: 0.5 }.generate(5).unwrap();
    assert!(Controller::new(&other, options()).unwrap().resume(log.states[1].clone()).is_err());
}

#[test]
fn knobs_that_are_turned_change_what_follows_and_nothing_before() {
    let instance = instance();
    let (_, plain) = run(&instance, options());
    let changes = vec![(3, "iterations".to_owned(), 4.0)];
    let mut log = EventLog { changes, ..EventLog::default() };
    let outcome =
        Controller::new(&instance, options()).unwrap().run(&mut log, &AtomicBool::new(false)).unwrap();
    assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
    let n_same = plain.worked.iter().zip(&log.worked).take_while(|(a, b)| a == b).count();
    assert!(n_same > 3 && n_same < log.worked.len(), "{n_same}");
}

#[test]
fn a_run_ends_for_the_reason_it_says() {
    let instance = instance();
    let ending = |options: Options| run(&instance, options).0.ending;
    assert_eq!(ending(Options { target: Some(30), ..options() }), Ending::Target);
    assert_eq!(ending(Options { max_passes: Some(2), ..options() }), Ending::Passes);
    assert_eq!(ending(Options { patience: Some(1), ..options() }), Ending::Stagnation);
    let time = Some(Duration::from_millis(150));
    assert_eq!(ending(Options { time, max_iterations: None, ..Options::default() }), Ending::Time);
    let queen = Family::Queen { side: 7 }.generate(0).unwrap();
    assert_eq!(run(&queen, options()).0.ending, Ending::Optimal);
    let stop = AtomicBool::new(false);
    stop.store(true, Ordering::Relaxed);
    let stopped = Controller::new(&instance, options()).unwrap().run(&mut Quiet, &stop).unwrap();
    assert_eq!(verify(&instance, &stopped.colors).unwrap().k, stopped.k, "what is known by then is given");
}

#[test]
fn graphs_without_edges_or_vertices_are_done_at_once() {
    for n in [0, 1, 7] {
        let empty = Instance::new("empty", n, []);
        let (outcome, _) = run(&empty, options());
        assert_eq!((outcome.k, outcome.colors.len(), outcome.ending), (n.min(1), n, Ending::Optimal));
    }
}

#[test]
fn every_phase_can_take_part_and_signals_are_measured() {
    let instance = Family::Geometric { n: 120, radius: 0.25 }.generate(2).unwrap();
    let all = Options { phases: PhaseKind::all().collect(), max_iterations: Some(60_000), ..options() };
    let (outcome, log) = run(&instance, all);
    assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
    for kind in [PhaseKind::Spectral, PhaseKind::Reservoir, PhaseKind::Transfer, PhaseKind::Inference] {
        assert!(log.worked.iter().any(|(of, _)| *of == kind), "{}", kind.name());
    }
}

#[test]
fn options_without_an_end_or_a_beginning_are_refused() {
    let instance = instance();
    let refused = |options: Options| Controller::new(&instance, options).err().unwrap().to_string();
    assert!(refused(Options::default()).starts_with("time = none: expected a limit"));
    assert!(
        refused(Options { phases: vec![PhaseKind::Tabu], ..options() })
            .starts_with("phases = tabu: expected")
    );
    assert!(refused(Options { target: Some(0), ..options() }).starts_with("target = 0"));
}

#[test]
fn a_large_sparse_graph_is_coloured_in_the_time_it_is_given() {
    // Rows of bits would take more than a gibibyte.
    let n = 150_000_u32;
    let edges = (0..3 * n).map(|at| {
        let from = mixed(at) % n;
        (from, (from + 1 + mixed(at + 7_000_000) % (n - 1)) % n)
    });
    let instance = Instance::new("large", n as usize, edges);
    // What the first colourings find depends on no clock.
    let (first, _) = run(&instance, Options { phases: vec![PhaseKind::Dsatur], ..options() });
    assert_eq!(verify(&instance, &first.colors).unwrap().k, first.k);
    assert!(first.k <= 5, "{}", first.k);
    // However little is done in that time, a colouring comes out. Vertices times vertices would not end in hours.
    let time = Some(Duration::from_millis(300));
    let (outcome, _) = run(&instance, Options { time, ..Options::default() });
    assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
    assert_eq!(outcome.ending, Ending::Time);
}

fn mixed(number: u32) -> u32 {
    (crate::random::mix(u64::from(number)) >> 32) as u32
}

#[test]
fn an_odd_ring_is_done_at_once() {
    let ring = Instance::new("ring", 5001, (0..5001).map(|at| (at, (at + 1) % 5001)));
    let (outcome, _) = run(&ring, options());
    assert_eq!((outcome.k, outcome.bound, outcome.ending), (3, 3, Ending::Optimal));
}

#[test]
fn a_search_that_cannot_count_the_neighbours_of_a_vertex_is_not_begun() {
    // A centre and an odd ring around it: four colours, which only a clique of three bounds from below.
    let n = 120_000_u32;
    let ring = (1..n).map(move |at| (at, if at + 1 == n { 1 } else { at + 1 }));
    let wheel = Instance::new("wheel", n as usize, ring.chain((1..n).map(|at| (0, at))));
    let phases = PhaseKind::defaults().into_iter().filter(|kind| *kind != PhaseKind::Reduction).collect();
    let (outcome, _) = run(&wheel, Options { phases, ..options() });
    assert_eq!((outcome.k, outcome.bound, outcome.ending), (4, 3, Ending::Done));
}
