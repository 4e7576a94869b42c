//! The search distribution of CMA-ES and how a generation moves it.

use crate::sampler::cmaes::covariance::Covariance;

/// Number of variables up to which correlations are learned; beyond, only the variances are.
const MAX_CORRELATED: usize = 100;

/// A normal law over the unit cube: mean, step size and shape, with the paths that adapt them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) mean: Vec<f64>,
    pub(super) sigma: f64,
    covariance: Covariance,
    path_sigma: Vec<f64>,
    path_shape: Vec<f64>,
    n_generations: u32,
    rates: Rates,
}

/// Weights and learning rates for one size of generation: the published defaults, with negative weights for the worse half.
#[derive(Clone, Debug)]
struct Rates {
    weights: Vec<f64>,
    n_parents: usize,
    variance_effective: f64,
    step_path: f64,
    step_damping: f64,
    shape_path: f64,
    rank_one: f64,
    rank_many: f64,
}

impl Rates {
    fn new(n_variables: usize, n_points: usize) -> Self {
        let n = n_variables.max(1) as f64;
        let middle = libm::log((n_points as f64 + 1.0) / 2.0);
        let mut weights: Vec<f64> = (1..=n_points).map(|rank| middle - libm::log(rank as f64)).collect();
        let n_parents = weights.iter().filter(|weight| **weight > 0.0).count().max(1);
        let effective = |weights: &[f64]| {
            let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
            if squares > 0.0 { sum * sum / squares } else { 1.0 }
        };
        let variance_effective = effective(&weights[..n_parents]);
        let variance_negative = effective(&weights[n_parents..]);
        let is_full = n_variables <= MAX_CORRELATED;
        // Fewer numbers to learn can be learned faster.
        let speed_up = if is_full { 1.0 } else { (n + 2.0) / 3.0 };
        let rank_one = (speed_up * 2.0 / ((n + 1.3) * (n + 1.3) + variance_effective)).min(0.5);
        let rank_many = (speed_up * 2.0 * (variance_effective - 2.0 + 1.0 / variance_effective)
            / ((n + 2.0) * (n + 2.0) + variance_effective))
            .max(0.0)
            .min(1.0 - rank_one);
        let negative_sum = if rank_many > 0.0 {
            (1.0 + rank_one / rank_many)
                .min(1.0 + 2.0 * variance_negative / (variance_effective + 2.0))
                .min((1.0 - rank_one - rank_many) / (n * rank_many))
        } else {
            0.0
        };
        let positive: f64 = weights[..n_parents].iter().sum();
        let negative: f64 = weights[n_parents..].iter().map(|weight| -weight).sum();
        for (rank, weight) in weights.iter_mut().enumerate() {
            if rank < n_parents {
                *weight = if positive > 0.0 { *weight / positive } else { 1.0 };
            } else {
                *weight *= if negative > 0.0 { negative_sum / negative } else { 0.0 };
            }
        }
        let step_path = (variance_effective + 2.0) / (n + variance_effective + 5.0);
        let excess = ((variance_effective - 1.0) / (n + 1.0)).max(0.0).sqrt() - 1.0;
        Self {
            weights,
            n_parents,
            variance_effective,
            step_path,
            step_damping: 1.0 + 2.0 * excess.max(0.0) + step_path,
            shape_path: (4.0 + variance_effective / n) / (n + 4.0 + 2.0 * variance_effective / n),
            rank_one,
            rank_many,
        }
    }
}

impl Model {
    /// A round law for generations of `n_points`.
    pub(super) fn new(mean: Vec<f64>, sigma: f64, n_points: usize) -> Self {
        let n = mean.len();
        Self {
            covariance: Covariance::identity(n, n <= MAX_CORRELATED),
            path_sigma: vec![0.0; n],
            path_shape: vec![0.0; n],
            n_generations: 0,
            rates: Rates::new(n, n_points),
            mean,
            sigma,
        }
    }

    /// Standard deviation of one variable.
    pub(super) fn deviation(&self, idx: usize) -> f64 {
        self.sigma * self.covariance.deviation(idx)
    }

    /// Number of points of a generation whose weight is positive.
    pub(super) fn n_parents(&self) -> usize {
        self.rates.n_parents
    }

    /// Weight of a rank, counted from 0.
    pub(super) fn weight(&self, rank: usize) -> f64 {
        self.rates.weights.get(rank).copied().unwrap_or(0.0)
    }

    /// Turns independent standard normal numbers into a point, which may lie outside the unit cube.
    pub(super) fn place(&self, numbers: &mut [f64]) {
        self.covariance.colour(numbers);
        for (number, mean) in numbers.iter_mut().zip(&self.mean) {
            *number = mean + self.sigma * *number;
        }
    }

    /// Whether the law is too narrow or too long to get anywhere.
    pub(super) fn is_degenerate(&self) -> bool {
        let widest = (0..self.mean.len()).map(|idx| self.deviation(idx)).fold(0.0, f64::max);
        (!self.mean.is_empty() && widest < 1e-13)
            || self.covariance.elongation() > 1e7
            || !self.sigma.is_finite()
    }

    /// Learns from the points of one generation, best first. NaN stands for an inactive parameter, of which nothing is learned.
    pub(super) fn update(&mut self, ranked: &[Vec<f64>]) {
        let n = self.mean.len();
        let n_parents = self.rates.n_parents.min(ranked.len());
        if n == 0 || n_parents == 0 {
            return;
        }
        let dimensions = n as f64;
        let rates = self.rates.clone();
        // Points of others, and those from an earlier law, may lie far out; one of them must not throw the law off.
        let longest = dimensions.sqrt() + 2.0 * dimensions / (dimensions + 2.0);
        let steps: Vec<(f64, Vec<f64>)> = ranked
            .iter()
            .map(|point| {
                let mut step: Vec<f64> = point
                    .iter()
                    .zip(&self.mean)
                    .map(|(x, mean)| if x.is_nan() { 0.0 } else { (x - mean) / self.sigma })
                    .collect();
                let mut white = step.clone();
                self.covariance.whiten(&mut white);
                let length = norm(&white);
                if length > longest {
                    step.iter_mut().for_each(|value| *value *= longest / length);
                }
                (length.min(longest), step)
            })
            .collect();
        let weight_sum: f64 = rates.weights[..n_parents].iter().sum();
        let mut mean_step = vec![0.0; n];
        for (weight, (_, step)) in rates.weights[..n_parents].iter().zip(&steps) {
            mean_step.iter_mut().zip(step).for_each(|(sum, value)| *sum += weight / weight_sum * value);
        }
        for (mean, step) in self.mean.iter_mut().zip(&mean_step) {
            *mean = (*mean + self.sigma * step).clamp(0.0, 1.0);
        }
        self.n_generations += 1;

        let mut white = mean_step.clone();
        self.covariance.whiten(&mut white);
        let push = (rates.step_path * (2.0 - rates.step_path) * rates.variance_effective).sqrt();
        for (path, value) in self.path_sigma.iter_mut().zip(&white) {
            *path = (1.0 - rates.step_path) * *path + push * value;
        }
        let expected =
            dimensions.sqrt() * (1.0 - 1.0 / (4.0 * dimensions) + 1.0 / (21.0 * dimensions * dimensions));
        let length = norm(&self.path_sigma);
        let warm_up = 1.0 - libm::pow(1.0 - rates.step_path, 2.0 * f64::from(self.n_generations));
        // A path that is long because the step size is too small must not stretch the shape.
        let is_steady = length / warm_up.sqrt() / expected < 1.4 + 2.0 / (dimensions + 1.0);
        let push = if is_steady {
            (rates.shape_path * (2.0 - rates.shape_path) * rates.variance_effective).sqrt()
        } else {
            0.0
        };
        for (path, value) in self.path_shape.iter_mut().zip(&mean_step) {
            *path = (1.0 - rates.shape_path) * *path + push * value;
        }

        let mut used = 0.0;
        let mut vectors: Vec<(f64, Vec<f64>)> = Vec::with_capacity(steps.len() + 1);
        for (rank, (length, step)) in steps.into_iter().enumerate() {
            let weight = self.weight(rank);
            used += weight;
            let weight =
                if weight >= 0.0 { weight } else { weight * dimensions / (length * length).max(1e-12) };
            vectors.push((rates.rank_many * weight, step));
        }
        vectors.push((rates.rank_one, self.path_shape.clone()));
        let lost = if is_steady { 0.0 } else { rates.rank_one * rates.shape_path * (2.0 - rates.shape_path) };
        let decay = 1.0 + lost - rates.rank_one - rates.rank_many * used;
        self.covariance.update(decay, &vectors);
        self.sigma *= libm::exp((rates.step_path / rates.step_damping * (length / expected - 1.0)).min(1.0));
        // Wider than the cube is no wider than the cube.
        let widest = (0..n).map(|idx| self.covariance.deviation(idx)).fold(0.0, f64::max);
        self.sigma = self.sigma.min(1.0 / widest);
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_published_ones() {
        // Ten variables, generations of ten: worked out by hand from the published formulas.
        let rates = Rates::new(10, 10);
        assert_eq!(rates.n_parents, 5);
        assert!((rates.weights[..5].iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((rates.variance_effective - 3.167_299_217_2).abs() < 1e-6, "{}", rates.variance_effective);
        assert!((rates.rank_one - 2.0 / (127.69 + rates.variance_effective)).abs() < 1e-12);
        assert!(rates.weights[5..].iter().all(|weight| *weight <= 0.0));
    }

    #[test]
    fn a_generation_pulls_the_mean_to_its_best() {
        let mut model = Model::new(vec![0.5, 0.5], 0.2, 4);
        model.update(&[vec![0.6, 0.4], vec![0.6, 0.4], vec![0.4, 0.6], vec![0.3, 0.6]]);
        assert!((model.mean[0] - 0.6).abs() < 1e-12 && (model.mean[1] - 0.4).abs() < 1e-12);
        assert!(!model.is_degenerate());
    }
}
