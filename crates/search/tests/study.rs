//! The lagged pipeline: the same bits whatever the timing, and nothing finished is lost whatever fails.

#[path = "study/meeting.rs"]
mod meeting;
#[path = "study/toy.rs"]
mod toy;

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meeting::{Guest, Log, Logged, Meeting};
use tidemill_search::{
    Batch, Enqueue, EvaluateError, Evaluated, Evaluator, ExportFormat, FunctionEvaluator, Points, Sampler,
    SamplerKind, SamplerSettings, Score, Scores, Study, StudyError, StudyEvent, StudyFolder, StudyHeader,
    StudySummary, Timing, export,
};
use toy::{Diary, Parallel, Slow, Toy, evaluate, space};

/// All that came of a study, as bits.
#[derive(Default, PartialEq, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn push(&mut self, batch: &Batch, evaluated: &Evaluated) {
        let points = (0..batch.points.n_params()).flat_map(|at| batch.points.column(at));
        let values = points.chain(evaluated.scores.column(0)).chain(evaluated.metrics.iter().flatten());
        self.0.extend([batch.index, batch.first_trial, batch.points.len() as u64]);
        self.0.extend(values.map(|value| value.to_bits()));
    }
}

#[derive(Clone, Copy)]
struct Plan {
    trials: u64,
    batch: usize,
    lag: usize,
    pipeline: bool,
}

impl Plan {
    fn run(
        self,
        sampler: &mut dyn Sampler,
        evaluator: &mut dyn Evaluator,
        folder: Option<&StudyFolder>,
    ) -> (Result<StudySummary, StudyError>, Bits) {
        let space = space();
        let bits = RefCell::new(Bits::default());
        let mut study = Study::new(&space, sampler)
            .trials(self.trials)
            .batch(self.batch)
            .lag(self.lag)
            .pipeline(self.pipeline)
            .metrics(&["square"])
            .rows_per_part(50)
            .observe(|event| {
                if let StudyEvent::Finished { batch, evaluated, .. } = event {
                    bits.borrow_mut().push(batch, evaluated);
                }
            });
        if let Some(folder) = folder {
            study = study.folder(folder);
        }
        let result = study.run(evaluator);
        (result, bits.into_inner())
    }

    fn plain(self) -> (StudySummary, Bits) {
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| Ok(evaluate(batch)));
        let (summary, bits) = self.run(&mut Toy::new(), &mut evaluator, None);
        (summary.unwrap(), bits)
    }
}

fn create(dir: &Path) -> StudyFolder {
    let header = StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed: 1,
        data_hash: "none".into(),
        config: toml::Table::new(),
    };
    StudyFolder::open_or_create(dir, &header).unwrap().folder
}

fn exported(dir: &Path) -> Vec<Vec<u8>> {
    let bytes = ExportFormat::ALL.map(|format| {
        let mut bytes = Vec::new();
        export(dir, format, &mut bytes).unwrap();
        bytes
    });
    bytes.to_vec()
}

fn whole_message(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

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
            assert_eq!(diary.n_told, 10, "in the end all is told");
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
    // Both were at work for so long, and it is counted as that.
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
                    assert!(timing.tell >= Duration::from_millis(1), "{timing:?}");
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

/// Runs the toy in a folder, with a fresh sampler.
fn run_in(
    folder: &StudyFolder,
    plan: Plan,
    evaluate: impl FnMut(&Batch) -> Result<Evaluated, EvaluateError>,
) -> (Result<StudySummary, StudyError>, Bits) {
    plan.run(&mut Toy::new(), &mut FunctionEvaluator::new(evaluate), Some(folder))
}

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
            .args(["--exact", "child"])
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
        result.unwrap_err().to_string().contains("trial 40 and those after it are more than were asked for")
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
        let (result, bits) = run_in(&create(&parts), plan, |batch| Ok(evaluate(batch)));
        assert_eq!(result.unwrap().n_replayed, 40);
        assert!(bits == plan.plain().1);
        assert!(exported(&parts) == exported(&whole));
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
        assert!(message.starts_with("the trials cannot be kept: cannot "), "{message}");
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
