//! A scrambled Sobol sequence: points that fill the space more evenly than chance.
//!
//! Direction numbers are those of Joe and Kuo (their D6 criterion), read from the `sobol` crate; the generator is ours, because it
//! must start at any index and keep 53 bits. It walks the sequence in Gray-code order, one exclusive-or per value.
//!
//! Scrambling is Owen's nested uniform one, and exact: whether a bit is flipped depends on all bits above it, through a hash. It
//! keeps every balance property of the sequence, makes each point uniform on its own, and fills the bits below the resolution of
//! the sequence, so that even a range of a million integers is hit evenly.

use std::sync::OnceLock;

use ::sobol::params::JoeKuoD6;

use crate::point::Points;
use crate::rng::{Stream, to_unit};
use crate::sampler::Sampler;
use crate::score::Scores;
use crate::space::Space;

/// Number of free parameters that the table of direction numbers covers. Further ones are drawn at random.
pub const TABLE_DIMENSIONS: usize = 1000;

/// Bits of the sequence, which starts again after 2^36 points; a study of that length would fill 500 GB per parameter.
const INDEX_BITS: usize = 36;

/// Bits scrambled by one hash: a binary tree of 6 levels has 63 inner nodes, one random bit for each.
const CHUNK_BITS: usize = 6;

/// The largest number below one.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// Keeps the streams of this sampler apart from those of `random` under the same seed.
const SEED_TWIST: u64 = 0x5363_7261_6d62_6c65;

/// Keeps the choice of the points that reach for the ends apart from the points.
const REACH_TWIST: u64 = 0x6f75_7477_6172_6473;

/// A low-discrepancy sequence over the free parameters.
#[derive(Clone, Debug)]
pub struct Sobol {
    space: Space,
    seed: u64,
    /// Per free parameter in the order of the space; those beyond the table have none.
    directions: Vec<[u64; INDEX_BITS]>,
    n_asked: u64,
}

impl Sobol {
    /// A sampler over a valid space.
    pub fn new(space: &Space, seed: u64) -> Self {
        let n_dimensions = space.n_free().min(TABLE_DIMENSIONS);
        Self { space: space.clone(), seed, directions: direction_numbers(n_dimensions), n_asked: 0 }
    }

    /// The next points, of which three in four are moved away from the middle of all ranges to twice the distance, as far as they go:
    /// half of their ordered values are ends.
    pub(super) fn reach(&mut self, n: usize) -> Points {
        // By chance: every fourth point would be from the same quarter of the first range.
        let chance = Stream::new(self.seed ^ REACH_TWIST, 0);
        self.points(n, |first, column| {
            let moved = (first..).zip(column).filter(|(trial_idx, _)| chance.bits(*trial_idx) >> 62 != 0);
            moved.for_each(|(_, unit)| *unit = (2.0 * *unit - 0.5).clamp(0.0, BELOW_ONE));
        })
    }

    /// The next points, after `moves` changed the units of ordered parameters from a trial on.
    fn points(&mut self, n: usize, moves: impl Fn(u64, &mut [f64]) + Sync) -> Points {
        let first = self.n_asked;
        self.n_asked += n as u64;
        self.space.points_from_units(n, |param_idx, dimension_idx, column| {
            let stream = Stream::new(self.seed ^ SEED_TWIST, dimension_idx as u64);
            match self.directions.get(dimension_idx) {
                Some(directions) => fill_column(directions, &stream, first, column),
                None => {
                    for (trial_idx, value) in (first..).zip(&mut *column) {
                        *value = stream.unit(trial_idx);
                    }
                }
            }
            if self.space.params[param_idx].domain.is_ordered() {
                moves(first, column);
            }
        })
    }
}

impl Sampler for Sobol {
    fn name(&self) -> &'static str {
        "sobol"
    }

    fn ask(&mut self, n: usize) -> Points {
        self.points(n, |_, _| {})
    }

    fn tell(&mut self, _points: &Points, _scores: &Scores) {}

    fn skip(&mut self, n: u64) -> bool {
        self.n_asked += n;
        true
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

fn fill_column(directions: &[u64; INDEX_BITS], stream: &Stream, first: u64, column: &mut [f64]) {
    let gray = first ^ (first >> 1);
    let mut bits = (0..INDEX_BITS)
        .filter(|bit_idx| gray >> bit_idx & 1 == 1)
        .fold(0, |bits, bit_idx| bits ^ directions[bit_idx]);
    for (trial_idx, value) in (first..).zip(column) {
        *value = to_unit(scramble(bits, stream));
        let changed_bit = (trial_idx + 1).trailing_zeros() as usize;
        bits ^= directions.get(changed_bit).copied().unwrap_or(0);
    }
}

/// Flips each bit by a random bit that belongs to the bits above it.
///
/// The bits above choose the flips, never the flipped ones, so that no step waits for the one before.
fn scramble(bits: u64, stream: &Stream) -> u64 {
    let mut scrambled = 0;
    // The bits above, behind a leading one that tells prefixes of different length apart.
    let mut prefix = 1;
    for chunk_idx in 0..INDEX_BITS / CHUNK_BITS {
        let flips = stream.bits(prefix);
        let chunk = bits >> (64 - CHUNK_BITS * (chunk_idx + 1)) & ((1 << CHUNK_BITS) - 1);
        // Nodes are numbered like a heap: the root is 1, and a node's children are twice its number and the next.
        let flip = |level: usize| {
            let node = 1 << level | chunk >> (CHUNK_BITS - level);
            (flips >> node & 1) << (CHUNK_BITS - 1 - level)
        };
        let mask = flip(0) | flip(1) | flip(2) | flip(3) | flip(4) | flip(5);
        scrambled = scrambled << CHUNK_BITS | (chunk ^ mask);
        prefix = prefix << CHUNK_BITS | chunk;
    }
    // Below its resolution the sequence is all zeros, so that the flips themselves are the bits.
    scrambled << (64 - INDEX_BITS) | stream.bits(prefix) >> INDEX_BITS
}

fn direction_numbers(n_dimensions: usize) -> Vec<[u64; INDEX_BITS]> {
    let mut directions = Vec::with_capacity(n_dimensions);
    if n_dimensions > 0 {
        // The first dimension is the binary digits in reverse, and not in the table.
        directions.push(std::array::from_fn(|bit_idx| 1 << (63 - bit_idx)));
    }
    if n_dimensions > 1 {
        // Reading the table takes longer than all the rest of a sampler, and a portfolio has half a dozen of these sequences.
        static TABLE: OnceLock<JoeKuoD6> = OnceLock::new();
        let table = TABLE.get_or_init(JoeKuoD6::standard);
        directions.extend(table.dim_params.iter().take(n_dimensions - 1).map(|row| expand(row.a, &row.m)));
    }
    directions
}

/// The recurrence of a primitive polynomial with inner coefficients `polynomial`, from its initial numbers.
fn expand(polynomial: u32, initial: &[u32]) -> [u64; INDEX_BITS] {
    let degree = initial.len();
    let mut directions = [0; INDEX_BITS];
    for bit_idx in 0..INDEX_BITS {
        directions[bit_idx] = if bit_idx < degree {
            u64::from(initial[bit_idx]) << (63 - bit_idx)
        } else {
            let oldest = directions[bit_idx - degree];
            (1..degree)
                .filter(|lag| polynomial >> (degree - 1 - lag) & 1 == 1)
                .fold(oldest ^ (oldest >> degree), |bits, lag| bits ^ directions[bit_idx - lag])
        };
    }
    directions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::space::Param;

    fn unit_cube(n_params: usize) -> Space {
        let unit = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        let param = |idx: usize| Param::new(format!("p{idx}"), unit.clone(), 0.5);
        Space { params: (0..n_params).map(param).collect() }
    }

    #[test]
    fn unscrambled_points_are_those_of_the_public_generator() {
        let mut public = ::sobol::Sobol::<f64>::new(40, &JoeKuoD6::standard());
        let directions = direction_numbers(40);
        let mut bits = [0_u64; 40];
        for index in 0_u64..500 {
            let expected = public.next().unwrap();
            for (dimension_idx, bits) in bits.iter_mut().enumerate() {
                assert_eq!(
                    to_unit(*bits),
                    expected[dimension_idx],
                    "point {index}, dimension {dimension_idx}"
                );
                *bits ^= directions[dimension_idx][(index + 1).trailing_zeros() as usize];
            }
        }
    }

    #[test]
    fn every_power_of_two_points_stratify_every_dimension() {
        let points = Sobol::new(&unit_cube(TABLE_DIMENSIONS), 5).ask(1024);
        for dimension_idx in 0..TABLE_DIMENSIONS {
            for block in points.column(dimension_idx).chunks(256) {
                let mut hit = [false; 256];
                block.iter().for_each(|value| hit[(value * 256.0) as usize] = true);
                assert!(hit.iter().all(|&hit| hit), "dimension {dimension_idx}");
            }
        }
    }

    #[test]
    fn the_first_two_dimensions_form_a_net() {
        let points = Sobol::new(&unit_cube(2), 11).ask(256);
        for log_columns in 0..=8_u32 {
            let (columns, rows) = (1 << log_columns, 1 << (8 - log_columns));
            let mut hit = [false; 256];
            for point_idx in 0..256 {
                let column = (points.value(point_idx, 0) * f64::from(columns)) as usize;
                let row = (points.value(point_idx, 1) * f64::from(rows)) as usize;
                hit[column * rows as usize + row] = true;
            }
            assert!(hit.iter().all(|&hit| hit), "{columns} × {rows} boxes");
        }
    }

    #[test]
    fn seeds_scramble_differently_and_each_point_is_uniform_over_seeds() {
        let mut counts = [0_u32; 16];
        for seed in 0..16_000 {
            let points = Sobol::new(&unit_cube(1), seed).ask(3);
            counts[(points.value(2, 0) * 16.0) as usize] += 1;
        }
        // 1000 expected, standard deviation 31.
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn a_million_integers_are_hit_evenly() {
        let domain = Domain::Int { low: 1, high: 1_000_000, step: 1, log: false };
        let space = Space { params: vec![Param::new("n", domain, 1.0), Param::new("b", Domain::Bool, 0.0)] };
        let points = Sobol::new(&space, 1).ask(1 << 20);
        let mut counts = vec![0_u8; 1_000_001];
        points.column(0).iter().for_each(|value| counts[*value as usize] += 1);
        // 1,048,576 strata against a million cells of almost the same width: a cell meets two or three strata.
        assert!(counts[1..].iter().all(|&count| count <= 3));
        let n_missed = counts[1..].iter().filter(|&&count| count == 0).count();
        // Independent draws would miss exp(-1.05) = 35 % of them.
        assert!(n_missed < 200_000, "{n_missed}");
    }

    #[test]
    fn integration_error_is_far_below_that_of_chance() {
        let n_points = 1 << 14;
        let points = Sobol::new(&unit_cube(8), 3).ask(n_points);
        let product = |point_idx| -> f64 { (0..8).map(|d| 2.0 * points.value(point_idx, d)).product() };
        let mean: f64 = (0..n_points).map(product).sum::<f64>() / n_points as f64;
        // Chance: sqrt(((4/3)^8 - 1) / 16384) = 0.023.
        assert!((mean - 1.0).abs() < 0.004, "{mean}");
    }

    #[test]
    fn dimensions_beyond_the_table_are_random_and_differ() {
        let points = Sobol::new(&unit_cube(TABLE_DIMENSIONS + 2), 3).ask(64);
        assert_ne!(points.column(TABLE_DIMENSIONS), points.column(TABLE_DIMENSIONS + 1));
        let mean = points.column(TABLE_DIMENSIONS).iter().sum::<f64>() / 64.0;
        assert!((0.3..0.7).contains(&mean));
    }
}
