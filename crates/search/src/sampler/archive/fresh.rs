//! Replaces repeated points by new ones, for spaces whose points can be counted.
//!
//! Breeding in such a space makes the same children again and again once the elites agree, and evaluating a point twice teaches
//! nothing. So a repeated point is moved to a neighbour, or in a small space to the next one that was not proposed yet.

use std::collections::HashSet;

use crate::point::Points;
use crate::rng::Stream;
use crate::sampler::archive::gene::{Gene, Streams};
use crate::space::Space;

/// At most so many points are remembered; those asked later may repeat.
const MAX_REMEMBERED: usize = 1 << 22;

/// How often a repeated point is moved, by one gene more every other time.
const N_MOVES: u64 = 6;

/// Decimal logarithm of the shortest and the longest move, as a share of the range.
const LOG_MOVE: (f64, f64) = (-2.5, -0.5);

/// A space of at most so many points is walked through where moves do not help.
const MAX_WALKED: u128 = 1_000_000_000;

/// Points of the walk that are tried for one point; with conditions many of them may be the same.
const MAX_STEPS: usize = 1000;

/// Keeps the streams of this memory apart from those of samplers under the same seed.
const SEED_TWIST: u64 = 0x4672_6573_6850_6f69;

/// Remembers proposed points, and replaces repeated ones.
///
/// A replacement depends on the seed, the number of the trial and all points before it, so that the cut into batches does not
/// matter.
#[derive(Clone, Debug)]
pub(in crate::sampler) struct Fresh {
    space: Space,
    genes: Vec<Gene>,
    streams: Streams,
    /// Fingerprints. Only looked up, never listed, so that their order does not matter.
    asked: HashSet<u64>,
    n_asked: u64,
    walk: Option<Walk>,
}

impl Fresh {
    /// A memory for a space whose points can be counted; `None` for others, where points do not repeat.
    pub(in crate::sampler) fn new(space: &Space, seed: u64) -> Option<Self> {
        let n_points = space.cardinality()?;
        Some(Self {
            space: space.clone(),
            genes: Gene::of_space(space),
            streams: Streams::new(seed, SEED_TWIST),
            asked: HashSet::new(),
            n_asked: 0,
            walk: (n_points <= MAX_WALKED).then(|| Walk::new(n_points as u64, seed)),
        })
    }

    /// Replaces those of the next points to be asked that were asked or told before, and remembers them all.
    pub(in crate::sampler) fn refresh(&mut self, points: &mut Points) {
        let mut row = vec![0.0; points.n_params()];
        for point_idx in 0..points.len() {
            points.read_row(point_idx, &mut row);
            let trial = self.n_asked;
            self.n_asked += 1;
            if self.remember(&row) || !self.replace(trial, &mut row) {
                continue;
            }
            for (param_idx, value) in row.iter().enumerate() {
                points.column_mut(param_idx)[point_idx] = *value;
            }
        }
    }

    /// Remembers points that somebody else proposed.
    pub(in crate::sampler) fn extend(&mut self, points: &Points) {
        let mut row = vec![0.0; points.n_params()];
        for point_idx in 0..points.len() {
            points.read_row(point_idx, &mut row);
            self.remember(&row);
        }
    }

    /// Whether a point is new.
    fn remember(&mut self, row: &[f64]) -> bool {
        let fingerprint = fingerprint(row);
        if self.asked.len() < MAX_REMEMBERED {
            self.asked.insert(fingerprint)
        } else {
            !self.asked.contains(&fingerprint)
        }
    }

    /// Puts a point in place of a repeated one; `false` if none was found that is new.
    fn replace(&mut self, trial: u64, row: &mut [f64]) -> bool {
        let original = row.to_vec();
        for attempt in 0..N_MOVES {
            row.copy_from_slice(&original);
            self.shift(trial * N_MOVES + attempt, 1 + attempt / 2, row);
            if self.remember(row) {
                return true;
            }
        }
        let Some(mut walk) = self.walk else { return false };
        let mut is_found = false;
        for _ in 0..MAX_STEPS {
            let Some(number) = walk.next() else { break };
            self.settle(number, row);
            if self.remember(row) {
                is_found = true;
                break;
            }
        }
        self.walk = Some(walk);
        is_found
    }

    /// Changes some genes of a point to values nearby, or to other options.
    fn shift(&self, counter: u64, n_changes: u64, row: &mut [f64]) {
        for change in 0..n_changes {
            let active: Vec<&Gene> = self
                .genes
                .iter()
                .filter(|gene| !row[gene.param_idx].is_nan() && gene.n_options() > 1)
                .collect();
            let unit = |purpose: u64| self.streams.point(3 * change + purpose).unit(counter);
            let Some(gene) = active.get((unit(0) * active.len() as f64) as usize) else { return };
            let value = row[gene.param_idx];
            row[gene.param_idx] = if gene.is_category {
                gene.other_option(value, unit(1))
            } else {
                let length = libm::exp10(LOG_MOVE.0 + (LOG_MOVE.1 - LOG_MOVE.0) * unit(1));
                gene.nudged(gene.unit(value), value, if unit(2) < 0.5 { -length } else { length })
            };
        }
        self.deactivate(row, |gene_idx| {
            let gene = &self.genes[gene_idx];
            gene.value(self.streams.gene(gene.param_idx, 0).unit(counter))
        });
    }

    /// The point of a number of the walk.
    fn settle(&self, number: u64, row: &mut [f64]) {
        let mut rest = number;
        let levels: Vec<f64> = self
            .genes
            .iter()
            .map(|gene| {
                let n_values = gene.n_options() as u64;
                let level = gene.level(rest % n_values);
                rest /= n_values;
                level
            })
            .collect();
        row.fill(f64::NAN);
        self.deactivate(row, |gene_idx| levels[gene_idx]);
    }

    /// Makes a point consistent: parameters whose condition does not hold become inactive, and those that have no value although
    /// it holds get one.
    fn deactivate(&self, row: &mut [f64], value_of: impl Fn(usize) -> f64) {
        let mut seen: Vec<f64> = self.space.params.iter().map(|param| param.default).collect();
        let mut gene_idx = 0;
        for (param_idx, param) in self.space.params.iter().enumerate() {
            let own_gene = gene_idx;
            gene_idx += usize::from(param.fixed.is_none());
            row[param_idx] = match (param.is_active(&seen), param.fixed) {
                (false, _) => f64::NAN,
                (true, Some(value)) => value,
                (true, None) if row[param_idx].is_nan() => value_of(own_gene),
                (true, None) => row[param_idx],
            };
            if !row[param_idx].is_nan() {
                seen[param_idx] = row[param_idx];
            }
        }
    }
}

/// All numbers below some number once, in a scattered order.
#[derive(Clone, Copy, Debug)]
struct Walk {
    n_points: u64,
    start: u64,
    stride: u64,
    n_done: u64,
}

impl Walk {
    fn new(n_points: u64, seed: u64) -> Self {
        let n_points = n_points.max(1);
        let start = Stream::new(seed ^ SEED_TWIST, 0).bits(0) % n_points;
        // About the golden section, so that neighbours in the walk are far apart.
        let mut stride = ((n_points as f64 * 0.618) as u64).max(1);
        while common_divisor(stride, n_points) != 1 {
            stride += 1;
        }
        Self { n_points, start, stride, n_done: 0 }
    }
}

impl Iterator for Walk {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.n_done == self.n_points {
            return None;
        }
        // Both factors are below 2^31.
        let number = (self.start + self.n_done * self.stride) % self.n_points;
        self.n_done += 1;
        Some(number)
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// A hash of a point in which all NaN are alike, and so are both zeros.
fn fingerprint(row: &[f64]) -> u64 {
    row.iter().fold(0, |hash: u64, value| {
        let bits = if value.is_nan() { u64::MAX } else { (value + 0.0).to_bits() };
        let mixed = (hash.rotate_left(23) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::space::Param;

    #[test]
    fn a_walk_visits_every_number_once() {
        for n_points in [1, 2, 6, 30, 1009, 5040] {
            let mut numbers: Vec<u64> = Walk::new(n_points, 7).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..n_points).collect::<Vec<_>>());
        }
    }

    #[test]
    fn repeats_become_neighbours_until_nothing_is_left() {
        let int = |high| Domain::Int { low: 1, high, step: 1, log: false };
        let mut params = vec![Param::new("a", int(20), 1.0), Param::new("s", Domain::Bool, 0.0)];
        params.push(Param::new("b", int(5), 1.0));
        // The third parameter counts with the switch on alone: 20 * (1 + 5) points.
        params[2].when = Some(std::sync::Arc::new(|row| row[1] == 1.0));
        let space = Space { params };
        let mut fresh = Fresh::new(&space, 3).expect("a space that can be counted");
        let mut seen = HashSet::new();
        for _ in 0..12 {
            let mut points = Points::new(3);
            (0..10).for_each(|_| points.push(&[10.0, 0.0, f64::NAN]));
            fresh.refresh(&mut points);
            for idx in 0..10 {
                let row: Vec<f64> = (0..3).map(|param_idx| points.value(idx, param_idx)).collect();
                assert!((1.0..=20.0).contains(&row[0]) && (row[1] == 0.0) == row[2].is_nan(), "{row:?}");
                seen.insert(fingerprint(&row));
            }
        }
        assert_eq!(seen.len(), 120);
        // Everything was asked: a repeat stays as it is.
        let mut points = Points::from_columns(1, vec![vec![10.0], vec![0.0], vec![f64::NAN]]);
        fresh.refresh(&mut points);
        assert_eq!(points.value(0, 0), 10.0);
    }
}
