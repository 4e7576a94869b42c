use super::*;
use crate::score::Score;
use crate::space::Param;

fn int(low: i64, high: i64) -> Domain {
    Domain::Int { low, high, step: 1, log: false }
}

fn float(low: f64, high: f64) -> Domain {
    Domain::Float { low, high, step: None, log: false }
}

#[test]
fn crossing_gives_the_children_of_the_reference() {
    // Parents and children as computed by the reference with alpha = 0.37.
    let cases = [
        (int(12, 192), 24.0, 48.0, 39.0, 33.0),
        (int(84, 1344), 168.0, 336.0, 274.0, 230.0),
        (float(1.0, 3.5), 1.2, 1.0, 1.074, 1.126),
        (float(0.5, 2.0), 0.8, 0.5, 0.611, 0.689_000_000_000_000_1),
        (float(0.4, 0.8), 0.5, 0.4, 0.437, 0.462_999_999_999_999_97),
        (int(48, 192), 96.0, 96.0, 96.0, 96.0),
        (int(1, 8), 5.0, 5.0, 5.0, 5.0),
        (float(2.0, 10.0), 5.0, 5.0, 5.0, 5.0),
    ];
    for (domain, a, b, first, second) in cases {
        let gene = Attribute::new(&domain);
        assert_eq!(gene.crossed(0.37, a, b), first, "{domain:?}");
        assert_eq!(gene.crossed(1.0 - 0.37, a, b), second, "{domain:?}");
    }
}

#[test]
fn integers_round_half_to_even_and_stay_on_their_grid() {
    let gene = Attribute::new(&int(0, 10));
    assert_eq!([0.5, 1.5, 2.5, -3.0, 99.0].map(|value| gene.nearest(value)), [0.0, 2.0, 2.0, 0.0, 10.0]);
    let gene = Attribute::new(&Domain::Int { low: 5, high: 60, step: 5, log: false });
    assert_eq!([12.5, 14.0, 59.0, 99.0].map(|value| gene.nearest(value)), [15.0, 15.0, 60.0, 60.0]);
    let gene = Attribute::new(&Domain::Int { low: 0, high: 11, step: 5, log: false });
    assert_eq!(gene.nearest(11.0), 10.0);
}

fn space() -> Space {
    Space {
        params: vec![
            Param::new("n", int(1, 100), 1.0),
            Param::new("k", float(-1.0, 1.0), 0.0),
            Param::new("s", Domain::Bool, 0.0),
        ],
    }
}

fn sampler(batch: usize) -> Generational {
    Generational::new(&space(), &SamplerSettings { batch, ..SamplerSettings::new(4) })
}

fn run(sampler: &mut Generational, n: usize, fitness: impl Fn(f64, f64) -> f64) -> Points {
    let points = sampler.ask(n);
    let scores: Vec<Score> =
        points.column(0).iter().zip(points.column(1)).map(|(n, k)| Score::new(fitness(*n, *k))).collect();
    sampler.tell(&points, &Scores::single(&scores));
    points
}

#[test]
fn elites_come_first_and_all_others_are_new() {
    let mut sampler = sampler(24);
    let fitness = |n: f64, k: f64| n / 20.0 + k;
    run(&mut sampler, 24, fitness);
    assert_eq!(sampler.phase, Phase::Offspring);
    let mut best: Vec<f64> = sampler.population.iter().map(|individual| individual.fitness).collect();
    best.sort_by(|a, b| b.total_cmp(a));
    let children = run(&mut sampler, 22, fitness);
    // Immigration may have dropped some of the worst, never an elite.
    let kept: Vec<f64> = sampler.population.iter().map(|individual| individual.fitness).collect();
    assert!(kept.contains(&best[0]) && kept.contains(&best[1]));
    assert!(kept.len() == 24 || matches!(sampler.phase, Phase::Immigrants(3)) && kept.len() == 21);
    assert_eq!(children.len(), 22);
}

#[test]
fn a_population_without_progress_gets_immigrants_for_its_worst() {
    let mut sampler = sampler(20);
    run(&mut sampler, 20, |_, _| 1.0);
    for _ in 0..10 {
        if let Phase::Immigrants(n_immigrants) = sampler.phase {
            assert_eq!((n_immigrants, sampler.population.len()), (3, 17));
            run(&mut sampler, 3, |_, _| 1.0);
            assert_eq!((sampler.phase, sampler.population.len()), (Phase::Offspring, 20));
            return;
        }
        run(&mut sampler, 18, |_, _| 1.0);
    }
    panic!("no immigrants in ten generations of equal fitness");
}

#[test]
fn a_tournament_draws_without_replacement_and_prefers_the_fitter() {
    let mut sampler = sampler(4);
    sampler.population =
        (0..4).map(|idx| Individual { values: vec![1.0, 0.0, 0.0], fitness: f64::from(idx) }).collect();
    let mut counts = [0; 4];
    (0..4000).for_each(|number| counts[sampler.parent(number)] += 1);
    // Three of four take part: the best is missing in a quarter of the draws, and then the second wins.
    assert!(counts[0] == 0 && counts[1] == 0, "{counts:?}");
    assert!((2900..3100).contains(&counts[3]), "{counts:?}");
}

#[test]
fn populations_of_one_and_two_climb() {
    for size in [1, 2] {
        let mut sampler = sampler(size);
        let fitness = |n: f64, k: f64| -(n - 70.0).abs() - 10.0 * k.abs();
        let mut best = f64::NEG_INFINITY;
        for _ in 0..400 {
            let points = run(&mut sampler, 1, fitness);
            best = best.max(fitness(points.value(0, 0), points.value(0, 1)));
            assert!(sampler.population.len() <= size);
        }
        assert!(best > -3.0, "population {size}: {best}");
    }
}

#[test]
fn diversity_is_the_mean_distance_with_short_ranges_unstretched() {
    let mut sampler = sampler(2);
    let individual = |n: f64, k: f64| Individual { values: vec![n, k, 0.0], fitness: 0.0 };
    sampler.population = vec![individual(1.0, -1.0), individual(100.0, 1.0)];
    assert_eq!(sampler.diversity(), 1.0);
    sampler.population = vec![individual(1.0, 0.0), individual(100.0, 0.0)];
    assert!((sampler.diversity() - 1.0 / 2.0_f64.sqrt()).abs() < 1e-12);
}
