//! Random decisions read from a list of numbers.
//!
//! A test framework that makes the list shorter and its numbers smaller makes the case simpler: 0 is always the plainest choice,
//! and a tape that has ended reads as zeros.

/// A list of numbers that is read from its beginning.
pub struct Tape<'a> {
    numbers: &'a [u32],
    at: usize,
}

impl<'a> Tape<'a> {
    /// The beginning of this list.
    pub fn new(numbers: &'a [u32]) -> Self {
        Self { numbers, at: 0 }
    }

    fn next(&mut self) -> u32 {
        let number = self.numbers.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        number
    }

    /// A number from 0 up to, not including, `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.next()) * n as u64) >> 32) as usize
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// One of several.
    pub fn pick<'b, T>(&mut self, options: &'b [T]) -> &'b T {
        &options[self.below(options.len())]
    }

    /// The seed of a stream of many numbers.
    pub fn stream(&mut self) -> Stream {
        Stream(u64::from(self.next()))
    }
}

/// Many random numbers from one decision.
pub struct Stream(u64);

impl Stream {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..1`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: f64) -> bool {
        self.unit() * 100.0 < percent
    }

    /// A number from 0 up to, not including, `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
}
