//! A study that was stopped, or ran elsewhere, ends with the bits of one that was not.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemill_search::{
    Batch, Enqueue, FunctionEvaluator, Points, SamplerKind, SamplerSettings, Study, StudyError,
};

use crate::plan::{Plan, create, exported, run_in};
use crate::toy::{Toy, evaluate, space};

#[test]
fn a_stopped_study_keeps_what_is_finished_and_goes_on_to_the_same_end() {
    for lag in [0, 1, 2, 3] {
        let plan = Plan { trials: 333, batch: 10, lag, pipeline: false };
        let place = tempfile::tempdir().unwrap();
        let (whole_dir, dir) = (place.path().join("whole"), place.path().join("parts"));
        let whole = run_in(&create(&whole_dir), plan, |batch| Ok(evaluate(batch)));
        assert!(whole.0.unwrap().is_complete);
        let mut n_runs = 0;
        loop {
            let folder = create(&dir);
            let stop = AtomicBool::new(false);
            let space = space();
            let mut toy = Toy::new();
            let mut n_evaluated = 0;
            let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
                n_evaluated += 1;
                if n_evaluated == 5 {
                    stop.store(true, Ordering::SeqCst);
                }
                Ok(evaluate(batch))
            });
            let n_before = folder.n_trials().unwrap();
            let summary = Study::new(&space, &mut toy)
                .trials(333)
                .batch(10)
                .lag(lag)
                .pipeline(n_runs % 2 == 0)
                .metrics(&["square"])
                .rows_per_part(50)
                .folder(&folder)
                .stop(&stop)
                .run(&mut evaluator)
                .unwrap();
            assert_eq!((summary.n_replayed, summary.n_trials), (n_before, folder.n_trials().unwrap()));
            n_runs += 1;
            if summary.is_complete {
                break;
            }
            assert_eq!(summary.n_trials, n_before + 50, "nothing finished is lost, nothing else is begun");
        }
        assert_eq!(n_runs, 7);
        assert!(exported(&dir) == exported(&whole_dir), "lag {lag}");
        let names = |dir: &Path| {
            let entries = std::fs::read_dir(dir.join("trials")).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&dir), names(&whole_dir));
        // Once more: nothing is left to do, and all is seen again.
        let (again, bits) = run_in(&create(&dir), plan, |_| Err("nothing to evaluate".into()));
        assert_eq!(again.unwrap().n_replayed, 333);
        assert!(bits == whole.1, "lag {lag}");
    }
}

#[test]
fn every_sampler_resumes_to_the_same_end_for_every_lag() {
    let space = space();
    for kind in SamplerKind::ALL {
        for lag in [0, 1, 3] {
            let place = tempfile::tempdir().unwrap();
            let run = |dir: &Path, fails_at: u64, pipeline: bool| {
                let settings = SamplerSettings { n_trials: Some(300), batch: 16, ..SamplerSettings::new(5) };
                let mut known = Points::new(space.len());
                known.push(&[0.25, 3.0, 0.0, f64::NAN, 1.0]);
                let inner = kind.build(&space, &settings).unwrap();
                let mut sampler = Enqueue::new(&space, known, inner).unwrap();
                let mut evaluator = FunctionEvaluator::new(|batch: &Batch| match batch.index == fails_at {
                    true => Err("interrupted".into()),
                    false => Ok(evaluate(batch)),
                });
                let plan = Plan { trials: 300, batch: 16, lag, pipeline };
                plan.run(&mut sampler, &mut evaluator, Some(&create(dir))).0
            };
            let (whole, parts) = (place.path().join("whole"), place.path().join("parts"));
            run(&whole, 999, false).unwrap();
            for fails_at in [1, 2, 7, 11] {
                assert!(matches!(
                    run(&parts, fails_at, fails_at % 2 == 0),
                    Err(StudyError::Evaluator { .. })
                ));
            }
            let summary = run(&parts, 999, true).unwrap();
            assert_eq!(summary.n_replayed, 11 * 16, "{kind}");
            assert!(exported(&parts) == exported(&whole), "{kind}, lag {lag}");
        }
    }
}

/// Long enough for `tpe` to change its form, from all observations to summaries of them.
#[test]
fn twenty_thousand_trials_are_the_same_one_after_the_other_and_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    for kind in [SamplerKind::Tpe, SamplerKind::Auto] {
        let [serial, pipelined] = [false, true].map(|pipeline| {
            let dir = place.path().join(format!("{kind}-{pipeline}"));
            let settings = SamplerSettings { n_trials: Some(20_000), batch: 256, ..SamplerSettings::new(5) };
            let mut sampler = kind.build(&space(), &settings).unwrap();
            let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
            let plan = Plan { trials: 20_000, batch: 256, lag: 1, pipeline };
            plan.run(&mut *sampler, &mut evaluator, Some(&create(&dir))).0.unwrap();
            exported(&dir)
        });
        assert!(serial == pipelined, "{kind}");
    }
}

/// Names a folder to a process of its own, which then runs a study of every sampler in it.
const DIR: &str = "TIDEMILL_STUDY_DIR";

fn run_every_sampler(dir: &Path, pipeline: bool) {
    for kind in SamplerKind::ALL {
        let settings = SamplerSettings { n_trials: Some(2000), batch: 512, ..SamplerSettings::new(5) };
        let mut sampler = kind.build(&space(), &settings).unwrap();
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
        let plan = Plan { trials: 2000, batch: 512, lag: 1, pipeline };
        plan.run(&mut *sampler, &mut evaluator, Some(&create(&dir.join(kind.name())))).0.unwrap();
    }
}

/// Not a test of its own: what the other process runs. Without the variable there is nothing to do.
#[test]
fn child() {
    if let Some(dir) = std::env::var_os(DIR) {
        run_every_sampler(Path::new(&dir), true);
    }
}

#[test]
fn the_number_of_threads_does_not_matter_and_neither_does_the_process() {
    let place = tempfile::tempdir().unwrap();
    let serial = place.path().join("serial");
    run_every_sampler(&serial, false);
    for n_threads in ["1", "2", "5"] {
        let dir = place.path().join(n_threads);
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::child"])
            .env(DIR, &dir)
            .env("RAYON_NUM_THREADS", n_threads)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        for kind in SamplerKind::ALL.map(SamplerKind::name) {
            assert!(exported(&dir.join(kind)) == exported(&serial.join(kind)), "{kind}, {n_threads} threads");
        }
    }
}

#[test]
fn another_sampler_or_a_changed_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { trials: 60, batch: 10, lag: 1, pipeline: true };
    run_in(&create(dir.path()), Plan { trials: 30, ..plan }, |batch| Ok(evaluate(batch))).0.unwrap();
    let mut other = Toy { state: 2, ..Toy::new() };
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
    let error = plan.run(&mut other, &mut evaluator, Some(&create(dir.path()))).0.unwrap_err().to_string();
    let expected = "the study cannot be resumed: trial 0 has x = ";
    assert!(error.starts_with(expected) && error.contains("hint:"), "{error}");
    // Other scores lead the sampler elsewhere.
    let (_, bits) = run_in(&create(dir.path()), plan, |batch| Ok(evaluate(batch)));
    assert!(bits == plan.plain().1);
    let folder = create(dir.path());
    let result = run_in(&folder, Plan { trials: 40, ..plan }, |batch| Ok(evaluate(batch))).0;
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("trial 40 and those after it are beyond the requested number")
    );
    let result = run_in(&folder, Plan { lag: 2, ..plan }, |batch| Ok(evaluate(batch))).0;
    assert!(
        result.unwrap_err().to_string().contains("cannot be resumed: trial 20"),
        "the lag is part of a study"
    );
    assert_eq!(folder.n_trials().unwrap(), 60, "a refusal changes nothing");
}

#[test]
fn a_study_that_lost_its_log_is_completed_again() {
    let plan = Plan { trials: 200, batch: 20, lag: 1, pipeline: true };
    for pipeline in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let (whole, parts) = (place.path().join("whole"), place.path().join("parts"));
        run_in(&create(&whole), plan, |batch| Ok(evaluate(batch))).0.unwrap();
        let fail_at = |index| {
            move |batch: &Batch| match batch.index == index {
                true => Err("interrupted".into()),
                false => Ok(evaluate(batch)),
            }
        };
        run_in(&create(&parts), plan, fail_at(4)).0.unwrap_err();
        // Parts have 50 rows and batches 20: without the log the third batch is half there.
        std::fs::remove_file(parts.join("trials/log.bin")).unwrap();
        assert_eq!(create(&parts).n_trials().unwrap(), 50);
        let plan = Plan { pipeline, ..plan };
        let mut first_trial = None;
        let (result, _) = run_in(&create(&parts), plan, |batch| {
            first_trial.get_or_insert(batch.first_trial);
            Ok(evaluate(batch))
        });
        let summary = result.unwrap();
        assert_eq!((summary.n_replayed, summary.n_trials, summary.n_batches), (50, 200, 10));
        assert_eq!(first_trial, Some(50), "what is stored is not evaluated again");
        assert!(exported(&parts) == exported(&whole));
    }
}
