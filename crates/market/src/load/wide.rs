//! Tables that hold several instruments side by side, as yfinance writes them.
//!
//! Such a table names each price once per instrument. Taking the first of each and calling the others `close_3` would
//! test a strategy on one instrument and hide the rest in unused series. Where the two levels of a pandas header tell which
//! column is whose, the instruments are read one after the other; any other such file is refused.

use super::column::{identifier, is_price};
use super::number::is_null;
use super::table::printable;

/// Instruments named in a message; of more only the number is given.
const NAMES_SHOWN: usize = 8;

/// Words that, with the name of an instrument, make the name of a column. The longer ones come first.
const WORDS: [&str; 8] =
    ["adj close", "adj_close", "adjusted close", "open", "high", "low", "close", "volume"];

/// What a table with these column names holds side by side, for a message; `None` if it is one instrument.
///
/// `beside` are the cells of the lines next to the header, where yfinance writes the tickers.
pub(crate) fn side_by_side(names: &[String], beside: &[Vec<String>]) -> Option<String> {
    let plain: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    let n_named = |wanted: &str| plain.iter().filter(|name| *name == wanted).count();
    let fewest = ["open", "high", "low", "close"].map(n_named).into_iter().min().unwrap_or(0);
    if n_named("close") >= 2 {
        let tickers = beside.iter().find_map(|cells| tickers_of(&plain, cells));
        let repeated =
            || (fewest >= 2).then(|| format!("open, high, low and close occur {fewest} times each"));
        return tickers.map(|tickers| listed(&tickers)).or_else(repeated);
    }
    if fewest == 1 {
        return has_numbered_copy(names).then(|| "open, high, low and close occur again as `.1`".to_string());
    }
    let mut tickers: Vec<String> = Vec::new();
    for (word, ticker) in names.iter().filter_map(|name| word_and_ticker(name)) {
        if word == "close" && !tickers.contains(&ticker) {
            tickers.push(ticker);
        }
    }
    (n_named("close") == 0 && tickers.len() >= 2).then(|| listed(&tickers))
}

/// The columns of one instrument.
#[derive(Debug, PartialEq)]
pub(crate) struct Instrument {
    pub ticker: String,
    /// Each column and what it is called without the ticker.
    pub columns: Vec<(usize, String)>,
}

impl Instrument {
    /// The names of a table in which only this instrument's columns, and those that are no one's, are called what they are.
    pub(crate) fn names(&self, all: &[String], instruments: &[Instrument]) -> Vec<String> {
        let mut names = all.to_vec();
        for (column, _) in instruments.iter().flat_map(|other| &other.columns) {
            names[*column] = "of another".to_string();
        }
        for (column, name) in &self.columns {
            names[*column].clone_from(name);
        }
        names
    }

    /// Whether a column is another instrument's.
    pub(crate) fn excludes(&self, column: usize, instruments: &[Instrument]) -> bool {
        let has = |of: &Instrument| of.columns.iter().any(|(own, _)| *own == column);
        !has(self) && instruments.iter().any(has)
    }
}

/// The instruments of a table with the two levels of a pandas header: the tickers in a line beside the names, or names that
/// are pairs, `('Close', 'AAPL')`. Empty if it has no such header.
pub(crate) fn instruments(names: &[String], beside: &[Vec<String>]) -> Vec<Instrument> {
    let plain: Vec<String> = names.iter().map(|name| identifier(name)).collect();
    let n_closes = plain.iter().filter(|name| *name == "close").count();
    let two_lines = beside.iter().find(|cells| n_closes >= 2 && tickers_of(&plain, cells).is_some());
    let pairs: Vec<Option<(String, String)>> = match two_lines {
        Some(tickers) => {
            let pair = |(column, name): (usize, &String)| {
                let ticker = tickers.get(column).map(|cell| cell.trim()).filter(|cell| !cell.is_empty())?;
                is_price(&plain[column]).then(|| (name.clone(), ticker.to_string()))
            };
            names.iter().enumerate().map(pair).collect()
        }
        None => names.iter().map(|name| pair_of(name)).collect(),
    };
    let mut found: Vec<Instrument> = Vec::new();
    for (column, pair) in pairs.into_iter().enumerate() {
        let Some((name, ticker)) = pair else { continue };
        match found.iter_mut().find(|instrument| instrument.ticker == ticker) {
            Some(instrument) => instrument.columns.push((column, name)),
            None => found.push(Instrument { ticker, columns: vec![(column, name)] }),
        }
    }
    found
}

/// Takes `('Close', 'AAPL')` and `('AAPL', 'Close')` apart, as the name of the price and the ticker.
fn pair_of(name: &str) -> Option<(String, String)> {
    let inside = name.trim().strip_prefix('(')?.strip_suffix(')')?;
    // A third level is nothing that is known here.
    let (first, second) = inside.split_once(", ").filter(|(_, second)| !second.contains(", "))?;
    let bare = |text: &str| text.trim_matches(['\'', '"']).to_string();
    match (bare(first), bare(second)) {
        (price, ticker) if is_price(&identifier(&price)) && !ticker.is_empty() => Some((price, ticker)),
        (ticker, price) if is_price(&identifier(&price)) && !ticker.is_empty() => Some((price, ticker)),
        _ => None,
    }
}

/// Different names in the cells above or below the prices, each once: the tickers.
fn tickers_of(plain: &[String], cells: &[String]) -> Option<Vec<String>> {
    let mut tickers: Vec<String> = Vec::new();
    for (_, cell) in plain.iter().zip(cells).filter(|(name, _)| is_price(name)) {
        let cell = cell.trim();
        let is_name =
            !is_null(cell.as_bytes()) && cell.parse::<f64>().is_err() && !is_price(&identifier(cell));
        if !is_name {
            return None;
        }
        if !tickers.iter().any(|known| known == cell) {
            tickers.push(cell.to_string());
        }
    }
    (tickers.len() >= 2).then_some(tickers)
}

/// pandas calls the second of two columns `Close` `Close.1` when it reads such a file.
fn has_numbered_copy(names: &[String]) -> bool {
    let is_there =
        |word: &str| names.iter().any(|name| name.trim().eq_ignore_ascii_case(&format!("{word}.1")));
    ["open", "high", "low", "close"].into_iter().all(is_there)
}

/// Takes `('Close', 'AAPL')`, `Close_AAPL`, `Close AAPL` and `AAPL.Close` apart.
fn word_and_ticker(name: &str) -> Option<(&'static str, String)> {
    const AROUND: [char; 13] = ['_', ' ', '\'', '"', '(', ')', '[', ']', ',', '.', '|', ':', '-'];
    let name = name.trim_matches(AROUND);
    let is_separator = |character: Option<char>| character.is_some_and(|found| !found.is_alphanumeric());
    WORDS.into_iter().find_map(|word| {
        let (head, tail) =
            (name.get(..word.len()), name.len().checked_sub(word.len()).and_then(|at| name.get(at..)));
        let rest = if head.is_some_and(|head| head.eq_ignore_ascii_case(word)) {
            name.get(word.len()..).filter(|rest| is_separator(rest.chars().next()))
        } else if tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word)) {
            name.get(..name.len() - word.len()).filter(|rest| is_separator(rest.chars().next_back()))
        } else {
            None
        };
        let ticker = rest?.trim_matches(AROUND);
        (!ticker.is_empty()).then(|| (word, ticker.to_string()))
    })
}

fn listed(tickers: &[String]) -> String {
    let shown: Vec<String> = tickers.iter().take(NAMES_SHOWN).map(|ticker| printable(ticker)).collect();
    match tickers.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        line.split(';').map(str::to_string).collect()
    }

    fn found(header: &str, beside: &[&str]) -> Option<String> {
        side_by_side(&split(header), &beside.iter().map(|line| split(line)).collect::<Vec<_>>())
    }

    #[test]
    fn tickers_are_read_from_the_lines_beside_the_header() {
        let header = "Price;Close;Close;High;High;Low;Low;Open;Open;Volume;Volume";
        let tickers = "Ticker;AAPL;MSFT;AAPL;MSFT;AAPL;MSFT;AAPL;MSFT;AAPL;MSFT";
        let row = "2024-01-02;1;2;1;2;1;2;1;2;1;2";
        assert_eq!(found(header, &[tickers]).unwrap(), "AAPL, MSFT");
        assert_eq!(found(header, &["a title", tickers]).unwrap(), "AAPL, MSFT");
        assert_eq!(found(header, &[row]).unwrap(), "open, high, low and close occur 2 times each");
        assert_eq!(found(header, &[]).unwrap(), "open, high, low and close occur 2 times each");
        // One ticker, as yfinance writes it since it always names them.
        assert_eq!(found("Price;Close;High;Low;Open;Volume", &["Ticker;AAPL;AAPL;AAPL;AAPL;AAPL"]), None);
        let extra_close = "Date;Open;High;Low;Close;Close";
        assert_eq!(found(extra_close, &["Ticker;AAPL;AAPL;AAPL;AAPL;MSFT"]).unwrap(), "AAPL, MSFT");
        assert_eq!(found(extra_close, &["2024-01-02;1;2;1;2;2"]), None, "a repeated column is a series");
    }

    #[test]
    fn flattened_names_are_taken_apart() {
        for (close, ticker) in [
            ("('Close', 'AAPL')", "AAPL"),
            ("(\"AAPL\", \"Close\")", "AAPL"),
            ("Close_AAPL", "AAPL"),
            ("close AAPL", "AAPL"),
            ("AAPL.Close", "AAPL"),
            ("BRK-B_Close", "BRK-B"),
            ("Close ^GSPC", "^GSPC"),
            ("EURUSD=X|Close", "EURUSD=X"),
        ] {
            assert_eq!(word_and_ticker(close), Some(("close", ticker.to_string())), "{close}");
        }
        assert_eq!(word_and_ticker("Adj Close_AAPL"), Some(("adj close", "AAPL".to_string())));
        for other in ["Close", "close_", "Disclosed_X", "enclose", "é", "Closed", ""] {
            assert_eq!(word_and_ticker(other), None, "{other}");
        }
        let pandas = "Date;('Close', 'AAPL');('Close', 'MSFT');('Open', 'AAPL');('Open', 'MSFT')";
        assert_eq!(found(pandas, &[]).unwrap(), "AAPL, MSFT");
        assert_eq!(found("date;bid_open;bid_close;ask_open;ask_close", &[]).unwrap(), "bid, ask");
        let many: Vec<String> = (0..10).map(|at| format!("close_T{at}")).collect();
        assert!(found(&many.join(";"), &[]).unwrap().ends_with("T7 and 2 more"));
    }

    #[test]
    fn the_two_levels_of_a_pandas_header_tell_whose_a_column_is() {
        let found = |header: &str, beside: &[&str]| -> Vec<(String, Vec<(usize, String)>)> {
            let beside: Vec<Vec<String>> = beside.iter().map(|line| split(line)).collect();
            let found = instruments(&split(header), &beside);
            found.into_iter().map(|each| (each.ticker, each.columns)).collect()
        };
        let column = |at: usize, name: &str| (at, name.to_string());
        let expected = vec![
            ("A".to_string(), vec![column(1, "Close"), column(3, "Open")]),
            ("B".to_string(), vec![column(2, "Close"), column(4, "Open")]),
        ];
        assert_eq!(found("Price;Close;Close;Open;Open", &["Ticker;A;B;A;B"]), expected);
        let pairs = "Date;('Close', 'A');('Close', 'B');('Open', 'A');('Open', 'B')";
        assert_eq!(found(pairs, &[]), expected);
        assert_eq!(found("Date;('A', 'Close');('B', 'Close');('A', 'Open');('B', 'Open')", &[]), expected);
        for other in ["date;bid_open;bid_close;ask_open;ask_close", "Date;(Close);('x', 'y');()", "a"] {
            assert_eq!(found(other, &[]), [], "{other}");
        }
    }

    #[test]
    fn one_instrument_with_further_series_is_left_alone() {
        for header in [
            "date;open;high;low;close;volume;mark_open;mark_close;index_open;index_close",
            "date;open;high;low;close;close_AAPL;close_MSFT",
            "date;open;high;low;close;close_1;open_1;high_1;low_1",
            "date;open;high;low;close;x;X;open",
            "date;open_AAPL;high_AAPL;low_AAPL;close_AAPL;adj close_AAPL",
            "a;b",
        ] {
            assert_eq!(found(header, &[]), None, "{header}");
        }
        let copied = "Date;Open;Open.1;High;High.1;Low;Low.1;Close;Close.1";
        assert!(found(copied, &[]).unwrap().contains("`.1`"));
    }
}
