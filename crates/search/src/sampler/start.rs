//! Where samplers that learn begin: points that fill the space, and reach for its ends while hardly any trial is valid.

use crate::point::Points;
use crate::sampler::{Sampler, Sobol};
use crate::score::Scores;
use crate::space::Space;

/// Before so many trials were told nothing is known of how many are valid.
const N_FIRST: u64 = 16;

/// Hardly any trial is valid where fewer than one in so many is.
const RARE: u64 = 64;

/// A scrambled Sobol sequence that reaches for the ends of the ranges while hardly any trial is valid.
///
/// What a study requires, such as a number of trades, is mostly met where conditions are loosest: at the ends of several ranges at once,
/// where even points hardly ever are.
#[derive(Clone, Debug)]
pub(super) struct Start {
    sobol: Sobol,
    n_told: u64,
    n_valid: u64,
}

impl Start {
    pub(super) fn new(space: &Space, seed: u64) -> Self {
        Self { sobol: Sobol::new(space, seed), n_told: 0, n_valid: 0 }
    }

    pub(super) fn ask(&mut self, n: usize) -> Points {
        let is_rare = self.n_told >= N_FIRST && self.n_valid * RARE < self.n_told;
        if is_rare { self.sobol.reach(n) } else { self.sobol.ask(n) }
    }

    /// Counts what is valid: what has a score.
    pub(super) fn tell(&mut self, scores: &Scores) {
        self.n_told += scores.len() as u64;
        self.n_valid += scores.column(0).iter().filter(|score| !score.is_nan()).count() as u64;
    }
}
