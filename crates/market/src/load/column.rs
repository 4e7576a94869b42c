//! Which column is what: names that data vendors use, and what to do when there are no names.

use super::number::{Decimal, parse_number};
use super::stamp::BarStamp;
use crate::timestamp::parse_stamp;

/// Where a row's time stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeSource {
    /// One column says it all.
    One(usize),
    /// A date and a time of day in two columns, as MetaTrader writes them.
    Pair {
        /// Column of the date.
        date: usize,
        /// Column of the time of day.
        time: usize,
    },
}

/// The column of every role.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub time: TimeSource,
    /// What the times are, if the file declares it.
    pub stamp: Option<BarStamp>,
    /// Open, high, low and close; `None` if only further columns are wanted.
    pub prices: Option<[usize; 4]>,
    /// Whether there is a column of closes alone, which then stands for all four.
    pub closes_only: bool,
    pub volume: Option<usize>,
    pub symbol: Option<usize>,
    /// Everything else, by the name it will have if it turns out to be numeric.
    pub extra: Vec<(usize, String)>,
}

/// What a column's cells look like, as far as times go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeLook {
    /// A date with a time.
    Full,
    /// A number that is an epoch if the column's name says so.
    Number,
    /// A date alone.
    Date,
    /// A time of day alone.
    Clock,
    /// Neither.
    Other,
}

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// Bars, with further columns.
    Bars,
    /// Columns to be joined to bars: a time, and whatever else there is.
    Features,
}

/// What a header lacks.
#[derive(Debug, PartialEq)]
pub(crate) struct MissingColumns(pub Vec<&'static str>);

const OPEN: &[&str] = &["open", "o", "open_price", "price_open", "opening_price", "openprice"];
const HIGH: &[&str] = &["high", "h", "high_price", "price_high", "highprice", "max"];
const LOW: &[&str] = &["low", "l", "low_price", "price_low", "lowprice", "min"];
const CLOSE: &[&str] = &[
    "close",
    "c",
    "close_price",
    "price_close",
    "closing_price",
    "closeprice",
    "close_last",
    "last",
    "price",
];
// MetaTrader 5 writes both: `tickvol`, which always has values, and `vol`, which is 0 for currencies.
const VOLUME: &[&str] = &[
    "volume",
    "tickvol",
    "tick_volume",
    "vol",
    "v",
    "base_volume",
    "volume_base",
    "real_volume",
    "total_volume",
    "qty",
    "quantity",
];
pub(crate) const SYMBOL: &[&str] =
    &["symbol", "ticker", "tic", "pair", "instrument", "asset", "contract", "code", "name", "market"];
const TIME: &[&str] = &[
    "timestamp",
    "datetime",
    "date_time",
    "open_time",
    "opentime",
    "gmt_time",
    "utc_time",
    "time_utc",
    "timestamp_utc",
    "local_time",
    "candle_begin_time",
    "start_time",
    "begin_time",
    "timestamp_ms",
    "ts_ms",
    "unix",
    "unix_timestamp",
    "unix_time",
    "epoch",
    "epoch_ms",
    "ts",
    "date",
    "dtyyyymmdd",
    "day",
    "time",
    "hour",
    "t",
    "index",
    "unnamed_0",
    "",
];

/// Columns of times that say by their name what they are; the others are taken for what the caller says.
const OPEN_TIME: &[&str] = &["open_time", "opentime", "candle_begin_time", "start_time", "begin_time"];
const CLOSE_TIME: &[&str] = &["close_time", "closetime", "candle_end_time", "end_time"];

/// A column's name as an identifier of the strategy language: lower case, everything else an underscore.
pub(crate) fn identifier(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.trim().chars() {
        if character.is_alphanumeric() {
            text.extend(character.to_lowercase().filter(char::is_ascii_alphanumeric));
        } else if !text.ends_with('_') {
            text.push('_');
        }
    }
    let text = text.trim_matches('_');
    if text.starts_with(|first: char| first.is_ascii_digit()) { format!("_{text}") } else { text.to_string() }
}

/// What a further column is called that has no name.
pub(crate) fn unnamed(column: usize) -> String {
    format!("column_{}", column + 1)
}

/// As [`identifier`], without the numbering some vendors put in front (`1. open`).
fn role_name(name: &str) -> String {
    let identifier = identifier(name);
    let plain = identifier.trim_start_matches(|first: char| first.is_ascii_digit() || first == '_');
    plain.to_string()
}

/// Whether an identifier names a price or volume and nothing else.
pub(crate) fn is_price(identifier: &str) -> bool {
    ["open", "high", "low", "close", "adj_close", "volume"].contains(&identifier)
}

/// What the times of a column are, if its name tells.
pub(crate) fn stamp_of(name: &str) -> Option<BarStamp> {
    let role = role_name(name);
    let is_one_of = |names: &[&str]| names.contains(&role.as_str());
    if is_one_of(OPEN_TIME) { Some(BarStamp::Open) } else { is_one_of(CLOSE_TIME).then_some(BarStamp::Close) }
}

/// Whether these cells are a header: all four prices are named.
pub(crate) fn is_header<'a>(cells: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut seen = [false; 4];
    for cell in cells.filter(|cell| cell.len() <= 32) {
        let name = role_name(&String::from_utf8_lossy(cell));
        for (slot, aliases) in seen.iter_mut().zip([OPEN, HIGH, LOW, CLOSE]) {
            *slot |= aliases.contains(&name.as_str());
        }
    }
    seen.iter().all(|&seen| seen)
}

/// Whether these cells are the header of closes alone: a close is named, no other price, and no cell is a number.
pub(crate) fn is_closes_header<'a>(cells: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut has_close = false;
    for cell in cells {
        let name = role_name(&String::from_utf8_lossy(&cell[..cell.len().min(32)]));
        let is_other = [OPEN, HIGH, LOW].iter().any(|aliases| aliases.contains(&name.as_str()));
        if is_other || !parse_number(cell, Decimal::PointOrComma).is_nan() || parse_stamp(cell).is_some() {
            return false;
        }
        has_close |= CLOSE.contains(&name.as_str());
    }
    has_close
}

/// Names that a further column cannot have.
pub(crate) const RESERVED: [&str; 7] = ["symbol", "timestamp", "open", "high", "low", "close", "volume"];

impl Layout {
    /// Finds the roles among column names; `look` tells what a column's first cells are like.
    pub(crate) fn from_names(
        names: &[String],
        wanted: Wanted,
        mut look: impl FnMut(usize) -> TimeLook,
    ) -> Result<Self, MissingColumns> {
        let roles: Vec<String> = names.iter().map(|name| role_name(name)).collect();
        let find =
            |aliases: &[&str]| aliases.iter().find_map(|alias| roles.iter().position(|role| role == alias));
        let is_bars = wanted == Wanted::Bars;
        let taken = if is_bars { [OPEN, HIGH, LOW, CLOSE].map(find) } else { [None; 4] };
        let volume = find(VOLUME).or_else(|| roles.iter().position(|role| role.starts_with("volume_")));
        let volume = volume.filter(|_| is_bars);
        let symbol = find(SYMBOL).filter(|column| !taken.contains(&Some(*column)));
        let mut candidates: Vec<usize> = Vec::new();
        for alias in TIME {
            candidates.extend((0..roles.len()).filter(|&column| roles[column] == *alias));
        }
        // A column of another name may still hold times: an unnamed index, or a header that is off by one.
        let free = |column: &usize| {
            !taken.contains(&Some(*column)) && volume != Some(*column) && symbol != Some(*column)
        };
        let rest: Vec<usize> =
            (0..roles.len()).filter(free).filter(|column| !candidates.contains(column)).collect();
        candidates.retain(free);
        let time = time_source(&candidates, &mut look).or_else(|| {
            rest.iter()
                .copied()
                .find(|&column| matches!(look(column), TimeLook::Full | TimeLook::Date))
                .map(TimeSource::One)
        });
        // A file may have nothing but the ends of its bars.
        let time = time.or_else(|| {
            let is_end = |column: &usize| CLOSE_TIME.contains(&roles[*column].as_str());
            rest.iter().copied().find(is_end).map(TimeSource::One)
        });
        // Cells that are no times at all are a matter of dirty rows, not of a missing column.
        let time = time.or_else(|| candidates.first().copied().map(TimeSource::One));
        let prices = match taken {
            [Some(open), Some(high), Some(low), Some(close)] => Some([open, high, low, close]),
            [None, None, None, Some(close)] => Some([close; 4]),
            _ => None,
        };
        let (Some(time), true) = (time, prices.is_some() || !is_bars) else {
            let needed = ["open", "high", "low", "close"].into_iter().zip(taken);
            let mut missing: Vec<&'static str> =
                needed.filter(|(_, column)| is_bars && column.is_none()).map(|(name, _)| name).collect();
            if time.is_none() {
                missing.push("time");
            }
            return Err(MissingColumns(missing));
        };
        let stamp = match time {
            TimeSource::One(column) => stamp_of(&names[column]),
            TimeSource::Pair { .. } => None,
        };
        let closes_only = taken[0].is_none() && prices.is_some();
        let mut layout = Self { time, stamp, prices, closes_only, volume, symbol, extra: Vec::new() };
        for (column, name) in names.iter().enumerate() {
            if !layout.uses(column) {
                layout.push_extra(column, &identifier(name));
            }
        }
        Ok(layout)
    }

    fn uses(&self, column: usize) -> bool {
        let in_time = match self.time {
            TimeSource::One(time) => time == column,
            TimeSource::Pair { date, time } => date == column || time == column,
        };
        in_time
            || self.prices.is_some_and(|prices| prices.contains(&column))
            || self.volume == Some(column)
            || self.symbol == Some(column)
    }

    /// Adds a further column under a name that nothing else has.
    pub(crate) fn push_extra(&mut self, column: usize, name: &str) {
        let base = if name.is_empty() { unnamed(column) } else { name.to_string() };
        // Features get a prefix before they meet bars.
        let is_reserved = |name: &str| self.prices.is_some() && RESERVED.contains(&name);
        let is_free = |name: &str| !is_reserved(name) && self.extra.iter().all(|(_, taken)| taken != name);
        let name = if is_free(&base) { base } else { format!("{base}_{}", column + 1) };
        self.extra.push((column, name));
    }
}

/// The best column for the time, or a date and a clock that belong together.
fn time_source(candidates: &[usize], look: &mut impl FnMut(usize) -> TimeLook) -> Option<TimeSource> {
    let looks: Vec<(usize, TimeLook)> = candidates.iter().map(|&column| (column, look(column))).collect();
    let first =
        |wanted: &[TimeLook]| looks.iter().find(|(_, look)| wanted.contains(look)).map(|&(column, _)| column);
    match (first(&[TimeLook::Full, TimeLook::Number]), first(&[TimeLook::Date]), first(&[TimeLook::Clock])) {
        (Some(full), _, _) => Some(TimeSource::One(full)),
        (None, Some(date), Some(time)) => Some(TimeSource::Pair { date, time }),
        (None, Some(date), None) => Some(TimeSource::One(date)),
        (None, None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(header: &str, looks: &[TimeLook]) -> Result<Layout, MissingColumns> {
        let names: Vec<String> = header.split(',').map(str::to_string).collect();
        Layout::from_names(&names, Wanted::Bars, |column| {
            looks.get(column).copied().unwrap_or(TimeLook::Other)
        })
    }

    #[test]
    fn vendor_headers_are_understood() {
        use TimeLook::{Clock, Date, Full, Number};
        let yahoo = layout("Date,Open,High,Low,Close,Adj Close,Volume", &[Date]).unwrap();
        assert_eq!((yahoo.time, yahoo.prices), (TimeSource::One(0), Some([1, 2, 3, 4])));
        assert_eq!(yahoo.volume, Some(6));
        assert_eq!(yahoo.extra, [(5, "adj_close".to_string())]);

        let meta =
            layout("<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<TICKVOL>,<VOL>,<SPREAD>", &[Date, Clock])
                .unwrap();
        assert_eq!((meta.time, meta.volume), (TimeSource::Pair { date: 0, time: 1 }, Some(6)));
        assert_eq!(meta.extra, [(7, "vol".to_string()), (8, "spread".to_string())]);

        let alpha = layout("timestamp,1. open,2. high,3. low,4. close,5. volume", &[Full]).unwrap();
        assert_eq!((alpha.prices, alpha.volume), (Some([1, 2, 3, 4]), Some(5)));

        let download =
            layout("unix,date,symbol,open,high,low,close,Volume BTC,Volume USDT", &[Number, Full]).unwrap();
        assert_eq!((download.time, download.symbol, download.volume), (TimeSource::One(0), Some(2), Some(7)));
        assert_eq!(download.extra[1].1, "volume_usdt");

        let reversed = layout("Price,Close,High,Low,Open,Volume", &[Date]).unwrap();
        assert_eq!((reversed.time, reversed.prices), (TimeSource::One(0), Some([4, 2, 3, 1])));
    }

    #[test]
    fn a_column_of_times_may_say_what_they_are() {
        use TimeLook::{Date, Full, Number};
        let stamp = |header: &str, looks: &[TimeLook]| layout(header, looks).unwrap().stamp;
        assert_eq!(stamp("Open time,open,high,low,close,x,Close time", &[Number]), Some(BarStamp::Open));
        assert_eq!(stamp("close_time,open,high,low,close", &[Full]), Some(BarStamp::Close));
        assert_eq!(stamp("close_time,open,high,low,close", &[Number]), Some(BarStamp::Close));
        assert_eq!(stamp("timestamp,open,high,low,close", &[Full]), None);
        let both = layout("date,open,high,low,close,close_time", &[Date, TimeLook::Other]).unwrap();
        assert_eq!((both.time, both.extra.len()), (TimeSource::One(0), 1), "a date goes first");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(layout("date,low,close", &[TimeLook::Date]), Err(MissingColumns(vec!["open", "high"])));
        assert_eq!(layout("open,high,low,close", &[]), Err(MissingColumns(vec!["time"])));
    }

    #[test]
    fn closes_alone_stand_for_all_prices() {
        let closes = layout("date,Adj Close,close,volume", &[TimeLook::Date]).unwrap();
        assert_eq!((closes.prices, closes.closes_only, closes.volume), (Some([2; 4]), true, Some(3)));
        assert!(!layout("date,open,high,low,close", &[TimeLook::Date]).unwrap().closes_only);
        let is_header = |line: &str| is_closes_header(line.split(',').map(str::as_bytes));
        assert!(is_header("date,close") && is_header("Date,Price,Change %"));
        assert!(!is_header("2024-01-02,C,1.5"), "C is a ticker beside numbers");
        assert!(!is_header("date,low,close") && !is_header("date,value"));
    }

    #[test]
    fn extra_names_are_identifiers_and_unique() {
        assert_eq!(identifier(" Adj Close* "), "adj_close");
        assert_eq!(identifier("RSI(14)"), "rsi_14");
        assert_eq!(identifier("3d avg"), "_3d_avg");
        let twice = layout("time,open,high,low,close,x,X,open", &[TimeLook::Full]).unwrap();
        let names: Vec<&str> = twice.extra.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["x", "x_7", "open_8"]);
    }
}
