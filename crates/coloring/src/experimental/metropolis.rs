//! Metropolis walks through colourings: what tempering and annealing have in common.
//!
//! A proposal is a vertex and a colour by chance. If the vertex is in conflict, it takes the colour with a probability that falls with what that costs: more conflicts, and for coupled
//! walks, fewer pairs of vertices that share a class here and in the colourings beside it. Probabilities are compared as logarithms to the base 2 in 65536ths, from a table made once on the host, so
//! that all is done in integers, and kernels accept what the host accepts.

pub(crate) mod device;
mod walker;

pub use device::DeviceWalkers;

use tidemill_gpu::GpuError;

use crate::random::{Random, mix};
use crate::slot::Slots;

/// One in logarithms.
const ONE: f64 = 65_536.0;

/// A walk of one colouring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The colouring.
    pub slot: usize,
    /// Number of the first proposal; chances are a function of it.
    pub first: u64,
    /// Proposals.
    pub count: u64,
    /// Chances.
    pub random: Random,
    /// What a conflict weighs, as [`weight`] gives it.
    pub weight: u32,
    /// What a shared pair of vertices weighs; 0 for a walk on its own.
    pub coupling: u32,
    /// The two colourings that it is coupled to. They do not walk at the same time.
    pub beside: [usize; 2],
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Conflicts at its end.
    pub conflicts: u32,
    /// The fewest on the way.
    pub best_conflicts: u32,
}

/// Colourings that walk, many at a time.
///
/// - All implementations give the same numbers for the same calls.
/// - A walk ends early where there are no conflicts.
pub trait Walkers: Slots {
    /// The colouring with the fewest conflicts on the last walk.
    fn read_best(&mut self, slot: usize) -> Result<Vec<u32>, GpuError>;

    /// Lets colourings walk, each at most once; ends in the order of the walks.
    fn walk(&mut self, walks: &[Walk]) -> Result<Vec<Walked>, GpuError>;
}

/// The weight of an energy of 1 at a temperature: its logarithm to the base 2 as a probability.
pub fn weight(energy: f64, temperature: f64) -> u32 {
    let bits = energy / temperature * std::f64::consts::LOG2_E * ONE;
    bits.clamp(0.0, f64::from(1_u32 << 26)) as u32
}

/// Logarithms to the base 2 of 1 + i / 256, in 65536ths.
pub(crate) fn logarithms() -> [u32; 256] {
    std::array::from_fn(|i| (libm::log2(1.0 + i as f64 / 256.0) * ONE + 0.5) as u32)
}

/// Minus the logarithm to the base 2 of a random number below 1, in 65536ths.
#[inline(always)]
fn log_of_chance(logarithms: &[u32; 256], bits: u32) -> i64 {
    let number = bits | 1;
    let zeros = number.leading_zeros();
    let rest = number.checked_shl(zeros + 1).unwrap_or(0) >> 24;
    i64::from(zeros + 1) * ONE as i64 - i64::from(logarithms[rest as usize])
}

/// The second random number of a proposal.
#[inline(always)]
fn chance_of(bits: u64) -> u32 {
    (mix(bits) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptance_follows_the_temperature() {
        let table = logarithms();
        let random = Random::new(3, 3);
        for (energy, temperature) in [(1.0, 1.0), (1.0, 0.3), (2.0, 0.5), (0.1, 2.0)] {
            let cost = i64::from(weight(energy, temperature));
            let accepted =
                (0..200_000).filter(|t| cost <= log_of_chance(&table, chance_of(random.bits(*t)))).count();
            let (share, expected) = (accepted as f64 / 200_000.0, (-energy / temperature).exp());
            assert!((share - expected).abs() < 0.004, "{energy} at {temperature}: {share}, not {expected}");
        }
    }

    #[test]
    fn logarithms_are_those_of_the_number() {
        let table = logarithms();
        for bits in [0, 1, 2, 3, 0xffff_ffff, 0x8000_0000, 0x1234_5678] {
            let exact = -(f64::from(bits | 1) / 4_294_967_296.0).log2() * ONE;
            let found = log_of_chance(&table, bits) as f64;
            assert!((found - exact).abs() < 380.0, "{bits}: {found}, not {exact}");
        }
    }
}
