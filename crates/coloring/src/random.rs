//! Random numbers that are a function of where they are used: seed, stream and counter. The same on the host and in kernels.
//!
//! A search draws number `t` in its iteration `t`, so there is no state to carry between threads, launches or devices. `random.cuh` is
//! the twin for kernels; integers only.

use tidemill_gpu::kernel_structs;

/// The twin for kernels, to be spliced behind `tidemill.cuh`.
pub const PIECE: (&str, &str) = ("coloring/random.cuh", include_str!("random.cuh"));

/// 2^64 divided by the golden ratio, made odd.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// One stream of random numbers, addressed by a counter: a mix of the terms of a Weyl sequence of its own.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Random {
        start: u64,
        increment: u64,
    }
}

impl Random {
    /// The stream of this number under a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let start = mix(mix(seed.wrapping_add(WEYL)).wrapping_add(stream.wrapping_mul(WEYL)));
        Self { start, increment: mix(start ^ WEYL) | 1 }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&self, counter: u64) -> u64 {
        mix(self.start.wrapping_add(counter.wrapping_mul(self.increment)))
    }

    /// A number in `0..n`; 0 if `n` is 0.
    #[inline]
    pub fn below(&self, counter: u64, n: u32) -> u32 {
        scale((self.bits(counter) >> 32) as u32, n)
    }
}

/// 32 random bits to a number in `0..n`.
#[inline]
pub(crate) fn scale(bits: u32, n: u32) -> u32 {
    ((u64::from(bits) * u64::from(n)) >> 32) as u32
}

/// A bijection of 64 bits in which every input bit flips every output bit about half of the time.
#[inline]
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_over_their_range() {
        let random = Random::new(7, 3);
        let mut counts = [0_u32; 10];
        for counter in 0..100_000 {
            counts[random.below(counter, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = Random::new(1, 0);
        for other in [Random::new(1, 1), Random::new(2, 0)] {
            assert!((0..64).all(|counter| first.bits(counter) != other.bits(counter)));
        }
        assert_eq!(first.below(9, 0), 0);
    }
}
