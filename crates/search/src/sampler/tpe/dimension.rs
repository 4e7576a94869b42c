//! What the sampler knows of one parameter.

use super::best::BestTrial;
use super::density::{Density, Kernel};
use super::law::{Candidates, Law, UNIFORM_BITS};
use crate::cells::Cells;
use crate::domain::Domain;
use crate::rng::Stream;

/// Keeps the draws apart from those of other samplers under the same seed.
const DRAW_TWIST: u64 = 0x5061_727a_656e_2121;
/// Keeps the order of equal ratios apart from the draws.
const TIE_TWIST: u64 = 0x7469_6573_6272_6b21;

/// One free parameter: its cells, the observations where it was active, and the law that follows from them.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    param_idx: usize,
    cells: Cells,
    n_observed: usize,
    /// Per cell, the sum of the numbers of its observations, counted from one. Divided by the number of trials, that is their
    /// weight: it rises linearly from the oldest to the newest.
    weight: Vec<u64>,
    /// Every observation as its place in the unit interval and its number, in the order of the places; while there are few.
    places: Vec<(f64, u32)>,
    /// The good observations of the last law, in the order of their places.
    good: Vec<GoodPlace>,
    /// Of the good observations and of the others.
    kernels: [Kernel; 2],
    law: Law,
}

/// Where a good trial lies.
#[derive(Clone, Copy, Debug)]
struct GoodPlace {
    unit: f64,
    cell: usize,
    /// Of the trial.
    number: u64,
}

/// The state of the whole study when the densities are built.
pub(super) struct StudyState<'a> {
    pub(super) seed: u64,
    pub(super) n_told: u64,
    pub(super) candidates: Candidates,
    /// About how many trials are drawn before the densities are built again.
    pub(super) n_draws: usize,
    /// The trials that have become good since the last law, and the numbers of those that are good no more.
    pub(super) entered: &'a [&'a BestTrial],
    pub(super) left: &'a [u64],
    /// How many observations the prior is worth.
    pub(super) prior_weight: f64,
    /// The weight of every observation by its number, zero for the good ones; while observations are kept one by one.
    pub(super) weights: Option<&'a [f64]>,
}

impl Dimension {
    pub(super) fn new(param_idx: usize, domain: &Domain) -> Self {
        let cells = Cells::new(domain);
        Self {
            param_idx,
            n_observed: 0,
            weight: vec![0; cells.len()],
            cells,
            places: Vec::new(),
            good: Vec::new(),
            kernels: Default::default(),
            law: Law::default(),
        }
    }

    pub(super) fn param_idx(&self) -> usize {
        self.param_idx
    }

    /// Takes in a column of observations, the first of which has the given number; NaN where the parameter is inactive.
    pub(super) fn observe(&mut self, first_number: u64, column: &[f64], keep_places: bool) {
        let (weight, n_observed) = (&mut self.weight, &mut self.n_observed);
        self.cells.each(column, |idx, cell| {
            weight[cell] += first_number + idx as u64 + 1;
            *n_observed += 1;
        });
        if keep_places {
            let active = (first_number..).zip(column).filter(|(_, value)| !value.is_nan());
            self.places.extend(active.map(|(number, value)| (self.cells.unit(*value), number as u32)));
            // Stable, and quick where only the tail is out of order.
            self.places.sort_by(|a, b| a.0.total_cmp(&b.0));
        } else {
            self.places = Vec::new();
        }
    }

    /// Makes the law of the winner anew.
    pub(super) fn learn(&mut self, standing: &StudyState) {
        self.change_good(standing);
        let prior_weight = standing.prior_weight;
        let mut good = Density::new(&self.cells, self.good.len(), prior_weight);
        good.add(self.good.iter().map(|place| (place.unit, 1.0)));
        let mut other = Density::new(&self.cells, self.n_observed - self.good.len(), prior_weight);
        match standing.weights {
            Some(weights) => {
                other.add(self.places.iter().map(|(unit, number)| (*unit, weights[*number as usize])));
            }
            None => {
                let mut weight = self.weight.clone();
                self.good.iter().for_each(|place| weight[place.cell] -= place.number + 1);
                for (cell, weight) in weight.into_iter().enumerate() {
                    other.add_to_cell(cell, weight as f64 / standing.n_told as f64);
                }
            }
        }
        let chance =
            Stream::new(standing.seed ^ TIE_TWIST ^ standing.n_told.rotate_left(32), self.param_idx as u64);
        let [of_good, of_other] = &mut self.kernels;
        let (good, other) = (good.finish(of_good), other.finish(of_other));
        self.law = Law::new(&good, &other, standing.candidates, standing.n_draws, &chance);
    }

    /// Keeps up with which trials are good.
    fn change_good(&mut self, standing: &StudyState) {
        if !standing.left.is_empty() {
            self.good.retain(|place| !standing.left.contains(&place.number));
        }
        for trial in standing.entered {
            let value = trial.row[self.param_idx];
            if !value.is_nan() {
                let (unit, cell) = (self.cells.unit(value), self.cells.cell(value));
                let at = self.good.partition_point(|place| place.unit < unit);
                self.good.insert(at, GoodPlace { unit, cell, number: trial.number });
            }
        }
    }

    /// The values of some trials, the first of which has the given index.
    pub(super) fn draw(&self, seed: u64, first_trial: u64, n: usize) -> Vec<f64> {
        let stream = Stream::new(seed ^ DRAW_TWIST, self.param_idx as u64);
        let place = |trial_idx: u64| {
            // The lower bits choose the cell, the upper ones the place inside.
            let bits = stream.bits(trial_idx);
            let share = (bits >> UNIFORM_BITS) as f64 / (1_u64 << (u64::BITS - UNIFORM_BITS)) as f64;
            (self.law.cell(trial_idx, bits), share)
        };
        self.cells.values((first_trial..first_trial + n as u64).map(place))
    }
}
