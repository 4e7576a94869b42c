//! Random numbers that are a function of where they are used: seed, dimension and counter.
//!
//! There is no state to share or to advance, so the numbers of a trial depend neither on the number of threads nor on how trials
//! are cut into batches, and any trial can be drawn again without its predecessors.
//!
//! A stream is SplitMix64 in its splittable form: a bijective mix of the terms of a Weyl sequence, whose start and increment are
//! mixes of seed and dimension. That generator passes the usual statistical batteries, and different increments keep streams from
//! being pieces of one another.

/// The increment that separates seeds and dimensions: 2^64 divided by the golden ratio, made odd.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// One stream of random numbers, addressed by a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    start: u64,
    increment: u64,
}

impl Stream {
    /// The stream of one dimension under a seed.
    pub fn new(seed: u64, dimension: u64) -> Self {
        let start = mix(mix(seed.wrapping_add(WEYL)).wrapping_add(dimension.wrapping_mul(WEYL)));
        let mut increment = mix(start ^ WEYL) | 1;
        // An increment with long runs of equal bits would change too few bits from one counter to the next.
        if (increment ^ (increment >> 1)).count_ones() < 24 {
            increment ^= 0xaaaa_aaaa_aaaa_aaaa;
        }
        Self { start, increment }
    }

    /// 64 random bits.
    pub fn bits(&self, counter: u64) -> u64 {
        mix(self.start.wrapping_add(counter.wrapping_mul(self.increment)))
    }

    /// A number in `0..1`, uniform on the multiples of 2^-53.
    pub fn unit(&self, counter: u64) -> f64 {
        to_unit(self.bits(counter))
    }
}

/// The upper 53 bits as a number in `0..1`.
pub(crate) fn to_unit(bits: u64) -> f64 {
    const ULP: f64 = 1.0 / (1_u64 << 53) as f64;
    (bits >> 11) as f64 * ULP
}

/// A bijection of 64 bits in which every input bit flips every output bit about half of the time.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square of counts against equal expectation, less its degrees of freedom, in standard deviations.
    fn chi_square_excess(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let chi_square: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        let freedom = (counts.len() - 1) as f64;
        (chi_square - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn units_are_uniform_along_trials() {
        for (seed, dimension) in [(0, 0), (0, 1), (1, 0), (42, 141), (u64::MAX, 9_999)] {
            let stream = Stream::new(seed, dimension);
            let mut counts = [0_u64; 256];
            for trial in 0..1 << 18 {
                counts[(stream.unit(trial) * 256.0) as usize] += 1;
            }
            let excess = chi_square_excess(&counts);
            assert!(excess.abs() < 5.0, "seed {seed} dimension {dimension}: {excess}");
        }
    }

    #[test]
    fn units_are_uniform_along_dimensions_and_along_seeds() {
        let mut by_dimension = [0_u64; 64];
        let mut by_seed = [0_u64; 64];
        for idx in 0..1 << 16 {
            by_dimension[(Stream::new(3, idx).unit(0) * 64.0) as usize] += 1;
            by_seed[(Stream::new(idx, 0).unit(0) * 64.0) as usize] += 1;
        }
        assert!(chi_square_excess(&by_dimension).abs() < 5.0);
        assert!(chi_square_excess(&by_seed).abs() < 5.0);
    }

    #[test]
    fn neighbours_are_independent() {
        let pairs: [fn(u64) -> (f64, f64); 3] = [
            |i| (Stream::new(7, 0).unit(i), Stream::new(7, 0).unit(i + 1)),
            |i| (Stream::new(7, 0).unit(i), Stream::new(7, 1).unit(i)),
            |i| (Stream::new(7, 0).unit(i), Stream::new(8, 0).unit(i)),
        ];
        for (case, pair) in pairs.iter().enumerate() {
            let mut counts = vec![0_u64; 256];
            for idx in 0..1 << 17 {
                let (a, b) = pair(idx);
                counts[(a * 16.0) as usize * 16 + (b * 16.0) as usize] += 1;
            }
            let excess = chi_square_excess(&counts);
            assert!(excess.abs() < 5.0, "case {case}: {excess}");
        }
    }

    #[test]
    fn every_counter_bit_flips_half_of_the_output() {
        let stream = Stream::new(1, 2);
        for bit in 0..64 {
            let flips: u32 = (0..1000_u64)
                .map(|counter| (stream.bits(counter) ^ stream.bits(counter ^ (1 << bit))).count_ones())
                .sum();
            let mean = f64::from(flips) / 1000.0;
            assert!((mean - 32.0).abs() < 1.0, "bit {bit}: {mean}");
        }
    }

    #[test]
    fn values_are_pinned_so_that_seeds_keep_their_meaning() {
        // Computed by a second implementation in Python.
        assert_eq!(Stream::new(0, 0).bits(0), 0x33fe_8bd4_f9c5_7863);
        assert_eq!(Stream::new(42, 3).bits(1_000_000), 0x72d5_cf46_c9ca_bc1e);
    }
}
