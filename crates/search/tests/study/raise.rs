//! A study that gets more trials ends with the bits of one that had them from the start.

use std::path::Path;

use tidemill_search::{
    Batch, Enqueue, FunctionEvaluator, Points, SamplerKind, SamplerSettings, StudyError, StudySummary,
};

use crate::plan::{Plan, create, exported, run_in};
use crate::toy::{Diary, evaluate, space};

/// A sampler and how it is asked; made for `plan_trials`.
#[derive(Clone, Copy)]
struct Setting {
    kind: SamplerKind,
    plan_trials: u64,
    batch: usize,
    lag: usize,
}

impl Setting {
    /// Runs up to so many trials in a folder.
    fn run(
        self,
        dir: &Path,
        trials: u64,
        pipeline: bool,
        fails_at: Option<u64>,
    ) -> Result<StudySummary, StudyError> {
        let space = space();
        let Self { kind, plan_trials, batch, lag } = self;
        let settings = SamplerSettings { n_trials: Some(plan_trials), batch, ..SamplerSettings::new(5) };
        let mut known = Points::new(space.len());
        known.push(&[0.25, 3.0, 0.0, f64::NAN, 1.0]);
        let inner = kind.build(&space, &settings).unwrap();
        let mut sampler = Enqueue::new(&space, known, inner).unwrap();
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| match fails_at == Some(batch.index) {
            true => Err("interrupted".into()),
            false => Ok(evaluate(batch)),
        });
        let plan = Plan { trials, batch, lag, pipeline };
        plan.run(&mut sampler, &mut evaluator, Some(&create(dir))).0
    }
}

fn kinds() -> impl Iterator<Item = SamplerKind> {
    // The points of a grid follow from the number of trials that it is made for.
    SamplerKind::ALL.into_iter().filter(|kind| *kind != SamplerKind::Grid)
}

#[test]
fn a_raised_study_equals_one_that_had_all_trials_from_the_start() {
    for kind in kinds() {
        // Batches that end where the study does and batches that do not, and one that is longer than the first study.
        for (batch, lag, steps) in [(16, 1, [300, 320]), (64, 3, [10, 301])] {
            let setting = Setting { kind, plan_trials: steps[0], batch, lag };
            let place = tempfile::tempdir().unwrap();
            let (whole, raised) = (place.path().join("whole"), place.path().join("raised"));
            assert_eq!(setting.run(&whole, 480, false, None).unwrap().n_trials, 480);
            for (trials, pipeline) in [(steps[0], true), (steps[1], false)] {
                let summary = setting.run(&raised, trials, pipeline, None).unwrap();
                assert!(summary.is_complete && !summary.is_exhausted, "{kind}");
                assert_eq!(summary.n_trials, trials, "{kind}");
                assert_eq!(create(&raised).n_trials().unwrap(), trials, "{kind}");
            }
            // Interrupted on the way, too.
            setting.run(&raised, 480, true, Some(480 / batch as u64 - 1)).unwrap_err();
            let summary = setting.run(&raised, 480, true, None).unwrap();
            assert_eq!((summary.n_trials, summary.is_complete), (480, true), "{kind}");
            assert!(exported(&raised) == exported(&whole), "{kind}, batches of {batch}, lag {lag}");
        }
    }
}

#[test]
fn five_thousand_trials_become_eight_thousand() {
    for kind in kinds().filter(|kind| *kind != SamplerKind::TpeMultivariate) {
        let setting = Setting { kind, plan_trials: 5000, batch: 64, lag: 1 };
        let place = tempfile::tempdir().unwrap();
        let (whole, raised) = (place.path().join("whole"), place.path().join("raised"));
        setting.run(&whole, 8000, true, None).unwrap();
        setting.run(&raised, 5000, true, None).unwrap();
        setting.run(&raised, 8000, false, None).unwrap();
        assert!(exported(&raised) == exported(&whole), "{kind}");
    }
}

#[test]
fn a_complete_study_has_nothing_left_to_do_until_it_is_raised() {
    for pipeline in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { trials: 95, batch: 10, lag: 1, pipeline };
        let (_, first) = run_in(&create(dir.path()), plan, |batch| Ok(evaluate(batch)));
        let (again, bits) =
            run_in(&create(dir.path()), plan, |_| panic!("nothing is left to evaluate, and it ran"));
        let again = again.unwrap();
        assert_eq!((again.n_replayed, again.n_trials, again.is_complete), (95, 95, true));
        assert!(bits == first);
        let mut first_trial = None;
        let raised = run_in(&create(dir.path()), Plan { trials: 120, ..plan }, |batch| {
            first_trial.get_or_insert(batch.first_trial);
            Ok(evaluate(batch))
        });
        let raised = raised.0.unwrap();
        assert_eq!((raised.n_replayed, raised.n_trials, raised.n_batches), (95, 120, 12));
        assert_eq!(first_trial, Some(95), "what is stored is not evaluated again");
    }
}

#[test]
fn the_last_batch_is_asked_in_full_and_told_only_if_it_is_complete() {
    for (trials, n_told) in [(95, 9), (100, 10), (5, 0)] {
        for pipeline in [false, true] {
            let mut diary = Diary::default();
            let mut n_evaluated = 0;
            let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
                n_evaluated += batch.points.len() as u64;
                Ok(evaluate(batch))
            });
            let plan = Plan { trials, batch: 10, lag: 1, pipeline };
            let summary = plan.run(&mut diary, &mut evaluator, None).0.unwrap();
            assert_eq!((diary.n_told, n_evaluated), (n_told, trials));
            assert!(diary.lengths.iter().all(|length| *length == 10), "{:?}", diary.lengths);
            assert_eq!((summary.n_trials, summary.is_complete), (trials, true));
        }
    }
}
