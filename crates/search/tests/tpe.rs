//! What the Parzen estimators learn, and what asking costs.

use tidemill_search::quality::{Budget, Function, QualityRun, to_scores};
use tidemill_search::{
    Choice, Condition, Domain, Param, Points, Sampler, SamplerKind, SamplerSettings, Score, Scores, Space,
};

const KINDS: [SamplerKind; 2] = [SamplerKind::Tpe, SamplerKind::TpeMultivariate];

fn float(low: f64, high: f64) -> Domain {
    Domain::Float { low, high, step: None, log: false }
}

fn settings(seed: u64, batch: usize) -> SamplerSettings {
    SamplerSettings { batch, ..SamplerSettings::new(seed) }
}

/// Asks and tells some batches, and returns the sampler.
fn study(
    kind: SamplerKind,
    space: &Space,
    settings: &SamplerSettings,
    n_batches: usize,
    evaluate: impl Fn(&Points) -> Scores,
) -> Box<dyn Sampler> {
    let mut sampler = kind.build(space, settings).unwrap();
    for _ in 0..n_batches {
        let points = sampler.ask(settings.batch);
        sampler.tell(&points, &evaluate(&points));
    }
    sampler
}

fn rows(points: &Points) -> Vec<Vec<f64>> {
    let row = |point_idx| {
        let mut row = vec![0.0; points.n_params()];
        points.read_row(point_idx, &mut row);
        row
    };
    (0..points.len()).map(row).collect()
}

fn scores(points: &Points, value: impl Fn(&[f64]) -> f64) -> Scores {
    Scores::single(&rows(points).iter().map(|row| Score::new(value(row))).collect::<Vec<_>>())
}

fn bits(points: &Points) -> Vec<Vec<u64>> {
    rows(points).into_iter().map(|row| row.into_iter().map(f64::to_bits).collect()).collect()
}

#[test]
fn after_tells_the_cut_into_batches_does_not_matter() {
    let space = Function::Mixed20.space(20);
    for kind in KINDS {
        for batch in [1, 64] {
            let start = || {
                study(kind, &space, &settings(4, batch), 100 / batch + 1, |points| {
                    to_scores(&Function::Mixed20.evaluate(points))
                })
            };
            let whole = start().ask(60);
            let mut sampler = start();
            let mut pieces = Points::new(space.len());
            for n in [1, 0, 7, 40, 12] {
                pieces.extend_from(&sampler.ask(n), 0..n);
            }
            assert!(bits(&whole) == bits(&pieces), "{kind}, batch {batch}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let space = Function::Mixed142.space(142);
    for kind in KINDS {
        let points = [1, 3].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                study(kind, &space, &settings(4, 100), 5, |points| {
                    to_scores(&Function::Mixed142.evaluate(points))
                })
                .ask(50)
            })
        });
        assert!(bits(&points[0]) == bits(&points[1]), "{kind}");
    }
}

#[test]
fn a_conditional_parameter_is_learned_from_the_trials_where_it_was_active() {
    let options = ["plain", "tailed", "other"].map(|name| Choice::Text(name.into())).to_vec();
    let mut tail = Param::new("tail", float(0.0, 1.0), 0.5);
    tail.when = Some(Condition::new(|row| row[0] == 1.0));
    let space = Space { params: vec![Param::new("mode", Domain::Choice { options }, 0.0), tail] };
    for kind in KINDS {
        for batch in [1, 32] {
            let value = |row: &[f64]| if row[0] == 1.0 { 1.0 - (row[1] - 0.8).abs() } else { 0.1 };
            let mut sampler =
                study(kind, &space, &settings(1, batch), 256 / batch, |points| scores(points, value));
            let points = rows(&sampler.ask(200));
            let tails: Vec<f64> = points.iter().map(|row| row[1]).filter(|tail| !tail.is_nan()).collect();
            assert!(tails.len() > 120, "{kind}, batch {batch}: {} of 200 are tailed", tails.len());
            let n_near = tails.iter().filter(|tail| (**tail - 0.8).abs() < 0.1).count();
            assert!(2 * n_near > tails.len(), "{kind}, batch {batch}: {n_near} of {}", tails.len());
        }
    }
}

#[test]
fn invalid_trials_drive_the_search_away() {
    let space = Space { params: vec![Param::new("x", float(0.0, 1.0), 0.5)] };
    for kind in KINDS {
        // Valid trials are all alike; only validity says where to go.
        let value = |row: &[f64]| if row[0] < 0.25 { 1.0 } else { f64::NAN };
        let mut sampler = study(kind, &space, &settings(2, 16), 16, |points| scores(points, value));
        let n_valid = rows(&sampler.ask(200)).iter().filter(|row| row[0] < 0.25).count();
        assert!(n_valid > 120, "{kind}: {n_valid} of 200");
    }
}

#[test]
fn a_study_without_a_valid_trial_goes_on_filling_the_space() {
    let space = Space { params: vec![Param::new("x", float(0.0, 1.0), 0.5)] };
    for kind in KINDS {
        let mut sampler = study(kind, &space, &settings(2, 16), 8, |points| scores(points, |_| f64::NAN));
        // A quarter of the points at least is spread evenly, whatever the others reach for.
        let points = sampler.ask(512);
        let mut hit = [false; 64];
        points.column(0).iter().for_each(|x| hit[(x * 64.0) as usize] = true);
        assert!(hit.iter().all(|hit| *hit), "{kind}");
    }
}

#[test]
fn points_of_others_teach_as_well() {
    let space = Space { params: vec![Param::new("x", float(0.0, 1.0), 0.5)] };
    for kind in KINDS {
        let mut sampler = kind.build(&space, &settings(3, 16)).unwrap();
        let known = Points::from_columns(100, vec![(0..100).map(|idx| f64::from(idx) / 99.0).collect()]);
        sampler.tell(&known, &scores(&known, |row| -(row[0] - 0.3).abs()));
        let n_near = rows(&sampler.ask(100)).iter().filter(|row| (row[0] - 0.3).abs() < 0.15).count();
        assert!(n_near > 60, "{kind}: {n_near} of 100");
    }
}

#[test]
fn a_history_longer_than_the_model_keeps_is_learned_from() {
    let space = Function::Sphere.space(5);
    for kind in KINDS {
        let evaluate = |points: &Points| to_scores(&Function::Sphere.evaluate(points));
        let mut sampler = study(kind, &space, &settings(5, 500), 12, evaluate);
        let mut values = Function::Sphere.evaluate(&sampler.ask(400));
        values.sort_by(f64::total_cmp);
        let mut random = Function::Sphere
            .evaluate(&SamplerKind::Random.build(&space, &settings(5, 500)).unwrap().ask(400));
        random.sort_by(f64::total_cmp);
        assert!(20.0 * values[200] < random[200], "{kind}: {} {}", values[200], random[200]);
    }
}

#[test]
fn several_objectives_draw_to_the_whole_front() {
    // The front is y = 0, and x chooses the place along it.
    let space = Space { params: ["x", "y"].map(|name| Param::new(name, float(0.0, 1.0), 0.5)).to_vec() };
    for kind in KINDS {
        let settings = SamplerSettings { n_objectives: 2, ..settings(6, 32) };
        let evaluate = |points: &Points| {
            let first = rows(points).iter().map(|row| row[0] - row[1]).collect();
            let second = rows(points).iter().map(|row| 1.0 - row[0] - row[1]).collect();
            Scores::from_columns(points.len(), vec![first, second])
        };
        let points = rows(&study(kind, &space, &settings, 20, evaluate).ask(400));
        let n_near = points.iter().filter(|row| row[1] < 0.1).count();
        assert!(n_near > 240, "{kind}: {n_near} of 400");
        for quarter in 0..4 {
            let n = points.iter().filter(|row| (row[0] * 4.0) as usize == quarter).count();
            assert!(n > 30, "{kind}: {n} of 400 in quarter {quarter}");
        }
    }
}

#[test]
fn searches_are_far_better_than_chance() {
    for (kind, batch) in [
        (SamplerKind::Tpe, 1),
        (SamplerKind::Tpe, 64),
        (SamplerKind::TpeMultivariate, 1),
        (SamplerKind::TpeMultivariate, 16),
    ] {
        for (function, n_dimensions) in [(Function::Sphere, 5), (Function::Mixed8, 8)] {
            let run = QualityRun { function, n_dimensions, budget: Budget { n_trials: 400, batch }, lag: 0 };
            let ours = run.median(kind, 0..5_u64).unwrap();
            let random = run.median(SamplerKind::Random, 0..5_u64).unwrap();
            assert!(5.0 * ours < random, "{kind}, batch {batch}, {function:?}: {ours} {random}");
        }
    }
}
