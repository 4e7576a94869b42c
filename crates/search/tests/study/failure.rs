//! Whatever fails is named, and nothing finished is lost.

use std::time::Duration;

use tidemill_search::{
    Batch, EvaluateError, Evaluated, FunctionEvaluator, Score, Scores, Study, StudyEvent, StudyFolder,
};

use crate::plan::{Plan, create, run_in, whole_message};
use crate::toy::{Toy, evaluate, space};

#[test]
fn an_evaluator_that_fails_is_named_and_what_was_finished_is_kept() {
    let plan = Plan { trials: 200, batch: 10, lag: 1, pipeline: false };
    let whole = plan.plain().1;
    for (pipeline, lag) in [(false, 0), (true, 0), (true, 1), (false, 2), (true, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { pipeline, lag, ..plan };
        let failures: [fn() -> Result<Evaluated, EvaluateError>; 3] = [
            || Err("the device is gone".into()),
            || panic!("index out of bounds"),
            || Ok(Evaluated { scores: Scores::single(&[Score::Invalid]), metrics: vec![vec![0.0]] }),
        ];
        let messages = [
            "the evaluation of batch 4 failed: the device is gone",
            "the evaluation of batch 9 failed: index out of bounds",
            "the evaluation of batch 14 failed: expected 10 scores, got 1",
        ];
        for ((failure, message), fails_at) in failures.iter().zip(messages).zip([4, 9, 14]) {
            let folder = create(dir.path());
            let (result, _) =
                run_in(
                    &folder,
                    plan,
                    |batch| {
                        if batch.index == fails_at { failure() } else { Ok(evaluate(batch)) }
                    },
                );
            assert_eq!(whole_message(&result.unwrap_err()), message);
            assert_eq!(folder.n_trials().unwrap(), fails_at * 10);
        }
        // Thrice interrupted and then finished, it is the study that was never interrupted.
        let folder = create(dir.path());
        let (result, bits) = run_in(&folder, plan, |batch| Ok(evaluate(batch)));
        let summary = result.unwrap();
        assert_eq!((summary.n_trials, summary.n_replayed, summary.n_batches), (200, 140, 20));
        assert!(bits == plan.plain().1);
        assert!(lag == 1 || bits != whole);
    }
}

#[test]
fn a_sampler_that_panics_is_named_and_what_was_finished_is_kept() {
    for (pipeline, lag) in [(false, 0), (false, 1), (true, 0), (true, 1), (true, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = create(dir.path());
        let plan = Plan { trials: 200, batch: 10, lag, pipeline };
        let mut toy = Toy { panics_at: Some(70), ..Toy::new() };
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
        let error = plan.run(&mut toy, &mut evaluator, Some(&folder)).0.unwrap_err();
        assert_eq!(error.to_string(), "the sampler `toy` failed at batch 7: out of ideas");
        let n_kept = folder.n_trials().unwrap();
        // At the moment of the panic the batches before the lag were told, and so finished; the others may have been under way.
        assert!(n_kept >= 70 - 10 * lag as u64 && n_kept <= 70 && n_kept.is_multiple_of(10), "{n_kept}");
        let summary = run_in(&folder, plan, |batch| Ok(evaluate(batch))).0.unwrap();
        assert_eq!((summary.n_trials, summary.n_replayed), (200, n_kept));
    }
}

#[test]
fn a_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let holder = create(dir.path());
    let plan = Plan { trials: 20, batch: 10, lag: 1, pipeline: true };
    let looked_at = StudyFolder::open(dir.path()).unwrap();
    let error = run_in(&looked_at, plan, |batch| Ok(evaluate(batch))).0.unwrap_err();
    assert!(
        whole_message(&error).contains(&format!("is in use by process {}", std::process::id())),
        "{error}"
    );
    drop(holder);
    run_in(&looked_at, plan, |batch| Ok(evaluate(batch))).0.unwrap();
}

#[test]
fn a_folder_that_becomes_unwritable_is_named_and_nothing_complete_is_lost() {
    for pipeline in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let folder = create(dir.path());
        let plan = Plan { trials: 2000, batch: 10, lag: 1, pipeline };
        let (trials_dir, aside) = (dir.path().join("trials"), dir.path().join("aside"));
        let result = run_in(&folder, plan, |batch| {
            if batch.index == 7 {
                // The open log can still be appended to; the next part cannot be made.
                std::fs::rename(&trials_dir, &aside).unwrap();
                std::fs::write(&trials_dir, b"").unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
            Ok(evaluate(batch))
        });
        let message = whole_message(&result.0.unwrap_err());
        assert!(message.starts_with("cannot store the trials: cannot "), "{message}");
        assert!(message.contains(&*trials_dir.to_string_lossy()), "{message}");
        std::fs::remove_file(&trials_dir).unwrap();
        std::fs::rename(&aside, &trials_dir).unwrap();
        // The writer may be a few batches behind; what it got is in the log, to the end of the last batch.
        let n_kept = folder.n_trials().unwrap();
        assert!((50..=100).contains(&n_kept) && n_kept.is_multiple_of(10), "{n_kept}");
        let (result, bits) = run_in(&folder, plan, |batch| Ok(evaluate(batch)));
        assert_eq!(result.unwrap().n_replayed, n_kept);
        assert!(bits == plan.plain().1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_and_nothing_complete_is_lost() {
    for pipeline in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let folder = create(dir.path());
        let plan = Plan { trials: 2000, batch: 10, lag: 1, pipeline };
        let result = run_in(&folder, plan, |batch| {
            if batch.index == 7 {
                // A device that is always full, in place of the file that the next part begins as.
                let file = dir.path().join("trials/.part-000001.parquet.tmp");
                std::os::unix::fs::symlink("/dev/full", file).unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
            Ok(evaluate(batch))
        });
        let message = whole_message(&result.0.unwrap_err());
        assert!(message.contains("part-000001.parquet") && message.contains("No space left"), "{message}");
        assert_eq!(folder.n_trials().unwrap(), 100);
        let (result, bits) = run_in(&folder, plan, |batch| Ok(evaluate(batch)));
        assert_eq!(result.unwrap().n_replayed, 100);
        assert!(bits == plan.plain().1);
    }
}

#[test]
fn an_observer_that_panics_ends_the_study_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = create(dir.path());
    let space = space();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut toy = Toy::new();
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
        let study = Study::new(&space, &mut toy).trials(500).batch(10).lag(3).metrics(&["square"]);
        let study = study.folder(&folder).observe(|event| {
            if let StudyEvent::Finished { batch, .. } = event {
                assert!(batch.index < 6, "seen enough");
            }
        });
        study.run(&mut evaluator)
    }));
    assert!(panicked.is_err());
    assert_eq!(folder.n_trials().unwrap(), 70);
}
