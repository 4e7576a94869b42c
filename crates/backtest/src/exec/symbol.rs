//! What the executor keeps of one symbol besides its bars: time columns and the table of days.

use tidemill_market::{Bars, DAY_MS, timestamp};

use crate::graph::Source;

/// One symbol, prepared once per run.
pub struct Symbol<'a> {
    /// Its bars.
    pub bars: &'a Bars,
    bar_index: Vec<f64>,
    hour: Vec<f64>,
    weekday: Vec<f64>,
    /// Number of each bar's UTC day among the days that have bars.
    pub day: Vec<u32>,
    /// Close of the last bar of each day: marks read these one after the other, and not all over the closes.
    pub day_close: Vec<f64>,
    /// Each day's place among the days of the whole universe.
    pub calendar: Vec<u32>,
    extra: Vec<&'a [f64]>,
}

impl<'a> Symbol<'a> {
    /// Prepares a symbol; `extra_columns` are those that the strategy was compiled for, `calendar` all days of the universe.
    pub fn new(bars: &'a Bars, extra_columns: &[String], calendar: &[i64]) -> Self {
        let n_bars = bars.len();
        let mut day = Vec::with_capacity(n_bars);
        let mut last_bar: Vec<u32> = Vec::new();
        let mut places = Vec::new();
        let mut previous = i64::MIN;
        for bar in 0..n_bars {
            let today = bars.day(bar);
            if today != previous {
                previous = today;
                last_bar.push(bar as u32);
                places.push(calendar.binary_search(&today).unwrap_or(0) as u32);
            }
            if let Some(last) = last_bar.last_mut() {
                *last = bar as u32;
            }
            day.push(last_bar.len() as u32 - 1);
        }
        Self {
            bars,
            day_close: last_bar.iter().map(|bar| bars.close[*bar as usize]).collect(),
            bar_index: (0..n_bars).map(|bar| bar as f64).collect(),
            hour: bars.ts_ms.iter().map(|ts| (ts.rem_euclid(DAY_MS) / 3_600_000) as f64).collect(),
            weekday: bars.ts_ms.iter().map(|ts| timestamp::weekday(*ts) as f64).collect(),
            day,
            calendar: places,
            extra: extra_columns
                .iter()
                .map(|name| {
                    bars.extra
                        .iter()
                        .find(|(n, _)| n == name)
                        .map_or(&[][..], |(_, column)| column.as_slice())
                })
                .collect(),
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
            Source::BarIndex => &self.bar_index,
            Source::Hour => &self.hour,
            Source::Weekday => &self.weekday,
            Source::Extra(column) => self.extra[column as usize],
        }
    }
}

/// All UTC days on which any symbol has a bar, in order.
pub fn calendar<'a>(symbols: impl Iterator<Item = &'a Bars>) -> Vec<i64> {
    let mut days: Vec<i64> = Vec::new();
    for bars in symbols {
        let mut previous = i64::MIN;
        for ts in &bars.ts_ms {
            let day = ts.div_euclid(DAY_MS);
            if day != previous {
                previous = day;
                days.push(day);
            }
        }
    }
    days.sort_unstable();
    days.dedup();
    days
}
