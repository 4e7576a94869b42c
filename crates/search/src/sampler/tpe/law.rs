//! The distribution of the best of m candidates, computed without drawing candidates.
//!
//! Candidates are drawn from the density of good observations, and the one wins whose ratio of good to other density is highest.
//! Order the cells by that ratio, and let F be the mass of the good density up to and including a cell in that order: the winner
//! of m candidates lies at or below it with probability F^m. So one uniform number u and the place where F reaches u^(1/m)
//! replace m draws and 2m densities.

use crate::cells::MAX_CELLS;
use crate::rng::Stream;

/// Bits of the uniform number that chooses a cell.
pub(super) const UNIFORM_BITS: u32 = 40;

/// Buckets of the table that starts the search for a rank; many more than cells, so that it mostly ends there.
const BUCKET_BITS: u32 = 10;

/// A rank is looked up in a table where so many trials are drawn from a law; for fewer the table is not worth making.
const MIN_TABULATED: usize = 24;

/// How many candidates a winner is picked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// Twenty-four, the greed that suits one trial at a time.
    Many,
    /// Two or four in turn: a batch that shares one density should not crowd at its peak.
    Few,
    /// One, two, four or eight in turn, for batches so large that both ends are worth a share.
    Spread,
}

impl Candidates {
    /// Good settings for a batch size, as measured on test functions.
    pub(super) fn of_batch(batch: usize) -> Self {
        match batch {
            ..8 => Self::Many,
            8..1024 => Self::Few,
            1024.. => Self::Spread,
        }
    }

    /// The numbers of candidates, which trials take in turn.
    pub(super) fn numbers(self) -> &'static [u32] {
        match self {
            Self::Many => &[24],
            Self::Few => &[2, 4],
            Self::Spread => &[1, 2, 4, 8],
        }
    }
}

/// The cells of a parameter in ascending order of their ratio, and where their probabilities end.
#[derive(Clone, Debug, Default)]
pub(super) struct Law {
    order: Vec<u8>,
    /// The probability of the good density up to and including each rank.
    cumulative: Vec<f64>,
    n_candidates: &'static [u32],
    /// Per number of candidates, if many trials are drawn.
    tables: Vec<Ranks>,
}

/// The law of the rank of the winner among a number of candidates.
#[derive(Clone, Debug)]
struct Ranks {
    /// The uniform number, as an integer of so many bits, at which each rank ends; the last rank ends at the top.
    end: [u64; MAX_CELLS],
    /// Per bucket of uniform numbers, the first rank that may hold one.
    first: [u8; 1 << BUCKET_BITS],
}

impl Law {
    /// The law of two densities given as masses of cells. Ratios that are equal but for rounding are ordered by chance, so that
    /// no side of a plateau is preferred in the long run. `n_draws` is about how many trials will be drawn from it.
    pub(super) fn new(
        good: &[f64],
        other: &[f64],
        candidates: Candidates,
        n_draws: usize,
        chance: &Stream,
    ) -> Self {
        debug_assert!(good.len() <= MAX_CELLS && good.len() == other.len());
        let key = |(cell, (good, other)): (usize, (&f64, &f64))| {
            let ratio = u64::from(((good / other) as f32).to_bits() >> 10);
            ratio << 32 | chance.bits(cell as u64) >> 48 << 8 | cell as u64
        };
        let mut keys: Vec<u64> = good.iter().zip(other).enumerate().map(key).collect();
        keys.sort_unstable();
        let order: Vec<u8> = keys.iter().map(|key| *key as u8).collect();
        let total: f64 = good.iter().sum();
        let mut mass = 0.0;
        let cumulate = |cell: &u8| {
            mass += good[usize::from(*cell)];
            mass / total
        };
        let cumulative: Vec<f64> = order.iter().map(cumulate).collect();
        let n_candidates = candidates.numbers();
        let tabulated = if n_draws >= MIN_TABULATED { n_candidates } else { &[] };
        let tables = tabulated.iter().map(|n_candidates| Ranks::new(&cumulative, *n_candidates)).collect();
        Self { order, cumulative, n_candidates, tables }
    }

    /// The cell of a trial's winner, from the uniform number that the lower bits of `uniform` are.
    #[inline]
    pub(super) fn cell(&self, trial_idx: u64, uniform: u64) -> usize {
        let turn = trial_idx as usize % self.n_candidates.len();
        let rank = match self.tables.get(turn) {
            Some(table) => table.rank(uniform),
            None => {
                let uniform = uniform & (TOP - 1);
                let lower = &self.cumulative[..self.cumulative.len() - 1];
                lower.partition_point(|mass| end(*mass, self.n_candidates[turn]) <= uniform)
            }
        };
        usize::from(self.order[rank])
    }
}

/// Above all uniform numbers.
const TOP: u64 = 1 << UNIFORM_BITS;

/// Where the winner of a number of candidates stops to lie at or below a rank, by the probability of the good density up to it.
fn end(mass: f64, n_candidates: u32) -> u64 {
    ((power(mass, n_candidates) * TOP as f64) as u64).min(TOP)
}

impl Ranks {
    fn new(cumulative: &[f64], n_candidates: u32) -> Self {
        let mut ranks = Self { end: [TOP; MAX_CELLS], first: [0; 1 << BUCKET_BITS] };
        let mut n_filled = 0;
        for (rank, mass) in cumulative.iter().enumerate() {
            let end = if rank + 1 == cumulative.len() { TOP } else { end(*mass, n_candidates) };
            ranks.end[rank] = end;
            // A bucket that starts before the end of this rank is the first one of no later rank.
            let n_started = end.div_ceil(1 << (UNIFORM_BITS - BUCKET_BITS)) as usize;
            if n_started > n_filled {
                ranks.first[n_filled..n_started].fill(rank as u8);
                n_filled = n_started;
            }
        }
        ranks
    }

    #[inline]
    fn rank(&self, uniform: u64) -> usize {
        let uniform = uniform & (TOP - 1);
        let mut rank = self.first[(uniform >> (UNIFORM_BITS - BUCKET_BITS)) as usize];
        while self.end[usize::from(rank)] <= uniform {
            rank += 1;
        }
        usize::from(rank)
    }
}

/// A power by repeated squaring, whose result does not depend on the platform.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square) = (1.0, base);
    let mut rest = exponent;
    while rest > 0 {
        if rest % 2 == 1 {
            result *= square;
        }
        square *= square;
        rest /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A uniform number in `0..1` as the integer that the law takes.
    fn integer(uniform: f64) -> u64 {
        (uniform * (1_u64 << UNIFORM_BITS) as f64) as u64
    }

    #[test]
    fn winners_of_the_law_are_winners_among_candidates() {
        // Masses and ratios that differ for every cell.
        let good: Vec<f64> = (0..20).map(|cell| 1.0 + f64::from(cell * 7 % 20)).collect();
        let other: Vec<f64> = (0..20).map(|cell| 1.0 + f64::from(cell * 3 % 20)).collect();
        let total: f64 = good.iter().sum();
        let law = Law::new(&good, &other, Candidates::Many, 1000, &Stream::new(1, 1));
        let (uniforms, draws) = (Stream::new(2, 0), Stream::new(2, 1));
        let n_trials = 200_000;
        let mut by_law = [0_i32; 20];
        let mut by_draws = [0_i32; 20];
        for trial_idx in 0..n_trials {
            by_law[law.cell(trial_idx, uniforms.bits(trial_idx))] += 1;
            let candidate = |draw_idx| {
                let mut mass = draws.unit(trial_idx * 24 + draw_idx) * total;
                let is_reached = |cell: &usize| {
                    mass -= good[*cell];
                    mass < 0.0
                };
                (0..19).find(is_reached).unwrap_or(19)
            };
            let ratio = |cell: usize| good[cell] / other[cell];
            let winner = (0..24).map(candidate).max_by(|a, b| ratio(*a).total_cmp(&ratio(*b))).unwrap();
            by_draws[winner] += 1;
        }
        for cell in 0..20 {
            let deviation = f64::from(by_draws[cell].max(25)).sqrt() * 1.5;
            let difference = f64::from((by_law[cell] - by_draws[cell]).abs());
            assert!(difference < 5.0 * deviation, "cell {cell}: {} {}", by_law[cell], by_draws[cell]);
        }
        assert!(by_law.iter().filter(|count| **count > 1000).count() >= 3, "{by_law:?}");
    }

    #[test]
    fn candidates_in_turn_win_with_the_power_of_their_number() {
        // The second cell has the higher ratio; the first one wins if all candidates fall there.
        let law = Law::new(&[1.0, 3.0], &[2.0, 1.0], Candidates::Spread, 1000, &Stream::new(0, 0));
        for (trial_idx, n_candidates) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 1)] {
            let n_draws = 1 << 18;
            let draw = |idx: u32| law.cell(trial_idx, integer((f64::from(idx) + 0.5) / f64::from(n_draws)));
            let n_first = (0..n_draws).filter(|idx| draw(*idx) == 0).count();
            assert_eq!(n_first, (n_draws as usize) >> (2 * n_candidates), "{n_candidates} candidates");
        }
    }

    #[test]
    fn every_cell_is_found_where_its_probability_lies() {
        let good: Vec<f64> = (0..256).map(|cell| f64::from(1 + cell * 37 % 101)).collect();
        let law = Law::new(&good, &[1.0; 256], Candidates::Spread, 1000, &Stream::new(5, 5));
        let total: f64 = good.iter().sum();
        let n_draws = 1 << 20;
        let mut counts = vec![0_u32; 256];
        (0..n_draws).for_each(|idx| counts[law.cell(0, integer(f64::from(idx) / f64::from(n_draws)))] += 1);
        for (count, good) in counts.iter().zip(&good) {
            assert!((f64::from(*count) - good / total * f64::from(n_draws)).abs() <= 2.0);
        }
    }

    #[test]
    fn ranks_are_the_same_with_and_without_a_table() {
        for n_cells in [1, 2, 7, 256] {
            let mass = |cell: i32| if cell % 5 == 0 { 0.0 } else { f64::from(1 + cell * 37 % 101) };
            let good: Vec<f64> = (0..n_cells).map(|cell| mass(cell + 1)).collect();
            let other: Vec<f64> = (0..n_cells).map(|cell| f64::from(1 + cell * 11 % 13)).collect();
            let law = |n_draws| Law::new(&good, &other, Candidates::Spread, n_draws, &Stream::new(5, 5));
            let (searched, tabulated) = (law(MIN_TABULATED - 1), law(MIN_TABULATED));
            assert!(searched.tables.is_empty() && tabulated.tables.len() == 4);
            let ends = (0..4).flat_map(|turn| tabulated.tables[turn].end.map(|end| (turn, end)));
            let at_ends = ends.flat_map(|(turn, end)| [(turn, end.saturating_sub(1)), (turn, end % TOP)]);
            let anywhere = (0..1 << 14).map(|trial| (trial % 4, Stream::new(6, 6).bits(trial as u64)));
            for (turn, uniform) in at_ends.chain(anywhere) {
                assert_eq!(searched.cell(turn as u64, uniform), tabulated.cell(turn as u64, uniform));
            }
        }
    }
}
