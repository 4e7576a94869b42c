//! Ceilings of z-scores: for each bar a number in one byte that no score of it exceeds, whichever of some windows it is over.
//!
//! A search tests one series under thousands of windows and thresholds. Windows of nearly the same length have nearly the same scores, so that
//! a byte a bar tells for all of them which bars a threshold rules out, and a test looks only at the few that are left.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use multiversion::multiversion;

use super::window::{Bounds, Margins};
use crate::indicator::extreme::larger;
use crate::indicator::function::Limit;

/// Windows from 2⁴ to before 2¹⁴ have ceilings, each octave in so many ranges: the longest window of one is at most a sixteenth longer than
/// the shortest.
const OCTAVES: std::ops::Range<u32> = 4..14;
const PER_OCTAVE: usize = 16;

/// Steps of a ceiling to a score of 1.
const STEPS: f64 = 32.0;

/// Ceilings of a range are worth computing once so many trials have asked for all bars: a series that few trials share never has any.
const TRIALS: usize = 5;

/// The ceilings of one series.
#[derive(Debug, Default)]
pub(super) struct Ceilings {
    /// By range of windows, those of scores, then those of negated scores; none before the first question.
    ranges: OnceLock<Vec<[Ceiling; 2]>>,
}

#[derive(Debug, Default)]
struct Ceiling {
    /// Words that were asked for before there were codes.
    n_asked: AtomicUsize,
    /// A byte per bar, for whole words of bars.
    codes: OnceLock<Vec<u8>>,
}

/// What ceilings are computed from.
pub(super) struct Source<'a> {
    pub x: &'a [f64],
    pub sums: &'a [[f64; 2]],
    pub bounds: &'a Bounds,
    pub clean_from: usize,
}

/// A range of windows by its number, its shortest window and how many it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WindowRange {
    number: usize,
    shortest: usize,
    len: usize,
}

impl WindowRange {
    fn of(w: usize) -> Option<Self> {
        let octave = w.checked_ilog2().filter(|octave| OCTAVES.contains(octave))?;
        let len = (1 << octave) / PER_OCTAVE;
        let part = w / len;
        let number = (octave - OCTAVES.start) as usize * PER_OCTAVE + part - PER_OCTAVE;
        Some(Self { number, shortest: part * len, len })
    }
}

impl Ceilings {
    /// Forgets what was of another series.
    pub fn clear(&mut self) {
        self.ranges.take();
    }

    pub fn bytes(&self) -> usize {
        let codes = |ceiling: &Ceiling| ceiling.codes.get().map_or(0, Vec::capacity);
        self.ranges.get().into_iter().flatten().flatten().map(codes).sum()
    }

    /// Takes from the words `left` of the bars from `first` on, the first of a word, those whose z-score over `w` bars surely does not
    /// reach the limit, as far as that is known.
    pub fn screen(&self, w: usize, limit: Limit, first: usize, left: &mut [u64], source: &Source<'_>) {
        let Some(range) = WindowRange::of(w) else { return };
        let none = || (0..OCTAVES.len() * PER_OCTAVE).map(|_| Default::default()).collect();
        let [above, below] = &self.ranges.get_or_init(none)[range.number];
        let ceiling = if limit.sign > 0.0 { above } else { below };
        let codes = match ceiling.codes.get() {
            Some(codes) => codes,
            None => {
                let n_asked = ceiling.n_asked.fetch_add(left.len(), Ordering::Relaxed);
                if n_asked < TRIALS * source.x.len().div_ceil(64) {
                    return;
                }
                ceiling.codes.get_or_init(|| codes(range, limit.sign, source))
            }
        };
        let Some(codes) = codes.get(first..) else { return };
        // A ceiling below the threshold has a code that is less or the same.
        keep(left, codes.as_chunks().0, (limit.threshold * STEPS) as u8);
    }
}

/// The codes of all bars, 255 where there is no ceiling.
///
/// A z-score over w bars is D / √N with D = w·x − S and N = w·Q − S², as [`ScoreTest`](super::ScoreTest) has it. N is w times the sum of
/// squared distances from the mean, and neither gets less with more bars: the shortest window has the least. D is bounded by the highest
/// prefix sum among those before the windows. Both are taken to be off by more than twice what bounds them for the longest window.
fn codes(range: WindowRange, sign: f64, source: &Source<'_>) -> Vec<u8> {
    let Source { x, sums, bounds, clean_from } = *source;
    let WindowRange { shortest, len, .. } = range;
    let longest = shortest + len - 1;
    let mut codes = vec![u8::MAX; x.len().next_multiple_of(64)];
    // The bar of the first complete window of all lengths without a gap.
    let first = clean_from + longest - 1;
    if first >= x.len() {
        return codes;
    }
    let mut highest: Vec<f64> = sums[clean_from..].iter().map(|sums| sign * sums[0]).collect();
    let mut wider = highest.clone();
    for step in (0..len.ilog2()).map(|power| 1 << power) {
        widen(&highest, step, &mut wider);
        std::mem::swap(&mut highest, &mut wider);
    }
    let sums = Ends { new: &sums[first + 1..], old: &sums[first + 1 - shortest..], highest: &highest };
    let margins = Margins::new(bounds, longest);
    let lengths = [shortest as f64, longest as f64];
    encode(&x[first..], &sums, sign, bounds.centre, lengths, &margins, &mut codes[first..x.len()]);
    codes
}

/// From the largest of `step` numbers from each place on the largest of twice as many; what the last places have, which are not followed by
/// so many, does not matter.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn widen(highest: &[f64], step: usize, wider: &mut [f64]) {
    for (wider, (own, next)) in wider.iter_mut().zip(highest.iter().zip(&highest[step.min(highest.len())..]))
    {
        *wider = larger(*own, *next);
    }
}

/// Sums at the ends of windows, before the starts of the shortest ones, and the largest before the starts of any.
struct Ends<'a> {
    new: &'a [[f64; 2]],
    old: &'a [[f64; 2]],
    highest: &'a [f64],
}

#[multiversion(targets("x86_64+avx512f+avx512dq", "x86_64+avx2"))]
fn encode(
    x: &[f64],
    sums: &Ends<'_>,
    sign: f64,
    centre: f64,
    [shortest, longest]: [f64; 2],
    margins: &Margins,
    codes: &mut [u8],
) {
    let (of_d, of_square, of_spread) = (2.0 * margins.of_d, 2.0 * margins.of_square, 4.0 * margins.of_spread);
    let ends = sums.new.iter().zip(sums.old).zip(sums.highest);
    for ((code, x), ((new, old), highest)) in codes.iter_mut().zip(x).zip(ends) {
        let x = sign * (x - centre);
        let d = larger(shortest * x, longest * x) - sign * new[0] + highest;
        let (s, q) = (new[0] - old[0], new[1] - old[1]);
        let n = shortest * q - s * s - of_spread;
        let d = larger(d, 0.0) + of_d;
        let steps = STEPS * ((d * d + of_square) / n).sqrt();
        // What does not compare is no ceiling.
        let is_ceiling = (n > 0.0) & (steps < 255.0);
        *code = (if is_ceiling { steps } else { 255.0 }) as u8;
    }
}

/// Keeps the bits of the bars whose code is `least` or more.
fn keep(left: &mut [u64], codes: &[[u8; 64]], least: u8) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the machine has AVX-512BW, as was just asked.
        return unsafe { x86::keep_avx512(left, codes, least) };
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the machine has AVX2, as was just asked.
        return unsafe { x86::keep_avx2(left, codes, least) };
    }
    keep_plain(left, codes, least);
}

/// The specification of [`keep`].
fn keep_plain(left: &mut [u64], codes: &[[u8; 64]], least: u8) {
    for (left, codes) in left.iter_mut().zip(codes) {
        *left &= (0..64).fold(0, |bits, bar| bits | u64::from(codes[bar] >= least) << bar);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn keep_avx512(left: &mut [u64], codes: &[[u8; 64]], least: u8) {
        let least = _mm512_set1_epi8(least as i8);
        for (left, codes) in left.iter_mut().zip(codes) {
            // SAFETY: the array holds the 64 bytes that are read.
            let codes = unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) };
            *left &= _mm512_cmpge_epu8_mask(codes, least);
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn keep_avx2(left: &mut [u64], codes: &[[u8; 64]], least: u8) {
        let least = _mm256_set1_epi8(least as i8);
        for (left, codes) in left.iter_mut().zip(codes) {
            let half = |at: usize| {
                // SAFETY: the array holds 64 bytes, of which the half that begins at 0 or at 32 is read.
                let codes = unsafe { _mm256_loadu_si256(codes[at..at + 32].as_ptr().cast()) };
                // Where the larger of both is the code, it is not less.
                let is_kept = _mm256_cmpeq_epi8(_mm256_max_epu8(codes, least), codes);
                u64::from(_mm256_movemask_epi8(is_kept) as u32)
            };
            *left &= half(0) | half(32) << 32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_is_in_the_range_that_says_so() {
        let mut last = None;
        for w in 16..1 << 14 {
            let range = WindowRange::of(w).unwrap_or_else(|| panic!("{w} has a range"));
            assert!((range.shortest..range.shortest + range.len).contains(&w), "{w}: {range:?}");
            assert!(range.len <= w.div_ceil(16) && range.len.is_power_of_two(), "{w}: {range:?}");
            let is_next = last.map_or(range.number == 0, |last: WindowRange| {
                range == last || range.number == last.number + 1 && range.shortest == w
            });
            assert!(is_next, "{w}: {range:?} after {last:?}");
            last = Some(range);
        }
        assert_eq!(last.map(|range| range.number), Some(OCTAVES.len() * PER_OCTAVE - 1));
        assert_eq!([0, 15, 1 << 14, usize::MAX].map(WindowRange::of), [None; 4]);
    }

    #[test]
    fn every_version_keeps_the_same_bars() {
        let codes: Vec<[u8; 64]> =
            (0..5_usize).map(|word| std::array::from_fn(|bar| (word * 64 + bar * 37) as u8)).collect();
        for least in [0, 1, 7, 127, 128, 200, 255] {
            let (mut ours, mut plain) = ([u64::MAX, 5, 0, 1 << 63, !7], [u64::MAX, 5, 0, 1 << 63, !7]);
            keep_plain(&mut plain, &codes, least);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                let mut halves = [u64::MAX, 5, 0, 1 << 63, !7];
                // SAFETY: the machine has AVX2, as was just asked.
                unsafe { x86::keep_avx2(&mut halves, &codes, least) };
                assert_eq!(halves, plain);
            }
            keep(&mut ours, &codes, least);
            assert_eq!(ours, plain);
        }
    }
}
