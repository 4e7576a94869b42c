//! Studies on fleets: whatever happens to the workers, the export has the bytes of a serial run.

#[path = "fleet/toy.rs"]
mod toy;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tidemill_fleet::mock::{MockOptions, MockTransport};
use tidemill_fleet::{FleetEvent, FleetOptions, InProcess, WorkerPool};
use tidemill_search::SamplerKind;
use toy::{Toy, Trouble};

const QUIET: MockOptions =
    MockOptions { seed: 1, n_workers: 3, loss: 0.0, repeat: 0.0, delay: 0.0, most_workers: u64::MAX };

fn mock(options: MockOptions, trouble: impl Fn(u64) -> Trouble + Send + 'static) -> WorkerPool {
    let make = move |worker| toy::worker(&format!("toy:{worker}"), trouble(worker));
    WorkerPool::new(Box::new(MockTransport::new(options, Box::new(make))))
}

/// Hedges and cuts as often as it can.
fn eager() -> FleetOptions {
    FleetOptions {
        check_one_in: 3,
        hedge_after: Duration::ZERO,
        shard_time: [Duration::ZERO, Duration::from_millis(1)],
        ..FleetOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn loss_delay_repetition_and_order_change_no_byte(
        seed in any::<u64>(),
        n_workers in 1_usize..6,
        loss in 0.0..0.2,
        repeat in 0.0..0.5,
        delay in 0.0..0.7,
        lag in prop_oneof![Just(0_usize), Just(1), Just(4), Just(64)],
        batch in 20_usize..150,
        sampler in prop_oneof![Just(SamplerKind::Tpe), Just(SamplerKind::Random), Just(SamplerKind::Sobol)],
        is_pipelined in any::<bool>(),
    ) {
        let toy = Toy { sampler, n_trials: 600, batch, lag, is_pipelined };
        let mut pool = mock(MockOptions { seed, n_workers, loss, repeat, delay, ..QUIET }, |_| Trouble::None);
        let (result, _) = toy.on_fleet(&mut pool, eager());
        prop_assert_eq!(result.unwrap(), toy.serially());
    }
}

#[test]
fn threads_of_this_process_give_the_bytes_of_a_serial_run() {
    for sampler in [SamplerKind::Auto, SamplerKind::Grid] {
        let toy = Toy { sampler, n_trials: 2000, batch: 256, lag: 2, is_pipelined: true };
        let workers = (0..3).map(|number| toy::worker(&format!("toy:{number}"), Trouble::None));
        let mut pool = WorkerPool::new(Box::new(InProcess::new(workers).unwrap()));
        let (result, events) = toy.on_fleet(&mut pool, FleetOptions::default());
        assert_eq!(result.unwrap(), toy.serially());
        let joined = events.iter().filter(|event| matches!(event, FleetEvent::Joined { .. })).count();
        assert!((1..=3).contains(&joined));
    }
}

#[test]
fn one_pool_serves_one_study_after_another() {
    let mut pool = mock(MockOptions { delay: 0.5, ..QUIET }, |_| Trouble::None);
    for n_trials in [300, 400] {
        let toy = Toy { sampler: SamplerKind::Tpe, n_trials, batch: 64, lag: 1, is_pipelined: true };
        assert_eq!(toy.on_fleet(&mut pool, eager()).0.unwrap(), toy.serially());
    }
}

#[test]
fn a_worker_that_lies_by_one_bit_is_named_and_ends_the_study() {
    let toy = Toy { sampler: SamplerKind::Random, n_trials: 2000, batch: 100, lag: 4, is_pipelined: true };
    let mut pool = mock(QUIET, |worker| if worker == 1 { Trouble::LiesByOneBit } else { Trouble::None });
    let options = FleetOptions { check_one_in: 2, ..eager() };
    let error = toy.on_fleet(&mut pool, options).0.unwrap_err();
    assert!(error.contains("this machine's CPU contradicts toy:1"), "{error}");
    assert!(error.contains("gave different results for trials"), "{error}");
}

#[test]
fn a_worker_whose_probes_differ_is_refused_and_the_others_go_on() {
    let toy = Toy { sampler: SamplerKind::Tpe, n_trials: 500, batch: 50, lag: 1, is_pipelined: true };
    let mut pool = mock(QUIET, |worker| if worker == 0 { Trouble::ProbesDiffer } else { Trouble::None });
    let (result, events) = toy.on_fleet(&mut pool, eager());
    assert_eq!(result.unwrap(), toy.serially());
    let refused: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            FleetEvent::Refused { name, reason } => Some((name.as_str(), reason.as_str())),
            _ => None,
        })
        .collect();
    assert!(matches!(refused[..], [("toy:0", reason)] if reason.contains("other bits")), "{refused:?}");
}

#[test]
fn another_version_other_data_and_another_study_are_refused() {
    let cases = [
        (Trouble::OtherVersion, "install the same version"),
        (Trouble::OtherData, "it has other data"),
        (Trouble::CannotBuild, "no such strategy"),
    ];
    for (trouble, reason) in cases {
        let toy = Toy { sampler: SamplerKind::Random, n_trials: 100, batch: 50, lag: 1, is_pipelined: true };
        let mut pool = mock(MockOptions { most_workers: 2, ..QUIET }, move |_| trouble);
        let error = toy.on_fleet(&mut pool, eager()).0.unwrap_err();
        assert!(error.contains("no worker is left") && error.contains(reason), "{error}");
    }
}

#[test]
fn a_worker_that_draws_other_points_is_sent_them() {
    let toy = Toy { sampler: SamplerKind::Sobol, n_trials: 500, batch: 50, lag: 1, is_pipelined: true };
    let mut pool = mock(QUIET, |worker| if worker == 0 { Trouble::DrawsOtherPoints } else { Trouble::None });
    assert_eq!(toy.on_fleet(&mut pool, eager()).0.unwrap(), toy.serially());
}

#[test]
fn a_shard_that_fails_here_is_evaluated_there_and_one_that_fails_everywhere_ends_the_study() {
    let toy = Toy { sampler: SamplerKind::Random, n_trials: 500, batch: 50, lag: 1, is_pipelined: true };
    let mut pool = mock(QUIET, |worker| if worker == 0 { Trouble::Panics } else { Trouble::None });
    assert_eq!(toy.on_fleet(&mut pool, eager()).0.unwrap(), toy.serially());
    let mut pool = mock(QUIET, |_| Trouble::Panics);
    let error = toy.on_fleet(&mut pool, eager()).0.unwrap_err();
    assert!(error.contains("could not be evaluated") && error.contains("a bad day"), "{error}");
}

#[test]
fn workers_that_are_all_gone_end_the_study_and_the_folder_goes_on() {
    let toy = Toy { sampler: SamplerKind::Tpe, n_trials: 600, batch: 50, lag: 1, is_pipelined: true };
    let dir = tempfile::tempdir().unwrap();
    let mut pool = mock(MockOptions { loss: 0.2, most_workers: 3, ..QUIET }, |_| Trouble::None);
    let error = toy.on_fleet_in(dir.path(), &mut pool, eager()).0.unwrap_err();
    assert!(error.contains("the mock has no more workers") && error.contains("the mock lost it"), "{error}");
    let mut pool = mock(MockOptions { n_workers: 2, ..QUIET }, |_| Trouble::None);
    assert_eq!(toy.on_fleet_in(dir.path(), &mut pool, eager()).0.unwrap(), toy.serially());
}

#[test]
fn workers_that_get_too_little_are_spoken_of_once() {
    // A batch is one shard, and nothing is proposed before it is back: two of three workers have nothing to do.
    let toy = Toy { sampler: SamplerKind::Tpe, n_trials: 800, batch: 20, lag: 0, is_pipelined: false };
    let mut pool = mock(QUIET, |_| Trouble::None);
    let options = FleetOptions { hunger_after: Duration::ZERO, hedge_after: Duration::MAX, ..eager() };
    let (result, events) = toy.on_fleet(&mut pool, options);
    assert_eq!(result.unwrap(), toy.serially());
    let hungry: Vec<_> = events
        .iter()
        .filter_map(|event| if let FleetEvent::Hungry(it) = event { Some(it) } else { None })
        .collect();
    assert!(matches!(hungry[..], [hunger] if hunger.idle >= 0.25 && hunger.idle <= 1.0), "{hungry:?}");
}

#[test]
fn workers_of_one_name_are_told_apart() {
    let toy = Toy { sampler: SamplerKind::Tpe, n_trials: 800, batch: 60, lag: 2, is_pipelined: true };
    for seed in 0..8 {
        let options = MockOptions { seed, loss: 0.15, delay: 0.3, ..QUIET };
        let make = |_| toy::worker("twin", Trouble::None);
        let mut pool = WorkerPool::new(Box::new(MockTransport::new(options, Box::new(make))));
        let options = FleetOptions { check_one_in: 1, ..eager() };
        assert_eq!(toy.on_fleet(&mut pool, options).0.unwrap(), toy.serially());
    }
}

#[test]
fn a_study_that_is_told_to_stop_sends_nothing_more() {
    let toy = Toy { sampler: SamplerKind::Random, n_trials: 100_000, batch: 500, lag: 4, is_pipelined: true };
    let stop = Arc::new(AtomicBool::new(true));
    let (result, events) =
        toy.on_fleet(&mut mock(QUIET, |_| Trouble::None), FleetOptions { stop, ..eager() });
    assert!(result.unwrap().is_empty());
    assert!(!events.iter().any(|event| matches!(event, FleetEvent::ShardDone(_))), "{events:?}");
}

#[test]
fn nobody_at_all_is_waited_for_and_then_an_error() {
    let toy = Toy { sampler: SamplerKind::Random, n_trials: 100, batch: 50, lag: 1, is_pipelined: true };
    let nobody = || WorkerPool::new(Box::new(InProcess::new([]).unwrap()));
    let options = FleetOptions { wait_limit: Duration::from_millis(1), ..FleetOptions::default() };
    let error = toy.on_fleet(&mut nobody(), options).0.unwrap_err();
    assert!(error.contains("no worker has been there for"), "{error}");
    let stop = Arc::new(AtomicBool::new(false));
    let options = FleetOptions { stop: stop.clone(), ..FleetOptions::default() };
    stop.store(true, Ordering::SeqCst);
    let exported = toy.on_fleet(&mut nobody(), options).0.unwrap();
    assert!(exported.is_empty(), "stopped, and no error: {exported}");
}
