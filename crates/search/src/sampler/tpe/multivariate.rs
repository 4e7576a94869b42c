//! The tree-structured Parzen estimator with joint densities.

use std::collections::VecDeque;

use rayon::prelude::*;

use super::best::BestTrials;
use super::joint::{Axis, Joint};
use super::law::Candidates;
use super::recency::Recency;
use super::{MAX_GOOD_BATCHED, N_STARTUP, TpeKnobs, n_good};
use crate::cells::Cells;
use crate::point::Points;
use crate::rng::Stream;
use crate::sampler::start::Start;
use crate::sampler::{Sampler, SamplerKnob, SamplerSettings};
use crate::score::Scores;
use crate::space::Space;

/// Trials that the density of the others is made of: the newest, which weigh most. It bounds the cost of a long study.
const MAX_OTHERS: usize = 1000;

/// Keeps the draws apart from those of other samplers under the same seed.
const DRAW_TWIST: u64 = 0x6a6f_696e_7470_6466;

/// Tree-structured Parzen estimator with joint densities: it learns which values belong together, and suits small batches.
#[derive(Debug)]
pub struct TpeMultivariate {
    space: Space,
    seed: u64,
    startup: Start,
    candidates: Candidates,
    n_objectives: usize,
    /// The places of the free parameters in the space, and their axes.
    param_idxs: Vec<usize>,
    axes: Vec<Axis>,
    n_asked: u64,
    n_told: u64,
    best: BestTrials,
    /// The coordinates of the newest trials.
    newest: VecDeque<Vec<f64>>,
    densities: Option<Densities>,
    greed: TpeKnobs,
}

/// The densities of good trials and of the others.
struct Densities {
    good: Joint,
    others: Joint,
}

impl std::fmt::Debug for Densities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Densities").finish_non_exhaustive()
    }
}

impl TpeMultivariate {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        // Candidates come from different kernels, so that greed crowds less than with one parameter at a time.
        let candidates = match Candidates::of_batch(settings.batch) {
            Candidates::Many => Candidates::Many,
            Candidates::Few | Candidates::Spread => Candidates::Spread,
        };
        let free = || space.params.iter().enumerate().filter(|(_, param)| param.fixed.is_none());
        Self {
            space: space.clone(),
            seed: settings.seed,
            startup: Start::new(space, settings.seed),
            candidates,
            n_objectives: settings.n_objectives,
            param_idxs: free().map(|(param_idx, _)| param_idx).collect(),
            axes: free().map(|(_, param)| Axis::new(Cells::new(&param.domain))).collect(),
            n_asked: 0,
            n_told: 0,
            best: BestTrials::new(MAX_GOOD_BATCHED),
            newest: VecDeque::new(),
            densities: None,
            greed: TpeKnobs::default(),
        }
    }

    fn coordinates(&self, row: &[f64]) -> Vec<f64> {
        let coordinate = |(axis, param_idx): (&Axis, &usize)| axis.coordinate(row[*param_idx]);
        self.axes.iter().zip(&self.param_idxs).map(coordinate).collect()
    }

    fn learn(&self) -> Densities {
        let n_good = n_good(self.n_told, Candidates::Many, self.n_objectives);
        let good = self.best.first(self.greed.scaled(n_good));
        let rows: Vec<Vec<f64>> = good.iter().map(|trial| self.coordinates(&trial.row)).collect();
        let good_columns = columns(self.axes.len(), rows.iter());
        let recency = Recency::new(self.n_told, good);
        let numbers = self.n_told - self.newest.len() as u64..self.n_told;
        let weights: Vec<f64> = recency.weights(numbers).collect();
        let others = self.newest.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
        let other_columns = columns(self.axes.len(), others.map(|(row, _)| row));
        let other_weights = weights.iter().copied().filter(|weight| *weight > 0.0).collect();
        Densities {
            good: Joint::new(&self.axes, &good_columns, vec![1.0; good.len()]),
            others: Joint::new(&self.axes, &other_columns, other_weights),
        }
    }

    /// The winner among the candidates of one trial.
    fn propose(&self, densities: &Densities, trial_idx: u64) -> Vec<f64> {
        let numbers = self.candidates.numbers();
        let n_candidates = numbers[trial_idx as usize % numbers.len()] as usize;
        let stream = Stream::new(self.seed ^ DRAW_TWIST, trial_idx);
        let per_candidate = self.axes.len() as u64 + 1;
        let mut coordinates = vec![vec![0.0; self.axes.len()]; n_candidates];
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n_candidates);
        for (candidate_idx, coordinates) in (0..).zip(&mut coordinates) {
            densities.good.draw(&stream, candidate_idx * per_candidate, coordinates);
            rows.push(self.settle(coordinates));
        }
        if n_candidates == 1 {
            return rows.swap_remove(0);
        }
        let good = densities.good.log_density(&coordinates);
        let others = densities.others.log_density(&coordinates);
        let mut winner = 0;
        for candidate_idx in 1..n_candidates {
            if good[candidate_idx] - others[candidate_idx] > good[winner] - others[winner] {
                winner = candidate_idx;
            }
        }
        rows.swap_remove(winner)
    }

    /// The point at some coordinates, which become those of the values it has: on their grid, and NaN where inactive.
    fn settle(&self, coordinates: &mut [f64]) -> Vec<f64> {
        let mut seen: Vec<f64> = self.space.params.iter().map(|param| param.default).collect();
        let mut row = vec![f64::NAN; self.space.len()];
        let mut free = self.axes.iter().zip(coordinates);
        for (param_idx, param) in self.space.params.iter().enumerate() {
            let is_active = param.is_active(&seen);
            let value = match param.fixed {
                Some(value) => value,
                None => {
                    let Some((axis, coordinate)) = free.next() else { continue };
                    let value = if is_active { axis.value(*coordinate) } else { f64::NAN };
                    *coordinate = axis.coordinate(value);
                    value
                }
            };
            if is_active {
                row[param_idx] = value;
                seen[param_idx] = value;
            }
        }
        row
    }
}

impl Sampler for TpeMultivariate {
    fn name(&self) -> &'static str {
        "tpe-mv"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first = self.n_asked;
        self.n_asked += n as u64;
        if self.n_told < N_STARTUP || self.best.is_empty() {
            return self.startup.ask(n);
        }
        let densities = self.densities.take().unwrap_or_else(|| self.learn());
        let trials = (first..first + n as u64).into_par_iter();
        let rows: Vec<Vec<f64>> = trials.map(|trial_idx| self.propose(&densities, trial_idx)).collect();
        self.densities = Some(densities);
        Points::from_columns(n, columns(self.space.len(), rows.iter()))
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        if points.is_empty() {
            return;
        }
        self.startup.tell(scores);
        self.best.offer(self.n_told, points, scores);
        self.n_told += points.len() as u64;
        let mut row = vec![0.0; self.space.len()];
        for point_idx in points.len().saturating_sub(MAX_OTHERS)..points.len() {
            points.read_row(point_idx, &mut row);
            if self.newest.len() == MAX_OTHERS {
                self.newest.pop_front();
            }
            self.newest.push_back(self.coordinates(&row));
        }
        self.densities = None;
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn knobs(&self) -> Vec<SamplerKnob> {
        self.greed.knobs().into_iter().filter(|knob| knob.name == "gamma").collect()
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        let is_turned = knob == "gamma" && self.greed.turn(knob, value);
        if is_turned {
            self.densities = None;
        }
        is_turned
    }
}

/// Rows turned into columns.
fn columns<'a>(n_columns: usize, rows: impl Iterator<Item = &'a Vec<f64>> + Clone) -> Vec<Vec<f64>> {
    (0..n_columns).map(|column_idx| rows.clone().map(|row| row[column_idx]).collect()).collect()
}
