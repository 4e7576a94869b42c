//! Plain `f64` sums of one series, good enough to tell most z-scores from a threshold, at a fraction of the cost of double-double.

use std::ops::Range;

use multiversion::multiversion;

use super::ceiling::{Ceilings, Source};
use super::window::{Bounds, ScoreTest, WordSums};
use super::{BLOCK, is_available};
use crate::indicator::double_double::DoubleDouble;
use crate::indicator::extreme::larger;
use crate::indicator::function::Limit;

/// Prefix sums of a series and of its squares, about a centre that keeps both small.
///
/// Inside a block of bars they are plain sums, and what the blocks before it come to is kept in double-double: however long the series is, an
/// entry is off by little more than its own rounding.
#[derive(Debug, Default)]
pub(in crate::indicator) struct Rough {
    /// The series.
    x: Vec<f64>,
    /// Both sums before each bar, and after the last, side by side: a single window reads few lines of memory.
    sums: Vec<[f64; 2]>,
    bounds: Bounds,
    /// Bars before the first value, and before the bars of which no value is missing.
    n_leading: usize,
    clean_from: usize,
    /// Values not available before each bar; empty if all of them are leading ones.
    missing: Vec<u32>,
    ceilings: Ceilings,
}

impl Rough {
    /// The sums of `x`, in the memory of these.
    pub fn refilled(self, x: &[f64]) -> Self {
        let Self { x: mut held, mut sums, mut missing, mut ceilings, .. } = self;
        ceilings.clear();
        held.clear();
        held.reserve_exact(x.len());
        sums.resize(x.len() + 1, [0.0; 2]);
        let (bounds, gaps_end) = add_up(x, centre(x), &mut held, &mut sums);
        let n_leading = x.iter().position(|v| is_available(*v)).unwrap_or(x.len());
        let clean_from = x[..gaps_end].iter().rposition(|v| !is_available(*v)).map_or(0, |last| last + 1);
        missing.clear();
        if n_leading < clean_from {
            let mut n_missing = 0;
            missing.push(0);
            missing.extend(x.iter().map(|v| {
                n_missing += u32::from(!is_available(*v));
                n_missing
            }));
        }
        Self { x: held, sums, bounds, n_leading, clean_from, missing, ceilings }
    }

    pub fn series(&self) -> &[f64] {
        &self.x
    }

    pub fn bytes(&self) -> usize {
        self.x.capacity() * size_of::<f64>()
            + self.sums.capacity() * size_of::<[f64; 2]>()
            + self.missing.capacity() * size_of::<u32>()
            + self.ceilings.bytes()
    }

    /// Takes from the words `left` of the bars from `first` on, the first of a word, those whose z-score over `w` bars surely does not reach
    /// the limit, as far as that costs next to nothing.
    pub fn screen(&self, w: usize, limit: Limit, first: usize, left: &mut [u64]) {
        let Self { x, sums, bounds, clean_from, ceilings, .. } = self;
        ceilings.screen(w, limit, first, left, &Source { x, sums, bounds, clean_from: *clean_from });
    }

    /// Has the sums after some bars brought into the second cache.
    pub fn fetch(&self, bars: Range<usize>) {
        fetch(&self.sums, bars.start + 1..bars.end + 1);
    }

    /// A test of z-scores over windows of `w` values, at least 1.
    #[inline(always)]
    pub fn test(&self, w: usize, limit: Limit) -> ScoreTest {
        ScoreTest::new(&self.bounds, w, limit)
    }

    /// Where `test` does not rule out the z-scores of the 64 bars from `first` on, of which `newest` are the values, and where it is sure of
    /// them. None if a window is not complete, or may hold a missing value.
    #[inline(always)]
    pub fn may_word(&self, newest: &[f64; 64], first: usize, test: &ScoreTest) -> Option<[u64; 2]> {
        let start = (first + 1).checked_sub(test.w).filter(|start| *start >= self.clean_from)?;
        let old = self.sums.get(start..)?.first_chunk()?;
        let new = self.sums.get(start + test.w..)?.first_chunk()?;
        Some(test.may(&WordSums { newest, old, new }))
    }

    /// What `test` says of the z-score of `newest` at bar `i`.
    #[inline(always)]
    pub fn test_at(&self, newest: f64, i: usize, test: &ScoreTest) -> f64 {
        if i + 1 < test.w {
            return -1.0;
        }
        let (end, start) = (i + 1, i + 1 - test.w);
        let (Some(new), Some(old)) = (self.sums.get(end), self.sums.get(start)) else {
            return -1.0;
        };
        if start < self.clean_from && self.is_spoilt(start, end) {
            return -1.0;
        }
        test.of(newest, new[0] - old[0], new[1] - old[1])
    }

    /// What the test says of the z-score of bar `i` over the last `w` bars, none of them missing, by the sums of these bars alone: sharp also
    /// where the rest of the series varies much more.
    pub fn test_closely(&self, i: usize, w: usize, limit: Limit) -> f64 {
        let Some((window, newest)) =
            self.x.get(i + 1 - w..=i).and_then(|window| Some((window, *window.last()?)))
        else {
            return -1.0;
        };
        let (mut sum, mut squares, mut magnitude) = (0.0, 0.0, 0.0);
        for v in window {
            let v = v - newest;
            sum += v;
            squares += v * v;
            magnitude += v.abs();
        }
        // All are equal, and there is no score.
        if magnitude == 0.0 {
            return -1.0;
        }
        // Plain sums are off by at most 2⁻⁵³ of their magnitude for each bar.
        let n_bars = w as f64;
        let exact = self.bounds.exact;
        let bounds = Bounds {
            centre: newest,
            sum: n_bars * magnitude,
            squares: n_bars * squares,
            value: magnitude,
            exact,
        };
        ScoreTest::new(&bounds, w, limit).of(newest, sum, squares)
    }

    /// Whether a value is missing among the bars from `start` to before `end`, where some are missing from `start` on.
    fn is_spoilt(&self, start: usize, end: usize) -> bool {
        start < self.n_leading || self.missing.get(start) != self.missing.get(end)
    }
}

/// Has some values brought into the second cache, as far as they are there.
pub(in crate::indicator) fn fetch<T>(values: &[T], wanted: Range<usize>) {
    for _line in values.get(wanted).unwrap_or_default().chunks(64 / size_of::<T>()) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: it reads nothing, whatever the address is.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(_line.as_ptr().cast()) };
        }
    }
}

/// A number in the middle of a series: the mean of one value in eight. Any would do: it decides how sharp tests are, and nothing else.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn centre(x: &[f64]) -> f64 {
    const LANES: usize = 16;
    let (mut sums, mut counts) = ([0.0; LANES], [0.0; LANES]);
    for x in x.as_chunks::<LANES>().0.iter().step_by(8) {
        for lane in 0..LANES {
            let is_there = is_available(x[lane]);
            sums[lane] += if is_there { x[lane] } else { 0.0 };
            counts[lane] += if is_there { 1.0 } else { 0.0 };
        }
    }
    let n_values: f64 = counts.iter().sum();
    if n_values > 0.0 { sums.iter().sum::<f64>() / n_values } else { 0.0 }
}

/// Fills the sums, and keeps the series block by block, while it is in the cache. Returns what bounds their rounding, and the end of the last
/// block that has gaps, or 0.
///
/// An entry is the sum of the blocks before it, rounded once or twice, plus a plain sum inside its block. With u = 2⁻⁵³ it is off by at most
/// 2u of the sum of all magnitudes, plus 256u of that of a block.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn add_up(x: &[f64], centre: f64, held: &mut Vec<f64>, sums: &mut [[f64; 2]]) -> (Bounds, usize) {
    let mut before = [DoubleDouble::default(); 2];
    let (mut magnitude, mut magnitude_of_block, mut squares_of_block) = (0.0, 0.0, 0.0);
    let (mut end, mut gaps_end) = (0, 0);
    let mut values = [0.0; BLOCK];
    sums[0] = [0.0; 2];
    for (x, sums) in x.chunks(BLOCK).zip(sums[1..].chunks_mut(BLOCK)) {
        end += x.len();
        held.extend_from_slice(x);
        let mut n_missing = 0_u64;
        for (value, v) in values.iter_mut().zip(x) {
            let is_there = is_available(*v);
            *value = if is_there { *v - centre } else { 0.0 };
            n_missing += u64::from(!is_there);
        }
        gaps_end = if n_missing > 0 { end } else { gaps_end };
        let (mut sum, mut squares, mut magnitudes) = (0.0, 0.0, 0.0);
        for (v, entry) in values.iter().zip(sums) {
            sum += v;
            squares += v * v;
            magnitudes += v.abs();
            *entry = [before[0].hi + sum, before[1].hi + squares];
        }
        before = [before[0].add_f64(sum), before[1].add_f64(squares)];
        magnitude += magnitudes;
        magnitude_of_block = larger(magnitudes, magnitude_of_block);
        squares_of_block = larger(squares, squares_of_block);
    }
    let (n_bars, per_block) = (x.len() as f64, BLOCK as f64);
    let sum = magnitude + per_block * magnitude_of_block;
    let squares = before[1].hi + per_block * squares_of_block;
    // Of each addition in a row 2⁻¹⁰⁴ of what there is in all, about 0, and more than ten times that.
    let off = (per_block + n_bars / per_block) / 2.0_f64.powi(100);
    let (all, all_squares) = (sum + n_bars * centre.abs(), 2.0 * (squares + n_bars * centre * centre));
    let exact = [off * all, off * all_squares, off * all * all];
    (Bounds { centre, sum, squares, value: squares_of_block.sqrt(), exact }, gaps_end)
}
