//! CMA-ES: a normal law over the numeric parameters that learns where, how far and in which directions to step.
//!
//! On smooth problems with up to about a hundred numbers nothing here learns faster per trial, as long as batches stay in the
//! hundreds; a batch is its population. It follows one basin, and starts again elsewhere with a larger population when that is
//! exhausted.

mod covariance;
mod model;

use rayon::prelude::*;

use crate::point::Points;
use crate::sampler::archive::gene::{Gene, Streams, normal, points_from_genes, reflect};
use crate::sampler::fingerprint::Pending;
use crate::sampler::{Sampler, SamplerSettings};
use crate::score::Scores;
use crate::space::Space;
use model::Model;

/// Step size at a start, as a share of the range.
const FIRST_SIGMA: f64 = 0.3;

/// How fast the frequencies of categories follow the better half of a generation.
const FREQUENCY_RATE: f64 = 0.2;

/// Share of the draws of a category that remains uniform.
const FREQUENCY_FLOOR: f64 = 0.05;

/// A countable parameter is varied by at least this share of its step, so that about a tenth of the draws change it.
const LEAST_STEP: f64 = 0.3;

/// A start may grow the population up to this many times.
const MAX_GROWTH: usize = 64;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x436f_7661_7269_616e;

/// Covariance matrix adaptation with restarts.
///
/// It is made for numeric parameters. Integers and steps are rounded, with a least variation so that they stay alive; choices and
/// switches are drawn by smoothed frequencies among the better half, independently, so that any space can be searched. Above 100
/// numeric parameters only variances are learned, no correlations. Steps are reflected at the bounds.
///
/// A generation is one batch, or the usual `4 + 3 ln d` points if that is more, and may be told in pieces of any size. A point
/// proposed by somebody else takes part if it is better than all others since the last start, and is where a start begins that has
/// not learned from a generation yet.
#[derive(Clone, Debug)]
pub struct CmaEs {
    space: Space,
    streams: Streams,
    genes: Vec<Gene>,
    /// Places of the numeric genes; the model's variables, in this order.
    numeric: Vec<usize>,
    /// Frequencies of the options, by gene; empty for a numeric one.
    frequencies: Vec<Vec<f64>>,
    model: Model,
    n_points: usize,
    first_n_points: usize,
    n_starts: u64,
    /// Which start proposed a point that was not told yet.
    pending: Pending<u64>,
    generation: Vec<GenerationPoint>,
    /// The best score told since the last start.
    best_told: f64,
    progress: Progress,
    n_asked: u64,
}

/// A point of the current generation.
#[derive(Clone, Debug)]
struct GenerationPoint {
    /// NaN if invalid.
    score: f64,
    /// As by `Gene::unit`.
    units: Vec<f64>,
}

/// The progress of one start.
#[derive(Clone, Debug, Default)]
struct Progress {
    best: Option<f64>,
    n_generations: usize,
    improved_at: usize,
    /// The best score of the latest generations.
    recent: Vec<f64>,
}

impl CmaEs {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        let genes = Gene::of_space(space);
        let numeric: Vec<usize> = (0..genes.len()).filter(|&idx| !genes[idx].is_category).collect();
        let usual = 4 + (3.0 * libm::log(numeric.len().max(1) as f64)) as usize;
        let n_points = settings.batch.max(usual);
        let mut sampler = Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            frequencies: Vec::new(),
            model: Model::new(vec![0.5; numeric.len()], FIRST_SIGMA, n_points),
            genes,
            numeric,
            n_points,
            first_n_points: n_points,
            n_starts: 0,
            pending: Pending::default(),
            generation: Vec::with_capacity(n_points),
            best_told: f64::NEG_INFINITY,
            progress: Progress::default(),
            n_asked: 0,
        };
        sampler.reset_frequencies();
        sampler
    }

    fn reset_frequencies(&mut self) {
        let uniform = |gene: &Gene| {
            let n_options = if gene.is_category { gene.n_options() } else { 0 };
            vec![1.0 / n_options.max(1) as f64; n_options]
        };
        self.frequencies = self.genes.iter().map(uniform).collect();
    }

    /// Begins again at a random place with generations of `n_points`.
    fn start(&mut self, n_points: usize) {
        self.n_starts += 1;
        let mean_of = |&gene_idx: &usize| {
            let stream = self.streams.gene(self.genes[gene_idx].param_idx, 3);
            0.1 + 0.8 * stream.unit(self.n_starts)
        };
        let mean = self.numeric.iter().map(mean_of).collect();
        self.n_points = n_points;
        self.model = Model::new(mean, FIRST_SIGMA, n_points);
        self.progress = Progress::default();
        self.best_told = f64::NEG_INFINITY;
        self.reset_frequencies();
    }

    /// Moves a law that has learned nothing yet to a point known to be good.
    fn begin_at(&mut self, units: &[f64]) {
        for (mean, &gene_idx) in self.model.mean.iter_mut().zip(&self.numeric) {
            if !units[gene_idx].is_nan() {
                *mean = units[gene_idx];
            }
        }
    }

    /// The numeric variables of `n` points, row by row.
    fn draw_rows(&self, first_trial: u64, n: usize) -> Vec<f64> {
        let n_variables = self.numeric.len();
        let mut rows = vec![0.0; n * n_variables];
        let streams: Vec<_> = self
            .numeric
            .iter()
            .map(|&gene_idx| [0, 1].map(|purpose| self.streams.gene(self.genes[gene_idx].param_idx, purpose)))
            .collect();
        let extra: Vec<f64> = (0..n_variables)
            .map(|idx| {
                let least = LEAST_STEP * self.genes[self.numeric[idx]].resolution();
                let deviation = self.model.deviation(idx);
                (least * least - deviation * deviation).max(0.0).sqrt()
            })
            .collect();
        rows.par_chunks_mut(n_variables.max(1)).enumerate().for_each(|(idx, row)| {
            let trial = first_trial + idx as u64;
            for (number, [a, b]) in row.iter_mut().zip(&streams) {
                *number = normal(a.unit(trial), b.unit(trial));
            }
            self.model.place(row);
            for ((number, extra), &gene_idx) in row.iter_mut().zip(&extra).zip(&self.numeric) {
                if *extra > 0.0 {
                    let [a, b] = [4, 5].map(|p| self.streams.gene(self.genes[gene_idx].param_idx, p));
                    *number += extra * normal(a.unit(trial), b.unit(trial));
                }
                *number = reflect(*number);
            }
        });
        rows
    }

    /// The model learns from a complete generation, and starts again if that leads nowhere.
    fn learn(&mut self) {
        let mut generation = std::mem::take(&mut self.generation);
        generation.retain(|told| !told.score.is_nan());
        // The order of equals is that of the tells.
        generation.sort_by(|a, b| b.score.total_cmp(&a.score));
        let Some(best) = generation.first().map(|told| told.score) else {
            // Nothing valid: look elsewhere.
            self.start(self.n_points);
            return;
        };
        let ranked: Vec<Vec<f64>> = generation
            .iter()
            .map(|told| self.numeric.iter().map(|&gene_idx| told.units[gene_idx]).collect())
            .collect();
        self.model.update(&ranked);
        self.learn_frequencies(&generation);
        let n_variables = self.numeric.len() as f64;
        let n_points = self.n_points as f64;
        let worst = generation.last().map_or(best, |told| told.score);
        let window = 10 + (30.0 * n_variables / n_points) as usize;
        let patience = 100 + (100.0 * n_variables * n_variables.sqrt() / n_points) as usize;
        self.progress.note(best, window);
        let is_flat = self.progress.is_flat(window, worst);
        if is_flat || self.progress.is_stagnant(patience) || self.model.is_degenerate() {
            let n_points = (self.n_points * 2).min(self.first_n_points * MAX_GROWTH);
            self.start(n_points);
        }
    }

    fn learn_frequencies(&mut self, ranked: &[GenerationPoint]) {
        let n_parents = self.model.n_parents().min(ranked.len());
        for (gene_idx, frequencies) in self.frequencies.iter_mut().enumerate() {
            let mut counts = vec![0.0; frequencies.len()];
            for (rank, told) in ranked[..n_parents].iter().enumerate() {
                // NaN becomes 0 as an index; an inactive parameter is not counted.
                let option = told.units[gene_idx];
                if let Some(count) = counts.get_mut(option as usize)
                    && !option.is_nan()
                {
                    *count += self.model.weight(rank);
                }
            }
            let total: f64 = counts.iter().sum();
            if total > 0.0 {
                for (frequency, count) in frequencies.iter_mut().zip(&counts) {
                    *frequency += FREQUENCY_RATE * (count / total - *frequency);
                }
            }
        }
    }
}

/// An option drawn by its frequency, from a number in `0..1`.
fn draw_option(frequencies: &[f64], unit: f64) -> f64 {
    let n_options = frequencies.len();
    let mut left = unit;
    for (option, frequency) in frequencies.iter().enumerate() {
        left -= FREQUENCY_FLOOR / n_options as f64 + (1.0 - FREQUENCY_FLOOR) * frequency;
        if left < 0.0 {
            return option as f64;
        }
    }
    n_options.saturating_sub(1) as f64
}

impl Progress {
    fn note(&mut self, best: f64, window: usize) {
        self.n_generations += 1;
        self.recent.push(best);
        if self.recent.len() > window {
            self.recent.remove(0);
        }
        if self.best.is_none_or(|so_far| best > so_far) {
            self.best = Some(best);
            self.improved_at = self.n_generations;
        }
    }

    /// Whether the best of all recent generations, and the worst of this one, are the same number.
    fn is_flat(&self, window: usize, worst: f64) -> bool {
        let (low, high) = self.recent.iter().fold((worst, worst), |(l, h), v| (v.min(l), v.max(h)));
        self.recent.len() >= window && high - low <= 1e-13 * high.abs()
    }

    fn is_stagnant(&self, patience: usize) -> bool {
        self.n_generations > self.improved_at + patience
    }
}

impl Sampler for CmaEs {
    fn name(&self) -> &'static str {
        "cmaes"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        let rows = self.draw_rows(first_trial, n);
        let n_variables = self.numeric.len();
        let points = points_from_genes(&self.space, &self.genes, n, |gene_idx, column| {
            let gene = &self.genes[gene_idx];
            if gene.is_category {
                let stream = self.streams.gene(gene.param_idx, 0);
                for (trial, slot) in (first_trial..).zip(column) {
                    *slot = draw_option(&self.frequencies[gene_idx], stream.unit(trial));
                }
            } else {
                let variable = self.numeric.partition_point(|&other| other < gene_idx);
                for (slot, row) in column.iter_mut().zip(rows.chunks(n_variables)) {
                    *slot = gene.value(row[variable]);
                }
            }
        });
        self.pending.push(&points, std::iter::repeat(self.n_starts));
        points
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        for (point_idx, proposed_by) in self.pending.pop(points).into_iter().enumerate() {
            let score = scores.column(0)[point_idx];
            let is_welcome = match proposed_by {
                // What an earlier start proposed would pull this one back to where that got stuck.
                Some(start) => start == self.n_starts,
                None => score > self.best_told,
            };
            if !is_welcome {
                continue;
            }
            let unit = |gene: &Gene| gene.unit(points.value(point_idx, gene.param_idx));
            let units: Vec<f64> = self.genes.iter().map(unit).collect();
            if proposed_by.is_none() && self.progress.n_generations == 0 {
                self.begin_at(&units);
            }
            self.best_told = self.best_told.max(score);
            self.generation.push(GenerationPoint { score, units });
            if self.generation.len() >= self.n_points {
                self.learn();
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn retract(&mut self, points: &Points) {
        self.pending.pop(points);
    }
}
