//! A study that is changed while it runs: the same bits when it is resumed, pipelined or not; and samplers that can be steered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemill_search::{
    Batch, Change, Controller, Domain, EvaluateError, Evaluated, ExportFormat, FunctionEvaluator, Param,
    Points, Sampler, SamplerKind, SamplerSettings, Score, Scores, Settings, Space, Steered, Study,
    StudyError, StudyFolder, StudyHeader, export,
};

fn space(n_params: usize) -> Space {
    let domain = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
    Space { params: (0..n_params).map(|at| Param::new(format!("x{at}"), domain.clone(), 0.5)).collect() }
}

fn steered(kind: SamplerKind, space: &Space) -> Steered {
    let settings = SamplerSettings { n_trials: Some(4000), batch: 32, ..SamplerSettings::new(7) };
    Steered::new(space, 7, kind.build(space, &settings).unwrap())
}

/// A narrow peak of 1 in one corner, and a wide hill of 0.5 far from it.
fn two_hills(batch: &Batch) -> Result<Evaluated, EvaluateError> {
    let points = &batch.points;
    let height = |at: usize| {
        let distance = |middle: f64| {
            let squares = (0..points.n_params()).map(|param| (points.value(at, param) - middle).powi(2));
            squares.sum::<f64>().sqrt()
        };
        Score::new((0.5 - 0.4 * distance(0.75)).max(1.0 - 3.5 * distance(0.2)))
    };
    let scores: Vec<Score> = (0..points.len()).map(height).collect();
    Ok(Evaluated { scores: Scores::single(&scores), metrics: vec![] })
}

/// Changes by a plan, and notes what it was told of.
#[derive(Default)]
struct Planned {
    plan: Vec<Change>,
    asked: Vec<(u64, usize, usize)>,
}

impl Controller for Planned {
    fn changes(
        &mut self,
        batch: u64,
        now: &Settings,
        _: &[(String, f64)],
    ) -> Result<Vec<Change>, EvaluateError> {
        self.asked.push((batch, now.batch, now.lag));
        Ok(self.plan.iter().filter(|change| change.batch == batch).cloned().collect())
    }
}

fn change(batch: u64, knob: &str, value: f64) -> Change {
    Change { batch, knob: knob.into(), value }
}

/// Larger and smaller batches, more and less lag, and every way of exploring.
fn plan() -> Vec<Change> {
    vec![
        change(3, "batch", 100.0),
        change(3, "lag", 3.0),
        change(6, "random_share", 0.3),
        change(7, "gamma", 2.0),
        change(8, "prior_weight", 4.0),
        change(9, "restart", 70.0),
        change(10, "lag", 0.0),
        change(12, "batch", 7.0),
        change(12, "lag", 2.0),
        change(15, "random_share", 0.0),
    ]
}

/// Runs a study, with changes of earlier runs and new ones; the table of its trials if it has a folder.
fn run(
    folder: Option<&Path>,
    recorded: &[Change],
    controller: &mut Planned,
    is_pipelined: bool,
    stop_after: u64,
) {
    let space = space(3);
    let mut sampler = steered(SamplerKind::Tpe, &space);
    let header = StudyHeader {
        version: "test".into(),
        semantics: 2,
        seed: 7,
        data_hash: "none".into(),
        config: toml::Table::default(),
    };
    let opened = folder.map(|dir| StudyFolder::open_or_create(dir, &header).unwrap().folder);
    let stop = AtomicBool::new(false);
    let mut study = Study::new(&space, &mut sampler)
        .trials(1200)
        .batch(32)
        .lag(1)
        .pipeline(is_pipelined)
        .changes(recorded.to_vec())
        .control(controller)
        .stop(&stop);
    if let Some(folder) = &opened {
        study = study.folder(folder);
    }
    let mut n_batches = 0;
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        n_batches += 1;
        if n_batches == stop_after {
            stop.store(true, Ordering::SeqCst);
        }
        two_hills(batch)
    });
    study.run(&mut evaluator).unwrap();
}

fn table(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(folder, ExportFormat::Csv, &mut bytes).unwrap();
    bytes
}

#[test]
fn changes_hold_from_their_batch_on_and_nothing_depends_on_threads_or_interruptions() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let mut controller = Planned { plan: plan(), asked: vec![] };
    run(Some(&whole), &[], &mut controller, false, u64::MAX);
    let seen = |batch: u64| controller.asked.iter().find(|asked| asked.0 == batch).copied();
    assert_eq!((seen(3), seen(4)), (Some((3, 32, 1)), Some((4, 100, 3))));
    assert_eq!((seen(11), seen(13)), (Some((11, 100, 0)), Some((13, 7, 2))));
    let expected = table(&whole);

    let pipelined = dir.path().join("pipelined");
    run(Some(&pipelined), &[], &mut Planned { plan: plan(), asked: vec![] }, true, u64::MAX);
    assert!(table(&pipelined) == expected, "pipelined");

    for stop_after in [1, 4, 7, 9, 10, 13, 20] {
        let stopped = dir.path().join(format!("stopped-{stop_after}"));
        let mut first = Planned { plan: plan(), asked: vec![] };
        run(Some(&stopped), &[], &mut first, true, stop_after);
        assert!(table(&stopped) != expected, "it was stopped");
        // What was decided is repeated; what the plan holds for later comes from the controller again.
        let n_asked = first.asked.last().unwrap().0 + 1;
        let (recorded, rest): (Vec<Change>, Vec<Change>) =
            plan().into_iter().partition(|change| change.batch < n_asked);
        run(Some(&stopped), &recorded, &mut Planned { plan: rest, asked: vec![] }, true, u64::MAX);
        assert!(table(&stopped) == expected, "stopped after {stop_after}");
    }
}

#[test]
fn a_resumed_study_without_its_changes_is_refused_instead_of_going_another_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut controller = Planned { plan: plan(), asked: vec![] };
    run(Some(dir.path()), &[], &mut controller, false, 8);
    let space = space(3);
    let mut sampler = steered(SamplerKind::Tpe, &space);
    let header = StudyHeader {
        version: "test".into(),
        semantics: 2,
        seed: 7,
        data_hash: "none".into(),
        config: toml::Table::default(),
    };
    let folder = StudyFolder::open_or_create(dir.path(), &header).unwrap().folder;
    let study = Study::new(&space, &mut sampler).trials(1200).batch(32).folder(&folder);
    let error = study.run(&mut FunctionEvaluator::new(two_hills)).unwrap_err();
    assert!(matches!(error, StudyError::Replay { .. }), "{error}");
}

#[test]
fn an_impossible_change_and_a_controller_that_fails_end_the_study_with_a_reason() {
    struct Failing;
    impl Controller for Failing {
        fn changes(
            &mut self,
            batch: u64,
            _: &Settings,
            _: &[(String, f64)],
        ) -> Result<Vec<Change>, EvaluateError> {
            if batch < 2 { Ok(vec![]) } else { Err("disk full".into()) }
        }
    }
    let space = space(2);
    let mut evaluator = FunctionEvaluator::new(two_hills);
    for is_pipelined in [false, true] {
        for bad in [
            change(1, "batch", 0.0),
            change(1, "lag", 0.5),
            change(1, "courage", 1.0),
            change(1, "gamma", 99.0),
        ] {
            let mut sampler = steered(SamplerKind::Tpe, &space);
            let study = Study::new(&space, &mut sampler).pipeline(is_pipelined).changes(vec![bad.clone()]);
            match study.run(&mut evaluator) {
                Err(StudyError::Change(named)) => assert_eq!(named, bad),
                other => panic!("{other:?}"),
            }
        }
        let (mut sampler, mut failing) = (steered(SamplerKind::Tpe, &space), Failing);
        let study = Study::new(&space, &mut sampler).pipeline(is_pipelined).control(&mut failing);
        assert!(matches!(study.run(&mut evaluator), Err(StudyError::Controller { batch: 2, .. })));
    }
}

#[test]
fn a_steered_sampler_that_is_not_turned_proposes_what_it_does_without() {
    let space = space(4);
    for kind in SamplerKind::ALL {
        let settings = SamplerSettings { n_trials: Some(4000), batch: 32, ..SamplerSettings::new(7) };
        let mut plain = kind.build(&space, &settings).unwrap();
        let mut steered = steered(kind, &space);
        for batch in 0..6 {
            let (expected, points) = (plain.ask(32), steered.ask(32));
            assert_eq!(points, expected, "{kind}, batch {batch}");
            let batch = Batch { index: 0, first_trial: 0, points: std::sync::Arc::new(points) };
            let scores = two_hills(&batch).unwrap().scores;
            plain.tell(&expected, &scores);
            steered.tell(&batch.points, &scores);
        }
    }
}

#[test]
fn every_sampler_lives_with_trials_of_others_and_the_cut_into_batches_does_not_matter() {
    let space = space(3);
    for kind in SamplerKind::ALL {
        let mut whole = steered(kind, &space);
        let mut cut = steered(kind, &space);
        for round in 0..4 {
            let points = whole.ask(60);
            let mut pieces = Points::new(3);
            while pieces.len() < 60 {
                let piece = cut.ask(20);
                pieces.extend_from(&piece, 0..piece.len());
            }
            assert_eq!(points, pieces, "{kind}, round {round}");
            let inside = |param: usize| points.column(param).iter().all(|x| (0.0..=1.0).contains(x));
            assert!((0..3).all(inside), "{kind}");
            let batch = Batch { index: 0, first_trial: 0, points: std::sync::Arc::new(points) };
            let scores = two_hills(&batch).unwrap().scores;
            for sampler in [&mut whole, &mut cut] {
                sampler.tell(&batch.points, &scores);
                assert!(sampler.turn("random_share", 0.4) && sampler.turn("restart", 30.0));
                assert!(!sampler.turn("random_share", 1.5) && !sampler.turn("nothing", 1.0));
            }
        }
    }
}

/// The best height after a study.
fn best_height(seed: u64, changes: Vec<Change>) -> f64 {
    let space = space(4);
    let settings = SamplerSettings { n_trials: Some(6000), batch: 32, ..SamplerSettings::new(seed) };
    let mut sampler = Steered::new(&space, seed, SamplerKind::Tpe.build(&space, &settings).unwrap());
    let mut best = f64::NEG_INFINITY;
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        let evaluated = two_hills(batch)?;
        best = evaluated.scores.column(0).iter().copied().fold(best, f64::max);
        Ok(evaluated)
    });
    let study = Study::new(&space, &mut sampler).trials(6000).batch(32).changes(changes);
    study.run(&mut evaluator).unwrap();
    best
}

#[test]
fn chance_leads_a_search_out_of_a_basin() {
    // Alone it climbs the wide hill and stays; most of its later trials at random meet the narrow peak, one trial in 500.
    let is_found = |height: f64| height > 0.6;
    let alone = (0..4).filter(|seed| is_found(best_height(*seed, vec![]))).count();
    let changes = || vec![change(40, "random_share", 0.7)];
    let steered = (0..4).filter(|seed| is_found(best_height(*seed, changes()))).count();
    assert!(alone == 0 && steered >= 3, "of 4: alone {alone}, steered {steered}");
}
