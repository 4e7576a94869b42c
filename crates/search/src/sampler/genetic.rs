//! A genetic algorithm whose parents are the best points of the whole study.
//!
//! Every child is evaluated once and competes for a place among the elites; there are no generations, so that nothing waits for a
//! slow trial and a batch may have any size. With 10^5 trials and more this beats density models by orders of magnitude.

use crate::point::Points;
use crate::sampler::archive::Archive;
use crate::sampler::archive::gene::{Gene, Streams, normal, points_from_genes, reflect};
use crate::sampler::{Sampler, SamplerSettings, Sobol};
use crate::score::Scores;
use crate::space::Space;

/// Number of elites.
pub(super) const N_ELITES: usize = 64;

/// Share of children that have two parents.
const CROSSOVER_SHARE: f64 = 0.9;

/// A blended gene lies between its parents or up to this share of their distance beyond.
const OVERSHOOT: f64 = 0.3;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x4765_6e65_7469_6373;

/// Breeds points from the elites of the study.
///
/// One parent wins a tournament of two, the other is any elite. Nine children of ten blend each gene with probability one half
/// (a category is swapped); genes mutate with probability `2/d` by a step of any size from a thousandth to a third of the range.
/// Steps are reflected at the bounds. Until enough valid points were told, points come from a scrambled Sobol sequence.
#[derive(Clone, Debug)]
pub struct Genetic {
    space: Space,
    streams: Streams,
    start: Sobol,
    /// How many valid points make a start.
    n_start: u64,
    archive: Archive,
    n_asked: u64,
}

/// Who the parents of a child are, as places in the archive.
#[derive(Clone, Copy, Debug)]
struct Parents {
    first: usize,
    second: usize,
    is_crossed: bool,
    /// A gene that mutates for certain; none if there is no such gene.
    sure_gene: usize,
}

impl Genetic {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            start: Sobol::new(space, settings.seed),
            n_start: n_start(settings),
            archive: Archive::new(space, N_ELITES),
            n_asked: 0,
        }
    }

    fn parents(&self, trial: u64) -> Parents {
        let n_elites = self.archive.elites().len();
        let n_genes = self.archive.genes().len();
        let place = |purpose: u64, n_places: usize| {
            ((self.streams.point(purpose).unit(trial) * n_places as f64) as usize).min(n_places - 1)
        };
        // Elites are ordered, so that the earlier of two places wins the tournament.
        let first = place(0, n_elites).min(place(1, n_elites));
        let second = if n_elites < 2 { first } else { (first + 1 + place(2, n_elites - 1)) % n_elites };
        let is_crossed = self.streams.point(3).unit(trial) < CROSSOVER_SHARE;
        // A child of one parent is a copy unless something mutates.
        let sure_gene = if is_crossed || n_genes == 0 { usize::MAX } else { place(4, n_genes) };
        Parents { first, second, is_crossed, sure_gene }
    }
}

/// How many valid points must be told before elites breed: one batch, but no fewer than chance needs to say anything.
pub(super) fn n_start(settings: &SamplerSettings) -> u64 {
    settings.batch.clamp(16, N_ELITES) as u64
}

impl Sampler for Genetic {
    fn name(&self) -> &'static str {
        "ga"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        if self.archive.n_valid() < self.n_start {
            return self.start.ask(n);
        }
        let genes = self.archive.genes();
        let mutation_share = (2.0 / genes.len().max(1) as f64).max(0.01);
        let parents: Vec<Parents> = (0..n as u64).map(|idx| self.parents(first_trial + idx)).collect();
        points_from_genes(&self.space, genes, n, |gene_idx, column| {
            let pool = self.archive.pool(gene_idx);
            let breeder = Breeder { gene: &genes[gene_idx], streams: &self.streams };
            let [blends, mutations] =
                [0, 1].map(|purpose| self.streams.gene(breeder.gene.param_idx, purpose));
            for ((trial, child), slot) in (first_trial..).zip(&parents).zip(column) {
                let (mut unit, mut value) = (pool.units[child.first], pool.values[child.first]);
                let mut is_moved = false;
                if child.is_crossed {
                    let bits = blends.bits(trial);
                    if bits & 1 == 1 || value.is_nan() {
                        let (other_unit, other_value) = (pool.units[child.second], pool.values[child.second]);
                        if breeder.gene.is_category || value.is_nan() || other_value.is_nan() {
                            (unit, value) = (other_unit, other_value);
                        } else {
                            let weight = crate::rng::to_unit(bits) * (1.0 + 2.0 * OVERSHOOT) - OVERSHOOT;
                            unit = reflect(unit + weight * (other_unit - unit));
                            is_moved = true;
                        }
                    }
                }
                let is_mutated = child.sure_gene == gene_idx || mutations.unit(trial) < mutation_share;
                *slot = if is_mutated || value.is_nan() {
                    breeder.mutated(unit, value, is_moved, trial)
                } else if is_moved {
                    breeder.gene.value(unit)
                } else {
                    value
                };
            }
        })
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.archive.extend(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Draws what happens rarely to a gene.
struct Breeder<'a> {
    gene: &'a Gene,
    streams: &'a Streams,
}

impl Breeder<'_> {
    /// A gene after mutation; drawn uniformly if no parent has a value.
    fn mutated(&self, unit: f64, value: f64, is_moved: bool, trial: u64) -> f64 {
        let draw = |purpose: u64| self.streams.gene(self.gene.param_idx, purpose).unit(trial);
        if self.gene.is_category {
            return self.gene.other_option(value, draw(2));
        }
        if value.is_nan() {
            return self.gene.value(draw(2));
        }
        let length = libm::exp10(-3.0 + 2.5 * draw(2));
        let step = length * normal(draw(3), draw(4));
        let value = if is_moved { self.gene.value(unit) } else { value };
        self.gene.nudged(unit, value, step)
    }
}
