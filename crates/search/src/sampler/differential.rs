//! Differential evolution on the best points of the whole study.
//!
//! A child starts from an elite, moves towards one of the very best, and adds the difference of two others: where the elites lie
//! along a valley, so do their differences, and steps shrink as the elites draw together. It converges faster than the genetic
//! algorithm where one basin leads to the optimum, and explores less.

use std::ops::Range;

use crate::rng::Stream;
use crate::sampler::archive::Archive;
use crate::sampler::archive::gene::{Streams, reflect};
use crate::sampler::evolution::{Evolution, Operator, Parents};

/// Share of the elites that a child may move towards.
const BEST_SHARE: f64 = 0.2;

/// How likely a gene is changed, one of these per child: few genes suit separable problems, all of them rotated ones.
const CHANGE_SHARES: [f64; 4] = [0.1, 0.5, 0.9, 1.0];

/// Range of the length of a child's steps, as a share of the differences.
const STEP: (f64, f64) = (0.1, 1.0);

/// Purposes of a gene's random numbers.
const CHANGE: u64 = 0;
const DRAW: u64 = 1;

/// Moves elites towards the best and along the differences of others (the scheme known as current-to-pbest/1).
///
/// Both the length of the step and the share of changed genes are drawn anew for each child, so that nothing needs tuning.
/// Categories are inherited from the elites. Steps are reflected at the bounds.
pub type Differential = Evolution<Differences>;

/// Steps along the differences of elites.
#[derive(Clone, Copy, Debug)]
pub struct Differences;

/// What a child is made of; the elites are places in the archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    current: u16,
    best: u16,
    plus: u16,
    minus: u16,
    step: f64,
    change_share: f64,
    /// A gene that changes for certain.
    sure_gene: u32,
}

impl Operator for Differences {
    const NAME: &'static str = "de";
    const SEED_TWIST: u64 = 0x4469_6666_6572_656e;

    type Recipe = Recipe;

    fn recipes(archive: &Archive, streams: &Streams, trials: Range<u64>) -> Vec<Recipe> {
        let n_elites = archive.elites().len();
        let n_best = ((n_elites as f64 * BEST_SHARE) as usize).clamp(1, n_elites);
        let streams: [Stream; 7] = std::array::from_fn(|purpose| streams.point(purpose as u64));
        let recipe = |trial: u64| {
            let unit = |purpose: usize| streams[purpose].unit(trial);
            let place = |purpose: usize, n_places: usize| {
                ((unit(purpose) * n_places as f64) as usize).min(n_places - 1)
            };
            let current = place(0, n_elites);
            // Distinct as long as there are enough elites.
            let plus = if n_elites < 2 { current } else { (current + 1 + place(2, n_elites - 1)) % n_elites };
            let minus = if n_elites < 2 { current } else { (plus + 1 + place(3, n_elites - 1)) % n_elites };
            Recipe {
                current: current as u16,
                best: place(1, n_best) as u16,
                plus: plus as u16,
                minus: minus as u16,
                step: STEP.0 + (STEP.1 - STEP.0) * unit(4),
                change_share: CHANGE_SHARES[place(5, CHANGE_SHARES.len())],
                sure_gene: place(6, archive.genes().len().max(1)) as u32,
            }
        };
        trials.map(recipe).collect()
    }

    fn breed(parents: &Parents<'_>, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        if parents.is_special() {
            parents.mix_each(first_trial, recipes, column);
        } else {
            parents.mix_all(first_trial, recipes, column);
        }
    }
}

impl Parents<'_> {
    /// For a number that every elite has. Whether a gene changes is a coin toss that no processor can predict, so that the first
    /// loop has no branches and only notes where there is more to do.
    fn mix_all(&self, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        let changes = self.streams.gene(self.gene.param_idx, CHANGE);
        let mut places = vec![0.0; column.len()];
        let mut changed = vec![0_u32; column.len()];
        let mut n_changed = 0;
        for (child_idx, ((recipe, slot), place)) in
            recipes.iter().zip(&mut *column).zip(&mut places).enumerate()
        {
            let units = &self.pool.units;
            let from = units[usize::from(recipe.current)];
            let towards = units[usize::from(recipe.best)] - from;
            let along = units[usize::from(recipe.plus)] - units[usize::from(recipe.minus)];
            *slot = self.pool.values[usize::from(recipe.current)];
            *place = from + recipe.step * (towards + along);
            let is_chosen = changes.unit(first_trial + child_idx as u64) < recipe.change_share;
            let is_changed = is_chosen | (recipe.sure_gene == self.gene_idx as u32);
            changed[n_changed] = child_idx as u32;
            // Elites that agree have nothing to change; the value stays as it is to the last bit.
            n_changed += usize::from(is_changed & (towards + along != 0.0));
        }
        for &child_idx in &changed[..n_changed] {
            column[child_idx as usize] = self.gene.value(reflect(places[child_idx as usize]));
        }
    }

    /// For categories, and for parameters that are not active in every elite.
    fn mix_each(&self, first_trial: u64, recipes: &[Recipe], column: &mut [f64]) {
        let [changes, draws] = [CHANGE, DRAW].map(|purpose| self.streams.gene(self.gene.param_idx, purpose));
        for ((trial, recipe), slot) in (first_trial..).zip(recipes).zip(column) {
            let places = [recipe.current, recipe.best, recipe.plus, recipe.minus].map(usize::from);
            let value = self.pool.values[places[0]];
            let is_changed =
                changes.unit(trial) < recipe.change_share || recipe.sure_gene == self.gene_idx as u32;
            let draw = draws.unit(trial);
            *slot = if !is_changed && !value.is_nan() {
                value
            } else if self.gene.is_category {
                // The step is a share of the way to the best: here, the chance to get there.
                let donor = if draw < recipe.step { places[1] } else { places[2] };
                self.gene.inherited([self.pool.values[donor], value], draw)
            } else {
                let [from, best, plus, minus] = places.map(|place| self.pool.units[place]);
                // Where a parameter is inactive there is no difference to take.
                let towards = if best.is_nan() { 0.0 } else { best - from };
                let along = if (plus - minus).is_nan() { 0.0 } else { plus - minus };
                let unit = from + recipe.step * (towards + along);
                if unit.is_nan() {
                    let known = [best, plus, minus].into_iter().find(|unit| !unit.is_nan());
                    self.gene.value(known.unwrap_or(draw))
                } else if unit == from {
                    value
                } else {
                    self.gene.value(reflect(unit))
                }
            };
        }
    }
}
