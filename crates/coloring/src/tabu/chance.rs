//! What is left to chance in an iteration of a tabu search: which of equally good moves is made, and how long its return is forbidden.
//!
//! Of equally good moves the one is made whose vertex has the least rank, and of that vertex's colours the one of least rank. Ranks are random affine bijections of the
//! numbers of vertices and colours, drawn anew in every iteration. They do not depend on the order in which moves are scanned, so that a kernel
//! may look at them in any; they cost one multiplication; and no two are equal.

use crate::random::{Random, scale};

/// No return is forbidden for longer, which bounds what a kernel has to remember.
pub const MAX_TENURE: u64 = 511;

/// The mean of the tenures that are drawn where so many vertices are in conflict.
pub(crate) fn mean_tenure(n_listed: usize) -> f64 {
    (4.5 + (n_listed * 6 / 10) as f64).min(MAX_TENURE as f64)
}

/// The chances of one iteration.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    bits: u64,
    vertex_mask: u32,
    color_mask: u32,
}

/// The least mask of ones that covers the numbers below `count`.
pub(super) fn mask(count: usize) -> u32 {
    u32::MAX.checked_shr((count.saturating_sub(1) as u32).leading_zeros()).unwrap_or(0)
}

impl Chance {
    #[inline(always)]
    pub(super) fn draw(random: &Random, iteration: u64, n: usize, k: usize) -> Self {
        Self { bits: random.bits(iteration), vertex_mask: mask(n), color_mask: mask(k) }
    }

    #[inline(always)]
    pub(super) fn vertex_rank(&self, vertex: u32) -> u32 {
        let (factor, offset) = (self.bits as u32 | 1, (self.bits >> 32) as u32);
        vertex.wrapping_mul(factor).wrapping_add(offset) & self.vertex_mask
    }

    #[inline(always)]
    pub(super) fn color_rank(&self, color: u32) -> u32 {
        let (factor, offset) = ((self.bits >> 16) as u32 | 1, (self.bits >> 40) as u32);
        color.wrapping_mul(factor).wrapping_add(offset) & self.color_mask
    }

    /// For how many iterations the way back is forbidden: 0 … 9, and six for every ten vertices in conflict.
    #[inline(always)]
    pub(super) fn tenure(&self, n_listed: usize) -> u64 {
        let bits = ((self.bits >> 32) as u32 ^ self.bits as u32).wrapping_mul(0x9e37_79b1);
        (u64::from(scale(bits, 10)) + n_listed as u64 * 6 / 10).min(MAX_TENURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_permutations() {
        for (n, k) in [(13, 5), (1, 1), (16, 8), (1_000, 83)] {
            for iteration in 0..20 {
                let chance = Chance::draw(&Random::new(1, 2), iteration, n, k);
                let set = |ranks: Vec<u32>| ranks.into_iter().collect::<std::collections::BTreeSet<_>>();
                assert_eq!(set((0..n as u32).map(|v| chance.vertex_rank(v)).collect()).len(), n);
                assert_eq!(set((0..k as u32).map(|c| chance.color_rank(c)).collect()).len(), k);
                assert!((0..n as u32).all(|v| chance.vertex_rank(v) < (n as u32).next_power_of_two()));
            }
        }
    }

    #[test]
    fn ties_are_broken_fairly() {
        let random = Random::new(5, 0);
        let tied = [3, 4, 500, 501, 999];
        let (mut wins, mut color_wins) = ([0; 5], [0; 5]);
        for iteration in 0..50_000 {
            let chance = Chance::draw(&random, iteration, 1_000, 83);
            wins[(0..5).min_by_key(|&i| chance.vertex_rank(tied[i])).unwrap()] += 1;
            color_wins[(0..5).min_by_key(|&i| chance.color_rank([0, 1, 40, 41, 82][i])).unwrap()] += 1;
        }
        assert!(
            wins.iter().chain(&color_wins).all(|wins| (8_000..12_000).contains(wins)),
            "{wins:?} {color_wins:?}"
        );
    }

    #[test]
    fn tenures_are_spread_and_bounded() {
        let mut counts = [0; 10];
        for iteration in 0..10_000 {
            let chance = Chance::draw(&Random::new(9, 1), iteration, 100, 10);
            counts[chance.tenure(0) as usize] += 1;
            assert_eq!(chance.tenure(20), chance.tenure(0) + 12);
            assert_eq!(chance.tenure(10_000), MAX_TENURE);
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!((mean_tenure(0), mean_tenure(20), mean_tenure(10_000)), (4.5, 16.5, MAX_TENURE as f64));
    }
}
