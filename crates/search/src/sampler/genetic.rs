//! A genetic algorithm whose parents are the best points of the whole study. With 10^5 trials and more this beats density models by
//! orders of magnitude.

use std::ops::Range;

use crate::rng::{Stream, to_unit};
use crate::sampler::archive::Archive;
use crate::sampler::archive::gene::{Streams, normal, reflect};
use crate::sampler::evolution::{Evolution, Operator, Parents};

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

/// Breeds points from the elites of the study.
///
/// One parent wins a tournament of two, the other is any elite. Nine children of ten blend each gene with probability one half
/// (a category is swapped); genes mutate with probability `2/d` by a step of any size up to a third of the range, or anywhere at times.
/// Steps are reflected at the bounds.
pub type Genetic = Evolution<Breeding>;

/// Crossing and mutation.
#[derive(Clone, Copy, Debug)]
pub struct Breeding;

/// How a child is made; the parents are places in the archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    first: u16,
    second: u16,
    is_crossed: bool,
    /// A gene that mutates for certain, if there is such a gene.
    sure_gene: u32,
}

impl Operator for Breeding {
    const NAME: &'static str = "ga";
    const SEED_TWIST: u64 = 0x4765_6e65_7469_6373;

    type Recipe = Recipe;

    fn recipes(archive: &Archive, streams: &Streams, trials: Range<u64>) -> Vec<Recipe> {
        let n_elites = archive.elites().len();
        let n_genes = archive.genes().len();
        let streams: [Stream; 5] = std::array::from_fn(|purpose| streams.point(purpose as u64));
        let recipe = |trial: u64| {
            let place = |purpose: usize, n_places: usize| {
                ((streams[purpose].unit(trial) * n_places as f64) as usize).min(n_places - 1)
            };
            // Elites are ordered, so that the earlier of two places wins the tournament.
            let first = place(0, n_elites).min(place(1, n_elites));
            let second = if n_elites < 2 { first } else { (first + 1 + place(2, n_elites - 1)) % n_elites };
            let is_crossed = streams[3].unit(trial) < CROSSOVER_SHARE;
            // A child of one parent is a copy unless something mutates.
            let sure_gene = if is_crossed || n_genes == 0 { u32::MAX } else { place(4, n_genes) as u32 };
            Recipe { first: first as u16, second: second as u16, is_crossed, sure_gene }
        };
        trials.map(recipe).collect()
    }

    fn breed(parents: &Parents<'_>, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        if parents.is_special() {
            parents.breed_each(first_trial, recipes, column, |recipe, bits| parents.swapped(recipe, bits));
        } else {
            parents.breed_each(first_trial, recipes, column, |recipe, bits| parents.blended(recipe, bits));
        }
    }
}

/// A gene of two parents.
struct Crossed {
    /// If it is not blended.
    value: f64,
    is_blended: bool,
    /// If it is blended; may lie outside the unit interval.
    place: f64,
}

impl Parents<'_> {
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
        let steps = [0, 1, 2, 3].map(|idx| self.streams.gene(self.gene.param_idx, STEP + idx));
        let mutation_share = (2.0 / self.n_genes as f64).clamp(0.01, 1.0);
        let n_suspects = (mutation_share * 1024.0).ceil();
        let confirmed_share = mutation_share * 1024.0 / n_suspects;
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
                *slot = self.mutated(*slot, steps.map(|stream| stream.unit(trial)));
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

    /// A gene after mutation, by numbers in `0..1`; drawn uniformly if no parent has a value.
    fn mutated(&self, value: f64, draws: [f64; 4]) -> f64 {
        if self.gene.is_category {
            return self.gene.other_option(value, draws[0]);
        }
        let is_jump = draws[3] < JUMP_SHARE;
        if value.is_nan() || is_jump {
            return self.gene.value(draws[0]);
        }
        let length = libm::exp10(LOG_STEP.0 + (LOG_STEP.1 - LOG_STEP.0) * draws[0]);
        let step = length * normal(draws[1], draws[2]);
        self.gene.nudged(self.gene.unit(value), value, step)
    }
}
