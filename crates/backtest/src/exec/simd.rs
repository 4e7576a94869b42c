//! Comparisons and bits of many bars at once, with the vector instructions that the machine has.
//!
//! They round nothing, so every version gives the same bits; the plain one is the specification.

use std::sync::LazyLock;

use multiversion::multiversion;

use super::frame::{MOST_WORDS, WORD};
use crate::graph::Op2;

/// Compares word by word.
type Compare = fn(Op2, &[[f64; WORD]], &[[f64; WORD]], &mut [u64]);

/// Lows and highs, the levels of all lanes, and the lanes that look: the first bar that touches, and which lanes.
type LaneTouch = fn(&[f64], &[f64], &[f64; LANES], &[f64; LANES], u32) -> (usize, u32);

/// Compares word by word with one number.
type CompareScalar = fn(Op2, &[[f64; WORD]], f64, &mut [u64]);

/// The versions that this machine runs.
struct Versions {
    compare: Compare,
    compare_scalar: CompareScalar,
    first_touch: fn(&[f64], &[f64], f64, f64) -> usize,
    lane_touch: LaneTouch,
}

static VERSIONS: LazyLock<Versions> = LazyLock::new(|| versions().swap_remove(0));

/// Every version that this machine runs, the best one first.
fn versions() -> Vec<Versions> {
    let mut all = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            all.push(Versions {
                // SAFETY: the machine has AVX-512F, as was just asked.
                compare: |op, a, b, out| unsafe { x86::compare_avx512(op, a, b, out) },
                // SAFETY: as above.
                compare_scalar: |op, a, b, out| unsafe { x86::compare_scalar_avx512(op, a, b, out) },
                // SAFETY: as above.
                first_touch: |low, high, below, above| unsafe {
                    x86::first_touch_avx512(low, high, below, above)
                },
                // SAFETY: as above.
                lane_touch: |low, high, below, above, lanes| unsafe {
                    x86::lane_touch_avx512(low, high, below, above, lanes)
                },
            });
        }
        if is_x86_feature_detected!("avx2") {
            all.push(Versions {
                // SAFETY: the machine has AVX2, as was just asked.
                compare: |op, a, b, out| unsafe { x86::compare_avx2(op, a, b, out) },
                compare_scalar: |op, a, b, out| {
                    // SAFETY: as above.
                    compare_each(a, b, out, |a, b, out| unsafe { x86::compare_avx2(op, a, b, out) });
                },
                // SAFETY: as above.
                first_touch: |low, high, below, above| unsafe {
                    x86::first_touch_avx2(low, high, below, above)
                },
                lane_touch: |low, high, below, above, lanes| {
                    // SAFETY: as above.
                    let first = |below, above| unsafe { x86::first_touch_avx2(low, high, below, above) };
                    lane_touch_by(low, high, below, above, lanes, first)
                },
            });
        }
    }
    all.push(Versions {
        compare: compare_plain,
        compare_scalar: |op, a, b, out| compare_each(a, b, out, |a, b, out| compare_plain(op, a, b, out)),
        first_touch: first_touch_plain,
        lane_touch: lane_touch_plain,
    });
    all
}

/// Bits of a comparison, 64 lanes a word; NaN never compares true: `!=` means "less or greater" here.
#[inline]
pub fn compare(op: Op2, a: &[f64], b: &[f64], out: &mut [u64]) {
    (VERSIONS.compare)(op, a.as_chunks::<WORD>().0, b.as_chunks::<WORD>().0, out);
}

/// As [`compare`], with one number on the right of every lane.
#[inline]
pub fn compare_scalar(op: Op2, a: &[f64], b: f64, out: &mut [u64]) {
    (VERSIONS.compare_scalar)(op, a.as_chunks::<WORD>().0, b, out);
}

/// Compares with one number by comparing with a word of it.
#[inline(always)]
fn compare_each(
    a: &[[f64; WORD]],
    b: f64,
    out: &mut [u64],
    compare: impl Fn(&[[f64; WORD]], &[[f64; WORD]], &mut [u64]),
) {
    let b = [b; WORD];
    for (a, out) in a.iter().zip(out) {
        compare(std::slice::from_ref(a), std::slice::from_ref(&b), std::slice::from_mut(out));
    }
}

/// Number of bits of a block that are set.
#[multiversion(targets("x86_64+avx512f+avx512vpopcntdq", "x86_64+popcnt"))]
pub fn n_ones(words: &[u64; MOST_WORDS]) -> usize {
    words.iter().map(|bits| bits.count_ones() as usize).sum()
}

/// First bar in `from..=to` with `low <= below` or `high >= above`, or `to + 1`. Levels that do not exist are −∞ and +∞.
#[inline(always)]
pub fn first_touch(low: &[f64], high: &[f64], below: f64, above: f64, from: usize, to: usize) -> usize {
    if from > to {
        return to + 1;
    }
    from + (VERSIONS.first_touch)(&low[from..=to], &high[from..=to], below, above)
}

/// Pairs of levels that are looked for together.
pub const LANES: usize = 16;

/// First bar in `from..=to` that touches the levels of one of some lanes, or `to + 1`; and the lanes it touches.
#[inline(always)]
pub fn lane_touch(
    (low, high): (&[f64], &[f64]),
    (below, above): (&[f64; LANES], &[f64; LANES]),
    lanes: u32,
    from: usize,
    to: usize,
) -> (usize, u32) {
    if from > to {
        return (to + 1, 0);
    }
    let (at, touched) = (VERSIONS.lane_touch)(&low[from..=to], &high[from..=to], below, above, lanes);
    (from + at, touched)
}

/// The specification of [`compare`].
fn compare_plain(op: Op2, a: &[[f64; WORD]], b: &[[f64; WORD]], out: &mut [u64]) {
    #[inline(always)]
    fn bits(a: &[[f64; WORD]], b: &[[f64; WORD]], out: &mut [u64], holds: impl Fn(f64, f64) -> bool) {
        for ((a, b), out) in a.iter().zip(b).zip(out) {
            *out = (0..WORD).fold(0, |bits, lane| bits | u64::from(holds(a[lane], b[lane])) << lane);
        }
    }
    match op {
        Op2::Lt => bits(a, b, out, |x, y| x < y),
        Op2::Le => bits(a, b, out, |x, y| x <= y),
        Op2::Gt => bits(a, b, out, |x, y| x > y),
        Op2::Ge => bits(a, b, out, |x, y| x >= y),
        Op2::Eq => bits(a, b, out, |x, y| x == y),
        _ => bits(a, b, out, |x, y| matches!(x.partial_cmp(&y), Some(order) if order.is_ne())),
    }
}

/// The specification of [`first_touch`], over slices that begin at the first bar.
fn first_touch_plain(low: &[f64], high: &[f64], below: f64, above: f64) -> usize {
    low.iter().zip(high).position(|(low, high)| *low <= below || *high >= above).unwrap_or(low.len())
}

/// The specification of [`lane_touch`], over slices that begin at the first bar.
fn lane_touch_plain(
    low: &[f64],
    high: &[f64],
    below: &[f64; LANES],
    above: &[f64; LANES],
    lanes: u32,
) -> (usize, u32) {
    lane_touch_by(low, high, below, above, lanes, |below, above| first_touch_plain(low, high, below, above))
}

/// Finds the first touch of the nearest levels: before it, no lane is touched.
#[inline(always)]
fn lane_touch_by(
    low: &[f64],
    high: &[f64],
    below: &[f64; LANES],
    above: &[f64; LANES],
    lanes: u32,
    first: impl Fn(f64, f64) -> usize,
) -> (usize, u32) {
    let (mut nearest_below, mut nearest_above) = (f64::NEG_INFINITY, f64::INFINITY);
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
        nearest_below = if below[lane] > nearest_below { below[lane] } else { nearest_below };
        nearest_above = if above[lane] < nearest_above { above[lane] } else { nearest_above };
    }
    let at = first(nearest_below, nearest_above);
    if at == low.len() {
        return (at, 0);
    }
    let touches = |lane: usize| u32::from(low[at] <= below[lane] || high[at] >= above[lane]) << lane;
    (at, lanes & (0..LANES).fold(0, |bits, lane| bits | touches(lane)))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{LANES, Op2, WORD, first_touch_plain};

    /// The `part`-th eight values.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn eight(values: &[f64; WORD], part: usize) -> __m512d {
        let values: &[f64] = &values[part * 8..part * 8 + 8];
        // SAFETY: the slice holds the eight values that are read.
        unsafe { _mm512_loadu_pd(values.as_ptr()) }
    }

    /// The `part`-th four values.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(values: &[f64; WORD], part: usize) -> __m256d {
        let values: &[f64] = &values[part * 4..part * 4 + 4];
        // SAFETY: the slice holds the four values that are read.
        unsafe { _mm256_loadu_pd(values.as_ptr()) }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn compare_avx512(op: Op2, a: &[[f64; WORD]], b: &[[f64; WORD]], out: &mut [u64]) {
        macro_rules! bits {
            ($predicate:expr) => {
                for ((a, b), out) in a.iter().zip(b).zip(out) {
                    let mut bits = 0_u64;
                    for part in 0..WORD / 8 {
                        bits |= u64::from(_mm512_cmp_pd_mask::<$predicate>(eight(a, part), eight(b, part)))
                            << (part * 8);
                    }
                    *out = bits;
                }
            };
        }
        match op {
            Op2::Lt => bits!(_CMP_LT_OQ),
            Op2::Le => bits!(_CMP_LE_OQ),
            Op2::Gt => bits!(_CMP_GT_OQ),
            Op2::Ge => bits!(_CMP_GE_OQ),
            Op2::Eq => bits!(_CMP_EQ_OQ),
            _ => bits!(_CMP_NEQ_OQ),
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn compare_scalar_avx512(op: Op2, a: &[[f64; WORD]], b: f64, out: &mut [u64]) {
        let b = _mm512_set1_pd(b);
        macro_rules! bits {
            ($predicate:expr) => {
                for (a, out) in a.iter().zip(out) {
                    let mut bits = 0_u64;
                    for part in 0..WORD / 8 {
                        bits |= u64::from(_mm512_cmp_pd_mask::<$predicate>(eight(a, part), b)) << (part * 8);
                    }
                    *out = bits;
                }
            };
        }
        match op {
            Op2::Lt => bits!(_CMP_LT_OQ),
            Op2::Le => bits!(_CMP_LE_OQ),
            Op2::Gt => bits!(_CMP_GT_OQ),
            Op2::Ge => bits!(_CMP_GE_OQ),
            Op2::Eq => bits!(_CMP_EQ_OQ),
            _ => bits!(_CMP_NEQ_OQ),
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn compare_avx2(op: Op2, a: &[[f64; WORD]], b: &[[f64; WORD]], out: &mut [u64]) {
        macro_rules! bits {
            ($predicate:expr) => {
                for ((a, b), out) in a.iter().zip(b).zip(out) {
                    let mut bits = 0_u64;
                    for part in 0..WORD / 4 {
                        let holds = _mm256_cmp_pd::<$predicate>(four(a, part), four(b, part));
                        bits |= (_mm256_movemask_pd(holds) as u64) << (part * 4);
                    }
                    *out = bits;
                }
            };
        }
        match op {
            Op2::Lt => bits!(_CMP_LT_OQ),
            Op2::Le => bits!(_CMP_LE_OQ),
            Op2::Gt => bits!(_CMP_GT_OQ),
            Op2::Ge => bits!(_CMP_GE_OQ),
            Op2::Eq => bits!(_CMP_EQ_OQ),
            _ => bits!(_CMP_NEQ_OQ),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn first_touch_avx512(low: &[f64], high: &[f64], below: f64, above: f64) -> usize {
        let n = low.len().min(high.len());
        let (under, over) = (_mm512_set1_pd(below), _mm512_set1_pd(above));
        let mut at = 0;
        while at + 8 <= n {
            // SAFETY: `at + 8 <= n`, the length of the shorter slice.
            let (l, h) =
                unsafe { (_mm512_loadu_pd(low.as_ptr().add(at)), _mm512_loadu_pd(high.as_ptr().add(at))) };
            let touched =
                _mm512_cmp_pd_mask::<_CMP_LE_OQ>(l, under) | _mm512_cmp_pd_mask::<_CMP_GE_OQ>(h, over);
            if touched != 0 {
                return at + touched.trailing_zeros() as usize;
            }
            at += 8;
        }
        // The rest in one step: lanes past the end read NaN, which touches nothing.
        let rest: u8 = (1_u8 << (n - at)) - 1;
        let nan = _mm512_set1_pd(f64::NAN);
        // SAFETY: the mask lets only the `n - at < 8` lanes inside the slices be read.
        let (l, h) = unsafe {
            (
                _mm512_mask_loadu_pd(nan, rest, low.as_ptr().add(at)),
                _mm512_mask_loadu_pd(nan, rest, high.as_ptr().add(at)),
            )
        };
        let touched = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(l, under) | _mm512_cmp_pd_mask::<_CMP_GE_OQ>(h, over);
        if touched != 0 { at + touched.trailing_zeros() as usize } else { n }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn lane_touch_avx512(
        low: &[f64],
        high: &[f64],
        below: &[f64; LANES],
        above: &[f64; LANES],
        lanes: u32,
    ) -> (usize, u32) {
        let (first, second) = (lanes as u8, (lanes >> 8) as u8);
        let (none_below, none_above) = (_mm512_set1_pd(f64::NEG_INFINITY), _mm512_set1_pd(f64::INFINITY));
        // SAFETY: both rows hold 16 values, and each load reads eight of them.
        let [below_1, below_2, above_1, above_2] = unsafe {
            [
                _mm512_mask_loadu_pd(none_below, first, below.as_ptr()),
                _mm512_mask_loadu_pd(none_below, second, below.as_ptr().add(8)),
                _mm512_mask_loadu_pd(none_above, first, above.as_ptr()),
                _mm512_mask_loadu_pd(none_above, second, above.as_ptr().add(8)),
            ]
        };
        let nearest_below = _mm512_reduce_max_pd(_mm512_max_pd(below_1, below_2));
        let nearest_above = _mm512_reduce_min_pd(_mm512_min_pd(above_1, above_2));
        let at = first_touch_avx512(low, high, nearest_below, nearest_above);
        if at == low.len() {
            return (at, 0);
        }
        let (low, high) = (_mm512_set1_pd(low[at]), _mm512_set1_pd(high[at]));
        let touched = |below, above| {
            _mm512_cmp_pd_mask::<_CMP_LE_OQ>(low, below) | _mm512_cmp_pd_mask::<_CMP_GE_OQ>(high, above)
        };
        (at, lanes & (u32::from(touched(below_1, above_1)) | u32::from(touched(below_2, above_2)) << 8))
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn first_touch_avx2(low: &[f64], high: &[f64], below: f64, above: f64) -> usize {
        let n = low.len().min(high.len());
        let (under, over) = (_mm256_set1_pd(below), _mm256_set1_pd(above));
        let mut at = 0;
        while at + 4 <= n {
            // SAFETY: `at + 4 <= n`, the length of the shorter slice.
            let (l, h) =
                unsafe { (_mm256_loadu_pd(low.as_ptr().add(at)), _mm256_loadu_pd(high.as_ptr().add(at))) };
            let touched =
                _mm256_or_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(l, under), _mm256_cmp_pd::<_CMP_GE_OQ>(h, over));
            let touched = _mm256_movemask_pd(touched);
            if touched != 0 {
                return at + touched.trailing_zeros() as usize;
            }
            at += 4;
        }
        at + first_touch_plain(&low[at..n], &high[at..n], below, above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_compares_as_the_plain_one() {
        let values = [f64::NAN, 0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        let a: [[f64; WORD]; 2] =
            std::array::from_fn(|word| std::array::from_fn(|lane| values[(lane + word) % 8]));
        let b: [[f64; WORD]; 2] = std::array::from_fn(|_| std::array::from_fn(|lane| values[lane / 8]));
        for op in [Op2::Lt, Op2::Le, Op2::Gt, Op2::Ge, Op2::Eq, Op2::Ne] {
            for version in versions() {
                let (mut ours, mut plain) = ([0; 2], [0; 2]);
                (version.compare)(op, &a, &b, &mut ours);
                compare_plain(op, &a, &b, &mut plain);
                assert_eq!(ours, plain, "{op:?}");
                for scalar in values {
                    (version.compare_scalar)(op, &a, scalar, &mut ours);
                    compare_plain(op, &a, &[[scalar; WORD]; 2], &mut plain);
                    assert_eq!(ours, plain, "{op:?} {scalar}");
                }
            }
        }
    }

    #[test]
    fn every_version_finds_the_first_touch_at_every_distance() {
        for n in 1..40 {
            for hit in 0..=n {
                let mut low = vec![10.0; n];
                let mut high = vec![20.0; n];
                if hit < n {
                    *(if hit % 2 == 0 { &mut low[hit] } else { &mut high[hit] }) =
                        if hit % 2 == 0 { 5.0 } else { 25.0 };
                }
                for from in 0..n {
                    let expected = if hit >= from && hit < n { hit - from } else { n - from };
                    for version in versions() {
                        assert_eq!((version.first_touch)(&low[from..], &high[from..], 5.0, 25.0), expected);
                    }
                }
            }
        }
        assert_eq!(first_touch(&[1.0], &[2.0], f64::NEG_INFINITY, f64::INFINITY, 0, 0), 1);
        assert_eq!(first_touch(&[1.0], &[2.0], 3.0, 3.0, 1, 0), 1);
    }

    #[test]
    fn every_version_finds_the_lanes_that_a_bar_touches() {
        let stream = tidemill_search::rng::Stream::new(3, 0);
        let mut counter = 0;
        let mut draw = |n: u64| {
            counter += 1;
            stream.bits(counter) % n
        };
        for _ in 0..2000 {
            let n = 1 + draw(30) as usize;
            let low: Vec<f64> = (0..n).map(|_| 100.0 - draw(50) as f64).collect();
            let high: Vec<f64> = low.iter().map(|low| low + draw(20) as f64).collect();
            let mut level = |none: f64, from: f64| match draw(4) {
                0 => none,
                _ => from + draw(40) as f64,
            };
            let below: [f64; LANES] = std::array::from_fn(|_| level(f64::NEG_INFINITY, 30.0));
            let above: [f64; LANES] = std::array::from_fn(|_| level(f64::INFINITY, 90.0));
            let lanes = draw(1 << LANES) as u32;
            let touched = |bar: usize| {
                let touches = |lane: &usize| low[bar] <= below[*lane] || high[bar] >= above[*lane];
                (0..LANES).filter(touches).fold(0, |bits, lane| bits | 1 << lane) & lanes
            };
            let expected =
                (0..n).map(|bar| (bar, touched(bar))).find(|(_, lanes)| *lanes != 0).unwrap_or((n, 0));
            for version in versions() {
                assert_eq!((version.lane_touch)(&low, &high, &below, &above, lanes), expected);
            }
        }
    }
}
