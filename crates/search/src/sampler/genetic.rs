//! A genetic algorithm whose parents are the best points of the whole study.
//!
//! Every child is evaluated once and competes for a place among the elites; there are no generations, so that nothing waits for a
//! slow trial and a batch may have any size. With 10^5 trials and more this beats density models by orders of magnitude.

use crate::point::Points;
use crate::rng::to_unit;
use crate::sampler::archive::fresh::Fresh;
use crate::sampler::archive::gene::{Gene, Streams, normal, points_from_genes, reflect};
use crate::sampler::archive::{Archive, Pool};
use crate::sampler::{Sampler, SamplerSettings, Sobol};
use crate::score::Scores;
use crate::space::Space;

/// The fewest and the most elites.
const N_ELITES: (usize, usize) = (16, 64);

/// Share of children that have two parents.
const CROSSOVER_SHARE: f64 = 0.9;

/// A blended gene lies between its parents or up to this share of their distance beyond.
const OVERSHOOT: f64 = 0.3;

/// Decimal logarithm of the shortest and the longest step of a mutation, as a share of the range.
const LOG_STEP: (f64, f64) = (-5.0, -0.5);

/// Share of mutations that draw a number anew, so that elites can leave a basin.
const JUMP_SHARE: f64 = 0.1;

/// Purposes of a gene's random numbers.
const CROSSING: u64 = 0;
const MUTATION: u64 = 1;
const STEP: u64 = 2;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x4765_6e65_7469_6373;

/// Breeds points from the elites of the study.
///
/// One parent wins a tournament of two, the other is any elite. Nine children of ten blend each gene with probability one half
/// (a category is swapped); genes mutate with probability `2/d` by a step of any size up to a third of the range, or anywhere at times.
/// Steps are reflected at the bounds. Until enough valid points were told, points come from a scrambled Sobol sequence.
#[derive(Clone, Debug)]
pub struct Genetic {
    space: Space,
    streams: Streams,
    start: Sobol,
    /// How many valid points make a start.
    n_start: u64,
    archive: Archive,
    /// Keeps points from being asked twice; none if somebody else sees to that.
    fresh: Option<Fresh>,
    n_asked: u64,
}

/// How a child is made; the parents are places in the archive.
#[derive(Clone, Copy, Debug)]
struct Recipe {
    first: u16,
    second: u16,
    is_crossed: bool,
    /// A gene that mutates for certain, if there is such a gene.
    sure_gene: u32,
}

impl Genetic {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        Self { fresh: Fresh::new(space, settings.seed), ..Self::member(space, settings) }
    }

    /// A sampler that may ask for a point twice.
    pub(super) fn member(space: &Space, settings: &SamplerSettings) -> Self {
        Self {
            space: space.clone(),
            streams: Streams::new(settings.seed, SEED_TWIST),
            start: Sobol::new(space, settings.seed),
            n_start: n_start(settings),
            archive: Archive::new(space, n_elites(settings)),
            fresh: None,
            n_asked: 0,
        }
    }

    /// The next points, which may repeat others.
    fn propose(&mut self, n: usize) -> Points {
        let first_trial = self.n_asked;
        self.n_asked += n as u64;
        if self.archive.n_valid() < self.n_start {
            return self.start.ask(n);
        }
        let genes = self.archive.genes();
        let recipes: Vec<Recipe> = (0..n as u64).map(|idx| self.recipe(first_trial + idx)).collect();
        points_from_genes(&self.space, genes, n, |gene_idx, column| {
            let pool = self.archive.pool(gene_idx);
            let mutation_share = (2.0 / genes.len() as f64).clamp(0.01, 1.0);
            let gene = &genes[gene_idx];
            let breeder = Breeder { gene_idx, gene, pool: &pool, mutation_share, streams: &self.streams };
            breeder.breed(first_trial, &recipes, column);
        })
    }

    fn recipe(&self, trial: u64) -> Recipe {
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
        let sure_gene = if is_crossed || n_genes == 0 { u32::MAX } else { place(4, n_genes) as u32 };
        Recipe { first: first as u16, second: second as u16, is_crossed, sure_gene }
    }
}

/// How many points breed. Few elites converge fast, many explore: a short study, or one of few rounds, has no time for many.
pub(super) fn n_elites(settings: &SamplerSettings) -> usize {
    let Some(n_trials) = settings.n_trials else { return N_ELITES.1 };
    let n_rounds = n_trials as f64 / settings.batch.max(1) as f64;
    let wanted = ((n_trials as f64).sqrt() * 0.65).min(8.0 + n_rounds);
    (wanted as usize).clamp(N_ELITES.0, N_ELITES.1)
}

/// How many valid points must be told before elites breed: one batch, but no fewer than chance needs to say anything.
pub(super) fn n_start(settings: &SamplerSettings) -> u64 {
    settings.batch.clamp(N_ELITES.0, N_ELITES.1) as u64
}

impl Sampler for Genetic {
    fn name(&self) -> &'static str {
        "ga"
    }

    fn ask(&mut self, n: usize) -> Points {
        let mut points = self.propose(n);
        if let Some(fresh) = &mut self.fresh {
            fresh.refresh(&mut points);
        }
        points
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.archive.extend(points, scores);
        if let Some(fresh) = &mut self.fresh {
            fresh.extend(points);
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// Makes one gene of all children.
struct Breeder<'a> {
    gene_idx: usize,
    gene: &'a Gene,
    pool: &'a Pool,
    mutation_share: f64,
    streams: &'a Streams,
}

/// A gene of two parents.
struct Crossed {
    /// If it is not blended.
    value: f64,
    is_blended: bool,
    /// If it is blended; may lie outside the unit interval.
    place: f64,
}

impl Breeder<'_> {
    /// Fills a column with the genes of all children.
    fn breed(&self, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        if self.gene.is_category || self.pool.values.iter().any(|value| value.is_nan()) {
            self.breed_each(first_trial, recipes, column, |recipe, bits| self.swapped(recipe, bits));
        } else {
            self.breed_each(first_trial, recipes, column, |recipe, bits| self.blended(recipe, bits));
        }
    }

    /// Crosses and mutates. `cross` is given random bits of which it may use the upper 53 and the lowest; those between tell
    /// almost all genes that they do not mutate, which saves a second draw.
    ///
    /// Every other gene is blended, which no processor can predict: the first loop has no branches and only notes where there is
    /// more to do.
    fn breed_each(
        &self,
        first_trial: u64,
        recipes: &[Recipe],
        column: &mut [f64],
        cross: impl Fn(&Recipe, u64) -> Crossed,
    ) {
        let [crossings, mutations] = [CROSSING, MUTATION].map(|p| self.streams.gene(self.gene.param_idx, p));
        let n_suspects = (self.mutation_share * 1024.0).ceil();
        let confirmed_share = self.mutation_share * 1024.0 / n_suspects;
        let threshold = n_suspects as u64;
        let mut places = vec![0.0; column.len()];
        let mut blended = vec![0_u32; column.len()];
        let mut suspects = vec![0_u32; column.len()];
        let (mut n_blended, mut n_suspects) = (0, 0);
        for (child_idx, ((recipe, slot), place)) in
            recipes.iter().zip(&mut *column).zip(&mut places).enumerate()
        {
            let bits = crossings.bits(first_trial + child_idx as u64);
            let crossed = cross(recipe, bits);
            (*slot, *place) = (crossed.value, crossed.place);
            blended[n_blended] = child_idx as u32;
            n_blended += usize::from(crossed.is_blended);
            let is_suspect = (bits >> 1 & 1023) < threshold;
            let is_sure = recipe.sure_gene == self.gene_idx as u32;
            suspects[n_suspects] = child_idx as u32;
            n_suspects += usize::from(is_suspect | is_sure | crossed.value.is_nan());
        }
        for &child_idx in &blended[..n_blended] {
            column[child_idx as usize] = self.gene.value(reflect(places[child_idx as usize]));
        }
        for &child_idx in &suspects[..n_suspects] {
            let (slot, trial) = (&mut column[child_idx as usize], first_trial + u64::from(child_idx));
            let is_sure = recipes[child_idx as usize].sure_gene == self.gene_idx as u32;
            if is_sure || slot.is_nan() || mutations.unit(trial) < confirmed_share {
                *slot = self.mutated(*slot, trial);
            }
        }
    }

    /// The gene of the first parent, or the place of a blend with that of the second.
    fn blended(&self, recipe: &Recipe, bits: u64) -> Crossed {
        let weight = to_unit(bits) * (1.0 + 2.0 * OVERSHOOT) - OVERSHOOT;
        let [from, to] = [recipe.first, recipe.second].map(|place| self.pool.units[usize::from(place)]);
        let is_blended = recipe.is_crossed & (bits & 1 == 1);
        let value = self.pool.values[usize::from(recipe.first)];
        Crossed { value, is_blended, place: from + weight * (to - from) }
    }

    /// The same for a gene that has no middle, which is swapped, or that a parent lacks, which then comes from the other.
    fn swapped(&self, recipe: &Recipe, bits: u64) -> Crossed {
        let [value, other] = [recipe.first, recipe.second].map(|place| self.pool.values[usize::from(place)]);
        if !self.gene.is_category && !value.is_nan() && !other.is_nan() {
            return self.blended(recipe, bits);
        }
        let is_swapped = recipe.is_crossed & (bits & 1 == 1) & !other.is_nan();
        let value = if is_swapped || value.is_nan() { other } else { value };
        Crossed { value, is_blended: false, place: f64::NAN }
    }

    /// A gene after mutation; drawn uniformly if no parent has a value.
    fn mutated(&self, value: f64, trial: u64) -> f64 {
        let draw = |purpose: u64| self.streams.gene(self.gene.param_idx, purpose).unit(trial);
        if self.gene.is_category {
            return self.gene.other_option(value, draw(STEP));
        }
        let is_jump = draw(STEP + 3) < JUMP_SHARE;
        if value.is_nan() || is_jump {
            return self.gene.value(draw(STEP));
        }
        let length = libm::exp10(LOG_STEP.0 + (LOG_STEP.1 - LOG_STEP.0) * draw(STEP));
        let step = length * normal(draw(STEP + 1), draw(STEP + 2));
        self.gene.nudged(self.gene.unit(value), value, step)
    }
}
