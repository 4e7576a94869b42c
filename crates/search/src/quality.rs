//! How well samplers search: test functions, runs of a sampler on them, and tables beside recorded results of others.
//!
//! A [`QualityRun`] is one function minimised by one sampler within one [`Budget`]. [`Suite`]s are the fixed sets of runs by which
//! samplers here are judged; [`Comparison`] holds the medians of a suite and prints as a table.

mod comparison;
mod function;
mod recorded;

pub use comparison::{Comparison, Row, Suite};
pub use function::Function;
pub use recorded::{Recorded, recorded};

use std::collections::VecDeque;

use rayon::prelude::*;

use crate::sampler::{Sampler, SamplerError, SamplerKind, SamplerSettings};
use crate::score::{Score, Scores};
use crate::space::Space;

/// How many points are evaluated, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget {
    /// Points in total.
    pub n_trials: u64,
    /// Points asked at a time.
    pub batch: usize,
}

/// One function, minimised within a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityRun {
    /// The function to minimise.
    pub function: Function,
    /// Its number of dimensions.
    pub n_dimensions: usize,
    /// Trials and batch.
    pub budget: Budget,
    /// How many batches are asked ahead of the tells: batch `b` is asked after batches `0 … b-1-lag` were told.
    pub lag: usize,
}

impl QualityRun {
    /// The least value that a sampler of this kind finds; infinite if it finds nothing.
    pub fn best(&self, kind: SamplerKind, seed: u64) -> Result<f64, SamplerError> {
        self.best_with(seed, |space, settings| kind.build(space, settings))
    }

    /// The least value that a sampler finds which `build` makes for the space and the budget.
    pub fn best_with(
        &self,
        seed: u64,
        build: impl Fn(&Space, &SamplerSettings) -> Result<Box<dyn Sampler>, SamplerError>,
    ) -> Result<f64, SamplerError> {
        let Budget { n_trials, batch } = self.budget;
        let batch = batch.max(1);
        let space = self.function.space(self.n_dimensions);
        let settings = SamplerSettings { seed, n_trials: Some(n_trials), batch, n_objectives: 1 };
        let mut sampler = build(&space, &settings)?;
        let mut in_flight = VecDeque::new();
        let mut best = f64::INFINITY;
        let mut n_asked = 0;
        while n_asked < n_trials {
            let points = sampler.ask(batch.min((n_trials - n_asked) as usize));
            if points.is_empty() {
                break;
            }
            n_asked += points.len() as u64;
            let values = self.function.evaluate(&points);
            best = values.iter().copied().fold(best, f64::min);
            in_flight.push_back((to_scores(&values), points));
            if in_flight.len() > self.lag
                && let Some((scores, points)) = in_flight.pop_front()
            {
                sampler.tell(&points, &scores);
            }
        }
        Ok(best)
    }

    /// The median over seeds of what a sampler finds. Seeds run in parallel.
    pub fn median(
        &self,
        kind: SamplerKind,
        seeds: impl IntoParallelIterator<Item = u64>,
    ) -> Result<f64, SamplerError> {
        let values: Result<Vec<f64>, _> = seeds.into_par_iter().map(|seed| self.best(kind, seed)).collect();
        Ok(median(values?))
    }
}

/// Scores of values to minimise: larger is better.
pub fn to_scores(values: &[f64]) -> Scores {
    Scores::single(&values.iter().map(|value| Score::new(-value)).collect::<Vec<_>>())
}

/// The middle value, the mean of the two middle ones if there is an even number of them; NaN if there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => f64::NAN,
        (len, middle) if len % 2 == 1 => values[middle],
        (_, middle) => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
