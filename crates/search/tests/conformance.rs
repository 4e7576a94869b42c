//! The obligations of the `Sampler` trait, checked for every sampler there is.

use tidemill_search::{
    Choice, Condition, Domain, Param, Points, Sampler, SamplerKind, SamplerSettings, Score, Scores, Space,
};

/// Builds a fresh sampler over a space from a seed.
type Build<'a> = &'a dyn Fn(&Space, u64) -> Box<dyn Sampler>;

/// Checks one sampler against every obligation.
fn conforms(build: Build) {
    for space in [mixed_space(), one_switch(), Space::default()] {
        space.validate().expect("the spaces of this suite are valid");
        values_lie_in_their_domains_and_conditions_hold(build, &space);
        equal_seeds_give_equal_points(build, &space);
        the_cut_into_batches_does_not_matter(build, &space);
        points_that_are_skipped_count_as_asked(build, &space);
        invalid_scores_and_late_tells_are_survived(build, &space);
        a_finite_sampler_ends_for_ever(build, &space);
    }
    fixed_parameters_keep_their_value(build);
}

fn build(kind: SamplerKind) -> impl Fn(&Space, u64) -> Box<dyn Sampler> {
    move |space, seed| {
        let settings = SamplerSettings { n_trials: Some(N_POINTS as u64), ..SamplerSettings::new(seed) };
        kind.build(space, &settings).expect("every space of this suite suits every sampler")
    }
}

#[test]
fn random_conforms() {
    conforms(&build(SamplerKind::Random));
}

#[test]
fn sobol_conforms() {
    conforms(&build(SamplerKind::Sobol));
}

#[test]
fn grid_conforms() {
    conforms(&build(SamplerKind::Grid));
}

#[test]
fn the_whole_grid_conforms() {
    conforms(&|space, seed| SamplerKind::Grid.build(space, &SamplerSettings::new(seed)).expect("a grid"));
}

#[test]
fn genetic_conforms() {
    conforms(&build(SamplerKind::Genetic));
}

#[test]
fn differential_conforms() {
    conforms(&build(SamplerKind::Differential));
}

#[test]
fn tpe_conforms() {
    conforms(&build(SamplerKind::Tpe));
}

#[test]
fn tpe_multivariate_conforms() {
    conforms(&build(SamplerKind::TpeMultivariate));
}

#[test]
fn auto_conforms() {
    conforms(&build(SamplerKind::Auto));
}

#[test]
fn cmaes_conforms() {
    conforms(&build(SamplerKind::CmaEs));
}

#[test]
fn nsga2_conforms() {
    conforms(&build(SamplerKind::Nsga2));
}

#[test]
fn generational_conforms() {
    conforms(&build(SamplerKind::Generational));
}

#[test]
fn every_sampler_is_in_this_suite() {
    assert_eq!(
        SamplerKind::ALL.map(SamplerKind::name),
        ["random", "sobol", "grid", "tpe", "tpe-mv", "ga", "de", "cmaes", "nsga2", "ga-seller", "auto"]
    );
}

const N_POINTS: usize = 3000;

/// Every kind of domain, with conditions on plain, conditional and chosen parents.
fn mixed_space() -> Space {
    let float = |low, high, step, log| Domain::Float { low, high, step, log };
    let int = |low, high, step, log| Domain::Int { low, high, step, log };
    let options = ["tight", "wide", "off"].map(|name| Choice::Text(name.into())).to_vec();
    let mut params = vec![
        Param::new("fast", int(5, 60, 5, false), 20.0),
        Param::new("slow", int(1, 1000, 1, true), 200.0),
        Param::new("k", float(0.5, 4.0, None, false), 2.0),
        Param::new("step", float(0.1, 0.7, Some(0.1), false), 0.3),
        Param::new("rate", float(1e-4, 1e2, None, true), 1.0),
        Param::new("log_step", float(0.5, 20.0, Some(0.5), true), 1.0),
        Param::new("mode", Domain::Choice { options }, 0.0),
        Param::new(
            "numbers",
            Domain::Choice { options: vec![Choice::Number(1.5), Choice::Number(9.0)] },
            1.0,
        ),
        Param::new("switch", Domain::Bool, 1.0),
        Param::new("tail", float(0.5, 3.0, None, false), 1.0),
        Param::new("tail_switch", Domain::Bool, 1.0),
    ];
    let tail = params.len() - 2;
    params[tail].when = Some(Condition::new(|row| row[6] == 1.0));
    // The parent is conditional itself: where it is inactive its default 1.0 counts.
    params[tail + 1].when = Some(Condition::new(move |row| row[tail] < 1.5));
    Space { params }
}

fn one_switch() -> Space {
    Space { params: vec![Param::new("switch", Domain::Bool, 0.0)] }
}

fn assert_same(a: &Points, b: &Points) {
    assert_eq!((a.len(), a.n_params()), (b.len(), b.n_params()));
    for param_idx in 0..a.n_params() {
        let bits = |points: &Points| points.column(param_idx).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert!(bits(a) == bits(b), "parameter {param_idx}");
    }
}

fn values_lie_in_their_domains_and_conditions_hold(build: Build, space: &Space) {
    let points = build(space, 1).ask(N_POINTS);
    assert!(!points.is_empty());
    let mut row = vec![0.0; space.len()];
    let mut n_inactive = 0;
    for point_idx in 0..points.len() {
        points.read_row(point_idx, &mut row);
        let mut seen = row.clone();
        space.fill_inactive(&mut seen);
        for (param, value) in space.params.iter().zip(&row) {
            if param.is_active(&seen) {
                assert!(param.domain.contains(*value), "{} = {value}", param.name);
            } else {
                assert!(value.is_nan(), "{} = {value} is inactive", param.name);
                n_inactive += 1;
            }
        }
    }
    assert_eq!(n_inactive > 0, space.params.iter().any(|param| param.when.is_some()));
}

fn equal_seeds_give_equal_points(build: Build, space: &Space) {
    for seed in [0, 1, u64::MAX] {
        assert_same(&build(space, seed).ask(100), &build(space, seed).ask(100));
    }
    // In another thread too: nothing hangs on thread-local or global state.
    let here = build(space, 5).ask(100);
    let mut sampler = build(space, 5);
    let there = std::thread::spawn(move || sampler.ask(100)).join().expect("the thread ends");
    assert_same(&here, &there);
}

fn points_that_are_skipped_count_as_asked(build: Build, space: &Space) {
    let (mut whole, mut skipped) = (build(space, 5), build(space, 5));
    whole.ask(7);
    if skipped.skip(7) {
        assert_same(&whole.ask(20), &skipped.ask(20));
        assert_eq!(whole.remaining(), skipped.remaining());
    } else {
        // Nothing has happened.
        assert_same(&build(space, 5).ask(20), &skipped.ask(20));
    }
}

fn the_cut_into_batches_does_not_matter(build: Build, space: &Space) {
    let whole = build(space, 7).ask(300);
    for batch in [1, 10, 64, 299] {
        let mut sampler = build(space, 7);
        let mut pieces = Points::new(space.len());
        while pieces.len() < 300 {
            let piece = sampler.ask(batch.min(300 - pieces.len()));
            if piece.is_empty() {
                break;
            }
            pieces.extend_from(&piece, 0..piece.len());
        }
        assert_same(&whole, &pieces);
    }
    assert!(build(space, 7).ask(0).is_empty());
}

fn invalid_scores_and_late_tells_are_survived(build: Build, space: &Space) {
    let mut sampler = build(space, 3);
    let first = sampler.ask(10);
    let second = sampler.ask(10);
    sampler.tell(&first, &Scores::single(&vec![Score::Invalid; first.len()]));
    let third = sampler.ask(10);
    sampler.tell(&second, &Scores::single(&vec![Score::new(1.0); second.len()]));
    sampler.tell(&third, &Scores::single(&vec![Score::Invalid; third.len()]));
    sampler.tell(&Points::new(space.len()), &Scores::single(&[]));
    sampler.ask(10);
}

fn a_finite_sampler_ends_for_ever(build: Build, space: &Space) {
    let mut sampler = build(space, 3);
    let mut n_points = 0;
    while let Some(remaining) = sampler.remaining() {
        let n_asked = 500;
        let batch = sampler.ask(n_asked);
        assert!(batch.len() as u64 <= remaining);
        n_points += batch.len();
        if batch.len() < n_asked || n_points > 20_000 {
            if batch.len() < n_asked {
                assert!(sampler.ask(1).is_empty());
                assert_eq!(sampler.remaining(), Some(0));
            }
            break;
        }
    }
}

fn fixed_parameters_keep_their_value(build: Build) {
    let mut space = mixed_space();
    let fixed = [("fast", 35.0), ("rate", 2.5), ("mode", 1.0), ("tail_switch", 0.0)];
    for (name, value) in fixed {
        let param_idx = space.param_idx(name).expect("a parameter of the suite");
        space.params[param_idx].fixed = Some(value);
    }
    space.validate().expect("the fixed values are valid");
    let points = build(&space, 2).ask(500);
    for (name, value) in &fixed[..3] {
        let param_idx = space.param_idx(name).expect("a parameter of the suite");
        assert!(points.column(param_idx).iter().all(|v| v == value), "{name}");
    }
    // `mode` is fixed to what activates `tail`, and a fixed parameter is still NaN where it is inactive.
    let tail = points.column(space.param_idx("tail").expect("a parameter of the suite"));
    let tail_switch = points.column(space.param_idx("tail_switch").expect("a parameter of the suite"));
    for (tail, switch) in tail.iter().zip(tail_switch) {
        assert!(if *tail < 1.5 { *switch == 0.0 } else { switch.is_nan() }, "{tail} {switch}");
    }
}
