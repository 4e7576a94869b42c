//! The length of a bar: found in the data, read from text such as `15m`, written back as text.

use crate::bars::DAY_MS;
use crate::error::MarketError;

/// Milliseconds of one week.
pub const WEEK_MS: i64 = 7 * DAY_MS;

const UNITS: [(&str, i64); 6] =
    [("w", WEEK_MS), ("d", DAY_MS), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The most frequent step between neighbouring timestamps; the smaller one on a tie, `None` below two bars.
///
/// `ts_ms` has to rise strictly, as it does in [`Bars`](crate::Bars).
pub fn detect(ts_ms: &[i64]) -> Option<i64> {
    // Nearly all data has one dominating step, so look for a strict majority first: no sort, no table.
    let steps = || ts_ms.windows(2).map(|pair| pair[1] - pair[0]);
    let (mut candidate, mut lead) = (0, 0_usize);
    for step in steps() {
        if lead == 0 {
            candidate = step;
            lead = 1;
        } else if step == candidate {
            lead += 1;
        } else {
            lead -= 1;
        }
    }
    let n_steps = ts_ms.len().checked_sub(1).filter(|&n| n > 0)?;
    if 2 * steps().filter(|&step| step == candidate).count() > n_steps {
        return Some(candidate);
    }
    let mut sorted: Vec<i64> = steps().collect();
    sorted.sort_unstable();
    let (mut best, mut best_count) = (sorted[0], 0);
    for run in sorted.chunk_by(|a, b| a == b) {
        if run.len() > best_count {
            (best, best_count) = (run[0], run.len());
        }
    }
    Some(best)
}

/// Reads `"15m"`, `"1h"`, `"1d"`, `"2w"`, `"30s"`, `"250ms"`; also `"60min"`, `"4hours"`, `"1day"`, in any case.
///
/// Months are refused: they have no fixed length.
pub fn parse_duration(text: &str) -> Result<i64, MarketError> {
    let fail = || MarketError::Timeframe { text: text.to_string() };
    let trimmed = text.trim();
    // A capital M on its own means months to most charting tools.
    if trimmed.ends_with('M') && trimmed.bytes().filter(u8::is_ascii_alphabetic).count() == 1 {
        return Err(fail());
    }
    let lower = trimmed.to_ascii_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = lower.split_at(digits);
    let unit_ms = match unit.trim() {
        "ms" | "milliseconds" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => DAY_MS,
        "w" | "week" | "weeks" => WEEK_MS,
        _ => return Err(fail()),
    };
    let count: i64 = if number.is_empty() { 1 } else { number.parse().map_err(|_| fail())? };
    count.checked_mul(unit_ms).filter(|&ms| ms > 0).ok_or_else(fail)
}

/// Reads the length of a period: what [`parse_duration`] reads, and `"2y"` as 730 days.
///
/// Only for lengths, not for bars: a bar of 365 days would be no calendar year.
pub fn parse_span(text: &str) -> Result<i64, MarketError> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = lower.split_at(digits);
    if !["y", "year", "years"].contains(&unit.trim()) {
        return parse_duration(text).map_err(|_| MarketError::Span { text: text.to_string() });
    }
    let fail = || MarketError::Span { text: text.to_string() };
    let count: i64 = if number.is_empty() { 1 } else { number.parse().map_err(|_| fail())? };
    count.checked_mul(365 * DAY_MS).filter(|ms| *ms > 0).ok_or_else(fail)
}

/// Writes a duration in the largest unit that divides it: `900000` is `"15m"`.
pub fn format_duration(ms: i64) -> String {
    UNITS
        .iter()
        .find(|(_, unit_ms)| ms != 0 && ms % unit_ms == 0)
        .map_or_else(|| format!("{ms}ms"), |(unit, unit_ms)| format!("{}{unit}", ms / unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_survive_a_round_trip() {
        for text in ["1m", "15m", "1h", "4h", "1d", "1w", "30s", "250ms", "90m"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        assert_eq!(parse_duration("60min").unwrap(), 3_600_000);
        assert_eq!(parse_duration("1D").unwrap(), DAY_MS);
        assert_eq!(parse_duration("h").unwrap(), 3_600_000);
    }

    #[test]
    fn nonsense_durations_are_errors() {
        for text in
            ["", "15", "m15", "0m", "1M", "-5m", "1.5h", "99999999999999999999d", "9223372036854775807w"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_year_is_365_days_long_and_no_bar() {
        assert_eq!(parse_span("2y").unwrap(), 730 * DAY_MS);
        assert_eq!(parse_span("1 Year").unwrap(), 365 * DAY_MS);
        assert_eq!(parse_span("180d").unwrap(), 180 * DAY_MS);
        assert!(parse_duration("1y").is_err());
        for text in ["", "0y", "-1y", "1.5y", "6M", "99999999999999999y"] {
            assert!(matches!(parse_span(text), Err(MarketError::Span { .. })), "{text}");
        }
    }

    #[test]
    fn the_most_frequent_step_is_the_timeframe() {
        assert_eq!(detect(&[]), None);
        assert_eq!(detect(&[5]), None);
        assert_eq!(detect(&[0, 7]), Some(7));
        assert_eq!(detect(&[0, 1, 2, 3, 100, 101, 102]), Some(1));
        // No majority: 1 twice, 2 twice, 9 once; the smaller of the tied ones.
        assert_eq!(detect(&[0, 2, 3, 12, 14, 15]), Some(1));
    }
}
