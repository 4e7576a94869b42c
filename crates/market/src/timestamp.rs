//! Points in time: calendar arithmetic on UTC milliseconds, and reading every spelling that data files use. One file because reading and
//! the calendar need each other.
//!
//! Written by hand instead of through a date library because a loader reads millions of these and has to look
//! at forms no library accepts together (`2015.03.20`, `20-03-15`, bare epochs of four units).

use jiff::Timestamp;

use crate::bars::DAY_MS;

/// 0001-01-01T00:00Z; nothing earlier is taken as a time.
pub(crate) const MIN_MS: i64 = -62_135_596_800_000;
/// 9999-12-30T00:00Z; nothing later is taken as a time.
pub(crate) const MAX_MS: i64 = 253_402_128_000_000;

/// A time as a cell spells it, before the questions that only the whole column can answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp {
    /// UTC milliseconds when numeric dates are read day first; `None` if that is no date.
    pub day_first: Option<i64>,
    /// The same, month first. Equal to `day_first` for all forms that are not in doubt.
    pub month_first: Option<i64>,
    /// Whether the cell depends on the day/month order at all.
    pub order_matters: bool,
    /// Whether it is an instant (epoch, `Z`, offset) and not a local time.
    pub zoned: bool,
    /// Whether it is a calendar day without a time of day.
    pub date_only: bool,
}

impl Stamp {
    pub(crate) fn instant(ms: i64) -> Option<Self> {
        let ms = Some(in_range(ms)?);
        Some(Self { day_first: ms, month_first: ms, order_matters: false, zoned: true, date_only: false })
    }

    pub(crate) fn local(ms: i64, date_only: bool) -> Option<Self> {
        let ms = Some(in_range(ms)?);
        Some(Self { day_first: ms, month_first: ms, order_matters: false, zoned: false, date_only })
    }

    /// Adds a time of day that stood in a cell of its own.
    pub(crate) fn plus_time_of_day(self, time: Option<i64>) -> Option<Self> {
        let time = time?;
        let add = |ms: Option<i64>| ms.map(|ms| ms + time);
        Some(Self {
            day_first: add(self.day_first),
            month_first: add(self.month_first),
            date_only: false,
            ..self
        })
    }
}

/// Writes UTC milliseconds as `2024-01-31T15:45:00Z`, with milliseconds only where there are any.
pub fn format_ms(ts_ms: i64) -> String {
    Timestamp::from_millisecond(ts_ms).map_or_else(|_| format!("{ts_ms} ms"), |ts| ts.to_string())
}

/// Reads a point in time in any form the loaders know; zone-less times are UTC, numeric dates day first.
pub fn parse_ms(text: &str) -> Option<i64> {
    let stamp = parse_stamp(text.as_bytes())?;
    stamp.day_first.or(stamp.month_first)
}

/// An epoch whose size decides its unit: seconds below 1e11, milliseconds below 1e14, microseconds below 1e17, else nanoseconds.
pub(crate) fn epoch_to_ms(value: i64) -> Option<i64> {
    let ms = match value.unsigned_abs() {
        0..100_000_000_000 => value * 1_000,
        100_000_000_000..100_000_000_000_000 => value,
        100_000_000_000_000..100_000_000_000_000_000 => value.div_euclid(1_000),
        _ => value.div_euclid(1_000_000),
    };
    in_range(ms)
}

/// As [`epoch_to_ms`], for epochs written as floating point numbers.
pub(crate) fn epoch_f64_to_ms(value: f64) -> Option<i64> {
    if !value.is_finite() || value.abs() >= 9.2e18 {
        return None;
    }
    if value.abs() < 1e11 { in_range((value * 1_000.0).round() as i64) } else { epoch_to_ms(value as i64) }
}

pub(crate) fn in_range(ms: i64) -> Option<i64> {
    (MIN_MS..=MAX_MS).contains(&ms).then_some(ms)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, `None` if there is no such day.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    const MONTH_DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = MONTH_DAYS[month as usize - 1] + i64::from(month == 2 && leap);
    if !(1..=month_days).contains(&day) {
        return None;
    }
    // Years that start in March put the leap day last, which makes month lengths a linear formula.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Year, month and day of the Gregorian calendar of a day since 1970-01-01; [`days_from_civil`] backwards.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Year, month (1 to 12) and day of the month (1 to 31) of a UTC time.
pub fn date(ts_ms: i64) -> (i64, i64, i64) {
    civil_from_days(ts_ms.div_euclid(DAY_MS))
}

/// Day of the week of a UTC time, Monday is 0.
pub fn weekday(ts_ms: i64) -> i64 {
    (ts_ms.div_euclid(DAY_MS) + 3).rem_euclid(7)
}

/// A time of day in a cell of its own: `09:30`, `9:30:15.250`, `0930`, `093015`.
pub(crate) fn parse_time_of_day(text: &[u8]) -> Option<i64> {
    let mut cursor = Cursor { text: text.trim_ascii() };
    let ms = cursor.time_of_day()?;
    cursor.text.is_empty().then_some(ms)
}

/// Reads one cell; see the module documentation of the CSV loader for the list of forms.
pub(crate) fn parse_stamp(text: &[u8]) -> Option<Stamp> {
    let text = text.trim_ascii();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let mut cursor = Cursor { text };
    let n_digits = cursor.count_digits();
    if n_digits == text.len() {
        return parse_digits(text);
    }
    let may_be_float = (n_digits >= 9 && text[n_digits] == b'.')
        || matches!(text[0], b'-' | b'+')
        || (n_digits == 1 && text.iter().any(|byte| matches!(byte, b'e' | b'E')));
    if may_be_float && let Some(number) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        return Stamp::instant(epoch_f64_to_ms(number)?);
    }
    let (day_first, month_first) = cursor.date(n_digits)?;
    let order_matters = day_first != month_first;
    if cursor.text.is_empty() {
        let to_ms = |days: Option<i64>| days.map(|days| days * DAY_MS);
        let (day_first, month_first) = (to_ms(day_first), to_ms(month_first));
        return Some(Stamp { day_first, month_first, order_matters, zoned: false, date_only: true });
    }
    if !matches!(cursor.text[0], b'T' | b't' | b' ' | b',' | b'_') {
        return None;
    }
    cursor.text = cursor.text[1..].trim_ascii_start();
    let time_ms = cursor.time_of_day()?;
    let offset_ms = cursor.zone()?;
    let to_ms =
        |days: Option<i64>| days.and_then(|days| in_range(days * DAY_MS + time_ms - offset_ms.unwrap_or(0)));
    let (day_first, month_first) = (to_ms(day_first), to_ms(month_first));
    day_first.or(month_first)?;
    Some(Stamp { day_first, month_first, order_matters, zoned: offset_ms.is_some(), date_only: false })
}

/// Digits only: `20150320`, `201503200930`, `20150320093000`, or an epoch.
fn parse_digits(text: &[u8]) -> Option<Stamp> {
    let number = number_of(text)?;
    if matches!(text.len(), 8 | 12 | 14) {
        let date = number_of(&text[..8])?;
        let days = days_from_civil(date / 10_000, date / 100 % 100, date % 100);
        let plausible = (1800..2200).contains(&(date / 10_000));
        let time = if text.len() == 8 { Some(0) } else { clock_digits(&text[8..]) };
        if let (Some(days), Some(time), true) = (days, time, plausible) {
            return Stamp::local(days * DAY_MS + time, text.len() == 8);
        }
    }
    Stamp::instant(epoch_to_ms(number)?)
}

fn number_of(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |sum, &digit| {
        let value = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(value)
    })
}

/// `930`, `0930`, `093015`: the clock without colons.
fn clock_digits(digits: &[u8]) -> Option<i64> {
    let number = number_of(digits)?;
    match digits.len() {
        1..=4 => clock(number / 100, number % 100, 0),
        5 | 6 => clock(number / 10_000, number / 100 % 100, number % 100),
        _ => None,
    }
}

fn clock(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let whole_day = hour == 24 && minute == 0 && second == 0;
    if (hour > 23 && !whole_day) || minute > 59 || second > 59 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1_000)
}

/// The unread rest of a cell.
struct Cursor<'a> {
    text: &'a [u8],
}

impl Cursor<'_> {
    fn count_digits(&self) -> usize {
        self.text.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// Up to `limit` digits as a number, and how many there were.
    fn number(&mut self, limit: usize) -> Option<(i64, usize)> {
        let len = self.count_digits();
        if len == 0 || len > limit {
            return None;
        }
        let value = number_of(&self.text[..len])?;
        self.text = &self.text[len..];
        Some((value, len))
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.text.first() == Some(&byte);
        if hit {
            self.text = &self.text[1..];
        }
        hit
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let hit =
            self.text.len() >= word.len() && self.text[..word.len()].eq_ignore_ascii_case(word.as_bytes());
        if hit {
            self.text = &self.text[word.len()..];
        }
        hit
    }

    /// The month's number if a month's name stands here.
    fn month_name(&mut self) -> Option<i64> {
        const NAMES: [&str; 12] = [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ];
        let len = self.text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = self.text[..len].to_ascii_lowercase();
        let month = NAMES.iter().position(|name| word.len() >= 3 && name.as_bytes().starts_with(&word))?;
        self.text = &self.text[len..];
        Some(month as i64 + 1)
    }

    fn separator(&mut self) -> Option<u8> {
        let (&byte, rest) = self.text.split_first()?;
        if !matches!(byte, b'-' | b'/' | b'.' | b' ') {
            return None;
        }
        self.text = rest;
        Some(byte)
    }

    /// A date as day numbers, read day first and month first.
    fn date(&mut self, n_digits: usize) -> Option<(Option<i64>, Option<i64>)> {
        let sure = |days: Option<i64>| days.map(|days| (Some(days), Some(days)));
        if n_digits == 0 {
            // Mar 20, 2015
            let month = self.month_name()?;
            self.eat(b' ');
            let (day, _) = self.number(2)?;
            self.eat(b',');
            self.eat(b' ');
            let (year, _) = self.number(4).filter(|&(_, len)| len == 4)?;
            return sure(days_from_civil(year, month, day));
        }
        let (first, len) = self.number(8)?;
        if len == 8 {
            return sure(days_from_civil(first / 10_000, first / 100 % 100, first % 100));
        }
        let separator = self.separator()?;
        if len == 4 {
            let (month, _) = self.number(2)?;
            if self.separator()? != separator {
                return None;
            }
            let (day, _) = self.number(2)?;
            return sure(days_from_civil(first, month, day));
        }
        if len > 2 {
            return None;
        }
        if let Some(month) = self.month_name() {
            self.separator()?;
            let year = self.year()?;
            return sure(days_from_civil(year, month, first));
        }
        let (second, second_len) = self.number(2)?;
        if second_len > 2 || self.separator()? != separator {
            return None;
        }
        let year = self.year()?;
        let day_first = days_from_civil(year, second, first);
        let month_first = days_from_civil(year, first, second);
        day_first.or(month_first)?;
        Some((day_first, month_first))
    }

    /// Four digits, or two: 70–99 are 19xx, 00–69 are 20xx.
    fn year(&mut self) -> Option<i64> {
        match self.number(4)? {
            (year, 4) => Some(year),
            (year, 2) => Some(year + if year >= 70 { 1900 } else { 2000 }),
            _ => None,
        }
    }

    fn time_of_day(&mut self) -> Option<i64> {
        let n_digits = self.count_digits();
        let mut ms = if self.text.get(n_digits) == Some(&b':') {
            let (hour, _) = self.number(2)?;
            self.eat(b':');
            let (minute, _) = self.number(2)?;
            let second = if self.eat(b':') { self.number(2)?.0 } else { 0 };
            clock(hour, minute, second)?
        } else {
            let ms = clock_digits(&self.text[..n_digits])?;
            self.text = &self.text[n_digits..];
            ms
        };
        if matches!(self.text.first(), Some(b'.' | b',')) {
            self.text = &self.text[1..];
            let len = self.count_digits();
            if len == 0 || len > 18 {
                return None;
            }
            let millis = number_of(&self.text[..len.min(3)])?;
            ms += millis * [100, 10, 1][len.min(3) - 1];
            self.text = &self.text[len..];
        }
        let before = self.text;
        self.text = self.text.trim_ascii_start();
        let half_day = 12 * 3_600_000;
        if self.eat_word("pm") {
            ms = if ms < half_day { ms + half_day } else { ms };
        } else if self.eat_word("am") {
            ms = if ms >= half_day { ms - half_day } else { ms };
        } else {
            self.text = before;
        }
        Some(ms)
    }

    /// The zone at the end of a time: outer `None` is nonsense, inner `None` is "no zone given".
    fn zone(&mut self) -> Option<Option<i64>> {
        self.text = self.text.trim_ascii();
        if self.text.is_empty() {
            return Some(None);
        }
        let named = self.eat_word("utc") || self.eat_word("gmt") || self.eat_word("z");
        let mut offset = 0;
        if let Some(sign) = self.text.first().filter(|byte| matches!(byte, b'+' | b'-')) {
            let sign = if *sign == b'-' { -1 } else { 1 };
            self.text = &self.text[1..];
            let (hour, minute) = match self.number(4)? {
                (hour, 1 | 2) => (hour, if self.eat(b':') { self.number(2)?.0 } else { 0 }),
                (both, 4) => (both / 100, both % 100),
                _ => return None,
            };
            if hour > 24 || minute > 59 {
                return None;
            }
            offset = sign * (hour * 60 + minute) * 60_000;
        } else if !named {
            return None;
        }
        // A zone name in brackets after the offset repeats what the offset already says.
        if self.text.first() == Some(&b'[') && self.text.ends_with(b"]") {
            self.text = &[];
        }
        self.text.is_empty().then_some(Some(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARCH_20: i64 = 1_426_809_600_000; // 2015-03-20T00:00Z

    fn ms(text: &str) -> Option<i64> {
        parse_stamp(text.as_bytes()).and_then(|stamp| stamp.day_first)
    }

    #[test]
    fn every_unambiguous_form_of_one_instant_is_that_instant() {
        let nine_thirty = MARCH_20 + 34_200_000;
        for text in [
            "2015-03-20T09:30:00Z",
            "2015-03-20 09:30",
            "2015-03-20T09:30:00.000+00:00",
            "2015.03.20 09:30",
            "2015/03/20 9:30:00 AM",
            "20150320 093000",
            "20150320093000",
            "201503200930",
            "1426843800",
            "1426843800.0",
            "1426843800000",
            "1426843800000000",
            "1426843800000000000",
            "1.4268438e9",
            "2015-03-20T11:30:00+02:00",
            "2015-03-20T04:30:00-0500",
            "20.03.2015 09:30:00.000 GMT+0000",
            "20-Mar-2015 09:30",
            "Mar 20, 2015 09:30",
            "2015-03-20T09:30Z[UTC]",
            "20 March 2015 09:30 UTC",
        ] {
            assert_eq!(ms(text), Some(nine_thirty), "{text}");
        }
        for text in
            ["2015-03-20", "2015.03.20", "20150320", "20-03-15", "20/03/2015", "20.3.2015", "2015-3-20"]
        {
            assert_eq!(ms(text), Some(MARCH_20), "{text}");
        }
    }

    #[test]
    fn the_order_of_day_and_month_is_left_open() {
        let stamp = parse_stamp(b"03/04/2015").unwrap();
        assert!(stamp.order_matters && stamp.date_only && !stamp.zoned);
        assert_eq!(stamp.day_first, ms("2015-04-03"));
        assert_eq!(stamp.month_first, ms("2015-03-04"));
        let stamp = parse_stamp(b"12/25/2015").unwrap();
        assert_eq!((stamp.day_first, stamp.month_first), (None, ms("2015-12-25")));
    }

    #[test]
    fn nonsense_is_not_a_time() {
        for text in [
            "",
            "null",
            "NaN",
            "date",
            "2015-13-01",
            "2015-02-29",
            "2015-03-20T25:00",
            "2015-03-20Tx",
            "12:30",
            "2015-03-20 09:30 EST",
            "99999999999999999999",
            "--",
            "2015-03/20",
            "-",
            "+",
            "1-1-1-1",
            "INF",
        ] {
            assert_eq!(parse_stamp(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_alone_is_read_with_and_without_colons() {
        assert_eq!(parse_time_of_day(b"09:30"), Some(34_200_000));
        assert_eq!(parse_time_of_day(b"093000"), Some(34_200_000));
        assert_eq!(parse_time_of_day(b"930"), Some(34_200_000));
        assert_eq!(parse_time_of_day(b"0"), Some(0));
        assert_eq!(parse_time_of_day(b"23:59:59.5"), Some(86_399_500));
        for text in ["", "24:01", "9:61", "x", "1234567"] {
            assert_eq!(parse_time_of_day(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn calendar_days_count_from_1970() {
        assert_eq!(days_from_civil(1970, 1, 1), Some(0));
        assert_eq!(days_from_civil(2000, 2, 29), Some(11_016));
        assert_eq!(days_from_civil(1900, 2, 29), None);
        assert_eq!(weekday(0), 3);
        for days in (-800_000..800_000).step_by(97).chain(10_950..11_350) {
            let (year, month, day) = civil_from_days(days);
            if year >= 1 {
                assert_eq!(days_from_civil(year, month, day), Some(days));
            }
        }
        assert_eq!(date(MARCH_20 + DAY_MS - 1), (2015, 3, 20));
        assert_eq!(format_ms(MARCH_20), "2015-03-20T00:00:00Z");
        assert_eq!(parse_ms("2015-03-20"), Some(MARCH_20));
    }
}
