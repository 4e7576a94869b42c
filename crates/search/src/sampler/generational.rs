//! The genetic algorithm of the seller-exhaustion system, generation by generation.
//!
//! A preset for those who know that system: populations of 1 to 512, tournaments of three, arithmetic crossover of values,
//! Gaussian mutation, elites, and random immigrants when the population stagnates. `ga` learns faster.
//!
//! What that system does strictly in turn is defined here for any batches: a phase ends when as many points were told as it needs,
//! whoever proposed them, and asking beyond the end of a phase gives more children of the same parents. With batches that end
//! where phases end, and no batch asked ahead, it is the original to the letter. Two faults are left out: a fitness of exactly zero
//! counts as evaluated, and immigrants do arrive.

use crate::domain::Domain;
use crate::point::Points;
use crate::sampler::archive::gene::{Gene, Streams, normal, points_from_genes};
use crate::sampler::{Sampler, SamplerSettings};
use crate::score::Scores;
use crate::space::Space;

/// Chance of a child to go through mutation, and of each of its genes to change then.
const MUTATION_PROBABILITY: f64 = 0.9;
const GENE_RATE: f64 = 0.3;

/// Standard deviation of a mutation as a share of the range.
const SIGMA: f64 = 0.1;

/// Share of the population that survives unchanged, at least one.
const ELITE_SHARE: f64 = 0.1;

/// How many compete to become a parent.
const TOURNAMENT: usize = 3;

/// Share of the population that immigrants replace.
const IMMIGRANT_SHARE: f64 = 0.15;

/// Immigrants come if the best fitness of so many generations varied by less than this, or diversity is below that.
const STAGNATION: (usize, f64) = (5, 0.01);
const LEAST_DIVERSITY: f64 = 0.3;

/// Purposes of random numbers: of a gene, then of a child or a pair.
const RANDOM: u64 = 0;
const CROSSING: u64 = 1;
const MUTATION: u64 = 2;
const STEP: u64 = 3;
const ALPHA: u64 = 0;
const MUTANT: u64 = 1;
const TOURNAMENTS: u64 = 2;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x4578_6861_7573_7465;

/// A generational genetic algorithm with the operators of the seller-exhaustion system.
///
/// The population is as large as a batch, from 1 to 512; each generation evaluates all but its elites. Values are crossed and
/// mutated as they are (as logarithms where the domain says so) and rounded to the nearest value of the domain, choices come from
/// either parent. A single individual is replaced by its child if the child is better.
#[derive(Clone, Debug)]
pub struct Generational {
    space: Space,
    streams: Streams,
    genes: Vec<Attribute>,
    /// The same genes as the other samplers see them.
    plain: Vec<Gene>,
    n_members: usize,
    /// Evaluated individuals.
    population: Vec<Individual>,
    /// Told since the phase began.
    incoming: Vec<Individual>,
    phase: Phase,
    /// Best fitness of the latest generations.
    history: Vec<f64>,
    /// Number of points asked, in total and when the phase began.
    n_asked: u64,
    phase_start: u64,
}

/// The kind of the next points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first population: random individuals.
    First,
    /// So many random individuals that join the population, and then children.
    Immigrants(usize),
    /// Children.
    Offspring,
}

#[derive(Clone, Debug)]
struct Individual {
    /// One value per gene, NaN where inactive.
    values: Vec<f64>,
    /// Minus infinity if invalid.
    fitness: f64,
}

/// A free parameter with its range in the units in which it is crossed.
#[derive(Clone, Debug)]
struct Attribute {
    low: f64,
    high: f64,
    is_log: bool,
    is_category: bool,
    domain: Domain,
}

impl Attribute {
    fn new(domain: &Domain) -> Self {
        let (low, high, is_log) = match domain {
            Domain::Float { low, high, log, .. } => (*low, *high, *log),
            Domain::Int { low, high, log, .. } => (*low as f64, *high as f64, *log),
            Domain::Choice { .. } | Domain::Bool => (0.0, 0.0, false),
        };
        let is_category = matches!(domain, Domain::Choice { .. } | Domain::Bool);
        Self { low, high, is_log, is_category, domain: domain.clone() }
    }

    /// The nearest value of the domain; integers half way between go to the even one.
    fn nearest(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        match &self.domain {
            Domain::Float { step: None, .. } | Domain::Choice { .. } | Domain::Bool => value,
            Domain::Int { low, high, step, .. } => {
                let (low, step) = (*low as f64, *step as f64);
                let level = ((value - low) / step).round_ties_even();
                let last = ((*high as f64 - low) / step).floor();
                // With a step of one, half way is judged by the number itself, as a person would round it.
                if step == 1.0 { value.round_ties_even() } else { low + level.min(last) * step }
            }
            Domain::Float { .. } => self.domain.from_unit(self.domain.to_unit(value)),
        }
    }

    /// `alpha` parts of one value and the rest of the other.
    fn crossed(&self, alpha: f64, a: f64, b: f64) -> f64 {
        let mixed = if self.is_log {
            libm::exp(alpha * libm::log(a) + (1.0 - alpha) * libm::log(b))
        } else {
            alpha * a + (1.0 - alpha) * b
        };
        self.nearest(mixed)
    }

    /// A value moved by so many standard deviations of mutation.
    fn moved(&self, value: f64, deviations: f64) -> f64 {
        let moved = if self.is_log {
            let range = libm::log(self.high) - libm::log(self.low);
            libm::exp(libm::log(value) + deviations * SIGMA * range)
        } else {
            value + deviations * SIGMA * (self.high - self.low)
        };
        self.nearest(moved)
    }
}

impl Generational {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        let plain = Gene::of_space(space);
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            genes: plain.iter().map(|gene| Attribute::new(&space.params[gene.param_idx].domain)).collect(),
            plain,
            n_members: settings.batch.clamp(1, 512),
            population: Vec::new(),
            incoming: Vec::new(),
            phase: Phase::First,
            history: Vec::new(),
            n_asked: 0,
            phase_start: 0,
        }
    }

    fn n_elites(&self) -> usize {
        ((self.n_members as f64 * ELITE_SHARE) as usize).max(1)
    }

    /// How many points this phase evaluates.
    fn quota(&self) -> usize {
        match self.phase {
            Phase::First => self.n_members,
            Phase::Immigrants(n_immigrants) => n_immigrants,
            // A population of one is its own elite, and tries one child all the same.
            Phase::Offspring => self.n_members.saturating_sub(self.n_elites()).max(1),
        }
    }

    /// The winner of a tournament among the population, drawn without replacement.
    fn parent(&self, number: u64) -> usize {
        let n = self.population.len();
        let mut drawn: [usize; TOURNAMENT] = [usize::MAX; TOURNAMENT];
        let n_drawn = TOURNAMENT.min(n);
        for round in 0..n_drawn {
            let unit = self.streams.point(TOURNAMENTS + round as u64).unit(number);
            let mut place = ((unit * (n - round) as f64) as usize).min(n - round - 1);
            // Count only those not drawn before.
            let mut before = drawn;
            before[..round].sort_unstable();
            for taken in &before[..round] {
                place += usize::from(place >= *taken);
            }
            drawn[round] = place;
        }
        let better = |a: usize, b: usize| {
            let (fa, fb) = (self.population[a].fitness, self.population[b].fitness);
            if fb > fa { b } else { a }
        };
        drawn[..n_drawn].iter().copied().reduce(better).unwrap_or(0)
    }

    /// Makes one gene of all points asked.
    fn fill(&self, gene_idx: usize, first_trial: u64, parents: &[[usize; 2]], column: &mut [f64]) {
        let (gene, plain) = (&self.genes[gene_idx], &self.plain[gene_idx]);
        let stream = |purpose: u64| self.streams.gene(plain.param_idx, purpose);
        let values: Vec<f64> = self.population.iter().map(|individual| individual.values[gene_idx]).collect();
        for ((trial, [first, second]), slot) in (first_trial..).zip(parents).zip(column) {
            if *first == usize::MAX {
                *slot = plain.value(stream(RANDOM).unit(trial));
                continue;
            }
            // Two children of a pair share its number, and mirror each other.
            let child = trial - self.phase_start;
            let pair = self.phase_start + child / 2 * 2;
            let alpha = 0.3 + 0.4 * self.streams.point(ALPHA).unit(pair);
            let alpha = if child.is_multiple_of(2) { alpha } else { 1.0 - alpha };
            let (a, b) = (values[*first], values[*second]);
            let value = match (a.is_nan(), b.is_nan()) {
                (false, false) if gene.is_category => {
                    if stream(CROSSING).unit(trial) < alpha {
                        a
                    } else {
                        b
                    }
                }
                (false, false) => gene.crossed(alpha, a, b),
                (false, true) => a,
                (true, false) => b,
                (true, true) => plain.value(stream(RANDOM).unit(trial)),
            };
            let is_mutated = self.streams.point(MUTANT).unit(trial) < MUTATION_PROBABILITY
                && stream(MUTATION).unit(trial) < GENE_RATE;
            *slot = match (is_mutated, gene.is_category) {
                (false, _) => value,
                (true, true) => plain.value(stream(STEP).unit(trial)),
                (true, false) => {
                    gene.moved(value, normal(stream(STEP).unit(trial), stream(STEP + 1).unit(trial)))
                }
            };
        }
    }

    /// Ends the phase: the told points join, and what comes next is decided.
    fn turn(&mut self) {
        let incoming = std::mem::take(&mut self.incoming);
        let phase = self.phase;
        match phase {
            Phase::First => self.population = incoming,
            Phase::Immigrants(_) => self.population.extend(incoming),
            Phase::Offspring => {
                self.sort();
                self.population.truncate(self.n_elites());
                self.population.extend(incoming);
            }
        }
        if self.population.len() > self.n_members {
            self.sort();
            self.population.truncate(self.n_members);
        }
        self.phase = Phase::Offspring;
        self.phase_start = self.n_asked;
        // Immigrants were only just let in; their generation is not judged again.
        if !matches!(phase, Phase::Immigrants(_)) {
            let best =
                self.population.iter().map(|individual| individual.fitness).fold(f64::NEG_INFINITY, f64::max);
            self.history.push(best);
            let n_immigrants = (self.n_members as f64 * IMMIGRANT_SHARE) as usize;
            if n_immigrants > 0 && (self.is_stagnant() || self.diversity() < LEAST_DIVERSITY) {
                self.sort();
                self.population.truncate(self.n_members - n_immigrants);
                self.phase = Phase::Immigrants(n_immigrants);
            }
        }
    }

    /// Best first; of equals the earlier.
    fn sort(&mut self) {
        self.population.sort_by(|a, b| b.fitness.total_cmp(&a.fitness));
    }

    fn is_stagnant(&mut self) -> bool {
        let (n_generations, least) = STAGNATION;
        let surplus = self.history.len().saturating_sub(n_generations);
        self.history.drain(..surplus);
        let (low, high) =
            self.history.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (v.min(l), v.max(h)));
        // A history of invalid generations has no difference, and stagnates too.
        self.history.len() == n_generations && (low == high || high - low < least)
    }

    /// Mean distance of two individuals over the numeric genes, as that system measures it: a range below one is not stretched.
    fn diversity(&self) -> f64 {
        let numeric: Vec<usize> = (0..self.genes.len()).filter(|&idx| !self.genes[idx].is_category).collect();
        let n = self.population.len();
        if n < 2 || numeric.is_empty() {
            return 1.0;
        }
        let place = |individual: &Individual, gene_idx: usize| {
            let gene = &self.genes[gene_idx];
            let place = (individual.values[gene_idx] - gene.low) / (gene.high - gene.low).max(1.0);
            // An inactive parameter is nowhere; it makes no difference.
            if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
        };
        let places: Vec<Vec<f64>> = self
            .population
            .iter()
            .map(|individual| numeric.iter().map(|&idx| place(individual, idx)).collect())
            .collect();
        let mut sum = 0.0;
        for (idx, a) in places.iter().enumerate() {
            for b in &places[..idx] {
                sum += a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
            }
        }
        let n_pairs = (n * (n - 1) / 2) as f64;
        (sum / n_pairs / (numeric.len() as f64).sqrt()).min(1.0)
    }
}

impl Sampler for Generational {
    fn name(&self) -> &'static str {
        "ga-seller"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        let is_random = |trial: u64| match self.phase {
            Phase::First => true,
            Phase::Immigrants(n_immigrants) => trial - self.phase_start < n_immigrants as u64,
            Phase::Offspring => false,
        };
        // Parents are drawn one after the other and paired in that order.
        let parents: Vec<[usize; 2]> = (first_trial..self.n_asked)
            .map(|trial| {
                let child = trial - self.phase_start;
                let pair = self.phase_start + child / 2 * 2;
                if is_random(trial) {
                    return [usize::MAX; 2];
                }
                let [first, second] = [pair, pair + 1].map(|number| self.parent(number));
                [first, second]
            })
            .collect();
        points_from_genes(&self.space, &self.plain, n, |gene_idx, column| {
            self.fill(gene_idx, first_trial, &parents, column);
        })
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        for point_idx in 0..points.len() {
            let values = self.plain.iter().map(|gene| points.value(point_idx, gene.param_idx)).collect();
            let fitness = scores.first(point_idx).value().unwrap_or(f64::NEG_INFINITY);
            self.incoming.push(Individual { values, fitness });
            if self.incoming.len() >= self.quota() {
                self.turn();
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests;
