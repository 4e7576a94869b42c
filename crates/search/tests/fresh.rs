//! Samplers that learn ask no point twice, and a space that is counted out ends a study.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use proptest::prelude::*;
use tidemill_search::{
    Batch, Choice, Condition, Domain, Enqueue, Evaluated, ExportFormat, FunctionEvaluator, Param, Points,
    Sampler, SamplerKind, SamplerSettings, Score, Scores, Space, Study, StudyFolder, StudyHeader,
    StudySummary, export,
};

fn learning() -> impl Iterator<Item = SamplerKind> {
    SamplerKind::ALL.into_iter().filter(|kind| kind.learns())
}

fn int(low: i64, high: i64, step: i64, log: bool) -> Domain {
    Domain::Int { low, high, step, log }
}

fn space_of(domains: Vec<Domain>) -> Space {
    let param = |(idx, domain): (usize, Domain)| {
        let default = domain.from_unit(0.0);
        Param::new(format!("p{idx}"), domain, default)
    };
    Space { params: domains.into_iter().enumerate().map(param).collect() }
}

/// A few parameters with a few values each; the last one is active for some values of the first.
fn small_space() -> impl Strategy<Value = Space> {
    let domain = prop_oneof![
        (1_i64..6, 1_i64..3, any::<bool>()).prop_map(|(width, step, log)| int(1, 1 + width, step, log)),
        (1_u32..6).prop_map(|n| {
            Domain::Float { low: 0.5, high: 0.5 + 0.1 * f64::from(n), step: Some(0.1), log: false }
        }),
        (1_usize..4).prop_map(|n| Domain::Choice {
            options: (0..n).map(|idx| Choice::Text(format!("option {idx}"))).collect()
        }),
        Just(Domain::Bool),
    ];
    (prop::collection::vec(domain, 1..4), any::<bool>()).prop_map(|(domains, is_conditional)| {
        let mut space = space_of(domains);
        if is_conditional && space.len() > 1 {
            let first = space.params[0].domain.from_unit(0.0);
            let last = space.len() - 1;
            space.params[last].when = Some(Condition::new(move |row| row[0] == first));
        }
        space.validate().expect("a valid space");
        space
    })
}

fn row_bits(points: &Points, idx: usize) -> Vec<u64> {
    let bits = |value: f64| if value.is_nan() { u64::MAX } else { value.to_bits() };
    (0..points.n_params()).map(|param_idx| bits(points.value(idx, param_idx))).collect()
}

fn rows(points: &Points) -> Vec<Vec<u64>> {
    (0..points.len()).map(|idx| row_bits(points, idx)).collect()
}

/// All points of a space that can be counted.
fn all_points(space: &Space) -> BTreeSet<Vec<u64>> {
    let mut grid = SamplerKind::Grid.build(space, &SamplerSettings::new(0)).expect("a grid");
    rows(&grid.ask(100_000)).into_iter().collect()
}

fn scores(points: &Points) -> Scores {
    let score = |idx: usize| {
        let values = (0..points.n_params()).map(|at| points.value(idx, at));
        let sum: f64 = values.filter(|value| !value.is_nan()).sum();
        if (sum as i64) % 7 == 3 { Score::Invalid } else { Score::new(-(sum - 4.0).abs()) }
    };
    Scores::single(&(0..points.len()).map(score).collect::<Vec<_>>())
}

/// Everything that a sampler asks until it ends, told `lag` batches later.
fn asked_until_the_end(sampler: &mut dyn Sampler, batch: usize, lag: usize, at_most: usize) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    let mut in_flight = VecDeque::new();
    while all.len() <= at_most {
        let points = sampler.ask(batch);
        all.extend(rows(&points));
        let is_last = points.len() < batch;
        in_flight.push_back(points);
        if in_flight.len() > lag
            && let Some(points) = in_flight.pop_front()
        {
            sampler.tell(&points, &scores(&points));
        }
        if is_last {
            break;
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_point_repeats_until_a_space_is_counted_out(
        space in small_space(), batch in 1_usize..40, lag in 0_usize..3, seed in any::<u64>(),
    ) {
        let expected = all_points(&space);
        for kind in learning() {
            let settings = SamplerSettings { batch, n_trials: Some(1000), ..SamplerSettings::new(seed) };
            let mut sampler = kind.build(&space, &settings).expect("a sampler for one objective");
            prop_assert!(sampler.remaining().is_some_and(|remaining| remaining >= expected.len() as u64));
            let asked = asked_until_the_end(&mut *sampler, batch, lag, expected.len());
            prop_assert_eq!(asked.len(), expected.len(), "{}", kind);
            prop_assert!(asked.into_iter().collect::<BTreeSet<_>>() == expected, "{}", kind);
            prop_assert!(sampler.ask(3).is_empty() && sampler.remaining() == Some(0), "{}", kind);
        }
    }
}

/// A float beside integers: without a memory elites are copied and floats kept as they are.
fn mixed_space() -> Space {
    let float = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
    let mut space = space_of(vec![Domain::Bool, int(1, 9, 1, false), float]);
    space.params[2].when = Some(Condition::new(|row| row[0] == 1.0));
    space
}

#[test]
fn a_space_with_a_continuum_is_searched_without_repeats() {
    let space = mixed_space();
    for kind in learning() {
        let settings = SamplerSettings { batch: 50, n_trials: Some(2000), ..SamplerSettings::new(5) };
        let mut sampler = kind.build(&space, &settings).expect("a sampler for one objective");
        assert_eq!(sampler.remaining(), None);
        let asked = asked_until_the_end(&mut *sampler, 50, 1, 1999);
        assert_eq!(asked.len(), 2000, "{kind}");
        assert_eq!(asked.into_iter().collect::<BTreeSet<_>>().len(), 2000, "{kind}");
    }
}

#[test]
fn turned_knobs_bring_no_repeats() {
    let space = space_of(vec![int(1, 20, 1, false), int(1, 10, 1, false)]);
    for kind in learning() {
        let settings = SamplerSettings { batch: 20, n_trials: Some(200), ..SamplerSettings::new(5) };
        let mut sampler = kind.build_steered(&space, &settings).expect("a sampler for one objective");
        let first = sampler.ask(20);
        sampler.tell(&first, &scores(&first));
        assert!(sampler.turn("random_share", 0.4) && sampler.turn("restart", 30.0), "{kind}");
        let mut asked = rows(&first);
        asked.extend(asked_until_the_end(&mut *sampler, 20, 0, 200));
        assert_eq!(asked.len(), 200, "{kind}");
        assert_eq!(asked.into_iter().collect::<BTreeSet<_>>().len(), 200, "{kind}");
    }
}

#[test]
fn samplers_that_do_not_learn_may_repeat_as_before() {
    let space = space_of(vec![Domain::Bool]);
    for kind in [SamplerKind::Random, SamplerKind::Sobol] {
        let mut sampler = kind.build(&space, &SamplerSettings::new(1)).expect("these suit every space");
        assert_eq!((sampler.remaining(), sampler.ask(100).len()), (None, 100), "{kind}");
    }
}

#[test]
fn enqueued_points_count_as_asked_from_the_first_batch_on() {
    let space = space_of(vec![int(1, 6, 1, false), Domain::Bool]);
    let mut known = Points::new(2);
    for value in 1..=5 {
        known.push(&[f64::from(value), 1.0]);
    }
    // The user asks for one of them twice.
    known.push(&[1.0, 1.0]);
    for kind in learning() {
        let inner = kind.build(&space, &SamplerSettings::new(3)).expect("a sampler for one objective");
        let mut sampler = Enqueue::new(&space, known.clone(), inner).expect("points of the space");
        assert_eq!(sampler.remaining(), Some(13));
        let asked = rows(&sampler.ask(100));
        assert_eq!((asked.len(), sampler.remaining()), (13, Some(0)), "{kind}");
        assert_eq!(asked[..6], rows(&known)[..], "{kind}");
        assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), all_points(&space), "{kind}");
    }
}

/// 300 trials in a space of 143 points.
fn study(
    kind: SamplerKind,
    dir: &Path,
    is_pipelined: bool,
    lag: usize,
    fails_at: Option<u64>,
) -> Option<StudySummary> {
    let mut space = space_of(vec![int(1, 11, 1, false), Domain::Bool, int(1, 12, 1, true)]);
    space.params[2].when = Some(Condition::new(|row| row[1] == 1.0));
    let settings = SamplerSettings { n_trials: Some(300), batch: 16, ..SamplerSettings::new(9) };
    let mut sampler = kind.build(&space, &settings).expect("a sampler for one objective");
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| match fails_at == Some(batch.index) {
        true => Err("interrupted".into()),
        false => Ok(Evaluated { scores: scores(&batch.points), metrics: vec![] }),
    });
    let header = StudyHeader {
        version: "0.1.0".into(),
        semantics: 3,
        seed: 9,
        data_hash: "none".into(),
        config: toml::Table::new(),
    };
    let folder = StudyFolder::open_or_create(dir, &header).expect("a folder").folder;
    let study = Study::new(&space, &mut *sampler).trials(300).batch(16).lag(lag).pipeline(is_pipelined);
    study.folder(&folder).run(&mut evaluator).ok()
}

fn exported(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(dir, ExportFormat::Csv, &mut bytes).expect("an export");
    bytes
}

#[test]
fn a_study_ends_where_its_space_does_however_it_runs_and_is_interrupted() {
    for kind in learning() {
        for lag in [0, 1, 2] {
            let place = tempfile::tempdir().expect("a folder");
            let [serial, pipelined, parts] =
                ["serial", "pipelined", "parts"].map(|name| place.path().join(name));
            let summary = study(kind, &serial, false, lag, None).expect("a study");
            assert_eq!(
                (summary.n_trials, summary.is_complete, summary.is_exhausted),
                (143, true, true),
                "{kind}"
            );
            study(kind, &pipelined, true, lag, None).expect("a study");
            assert!(exported(&serial) == exported(&pipelined), "{kind}, lag {lag}");
            for fails_at in [1, 3, 8] {
                assert!(study(kind, &parts, fails_at != 3, lag, Some(fails_at)).is_none());
            }
            let resumed = study(kind, &parts, true, lag, None).expect("a study");
            assert_eq!((resumed.n_replayed, resumed.is_exhausted), (128, true), "{kind}");
            assert!(exported(&serial) == exported(&parts), "{kind}, lag {lag}");
            // Once more: nothing is left to do, and it still says why.
            let again = study(kind, &parts, true, lag, Some(0)).expect("nothing to evaluate");
            assert_eq!((again.n_trials, again.is_complete, again.is_exhausted), (143, true, true), "{kind}");
        }
    }
}
