//! Whether a winner lies on a plateau or on a spike: results at slightly changed parameters.

use serde::Serialize;
use tidemill_search::rng::Stream;
use tidemill_search::{Param, Points, Space};

/// How far a number is moved, as a share of its range, but at least to the next value of a coarse one.
pub const RADIUS: f64 = 0.05;

/// Points around one: every searched number is moved by up to [`RADIUS`] to either side; choices and switches stay as they are.
///
/// They are the same for the same seed. Points that come out equal to the given one, as happens where all ranges are coarse, are left
/// out, so that there may be fewer.
pub fn neighbors(space: &Space, row: &[f64], n: usize, seed: u64) -> Points {
    let mut points = Points::new(row.len());
    let movable = |(param_idx, (param, value)): (usize, (&Param, &f64))| {
        if param.fixed.is_some() || value.is_nan() || !param.domain.is_ordered() {
            return None;
        }
        let coarse = param.domain.n_values().map_or(0.0, |n_values| 1.0 / n_values as f64);
        Some((Stream::new(seed, param_idx as u64), param.domain.to_unit(*value), RADIUS.max(coarse)))
    };
    let moves: Vec<Option<(Stream, f64, f64)>> =
        space.params.iter().zip(row).enumerate().map(movable).collect();
    for at in 0..n as u64 {
        let moved: Vec<f64> = space
            .params
            .iter()
            .zip(row)
            .zip(&moves)
            .map(|((param, value), moves)| {
                let Some((stream, unit, radius)) = moves else { return *value };
                let unit = unit + (2.0 * stream.unit(at) - 1.0) * radius;
                // Beyond an end it comes back from there, so that a winner at the edge has as many neighbours.
                param.domain.from_unit(if unit < 0.0 {
                    -unit
                } else if unit > 1.0 {
                    2.0 - unit
                } else {
                    unit
                })
            })
            .collect();
        let same = moved.iter().zip(row).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
        if !same {
            points.push(&moved);
        }
    }
    space.deactivate(&mut points);
    points
}

/// The results around a winner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plateau {
    /// Number of neighbours.
    pub n: usize,
    /// Those with a result.
    pub n_valid: usize,
    /// The middle of their results, those without one below all others; `None` if it has none.
    pub median: Option<f64>,
    /// The median as a share of the winner's own result; `None` without a median, or if the winner's is not above 0.
    pub kept: Option<f64>,
}

/// Compares a winner with its neighbours; `None` if it has none.
pub fn plateau(winner: f64, neighbors: &[Option<f64>]) -> Option<Plateau> {
    if neighbors.is_empty() {
        return None;
    }
    let mut sorted: Vec<f64> = neighbors.iter().map(|value| value.unwrap_or(f64::NEG_INFINITY)).collect();
    sorted.sort_by(f64::total_cmp);
    // Of two in the middle the lower one: the careful reading.
    let median = Some(sorted[(sorted.len() - 1) / 2]).filter(|value| value.is_finite());
    Some(Plateau {
        n: neighbors.len(),
        n_valid: neighbors.iter().flatten().count(),
        median,
        kept: median.filter(|_| winner > 0.0).map(|median| median / winner),
    })
}

#[cfg(test)]
mod tests {
    use tidemill_search::{Condition, Domain};

    use super::*;

    fn space() -> Space {
        let float = Domain::Float { low: 0.0, high: 10.0, step: None, log: false };
        let int = Domain::Int { low: 1, high: 3, step: 1, log: false };
        let mut hidden = Param::new("hidden", float.clone(), 5.0);
        hidden.when = Some(Condition::new(|row: &[f64]| row[1] > 2.5));
        let mut fixed = Param::new("fixed", float.clone(), 5.0);
        fixed.fixed = Some(4.0);
        Space {
            params: vec![
                Param::new("x", float, 5.0),
                Param::new("n", int, 2.0),
                Param::new("on", Domain::Bool, 1.0),
                fixed,
                hidden,
            ],
        }
    }

    #[test]
    fn neighbours_are_near_and_inside() {
        let space = space();
        let points = neighbors(&space, &[0.1, 2.0, 1.0, 4.0, f64::NAN], 200, 3);
        assert_eq!(points.len(), 200);
        let mut met = [false; 4];
        for at in 0..points.len() {
            let x = points.value(at, 0);
            assert!((0.0..=0.6).contains(&x), "{x}");
            met[points.value(at, 1) as usize] = true;
            assert_eq!((points.value(at, 2), points.value(at, 3)), (1.0, 4.0));
            assert!(points.value(at, 4).is_nan());
        }
        assert_eq!(met, [false, true, true, true]);
        let again = neighbors(&space, &[0.1, 2.0, 1.0, 4.0, f64::NAN], 200, 3);
        assert_eq!(points.column(0), again.column(0));
    }

    #[test]
    fn a_point_is_not_its_own_neighbour() {
        let space = Space { params: vec![Param::new("on", Domain::Bool, 0.0)] };
        assert!(neighbors(&space, &[1.0], 50, 1).is_empty());
    }

    #[test]
    fn a_plateau_keeps_and_a_spike_loses() {
        let flat = plateau(2.0, &[Some(1.9), Some(1.8), Some(2.0), Some(1.7)]).unwrap();
        assert_eq!((flat.median, flat.kept), (Some(1.8), Some(0.9)));
        let spike = plateau(2.0, &[Some(0.1), None, Some(-1.0), Some(2.0)]).unwrap();
        assert_eq!((spike.n_valid, spike.kept), (3, Some(-0.5)));
        assert_eq!(plateau(2.0, &[None, None, Some(1.0)]).unwrap().kept, None);
        assert_eq!(plateau(-1.0, &[Some(1.0)]).unwrap().kept, None);
        assert_eq!(plateau(1.0, &[]), None);
    }
}
