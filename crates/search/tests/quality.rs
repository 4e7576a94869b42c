//! The quality suite measures what it says: the functions are those of the recorded results, and runs can be repeated.

use tidemill_search::quality::{Budget, Function, QualityRun, Suite};
use tidemill_search::{Domain, Points, SamplerKind, Space};

/// Values of the reference implementation of the functions (NumPy) at three fixed points each.
const REFERENCE: [(Function, usize, [f64; 3]); 13] = [
    (Function::Sphere, 5, [78.48287448400484, 67.30497690440944, 18.215292879112315]),
    (Function::Sphere, 20, [304.0118500488713, 296.3923297863694, 263.27176300658107]),
    (Function::Rosenbrock, 5, [264734.22195013665, 674909.6065491975, 24211.955578815985]),
    (Function::Rosenbrock, 20, [3661263.0937166, 4364824.145046348, 3846724.006982962]),
    (Function::Rastrigin, 5, [136.11103461732134, 112.61683674694626, 47.066818040631524]),
    (Function::Rastrigin, 20, [504.01056837189464, 496.39106963822456, 454.00963751894994]),
    (Function::Ackley, 5, [21.277783775745974, 21.61061005523934, 20.580169072484367]),
    (Function::Ackley, 20, [21.653400139169307, 21.48555997475726, 21.460397168588727]),
    (Function::Styblinski, 5, [181.4106186800205, 183.21807816731712, 141.5118576554196]),
    (Function::Styblinski, 20, [655.7499942821777, 557.5582923433999, 871.104826188888]),
    (Function::Mixed8, 8, [13.30500473883432, 15.118472306730528, 16.627129659991173]),
    (Function::Mixed20, 20, [131.95510996546727, 124.33997418247426, 125.60613527543941]),
    (Function::Mixed142, 142, [57.777789556446216, 44.80949328864726, 48.37931109528083]),
];

/// The points of the reference: place `(point · d + dimension + 1) · 0.7548776662466927 mod 1` of each range, linear also where
/// the parameter is logarithmic.
fn reference_points(space: &Space) -> Points {
    let mut points = Points::new(space.len());
    for point_idx in 0..3 {
        let value = |(param_idx, domain): (usize, &Domain)| {
            let place = ((point_idx * space.len() + param_idx + 1) as f64 * 0.7548776662466927) % 1.0;
            match domain {
                Domain::Float { low, high, .. } => low + (high - low) * place,
                Domain::Int { low, high, .. } => *low as f64 + (place * (high - low + 1) as f64).floor(),
                Domain::Choice { options } => (place * options.len() as f64).floor(),
                Domain::Bool => (place * 2.0).floor(),
            }
        };
        let row: Vec<f64> = space.params.iter().map(|param| &param.domain).enumerate().map(value).collect();
        points.push(&row);
    }
    points
}

#[test]
fn functions_equal_the_reference_implementation() {
    for (function, n_dimensions, expected) in REFERENCE {
        let space = function.space(n_dimensions);
        space.validate().expect("a valid space");
        assert_eq!(space.len(), n_dimensions);
        let values = function.evaluate(&reference_points(&space));
        for (value, expected) in values.iter().zip(expected) {
            assert!(((value - expected) / expected).abs() < 1e-12, "{function}: {value} {expected}");
        }
    }
}

#[test]
fn every_function_is_near_zero_at_its_optimum() {
    for (function, n_dimensions, bound) in [
        (Function::Sphere, 7, 1e-20),
        (Function::Rosenbrock, 7, 1e-20),
        (Function::Rastrigin, 7, 1e-12),
        (Function::Ackley, 7, 1e-12),
        (Function::Styblinski, 7, 1e-9),
        (Function::Mixed8, 8, 0.005),
        (Function::Mixed20, 20, 0.005),
        (Function::Mixed142, 142, 0.005),
    ] {
        let space = function.space(n_dimensions);
        let value = |(param_idx, domain): (usize, &Domain)| {
            let share = 0.2 + 0.6 * ((param_idx + 1) as f64 * 0.6180339887498949 % 1.0);
            match domain {
                Domain::Float { .. } if function == Function::Styblinski => -2.903534027771177,
                Domain::Float { low, high, log: true, .. } => low * (high / low).powf(share),
                Domain::Float { low, high, .. } => low + (high - low) * share,
                Domain::Int { low, high, log: true, .. } => {
                    (*low as f64 * (*high as f64 / *low as f64).powf(share)).round()
                }
                Domain::Int { low, high, .. } => (*low as f64 + (high - low) as f64 * share).round(),
                Domain::Choice { options } => match function {
                    Function::Mixed8 => [2.0, 1.0][param_idx - 6],
                    Function::Mixed20 => 1.0,
                    _ => (((param_idx - 130) * 2 + 1) % options.len()) as f64,
                },
                Domain::Bool => 0.0,
            }
        };
        let row: Vec<f64> = space.params.iter().map(|param| &param.domain).enumerate().map(value).collect();
        let mut points = Points::new(space.len());
        points.push(&row);
        let value = function.evaluate(&points)[0];
        assert!(value.abs() < bound, "{function}: {value}");
    }
}

#[test]
fn runs_repeat_and_random_search_is_not_affected_by_lag_or_batch() {
    let run = |batch, lag| QualityRun {
        function: Function::Mixed20,
        n_dimensions: 20,
        budget: Budget { n_trials: 500, batch },
        lag,
    };
    let best = |run: QualityRun| run.best(SamplerKind::Random, 3).expect("random suits every space");
    assert_eq!(best(run(64, 0)), best(run(64, 0)));
    assert_eq!(best(run(64, 0)), best(run(1, 2)));
    let more = QualityRun { budget: Budget { n_trials: 50_000, batch: 64 }, ..run(64, 0) };
    assert!(best(more) < best(run(64, 0)));
}

#[test]
fn suites_compare_with_what_was_recorded() {
    assert_eq!(Suite::ALL.map(|suite| suite.runs(0).len()), [18, 22, 7]);
    let comparison =
        Suite::Small.compare(&[SamplerKind::Sobol], &[0, 1, 2], 0).expect("sobol suits every space");
    let sphere = &comparison.rows[0];
    assert_eq!((sphere.optuna_ind, sphere.optuna_mv), (Some(0.28631), Some(2.58021)));
    assert_eq!(sphere.best.map(|best| best.algorithm), Some("proto_port_mv_ind_de_ga"));
    // A sequence that learns nothing is far from what Optuna reaches on a sphere.
    assert_eq!(sphere.meets(Suite::Small, SamplerKind::Sobol, sphere.ours[0]), Some(false));
    assert_eq!(sphere.meets(Suite::Small, SamplerKind::Sobol, 1.24 * 0.28631), Some(true));
    let table = comparison.to_string();
    assert!(table.lines().any(|line| line.starts_with("sphere 10") && line.contains("0.2863")), "{table}");
}
