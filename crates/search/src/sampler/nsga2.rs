//! NSGA-II: a genetic algorithm for several objectives at once.
//!
//! It spreads its population along the front of trials that no other one beats in everything. With a single objective it is a
//! plain genetic algorithm.

use crate::pareto;
use crate::point::Points;
use crate::rng::to_unit;
use crate::sampler::archive::gene::{Gene, Streams, points_from_genes};
use crate::sampler::start::Start;
use crate::sampler::{Sampler, SamplerSettings};
use crate::score::Scores;
use crate::space::Space;

/// Share of children that have two parents.
const CROSSOVER_SHARE: f64 = 0.9;

/// The larger, the closer a crossed gene stays to its parents.
const CROSSOVER_FOCUS: f64 = 15.0;

/// The larger, the shorter the steps of mutation.
const MUTATION_FOCUS: f64 = 20.0;

/// Share of mutations that draw a gene anew, so that a population can leave a basin.
const JUMP_SHARE: f64 = 0.2;

/// At most so many told points are ranked together with the population, which bounds the time a long tell takes.
const MAX_RANKED: usize = 4096;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x4e6f_6e64_6f6d_696e;

/// Breeds from the best fronts, and from the lonelier trials within a front.
///
/// The population is as large as a batch, from 32 to 512. Every told point competes with it at once: first by front, then by
/// distance to the neighbours. Parents win tournaments of two; children are made by simulated binary crossover and polynomial
/// mutation with probability `1/d`, every fifth of which draws the gene anew; categories are swapped or drawn anew. Until enough
/// valid points were told, points come from a scrambled Sobol sequence.
#[derive(Clone, Debug)]
pub struct Nsga2 {
    space: Space,
    streams: Streams,
    start: Start,
    genes: Vec<Gene>,
    n_members: usize,
    /// Best first.
    population: Vec<Member>,
    n_valid: u64,
    n_asked: u64,
}

/// A distinct point with its scores.
#[derive(Clone, Debug)]
struct Member {
    /// One per gene.
    values: Vec<f64>,
    /// One per objective.
    scores: Vec<f64>,
}

/// How a child is made; the parents are places in the population.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    first: usize,
    second: usize,
    is_crossed: bool,
    /// A gene that mutates for certain, if there is such a gene.
    sure_gene: usize,
}

impl Nsga2 {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            start: Start::new(space, settings.seed),
            genes: Gene::of_space(space),
            n_members: settings.batch.clamp(32, 512),
            population: Vec::new(),
            n_valid: 0,
            n_asked: 0,
        }
    }

    fn recipe(&self, trial: u64) -> Recipe {
        let place = |purpose: u64, n_places: usize| {
            ((self.streams.point(purpose).unit(trial) * n_places as f64) as usize).min(n_places - 1)
        };
        // Members are ordered, so that the earlier of two places wins a tournament.
        let n = self.population.len();
        let first = place(0, n).min(place(1, n));
        let second = place(2, n).min(place(3, n));
        let is_crossed = first != second && self.streams.point(4).unit(trial) < CROSSOVER_SHARE;
        let n_genes = self.genes.len();
        let sure_gene = if is_crossed || n_genes == 0 { usize::MAX } else { place(5, n_genes) };
        Recipe { first, second, is_crossed, sure_gene }
    }

    /// Keeps the best of the population and some told points.
    fn select(&mut self, newcomers: Vec<Member>) {
        let mut members = std::mem::take(&mut self.population);
        members.extend(newcomers);
        // Of equal points the first stays: a population of copies breeds nothing new.
        let mut order: Vec<usize> = (0..members.len()).collect();
        let bits = |idx: usize| members[idx].values.iter().map(|value| value.to_bits());
        order.sort_by(|&a, &b| bits(a).cmp(bits(b)).then(a.cmp(&b)));
        order.dedup_by(|b, a| bits(*a).eq(bits(*b)));
        order.sort_unstable();
        let n_objectives = order.first().map_or(1, |&idx| members[idx].scores.len());
        let column = |objective_idx| order.iter().map(|&idx| members[idx].scores[objective_idx]).collect();
        let scores = Scores::from_columns(order.len(), (0..n_objectives).map(column).collect());
        let ranked = pareto::ranking(&scores);
        self.population =
            ranked.into_iter().take(self.n_members).map(|place| members[order[place]].clone()).collect();
    }

    /// Makes one gene of all children.
    fn breed(&self, gene_idx: usize, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        let gene = &self.genes[gene_idx];
        let values: Vec<f64> = self.population.iter().map(|member| member.values[gene_idx]).collect();
        let units: Vec<f64> = values.iter().map(|value| gene.unit(*value)).collect();
        let [crossings, mutations, steps, jumps] =
            [0, 1, 2, 3].map(|purpose| self.streams.gene(gene.param_idx, purpose));
        let mutation_share = 1.0 / self.genes.len() as f64;
        for ((trial, recipe), slot) in (first_trial..).zip(recipes).zip(column) {
            let (mut value, other) = (values[recipe.first], values[recipe.second]);
            let bits = crossings.bits(trial);
            if value.is_nan() {
                value = other;
            } else if recipe.is_crossed && bits & 1 == 1 && !other.is_nan() && other != value {
                value = if gene.is_category {
                    other
                } else {
                    let [from, to] = [recipe.first, recipe.second].map(|place| units[place]);
                    gene.value(crossed(from, to, to_unit(bits)))
                };
            }
            let is_mutated = recipe.sure_gene == gene_idx || mutations.unit(trial) < mutation_share;
            *slot = match (is_mutated || value.is_nan(), gene.is_category) {
                (false, _) => value,
                (true, true) => gene.other_option(value, steps.unit(trial)),
                (true, false) if value.is_nan() || jumps.unit(trial) < JUMP_SHARE => {
                    gene.value(steps.unit(trial))
                }
                (true, false) => {
                    let unit = gene.unit(value);
                    gene.nudged(unit, value, mutated(unit, steps.unit(trial)) - unit)
                }
            };
        }
    }
}

/// Simulated binary crossover: as far from the parents as one-point crossover of binary numbers would come, on either side.
fn crossed(from: f64, to: f64, unit: f64) -> f64 {
    // One half of the interval decides for the side of the other parent.
    let (side, unit) = if unit < 0.5 { (1.0, 2.0 * unit) } else { (-1.0, 2.0 * unit - 1.0) };
    let ratio = if unit <= 0.5 { 2.0 * unit } else { 1.0 / (2.0 - 2.0 * unit) };
    let spread = side * libm::pow(ratio, 1.0 / (CROSSOVER_FOCUS + 1.0));
    (0.5 * ((1.0 + spread) * from + (1.0 - spread) * to)).clamp(0.0, 1.0)
}

/// Polynomial mutation, whose reach on each side is the distance to that bound.
fn mutated(unit: f64, draw: f64) -> f64 {
    let power = 1.0 / (MUTATION_FOCUS + 1.0);
    let share = |reach: f64| libm::pow(1.0 - reach, MUTATION_FOCUS + 1.0);
    if draw < 0.5 {
        unit + libm::pow(2.0 * draw + (1.0 - 2.0 * draw) * share(unit), power) - 1.0
    } else {
        unit + 1.0 - libm::pow(2.0 * (1.0 - draw) + (2.0 * draw - 1.0) * share(1.0 - unit), power)
    }
    .clamp(0.0, 1.0)
}

impl Sampler for Nsga2 {
    fn name(&self) -> &'static str {
        "nsga2"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        if self.n_valid < self.n_members as u64 {
            return self.start.ask(n);
        }
        let recipes: Vec<Recipe> = (0..n as u64).map(|idx| self.recipe(first_trial + idx)).collect();
        points_from_genes(&self.space, &self.genes, n, |gene_idx, column| {
            self.breed(gene_idx, first_trial, &recipes, column);
        })
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.start.tell(scores);
        let valid: Vec<usize> = (0..points.len()).filter(|&idx| !scores.column(0)[idx].is_nan()).collect();
        self.n_valid += valid.len() as u64;
        for chunk in valid.chunks(MAX_RANKED) {
            let member = |&point_idx: &usize| Member {
                values: self.genes.iter().map(|gene| points.value(point_idx, gene.param_idx)).collect(),
                scores: (0..scores.n_objectives()).map(|idx| scores.column(idx)[point_idx]).collect(),
            };
            let newcomers = chunk.iter().map(member).collect();
            self.select(newcomers);
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossing_keeps_the_middle_and_stays_near_the_parents() {
        let mut sum = 0.0;
        let mut n_near = 0;
        for idx in 0..10_000 {
            let child = crossed(0.4, 0.6, (f64::from(idx) + 0.5) / 10_000.0);
            sum += child;
            n_near += usize::from((child - 0.4).abs() < 0.02 || (child - 0.6).abs() < 0.02);
        }
        assert!((sum / 10_000.0 - 0.5).abs() < 1e-3, "{}", sum / 10_000.0);
        assert!(n_near > 8_000, "{n_near}");
    }

    #[test]
    fn mutation_reaches_the_bounds_and_not_beyond() {
        for unit in [0.0, 0.3, 1.0] {
            let ends = [mutated(unit, 0.0), mutated(unit, 1.0)];
            assert!(ends[0].abs() < 1e-12 && (ends[1] - 1.0).abs() < 1e-12, "{unit}: {ends:?}");
            assert!((mutated(unit, 0.5) - unit).abs() < 1e-12);
        }
    }
}
