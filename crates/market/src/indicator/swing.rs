//! Swing highs and lows: the last confirmed turning point before a bar.
//!
//! A bar is a confirmed high if no bar within `lookahead` on either side is higher (ties allowed). Seen from
//! bar `i`, only bars up to `i-1` are looked at, so a confirmation never uses the future.

use multiversion::multiversion;

use super::column::{common_len, mask_windows};
use super::extreme::{larger, maximum_of, oriented, restored, rolling_max};

/// Bars that are looked at together for a single swing.
const LANES: usize = 8;

/// The largest confirmed high among the bars `i-lookback+lookahead .. i-lookahead`, or, if none of them is
/// confirmed, the plain maximum of the bars `i-lookback .. i-lookahead` (upper ends excluded).
///
/// Reference: the seller-exhaustion system's Fibonacci anchor. NaN before bar `lookback + lookahead`, if
/// `lookback <= lookahead`, and if one of the bars `i-lookback … i-1` is non-finite. Allocates two columns.
pub fn swing_high(x: &[f64], lookback: usize, lookahead: usize, out: &mut [f64]) {
    swing::<false>(x, lookback, lookahead, out);
}

/// The mirror image of [`swing_high`]: the smallest confirmed low, or the plain minimum.
pub fn swing_low(x: &[f64], lookback: usize, lookahead: usize, out: &mut [f64]) {
    swing::<true>(x, lookback, lookahead, out);
}

/// [`swing_high`] at bar `i` alone.
pub fn swing_high_at(x: &[f64], lookback: usize, lookahead: usize, i: usize) -> f64 {
    swing_at::<false>(x, lookback, lookahead, i)
}

/// [`swing_low`] at bar `i` alone.
pub fn swing_low_at(x: &[f64], lookback: usize, lookahead: usize, i: usize) -> f64 {
    swing_at::<true>(x, lookback, lookahead, i)
}

fn swing<const LOW: bool>(x: &[f64], lookback: usize, lookahead: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    let first = lookback.saturating_add(lookahead);
    if lookback <= lookahead || first >= n {
        return out.fill(f64::NAN);
    }
    let load = |i: usize| if x[i].is_finite() { oriented::<LOW>(x[i]) } else { f64::NEG_INFINITY };

    // The confirmed bars, others as −∞; then their rolling maximum. The centred window of bar `i` ends at `i
    // + lookahead`.
    let mut confirmed = vec![f64::NEG_INFINITY; n];
    if lookback > 2 * lookahead {
        let mut around = vec![0.0; n];
        rolling_max(2 * lookahead + 1, load, &mut around);
        for i in lookahead..n - lookahead {
            if load(i) >= around[i + lookahead] {
                confirmed[i] = load(i);
            }
        }
        rolling_max(lookback - 2 * lookahead, |i| confirmed[i], &mut around);
        confirmed = around;
    }
    let mut plain = vec![0.0; n];
    rolling_max(lookback - lookahead, load, &mut plain);

    out[..first].fill(f64::NAN);
    // Bar `i` sees windows that end at `i - lookahead - 1`; the first bar that sees one is `first`.
    let seen = lookback - 1..n - lookahead - 1;
    for ((y, &confirmed), &plain) in out[first..].iter_mut().zip(&confirmed[seen.clone()]).zip(&plain[seen]) {
        *y = restored::<LOW>(if confirmed > f64::NEG_INFINITY { confirmed } else { plain });
    }
    // The bars looked at are those of the window of `lookback` that ends one bar earlier.
    if !x.iter().all(|v| v.is_finite()) {
        mask_windows(&x[..n - 1], lookback, &mut out[1..]);
    }
}

#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn swing_at<const LOW: bool>(x: &[f64], lookback: usize, lookahead: usize, i: usize) -> f64 {
    let first = lookback.saturating_add(lookahead);
    if lookback <= lookahead || i >= x.len() || i < first {
        return f64::NAN;
    }
    let (start, end) = (i - lookback, i - lookahead);
    // All of them are looked at, which takes fewer steps than to look for the first.
    if !x[start..i].iter().fold(true, |all, v| all & v.is_finite()) {
        return f64::NAN;
    }
    let candidates = start + lookahead..end;
    // A candidate that no bar at all exceeds is confirmed, and the largest of them.
    if let Some(bars) = x.get(candidates.clone())
        && let (Some(largest), Some(of_all)) = (highest::<LOW>(bars), highest::<LOW>(&x[start..i]))
        && largest >= of_all
    {
        return restored::<LOW>(largest);
    }
    let mut best = f64::NEG_INFINITY;
    if candidates.len() < LANES {
        for k in candidates {
            let v = oriented::<LOW>(x[k]);
            let is_higher = |other: &f64| oriented::<LOW>(*other) > v;
            if v > best && !x[k - lookahead..=k + lookahead].iter().any(is_higher) {
                best = v;
            }
        }
    } else {
        // The last ones overlap those before: a bar that is looked at twice changes nothing.
        for from in candidates.step_by(LANES).map(|from| from.min(end - LANES)) {
            best = larger(highest_confirmed::<LOW>(&x[from - lookahead..], lookahead, best), best);
        }
    }
    if best == f64::NEG_INFINITY {
        best = maximum_of::<LOW>(&x[start..end]);
    }
    restored::<LOW>(best)
}

/// The largest of many values; none if they are too few for it.
#[inline(always)]
fn highest<const LOW: bool>(x: &[f64]) -> Option<f64> {
    // The last ones may be looked at twice.
    let mut lanes = x.last_chunk::<{ 2 * LANES }>()?.map(oriented::<LOW>);
    for values in x.as_chunks::<{ 2 * LANES }>().0 {
        for (lane, v) in lanes.iter_mut().zip(values) {
            *lane = larger(oriented::<LOW>(*v), *lane);
        }
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = larger(lanes[lane], lanes[lane + half]);
        }
    }
    Some(lanes[0])
}

/// The largest of the bars from `lookahead` on that are looked at together and are confirmed; `least` or less if none is above it.
#[inline(always)]
fn highest_confirmed<const LOW: bool>(x: &[f64], lookahead: usize, least: f64) -> f64 {
    let bars = |from: usize| x[from..].first_chunk::<LANES>().map(|bars| bars.map(oriented::<LOW>));
    let Some(mut here) = bars(lookahead) else { return least };
    // Most swings are found early, and hardly any bar is above them.
    if !here.iter().fold(false, |any, v| any | (*v > least)) {
        return least;
    }
    // Before and after apart, so that neither waits for the other.
    let (mut before, mut after) = (here, here);
    for distance in 1..=lookahead {
        let (Some(earlier), Some(later)) = (bars(lookahead - distance), bars(lookahead + distance)) else {
            return least;
        };
        for lane in 0..LANES {
            before[lane] = larger(earlier[lane], before[lane]);
            after[lane] = larger(later[lane], after[lane]);
        }
    }
    for lane in 0..LANES {
        let is_confirmed = (here[lane] >= before[lane]) & (here[lane] >= after[lane]);
        here[lane] = if is_confirmed { here[lane] } else { f64::NEG_INFINITY };
    }
    for half in [4, 2, 1] {
        for lane in 0..half {
            here[lane] = larger(here[lane], here[lane + half]);
        }
    }
    here[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_higher_bar_is_ignored_when_a_confirmed_one_exists() {
        // 3 is confirmed by its neighbours; 7 and 9 rise into the end of the window.
        let x = [1.0, 2.0, 3.0, 2.0, 1.0, 7.0, 9.0, 9.5];
        assert_eq!(swing_high_at(&x, 6, 1, 7), 3.0);
        // Seen from a window that holds no confirmed bar, the plain maximum stands.
        assert_eq!(swing_high_at(&x, 3, 1, 7), 7.0);
        let low: Vec<f64> = x.iter().map(|v| -v).collect();
        assert_eq!(swing_low_at(&low, 6, 1, 7), -3.0);
    }

    #[test]
    fn bar_itself_and_later_ones_are_not_looked_at() {
        let mut x = vec![1.0, 2.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0];
        let before = swing_high_at(&x, 5, 2, 7);
        x[7] = f64::NAN;
        assert_eq!(swing_high_at(&x, 5, 2, 7), before);
        let mut out = vec![0.0; 8];
        swing_high(&x, 5, 2, &mut out);
        assert_eq!(out[7], before);
    }

    #[test]
    fn swing_without_room_is_not_available() {
        let x = [1.0; 10];
        let mut out = [0.0; 10];
        for (lookback, lookahead) in
            [(0, 0), (3, 3), (2, 5), (9, 1), (usize::MAX, 1), (usize::MAX, usize::MAX - 1)]
        {
            swing_high(&x, lookback, lookahead, &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
            assert!(swing_low_at(&x, lookback, lookahead, 9).is_nan());
        }
        swing_high(&[], 3, 1, &mut []);
        assert!(swing_high_at(&[], 3, 1, 0).is_nan());
    }

    #[test]
    fn single_swings_are_those_of_the_plain_scan() {
        // Ties, plateaus, zeros of both signs, gaps; windows from too short for a vector to several of them.
        let mut x: Vec<f64> =
            (0..700_u32).map(|i| f64::from(i * i % 37) - 18.0 + f64::from(i / 90 % 3)).collect();
        x.extend((0..200).map(|i| 100.0 - f64::from(i / 4)));
        x.extend((0..40).map(|i| if i % 2 == 0 { 0.0 } else { -0.0 }));
        (x[300], x[650]) = (f64::NAN, f64::INFINITY);
        let negated: Vec<f64> = x.iter().map(|v| -v).collect();
        let plain = |lookback: usize, lookahead: usize, i: usize| {
            if lookback <= lookahead
                || i < lookback + lookahead
                || x[i - lookback..i].iter().any(|v| !v.is_finite())
            {
                return f64::NAN;
            }
            let is_confirmed = |k: &usize| x[k - lookahead..=k + lookahead].iter().all(|v| *v <= x[*k]);
            let largest = |bars: &mut dyn Iterator<Item = usize>| bars.map(|k| x[k]).reduce(f64::max);
            let confirmed = largest(&mut (i - lookback + lookahead..i - lookahead).filter(is_confirmed));
            let largest = confirmed.or_else(|| largest(&mut (i - lookback..i - lookahead)));
            largest.map_or(f64::NAN, |v| v + 0.0)
        };
        for lookahead in [0, 1, 2, 3, 5, 8, 11] {
            for lookback in [1, 2, 3, 7, 10, 17, 23, 24, 25, 40, 96, 191] {
                for i in 0..x.len() {
                    let expected = plain(lookback, lookahead, i);
                    let found = swing_high_at(&x, lookback, lookahead, i);
                    let of_negated = swing_low_at(&negated, lookback, lookahead, i);
                    let is_same =
                        |v: f64| v.to_bits() == expected.to_bits() || v.is_nan() && expected.is_nan();
                    assert!(is_same(found), "{lookback} {lookahead} at bar {i}: {found}, not {expected}");
                    assert!(is_same(0.0 - of_negated), "{lookback} {lookahead} at bar {i}: {of_negated}");
                }
            }
        }
    }
}
