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

use best::{BestTrial, BestTrials};
use dimension::{Dimension, StudyState};
use law::Candidates;
use recency::Recency;

use crate::point::Points;
use crate::sampler::start::Start;
use crate::sampler::{Sampler, SamplerKnob, SamplerSettings};
use crate::score::Scores;
use crate::space::{Space, min_columns};

/// Trials that fill the space evenly before anything is modelled.
const N_STARTUP: u64 = 10;

/// The most good trials when few points are proposed at a time.
const MAX_GOOD_SEQUENTIAL: usize = 25;

/// The most good trials in batches: more points per density need more to tell apart.
const MAX_GOOD_BATCHED: usize = 64;

/// Up to this many trials every observation has a kernel of its own; beyond, all kernels have the least width.
const MAX_PLACES: u64 = 3000;

/// In a portfolio, smaller batches are often not asked between two that are told.
const MIN_EAGER_BATCH: usize = 8;

/// Tree-structured Parzen estimator with independent parameters.
#[derive(Clone, Debug)]
pub struct Tpe {
    space: Space,
    seed: u64,
    startup: Start,
    candidates: Candidates,
    /// Points that are proposed at a time.
    batch: usize,
    n_objectives: usize,
    n_asked: u64,
    n_told: u64,
    best: BestTrials,
    /// The numbers of the trials that were good when laws were made last.
    good: Vec<u64>,
    dimensions: Vec<Dimension>,
    is_stale: bool,
    /// Whether laws are made when trials are told, rather than when points are asked.
    is_eager: bool,
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
            startup: Start::new(space, settings.seed),
            candidates,
            batch: settings.batch,
            n_objectives: settings.n_objectives,
            n_asked: 0,
            n_told: 0,
            best: BestTrials::new(MAX_GOOD_BATCHED),
            good: Vec::new(),
            dimensions: free.map(|(param_idx, param)| Dimension::new(param_idx, &param.domain)).collect(),
            is_stale: true,
            is_eager: settings.batch >= MIN_EAGER_BATCH,
            greed: TpeKnobs::default(),
        }
    }

    /// Takes in what was told, if there is something new, and makes the laws anew: in one go, so that threads are sent out once.
    fn learn(&mut self, news: Option<(u64, &Points)>) {
        let makes_laws = self.is_modelled() && (self.is_eager || news.is_none());
        let n_good = n_good(self.n_told, self.candidates, self.n_objectives);
        let good = self.best.first(self.greed.scaled(n_good));
        let keep_places = self.n_told <= MAX_PLACES;
        let weights: Option<Vec<f64>> = (makes_laws && keep_places)
            .then(|| Recency::new(self.n_told, good).weights(0..self.n_told).collect());
        let (entered, left) = if makes_laws { renew(&mut self.good, good) } else { Default::default() };
        let standing = StudyState {
            seed: self.seed,
            n_told: self.n_told,
            candidates: self.candidates,
            n_draws: self.batch,
            entered: &entered,
            left: &left,
            prior_weight: self.greed.prior_weight,
            weights: weights.as_deref(),
        };
        // A dimension is tens of microseconds of work.
        self.dimensions.par_iter_mut().with_min_len(2).for_each(|dimension| {
            if let Some((first, points)) = news {
                dimension.observe(first, points.column(dimension.param_idx()), keep_places);
            }
            if makes_laws {
                dimension.learn(&standing);
            }
        });
        self.is_stale = !makes_laws;
    }

    /// Whether there is something to make densities of.
    fn is_modelled(&self) -> bool {
        self.n_told >= N_STARTUP && !self.best.is_empty()
    }

    /// One column per free parameter.
    fn draw(&mut self, n: usize) -> Vec<Vec<f64>> {
        if self.is_stale {
            self.learn(None);
        }
        let (seed, first) = (self.seed, self.n_asked);
        let drawn = self.dimensions.par_iter().with_min_len(min_columns(n));
        drawn.map(|dimension| dimension.draw(seed, first, n)).collect()
    }
}

impl Sampler for Tpe {
    fn name(&self) -> &'static str {
        "tpe"
    }

    fn ask(&mut self, n: usize) -> Points {
        if !self.is_modelled() {
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
        self.startup.tell(scores);
        let first = self.n_told;
        self.n_told += points.len() as u64;
        self.best.offer(first, points, scores);
        self.learn(Some((first, points)));
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

/// Renews the numbers of the good trials; says which of them are new, and the numbers of those that were and are no more.
fn renew<'a>(numbers: &mut Vec<u64>, good: &'a [BestTrial]) -> (Vec<&'a BestTrial>, Vec<u64>) {
    let before = std::mem::replace(numbers, good.iter().map(|trial| trial.number).collect());
    let entered = good.iter().filter(|trial| !before.contains(&trial.number)).collect();
    let left = before.into_iter().filter(|number| !numbers.contains(number)).collect();
    (entered, left)
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
