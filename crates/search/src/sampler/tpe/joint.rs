//! The joint density of some trials: a mixture with one product of kernels per trial, and a wide prior.
//!
//! Unlike independent densities, it knows which values occur together. A kernel says nothing about a parameter that was inactive
//! in its trial: there it is even over the whole range.

use super::density::{least_width, neighbour_distance};
use super::normal::Normal;
use crate::cells::Cells;
use crate::rng::Stream;

/// Ordered parameters with at most this many values have the exact share of every value; beyond, their density is close enough.
const MAX_TABLE: usize = 32;

/// One free parameter as an axis of the joint density.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) cells: Cells,
    is_table: bool,
}

impl Axis {
    pub(super) fn new(cells: Cells) -> Self {
        let is_table = cells.is_single() && (!cells.is_ordered() || cells.len() <= MAX_TABLE);
        Self { cells, is_table }
    }

    /// The coordinate of a value: its cell, or its place in the unit interval; NaN for NaN.
    pub(super) fn coordinate(&self, value: f64) -> f64 {
        match (value.is_nan(), self.is_table) {
            (true, _) => value,
            (false, true) => self.cells.cell(value) as f64,
            (false, false) => self.cells.unit(value),
        }
    }

    /// The value at a coordinate.
    pub(super) fn value(&self, coordinate: f64) -> f64 {
        if self.is_table {
            self.cells.value(coordinate as usize, 0.5)
        } else {
            self.cells.value_at(coordinate)
        }
    }
}

/// The kernels of all trials along one axis.
enum Kernels {
    /// Truncated normals, or an even density of height one where the precision is zero.
    Normals { mean: Vec<f64>, deviation: Vec<f64>, precision: Vec<f64>, log_height: Vec<f64> },
    /// Rows of a table: which row a trial has, and per row the probability of every value.
    Rows { row: Vec<u32>, n_values: usize, probability: Vec<f64>, log_probability: Vec<f64> },
}

/// A mixture of products of kernels. The last kernel is the prior.
pub(super) struct Joint {
    axes: Vec<Kernels>,
    log_weight: Vec<f64>,
    cumulative_weight: Vec<f64>,
}

impl Joint {
    /// The density of trials given as one column of coordinates per axis, and the weight of each.
    pub(super) fn new(axes: &[Axis], columns: &[Vec<f64>], mut weights: Vec<f64>) -> Self {
        let kernels = |(axis, column): (&Axis, &Vec<f64>)| {
            if axis.is_table { rows(&axis.cells, column) } else { normals(column) }
        };
        weights.push(1.0);
        let mut cumulative = 0.0;
        Self {
            axes: axes.iter().zip(columns).map(kernels).collect(),
            log_weight: weights.iter().map(|weight| libm::log(*weight)).collect(),
            cumulative_weight: weights
                .iter()
                .map(|weight| {
                    cumulative += weight;
                    cumulative
                })
                .collect(),
        }
    }

    /// Draws coordinates for all axes from consecutive numbers of a stream.
    pub(super) fn draw(&self, stream: &Stream, counter: u64, coordinates: &mut [f64]) {
        let total = self.cumulative_weight.last().copied().unwrap_or(1.0);
        let mass = stream.unit(counter) * total;
        let last = self.cumulative_weight.len() - 1;
        let kernel = self.cumulative_weight.partition_point(|weight| *weight <= mass).min(last);
        for (counter, (axis, coordinate)) in (counter + 1..).zip(self.axes.iter().zip(coordinates)) {
            let uniform = stream.unit(counter);
            *coordinate = match axis {
                Kernels::Normals { precision, .. } if precision[kernel] == 0.0 => uniform,
                Kernels::Normals { mean, deviation, .. } => {
                    Normal::table().truncated(mean[kernel], deviation[kernel], uniform)
                }
                Kernels::Rows { row, n_values, probability, .. } => {
                    let first = row[kernel] as usize * n_values;
                    let mut rest = uniform;
                    let reached = probability[first..first + n_values].iter().position(|probability| {
                        rest -= probability;
                        rest < 0.0
                    });
                    reached.unwrap_or(n_values - 1) as f64
                }
            };
        }
    }

    /// The logarithm of the density at each candidate; coordinates that are NaN do not count.
    pub(super) fn log_density(&self, candidates: &[Vec<f64>]) -> Vec<f64> {
        let mut logs: Vec<Vec<f64>> = candidates.iter().map(|_| self.log_weight.clone()).collect();
        for (axis_idx, axis) in self.axes.iter().enumerate() {
            for (candidate, logs) in candidates.iter().zip(&mut logs) {
                if !candidate[axis_idx].is_nan() {
                    axis.add_log(candidate[axis_idx], logs);
                }
            }
        }
        logs.iter().map(|logs| log_sum(logs)).collect()
    }
}

impl Kernels {
    /// Adds the logarithm of every kernel at a coordinate.
    fn add_log(&self, coordinate: f64, logs: &mut [f64]) {
        match self {
            Self::Normals { mean, precision, log_height, .. } => {
                let kernels = mean.iter().zip(precision).zip(log_height);
                for (log, ((mean, precision), log_height)) in logs.iter_mut().zip(kernels) {
                    let distance = coordinate - mean;
                    *log += log_height - precision * distance * distance;
                }
            }
            Self::Rows { row, n_values, log_probability, .. } => {
                for (log, row) in logs.iter_mut().zip(row) {
                    *log += log_probability[*row as usize * n_values + coordinate as usize];
                }
            }
        }
    }
}

/// Kernels as wide as the distance to the farther neighbour along the axis.
fn normals(column: &[f64]) -> Kernels {
    let n_kernels = column.len() + 1;
    let mut order: Vec<(f64, u32)> =
        (0..).zip(column).filter(|(_, mean)| !mean.is_nan()).map(|(kernel, mean)| (*mean, kernel)).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let floor = least_width(order.len());
    let mut means = vec![0.5; n_kernels];
    let mut deviations = vec![1.0; n_kernels];
    let mut precisions = vec![0.0; n_kernels];
    let mut log_heights = vec![0.0; n_kernels];
    let mut set = |kernel: usize, mean: f64, deviation: f64| {
        let height = deviation * std::f64::consts::TAU.sqrt() * Normal::table().inside(mean, deviation);
        means[kernel] = mean;
        deviations[kernel] = deviation;
        precisions[kernel] = 0.5 / (deviation * deviation);
        log_heights[kernel] = -libm::log(height);
    };
    for (place, (mean, kernel)) in order.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| order[before].0);
        let after = order.get(place + 1).map(|after| after.0);
        set(*kernel as usize, *mean, neighbour_distance(before, *mean, after).clamp(floor, 1.0));
    }
    set(n_kernels - 1, 0.5, 1.0);
    Kernels::Normals { mean: means, deviation: deviations, precision: precisions, log_height: log_heights }
}

/// One row per value that may have been observed, one for an inactive parameter, one for the prior.
///
/// Values repeat, so that most have no distance to their neighbours; a kernel reaches the next value at least.
fn rows(cells: &Cells, column: &[f64]) -> Kernels {
    let n_values = cells.len();
    let even = 1.0 / n_values as f64;
    let n_observed = column.iter().filter(|coordinate| !coordinate.is_nan()).count();
    let deviation = least_width(n_observed).max(0.5 * even);
    let n_kernels = n_observed as f64 + 1.0;
    let mut probability = Vec::with_capacity((n_values + 2) * n_values);
    for observed in 0..n_values {
        if cells.is_ordered() {
            probability.extend(normal_row((observed as f64 + 0.5) * even, deviation, n_values));
        } else {
            // The observed option, smoothed by a small share for all.
            let share = |value| if value == observed { 1.0 + 1.0 / n_kernels } else { 1.0 / n_kernels };
            let total = 1.0 + n_values as f64 / n_kernels;
            probability.extend((0..n_values).map(|value| share(value) / total));
        }
    }
    probability.extend(std::iter::repeat_n(even, n_values));
    if cells.is_ordered() {
        probability.extend(normal_row(0.5, 1.0, n_values));
    } else {
        probability.extend(std::iter::repeat_n(even, n_values));
    }
    let row_of = |coordinate: &f64| if coordinate.is_nan() { n_values as u32 } else { *coordinate as u32 };
    let row = column.iter().map(row_of).chain([n_values as u32 + 1]).collect();
    let log_probability = probability.iter().map(|share| libm::log(share.max(1e-300))).collect();
    Kernels::Rows { row, n_values, probability, log_probability }
}

fn normal_row(mean: f64, deviation: f64, n_values: usize) -> impl Iterator<Item = f64> {
    let normal = Normal::table();
    let inside = normal.inside(mean, deviation);
    let below = move |value: usize| normal.below((value as f64 / n_values as f64 - mean) / deviation);
    (0..n_values).map(move |value| (below(value + 1) - below(value)) / inside)
}

/// The logarithm of a sum of numbers given by their logarithms.
fn log_sum(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // What is smaller by a factor of e^40 is lost in rounding.
    let sum: f64 = logs.iter().map(|log| log - largest).filter(|log| *log > -40.0).map(libm::exp).sum();
    largest + libm::log(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;

    fn axes() -> Vec<Axis> {
        let float = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let int = Domain::Int { low: 1, high: 5, step: 1, log: false };
        [float, int, Domain::Bool].iter().map(|domain| Axis::new(Cells::new(domain))).collect()
    }

    fn joint() -> Joint {
        let columns = [vec![0.1, 0.9, f64::NAN], vec![0.0, 4.0, 2.0], vec![0.0, 1.0, f64::NAN]];
        Joint::new(&axes(), &columns, vec![1.0, 0.5, 0.25])
    }

    /// Low numbers with the switch off, high ones with the switch on.
    fn paired() -> Joint {
        let unit = |idx: u32| if idx < 10 { 0.1 } else { 0.9 } + f64::from(idx) * 0.001;
        let columns = [
            (0..20).map(unit).collect(),
            (0..20).map(|idx| f64::from(idx % 5)).collect(),
            (0..20).map(|idx| f64::from(idx / 10)).collect(),
        ];
        Joint::new(&axes(), &columns, vec![1.0; 20])
    }

    #[test]
    fn the_density_integrates_to_its_weight() {
        let mut total = 0.0;
        for step in 0..200 {
            for level in 0..5 {
                for switch in 0..2 {
                    let candidate =
                        vec![(f64::from(step) + 0.5) / 200.0, f64::from(level), f64::from(switch)];
                    total += libm::exp(joint().log_density(&[candidate])[0]) / 200.0;
                }
            }
        }
        assert!((total - 2.75).abs() < 1e-3, "{total}");
    }

    #[test]
    fn draws_follow_the_density_and_keep_what_occurs_together() {
        let (joint, stream) = (paired(), Stream::new(3, 3));
        let n_draws = 40_000;
        let mut coordinates = vec![0.0; 3];
        let mut counts = [[0_u32; 2]; 2];
        for draw_idx in 0..n_draws {
            joint.draw(&stream, draw_idx * 4, &mut coordinates);
            assert!((0.0..=1.0).contains(&coordinates[0]));
            counts[usize::from(coordinates[0] >= 0.5)][coordinates[2] as usize] += 1;
        }
        for (side, counts) in counts.iter().enumerate() {
            for (switch, count) in counts.iter().enumerate() {
                let inside = |step: i32| {
                    let candidate = |level: i32| {
                        let unit = side as f64 * 0.5 + (f64::from(step) + 0.5) / 200.0;
                        vec![unit, f64::from(level), switch as f64]
                    };
                    let candidates: Vec<Vec<f64>> = (0..5).map(candidate).collect();
                    joint.log_density(&candidates).into_iter().map(libm::exp).sum::<f64>() / 200.0
                };
                let expected = (0..100).map(inside).sum::<f64>() / 21.0 * n_draws as f64;
                let deviation = libm::sqrt(expected);
                assert!((f64::from(*count) - expected).abs() < 5.0 * deviation, "{count} {expected}");
            }
        }
        assert!(counts[0][0] > 3 * counts[0][1] && counts[1][1] > 3 * counts[1][0], "{counts:?}");
    }

    #[test]
    fn inactive_coordinates_do_not_count() {
        let joint = joint();
        let logs = joint.log_density(&[vec![f64::NAN; 3]]);
        assert!((logs[0] - libm::log(2.75)).abs() < 1e-12);
    }
}
