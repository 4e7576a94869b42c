//! Compares exponential averages bar by bar, several pairs side by side, without writing them down.
//!
//! A condition such as `ema(close, 12) < ema(close, 96)` needs one bit per bar, and nobody reads the averages themselves. Both run in the lanes
//! of vectors, each as [`ema`](super::ema) computes it, and only the outcome of the comparison leaves the registers.

use super::ema::smoothing;

/// How a first number has to stand to a second one. Not available stands in no relation to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Relation {
    #[inline(always)]
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Self::Less => a < b,
            Self::LessOrEqual => a <= b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
        }
    }
}

/// Pairs that run together: two vectors of them, because an average waits for its own last value most of the time.
const LANES: usize = 16;

/// Weights of the newest value and of the average, and the averages.
#[derive(Clone, Debug)]
struct Averages {
    a: [f64; LANES],
    b: [f64; LANES],
    y: [f64; LANES],
}

impl Averages {
    fn new(spans: impl Iterator<Item = usize>) -> Self {
        let mut a = [1.0; LANES];
        a.iter_mut().zip(spans).for_each(|(a, span)| *a = smoothing(span));
        Self { a, b: a.map(|a| 1.0 - a), y: [0.0; LANES] }
    }

    #[inline(always)]
    fn push(&mut self, x: f64) {
        for lane in 0..LANES {
            self.y[lane] = self.a[lane] * x + self.b[lane] * self.y[lane];
        }
    }
}

/// Lanes that run together, and the numbers that the averages are compared with.
#[derive(Clone, Debug)]
struct Lanes {
    first: Averages,
    /// None where the averages are compared with a series.
    second: Option<Averages>,
}

/// Comparisons `ema(x, first) ∘ ema(x, second)`, or `ema(x, first) ∘ y` with a series `y`, for several spans, some bars at a time: each call
/// goes on where the one before has stopped.
#[derive(Clone, Debug)]
pub struct EmaCompare {
    relation: Relation,
    spans: Vec<(usize, Option<usize>)>,
    lanes: Vec<Lanes>,
    has_started: bool,
}

impl EmaCompare {
    /// So many pairs take no longer than one.
    pub const LANES: usize = LANES;

    /// Before the first bar. Either all pairs have a second span, or none has.
    pub fn new(relation: Relation, spans: &[(usize, Option<usize>)]) -> Self {
        let lanes = |spans: &[(usize, Option<usize>)]| Lanes {
            first: Averages::new(spans.iter().map(|(first, _)| *first)),
            second: spans[0].1.map(|_| Averages::new(spans.iter().map(|(_, second)| second.unwrap_or(0)))),
        };
        let lanes = spans.chunks(LANES).map(lanes).collect();
        Self { relation, spans: spans.to_vec(), lanes, has_started: false }
    }

    /// Compares the next bars, 64 to a word and the last word cut short if it must be: `out` has a slice of words for each pair. `y` is the
    /// series that averages without a second span are compared with.
    pub fn advance(&mut self, x: &[f64], y: &[f64], out: &mut [&mut [u64]]) {
        for (word, x) in x.chunks(64).enumerate() {
            let y = y.get(word * 64..).unwrap_or_default();
            // The bar of the first value, where there is nothing to average yet.
            let start = if self.has_started { None } else { x.iter().position(|v| v.is_finite()) };
            self.has_started |= start.is_some();
            for (part, lanes) in self.lanes.iter_mut().enumerate() {
                let words = lanes.word(self.relation, x, y, start);
                let from = part * LANES;
                for (lane, bits) in words.into_iter().enumerate().take(self.spans.len() - from) {
                    let (first, second) = self.spans[from + lane];
                    let is_none = first == 0 || second == Some(0);
                    out[from + lane][word] = if is_none { 0 } else { bits };
                }
            }
        }
    }
}

impl Lanes {
    /// Compares up to 64 bars; on the bar `start` the averages begin with the value.
    fn word(&mut self, relation: Relation, x: &[f64], y: &[f64], start: Option<usize>) -> [u64; LANES] {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the machine has AVX-512F, BW and DQ, as was just asked.
            return unsafe { x86::word(self, relation, x, y, start) };
        }
        self.word_plain(relation, x, y, start)
    }

    /// The specification of [`Self::word`].
    fn word_plain(&mut self, relation: Relation, x: &[f64], y: &[f64], start: Option<usize>) -> [u64; LANES] {
        let mut words = [0; LANES];
        for (bar, &x) in x.iter().enumerate().filter(|(_, x)| x.is_finite()) {
            for averages in [Some(&mut self.first), self.second.as_mut()].into_iter().flatten() {
                if Some(bar) == start {
                    averages.y = [x; LANES];
                } else {
                    averages.push(x);
                }
            }
            for (lane, word) in words.iter_mut().enumerate() {
                let other = match &self.second {
                    Some(second) => second.y[lane],
                    None => y.get(bar).copied().unwrap_or(f64::NAN),
                };
                *word |= u64::from(relation.holds(self.first.y[lane], other)) << bar;
            }
        }
        words
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Averages, LANES, Lanes, Relation};

    /// Two vectors of lanes.
    type Pair = [__m512d; 2];

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(values: &[f64; LANES]) -> Pair {
        // SAFETY: the array holds sixteen values, and each load reads eight of them.
        unsafe { [_mm512_loadu_pd(values.as_ptr()), _mm512_loadu_pd(values.as_ptr().add(8))] }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(values: Pair, to: &mut [f64; LANES]) {
        // SAFETY: the array holds sixteen values, and each store writes eight of them.
        unsafe {
            _mm512_storeu_pd(to.as_mut_ptr(), values[0]);
            _mm512_storeu_pd(to.as_mut_ptr().add(8), values[1]);
        }
    }

    /// Weights and averages in registers.
    struct Registers {
        a: Pair,
        b: Pair,
        y: Pair,
    }

    impl Registers {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn new(averages: &Averages) -> Self {
            Self { a: load(&averages.a), b: load(&averages.b), y: load(&averages.y) }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn push(&mut self, x: __m512d, is_first: bool) {
            if is_first {
                self.y = [x; 2];
                return;
            }
            self.y[0] = _mm512_add_pd(_mm512_mul_pd(self.a[0], x), _mm512_mul_pd(self.b[0], self.y[0]));
            self.y[1] = _mm512_add_pd(_mm512_mul_pd(self.a[1], x), _mm512_mul_pd(self.b[1], self.y[1]));
        }
    }

    // With DQ masks go to memory at once, and not through a port that arithmetic needs.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    pub(super) fn word(
        lanes: &mut Lanes,
        relation: Relation,
        x: &[f64],
        y: &[f64],
        start: Option<usize>,
    ) -> [u64; LANES] {
        let start = start.unwrap_or(usize::MAX);
        match relation {
            Relation::Less => run::<_CMP_LT_OQ>(lanes, x, y, start),
            Relation::LessOrEqual => run::<_CMP_LE_OQ>(lanes, x, y, start),
            Relation::Greater => run::<_CMP_GT_OQ>(lanes, x, y, start),
            Relation::GreaterOrEqual => run::<_CMP_GE_OQ>(lanes, x, y, start),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn run<const RELATION: i32>(lanes: &mut Lanes, x: &[f64], y: &[f64], start: usize) -> [u64; LANES] {
        // For each bar a bit per lane.
        let mut bits = [[0_u8; 64]; 2];
        let [low, high] = &mut bits;
        let bars = x.iter().enumerate().zip(low.iter_mut().zip(high.iter_mut()));
        let bars = bars.filter(|((_, x), _)| x.is_finite());
        let mut first = Registers::new(&lanes.first);
        if let Some(averages) = &mut lanes.second {
            let mut second = Registers::new(averages);
            for ((bar, x), (low, high)) in bars {
                let x = _mm512_set1_pd(*x);
                first.push(x, bar == start);
                second.push(x, bar == start);
                *low = _mm512_cmp_pd_mask::<RELATION>(first.y[0], second.y[0]);
                *high = _mm512_cmp_pd_mask::<RELATION>(first.y[1], second.y[1]);
            }
            store(second.y, &mut averages.y);
        } else {
            for ((bar, x), (low, high)) in bars {
                first.push(_mm512_set1_pd(*x), bar == start);
                let other = _mm512_set1_pd(y.get(bar).copied().unwrap_or(f64::NAN));
                *low = _mm512_cmp_pd_mask::<RELATION>(first.y[0], other);
                *high = _mm512_cmp_pd_mask::<RELATION>(first.y[1], other);
            }
        }
        store(first.y, &mut lanes.first.y);
        // For each lane a bit per bar.
        let mut words = [0; LANES];
        for (words, bits) in words.chunks_mut(8).zip(&bits) {
            // SAFETY: the array holds the 64 bytes that are read.
            let bits = unsafe { _mm512_loadu_si512(bits.as_ptr().cast()) };
            for (lane, word) in words.iter_mut().enumerate() {
                *word = _mm512_test_epi8_mask(bits, _mm512_set1_epi8((1_u8 << lane) as i8));
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::super::ema;
    use super::*;

    const RELATIONS: [Relation; 4] =
        [Relation::Less, Relation::LessOrEqual, Relation::Greater, Relation::GreaterOrEqual];

    #[test]
    fn comparisons_are_those_of_the_columns() {
        let mut x: Vec<f64> = (0..1_000).map(|i| 50.0 + f64::from(i * i % 41) + f64::from(i % 97)).collect();
        (x[0], x[1], x[70], x[500]) = (f64::NAN, f64::INFINITY, f64::NAN, f64::NEG_INFINITY);
        let mut y: Vec<f64> = (0..1_000).map(|i| 100.0 + f64::from(i * 7 % 53) - 26.0).collect();
        (y[3], y[300]) = (f64::NAN, f64::INFINITY);
        let column = |span: usize| {
            let mut column = vec![0.0; x.len()];
            ema(&x, span, &mut column);
            column
        };
        for n_pairs in [1, 5, 16, 17, 40] {
            for is_pair in [true, false] {
                let spans: Vec<(usize, Option<usize>)> =
                    (0..n_pairs).map(|at| (at * 3 % 20, is_pair.then_some(at * 5 % 23))).collect();
                for relation in RELATIONS {
                    // In steps of whole words.
                    for step in [64, 192, 1_024] {
                        let mut compare = EmaCompare::new(relation, &spans);
                        let mut words = vec![vec![0; x.len().div_ceil(64)]; n_pairs];
                        for from in (0..x.len()).step_by(step) {
                            let bars = from..x.len().min(from + step);
                            let mut slices: Vec<&mut [u64]> =
                                words.iter_mut().map(|words| &mut words[from / 64..]).collect();
                            compare.advance(&x[bars.clone()], &y[bars], &mut slices);
                        }
                        for ((first, second), words) in spans.iter().zip(&words) {
                            let a = column(*first);
                            let b = second.map_or(y.clone(), column);
                            for bar in 0..x.len() {
                                let expected = relation.holds(a[bar], b[bar]);
                                let found = words[bar / 64] >> (bar % 64) & 1 == 1;
                                assert_eq!(found, expected, "{relation:?} {first} {second:?}, bar {bar}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_version_is_the_plain_one() {
        let x: Vec<f64> =
            (0..64).map(|i| if i % 9 == 2 { f64::NAN } else { f64::from(i * i % 11) }).collect();
        let y: Vec<f64> = (0..64).map(|i| f64::from(i % 7)).collect();
        for relation in RELATIONS {
            for second in [Some(Averages::new(5..21)), None] {
                let mut ours = Lanes { first: Averages::new(1..17), second };
                let mut plain = ours.clone();
                for start in [Some(0), None, Some(3)] {
                    let words = ours.word(relation, &x, &y, start);
                    assert_eq!(words, plain.word_plain(relation, &x, &y, start));
                    assert_eq!(ours.first.y, plain.first.y);
                }
            }
        }
    }
}
