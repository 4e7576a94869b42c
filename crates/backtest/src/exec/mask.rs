//! The bars on which a condition is true, found one after the other and computed word by word as far as needed.

mod left;

use super::formula::{Formula, value_at};
use super::frame::{Frame, MOST_WORDS as BLOCK, Opening, Scratch, WORD};
use super::simd;
use crate::graph::Op2;
use crate::plan::{Decided, Tape};
use left::Left;
use tidemill_market::indicator::{Tested, ZscoreTest};

/// The bars on which a condition is true, written out.
#[derive(Debug)]
pub struct Mask {
    words: Vec<u64>,
    /// Set bits before each word, and of all words.
    rank: Vec<u32>,
    /// Bars of the set bits, closed by `u32::MAX`.
    bars: Vec<u32>,
}

impl Mask {
    /// From one bit per bar.
    pub fn new(words: Vec<u64>) -> Self {
        let mut rank = Vec::with_capacity(words.len() + 1);
        let mut bars = Vec::new();
        for (word, bits) in words.iter().enumerate() {
            rank.push(bars.len() as u32);
            let mut left = *bits;
            while left != 0 {
                bars.push((word * WORD) as u32 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        rank.push(bars.len() as u32);
        bars.push(u32::MAX);
        Self { words, rank, bars }
    }

    /// Memory it takes.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8 + (self.rank.len() + self.bars.len()) * 4
    }

    /// Whether the condition is true on a bar.
    #[inline]
    pub fn at(&self, bar: usize) -> bool {
        self.words[bar / WORD] >> (bar % WORD) & 1 == 1
    }

    /// First bar from `from` on where it is true, or something past the end.
    ///
    /// Both the rest of this word and the first bar of a later word are looked at, so that nothing has to be predicted.
    #[inline(always)]
    pub fn next(&self, from: usize) -> usize {
        let word = from / WORD;
        let bits = self.words[word] & (u64::MAX << (from % WORD));
        let later = self.bars[self.rank[word + 1] as usize] as usize;
        if bits != 0 { word * WORD + bits.trailing_zeros() as usize } else { later }
    }

    /// All bars where it is true.
    pub fn bars(&self) -> &[u32] {
        &self.bars[..self.bars.len() - 1]
    }
}

/// Bits of all bars moved to later bars; bars that would read before the first have none.
pub fn later(bits: &[u64], by: f64) -> Vec<u64> {
    let n_words = bits.len();
    let mut out = vec![0; n_words];
    // A shift that is negative or not available reads nothing.
    if by >= 0.0 && by < (n_words * WORD) as f64 {
        let (words, rest) = (by as usize / WORD, by as usize % WORD);
        for at in words..n_words {
            let carry = if at > words && rest > 0 { bits[at - words - 1] >> (WORD - rest) } else { 0 };
            out[at] = bits[at - words] << rest | carry;
        }
    }
    out
}

/// A formula at one bar costs about as much as this many bars of a whole block.
const POINT: usize = 12;

/// What a quick test costs per bar, where reading a column costs half.
const QUICK: f64 = 2.0;

/// What the bits of a comparison cost.
const COMPARED: f64 = 0.01;

/// About how often a number above 1 can be halved until 1 is left: its binary logarithm, linear between powers of two. It ranks factors, and
/// the order in which they are asked decides no bit.
fn halvings(ratio: f64) -> f64 {
    (ratio.to_bits() - 1.0_f64.to_bits()) as f64 / (1_u64 << 52) as f64
}

/// A condition that no mask decides.
struct Factor<'a> {
    tape: &'a Tape,
    formula: Formula<'a>,
    quick: Option<ZscoreTest<'a>>,
    /// The column and the number that it compares, if it is a comparison of these.
    comparison: Option<(Op2, &'a [f64], f64)>,
    /// About what a bar costs.
    cost: f64,
    /// Bars that it was asked for so far, and those where it was true.
    asked: f64,
    passed: f64,
    /// What it costs to get rid of half of the bars, as it was when this many had been asked for: divisions would be felt in every block.
    rank: f64,
    ranked_at: f64,
    /// How many bars of a block are worth one bar alone; tests set it to take one way throughout.
    point: usize,
    reads_tiles: bool,
    /// Its number among the comparisons whose bits are there, if it is one of them.
    compared: Option<usize>,
    /// Whether it may not be true on bars that it has left of the block at hand.
    is_open: bool,
}

impl<'a> Factor<'a> {
    fn new(tape: &'a Tape, frame: &Frame<'a>) -> Self {
        let (formula, quick) = (Formula::new(tape, frame), frame.quick_test(tape));
        let cost = if quick.is_some() { QUICK } else { frame.cost(tape) };
        let reads_tiles = frame.reads_tiles(tape);
        let comparison = formula.comparison().filter(|_| !reads_tiles);
        let (asked, passed, rank, point) = (2.0, 1.0, 0.0, POINT);
        let compared = None;
        let mut factor = Self {
            tape,
            formula,
            quick,
            comparison,
            cost,
            asked,
            passed,
            rank,
            ranked_at: 0.0,
            point,
            reads_tiles,
            compared,
            is_open: false,
        };
        factor.count(0, 0);
        factor
    }

    /// Counts bars that it was asked for, and those where it was true.
    fn count(&mut self, n_asked: usize, n_passed: usize) {
        self.asked += n_asked as f64;
        self.passed += n_passed as f64;
        if self.asked >= 2.0 * self.ranked_at {
            self.ranked_at = self.asked;
            self.rank = self.cost / halvings(self.asked / self.passed);
        }
    }

    /// Whether so many bars are better asked for one by one.
    fn are_few(&self, n_left: usize, block: &Block) -> bool {
        n_left.saturating_mul(self.point) <= block.len * WORD
    }

    /// Keeps the bits of the bars where it is true.
    fn keep(&self, block: &mut Block, n_left: usize, frame: &Frame<'_>, scratch: &mut Scratch) {
        match self.compared {
            Some(compared) => {
                let words = &frame.compared[compared].words;
                block.bits[..block.len].iter_mut().zip(words).for_each(|(bits, word)| *bits &= word);
            }
            None => self.keep_exactly(block, n_left, frame, scratch),
        }
    }

    /// Whether it is true on a bar.
    fn at(&self, bar: usize, points: &mut Vec<f64>) -> bool {
        let passes = self.quick.as_ref().and_then(|quick| quick.passes(bar));
        passes.unwrap_or_else(|| self.formula.value(bar, &Opening::NONE, points) == 1.0)
    }

    /// Compares the bars of some words, if it is a comparison with a number and the column has all of them;
    /// says whether it was done.
    fn compared_words(&self, word: usize, out: &mut [u64]) -> bool {
        let Some((op, column, number)) = self.comparison else { return false };
        let Some(values) = column.get(word * WORD..(word + out.len()) * WORD) else { return false };
        simd::compare_scalar(op, values, number, out);
        true
    }

    /// Keeps the bits of the bars where it is true: bar by bar where few are left, else all words that have one.
    fn keep_exactly(&self, block: &mut Block, n_left: usize, frame: &Frame<'_>, scratch: &mut Scratch) {
        if self.comparison.is_none() && self.are_few(n_left, block) {
            let points = &mut scratch.points;
            return match self.reads_tiles {
                true => block.retain(|bar| value_at(self.tape, frame, bar, points) == 1.0),
                false => block.retain(|bar| self.formula.value(bar, &Opening::NONE, points) == 1.0),
            };
        }
        let (first, mut rest) = (block.first, &mut block.bits[..block.len]);
        let mut word = first;
        while let Some(empty) = rest.iter().position(|bits| *bits != 0) {
            rest = &mut rest[empty..];
            word += empty;
            let n_words = rest.iter().position(|bits| *bits == 0).unwrap_or(rest.len());
            let mut found = [0; BLOCK];
            let truths = match self.compared_words(word, &mut found[..n_words]) {
                true => &found[..n_words],
                false => frame.truth_words(self.tape, word, n_words, scratch),
            };
            rest.iter_mut().zip(truths).for_each(|(bits, truth)| *bits &= truth);
            rest = &mut rest[n_words..];
            word += n_words;
        }
    }
}

/// The truth of some words.
struct Block {
    /// The first word; `usize::MAX` if nothing was computed yet.
    first: usize,
    len: usize,
    /// Past its length there are none.
    bits: [u64; BLOCK],
}

impl Block {
    /// Keeps those bars of which it is true.
    fn retain(&mut self, mut is_true: impl FnMut(usize) -> bool) {
        for (word, bits) in (self.first..).zip(&mut self.bits[..self.len]) {
            let mut left = *bits;
            while left != 0 {
                let lane = left.trailing_zeros();
                left &= left - 1;
                *bits &= !(u64::from(!is_true(word * WORD + lane as usize)) << lane);
            }
        }
    }

    fn n_left(&self) -> usize {
        simd::n_ones(&self.bits)
    }
}

/// A condition of one trial over one symbol.
pub struct Signal<'a> {
    /// Words of masks whose conjunction contains the truth; all of it if there are no factors.
    masks: Vec<&'a [u64]>,
    /// The mask, if there is one that decides everything.
    exact: Option<&'a Mask>,
    /// What no mask decides; all must be true. What gets rid of most bars at the least cost comes first.
    factors: Vec<Factor<'a>>,
    never: bool,
    /// The block computed last.
    block: Block,
    /// Blocks that were written out in advance, by their number, and their words.
    written: Vec<bool>,
    words: Vec<u64>,
    /// The last bar that was found, and a bar from which on there is none before it: whatever is asked between has the same answer. Without
    /// it a signal that is hardly ever true would be looked for to the end of the data by every trade.
    found: (usize, usize),
    /// Whether it reads columns of which only some bars are there: then only blocks that were written out in advance are known.
    reads_tiles: bool,
    /// Words of a block.
    block_words: usize,
    n_bars: usize,
}

impl<'a> Signal<'a> {
    /// A condition that a mask decides, or that `masks` bound and what is `left` decides.
    pub fn new(exact: Option<&'a Mask>, masks: Vec<&'a [u64]>, left: &'a Decided, frame: &Frame<'a>) -> Self {
        let (never, tapes) = match left {
            Decided::Never => (true, &[][..]),
            Decided::Open(tapes) => (false, &tapes[..]),
        };
        let exact = exact.filter(|_| !never);
        let factors: Vec<Factor<'_>> = tapes.iter().map(|tape| Factor::new(tape, frame)).collect();
        let reads_tiles = factors.iter().any(|factor| factor.reads_tiles);
        let block = Block { first: usize::MAX, len: 0, bits: [0; BLOCK] };
        let (written, words) = (Vec::new(), Vec::new());
        let found = (1, 0);
        let (block_words, n_bars) = (frame.block_words, frame.n_bars);
        Self { masks, exact, factors, never, block, written, words, found, reads_tiles, block_words, n_bars }
    }

    /// Asks for what its factors read of tiles, by their formulas: `read` says which of the comparisons one is, if it is one.
    pub fn read_tiles(&mut self, mut read: impl FnMut(&Tape) -> Option<usize>) {
        for factor in self.factors.iter_mut().filter(|factor| factor.reads_tiles) {
            factor.compared = read(factor.tape);
            if factor.compared.is_some() {
                (factor.cost, factor.ranked_at) = (COMPARED, 0.0);
                factor.count(0, 0);
            }
        }
    }

    /// Whether its blocks have to be written out in advance, each while the tiles that it reads are there.
    pub fn reads_tiles(&self) -> bool {
        self.reads_tiles
    }

    /// Writes out the block of a bar. Trials that do so together find what they all read in the cache.
    pub fn write(&mut self, bar: usize, frame: &Frame<'_>, scratch: &mut Scratch) {
        if self.never || self.exact.is_some() {
            return;
        }
        let n_words = self.n_bars.div_ceil(WORD);
        self.written.resize(n_words.div_ceil(self.block_words), false);
        self.words.resize(n_words, 0);
        let number = bar / (self.block_words * WORD);
        let first = number * self.block_words;
        self.compute(first, 0, frame, scratch);
        self.words[first..][..self.block.len].copy_from_slice(&self.block.bits[..self.block.len]);
        self.written[number] = true;
    }

    /// Computes the block of a bar for those who ask for no bar before `from` any more.
    pub fn look(&mut self, bar: usize, from: usize, frame: &Frame<'_>, scratch: &mut Scratch) {
        if !self.never && self.exact.is_none() {
            let block_bars = self.block_words * WORD;
            self.compute(bar / block_bars * self.block_words, from, frame, scratch);
        }
    }

    /// The series that its quick tests read.
    pub fn tested(&self) -> impl Iterator<Item = Tested<'a>> {
        self.factors.iter().filter_map(|factor| Some(factor.quick.as_ref()?.series()))
    }

    /// The mask, if there is one that decides everything.
    pub fn exact(&self) -> Option<&'a Mask> {
        self.exact
    }

    /// First bar from `from` on where the condition is true, or something not before `upto`: bars from there on
    /// need not be known.
    #[inline(always)]
    pub fn next(&mut self, from: usize, upto: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> usize {
        let upto = upto.min(self.n_bars);
        if from >= upto {
            return self.n_bars;
        }
        match self.exact {
            Some(mask) => mask.next(from).min(self.n_bars),
            None => self.search(from, upto, frame, scratch),
        }
    }

    fn search(&mut self, from: usize, upto: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> usize {
        if self.never {
            return self.n_bars;
        }
        let (since, bar) = self.found;
        if since <= from && from <= bar {
            return bar;
        }
        let bar = self.scan(from, upto, frame, scratch);
        if bar < upto || upto == self.n_bars {
            self.found = (from, bar);
        }
        bar
    }

    /// Looks through the words from a bar on.
    fn scan(&mut self, from: usize, upto: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> usize {
        let mut word = from / WORD;
        let mut bits = self.word(word, frame, scratch) & (u64::MAX << (from % WORD));
        let n_words = upto.div_ceil(WORD);
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
        match self.exact {
            Some(mask) => mask.at(bar),
            None => !self.never && self.word(bar / WORD, frame, scratch) >> (bar % WORD) & 1 == 1,
        }
    }

    #[inline(always)]
    fn word(&mut self, word: usize, frame: &Frame<'_>, scratch: &mut Scratch) -> u64 {
        // Nearly always, and there are many: a division would be felt.
        let at = word.wrapping_sub(self.block.first);
        if at < self.block.len {
            return self.block.bits[at];
        }
        let number = word / self.block_words;
        if let Some(true) = self.written.get(number) {
            return self.words[word];
        }
        if self.reads_tiles {
            // No trade enters or leaves there.
            return 0;
        }
        let first = number * self.block_words;
        self.compute(first, 0, frame, scratch);
        self.block.bits[word - first]
    }

    /// Computes a block from a bar on: what masks leave, then factor by factor what the ones before have left.
    fn compute(&mut self, first: usize, from: usize, frame: &Frame<'_>, scratch: &mut Scratch) {
        let block = &mut self.block;
        let len = self.block_words.min(self.n_bars.div_ceil(WORD) - first);
        *block = Block { first, len, bits: [0; BLOCK] };
        for (word, bits) in (first..).zip(&mut block.bits[..block.len]) {
            let past = from.saturating_sub(word * WORD);
            let asked = if past < WORD { frame.valid(word) & u64::MAX << past } else { 0 };
            *bits = self.masks.iter().fold(asked, |bits, mask| bits & mask[word]);
        }
        for quick in self.factors.iter().filter_map(|factor| factor.quick.as_ref()) {
            quick.screen(first * WORD, &mut block.bits[..block.len]);
        }
        let mut left = Left::new(block);
        self.factors.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        for factor in &mut self.factors {
            if left.n == 0 {
                break;
            }
            let n_asked = left.n;
            left.keep(factor, block, frame, scratch);
            factor.count(n_asked, left.n);
        }
        for factor in self.factors.iter().filter(|factor| factor.is_open) {
            if left.n == 0 {
                break;
            }
            left.settle(factor, block, scratch);
        }
        left.unlist(block, scratch);
    }
}

#[cfg(test)]
mod tests;
