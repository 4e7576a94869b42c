//! Random numbers for what runs on the host alone, one after the other: generated graphs, random orders.

/// SplitMix64: every seed gives a sequence of its own.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    state: u64,
}

impl Draw {
    /// The sequence of a seed and a purpose; two purposes share nothing.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut draw = Self { state: seed };
        let mixed = draw.next();
        Self { state: mixed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of `0..end`, which must not be empty.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A number of [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Brings the values into a random order.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for at in (1..values.len()).rev() {
            values.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_seeds_differ() {
        let mut draw = Draw::new(1, 0);
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            counts[draw.below(10)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_ne!(Draw::new(1, 0).next(), Draw::new(2, 0).next());
        assert_ne!(Draw::new(1, 0).next(), Draw::new(1, 1).next());
    }
}
