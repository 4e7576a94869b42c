//! Experiments on workers give what they give on one machine.

use std::path::Path;
use std::sync::{Arc, Mutex};

use tidemill_fleet::{FleetEvent, FleetOptions, InProcess};
use tidemill_lab::walkforward::window_folder;
use tidemill_lab::{
    Cluster, Dataset, Experiment, Pace, Runtime, SearchOptions, SweepEvent, WorkerOptions, open_strategy,
    study_worker,
};
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::{ExportFormat, SamplerKind, export};

const DAY_MS: i64 = 86_400_000;

fn experiment(runtime: Runtime) -> Experiment {
    let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
    Experiment::new(strategy, data()).split(0.7).runtime(runtime)
}

fn data() -> Arc<Dataset> {
    let options = RegimeOptions { n_bars: 6000, n_symbols: 2, ..RegimeOptions::default() };
    Arc::new(Dataset::of(regime(&options)))
}

/// Workers in this process that have the data in memory.
fn on_workers(n_workers: usize) -> Runtime {
    let worker = |number| {
        let name = Some(format!("thread {number}"));
        study_worker(WorkerOptions { name, data: Some(data()), ..WorkerOptions::default() }).unwrap()
    };
    let transport = InProcess::new((0..n_workers).map(worker)).unwrap();
    let options = FleetOptions { check_one_in: 3, ..FleetOptions::default() };
    Runtime { cluster: Some(Cluster::new(Box::new(transport)).with_options(options)), ..Runtime::default() }
}

fn bytes(dir: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    export(dir, ExportFormat::Parquet, &mut out).unwrap();
    out
}

#[test]
fn a_sweep_on_workers_has_the_bytes_and_the_verdict_of_one_without() {
    for sampler in [SamplerKind::Tpe, SamplerKind::Sobol, SamplerKind::Grid] {
        let run = |runtime: Runtime| {
            let dir = tempfile::tempdir().unwrap();
            let options =
                SearchOptions { trials: 400, sampler, batch: Some(64), lag: Some(2), ..Default::default() };
            let heard = Arc::new(Mutex::new(Vec::new()));
            let tell = heard.clone();
            let sweep =
                experiment(runtime).sweep().options(options).folder(dir.path()).observe(move |event| {
                    if let SweepEvent::Fleet { event, .. } = event {
                        tell.lock().unwrap().push(event.clone());
                    }
                });
            let report = sweep.run().unwrap();
            let verdict = report.verdict.as_ref().map(|verdict| format!("{verdict:?}"));
            drop(sweep);
            (bytes(dir.path()), verdict, heard.lock().unwrap().clone())
        };
        let (alone, alone_verdict, none) = run(Runtime::default());
        let (together, verdict, events) = run(on_workers(2));
        assert!(alone == together, "{sampler}");
        assert_eq!(alone_verdict, verdict, "{sampler}");
        assert!(none.is_empty());
        assert!(events.iter().any(|event| matches!(event, FleetEvent::ShardDone(_))));
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, FleetEvent::Refused { .. } | FleetEvent::Failed { .. }))
        );
    }
}

#[test]
fn the_windows_of_a_walk_forward_are_served_by_the_same_workers_one_after_the_other() {
    let run = |runtime: Runtime| {
        let dir = tempfile::tempdir().unwrap();
        let pace = Pace { train_ms: 30 * DAY_MS, test_ms: 10 * DAY_MS, anchored: false };
        let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
        let walk = Experiment::new(strategy, data()).runtime(runtime).walk_forward(pace);
        let walk = walk.trials(100).folder(dir.path());
        let n_windows = walk.windows().unwrap().len();
        walk.run().unwrap();
        (1..=n_windows).map(|number| bytes(&window_folder(dir.path(), number))).collect::<Vec<_>>()
    };
    let alone = run(Runtime::default());
    assert!(alone.len() >= 2 && alone == run(on_workers(2)));
}

#[test]
fn a_worker_with_other_data_is_refused_and_the_message_says_what_to_do() {
    let worker =
        study_worker(WorkerOptions { name: Some("bare".into()), ..WorkerOptions::default() }).unwrap();
    let transport = InProcess::new([worker]).unwrap();
    let options = FleetOptions { wait_limit: std::time::Duration::from_millis(1), ..FleetOptions::default() };
    let cluster = Cluster::new(Box::new(transport)).with_options(options);
    let runtime = Runtime { cluster: Some(cluster), ..Runtime::default() };
    let error = experiment(runtime).sweep().trials(64).run().unwrap_err();
    let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    assert!(text.contains("no worker has been there") && text.contains("tidemill worker --data"), "{text}");
}
