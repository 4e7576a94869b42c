//! What the executor keeps of one symbol besides its bars: time columns and the table of days.

use std::borrow::Cow;
use std::sync::OnceLock;

use tidemill_market::{Bars, DAY_MS, resample, timestamp};

use crate::graph::Source;
use crate::point;

const HOUR_MS: i64 = 3_600_000;

/// One symbol, prepared once per run.
pub struct Symbol<'a> {
    /// Bars of its whole history.
    pub bars: Cow<'a, Bars>,
    /// Columns of the number and the time of each bar that the strategy reads.
    indexes: Vec<(Source, OnceLock<Vec<f64>>)>,
    /// Number of each bar's UTC day among the days that have bars.
    pub day: Vec<u32>,
    /// Close of the last bar of each day: marks read these one after the other, and not all over the closes.
    pub day_close: Vec<f64>,
    /// Lowest low of each day.
    pub day_low: Vec<f64>,
    /// Highest high of each day.
    pub day_high: Vec<f64>,
    /// The bar after the last one of each day.
    pub day_end: Vec<u32>,
    /// Lowest price of all bars: no level below it is ever reached.
    pub lowest: f64,
    /// Highest price of all bars.
    pub highest: f64,
    /// Each day's place among the days of the whole universe.
    pub calendar: Vec<u32>,
    /// Which of the bars' further columns each of the strategy's is.
    extra: Vec<Option<usize>>,
}

impl<'a> Symbol<'a> {
    /// Prepares a symbol for what a strategy reads; `extra_columns` are those that it was compiled for, `calendar` all days of the
    /// universe.
    pub fn new(bars: Cow<'a, Bars>, extra_columns: &[String], calendar: &[i64], read: &[Source]) -> Self {
        let n_bars = bars.len();
        let mut day = Vec::with_capacity(n_bars);
        let (mut day_close, mut day_end) = (Vec::new(), Vec::new());
        let (mut day_low, mut day_high) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        for (today, to) in days(&bars.ts_ms) {
            let from = day.len();
            day.resize(to, day_end.len() as u32);
            day_end.push(to as u32);
            day_close.push(bars.close[to - 1]);
            day_low.push(bars.low[from..to].iter().copied().fold(f64::INFINITY, point::minimum));
            day_high.push(bars.high[from..to].iter().copied().fold(f64::NEG_INFINITY, point::maximum));
            places.push(calendar.binary_search(&today).unwrap_or(0) as u32);
        }
        let lowest = |prices: &[f64]| prices.iter().copied().fold(f64::INFINITY, point::minimum);
        let highest = |prices: &[f64]| prices.iter().copied().fold(f64::NEG_INFINITY, point::maximum);
        Self {
            lowest: point::minimum(lowest(&day_low), lowest(&bars.open)),
            highest: point::maximum(highest(&day_high), highest(&bars.open)),
            day_close,
            day_low,
            day_high,
            day_end,
            indexes: read.iter().map(|source| (*source, OnceLock::new())).collect(),
            day,
            calendar: places,
            extra: extra_columns
                .iter()
                .map(|name| bars.extra.iter().position(|(column, _)| column == name))
                .collect(),
            bars,
        }
    }

    /// A series of the data.
    pub fn source(&self, source: Source) -> &[f64] {
        match source {
            Source::Open => &self.bars.open,
            Source::High => &self.bars.high,
            Source::Low => &self.bars.low,
            Source::Close => &self.bars.close,
            Source::Volume => &self.bars.volume,
            Source::Extra(column) => {
                self.extra[column as usize].map_or(&[], |column| self.bars.extra[column].1.as_slice())
            }
            Source::BarIndex
            | Source::Hour
            | Source::Weekday
            | Source::Minute
            | Source::Day
            | Source::Month
            | Source::Year
            | Source::PeriodStart(_)
            | Source::Session(..) => self
                .indexes
                .iter()
                .find(|(of, _)| *of == source)
                .map_or(&[], |(_, column)| column.get_or_init(|| index_column(&self.bars, source))),
        }
    }
}

/// A series of the bars' numbers or open times.
fn index_column(bars: &Bars, source: Source) -> Vec<f64> {
    let of: fn(i64) -> i64 = match source {
        Source::BarIndex => return (0..bars.len()).map(|bar| bar as f64).collect(),
        Source::Session(session, which) => return session.series(which, bars),
        Source::PeriodStart(period_ms) => return period_starts(bars, period_ms),
        Source::Minute => |ts_ms| ts_ms.rem_euclid(HOUR_MS) / 60_000,
        Source::Hour => |ts_ms| ts_ms.rem_euclid(DAY_MS) / HOUR_MS,
        Source::Weekday => timestamp::weekday,
        Source::Day => |ts_ms| timestamp::date(ts_ms).2,
        Source::Month => |ts_ms| timestamp::date(ts_ms).1,
        Source::Year => |ts_ms| timestamp::date(ts_ms).0,
        _ => return Vec::new(),
    };
    bars.ts_ms.iter().map(|ts_ms| of(*ts_ms) as f64).collect()
}

fn period_starts(bars: &Bars, period_ms: i64) -> Vec<f64> {
    let mut before = None;
    let is_first = |ts_ms: &i64| {
        let period = Some(resample::bucket_start(*ts_ms, period_ms));
        f64::from(u8::from(std::mem::replace(&mut before, period) != period))
    };
    bars.ts_ms.iter().map(is_first).collect()
}

/// All UTC days on which any symbol has a bar, in order.
pub fn calendar<'a>(symbols: impl Iterator<Item = &'a Bars>) -> Vec<i64> {
    let mut all: Vec<i64> = Vec::new();
    for bars in symbols {
        all.extend(days(&bars.ts_ms).map(|(day, _)| day));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The UTC days of bars in order, each with the bar after its last one.
fn days(ts_ms: &[i64]) -> impl Iterator<Item = (i64, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let day = ts_ms.get(from)?.div_euclid(DAY_MS);
        let end = (day + 1).saturating_mul(DAY_MS);
        let rest = &ts_ms[from + 1..];
        from += 1 + rest.iter().position(|ts| *ts >= end).unwrap_or(rest.len());
        Some((day, from))
    })
}
