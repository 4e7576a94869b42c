//! What a sweep promises to whoever watches it or calls it from several threads.

use std::sync::{Arc, Mutex};

use tidemill_lab::{Dataset, Experiment, SearchOptions, SweepEvent, SweepReport, open_strategy};
use tidemill_market::synth;
use tidemill_search::{ExportFormat, FolderError, StudyFolder, export};

fn experiment() -> Experiment {
    let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
    Experiment::new(strategy, Dataset::of(synth::walk(3, 2, 2_000))).split(0.7)
}

fn best(report: &SweepReport) -> Vec<(u64, Option<f64>)> {
    report.best.iter().map(|scored| (scored.trial.number, scored.objective())).collect()
}

#[test]
fn the_folder_is_locked_until_the_last_event() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_owned();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let sweep = experiment().sweep().trials(64).folder(dir.path()).observe(move |event| {
        if let SweepEvent::Started { .. } | SweepEvent::Judged { .. } | SweepEvent::Ended { .. } = event {
            let header = StudyFolder::open(&folder).unwrap().header().clone();
            let error = StudyFolder::open_or_create(&folder, &header).map(drop).unwrap_err();
            heard.lock().unwrap().push(matches!(error, FolderError::Locked { .. }));
        }
    });
    sweep.run().unwrap();
    assert_eq!(*seen.lock().unwrap(), [true; 3]);
    let header = StudyFolder::open(dir.path()).unwrap().header().clone();
    StudyFolder::open_or_create(dir.path(), &header).unwrap();
}

#[test]
fn an_experiment_can_be_run_from_any_thread_with_the_same_result() {
    let experiment = experiment();
    let here = experiment.sweep().trials(96).verdict(false).run().unwrap();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let experiment = experiment.clone();
            std::thread::spawn(move || experiment.sweep().trials(96).verdict(false).run().unwrap())
        })
        .collect();
    for thread in threads {
        assert_eq!(best(&thread.join().unwrap()), best(&here));
    }
}

#[test]
fn a_study_keeps_its_batch_and_its_lag_where_none_are_requested() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = || experiment().sweep().trials(96).verdict(false).folder(dir.path());
    let options = |batch, lag| SearchOptions { trials: 96, batch, lag, ..SearchOptions::default() };
    // Others than would be chosen, as of a study of another version.
    let made = sweep().options(options(Some(24), Some(1))).run().unwrap();
    let resumed = sweep().options(options(None, None)).run().unwrap();
    assert_eq!((made.batch, made.lag), (24, 1));
    assert_eq!((resumed.batch, resumed.lag), (24, 1));
    assert_eq!(best(&resumed), best(&made));
    let error = sweep().options(options(Some(32), Some(0))).run().unwrap_err().to_string();
    assert!(error.contains("batch: 24 in the study, 32 requested"), "{error}");
    assert!(error.contains("lag: 1 in the study, 0 requested"), "{error}");
}

#[test]
fn a_stopped_sweep_says_so_and_goes_on_to_the_same_end() {
    let dir = tempfile::tempdir().unwrap();
    let stopped = dir.path().join("stopped");
    let experiment = experiment();
    let stop = experiment.runtime.stop.clone();
    let sweep = |folder: &std::path::Path| experiment.sweep().trials(256).verdict(false).folder(folder);
    let report = sweep(&stopped)
        .observe({
            let stop = stop.clone();
            move |event| {
                if let SweepEvent::BatchFinished { totals, .. } = event
                    && totals.trials >= 64
                {
                    stop.store(true, std::sync::atomic::Ordering::SeqCst);
                }
            }
        })
        .run()
        .unwrap();
    assert!(!report.is_complete && report.summary.n_trials < 256, "{}", report.summary.n_trials);
    stop.store(false, std::sync::atomic::Ordering::SeqCst);
    let resumed = sweep(&stopped).run().unwrap();
    assert!(resumed.is_complete && resumed.summary.n_replayed == report.summary.n_trials);
    let whole = dir.path().join("whole");
    sweep(&whole).run().unwrap();
    let exported = |folder: &std::path::Path| {
        let mut bytes = Vec::new();
        export(folder, ExportFormat::Csv, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(exported(&stopped), exported(&whole));
}
