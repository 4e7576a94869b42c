//! The best points of a whole study: where evolutionary samplers find parents.
//!
//! A point stays as long as fewer than `capacity` distinct points are better, however long ago it was told. There are no
//! generations to wait for: every point that was told takes part at once, whoever proposed it.

pub(super) mod gene;

use std::sync::OnceLock;

use crate::point::Points;
use crate::score::Scores;
use crate::space::Space;
use gene::Gene;

/// The best distinct points told so far.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    genes: Vec<Gene>,
    capacity: usize,
    /// Best first; of equal scores the one told earlier.
    elites: Vec<Elite>,
    /// The values of each gene in all elites, once somebody asked for them.
    pools: Vec<OnceLock<Pool>>,
    n_valid: u64,
}

/// One of the best points.
#[derive(Clone, Debug)]
pub(super) struct Elite {
    pub(super) score: f64,
    /// The values of the free parameters, NaN where inactive.
    values: Vec<f64>,
    /// The same as places on the unit interval, and as indexes for categories.
    units: Vec<f64>,
}

/// The values of one gene in all elites.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) values: Vec<f64>,
    pub(super) units: Vec<f64>,
}

impl Archive {
    pub(super) fn new(space: &Space, capacity: usize) -> Self {
        let genes = Gene::of_space(space);
        let pools = vec![OnceLock::new(); genes.len()];
        Self { genes, capacity, elites: Vec::with_capacity(capacity + 1), pools, n_valid: 0 }
    }

    /// The free parameters, in the order of the space.
    pub(super) fn genes(&self) -> &[Gene] {
        &self.genes
    }

    /// The members, best first.
    pub(super) fn elites(&self) -> &[Elite] {
        &self.elites
    }

    /// How many points with a valid score were told.
    pub(super) fn n_valid(&self) -> u64 {
        self.n_valid
    }

    /// Lets the points of a batch compete by the first objective.
    pub(super) fn extend(&mut self, points: &Points, scores: &Scores) {
        let column = scores.column(0);
        // A tie with the worst member is lost, because that one was earlier.
        let worst = if self.elites.len() < self.capacity {
            f64::NEG_INFINITY
        } else {
            self.elites.last().map_or(f64::NEG_INFINITY, |elite| elite.score)
        };
        self.n_valid += column.iter().filter(|score| !score.is_nan()).count() as u64;
        let mut order: Vec<usize> = (0..column.len()).filter(|&idx| column[idx] > worst).collect();
        order.sort_by(|&a, &b| column[b].total_cmp(&column[a]).then(a.cmp(&b)));
        let (mut values, mut is_changed) = (vec![0.0; self.genes.len()], false);
        for point_idx in order {
            let score = column[point_idx];
            if self.elites.len() == self.capacity
                && self.elites.last().is_some_and(|last| last.score >= score)
            {
                break;
            }
            for (value, gene) in values.iter_mut().zip(&self.genes) {
                *value = points.value(point_idx, gene.param_idx);
            }
            self.insert(score, &values);
            is_changed = true;
        }
        if is_changed {
            self.pools.iter_mut().for_each(|pool| drop(pool.take()));
        }
    }

    fn insert(&mut self, score: f64, values: &[f64]) {
        let is_same =
            |elite: &Elite| elite.values.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits());
        let place = self.elites.partition_point(|elite| elite.score >= score);
        if self.elites[..place].iter().any(is_same) {
            return;
        }
        // A point that was told before with a worse score, as a random objective may do.
        if let Some(behind) = self.elites[place..].iter().position(is_same) {
            self.elites.remove(place + behind);
        }
        let units = self.genes.iter().zip(values).map(|(gene, value)| gene.unit(*value)).collect();
        self.elites.insert(place, Elite { score, values: values.to_vec(), units });
        self.elites.truncate(self.capacity);
    }

    /// The values of one gene in all elites, best first.
    pub(super) fn pool(&self, gene_idx: usize) -> &Pool {
        self.pools[gene_idx].get_or_init(|| Pool {
            values: self.elites.iter().map(|elite| elite.values[gene_idx]).collect(),
            units: self.elites.iter().map(|elite| elite.units[gene_idx]).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::rng::Stream;
    use crate::score::Score;
    use crate::space::Param;

    fn space() -> Space {
        let unit = Domain::Float { low: -1.0, high: 3.0, step: None, log: false };
        Space { params: vec![Param::new("x", unit, 0.0), Param::new("s", Domain::Bool, 0.0)] }
    }

    #[test]
    fn the_archive_is_the_best_of_the_whole_history_whatever_the_batches() {
        let (values, scores) = (Stream::new(1, 0), Stream::new(1, 1));
        // Few levels, so that scores tie and points repeat; the score of a point is always the same.
        let value = |idx: u64| (values.unit(idx) * 300.0).floor() / 100.0;
        let score = |idx: u64| {
            let level = (value(idx) * 100.0) as u64;
            if level.is_multiple_of(7) {
                Score::Invalid
            } else {
                Score::new((scores.unit(level) * 40.0).floor())
            }
        };
        let mut expected: Vec<(u64, f64)> =
            (0..1000).filter_map(|idx| Some((idx, score(idx).value()?))).collect();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut seen = Vec::new();
        expected.retain(|(idx, _)| {
            let is_new = !seen.contains(&value(*idx));
            seen.push(value(*idx));
            is_new
        });
        expected.truncate(20);
        for batch in [1, 7, 250, 1000] {
            let mut archive = Archive::new(&space(), 20);
            for from in (0..1000).step_by(batch) {
                let mut points = Points::new(2);
                let idxs = from as u64..(from + batch).min(1000) as u64;
                idxs.clone().for_each(|idx| points.push(&[value(idx), 1.0]));
                archive.extend(&points, &Scores::single(&idxs.map(score).collect::<Vec<_>>()));
                // What was laid out for those who ask now is not kept for those who ask later.
                assert_eq!(archive.pool(0).values.len(), archive.elites().len());
            }
            let pool = archive.pool(0);
            let found: Vec<(f64, f64)> = archive
                .elites()
                .iter()
                .zip(&pool.values)
                .map(|(elite, value)| (elite.score, *value))
                .collect();
            let wanted: Vec<(f64, f64)> = expected.iter().map(|&(idx, score)| (score, value(idx))).collect();
            assert_eq!(found, wanted, "batches of {batch}");
            assert!(pool.units.iter().zip(&pool.values).all(|(unit, value)| *unit == (value + 1.0) / 4.0));
        }
    }

    #[test]
    fn a_point_told_again_keeps_its_better_score() {
        let mut archive = Archive::new(&space(), 3);
        let mut points = Points::new(2);
        points.push(&[0.5, f64::NAN]);
        for score in [1.0, 3.0, 2.0] {
            archive.extend(&points, &Scores::single(&[Score::new(score)]));
        }
        assert_eq!(archive.elites().iter().map(|elite| elite.score).collect::<Vec<_>>(), [3.0]);
        assert_eq!(archive.n_valid(), 3);
    }
}
