//! A whole column of times: settles the day/month order and turns local times into UTC.
//!
//! Both need more than one cell. `03/04/2015` is decided by its neighbours, and at the end of summer time an
//! hour occurs twice, where only the order of rows tells the first pass from the second.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::table::NO_TIME;
use crate::error::MarketError;
use crate::timestamp::{Stamp, in_range};

/// The zone of zone-less times: an IANA name, `UTC`, or an offset such as `+02:00`, `-5`, `UTC+3`.
pub(crate) fn resolve_zone(name: &str) -> Result<TimeZone, MarketError> {
    let fail = |message: String| MarketError::Timezone { name: name.to_string(), message };
    let trimmed = name.trim();
    let bare = ["utc", "gmt"].iter().find_map(|prefix| {
        let head = trimmed.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| &trimmed[prefix.len()..])
    });
    let offset = bare.unwrap_or(trimmed);
    if bare == Some("") || trimmed.eq_ignore_ascii_case("z") {
        return Ok(TimeZone::UTC);
    }
    if offset.starts_with(['+', '-']) {
        let sign = if offset.starts_with('-') { -1 } else { 1 };
        let digits = &offset[1..];
        let (hour, minute) = digits.split_once(':').unwrap_or(match digits.len() {
            4 => digits.split_at_checked(2).unwrap_or((digits, "0")),
            _ => (digits, "0"),
        });
        let part =
            |text: &str, limit: i32| text.parse::<i32>().ok().filter(|value| (0..=limit).contains(value));
        let seconds =
            part(hour, 24).zip(part(minute, 59)).map(|(hour, minute)| sign * (hour * 60 + minute) * 60);
        let offset = seconds.and_then(|seconds| Offset::from_seconds(seconds).ok());
        return offset
            .map(TimeZone::fixed)
            .ok_or_else(|| fail("not an offset of hours and minutes".to_string()));
    }
    TimeZone::get(trimmed).map_err(|error| fail(error.to_string()))
}

/// Times as they are pushed row by row; [`finish`](Self::finish) decides what they mean.
#[derive(Default)]
pub(crate) struct TimeColumn {
    day_first: Vec<i64>,
    /// Only once a cell depends on the order.
    month_first: Option<Vec<i64>>,
    /// Rows that are local times and have to go through the time zone.
    local: Vec<bool>,
    any_local: bool,
    only_day_first: usize,
    only_month_first: usize,
}

impl TimeColumn {
    /// With room for so many rows.
    pub(crate) fn with_room(n_rows: usize) -> Self {
        Self { day_first: Vec::with_capacity(n_rows), local: Vec::with_capacity(n_rows), ..Self::default() }
    }

    pub(crate) fn push(&mut self, stamp: Option<Stamp>) {
        let Some(stamp) = stamp else {
            self.day_first.push(NO_TIME);
            self.local.push(false);
            if let Some(column) = &mut self.month_first {
                column.push(NO_TIME);
            }
            return;
        };
        if stamp.order_matters {
            self.only_day_first += usize::from(stamp.month_first.is_none());
            self.only_month_first += usize::from(stamp.day_first.is_none());
            if self.month_first.is_none() {
                self.month_first = Some(self.day_first.clone());
            }
        }
        self.day_first.push(stamp.day_first.unwrap_or(NO_TIME));
        if let Some(column) = &mut self.month_first {
            column.push(stamp.month_first.unwrap_or(NO_TIME));
        }
        // A calendar day is a label, not a moment at a place: it stays at 00:00 UTC in every zone.
        let local = !stamp.zoned && !stamp.date_only;
        self.local.push(local);
        self.any_local |= local;
    }

    /// Adds the rows that follow.
    pub(crate) fn append(&mut self, next: &Self) {
        if next.month_first.is_some() && self.month_first.is_none() {
            self.month_first = Some(self.day_first.clone());
        }
        if let Some(column) = &mut self.month_first {
            // Without a cell that depends on the order both readings are the same.
            column.extend_from_slice(next.month_first.as_ref().unwrap_or(&next.day_first));
        }
        self.day_first.extend_from_slice(&next.day_first);
        self.local.extend_from_slice(&next.local);
        self.any_local |= next.any_local;
        self.only_day_first += next.only_day_first;
        self.only_month_first += next.only_month_first;
    }

    /// UTC milliseconds per row ([`NO_TIME`] where unreadable) and notes about what was assumed.
    ///
    /// `groups` tells which rows belong together in time order (the symbol ids), if any.
    pub(crate) fn finish(self, zone: &TimeZone, groups: Option<&[u32]>) -> (Vec<i64>, Vec<String>) {
        let mut notes = Vec::new();
        let mut times = match self.month_first {
            None => self.day_first,
            Some(month_first) => {
                let sure = (self.only_day_first, self.only_month_first);
                let (use_day, why) = decide_order(&self.day_first, &month_first, sure, groups);
                let order = if use_day { "day before month" } else { "month before day" };
                if let Some(why) = why {
                    notes.push(format!("dates were read {order}: {why}"));
                }
                if use_day { self.day_first } else { month_first }
            }
        };
        if self.any_local && *zone != TimeZone::UTC {
            let (shifted, repeated) = localise(&mut times, &self.local, zone, groups);
            if shifted > 0 {
                notes.push(format!("{shifted} local time(s) that the clock change skips were moved forward"));
            }
            if repeated > 0 {
                notes.push(format!(
                    "{repeated} local time(s) of the repeated hour were resolved by row order"
                ));
            }
        }
        (times, notes)
    }
}

/// Day first or month first, and the reason when it was not beyond doubt.
fn decide_order(
    day_first: &[i64],
    month_first: &[i64],
    (only_day, only_month): (usize, usize),
    groups: Option<&[u32]>,
) -> (bool, Option<String>) {
    match (only_day, only_month) {
        (0, 0) => {
            let (day_turns, month_turns) = (count_turns(day_first, groups), count_turns(month_first, groups));
            let why = "every date could be read both ways; ";
            match day_turns.cmp(&month_turns) {
                std::cmp::Ordering::Less => {
                    (true, Some(format!("{why}that order keeps the rows in sequence")))
                }
                std::cmp::Ordering::Greater => {
                    (false, Some(format!("{why}that order keeps the rows in sequence")))
                }
                std::cmp::Ordering::Equal => {
                    (true, Some(format!("{why}nothing decides, so this was assumed")))
                }
            }
        }
        (_, 0) => (true, None),
        (0, _) => (false, None),
        _ if only_day >= only_month => (
            true,
            Some(format!("{only_day} dates allow only that, {only_month} only the other and were dropped")),
        ),
        _ => (
            false,
            Some(format!("{only_month} dates allow only that, {only_day} only the other and were dropped")),
        ),
    }
}

/// How often the direction of time changes within a group.
fn count_turns(times: &[i64], groups: Option<&[u32]>) -> usize {
    let mut turns = 0;
    let mut direction = std::cmp::Ordering::Equal;
    for row in 1..times.len() {
        if groups.is_some_and(|groups| groups[row] != groups[row - 1]) {
            direction = std::cmp::Ordering::Equal;
            continue;
        }
        let now = times[row].cmp(&times[row - 1]);
        if now.is_ne() {
            turns += usize::from(direction.is_ne() && now != direction);
            direction = now;
        }
    }
    turns
}

/// Replaces local by UTC times; returns how many fell into a skipped and into a repeated hour.
fn localise(times: &mut [i64], local: &[bool], zone: &TimeZone, groups: Option<&[u32]>) -> (usize, usize) {
    let n_groups = groups.and_then(|groups| groups.iter().copied().filter(|&id| id != u32::MAX).max());
    let mut previous = vec![NO_TIME; n_groups.map_or(1, |id| id as usize + 1)];
    let (mut shifted, mut repeated) = (0, 0);
    for row in 0..times.len() {
        if times[row] == NO_TIME {
            continue;
        }
        let group = groups.map_or(0, |groups| groups[row] as usize);
        if local[row] {
            let before = previous.get(group).copied().unwrap_or(NO_TIME);
            let offset_ms = |offset: Offset| i64::from(offset.seconds()) * 1_000;
            let utc = match civil(times[row]).map(|civil| zone.to_ambiguous_timestamp(civil).offset()) {
                None => None,
                Some(AmbiguousOffset::Unambiguous { offset }) => Some(times[row] - offset_ms(offset)),
                Some(AmbiguousOffset::Gap { before: offset, .. }) => {
                    shifted += 1;
                    Some(times[row] - offset_ms(offset))
                }
                Some(AmbiguousOffset::Fold { before: first, after: second }) => {
                    repeated += 1;
                    let (first, second) = (times[row] - offset_ms(first), times[row] - offset_ms(second));
                    Some(if first <= before && second > before { second } else { first })
                }
            };
            times[row] = utc.and_then(in_range).unwrap_or(NO_TIME);
        }
        if let Some(slot) = previous.get_mut(group) {
            *slot = times[row];
        }
    }
    (shifted, repeated)
}

fn civil(ms: i64) -> Option<DateTime> {
    Timestamp::from_millisecond(ms).ok().map(|ts| ts.to_zoned(TimeZone::UTC).datetime())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{format_ms, parse_stamp};

    fn read(cells: &[&str], zone: &TimeZone) -> (Vec<String>, Vec<String>) {
        let mut column = TimeColumn::default();
        for cell in cells {
            column.push(parse_stamp(cell.as_bytes()));
        }
        let (times, notes) = column.finish(zone, None);
        let shown = |ms: i64| if ms == NO_TIME { "-".to_string() } else { format_ms(ms) };
        (times.into_iter().map(shown).collect(), notes)
    }

    #[test]
    fn one_impossible_month_settles_the_whole_column() {
        let (times, notes) = read(&["01/02/2015", "13/02/2015"], &TimeZone::UTC);
        assert_eq!(times, ["2015-02-01T00:00:00Z", "2015-02-13T00:00:00Z"]);
        assert!(notes.is_empty());
        let (times, _) = read(&["01/02/2015", "02/13/2015"], &TimeZone::UTC);
        assert_eq!(times, ["2015-01-02T00:00:00Z", "2015-02-13T00:00:00Z"]);
    }

    #[test]
    fn an_undecided_column_says_what_was_assumed() {
        let (times, notes) = read(&["01/02/2015", "01/03/2015"], &TimeZone::UTC);
        assert_eq!(times[0], "2015-02-01T00:00:00Z");
        assert!(notes[0].contains("day before month") && notes[0].contains("assumed"), "{notes:?}");
        let sequence = ["01/10/2015", "01/11/2015", "01/12/2015", "02/01/2015", "02/02/2015"];
        let (times, notes) = read(&sequence, &TimeZone::UTC);
        assert_eq!(times[3], "2015-02-01T00:00:00Z");
        assert!(notes[0].contains("month before day"), "{notes:?}");
    }

    #[test]
    fn a_contradictory_column_loses_the_minority() {
        let (times, notes) = read(&["13/02/2015", "14/02/2015", "02/15/2015"], &TimeZone::UTC);
        assert_eq!(times[2], "-");
        assert!(notes[0].contains("1 only the other"), "{notes:?}");
    }

    #[test]
    fn offsets_move_local_times_only() {
        let zone = resolve_zone("+02:00").unwrap();
        let cells = ["2015-03-20 09:30", "2015-03-20T09:30Z", "2015-03-20", "1426843800"];
        let (times, _) = read(&cells, &zone);
        assert_eq!(
            times,
            ["2015-03-20T07:30:00Z", "2015-03-20T09:30:00Z", "2015-03-20T00:00:00Z", "2015-03-20T09:30:00Z"]
        );
    }

    #[test]
    fn the_repeated_hour_of_autumn_is_two_hours() {
        // A POSIX rule needs no zone database on the machine that runs the test.
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        let cells = ["2023-11-05 00:30", "2023-11-05 01:30", "2023-11-05 01:30", "2023-11-05 02:30"];
        let (times, notes) = read(&cells, &zone);
        assert_eq!(
            times,
            ["2023-11-05T04:30:00Z", "2023-11-05T05:30:00Z", "2023-11-05T06:30:00Z", "2023-11-05T07:30:00Z"]
        );
        assert!(notes[0].contains("2 local time"), "{notes:?}");
        let (times, notes) = read(&["2023-03-12 02:30"], &zone);
        assert_eq!(times, ["2023-03-12T07:30:00Z"]);
        assert!(notes[0].contains("moved forward"), "{notes:?}");
    }

    #[test]
    fn zones_are_names_or_offsets() {
        for name in ["UTC", "utc", "GMT", "Z", "+0", "UTC+3", "GMT-05:30", "+0530", "-5"] {
            assert!(resolve_zone(name).is_ok(), "{name}");
        }
        for name in ["", "Mars/Olympus", "+99", "+5:99", "UTC+x", "+é"] {
            assert!(resolve_zone(name).is_err(), "{name:?}");
        }
    }
}
