//! The default sampler: its points are a function of seed and tells alone, and it searches better than chance.

use tidemill_search::quality::{Budget, Function, QualityRun, to_scores};
use tidemill_search::sampler::Auto;
use tidemill_search::{Domain, Param, Points, Sampler, SamplerKind, SamplerSettings, Score, Scores, Space};

fn settings(n_trials: Option<u64>) -> SamplerSettings {
    SamplerSettings { n_trials, ..SamplerSettings::new(11) }
}

fn bits(points: &Points) -> Vec<u64> {
    let column = |param_idx| points.column(param_idx).iter().map(|value| value.to_bits());
    (0..points.n_params()).flat_map(column).collect()
}

/// The points of the last of ten batches, each asked in pieces of at most `piece`.
fn last_batch(n_trials: Option<u64>, piece: usize) -> Points {
    let function = Function::Mixed20;
    let mut sampler = Auto::new(&function.space(20), &settings(n_trials));
    let mut batch = Points::new(20);
    for _ in 0..10 {
        batch.clear();
        while batch.len() < 64 {
            let points = sampler.ask(piece.min(64 - batch.len()));
            batch.extend_from(&points, 0..points.len());
        }
        sampler.tell(&batch, &to_scores(&function.evaluate(&batch)));
    }
    batch
}

#[test]
fn the_cut_into_asks_does_not_matter_after_tells_either() {
    for n_trials in [Some(1024), None] {
        let whole = bits(&last_batch(n_trials, 64));
        assert!(whole == bits(&last_batch(n_trials, 7)), "{n_trials:?} trials in batches of 7");
        assert!(whole == bits(&last_batch(n_trials, 1)), "{n_trials:?} trials one by one");
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let on = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a pool of threads");
        pool.install(|| bits(&last_batch(None, 64)))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn known_points_teach_and_do_not_move_the_shares_of_members() {
    let function = Function::Sphere;
    let space = function.space(10);
    let mut known = SamplerKind::Sobol.build(&space, &settings(None)).expect("sobol suits every space");
    let known = known.ask(500);
    let mut sampler = Auto::new(&space, &settings(Some(1024)));
    let shares = |sampler: &Auto| sampler.shares().collect::<Vec<_>>();
    let before = shares(&sampler);
    sampler.tell(&known, &to_scores(&function.evaluate(&known)));
    assert_eq!(before, shares(&sampler));
    // What it proposes now is better than what it was told, on average.
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    assert!(mean(function.evaluate(&sampler.ask(64))) < 0.5 * mean(function.evaluate(&known)));
}

#[test]
fn several_objectives_are_searched() {
    let function = Function::Sphere;
    let settings = SamplerSettings { n_objectives: 2, ..settings(Some(640)) };
    let mut sampler = SamplerKind::Auto.build(&function.space(4), &settings).expect("auto suits every space");
    for _ in 0..10 {
        let points = sampler.ask(64);
        let negated = |values: Vec<f64>| values.iter().map(|value| -value).collect::<Vec<_>>();
        let columns = vec![negated(function.evaluate(&points)), points.column(0).to_vec()];
        sampler.tell(&points, &Scores::from_columns(64, columns));
    }
}

#[test]
fn it_finds_far_better_points_than_chance_whatever_the_budget_and_the_lag() {
    for (function, n_dimensions) in [(Function::Sphere, 10), (Function::Mixed8, 8), (Function::Styblinski, 7)]
    {
        for (n_trials, batch, lag) in [(1024, 64, 0), (1024, 64, 1), (512, 1, 0), (20_000, 1000, 1)] {
            let run = QualityRun { function, n_dimensions, budget: Budget { n_trials, batch }, lag };
            let median = |kind| run.median(kind, 0..3).expect("both suit every space");
            let (auto, random) = (median(SamplerKind::Auto), median(SamplerKind::Random));
            assert!(auto < 0.5 * random, "{run:?}: {auto} {random}");
        }
    }
}

#[test]
fn no_point_of_a_space_that_can_be_counted_is_tried_twice_while_others_are_left() {
    let int = |low, high| Domain::Int { low, high, step: 1, log: false };
    let params = [("a", int(1, 30)), ("b", int(5, 14)), ("s", Domain::Bool)];
    let params =
        params.into_iter().map(|(name, domain)| Param::new(name, domain.clone(), domain.from_unit(0.0)));
    let space = Space { params: params.collect() };
    for kind in SamplerKind::ALL.into_iter().filter(|kind| kind.learns()) {
        for piece in [50, 7] {
            let mut sampler = kind.build(&space, &settings(Some(600))).expect("these suit every space");
            let mut seen = std::collections::BTreeSet::new();
            let mut batch = Points::new(3);
            for _ in 0..12 {
                batch.clear();
                while batch.len() < 50 {
                    let points = sampler.ask(piece.min(50 - batch.len()));
                    batch.extend_from(&points, 0..points.len());
                }
                let value = |idx, param_idx| batch.value(idx, param_idx);
                seen.extend((0..50).map(|idx| [0, 1, 2].map(|param_idx| value(idx, param_idx) as i64)));
                let score = |idx| -(value(idx, 0) - 17.0).abs() - (value(idx, 1) - 9.0).abs() + value(idx, 2);
                let scores = (0..50).map(|idx| Score::new(score(idx))).collect::<Vec<_>>();
                sampler.tell(&batch, &Scores::single(&scores));
            }
            assert_eq!(seen.len(), 600, "{kind}");
        }
    }
}
