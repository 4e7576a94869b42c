//! Which bar of one series another one knows: by the times at which bars close.
//!
//! A bar closes one timeframe after it opens, whenever the next one opens. Nothing here looks at prices, and no bar knows one that closes after it.

use crate::bars::{Bars, DAY_MS};

/// Stands for "none" among the bars that are known.
pub const NO_BAR: u32 = u32::MAX;

/// What another series said counts for so long at least, in milliseconds.
const USUAL_AGE_MS: i64 = 4 * DAY_MS;

/// Bars of the slower of two series for which it counts at least.
const USUAL_AGE_BARS: i64 = 3;

/// When each bar closes.
pub fn close_times(bars: &Bars) -> Vec<i64> {
    bars.ts_ms.iter().map(|ts_ms| ts_ms.saturating_add(bars.timeframe_ms)).collect()
}

/// When each of the longer bars that were made of these is finished: at its end, or when the last bar in it closes, if that is later.
pub fn finish_times(longer: &Bars, bars: &Bars) -> Vec<i64> {
    let mut next = 0;
    let finish = |start_ms: &i64| {
        let end_ms = start_ms.saturating_add(longer.timeframe_ms);
        next += bars.ts_ms[next..].iter().take_while(|ts_ms| **ts_ms < end_ms).count();
        let last_close = next.checked_sub(1).map(|last| bars.ts_ms[last].saturating_add(bars.timeframe_ms));
        last_close.map_or(end_ms, |close| close.max(end_ms))
    };
    longer.ts_ms.iter().map(finish).collect()
}

/// For each time the last of some ascending ones that is not after it, or [`NO_BAR`] where there is none or it is older than `most_ms`.
pub fn last_known(known: &[i64], times: &[i64], most_ms: Option<i64>) -> Vec<u32> {
    let mut n_known = 0;
    let last = |time: &i64| {
        n_known += known[n_known..].iter().take_while(|known| *known <= time).count();
        match n_known.checked_sub(1) {
            Some(last) if most_ms.is_none_or(|most| time.saturating_sub(known[last]) <= most) => last as u32,
            _ => NO_BAR,
        }
    };
    times.iter().map(last).collect()
}

/// How old a bar of another series may be for these two timeframes, if nothing else is said.
pub fn usual_age_ms(a_ms: i64, b_ms: i64) -> i64 {
    USUAL_AGE_MS.max(a_ms.max(b_ms).saturating_mul(USUAL_AGE_BARS))
}

/// The bars of all symbols by the time at which they close.
///
/// Bars are counted through all symbols, one symbol after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrossSections {
    /// The bars of each time, in byte order of the symbols' names.
    pub bars: Vec<u32>,
    /// Where the bars of each time begin, and the end.
    pub start: Vec<u32>,
}

impl CrossSections {
    /// Of these symbols.
    pub fn new<'a>(symbols: impl IntoIterator<Item = &'a Bars>) -> Self {
        let symbols: Vec<&Bars> = symbols.into_iter().collect();
        let mut order: Vec<usize> = (0..symbols.len()).collect();
        order.sort_by(|a, b| symbols[*a].symbol.as_bytes().cmp(symbols[*b].symbol.as_bytes()));
        let mut place = vec![0; symbols.len()];
        order.iter().enumerate().for_each(|(at, symbol)| place[*symbol] = at);
        let mut all: Vec<(i64, usize, u32)> = Vec::new();
        for (bars, place) in symbols.iter().zip(place) {
            let first = all.len();
            let bar = |(at, close): (usize, i64)| (close, place, (first + at) as u32);
            all.extend(close_times(bars).into_iter().enumerate().map(bar));
        }
        all.sort_unstable();
        let mut out = Self::default();
        let mut last = None;
        for (close, _, bar) in all {
            if last.replace(close) != Some(close) {
                out.start.push(out.bars.len() as u32);
            }
            out.bars.push(bar);
        }
        out.start.push(out.bars.len() as u32);
        out
    }

    /// The bars of each time.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.start.windows(2).map(|ends| &self.bars[ends[0] as usize..ends[1] as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::resample;

    fn bars(symbol: &str, timeframe_ms: i64, ts_ms: &[i64]) -> Bars {
        let value = vec![1.0; ts_ms.len()];
        Bars {
            symbol: symbol.into(),
            timeframe_ms,
            ts_ms: ts_ms.to_vec(),
            open: value.clone(),
            high: value.clone(),
            low: value.clone(),
            close: value.clone(),
            volume: value,
            ..Bars::default()
        }
    }

    #[test]
    fn a_bucket_is_known_when_it_is_finished() {
        // Buckets of 4 from bars of 1; the second lacks its last bar, the fourth is not finished.
        let base = bars("X", 1, &[0, 1, 2, 3, 4, 5, 8, 11, 12]);
        let longer = resample(&base, 4).unwrap().bars;
        assert_eq!(finish_times(&longer, &base), [4, 8, 12, 16]);
        let known = last_known(&finish_times(&longer, &base), &close_times(&base), None);
        assert_eq!(known, [NO_BAR, NO_BAR, NO_BAR, 0, 0, 0, 1, 2, 2]);
    }

    #[test]
    fn a_bar_that_reaches_beyond_its_bucket_finishes_it_later() {
        let base = bars("X", 4, &[1, 5, 9]);
        let longer = resample(&base, 4).unwrap().bars;
        assert_eq!(longer.ts_ms, [0, 4, 8]);
        assert_eq!(finish_times(&longer, &base), [5, 9, 13]);
        assert_eq!(last_known(&[5, 9, 13], &close_times(&base), None), [0, 1, 2]);
    }

    #[test]
    fn what_is_too_old_is_not_known() {
        assert_eq!(
            last_known(&[10, 20], &[9, 10, 15, 16, 20, 26], Some(5)),
            [NO_BAR, 0, 0, NO_BAR, 1, NO_BAR]
        );
        assert_eq!(usual_age_ms(60_000, 3_600_000), 4 * DAY_MS);
        assert_eq!(usual_age_ms(7 * DAY_MS, 3_600_000), 21 * DAY_MS);
    }

    #[test]
    fn cross_sections_go_by_names_and_by_closes() {
        // B closes its hour when A closes its fourth quarter.
        let a = bars("B", 15, &[0, 15, 30, 45]);
        let b = bars("A", 60, &[0, 60]);
        let sections = CrossSections::new([&a, &b]);
        let all: Vec<&[u32]> = sections.iter().collect();
        assert_eq!(all, [&[0][..], &[1], &[2], &[4, 3], &[5]]);
    }
}
