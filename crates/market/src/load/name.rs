//! What a file without a symbol column is called.
//!
//! The name of the file without its endings. Exchanges cut a history into months or days and write the date behind the
//! length of a bar: `BTCUSDT-1h-2017-08.csv`, `BTCUSDT-1m-2024-01-05.csv`. Such a date, and a bar's length before it, are
//! no part of the name, so that the files are one symbol. A length alone stays: `BTC-1h.csv` beside `BTC-5m.csv` are two
//! series.

use std::path::Path;

use regex_lite::Regex;

use super::LoadOptions;
use crate::error::MarketError;

/// Endings of data, in lower case.
const FORMATS: [&str; 8] = [".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".arrows", ".ipc"];

/// Endings of packed files, in lower case.
const PACKINGS: [&str; 4] = [".gz", ".zst", ".xz", ".zip"];

/// Whether a file is named like data, so that a directory or an archive stands for it. Text may be anything, so `.txt` is not.
pub(crate) fn has_data_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let bare = PACKINGS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let is_data = FORMATS.iter().any(|end| *end != ".txt" && bare.ends_with(end));
    !name.starts_with('.') && (is_data || name.ends_with(".zip"))
}

/// The units of a bar's length in file names, in lower case.
const UNITS: [&str; 15] =
    ["s", "sec", "m", "min", "t", "h", "hour", "d", "day", "w", "week", "mo", "mon", "month", "mn"];

/// The symbol of a file that names none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Name {
    pub symbol: String,
    /// Whether files of this name are meant to be parts of one history. Two others of one name that overlap are more likely
    /// two instruments.
    pub is_part: bool,
}

/// How files are named.
pub(crate) enum Naming {
    /// By the rule for file names.
    Rule,
    /// All of them alike.
    Given(String),
    /// By the first group of a pattern, or all that it matches, in the path as given.
    Pattern(Regex),
}

impl Naming {
    pub(crate) fn new(options: &LoadOptions) -> Result<Self, MarketError> {
        match (&options.name, &options.name_from) {
            (Some(name), _) => Ok(Naming::Given(name.clone())),
            (None, Some(pattern)) => Regex::new(pattern).map(Naming::Pattern).map_err(|error| {
                MarketError::NamePattern { pattern: pattern.clone(), message: error.to_string() }
            }),
            (None, None) => Ok(Naming::Rule),
        }
    }

    /// The name of a file, which may lie in a partition of a symbol; `None` if the pattern finds none in it.
    pub(crate) fn of(&self, file: &str, partition: Option<&str>) -> Option<Name> {
        match (self, partition) {
            (Naming::Rule, Some(symbol)) => Some(Name { symbol: symbol.to_string(), is_part: true }),
            (Naming::Rule, None) => Some(by_rule(file)),
            (Naming::Given(symbol), _) => Some(Name { symbol: symbol.clone(), is_part: true }),
            (Naming::Pattern(pattern), _) => {
                let found = pattern.captures(file)?;
                let symbol = found.get(1).or_else(|| found.get(0))?.as_str();
                (!symbol.is_empty()).then(|| Name { symbol: symbol.to_string(), is_part: true })
            }
        }
    }
}

/// The symbol of a file that names none, by the rule for file names.
pub fn symbol_of_file(file: &str) -> String {
    by_rule(file).symbol
}

fn by_rule(file: &str) -> Name {
    let name = Path::new(file)
        .file_name()
        .map_or_else(|| file.to_string(), |name| name.to_string_lossy().into_owned());
    let stem = without_endings(&name);
    let (symbol, is_part) = match without_date(stem) {
        Some(symbol) => (symbol, true),
        None => (stem, false),
    };
    Name { symbol: symbol.to_string(), is_part }
}

fn without_endings(name: &str) -> &str {
    let mut stem = name;
    while let Some(end) = FORMATS.iter().chain(&PACKINGS).find(|end| {
        let tail = stem.len().checked_sub(end.len()).and_then(|at| stem.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    }) {
        if stem.len() == end.len() {
            break;
        }
        stem = &stem[..stem.len() - end.len()];
    }
    stem
}

/// The stem without its date and the bar's length before it; `None` if it has no date, or nothing else.
fn without_date(stem: &str) -> Option<&str> {
    let (rest, last) = split_last(stem)?;
    let before = if let Some((head, year)) = split_last(rest)
        && is_year(year)
        && is_in(last, 12)
    {
        head
    } else if let Some((rest, month)) = split_last(rest)
        && let Some((head, year)) = split_last(rest)
        && is_year(year)
        && is_in(month, 12)
        && is_in(last, 31)
    {
        head
    } else {
        // A year alone may be an expiry; behind a bar's length it is a part of a history.
        let (head, _) = split_last(rest).filter(|(_, length)| is_bar_length(length) && is_year(last))?;
        return Some(head);
    };
    match split_last(before) {
        Some((head, length)) if is_bar_length(length) => Some(head),
        _ => Some(before),
    }
}

/// What is before and behind the last separator, neither of them empty.
fn split_last(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(['-', '_']).filter(|(head, tail)| !head.is_empty() && !tail.is_empty())
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year: u32| (1900..2100).contains(&year))
}

/// Two digits from 01 to `last`.
fn is_in(text: &str, last: u32) -> bool {
    text.len() == 2 && text.parse().is_ok_and(|number: u32| (1..=last).contains(&number))
}

/// `1h`, `15m`, `1mo`, and `M15`, `H1`, `MN1` as MetaTrader writes them.
fn is_bar_length(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_length = |count: &str, unit: &str| {
        (1..=4).contains(&count.len())
            && count.bytes().all(|byte| byte.is_ascii_digit())
            && UNITS.contains(&unit)
    };
    let behind = lower.find(|each: char| !each.is_ascii_digit()).map(|at| lower.split_at(at));
    let before = lower.find(|each: char| each.is_ascii_digit()).map(|at| lower.split_at(at));
    behind.is_some_and(|(count, unit)| is_length(count, unit))
        || before.is_some_and(|(unit, count)| is_length(count, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_dumps_are_no_part_of_the_name() {
        for (file, symbol) in [
            ("dumps/BTCUSDT-1h-2017-08.csv", "BTCUSDT"),
            ("BTCUSDT-1m-2024-01-05.csv.gz", "BTCUSDT"),
            ("BTCUSDT_240329-1h-2024-01.csv", "BTCUSDT_240329"),
            ("BTC-USDT-2024-01-05.csv", "BTC-USDT"),
            ("EURUSD_M15_2023.csv", "EURUSD"),
            ("ETHUSDT-1mo-2020-12.parquet", "ETHUSDT"),
            ("X_2024_02.TXT", "X"),
        ] {
            assert_eq!(by_rule(file), Name { symbol: symbol.into(), is_part: true }, "{file}");
        }
    }

    #[test]
    fn other_names_stay_whole() {
        for (file, symbol) in [
            ("a/BTCUSDT.csv", "BTCUSDT"),
            ("BTCUSDT-1h.csv", "BTCUSDT-1h"),
            ("BTC-29MAR24.csv", "BTC-29MAR24"),
            ("ES-2024.csv", "ES-2024"),
            ("2024-01.csv", "2024-01"),
            ("2024-01-05.csv", "2024-01-05"),
            ("BTC-2024-13.csv", "BTC-2024-13"),
            ("BTC-2024-1.csv", "BTC-2024-1"),
            ("BTC-24-01.csv", "BTC-24-01"),
            ("-2024-01.csv", "-2024-01"),
            (".csv", ".csv"),
            ("é.csv.gz", "é"),
            ("BRK.B.csv", "BRK.B"),
        ] {
            assert_eq!(by_rule(file), Name { symbol: symbol.into(), is_part: false }, "{file}");
        }
    }

    #[test]
    fn a_pattern_takes_its_group_or_its_match() {
        let naming = |pattern: &str| Naming::Pattern(Regex::new(pattern).unwrap());
        let symbol = |pattern: &str, file: &str| naming(pattern).of(file, None).map(|name| name.symbol);
        assert_eq!(symbol("([A-Z]+)/[^/]*$", "spot/BTC/2024.csv").as_deref(), Some("BTC"));
        assert_eq!(symbol("[A-Z]+", "spot/BTC.csv").as_deref(), Some("BTC"));
        assert_eq!(symbol("x*$", "spot/BTC.csv"), None, "an empty match is none");
        assert_eq!(symbol("ETH", "spot/BTC.csv"), None);
    }
}
