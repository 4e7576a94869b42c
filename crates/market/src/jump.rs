//! Jumps of price that are more likely a fault of the data than a move of the market: unadjusted splits, wild first bars.
//!
//! Both are only reported. Whether a price halved or was split cannot be told from bars alone, and a wrong repair would be
//! worse than none.

use crate::bars::Bars;

/// Whole factors of a split; 3/2 is the other one.
const FACTORS: [f64; 14] = [1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 50.0];

/// How far the ratio of prices may lie from the factor, as a share of it.
const TOLERANCE: f64 = 0.015;

/// Bars on each side whose median volume is compared.
const SIDE_BARS: usize = 5;

/// Bars of a symbol that count as its first.
const FIRST_BARS: usize = 10;

/// A listing's first bars that span more than this are reported.
const LISTING_RATIO: f64 = 5.0;

/// Bars that look like the first one after a split.
///
/// Such a bar's open ÷ the close before is within 1.5 % of n or 1/n (n = 3/2, 2 … 10, 15, 20, 25 or 50), and the median
/// volume of the five bars from it on is at least √n times as large (n times cheaper) or as small (n times dearer) as that
/// of the five bars before. Where a side has fewer than five bars, those it has are taken; of an even number the mean of the
/// middle two is the median. If either median is zero there is no volume to confirm a split, and none is suspected.
pub(crate) fn suspected_splits(bars: &Bars) -> Vec<usize> {
    let is_split = |bar_idx: &usize| {
        let ratio = bars.open[*bar_idx] / bars.close[*bar_idx - 1];
        let near = |factor: f64| (ratio - factor).abs() <= TOLERANCE * factor;
        // Nearly all bars end here.
        if ratio > (1.0 + TOLERANCE) / FACTORS[0] && ratio < (1.0 - TOLERANCE) * FACTORS[0] {
            return false;
        }
        let Some(factor) = FACTORS.into_iter().find(|factor| near(*factor) || near(1.0 / factor)) else {
            return false;
        };
        let before = median(&bars.volume[bar_idx.saturating_sub(SIDE_BARS)..*bar_idx]);
        let after = median(&bars.volume[*bar_idx..bars.len().min(bar_idx + SIDE_BARS)]);
        let (more, less) = if ratio < 1.0 { (after, before) } else { (before, after) };
        less > 0.0 && more >= factor.sqrt() * less
    };
    (1..bars.len()).filter(is_split).collect()
}

/// The bar by which the first ten of a symbol have moved by more than five times: the first one with which the highest
/// high so far is above five times the lowest low so far.
pub(crate) fn listing_jump(bars: &Bars) -> Option<usize> {
    let (mut top, mut bottom) = (f64::NEG_INFINITY, f64::INFINITY);
    (0..bars.len().min(FIRST_BARS)).find(|&bar_idx| {
        top = if bars.high[bar_idx] > top { bars.high[bar_idx] } else { top };
        bottom = if bars.low[bar_idx] < bottom { bars.low[bar_idx] } else { bottom };
        top > LISTING_RATIO * bottom
    })
}

/// The median of at least one and at most [`SIDE_BARS`] volumes.
fn median(volumes: &[f64]) -> f64 {
    let mut sorted = [0.0; SIDE_BARS];
    let sorted = &mut sorted[..volumes.len()];
    sorted.copy_from_slice(volumes);
    sorted.sort_unstable_by(f64::total_cmp);
    let (middle, is_even) = (sorted.len() / 2, sorted.len().is_multiple_of(2));
    if is_even { 0.5 * (sorted[middle - 1] + sorted[middle]) } else { sorted[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flat bars at a price with a volume each.
    fn bars(prices: &[f64], volumes: &[f64]) -> Bars {
        Bars {
            symbol: "X".into(),
            timeframe_ms: 1,
            ts_ms: (0..prices.len() as i64).collect(),
            open: prices.to_vec(),
            high: prices.to_vec(),
            low: prices.to_vec(),
            close: prices.to_vec(),
            volume: volumes.to_vec(),
            ..Bars::default()
        }
    }

    /// Six bars at 100 with volume 1,000, then six at another price with another volume.
    fn step(price: f64, volume: f64) -> Bars {
        bars(&[[100.0; 6], [price; 6]].concat(), &[[1_000.0; 6], [volume; 6]].concat())
    }

    #[test]
    fn splits_both_ways_by_every_factor_are_suspected() {
        let factors = [2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 50].map(f64::from);
        for factor in factors.into_iter().chain([1.5]) {
            assert_eq!(suspected_splits(&step(100.0 / factor, 1_000.0 * factor)), [6], "1/{factor}");
            assert_eq!(suspected_splits(&step(100.0 * factor, 1_000.0 / factor)), [6], "{factor}");
        }
        for factor in [1.2, 1.25, 11.0, 12.0, 30.0, 100.0, 2.5] {
            assert!(suspected_splits(&step(100.0 / factor, 1_000.0 * factor)).is_empty(), "1/{factor}");
            assert!(suspected_splits(&step(100.0 * factor, 1_000.0 / factor)).is_empty(), "{factor}");
        }
    }

    #[test]
    fn the_tolerance_is_one_and_a_half_per_cent_of_the_factor() {
        for (price, is_split) in [(50.74, true), (49.26, true), (50.76, false), (49.24, false)] {
            assert_eq!(!suspected_splits(&step(price, 2_000.0)).is_empty(), is_split, "{price}");
        }
        for (price, is_split) in [(202.9, true), (197.1, true), (203.1, false), (196.9, false)] {
            assert_eq!(!suspected_splits(&step(price, 500.0)).is_empty(), is_split, "{price}");
        }
        // The fast way out must not cut off the near edges of 3/2 and 2/3.
        assert_eq!(suspected_splits(&step(147.8, 500.0)), [6]);
        assert_eq!(suspected_splits(&step(67.6, 2_000.0)), [6]);
    }

    #[test]
    fn volume_must_move_the_other_way_by_the_root_of_the_factor() {
        assert_eq!(suspected_splits(&step(25.0, 2_000.0)), [6], "a quarter of the price, twice the volume");
        assert!(suspected_splits(&step(25.0, 1_999.0)).is_empty());
        assert!(suspected_splits(&step(25.0, 250.0)).is_empty(), "volume fell with the price");
        assert_eq!(suspected_splits(&step(400.0, 500.0)), [6]);
        assert!(suspected_splits(&step(400.0, 501.0)).is_empty());
        assert!(suspected_splits(&step(400.0, 4_000.0)).is_empty());
    }

    #[test]
    fn without_volume_nothing_is_suspected() {
        assert!(suspected_splits(&bars(&[100.0, 50.0], &[0.0, 0.0])).is_empty());
        assert!(suspected_splits(&step(50.0, 0.0)).is_empty());
        assert!(suspected_splits(&bars(&[100.0, 50.0], &[0.0, 7.0])).is_empty());
        assert!(suspected_splits(&step(200.0, 0.0)).is_empty(), "no trade after is no volume that fell");
    }

    #[test]
    fn the_median_decides_and_short_sides_are_taken_as_they_are() {
        // One wild bar among five does not count on either side.
        let mut wild = step(50.0, 1_000.0);
        wild.volume[6] = 1e9;
        assert!(suspected_splits(&wild).is_empty());
        wild.volume[6..11].fill(1_500.0);
        wild.volume[8] = 1.0;
        assert_eq!(suspected_splits(&wild), [6]);
        // Five bars and neither four nor six.
        for volumes in
            [[1_500.0, 1_500.0, 1_500.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1_500.0, 1_500.0, 1_500.0, 1_500.0]]
        {
            wild.volume[6..].copy_from_slice(&volumes);
            assert_eq!(suspected_splits(&wild), [6], "{volumes:?}");
        }
        assert_eq!(suspected_splits(&bars(&[100.0, 50.0], &[1.0, 2.0])), [1]);
        assert_eq!(
            suspected_splits(&bars(&[100.0, 100.0, 50.0], &[1.0, 3.0, 3.0])),
            [2],
            "the mean of 1 and 3"
        );
        assert!(suspected_splits(&bars(&[100.0, 100.0, 50.0], &[1.0, 3.5, 3.0])).is_empty());
        assert!(suspected_splits(&bars(&[100.0], &[1.0])).is_empty());
        assert!(suspected_splits(&Bars::default()).is_empty());
    }

    #[test]
    fn a_fall_inside_a_bar_is_no_split() {
        let mut crash = step(50.0, 2_000.0);
        crash.open[6] = 100.0;
        assert!(suspected_splits(&crash).is_empty());
    }

    #[test]
    fn a_listing_that_moves_by_more_than_five_times_is_found_where_it_does() {
        let volumes = [1.0; 12];
        assert_eq!(listing_jump(&bars(&[1.0, 5.0], &volumes[..2])), None, "five times is not more");
        assert_eq!(listing_jump(&bars(&[1.0, 2.0, 5.1], &volumes[..3])), Some(2));
        assert_eq!(listing_jump(&bars(&[5.1, 2.0, 1.0], &volumes[..3])), Some(2), "downwards too");
        assert_eq!(listing_jump(&bars(&[1.0, 2.0, 4.0, 8.0], &volumes[..4])), Some(3), "in several steps");
        let mut wick = bars(&[10.0, 10.0], &volumes[..2]);
        wick.low[0] = 1.0;
        assert_eq!(listing_jump(&wick), Some(0), "inside the first bar");
        let mut late = bars(&[1.0; 12], &volumes);
        late.high[10] = 100.0;
        assert_eq!(listing_jump(&late), None, "the eleventh bar");
        late.high[9] = 100.0;
        assert_eq!(listing_jump(&late), Some(9));
        assert_eq!(listing_jump(&Bars::default()), None);
    }
}
