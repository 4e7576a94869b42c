//! Independent uniform points.

use crate::point::Points;
use crate::rng::Stream;
use crate::sampler::Sampler;
use crate::score::Scores;
use crate::space::Space;

/// Draws every parameter on its own, uniformly (in the logarithm where the domain says so).
///
/// A value depends on seed, trial number and place of the parameter only. Fixing one parameter therefore leaves the values of all
/// others as they were.
#[derive(Clone, Debug)]
pub struct Random {
    space: Space,
    seed: u64,
    n_asked: u64,
}

impl Random {
    /// A sampler over a valid space.
    pub fn new(space: &Space, seed: u64) -> Self {
        Self { space: space.clone(), seed, n_asked: 0 }
    }
}

impl Sampler for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first = self.n_asked;
        self.n_asked += n as u64;
        self.space.points_from_units(n, |param_idx, _, column| {
            let stream = Stream::new(self.seed, param_idx as u64);
            for (trial_idx, value) in (first..).zip(column) {
                *value = stream.unit(trial_idx);
            }
        })
    }

    fn tell(&mut self, _points: &Points, _scores: &Scores) {}

    fn skip(&mut self, n: u64) -> bool {
        self.n_asked += n;
        true
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::space::Param;

    #[test]
    fn fixing_a_parameter_leaves_the_others_alone() {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let mut space = Space { params: ["a", "b", "c"].map(|n| Param::new(n, unit.clone(), 0.5)).to_vec() };
        let free = Random::new(&space, 9).ask(50);
        space.params[1].fixed = Some(0.25);
        let fixed = Random::new(&space, 9).ask(50);
        assert_eq!(free.column(0), fixed.column(0));
        assert_eq!(free.column(2), fixed.column(2));
        assert_ne!(free.column(0), free.column(2));
    }
}
