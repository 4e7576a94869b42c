//! The law of the winner: what picking the best of m candidates comes to, without drawing candidates.
//!
//! Candidates are drawn from the density of good observations, and the one wins whose ratio of good to other density is highest.
//! Order the cells by that ratio, and let F be the mass of the good density up to and including a cell in that order: the winner
//! of m candidates lies at or below it with probability F^m. So one uniform number u and the place where F reaches u^(1/m)
//! replace m draws and 2m densities.

use super::cells::MAX_CELLS;
use crate::rng::Stream;

/// Buckets of the table that starts the search for a place.
const N_BUCKETS: usize = 256;

/// The cells of a parameter in ascending order of their ratio, with the cumulative mass of the good density.
#[derive(Clone, Debug, Default)]
pub(super) struct Law {
    order: Vec<u8>,
    cumulative: Vec<f64>,
    /// Per bucket of the cumulative mass, the first rank that may hold it.
    first_rank: Vec<u8>,
}

impl Law {
    /// The law of two densities given as masses of cells. Ratios that are equal but for rounding are ordered by chance, so that
    /// no side of a plateau is preferred in the long run.
    pub(super) fn new(good: &[f64], other: &[f64], chance: &Stream) -> Self {
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
        let mut cumulative: Vec<f64> = order
            .iter()
            .map(|cell| {
                mass += good[usize::from(*cell)];
                mass / total
            })
            .collect();
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        let mut rank = 0;
        let first_rank = (0..N_BUCKETS)
            .map(|bucket| {
                while cumulative[rank] < bucket as f64 / N_BUCKETS as f64 {
                    rank += 1;
                }
                rank as u8
            })
            .collect();
        Self { order, cumulative, first_rank }
    }

    /// The cell where the cumulative mass reaches a number in `0..=1`.
    #[inline]
    pub(super) fn cell(&self, mass: f64) -> usize {
        let bucket = ((mass * N_BUCKETS as f64) as usize).min(N_BUCKETS - 1);
        let mut rank = usize::from(self.first_rank[bucket]);
        while self.cumulative[rank] < mass && rank + 1 < self.cumulative.len() {
            rank += 1;
        }
        usize::from(self.order[rank])
    }
}

/// How many candidates a winner is picked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// Twenty-four, the greed that suits one trial at a time.
    Many,
    /// One, two, four or eight in turn: a batch that shares one density should not crowd at its peak.
    InTurn,
}

impl Candidates {
    /// The cumulative mass at which the winner of a trial lies.
    #[inline]
    pub(super) fn winning_mass(self, trial_idx: u64, uniform: f64) -> f64 {
        match (self, trial_idx % 4) {
            (Self::Many, _) => libm::cbrt(uniform.sqrt().sqrt().sqrt()),
            (Self::InTurn, 0) => uniform,
            (Self::InTurn, 1) => uniform.sqrt(),
            (Self::InTurn, 2) => uniform.sqrt().sqrt(),
            (Self::InTurn, _) => uniform.sqrt().sqrt().sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winners_of_the_law_are_winners_among_candidates() {
        // Masses and ratios that differ for every cell.
        let good: Vec<f64> = (0..20).map(|cell| 1.0 + f64::from(cell * 7 % 20)).collect();
        let other: Vec<f64> = (0..20).map(|cell| 1.0 + f64::from(cell * 3 % 20)).collect();
        let total: f64 = good.iter().sum();
        let law = Law::new(&good, &other, &Stream::new(1, 1));
        let (uniforms, draws) = (Stream::new(2, 0), Stream::new(2, 1));
        let n_trials = 200_000;
        let mut by_law = [0_i32; 20];
        let mut by_draws = [0_i32; 20];
        for trial_idx in 0..n_trials {
            by_law[law.cell(Candidates::Many.winning_mass(trial_idx, uniforms.unit(trial_idx)))] += 1;
            let candidate = |draw_idx| {
                let mut mass = draws.unit(trial_idx * 24 + draw_idx) * total;
                (0..19)
                    .find(|cell| {
                        mass -= good[*cell];
                        mass < 0.0
                    })
                    .unwrap_or(19)
            };
            let winner = (0..24)
                .map(candidate)
                .max_by(|a, b| (good[*a] / other[*a]).total_cmp(&(good[*b] / other[*b])))
                .unwrap();
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
    fn one_candidate_is_a_draw_from_the_good_density() {
        let law = Law::new(&[1.0, 3.0], &[1.0, 1.0], &Stream::new(0, 0));
        let n_second = (0..1000).filter(|idx| law.cell((f64::from(*idx) + 0.5) / 1000.0) == 1).count();
        assert_eq!(n_second, 750);
        assert_eq!((law.cell(0.0), law.cell(1.0)), (0, 1));
    }

    #[test]
    fn candidates_in_turn_are_powers_of_two() {
        for (trial_idx, n_candidates) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 1)] {
            let mass = Candidates::InTurn.winning_mass(trial_idx, 0.3);
            assert!((mass.powi(n_candidates) - 0.3).abs() < 1e-12);
        }
        assert!((Candidates::Many.winning_mass(5, 0.3).powi(24) - 0.3).abs() < 1e-12);
    }
}
