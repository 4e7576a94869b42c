//! The test functions: what is minimised, and over which space.
//!
//! Each has its minimum of (nearly) 0 at a place that no sampler meets by chance: not in the middle, not on a bound, not at a
//! round number. Five are continuous and take any number of dimensions; three mix floats, logarithmic floats, integers and
//! choices, and have the number of dimensions in their name.

use std::f64::consts::{E, PI};
use std::fmt;

use crate::domain::{Choice, Domain};
use crate::point::Points;
use crate::space::{Param, Space};

/// The golden ratio less one; its multiples spread the optimum.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The least value of one term of the Styblinski–Tang function, without its sign.
const STYBLINSKI_DEPTH: f64 = 39.166_165_703_771_42;

/// A function to minimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// A bowl.
    Sphere,
    /// A long bent valley.
    Rosenbrock,
    /// A bowl with a grid of local minima.
    Rastrigin,
    /// A narrow funnel in a rippled plain.
    Ackley,
    /// Separable, two minima per dimension of which one is better.
    Styblinski,
    /// A bowl over floats and integers, and two independent choices.
    Mixed8,
    /// A ripple whose optimum is moved by the choices.
    Mixed20,
    /// Many parameters of which few matter, with pairwise interactions.
    Mixed142,
}

impl Function {
    /// Every function.
    pub const ALL: [Self; 8] = [
        Self::Sphere,
        Self::Rosenbrock,
        Self::Rastrigin,
        Self::Ackley,
        Self::Styblinski,
        Self::Mixed8,
        Self::Mixed20,
        Self::Mixed142,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sphere => "sphere",
            Self::Rosenbrock => "rosenbrock",
            Self::Rastrigin => "rastrigin",
            Self::Ackley => "ackley",
            Self::Styblinski => "styblinski",
            Self::Mixed8 => "mixed8",
            Self::Mixed20 => "mixed20",
            Self::Mixed142 => "mixed142",
        }
    }

    /// The function of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }

    /// The bounds of every dimension of a continuous function.
    fn bounds(self) -> Option<(f64, f64)> {
        match self {
            Self::Sphere | Self::Rastrigin => Some((-5.12, 5.12)),
            Self::Rosenbrock => Some((-5.0, 10.0)),
            Self::Ackley => Some((-32.768, 32.768)),
            Self::Styblinski => Some((-5.0, 5.0)),
            Self::Mixed8 | Self::Mixed20 | Self::Mixed142 => None,
        }
    }

    /// The space it is minimised over. The number of dimensions counts for the continuous functions alone.
    pub fn space(self, n_dimensions: usize) -> Space {
        let params = match (self, self.bounds()) {
            (_, Some((low, high))) => repeat("x", n_dimensions, |_| float(low, high)),
            (Self::Mixed8, _) => {
                let ints = [("k", 64, false), ("m", 1024, true)];
                let int =
                    |(name, high, log)| Param::new(name, Domain::Int { low: 1, high, step: 1, log }, 1.0);
                let mut params = repeat("f", 3, |_| float(-5.0, 5.0));
                params.extend(repeat("lr", 1, |_| log_float(1e-5, 1e-1)));
                params.extend(ints.map(int));
                params.extend(repeat("c", 2, |idx| choice([5, 3][idx])));
                params
            }
            (Self::Mixed20, _) => {
                let mut params = repeat("f", 6, |_| float(-5.0, 5.0));
                params.extend(repeat("g", 4, |_| log_float(1e-4, 1.0)));
                params.extend(repeat("k", 4, |_| Domain::Int { low: 1, high: 100, step: 1, log: false }));
                params.extend(repeat("c", 6, |idx| choice(2 + idx)));
                params
            }
            _ => {
                let mut params = repeat("f", 60, |_| float(0.0, 1.0));
                params.extend(repeat("g", 30, |_| log_float(1e-3, 10.0)));
                params.extend(repeat("k", 40, |_| Domain::Int { low: 2, high: 200, step: 1, log: false }));
                params.extend(repeat("c", 12, |idx| choice(2 + idx % 7)));
                params
            }
        };
        Space { params }
    }

    /// Its value at each point.
    pub fn evaluate(self, points: &Points) -> Vec<f64> {
        let space = self.space(points.n_params());
        let optimum: Vec<f64> = (0..space.len()).map(optimum_unit).collect();
        let mut row = vec![0.0; space.len()];
        let value_at = |point_idx| {
            points.read_row(point_idx, &mut row);
            match self.bounds() {
                Some((low, high)) => {
                    if self != Self::Styblinski {
                        for (value, optimum) in row.iter_mut().zip(&optimum) {
                            *value -= low + (high - low) * optimum;
                        }
                    }
                    self.continuous(&row)
                }
                None => {
                    for (value, param) in row.iter_mut().zip(&space.params) {
                        *value = unit(&param.domain, *value);
                    }
                    self.mixed(&row, &optimum)
                }
            }
        };
        (0..points.len()).map(value_at).collect()
    }

    /// Value of a continuous function at a distance `z` from its optimum (at the place itself for Styblinski).
    fn continuous(self, z: &[f64]) -> f64 {
        let ripple = |z: &f64| libm::cos(2.0 * PI * z);
        let n_dimensions = z.len() as f64;
        match self {
            Self::Rosenbrock => z
                .windows(2)
                .map(|pair| (pair[0] + 1.0, pair[1] + 1.0))
                .map(|(y, next)| 100.0 * squared(next - y * y) + squared(1.0 - y))
                .sum(),
            Self::Rastrigin => 10.0 * n_dimensions + z.iter().map(|z| z * z - 10.0 * ripple(z)).sum::<f64>(),
            Self::Ackley => {
                let mean_square = z.iter().map(|z| z * z).sum::<f64>() / n_dimensions;
                let mean_ripple = z.iter().map(ripple).sum::<f64>() / n_dimensions;
                -20.0 * libm::exp(-0.2 * mean_square.sqrt()) - libm::exp(mean_ripple) + 20.0 + E
            }
            Self::Styblinski => {
                let term = |x: &f64| squared(x * x) - 16.0 * x * x + 5.0 * x;
                0.5 * z.iter().map(term).sum::<f64>() + STYBLINSKI_DEPTH * n_dimensions
            }
            _ => z.iter().map(|z| z * z).sum(),
        }
    }

    /// Value of a mixed function at numbers in unit coordinates and choices as indices.
    fn mixed(self, units: &[f64], optimum: &[f64]) -> f64 {
        let distance = |idx: usize| units[idx] - optimum[idx];
        match self {
            Self::Mixed8 => {
                let bowl: f64 = (0..6).map(|idx| squared(distance(idx))).sum();
                20.0 * bowl
                    + [1.0, 0.3, 0.0, 0.6, 2.0][units[6] as usize]
                    + [0.5, 0.0, 1.0][units[7] as usize]
            }
            Self::Mixed20 => {
                // The best option of each choice is the second; another one moves the optimum of a float.
                let wrong = |choice_idx: usize| f64::from(u8::from(units[14 + choice_idx] != 1.0));
                let ripple = |idx: usize| {
                    let direction = if optimum[idx] > 0.5 { -1.0 } else { 1.0 };
                    let z = (distance(idx) - 0.15 * wrong(idx) * direction) * 10.0;
                    z * z - 3.0 * libm::cos(2.0 * PI * z) + 3.0
                };
                (0..6).map(ripple).sum::<f64>()
                    + 20.0 * (6..14).map(|idx| squared(distance(idx))).sum::<f64>()
                    + (0..6).map(|idx| wrong(idx) * (1.0 + 0.5 * idx as f64)).sum::<f64>()
            }
            _ => {
                let weight = |idx: usize| match idx {
                    _ if idx % 18 == 3 => 2.0,
                    _ if idx.is_multiple_of(6) => 1.0,
                    _ => 0.02,
                };
                let bowl: f64 = (0..130).map(|idx| weight(idx) * 10.0 * squared(distance(idx))).sum();
                let product = |a: usize, b: usize| distance(a) * distance(b);
                let interaction =
                    (product(0, 6) - product(12, 18)).abs() + product(60, 66).abs() + product(90, 96).abs();
                let price = |idx: usize| if idx < 6 { [1.0, 0.5, 0.25][idx % 3] } else { 0.1 };
                let is_wrong = |idx: &usize| units[130 + idx] != ((idx * 2 + 1) % (2 + idx % 7)) as f64;
                let choices: f64 = (0..12).filter(is_wrong).map(price).sum();
                bowl + 8.0 * interaction + choices
            }
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn squared(number: f64) -> f64 {
    number * number
}

/// Where the optimum lies in a dimension, as a share of its range.
fn optimum_unit(dimension_idx: usize) -> f64 {
    0.2 + 0.6 * (((dimension_idx + 1) as f64 * GOLDEN) % 1.0)
}

/// A number as a share of its range, from its lowest to its highest value; an option as it is.
fn unit(domain: &Domain, value: f64) -> f64 {
    let share = |low: f64, high: f64, log: bool| {
        if log {
            let log_low = libm::log(low);
            (libm::log(value) - log_low) / (libm::log(high) - log_low)
        } else {
            (value - low) / (high - low)
        }
    };
    match domain {
        Domain::Float { low, high, log, .. } => share(*low, *high, *log),
        Domain::Int { low, high, log, .. } => share(*low as f64, *high as f64, *log),
        Domain::Choice { .. } | Domain::Bool => value,
    }
}

fn repeat(prefix: &str, n_params: usize, domain: impl Fn(usize) -> Domain) -> Vec<Param> {
    let param = |idx| {
        let domain = domain(idx);
        let default = domain.from_unit(0.5);
        Param::new(format!("{prefix}{idx}"), domain, default)
    };
    (0..n_params).map(param).collect()
}

fn float(low: f64, high: f64) -> Domain {
    Domain::Float { low, high, step: None, log: false }
}

fn log_float(low: f64, high: f64) -> Domain {
    Domain::Float { low, high, step: None, log: true }
}

fn choice(n_options: usize) -> Domain {
    Domain::Choice { options: (0..n_options).map(|idx| Choice::Number(idx as f64)).collect() }
}
