//! The places of some bars in a block, one after the other.
//!
//! A loop over the bits of one word after the other ends where no processor can predict it, which costs more than to test the few bars that a
//! word has. A list of all of them has one end.

use multiversion::multiversion;

use super::frame::{MOST_WORDS, WORD};

/// Places that are written at once, whether there are so many or not.
const AT_ONCE: usize = 4;

/// Room for the places of all bars of a block.
pub struct Places(pub [u16; MOST_WORDS * WORD + AT_ONCE]);

impl Default for Places {
    fn default() -> Self {
        Self([0; _])
    }
}

impl Places {
    /// Lists the places of the bits that are set.
    pub fn list(&mut self, words: &[u64; MOST_WORDS]) {
        list(words, &mut self.0);
    }
}

#[multiversion(targets("x86_64+bmi1+popcnt"))]
fn list(words: &[u64; MOST_WORDS], places: &mut [u16; MOST_WORDS * WORD + AT_ONCE]) {
    let mut from = 0;
    for (word, bits) in words.iter().enumerate() {
        let (mut left, mut to) = (*bits, from);
        loop {
            for place in &mut places[to..to + AT_ONCE] {
                *place = (word * WORD) as u16 + left.trailing_zeros() as u16;
                left &= left.wrapping_sub(1);
            }
            to += AT_ONCE;
            if left == 0 {
                break;
            }
        }
        from += bits.count_ones() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_bits() {
        let full = [u64::MAX; MOST_WORDS];
        let few: [u64; MOST_WORDS] =
            std::array::from_fn(|word| (0x8000_0100_0000_0013 >> word) * (word as u64 % 3));
        for words in [[0; MOST_WORDS], full, few] {
            let is_set = |place: &usize| words[place / WORD] >> (place % WORD) & 1 == 1;
            let expected: Vec<usize> = (0..MOST_WORDS * WORD).filter(is_set).collect();
            let mut places = Places::default();
            places.list(&words);
            assert!(places.0.iter().zip(&expected).all(|(place, expected)| usize::from(*place) == *expected));
        }
    }
}
