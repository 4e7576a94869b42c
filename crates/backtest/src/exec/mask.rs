//! The bars on which a condition is true, asked for one after the other and computed word by word as far as needed.

use super::frame::{Frame, Opening, Scratch, WORD};
use crate::plan::Condition;

/// Survivors of a word up to which bars are checked one by one.
const FEW: u32 = 4;

/// A condition of one trial over one symbol.
pub struct Signal<'a> {
    condition: &'a Condition,
    /// Masks whose conjunction contains the truth; all of it if `residual` is empty.
    masks: Vec<&'a [u64]>,
    /// Factors that no mask decides.
    residual: Vec<usize>,
    /// The word computed last.
    word: usize,
    bits: u64,
    n_bars: usize,
}

impl<'a> Signal<'a> {
    /// A condition that `masks` bound and `residual` factors decide.
    pub fn new(condition: &'a Condition, masks: Vec<&'a [u64]>, residual: Vec<usize>, n_bars: usize) -> Self {
        Self { condition, masks, residual, word: usize::MAX, bits: 0, n_bars }
    }

    /// First bar from `from` on where the condition is true, or `n_bars`.
    #[inline]
    pub fn next(&mut self, from: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> usize {
        if from >= self.n_bars {
            return self.n_bars;
        }
        let mut word = from / WORD;
        let mut bits = self.word(word, frame, scratch) & (u64::MAX << (from % WORD));
        let n_words = self.n_bars.div_ceil(WORD);
        while bits == 0 {
            word += 1;
            if word == n_words {
                return self.n_bars;
            }
            bits = self.word(word, frame, scratch);
        }
        word * WORD + bits.trailing_zeros() as usize
    }

    /// Whether the condition is true on one bar.
    #[inline]
    pub fn at(&mut self, bar: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> bool {
        self.word(bar / WORD, frame, scratch) >> (bar % WORD) & 1 == 1
    }

    #[inline(always)]
    fn word(&mut self, word: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> u64 {
        if let ([mask], []) = (&self.masks[..], &self.residual[..]) {
            return mask[word];
        }
        if self.word != word {
            self.bits = self.compute(word, frame, scratch);
            self.word = word;
        }
        self.bits
    }

    fn compute(&self, word: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> u64 {
        let mut bits = self.masks.iter().fold(u64::MAX, |bits, mask| bits & mask[word]);
        for factor in &self.residual {
            if bits == 0 {
                break;
            }
            let tape = &self.condition.factors[*factor].tape;
            if bits.count_ones() <= FEW {
                let mut left = bits;
                while left != 0 {
                    let lane = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let bar = word * WORD + lane;
                    if bar >= self.n_bars || frame.point(tape, bar, &Opening::NONE, scratch) != 1.0 {
                        bits &= !(1 << lane);
                    }
                }
            } else {
                bits &= frame.truth_word(tape, word, scratch);
            }
        }
        bits
    }
}
