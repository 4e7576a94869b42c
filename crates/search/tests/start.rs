//! What samplers that learn do before there is anything to learn from.

use tidemill_search::{Domain, Param, Points, SamplerKind, SamplerSettings, Score, Scores, Space};

const LEARNING: [SamplerKind; 6] = [
    SamplerKind::Auto,
    SamplerKind::Tpe,
    SamplerKind::TpeMultivariate,
    SamplerKind::Genetic,
    SamplerKind::Differential,
    SamplerKind::Nsga2,
];

const BATCH: usize = 32;

fn space() -> Space {
    let float = |idx: usize| {
        Param::new(format!("x{idx}"), Domain::Float { low: -1.0, high: 3.0, step: None, log: false }, 0.0)
    };
    let int = Param::new("n", Domain::Int { low: 5, high: 400, step: 1, log: true }, 20.0);
    Space { params: (0..7).map(float).chain([int, Param::new("on", Domain::Bool, 0.0)]).collect() }
}

/// The trials of a study of 2,048 that are valid; `is_valid` is given the floats and the number.
fn n_valid(kind: SamplerKind, seed: u64, is_valid: impl Fn(&[f64]) -> bool) -> usize {
    let settings = SamplerSettings { batch: BATCH, n_trials: Some(2048), ..SamplerSettings::new(seed) };
    let mut sampler = kind.build(&space(), &settings).unwrap();
    let (mut n_valid, mut row) = (0, [0.0; 9]);
    for _ in 0..2048 / BATCH {
        let points = sampler.ask(BATCH);
        let mut score = |at: usize| {
            points.read_row(at, &mut row);
            if is_valid(&row[..8]) { Score::new(row.iter().sum()) } else { Score::Invalid }
        };
        let scores: Vec<Score> = (0..BATCH).map(&mut score).collect();
        n_valid += scores.iter().filter(|score| score.value().is_some()).count();
        sampler.tell(&points, &Scores::single(&scores));
    }
    n_valid
}

#[test]
fn what_is_valid_only_near_the_ends_of_many_ranges_is_found() {
    // One even point in 100,000 is in the last tenth of five ranges.
    let is_loose = |row: &[f64]| row[..4].iter().all(|x| *x > 2.6) && row[7] > 258.0;
    for kind in LEARNING {
        let n_found = (1..=8).filter(|seed| n_valid(kind, *seed, is_loose) > 0).count();
        assert!(n_found >= 6, "{kind}: {n_found} of 8 studies have a valid trial");
    }
    assert_eq!((1..=8).map(|seed| n_valid(SamplerKind::Sobol, seed, is_loose)).sum::<usize>(), 0);
}

#[test]
fn the_ends_are_left_alone_where_trials_are_valid() {
    let at_ends = |points: &Points| {
        let column =
            |idx: usize| points.column(idx).iter().filter(|x| **x == -1.0 || **x > 2.999_999).count();
        (0..7).map(column).sum::<usize>()
    };
    for kind in LEARNING {
        for (is_valid, least, most) in [(true, 0, 0), (false, BATCH, 7 * BATCH)] {
            let settings = SamplerSettings { batch: BATCH, ..SamplerSettings::new(3) };
            let mut sampler = kind.build(&space(), &settings).unwrap();
            let first = sampler.ask(BATCH);
            assert_eq!(at_ends(&first), 0, "{kind}: nothing is known yet");
            // One in eight is enough.
            let score =
                |at: usize| if is_valid && at.is_multiple_of(8) { Score::new(1.0) } else { Score::Invalid };
            sampler.tell(&first, &Scores::single(&(0..BATCH).map(score).collect::<Vec<Score>>()));
            let second = sampler.ask(BATCH);
            if is_valid && matches!(kind, SamplerKind::Auto | SamplerKind::Differential) {
                // Differences of points may lead beyond a range, and to its end.
                continue;
            }
            let n_ends = at_ends(&second);
            assert!((least..=most).contains(&n_ends), "{kind}, valid {is_valid}: {n_ends} ends");
        }
    }
}
