//! The density of observations of one parameter, as masses of its cells.
//!
//! Ordered values carry truncated normal kernels whose width is the distance to the farther neighbour, at least a floor that
//! shrinks with their number down to one hundredth of the range. Most kernels of a long history sit at the floor; those are
//! gathered by cell and spread together, so that the cost hardly depends on how many there are. Options carry smoothed counts.
//! A wide prior, worth one observation unless it is turned, is part of every density.

use std::sync::OnceLock;

use super::normal::{Normal, REACH};
use crate::cells::{Cells, MAX_CELLS};
use crate::widest::widest;

/// The narrowest kernel there is, as a share of the range.
const NARROWEST: f64 = 0.01;

/// The kernel at the floor, which changes with the number of observations until they are many.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    width: f64,
    /// What of it lies in each cell, from the lowest that it reaches to the highest.
    shares: Vec<f64>,
    /// What of it lies within the range, around each cell near an end.
    inside: Vec<(usize, f64)>,
}

impl Kernel {
    /// Makes it as wide as it has to be.
    fn widen(&mut self, width: f64, n_cells: usize) {
        if self.width == width {
            return;
        }
        let normal = Normal::table();
        let step = 1.0 / (width * n_cells as f64);
        // Cells to each side that the kernel reaches.
        let reach = ((REACH / step).ceil() as usize).min(n_cells - 1);
        let share = |offset: usize| {
            let middle = offset as f64 * step;
            normal.below(middle + 0.5 * step) - normal.below(middle - 0.5 * step)
        };
        let half: Vec<f64> = (0..=reach).map(share).collect();
        let unit = |cell: usize| (cell as f64 + 0.5) / n_cells as f64;
        let is_near_end = |cell: &usize| unit(*cell).min(1.0 - unit(*cell)) <= REACH * width;
        let near_ends = (0..n_cells).filter(is_near_end);
        self.width = width;
        self.shares = half.iter().rev().chain(&half[1..]).copied().collect();
        self.inside = near_ends.map(|cell| (cell, normal.inside(unit(cell), width))).collect();
    }
}

/// A density that is being gathered.
pub(super) struct Density {
    is_ordered: bool,
    /// Number of kernels, the prior included.
    n_kernels: f64,
    /// The least width of a kernel.
    floor: f64,
    /// Weight of the kernels at the floor, by cell.
    gathered: Vec<f64>,
    /// Mass of all other kernels.
    mass: Vec<f64>,
    /// How many observations the prior is worth.
    prior_weight: f64,
}

impl Density {
    /// The density of `n_observations` that are yet to be added.
    pub(super) fn new(cells: &Cells, n_observations: usize, prior_weight: f64) -> Self {
        let n_kernels = n_observations as f64 + 1.0;
        Self {
            is_ordered: cells.is_ordered(),
            n_kernels,
            floor: least_width(n_observations),
            gathered: vec![0.0; cells.len()],
            mass: vec![0.0; cells.len()],
            prior_weight,
        }
    }

    /// Adds observations of a weight each in the order of their places; a weight of zero marks one that does not count.
    pub(super) fn add(&mut self, sorted: impl Iterator<Item = (f64, f64)> + Clone) {
        if !self.is_ordered {
            for (unit, weight) in sorted {
                let cell = self.cell(unit);
                self.gathered[cell] += weight;
            }
            return;
        }
        let mut rest = sorted.filter(|(_, weight)| *weight > 0.0).peekable();
        let mut before = None;
        while let Some((unit, weight)) = rest.next() {
            let after = rest.peek().map(|(after, _)| *after);
            self.add_kernel(unit, neighbour_distance(before, unit, after), weight);
            before = Some(unit);
        }
    }

    /// Adds observations of which only the cell is known; they are taken to lie close to others.
    pub(super) fn add_to_cell(&mut self, cell: usize, weight: f64) {
        self.gathered[cell] += weight;
    }

    /// The masses of the cells, up to a common factor. The kernel is best the one of the last density of these cells.
    pub(super) fn finish(mut self, kernel: &mut Kernel) -> Vec<f64> {
        if self.is_ordered {
            kernel.widen(self.floor, self.mass.len());
            self.spread_gathered(kernel);
            let prior = Prior::of(self.mass.len());
            let weight = self.prior_weight / prior.inside;
            self.mass.iter_mut().zip(&prior.shares).for_each(|(mass, share)| *mass += weight * share);
            return self.mass;
        }
        // Every kernel gives a small share to all options alike, and the prior is such shares alone.
        let n_options = self.gathered.len() as f64;
        let total: f64 = self.gathered.iter().sum();
        let scale = 1.0 / (1.0 + n_options / self.n_kernels);
        let even = total * scale / self.n_kernels + self.prior_weight / n_options;
        self.gathered.iter().map(|weight| weight * scale + even).collect()
    }

    fn cell(&self, unit: f64) -> usize {
        ((unit * self.gathered.len() as f64) as usize).min(self.gathered.len() - 1)
    }

    fn add_kernel(&mut self, unit: f64, deviation: f64, weight: f64) {
        if deviation <= self.floor {
            let cell = self.cell(unit);
            self.gathered[cell] += weight;
            return;
        }
        let (first, last) = reached(unit, deviation.min(1.0), self.mass.len());
        let normal = Normal::table();
        let deviation = deviation.min(1.0);
        let weight = weight / normal.inside(unit, deviation);
        let step = 1.0 / (deviation * self.mass.len() as f64);
        let offset = unit / deviation;
        let mut below = normal.below(first as f64 * step - offset);
        for (cell, mass) in (first..).zip(&mut self.mass[first..last]) {
            let above = normal.below((cell + 1) as f64 * step - offset);
            *mass += weight * (above - below);
            below = above;
        }
    }

    /// Spreads what was gathered with one kernel, cut at the ends of the range and scaled to keep its weight.
    fn spread_gathered(&mut self, kernel: &Kernel) {
        for (cell, inside) in &kernel.inside {
            self.gathered[*cell] /= inside;
        }
        let reach = kernel.shares.len() / 2;
        let mut padded = vec![0.0; self.mass.len() + 2 * reach];
        spread(&self.gathered, &kernel.shares, &mut padded);
        self.mass.iter_mut().zip(&padded[reach..]).for_each(|(mass, more)| *mass += more);
    }
}

widest! {
    /// Adds shares of each weight to the masses from its own place on, one weight after the other.
    fn spread(weights: &[f64], shares: &[f64], masses: &mut [f64]) {
        for (cell, weight) in weights.iter().enumerate() {
            if *weight > 0.0 {
                for (mass, share) in masses[cell..].iter_mut().zip(shares) {
                    *mass += weight * share;
                }
            }
        }
    }
}

/// The least width of a kernel among some observations and the prior.
pub(super) fn least_width(n_observations: usize) -> f64 {
    (1.0 / (2.0 + n_observations as f64)).max(NARROWEST)
}

/// The distance of an observation to the farther of its neighbours; to the farther end of the range if it has none.
pub(super) fn neighbour_distance(before: Option<f64>, unit: f64, after: Option<f64>) -> f64 {
    match (before, after) {
        (Some(before), Some(after)) => (unit - before).max(after - unit),
        (Some(before), None) => unit - before,
        (None, Some(after)) => after - unit,
        (None, None) => unit.max(1.0 - unit),
    }
}

/// The wide kernel that every density contains: a normal of width 1 around the middle.
struct Prior {
    /// What of it lies within the range.
    inside: f64,
    /// And in each cell.
    shares: Vec<f64>,
}

impl Prior {
    /// That of so many cells, made at first use.
    fn of(n_cells: usize) -> &'static Self {
        static PRIORS: [OnceLock<Prior>; MAX_CELLS + 1] = [const { OnceLock::new() }; MAX_CELLS + 1];
        PRIORS[n_cells].get_or_init(|| {
            let (normal, middle) = (Normal::table(), 0.5);
            let below = |cell: usize| normal.below(cell as f64 / n_cells as f64 - middle);
            let shares = (0..n_cells).map(|cell| below(cell + 1) - below(cell)).collect();
            Self { inside: normal.inside(middle, 1.0), shares }
        })
    }
}

/// The range of cells that a kernel reaches.
fn reached(unit: f64, deviation: f64, n_cells: usize) -> (usize, usize) {
    let place = |unit: f64| unit * n_cells as f64;
    let first = place(unit - REACH * deviation).max(0.0) as usize;
    let last = (place(unit + REACH * deviation) as usize).saturating_add(1).min(n_cells);
    (first.min(n_cells - 1), last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;

    fn unit_range() -> Cells {
        Cells::new(&Domain::Float { low: 0.0, high: 1.0, step: None, log: false })
    }

    fn density_of(points: &[f64]) -> Vec<f64> {
        let mut density = Density::new(&unit_range(), points.len(), 1.0);
        density.add(points.iter().map(|unit| (*unit, 1.0)));
        density.finish(&mut Kernel::default())
    }

    /// The definition, kernel by kernel with the error function.
    fn by_definition(points: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = points.to_vec();
        all.sort_by(f64::total_cmp);
        let floor = (1.0 / (2.0 + points.len() as f64)).max(0.01);
        let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let mut mass = vec![0.0; 256];
        let mut add = |mean: f64, deviation: f64| {
            let inside = below((1.0 - mean) / deviation) - below(-mean / deviation);
            for (cell, mass) in mass.iter_mut().enumerate() {
                let edge = |cell: usize| below((cell as f64 / 256.0 - mean) / deviation);
                *mass += (edge(cell + 1) - edge(cell)) / inside;
            }
        };
        for point in points {
            let place = all.iter().position(|unit| unit == point).unwrap();
            let left = if place > 0 { point - all[place - 1] } else { 0.0 };
            let right = if place + 1 < all.len() { all[place + 1] - point } else { 0.0 };
            let alone = if points.len() == 1 { point.max(1.0 - point) } else { 0.0 };
            add(*point, left.max(right).max(alone).clamp(floor, 1.0));
        }
        add(0.5, 1.0);
        mass
    }

    #[test]
    fn densities_follow_their_definition() {
        let spread: Vec<f64> = (0..40).map(|idx| (f64::from(idx) * 0.618_034).fract()).collect();
        let mut dense: Vec<f64> = (0..400).map(|idx| (f64::from(idx) * 0.618_034).fract().powi(2)).collect();
        let mut sparse = vec![0.9, 0.03, 0.31];
        sparse.sort_by(f64::total_cmp);
        dense.sort_by(f64::total_cmp);
        let mut spread = spread;
        spread.sort_by(f64::total_cmp);
        for points in [vec![0.25], vec![0.75], sparse, spread, dense] {
            let expected = by_definition(&points);
            let largest = expected.iter().fold(0.0, |a: f64, b| a.max(*b));
            for (cell, (mass, expected)) in density_of(&points).iter().zip(&expected).enumerate() {
                let error = (mass - expected).abs();
                assert!(error < 0.04 * largest, "{} points, cell {cell}: {mass} {expected}", points.len());
            }
        }
    }

    #[test]
    fn the_whole_mass_is_the_weight_of_all_kernels() {
        for points in [vec![], vec![0.0], vec![0.0, 0.001, 0.002, 1.0], vec![0.2; 300]] {
            let total: f64 = density_of(&points).iter().sum();
            assert!(
                (total - points.len() as f64 - 1.0).abs() < 1e-3 * (1.0 + points.len() as f64),
                "{total}"
            );
        }
    }

    #[test]
    fn options_are_smoothed_counts() {
        let cells = Cells::new(&Domain::Bool);
        let mut density = Density::new(&cells, 3, 1.0);
        density.add([(0.25, 1.0), (0.75, 1.0), (0.75, 1.0)].into_iter());
        let mass = density.finish(&mut Kernel::default());
        // Four kernels: each observation gives (1 + 1/4) / (1 + 2/4) to its own and (1/4) / (1 + 2/4) to the other option.
        let (own, other) = (1.25 / 1.5, 0.25 / 1.5);
        assert!((mass[0] - (own + 2.0 * other + 0.5)).abs() < 1e-12);
        assert!((mass[1] - (2.0 * own + other + 0.5)).abs() < 1e-12);
    }

    #[test]
    fn observations_without_weight_leave_no_trace() {
        let mut with = Density::new(&unit_range(), 2, 1.0);
        with.add([(0.1, 1.0), (0.2, 0.0), (0.4, 1.0)].into_iter());
        assert_eq!(with.finish(&mut Kernel::default()), density_of(&[0.1, 0.4]));
    }

    #[test]
    fn a_kernel_of_another_density_is_made_anew() {
        let mut kernel = Kernel::default();
        for n_points in [1, 30, 30, 200, 400, 7] {
            let points: Vec<f64> = (0..n_points).map(|idx| f64::from(idx) / f64::from(n_points)).collect();
            let mut density = Density::new(&unit_range(), points.len(), 1.0);
            density.add(points.iter().map(|unit| (*unit, 1.0)));
            assert_eq!(density.finish(&mut kernel), density_of(&points));
        }
    }
}
