//! The shape of a normal law: a covariance matrix with its Cholesky factor, or only its diagonal where a matrix would be too large.
//!
//! The triangular factor takes the place of the usual symmetric root. It needs no eigenvalues, costs a sixth of a matrix product,
//! and the search distribution is the same.

use rayon::prelude::*;

/// A covariance of `n` variables that can be sampled from.
#[derive(Clone, Debug)]
pub(super) struct Covariance {
    n: usize,
    is_full: bool,
    /// Row by row, the lower triangle in use; only the diagonal if not full.
    matrix: Vec<f64>,
    /// Its Cholesky factor in the same layout.
    factor: Vec<f64>,
}

impl Covariance {
    /// Variances of one, no correlation.
    pub(super) fn identity(n: usize, is_full: bool) -> Self {
        let matrix = if is_full {
            (0..n * n).map(|idx| f64::from(u8::from(idx % (n + 1) == 0))).collect()
        } else {
            vec![1.0; n]
        };
        Self { n, is_full, factor: matrix.clone(), matrix }
    }

    /// Standard deviation of one variable.
    pub(super) fn deviation(&self, idx: usize) -> f64 {
        self.matrix[if self.is_full { idx * (self.n + 1) } else { idx }].sqrt()
    }

    /// Turns independent standard normal numbers into a draw from this law.
    pub(super) fn colour(&self, numbers: &mut [f64]) {
        if self.is_full {
            // From the last row up, so that the numbers a row needs are still there.
            for row_idx in (0..self.n).rev() {
                let row = &self.factor[row_idx * self.n..][..=row_idx];
                numbers[row_idx] = dot(row, &numbers[..=row_idx]);
            }
        } else {
            numbers.iter_mut().zip(&self.factor).for_each(|(number, factor)| *number *= factor);
        }
    }

    /// The inverse of `colour`.
    pub(super) fn whiten(&self, numbers: &mut [f64]) {
        if self.is_full {
            for row_idx in 0..self.n {
                let row = &self.factor[row_idx * self.n..][..=row_idx];
                numbers[row_idx] =
                    (numbers[row_idx] - dot(&row[..row_idx], &numbers[..row_idx])) / row[row_idx];
            }
        } else {
            numbers.iter_mut().zip(&self.factor).for_each(|(number, factor)| *number /= factor);
        }
    }

    /// `decay` times itself plus weighted outer products of vectors. Where that is no covariance any more, it keeps the
    /// variances and forgets the correlations.
    pub(super) fn update(&mut self, decay: f64, vectors: &[(f64, Vec<f64>)]) {
        let n = self.n;
        if self.is_full {
            // Each row adds up in the order of the vectors, whichever thread it falls to.
            self.matrix.par_chunks_mut(n.max(1)).enumerate().for_each(|(row_idx, row)| {
                let row = &mut row[..=row_idx];
                row.iter_mut().for_each(|cell| *cell *= decay);
                for (weight, vector) in vectors {
                    let scale = weight * vector[row_idx];
                    row.iter_mut().zip(vector).for_each(|(cell, value)| *cell += scale * value);
                }
            });
        } else {
            for (idx, cell) in self.matrix.iter_mut().enumerate() {
                *cell *= decay;
                for (weight, vector) in vectors {
                    *cell += weight * vector[idx] * vector[idx];
                }
            }
        }
        if !self.refactor() {
            self.decorrelate();
        }
    }

    /// Recomputes the factor; `false` if the matrix is not positive definite.
    fn refactor(&mut self) -> bool {
        const LEAST: f64 = 1e-30;
        if !self.is_full {
            for (factor, variance) in self.factor.iter_mut().zip(&self.matrix) {
                *factor = variance.sqrt();
            }
            return self.matrix.iter().all(|variance| *variance > LEAST && variance.is_finite());
        }
        let n = self.n;
        for row_idx in 0..n {
            let (above, below) = self.factor.split_at_mut(row_idx * n);
            let row = &mut below[..n];
            for column_idx in 0..row_idx {
                let other = &above[column_idx * n..][..=column_idx];
                let rest =
                    self.matrix[row_idx * n + column_idx] - dot(&row[..column_idx], &other[..column_idx]);
                row[column_idx] = rest / other[column_idx];
            }
            let pivot = self.matrix[row_idx * n + row_idx] - dot(&row[..row_idx], &row[..row_idx]);
            if pivot.is_nan() || pivot <= LEAST || pivot.is_infinite() {
                return false;
            }
            row[row_idx] = pivot.sqrt();
        }
        true
    }

    fn decorrelate(&mut self) {
        let variances: Vec<f64> = (0..self.n)
            .map(|idx| {
                let deviation = self.deviation(idx);
                if deviation.is_finite() { (deviation * deviation).max(1e-20) } else { 1.0 }
            })
            .collect();
        *self = Self::identity(self.n, self.is_full);
        for (idx, variance) in variances.into_iter().enumerate() {
            let place = if self.is_full { idx * (self.n + 1) } else { idx };
            (self.matrix[place], self.factor[place]) = (variance, variance.sqrt());
        }
    }

    /// About how many times wider the law is in one direction than in another.
    pub(super) fn elongation(&self) -> f64 {
        let stride = if self.is_full { self.n + 1 } else { 1 };
        let diagonal = || self.factor.iter().step_by(stride).copied();
        diagonal().fold(0.0, f64::max) / diagonal().fold(f64::INFINITY, f64::min)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn vectors(n: usize) -> Vec<(f64, Vec<f64>)> {
        let vector = |idx: u64| (0..n as u64).map(|d| Stream::new(idx, d).unit(0) - 0.3).collect();
        (0..5).map(|idx| (0.1, vector(idx))).collect()
    }

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix() {
        let n = 7;
        let mut covariance = Covariance::identity(n, true);
        covariance.update(0.5, &vectors(n));
        for row in 0..n {
            for column in 0..=row {
                let expected = vectors(n).iter().map(|(w, v)| w * v[row] * v[column]).sum::<f64>()
                    + if row == column { 0.5 } else { 0.0 };
                let factor = |row: usize| &covariance.factor[row * n..][..=column];
                assert!((dot(factor(row), factor(column)) - expected).abs() < 1e-12, "{row} {column}");
            }
        }
    }

    #[test]
    fn whitening_undoes_colouring() {
        for is_full in [true, false] {
            let mut covariance = Covariance::identity(6, is_full);
            covariance.update(0.5, &vectors(6));
            let numbers = [1.0, -2.0, 0.5, 3.0, 0.0, -1.0];
            let mut there_and_back = numbers;
            covariance.colour(&mut there_and_back);
            assert!(there_and_back.iter().zip(&numbers).any(|(a, b)| (a - b).abs() > 0.1));
            covariance.whiten(&mut there_and_back);
            assert!(there_and_back.iter().zip(&numbers).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    #[test]
    fn what_is_no_covariance_loses_its_correlations_only() {
        let mut covariance = Covariance::identity(2, true);
        covariance.update(1.0, &[(3.0, vec![1.0, 1.0]), (-3.9, vec![1.0, -1.0])]);
        assert!(covariance.deviation(0).is_finite() && covariance.elongation() == 1.0);
    }
}
