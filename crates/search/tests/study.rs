//! The lagged pipeline: the same bits whatever the timing.

#[path = "study/failure.rs"]
mod failure;
#[path = "study/meeting.rs"]
mod meeting;
#[path = "study/plan.rs"]
mod plan;
#[path = "study/raise.rs"]
mod raise;
#[path = "study/resume.rs"]
mod resume;
#[path = "study/toy.rs"]
mod toy;

use std::time::Duration;

use meeting::{Guest, Log, Logged, Meeting};
use plan::{Plan, create, exported};
use tidemill_search::{
    Batch, Evaluated, FunctionEvaluator, Points, Sampler, Scores, Study, StudyEvent, Timing,
};
use toy::{Diary, Parallel, Slow, Toy, evaluate, space};

#[test]
fn the_pipeline_equals_one_thread_for_every_lag_and_any_delays() {
    let mut by_lag = Vec::new();
    for lag in [0, 1, 2, 3] {
        let plan = Plan { trials: 150, batch: 7, lag, pipeline: false };
        let (summary, serial) = plan.plain();
        assert_eq!((summary.n_trials, summary.n_batches, summary.is_complete), (150, 22, true));
        let plan = Plan { pipeline: true, ..plan };
        assert!(plan.plain().1 == serial, "lag {lag}");
        for (limit, sampler_ms, evaluator_ms) in
            [(1, 0, 2), (1, 2, 0), (2, 1, 1), (3, 0, 3), (4, 1, 4), (9, 3, 3)]
        {
            let max_delay = Duration::from_millis(sampler_ms);
            let mut toy = Toy { max_delay, ..Toy::new() };
            let max_delay = Duration::from_millis(evaluator_ms);
            let mut evaluator = Parallel { running: Default::default(), limit, max_delay };
            let (result, bits) = plan.run(&mut toy, &mut evaluator, None);
            assert_eq!(result.unwrap().n_trials, 150);
            assert!(bits == serial, "lag {lag}, {limit} in flight");
        }
        by_lag.push(serial);
    }
    assert!(by_lag.windows(2).all(|pair| pair[0] != pair[1]), "the toy notices the lag");
}

#[test]
fn a_batch_is_asked_after_exactly_the_batches_before_the_lag_were_told() {
    for lag in [0, 1, 2, 3, 100] {
        for pipeline in [false, true] {
            let mut diary = Diary::default();
            let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
            let plan = Plan { trials: 95, batch: 10, lag, pipeline };
            plan.run(&mut diary, &mut evaluator, None).0.unwrap();
            let expected: Vec<u64> = (0..10_u64).map(|batch| batch.saturating_sub(lag as u64)).collect();
            assert_eq!(diary.told_at_ask, expected, "lag {lag}");
            assert_eq!(diary.n_told, 9, "in the end all is told but the batch of which a half is evaluated");
        }
    }
}

#[test]
fn batches_have_the_promised_sizes() {
    // A single batch, exact multiples, remainders, a lag beyond the number of batches, nothing at all.
    let cases: [(u64, usize, usize, &[usize]); 8] = [
        (5, 8, 1, &[5]),
        (8, 8, 1, &[8]),
        (8, 8, 9, &[8]),
        (16, 8, 1, &[8, 8]),
        (17, 8, 1, &[8, 8, 1]),
        (17, 8, usize::MAX, &[8, 8, 1]),
        (3, 1, 2, &[1, 1, 1]),
        (0, 8, 1, &[]),
    ];
    for (trials, batch, lag, sizes) in cases {
        for pipeline in [false, true] {
            let mut seen = Vec::new();
            let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
                assert_eq!(batch.first_trial, seen.iter().sum::<usize>() as u64);
                seen.push(batch.points.len());
                Ok(evaluate(batch))
            });
            let plan = Plan { trials, batch, lag, pipeline };
            let summary = plan.run(&mut Toy::new(), &mut evaluator, None).0.unwrap();
            assert_eq!((summary.n_trials, summary.is_complete), (trials, true));
            assert_eq!(seen, sizes);
        }
    }
}

#[test]
fn a_finite_sampler_ends_the_study() {
    for (end, n_batches) in [(0, 0), (1, 1), (29, 3), (30, 3), (31, 4)] {
        for pipeline in [false, true] {
            for lag in [0, 1, 5] {
                let mut toy = Toy { ends_after: Some(end), ..Toy::new() };
                let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
                let plan = Plan { trials: 1000, batch: 10, lag, pipeline };
                let summary = plan.run(&mut toy, &mut evaluator, None).0.unwrap();
                assert_eq!((summary.n_trials, summary.n_batches), (end, n_batches));
                assert!(summary.is_complete);
            }
        }
    }
}

#[test]
fn sampler_and_evaluator_really_work_at_the_same_time() {
    let (n_batches, meeting) = (12, Meeting::new());
    let mut sampler = Guest { toy: Toy::new(), meeting: &meeting, n_batches, n_asked: 0, n_told: 0 };
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        meeting.evaluate(batch, n_batches);
        Ok(evaluate(batch))
    });
    let plan = Plan { trials: 10 * n_batches, batch: 10, lag: 1, pipeline: true };
    let summary = plan.run(&mut sampler, &mut evaluator, None).0.unwrap();
    let timing = summary.timing;
    // Both worked for so long at the same time, and the timing shows it.
    assert!(meeting.together() >= Duration::from_millis(22), "they met at every batch");
    assert!(timing.overlap >= meeting.together(), "{:?}, {summary:?}", meeting.together());
    assert!(timing.overlap <= timing.ask + timing.tell && timing.overlap <= timing.evaluate, "{summary:?}");
}

#[test]
fn without_a_lag_or_a_pipeline_they_work_one_after_the_other() {
    for (lag, pipeline) in [(0, true), (0, false), (1, false), (3, false)] {
        let log = Log::default();
        let mut sampler = Logged { toy: Toy::new(), log: &log };
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            log.work("evaluate", || std::thread::sleep(Duration::from_millis(1)));
            Ok(evaluate(batch))
        });
        let plan = Plan { trials: 200, batch: 10, lag, pipeline };
        let summary = plan.run(&mut sampler, &mut evaluator, None).0.unwrap();
        let timing = summary.timing;
        let pieces = log.pieces().expect("no piece of work begins before another one has ended");
        assert_eq!(pieces.len(), 60);
        assert_eq!(timing.overlap, Duration::ZERO, "lag {lag}");
        assert!(summary.wall >= timing.ask + timing.tell + timing.evaluate, "{summary:?}");
        // While the sampler works the evaluator is idle, up to the last batch that it gets.
        let last = pieces.iter().rposition(|piece| piece.0 == "evaluate").unwrap();
        let before: Duration =
            pieces[..last].iter().filter(|piece| piece.0 != "evaluate").map(|piece| piece.1).sum();
        assert!(timing.idle >= before, "{before:?}, {summary:?}");
    }
}

#[test]
fn every_batch_is_reported_once_in_order_with_its_times() {
    for pipeline in [false, true] {
        let space = space();
        let (mut finished, mut timed, mut total) = (Vec::new(), Vec::new(), Timing::default());
        let mut sampler =
            Slow { toy: Toy::new(), ask: Duration::from_millis(1), tell: Duration::from_millis(1) };
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(evaluate(batch))
        });
        let summary = Study::new(&space, &mut sampler)
            .trials(95)
            .batch(10)
            .pipeline(pipeline)
            .metrics(&["square"])
            .observe(|event| match event {
                StudyEvent::Finished { batch, evaluated, is_replayed } => {
                    assert!(!is_replayed && evaluated.scores.len() == batch.points.len());
                    finished.push(batch.index);
                }
                StudyEvent::Timed { index, timing, .. } => {
                    assert!(timing.evaluate >= Duration::from_millis(2), "{timing:?}");
                    assert!(timing.ask >= Duration::from_millis(1), "{timing:?}");
                    // Of the last batch a half is evaluated, and it is not told.
                    let least_tell = Duration::from_millis(u64::from(index < 9));
                    assert!(timing.tell >= least_tell, "{timing:?}");
                    assert!(timing.overlap <= timing.ask + timing.tell, "{timing:?}");
                    total += timing;
                    timed.push(index);
                }
            })
            .run(&mut evaluator)
            .unwrap();
        assert_eq!((&finished, &timed), (&(0..10).collect(), &(0..10).collect()));
        assert_eq!(summary.timing, total);
        assert!(summary.wall >= total.evaluate && summary.wall >= total.evaluate + total.idle);
    }
}

#[test]
fn several_objectives_are_told_and_kept() {
    /// Expects two objectives.
    struct Two(Toy);
    impl Sampler for Two {
        fn name(&self) -> &'static str {
            "two"
        }
        fn ask(&mut self, n: usize) -> Points {
            self.0.ask(n)
        }
        fn tell(&mut self, points: &Points, scores: &Scores) {
            assert_eq!(scores.n_objectives(), 2);
            let second = Scores::from_columns(scores.len(), vec![scores.column(1).to_vec()]);
            self.0.tell(points, &second);
        }
        fn remaining(&self) -> Option<u64> {
            None
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let space = space();
    for n_trials in [100, 200] {
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            let x = batch.points.column(0);
            let columns = vec![x.to_vec(), x.iter().map(|x| 1.0 - x).collect()];
            Ok(Evaluated { scores: Scores::from_columns(x.len(), columns), metrics: vec![] })
        });
        let folder = create(dir.path());
        let mut sampler = Two(Toy::new());
        let study = Study::new(&space, &mut sampler).trials(n_trials).batch(10).objectives(2).folder(&folder);
        assert_eq!(study.run(&mut evaluator).unwrap().n_trials, n_trials);
    }
    let csv = String::from_utf8(exported(dir.path())[0].clone()).unwrap();
    assert!(csv.starts_with("trial,x,n,on,tail,pick,objective,objective_2\n"), "{csv}");
    assert_eq!(csv.lines().count(), 201);
}
