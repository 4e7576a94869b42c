//! Resampling to longer bars.
//!
//! Buckets are aligned to UTC: a 4h bar opens at 00:00, 04:00, …, a weekly one on Monday 00:00. Open is the first
//! price, high the highest, low the lowest, close the last, volume the sum, a further column its last value. A bucket without any
//! source bar does not exist in the result; one that lacks some is kept and reported as partial.
//!
//! Volumes are decimal quantities. Where all of a bucket have at most eight places they are added as such, so that 0.1
//! and 0.2 make 0.3 and the result equals what the exchange itself publishes for the longer bar.

use crate::bars::{Bars, DAY_MS};
use crate::clean::Calendar;
use crate::error::MarketError;
use crate::timeframe::WEEK_MS;

/// 1970-01-05, the first Monday of the epoch.
const FIRST_MONDAY_MS: i64 = 4 * DAY_MS;

/// Longer bars, and which of them are incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct Resampled {
    /// The longer bars.
    pub bars: Bars,
    /// Open times of those that lack source bars.
    pub partial_ms: Vec<i64>,
}

/// Start of the bucket of length `to_ms` that holds a time.
fn bucket_start(ts_ms: i64, to_ms: i64) -> i64 {
    let anchor = if to_ms % WEEK_MS == 0 { FIRST_MONDAY_MS } else { 0 };
    (ts_ms - anchor).div_euclid(to_ms) * to_ms + anchor
}

/// The power of ten that turns all these decimals into whole numbers whose sum stays exact, if there is one.
fn decimal_scale(values: &[f64]) -> Option<f64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let largest = values.iter().fold(0.0, |top, &x| if x > top { x } else { top });
    let mut scale = 1.0;
    for &value in values {
        while (value * scale).round() / scale != value {
            scale *= 10.0;
            if scale > 1e8 {
                return None;
            }
        }
    }
    (largest * scale * (values.len() as f64) < EXACT).then_some(scale)
}

/// Sums volumes, as decimals where they are some: what other bars hold changes nothing.
fn sum_volume(values: &[f64]) -> f64 {
    match decimal_scale(values) {
        Some(scale) => values.iter().map(|value| (value * scale).round()).sum::<f64>() / scale,
        None => values.iter().sum(),
    }
}

/// Resamples to bars of `to_ms`, a whole multiple of the source's timeframe.
pub fn resample(bars: &Bars, to_ms: i64) -> Result<Resampled, MarketError> {
    let from_ms = bars.timeframe_ms;
    if to_ms < from_ms || from_ms <= 0 || to_ms % from_ms != 0 {
        return Err(MarketError::Resample { symbol: bars.symbol.clone(), from_ms, to_ms });
    }
    let calendar = Calendar::of(bars);
    let mut result = Bars {
        symbol: bars.symbol.clone(),
        timeframe_ms: to_ms,
        closes_only: bars.closes_only,
        extra: bars.extra.iter().map(|(name, _)| (name.clone(), Vec::new())).collect(),
        ..Bars::default()
    };
    let mut partial_ms = Vec::new();
    let mut first = 0;
    while first < bars.len() {
        let start = bucket_start(bars.ts_ms[first], to_ms);
        let end = start.saturating_add(to_ms);
        let len = bars.ts_ms[first..].iter().take_while(|&&ts_ms| ts_ms < end).count();
        let range = first..first + len;
        result.ts_ms.push(start);
        result.open.push(bars.open[first]);
        result.high.push(
            bars.high[range.clone()].iter().fold(bars.high[first], |top, &x| if x > top { x } else { top }),
        );
        result.low.push(
            bars.low[range.clone()].iter().fold(bars.low[first], |low, &x| if x < low { x } else { low }),
        );
        result.close.push(bars.close[range.end - 1]);
        result.volume.push(sum_volume(&bars.volume[range.clone()]));
        for ((_, target), (_, source)) in result.extra.iter_mut().zip(&bars.extra) {
            target.push(source[range.end - 1]);
        }
        if (len as u64) < calendar.expected(start, end) {
            partial_ms.push(start);
        }
        first = range.end;
    }
    Ok(Resampled { bars: result, partial_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute_bars(minutes: &[i64]) -> Bars {
        let value =
            |shift: f64| minutes.iter().map(|&minute| 100.0 + minute as f64 + shift).collect::<Vec<_>>();
        Bars {
            symbol: "X".into(),
            timeframe_ms: 60_000,
            ts_ms: minutes.iter().map(|minute| minute * 60_000).collect(),
            open: value(0.0),
            high: value(2.0),
            low: value(-2.0),
            close: value(1.0),
            volume: minutes.iter().map(|_| 1.5).collect(),
            extra: vec![("x".into(), value(0.5))],
            ..Bars::default()
        }
    }

    #[test]
    fn five_minutes_are_first_max_min_last_sum() {
        let resampled = resample(&minute_bars(&[0, 1, 2, 3, 4, 5, 7]), 300_000).unwrap();
        let bars = &resampled.bars;
        assert_eq!(bars.ts_ms, [0, 300_000]);
        assert_eq!((bars.open[0], bars.high[0], bars.low[0], bars.close[0]), (100.0, 106.0, 98.0, 105.0));
        assert_eq!(bars.volume, [7.5, 3.0]);
        assert_eq!(bars.extra[0].1, [104.5, 107.5]);
        assert_eq!(resampled.partial_ms, [300_000]);
        assert_eq!(bars.timeframe_ms, 300_000);
    }

    #[test]
    fn the_same_timeframe_changes_nothing() {
        let bars = minute_bars(&[3, 4, 9]);
        let resampled = resample(&bars, 60_000).unwrap();
        assert_eq!(resampled.bars, bars);
        assert!(resampled.partial_ms.is_empty());
    }

    #[test]
    fn only_whole_multiples_are_possible() {
        let bars = minute_bars(&[0, 1]);
        assert!(resample(&bars, 90_000).is_err());
        assert!(resample(&bars, 30_000).is_err());
        assert!(resample(&bars, 0).is_err());
    }

    #[test]
    fn weeks_start_on_monday_and_five_days_fill_them() {
        let mut bars = minute_bars(&[0, 1, 2, 3, 4, 5, 6]);
        bars.timeframe_ms = DAY_MS;
        // Monday 1970-01-05 to Friday, then Monday and Tuesday.
        bars.ts_ms = [4, 5, 6, 7, 8, 11, 12].iter().map(|day| day * DAY_MS).collect();
        let resampled = resample(&bars, WEEK_MS).unwrap();
        assert_eq!(resampled.bars.ts_ms, [4 * DAY_MS, 11 * DAY_MS]);
        assert_eq!(resampled.partial_ms, [11 * DAY_MS]);
    }

    #[test]
    fn volumes_add_up_as_decimals() {
        let mut bars = minute_bars(&[0, 1, 2]);
        bars.volume = vec![0.1, 0.2, 0.7];
        assert_eq!(resample(&bars, 120_000).unwrap().bars.volume, [0.3, 0.7]);
        bars.volume = vec![1e300, 1e-300, 0.7];
        assert_eq!(resample(&bars, 120_000).unwrap().bars.volume, [1e300, 0.7]);
        bars.volume = vec![0.1 + 0.2, 1.0, 0.7];
        assert_eq!(resample(&bars, 120_000).unwrap().bars.volume[0], 0.1 + 0.2 + 1.0);
    }

    #[test]
    fn times_before_the_epoch_fall_into_the_bucket_below() {
        assert_eq!(bucket_start(-1, 60_000), -60_000);
        assert_eq!(bucket_start(0, WEEK_MS), -3 * DAY_MS);
    }
}
