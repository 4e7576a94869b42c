//! How many daily returns a symbol has in a year, read off the days it was traded on.

use crate::bars::DAY_MS;
use crate::timestamp::weekday;

/// Calendars a history is taken for when it comes close enough: every day, six days a week (currencies with their
/// Sunday evening), weekdays, weekdays without holidays, weekly and monthly bars.
const CALENDARS: [u32; 6] = [365, 312, 260, 252, 52, 12];

/// Mean length of a calendar year in hundredths of a day.
const YEAR_HUNDREDTHS: i64 = 36_525;

/// A history shorter than this many days says too little about holidays and gaps to be counted.
const SHORT_DAYS: i64 = 365;

/// Days of a year of a history that has bars on `days`, which are UTC days since 1970-01-01 and strictly ascend.
///
/// With D days from the first to the last, raw = 365.25 · (n − 1) / D. The first rule that applies decides:
///
/// 1. The median gap between neighbouring days is above 3 days (weekly, monthly bars): raw, rounded.
/// 2. D is below 365: 365 if there are Saturdays and Sundays, 312 if there are only the ones or the others, else 252.
/// 3. The nearest of 365, 312, 260, 252, 52 and 12, if raw lies within 1 % of it.
/// 4. Raw, rounded.
///
/// The median of an even number of gaps is the mean of the middle two. The answer is at least 1, also for bars that
/// are years apart; no day at all counts as a short history without weekends.
pub fn year_days(days: &[i64]) -> u32 {
    debug_assert!(days.windows(2).all(|pair| pair[0] < pair[1]), "days must strictly ascend");
    let span = match days {
        [first, .., last] => last - first,
        _ => 0,
    };
    let n_steps = days.len() as i64 - 1;
    if median_gap_above(days, 3) {
        return rounded(n_steps, span);
    }
    if span < SHORT_DAYS {
        let has = |wanted: i64| days.iter().any(|day| weekday(day * DAY_MS) == wanted);
        return match (has(5), has(6)) {
            (true, true) => 365,
            (false, false) => 252,
            _ => 312,
        };
    }
    // Whole numbers, 100 · D times the distance: the border of one per cent is then a border and no matter of rounding.
    let distance = |calendar: u32| (YEAR_HUNDREDTHS * n_steps - 100 * span * i64::from(calendar)).abs();
    let nearest = CALENDARS.into_iter().min_by_key(|calendar| distance(*calendar));
    match nearest {
        Some(calendar) if distance(calendar) <= span * i64::from(calendar) => calendar,
        _ => rounded(n_steps, span),
    }
}

/// The raw figure as a whole number, halves up.
fn rounded(n_steps: i64, span: i64) -> u32 {
    let days = (2 * YEAR_HUNDREDTHS * n_steps + 100 * span) / (200 * span);
    days.max(1) as u32
}

/// Whether the median of the gaps between neighbouring days is above a limit; without gaps it is not.
fn median_gap_above(days: &[i64], limit: i64) -> bool {
    let mut gaps: Vec<i64> = days.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.is_empty() {
        return false;
    }
    let middle = gaps.len() / 2;
    let is_even = gaps.len().is_multiple_of(2);
    let (below, upper, _) = gaps.select_nth_unstable(middle);
    let upper = *upper;
    let lower = if is_even { below.iter().copied().max().unwrap_or(upper) } else { upper };
    lower + upper > 2 * limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::days_from_civil;

    fn day(year: i64, month: i64, day: i64) -> i64 {
        days_from_civil(year, month, day).unwrap()
    }

    /// Days from the first of January of one year to the last of December of another on which `open` holds.
    fn days_where(years: std::ops::RangeInclusive<i64>, open: impl Fn(i64) -> bool) -> Vec<i64> {
        (day(*years.start(), 1, 1)..=day(*years.end(), 12, 31)).filter(|day| open(*day)).collect()
    }

    /// Monday is 0.
    fn of_week(day: i64) -> i64 {
        weekday(day * DAY_MS)
    }

    fn is_fixed_holiday(candidate: i64, year: i64) -> bool {
        [(1, 1), (1, 20), (2, 17), (4, 10), (5, 26), (6, 19), (7, 4), (9, 7), (11, 26), (12, 25)]
            .into_iter()
            .any(|(month, of_month)| {
                // A holiday on a weekend is kept on the next Monday, so that each year loses its ten weekdays.
                let holiday = day(year, month, of_month);
                let kept = holiday + [0, 0, 0, 0, 0, 2, 1][of_week(holiday) as usize];
                kept == candidate
            })
    }

    #[test]
    fn a_stock_calendar_with_holidays_has_252_days() {
        let open = |day: i64| of_week(day) < 5 && !(2014..=2024).any(|year| is_fixed_holiday(day, year));
        let days = days_where(2014..=2023, open);
        assert!((2_505..2_515).contains(&days.len()), "{}", days.len());
        assert_eq!(year_days(&days), 252);
        // Too short a part to be counted, yet the same answer.
        assert_eq!(year_days(&days[..100]), 252);
    }

    #[test]
    fn weekdays_without_holidays_are_260() {
        assert_eq!(year_days(&days_where(2015..=2020, |day| of_week(day) < 5)), 260);
        // Raw is 260.9 there; below a year it is not looked at.
        assert_eq!(year_days(&days_where(2015..=2015, |day| of_week(day) < 5)), 252);
    }

    #[test]
    fn a_market_open_every_day_has_365_and_small_gaps_do_not_matter() {
        let all = days_where(2018..=2021, |_| true);
        assert_eq!(year_days(&all), 365);
        // Three of about 365 days missing: 0.75 % from 365.
        let few_missing = days_where(2018..=2021, |day| day % 122 != 0);
        assert_eq!(year_days(&few_missing), 365);
        // 20 of 1,461: raw = 365.25 · 1440 / 1460 = 360.2, out of the tolerance of 3.65.
        let outage = day(2019, 5, 1)..day(2019, 5, 21);
        let with_outage = days_where(2018..=2021, |day| !outage.contains(&day));
        assert_eq!(year_days(&with_outage), 360);
    }

    #[test]
    fn currencies_with_sunday_evenings_have_312() {
        let days = days_where(2015..=2020, |day| of_week(day) != 5);
        assert_eq!(year_days(&days), 312);
        assert_eq!(year_days(&days[..60]), 312, "a short history has Sundays and no Saturdays");
        let saturdays: Vec<i64> = days.iter().take(60).copied().filter(|day| of_week(*day) != 6).collect();
        assert_eq!(year_days(&saturdays), 252);
    }

    #[test]
    fn weekly_and_monthly_bars_are_counted_however_short_the_history() {
        let weekly: Vec<i64> = (0..260).map(|week| day(2015, 1, 2) + 7 * week).collect();
        assert_eq!(year_days(&weekly), 52);
        assert_eq!(year_days(&weekly[..10]), 52);
        let monthly: Vec<i64> = (0..120).map(|month| day(2010 + month / 12, month % 12 + 1, 1)).collect();
        assert_eq!(year_days(&monthly), 12);
        assert_eq!(year_days(&monthly[..6]), 12);
        let yearly: Vec<i64> = (2000..2020).map(|year| day(year, 12, 31)).collect();
        assert_eq!(year_days(&yearly), 1);
    }

    #[test]
    fn sparse_bars_are_counted_raw_and_not_snapped() {
        // Every four days: raw = 91.3.
        let every_four: Vec<i64> = (0..300).map(|index| 4 * index).collect();
        assert_eq!(year_days(&every_four), 91);
        // A gap of exactly three days is not above three; raw = 121.75 is near no calendar.
        let every_three: Vec<i64> = (0..300).map(|index| 3 * index).collect();
        assert_eq!(year_days(&every_three), 122);
        // Every third day of a short history falls on Saturdays and on Sundays.
        assert_eq!(year_days(&every_three[..50]), 365);
        // 53.4 a year by gaps of seven days and some shorter ones is no calendar of weeks: raw stays.
        let irregular: Vec<i64> = (0..300).map(|index| 7 * index - index / 6).collect();
        assert_eq!(year_days(&irregular), 53);
    }

    #[test]
    fn the_median_of_an_even_number_of_gaps_is_the_mean_of_the_middle_two() {
        // Gaps 1 and 6: 3.5, above 3. raw = 365.25 · 2 / 7 = 104.4.
        assert_eq!(year_days(&[0, 1, 7]), 104);
        // Gaps 1 and 5: 3. Thursday 1970-01-01, Friday, Wednesday.
        assert_eq!(year_days(&[0, 1, 6]), 252);
    }

    #[test]
    fn a_calendar_is_taken_within_one_per_cent_of_it_and_not_beyond() {
        // Raw = 365.25 · (n − 1) / 36525 = (n − 1) / 100, spread evenly.
        let evenly = |n_days: i64| (0..n_days).map(|index| index * 36_525 / (n_days - 1)).collect::<Vec<_>>();
        assert_eq!(year_days(&evenly(25_453)), 252, "254.52");
        assert_eq!(year_days(&evenly(25_461)), 255, "254.60");
        assert_eq!(year_days(&evenly(24_949)), 252, "249.48");
        assert_eq!(year_days(&evenly(24_941)), 249, "249.40");
        assert_eq!(year_days(&evenly(25_741)), 260, "257.40");
        assert_eq!(year_days(&evenly(25_731)), 257, "257.30");
        assert_eq!(year_days(&evenly(20_001)), 200, "far from all");
    }

    #[test]
    fn the_limit_of_a_short_history_is_365_days() {
        // Every day but Sundays and one Sunday: short histories ask only which weekdays occur.
        let from = day(2018, 1, 1);
        let sunday = from + 6;
        let open = |last: i64| (from..=last).filter(|day| of_week(*day) != 6 || *day == sunday);
        assert_eq!(year_days(&open(from + 364).collect::<Vec<_>>()), 365);
        assert_eq!(year_days(&open(from + 365).collect::<Vec<_>>()), 312);
    }

    #[test]
    fn a_day_two_days_and_none() {
        assert_eq!(year_days(&[]), 252);
        let (friday, saturday, sunday) = (day(2024, 3, 1), day(2024, 3, 2), day(2024, 3, 3));
        assert_eq!(year_days(&[friday]), 252);
        assert_eq!(year_days(&[saturday]), 312);
        assert_eq!(year_days(&[sunday]), 312);
        assert_eq!(year_days(&[saturday, sunday]), 365);
        assert_eq!(year_days(&[friday, friday + 3]), 252);
        assert_eq!(year_days(&[friday, friday + 7]), 52);
        assert_eq!(year_days(&[0, 10_000]), 1, "never zero");
    }

    #[test]
    fn days_before_1970_have_their_weekdays() {
        // 1969-12-27 and 28 were a Saturday and a Sunday.
        assert_eq!(year_days(&[-5, -4]), 365);
    }
}
