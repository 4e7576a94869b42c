//! The tree-structured Parzen estimator: models where good trials lie and where the others do, one parameter at a time, and draws
//! where the ratio of the two is high.
//!
//! The densities of a parameter are made once per batch on at most 256 cells, and the winner among candidates is drawn from its
//! law rather than by drawing candidates, so that a value costs nanoseconds. History enters through sums per cell that are kept up
//! to date, so that asking costs the same after a thousand trials and after a million. [`TpeMultivariate`] models parameters
//! jointly; that learns more per trial and costs far more, and it suits small batches.
//!
//! A conditional parameter is modelled from the trials where it was active. Invalid trials are never good ones.

mod best;
mod density;
mod dimension;
mod joint;
mod law;
mod multivariate;
mod normal;
mod recency;

pub use multivariate::TpeMultivariate;

use rayon::prelude::*;

use best::BestTrials;
use dimension::{Dimension, StudyState};
use law::Candidates;
use recency::Recency;

use crate::point::Points;
use crate::sampler::{Sampler, SamplerKnob, SamplerSettings, Sobol};
use crate::score::Scores;
use crate::space::Space;

/// Trials that fill the space evenly before anything is modelled.
const N_STARTUP: u64 = 10;

/// The most good trials when few points are proposed at a time.
const MAX_GOOD_SEQUENTIAL: usize = 25;

/// The most good trials in batches: more points per density need more to tell apart.
const MAX_GOOD_BATCHED: usize = 64;

/// Up to this many trials every observation has a kernel of its own; beyond, all kernels have the least width.
const MAX_PLACES: u64 = 3000;

/// Tree-structured Parzen estimator with independent parameters.
#[derive(Clone, Debug)]
pub struct Tpe {
    space: Space,
    seed: u64,
    startup: Sobol,
    candidates: Candidates,
    n_objectives: usize,
    n_asked: u64,
    n_told: u64,
    best: BestTrials,
    dimensions: Vec<Dimension>,
    is_stale: bool,
    greed: TpeKnobs,
}

/// How the line between good trials and others is drawn, and how much is left to chance.
#[derive(Clone, Copy, Debug)]
struct TpeKnobs {
    /// Multiplies the number of good trials.
    gamma: f64,
    /// How many observations the wide prior is worth.
    prior_weight: f64,
}

impl Default for TpeKnobs {
    fn default() -> Self {
        Self { gamma: 1.0, prior_weight: 1.0 }
    }
}

impl TpeKnobs {
    fn knobs(&self) -> Vec<SamplerKnob> {
        vec![
            SamplerKnob { name: "gamma", value: self.gamma, low: 0.25, high: 8.0 },
            SamplerKnob { name: "prior_weight", value: self.prior_weight, low: 0.25, high: 64.0 },
        ]
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        if !self.knobs().iter().any(|known| known.name == knob && known.admits(value)) {
            return false;
        }
        match knob {
            "gamma" => self.gamma = value,
            _ => self.prior_weight = value,
        }
        true
    }

    /// The number of good trials where it would be `n` by default.
    fn scaled(&self, n: usize) -> usize {
        if self.gamma == 1.0 { n } else { ((n as f64 * self.gamma).ceil() as usize).max(1) }
    }
}

impl Tpe {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        let candidates = Candidates::of_batch(settings.batch);
        let free = space.params.iter().enumerate().filter(|(_, param)| param.fixed.is_none());
        Self {
            space: space.clone(),
            seed: settings.seed,
            startup: Sobol::new(space, settings.seed),
            candidates,
            n_objectives: settings.n_objectives,
            n_asked: 0,
            n_told: 0,
            best: BestTrials::new(MAX_GOOD_BATCHED),
            dimensions: free.map(|(param_idx, param)| Dimension::new(param_idx, &param.domain)).collect(),
            is_stale: true,
            greed: TpeKnobs::default(),
        }
    }

    /// Makes the laws anew if something was told, and draws one column per free parameter.
    fn draw(&mut self, n: usize) -> Vec<Vec<f64>> {
        let n_good = n_good(self.n_told, self.candidates, self.n_objectives);
        let good = self.best.first(self.greed.scaled(n_good));
        let weights: Option<Vec<f64>> = (self.is_stale && self.n_told <= MAX_PLACES)
            .then(|| Recency::new(self.n_told, good).weights(0..self.n_told).collect());
        let standing = StudyState {
            seed: self.seed,
            n_told: self.n_told,
            candidates: self.candidates,
            good,
            prior_weight: self.greed.prior_weight,
            weights: weights.as_deref(),
        };
        let (is_stale, first) = (self.is_stale, self.n_asked);
        let draw = |dimension: &mut Dimension| {
            if is_stale {
                dimension.learn(&standing);
            }
            dimension.draw(standing.seed, first, n)
        };
        // A dimension is tens of microseconds of work.
        let columns = self.dimensions.par_iter_mut().with_min_len(4).map(draw).collect();
        self.is_stale = false;
        columns
    }
}

impl Sampler for Tpe {
    fn name(&self) -> &'static str {
        "tpe"
    }

    fn ask(&mut self, n: usize) -> Points {
        if self.n_told < N_STARTUP || self.best.is_empty() {
            self.n_asked += n as u64;
            return self.startup.ask(n);
        }
        let mut drawn = self.draw(n).into_iter();
        self.n_asked += n as u64;
        let column = |fixed: Option<f64>| match fixed {
            Some(value) => vec![value; n],
            None => drawn.next().unwrap_or_default(),
        };
        let columns = self.space.params.iter().map(|param| param.fixed).map(column).collect();
        let mut points = Points::from_columns(n, columns);
        self.space.deactivate(&mut points);
        points
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        if points.is_empty() {
            return;
        }
        let first = self.n_told;
        self.n_told += points.len() as u64;
        self.best.offer(first, points, scores);
        let keep_places = self.n_told <= MAX_PLACES;
        self.dimensions.par_iter_mut().with_min_len(4).for_each(|dimension| {
            dimension.observe(first, points.column(dimension.param_idx()), keep_places);
        });
        self.is_stale = true;
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn knobs(&self) -> Vec<SamplerKnob> {
        self.greed.knobs()
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        let is_turned = self.greed.turn(knob, value);
        self.is_stale |= is_turned;
        is_turned
    }
}

/// How many of the best trials are good ones: a tenth of few, a number that grows with the root in batches. Several objectives
/// have a whole front of good ones, which takes more.
fn n_good(n_told: u64, candidates: Candidates, n_objectives: usize) -> usize {
    let tenth = (n_told as f64 / 10.0).ceil() as usize;
    match candidates {
        _ if n_objectives > 1 => tenth.min(MAX_GOOD_BATCHED),
        Candidates::Many => tenth.min(MAX_GOOD_SEQUENTIAL),
        Candidates::Few | Candidates::Spread => {
            ((1.25 * (n_told as f64).sqrt()).ceil() as usize).min(MAX_GOOD_BATCHED)
        }
    }
}
