//! All combinations of the parameters' values.

use crate::domain::Domain;
use crate::point::Points;
use crate::sampler::Sampler;
use crate::scale::Scale;
use crate::score::Scores;
use crate::space::{Param, Space};

/// Walks the combinations like an odometer, the last parameter fastest.
///
/// How many levels a parameter gets:
///
/// - Choices and switches always have all their values.
/// - Without a number of trials, integers and stepped floats have all their values, and continuous floats `DEFAULT_LEVELS`.
/// - With a number of trials, the numeric parameters get as many levels as fit: starting from one, each parameter in turn is
///   given one more, until none can have another. Levels are spread evenly from end to end; all values are used if they fit. A
///   numeric parameter with one level stays at its default, and none has more than `MAX_LEVELS`.
///
/// The grid can be larger than the number of trials only if choices and switches alone are.
///
/// An inactive parameter has a single level, NaN, and does not multiply the grid, so that no point comes twice.
#[derive(Clone, Debug)]
pub struct Grid {
    space: Space,
    levels: Vec<Levels>,
    /// Number of combinations if all parameters were active.
    bound: u64,
    n_asked: u64,
    state: State,
    /// Per parameter the index of its current level; `None` while inactive.
    digits: Vec<Option<u64>>,
    /// The current point, as it is handed out.
    row: Vec<f64>,
    /// The current point as conditions see it.
    seen: Vec<f64>,
}

/// The values that one parameter takes on the grid.
#[derive(Clone, Debug)]
enum Levels {
    /// Every value of a discrete domain; computed when needed, because a range may hold billions of them.
    Every { scale: Scale, n_values: u64 },
    /// Chosen values.
    Listed(Vec<f64>),
}

impl Levels {
    fn every(domain: &Domain, n_values: u64) -> Self {
        Self::Every { scale: Scale::new(domain), n_values }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Every { n_values, .. } => *n_values,
            Self::Listed(values) => values.len() as u64,
        }
    }

    fn value(&self, digit: u64) -> f64 {
        match self {
            Self::Every { scale, .. } => scale.level(digit),
            Self::Listed(values) => values[digit as usize],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Fresh,
    Running,
    Done,
}

/// Levels of a continuous parameter if the number of trials is not known.
const DEFAULT_LEVELS: usize = 10;

/// The most levels that a numeric parameter is given to use up a number of trials.
const MAX_LEVELS: u64 = 1 << 20;

impl Grid {
    /// A grid over a valid space that fits into `n_trials` points, if that is given.
    pub fn new(space: &Space, n_trials: Option<u64>) -> Self {
        let levels = match n_trials {
            None => all_levels(space),
            Some(n_trials) => fitted_levels(space, n_trials),
        };
        let bound = levels.iter().fold(1_u64, |product, levels| product.saturating_mul(levels.len()));
        let defaults: Vec<f64> = space.params.iter().map(|param| param.default).collect();
        Self {
            space: space.clone(),
            bound,
            n_asked: 0,
            state: State::Fresh,
            digits: vec![None; levels.len()],
            row: defaults.clone(),
            seen: defaults,
            levels,
        }
    }

    /// Moves to the next combination; false at the end.
    fn advance(&mut self) -> bool {
        let turned = match self.state {
            State::Done => return false,
            State::Fresh => None,
            State::Running => {
                let can_turn = |&param_idx: &usize| {
                    self.digits[param_idx].is_some_and(|digit| digit + 1 < self.levels[param_idx].len())
                };
                let Some(param_idx) = (0..self.digits.len()).rev().find(can_turn) else {
                    self.state = State::Done;
                    return false;
                };
                Some(param_idx)
            }
        };
        let first_reset = match turned {
            None => 0,
            Some(param_idx) => {
                let digit = self.digits[param_idx].map_or(0, |digit| digit + 1);
                self.set(param_idx, Some(digit));
                param_idx + 1
            }
        };
        // Later values must not shine through to the conditions that are judged now.
        for param_idx in first_reset..self.digits.len() {
            self.seen[param_idx] = self.space.params[param_idx].default;
        }
        for param_idx in first_reset..self.digits.len() {
            let is_active = self.space.params[param_idx].is_active(&self.seen);
            self.set(param_idx, is_active.then_some(0));
        }
        self.state = State::Running;
        true
    }

    fn set(&mut self, param_idx: usize, digit: Option<u64>) {
        self.digits[param_idx] = digit;
        match digit {
            Some(digit) => {
                let value = self.levels[param_idx].value(digit);
                self.row[param_idx] = value;
                self.seen[param_idx] = value;
            }
            None => {
                self.row[param_idx] = f64::NAN;
                self.seen[param_idx] = self.space.params[param_idx].default;
            }
        }
    }
}

impl Sampler for Grid {
    fn name(&self) -> &'static str {
        "grid"
    }

    fn ask(&mut self, n: usize) -> Points {
        let mut points = Points::new(self.space.len());
        while points.len() < n && self.advance() {
            points.push(&self.row);
        }
        self.n_asked += points.len() as u64;
        points
    }

    fn tell(&mut self, _points: &Points, _scores: &Scores) {}

    fn skip(&mut self, n: u64) -> bool {
        self.n_asked += (0..n).take_while(|_| self.advance()).count() as u64;
        true
    }

    fn remaining(&self) -> Option<u64> {
        Some(if self.state == State::Done { 0 } else { self.bound.saturating_sub(self.n_asked) })
    }
}

fn all_levels(space: &Space) -> Vec<Levels> {
    let levels_of = |param: &Param| match (param.fixed, param.domain.n_values()) {
        (Some(value), _) => Levels::Listed(vec![value]),
        (None, Some(n_values)) => Levels::every(&param.domain, n_values),
        (None, None) => Levels::Listed(param.domain.grid_values(DEFAULT_LEVELS)),
    };
    space.params.iter().map(levels_of).collect()
}

fn fitted_levels(space: &Space, n_trials: u64) -> Vec<Levels> {
    let is_numeric = |param: &Param| matches!(param.domain, Domain::Float { .. } | Domain::Int { .. });
    let mut counts: Vec<u64> = space
        .params
        .iter()
        .map(|param| match (param.fixed, param.domain.n_values()) {
            (None, Some(n_values)) if !is_numeric(param) => n_values,
            _ => 1,
        })
        .collect();
    let mut growing: Vec<usize> = (0..space.len())
        .filter(|&idx| space.params[idx].fixed.is_none() && is_numeric(&space.params[idx]))
        .collect();
    let mut product = counts.iter().fold(1_u128, |product, &count| product.saturating_mul(count.into()));
    while !growing.is_empty() {
        growing.retain(|&param_idx| {
            let count = counts[param_idx];
            let most = space.params[param_idx].domain.n_values().map_or(MAX_LEVELS, |n| n.min(MAX_LEVELS));
            let larger = product / u128::from(count) * u128::from(count + 1);
            let fits = count < most && larger <= u128::from(n_trials);
            if fits {
                counts[param_idx] += 1;
                product = larger;
            }
            fits
        });
    }
    let levels_of = |(param, count): (&Param, u64)| match (param.fixed, param.domain.n_values()) {
        (Some(value), _) => Levels::Listed(vec![value]),
        (None, Some(n_values)) if n_values == count => Levels::every(&param.domain, n_values),
        (None, _) if count == 1 => Levels::Listed(vec![param.default]),
        (None, _) => Levels::Listed(param.domain.grid_values(usize::try_from(count).unwrap_or(usize::MAX))),
    };
    space.params.iter().zip(counts).map(levels_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::domain::Choice;
    use crate::space::Param;

    fn rows(points: &Points) -> Vec<Vec<f64>> {
        let mut row = vec![0.0; points.n_params()];
        (0..points.len())
            .map(|idx| {
                points.read_row(idx, &mut row);
                row.clone()
            })
            .collect()
    }

    fn int(name: &str, low: i64, high: i64) -> Param {
        Param::new(name, Domain::Int { low, high, step: 1, log: false }, low as f64)
    }

    fn float(name: &str) -> Param {
        Param::new(name, Domain::Float { low: 0.0, high: 1.0, step: None, log: false }, 0.25)
    }

    #[test]
    fn the_last_parameter_turns_fastest() {
        let space = Space { params: vec![int("a", 1, 2), Param::new("b", Domain::Bool, 0.0)] };
        let mut grid = Grid::new(&space, None);
        assert_eq!(grid.remaining(), Some(4));
        assert_eq!(rows(&grid.ask(3)), [[1.0, 0.0], [1.0, 1.0], [2.0, 0.0]]);
        assert_eq!(grid.remaining(), Some(1));
        assert_eq!(rows(&grid.ask(3)), [[2.0, 1.0]]);
        assert_eq!((grid.ask(3).len(), grid.remaining()), (0, Some(0)));
    }

    #[test]
    fn an_inactive_parameter_does_not_multiply_the_grid() {
        let mut tail = int("tail", 1, 3);
        tail.when = Some(Condition::new(|row| row[0] == 1.0));
        let space = Space { params: vec![Param::new("wide", Domain::Bool, 0.0), tail, int("n", 7, 8)] };
        let all = rows(&Grid::new(&space, None).ask(100));
        assert_eq!(all.len(), 2 + 6);
        let mut keys: Vec<String> = all.iter().map(|row| format!("{row:?}")).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.len());
        assert!(all[0][1].is_nan() && all[1][1].is_nan() && all[2][1] == 1.0);
    }

    #[test]
    fn levels_are_chosen_so_that_the_grid_fits() {
        let options = ["x", "y", "z"].map(|name| Choice::Text(name.into())).to_vec();
        let choice = Param::new("c", Domain::Choice { options }, 0.0);
        let space = Space { params: vec![int("a", 1, 4), float("b"), choice] };
        let mut grid = Grid::new(&space, Some(100));
        assert_eq!(grid.remaining(), Some(96)); // 4 × 8 × 3
        let all = rows(&grid.ask(1000));
        assert_eq!(all.len(), 96);
        assert_eq!(all[95], [4.0, 1.0, 2.0]);
    }

    #[test]
    fn large_integer_ranges_are_thinned_to_fit() {
        let space = Space { params: vec![int("a", 5, 60), int("b", 50, 400)] };
        let mut grid = Grid::new(&space, Some(1000));
        let n_points = grid.remaining().unwrap();
        assert!((900..=1000).contains(&n_points), "{n_points}");
        let all = rows(&grid.ask(2000));
        assert_eq!(all.len() as u64, n_points);
        assert_eq!((all[0].clone(), all[all.len() - 1].clone()), (vec![5.0, 50.0], vec![60.0, 400.0]));
        assert_eq!(Grid::new(&space, Some(1_000_000)).remaining(), Some(56 * 351));
    }

    #[test]
    fn a_parameter_with_one_level_stays_at_its_default() {
        let space = Space { params: vec![float("a"), float("b")] };
        assert_eq!(rows(&Grid::new(&space, Some(1)).ask(9)), [[0.25, 0.25]]);
        assert_eq!(rows(&Grid::new(&space, Some(3)).ask(9)), [[0.0, 0.25], [0.5, 0.25], [1.0, 0.25]]);
    }

    #[test]
    fn a_grid_larger_than_memory_starts_at_once() {
        let space = Space { params: vec![int("a", 0, 1 << 52), int("b", 0, 1 << 52), float("c")] };
        let mut grid = Grid::new(&space, None);
        assert_eq!(rows(&grid.ask(2)), [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0 / 9.0]]);
        assert_eq!(grid.remaining(), Some(u64::MAX - 2));
        assert_eq!(Grid::new(&space, Some(u64::MAX)).ask(1000).len(), 1000);
    }

    #[test]
    fn a_grid_without_free_parameters_is_one_point() {
        let mut fixed = int("a", 1, 4);
        fixed.fixed = Some(3.0);
        assert_eq!(rows(&Grid::new(&Space { params: vec![fixed] }, None).ask(5)), [[3.0]]);
        assert_eq!(Grid::new(&Space::default(), Some(10)).ask(5).len(), 1);
    }
}
