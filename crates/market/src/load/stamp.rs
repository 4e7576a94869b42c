//! What the times of a file are: when bars open, or when they end.
//!
//! Inside the program every time is the open of a bar. Times that are ends therefore lose the length of a bar right
//! after reading, before anything else looks at them, so that files are compared, cleaned, cut and resampled as if they
//! had been written with open times.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::table::NO_TIME;
use crate::bars::DAY_MS;
use crate::clean::{Source, SymbolRows};
use crate::error::MarketError;
use crate::timeframe::{self, WEEK_MS};
use crate::timestamp::{format_ms, weekday};

/// What a file's times say about a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BarStamp {
    /// When it opens.
    #[default]
    Open,
    /// When it ends: as the next one opens, or the last millisecond, second or minute before that.
    Close,
}

/// Steps of this length and more that are no whole weeks are months or longer, which have no fixed length.
const SHORTEST_MONTH_MS: i64 = 28 * DAY_MS;

/// An end written as the last unit of the bar (`23:59:59.999`, `23:59:59`, `23:59`): the unit, the time it is the last one
/// of, and whether that is certain from a single row.
const LAST_UNITS: [(i64, i64, bool); 3] =
    [(1, 1_000, true), (1_000, 60_000, true), (60_000, 3_600_000, false)];

/// Turns the ends of bars into open times, in place. The answer has an entry per symbol.
pub(crate) fn open_times(gathered: &[SymbolRows], sources: &mut [Source]) -> Vec<Result<(), MarketError>> {
    let times: Vec<Vec<i64>> = gathered.par_iter().map(|symbol| times_of(symbol, sources)).collect();
    let timeframes: Vec<Option<i64>> = times.par_iter().map(|times| timeframe::detect(times)).collect();
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for (timeframe_ms, times) in timeframes.iter().zip(&times) {
        if let Some(timeframe_ms) = timeframe_ms {
            *counts.entry(*timeframe_ms).or_default() += times.len();
        }
    }
    // A single bar has no step; it takes the commonest of the others, or one day.
    let commonest = counts.iter().max_by_key(|(_, n_times)| **n_times).map_or(DAY_MS, |(&ms, _)| ms);
    let outcomes = gathered.iter().zip(times).zip(timeframes).map(|((symbol, times), timeframe_ms)| {
        let timeframe_ms = timeframe_ms.unwrap_or(commonest);
        let last_unit_ms = last_unit(&times, timeframe_ms)
            .map_err(|problem| MarketError::Stamp { symbol: symbol.symbol.clone(), problem })?;
        for run in &symbol.runs {
            let rows = &mut sources[run.file_idx].table.ts_ms[run.rows.clone()];
            for ts_ms in rows.iter_mut().filter(|ts_ms| **ts_ms != NO_TIME) {
                *ts_ms += last_unit_ms - timeframe_ms;
            }
        }
        Ok(())
    });
    outcomes.collect()
}

/// The readable times of a symbol, each once, rising.
fn times_of(symbol: &SymbolRows, sources: &[Source]) -> Vec<i64> {
    let rows = symbol.runs.iter().flat_map(|run| &sources[run.file_idx].table.ts_ms[run.rows.clone()]);
    let mut times: Vec<i64> = rows.copied().filter(|ts_ms| *ts_ms != NO_TIME).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// What is missing from a time to the end of its bar, the same for all of them.
fn last_unit(times: &[i64], timeframe_ms: i64) -> Result<i64, String> {
    if timeframe_ms >= SHORTEST_MONTH_MS && timeframe_ms % WEEK_MS != 0 {
        return Err("its bars are months or longer, which have no fixed length to subtract".to_string());
    }
    for (unit_ms, of_ms, is_certain) in LAST_UNITS {
        // Of a few bars whose ends differ in kind the step is off by the unit, and they are the ones to be found here.
        let nearest_ms = (timeframe_ms + unit_ms) / of_ms * of_ms;
        if nearest_ms == 0 || (timeframe_ms - nearest_ms).abs() > unit_ms {
            continue;
        }
        let is_last = |ts_ms: &&i64| ts_ms.rem_euclid(of_ms) == of_ms - unit_ms;
        let n_last = times.iter().filter(is_last).count();
        if n_last > 0 && n_last == times.len() {
            return Ok(unit_ms);
        }
        if n_last > 0 && is_certain {
            let example = |wanted: bool| times.iter().find(|ts_ms| is_last(ts_ms) == wanted);
            let [last, other] = [true, false].map(|wanted| example(wanted).map_or(0, |ts_ms| *ts_ms));
            let (last, other) = (format_ms(last), format_ms(other));
            return Err(format!("some of its bars end like {last} and others like {other}"));
        }
    }
    Ok(0)
}

/// Whether daily bars opened by a subtraction fall on Sundays and never on Fridays: dates from Monday to Friday that were
/// the bars' own days.
pub(crate) fn is_a_day_early(timeframe_ms: i64, ts_ms: &[i64]) -> bool {
    let has = |wanted: i64| ts_ms.iter().any(|ts_ms| weekday(*ts_ms) == wanted);
    timeframe_ms == DAY_MS && has(6) && !has(4) && !has(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn the_last_unit_of_a_bar_is_recognised_in_all_its_spellings() {
        let ends = |less: i64| (1..6).map(|hour| hour * HOUR - less).collect::<Vec<_>>();
        for less in [0, 1, 1_000, 60_000] {
            assert_eq!(last_unit(&ends(less), HOUR), Ok(less));
        }
        // Half past is a session's clock, not an end written short.
        assert_eq!(last_unit(&ends(HOUR / 2), HOUR), Ok(0));
        // The last minute is one of many for bars of minutes, the last millisecond for bars of milliseconds.
        assert_eq!(last_unit(&[59 * 60_000, 60 * 60_000], 60_000), Ok(0));
        assert_eq!(last_unit(&[999, 1_249, 1_499], 250), Ok(0));
        assert_eq!(last_unit(&[-1, HOUR - 1], HOUR), Ok(1), "before 1970 too");
        assert_eq!(last_unit(&[], HOUR), Ok(0));
    }

    #[test]
    fn ends_of_two_kinds_and_months_are_refused() {
        let problem = last_unit(&[HOUR - 1, 2 * HOUR], HOUR).unwrap_err();
        assert!(problem.contains("1970-01-01T00:59:59.999Z") && problem.contains("02:00:00Z"), "{problem}");
        assert!(last_unit(&[HOUR - 1_000, 2 * HOUR], HOUR).is_err());
        for less in [1, 1_000] {
            assert!(last_unit(&[HOUR - less, 2 * HOUR], HOUR + less).is_err(), "the step of two bars");
            assert!(last_unit(&[HOUR, 2 * HOUR - less], HOUR - less).is_err());
        }
        assert!(last_unit(&[0, 31 * DAY_MS], 31 * DAY_MS).unwrap_err().contains("months"));
        assert!(last_unit(&[0, 30 * DAY_MS], 30 * DAY_MS).is_err());
        assert_eq!(last_unit(&[0, WEEK_MS], WEEK_MS), Ok(0));
        assert_eq!(last_unit(&[0, 4 * WEEK_MS], 4 * WEEK_MS), Ok(0));
    }

    #[test]
    fn a_week_from_sunday_to_thursday_is_a_day_early() {
        // 1970-01-04 was a Sunday.
        let days = |days: &[i64]| days.iter().map(|day| (day + 3) * DAY_MS).collect::<Vec<_>>();
        assert!(is_a_day_early(DAY_MS, &days(&[0, 1, 2, 3, 4, 7])));
        assert!(!is_a_day_early(DAY_MS, &days(&[1, 2, 3, 4, 5])));
        assert!(!is_a_day_early(DAY_MS, &days(&[0, 1, 2, 3, 4, 5, 6])));
        assert!(!is_a_day_early(DAY_MS, &days(&[0, 1, 2, 3, 4, 5])), "currencies with a Sunday");
        assert!(!is_a_day_early(HOUR, &days(&[0, 1])));
    }
}
