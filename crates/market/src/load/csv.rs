//! Reading delimited text, with a header or without one.
//!
//! Times may be epochs (seconds, milliseconds, microseconds or nanoseconds, told by size), ISO 8601 with or
//! without zone, `YYYY-MM-DD`, `YYYY.MM.DD`, `YYYYMMDD` (each with an optional clock), `dd-mm-yy`,
//! `dd/mm/yyyy`, `mm/dd/yyyy`, `20-Mar-2015`, `Mar 20, 2015`, or a date and a clock in two columns.

mod rows;

use std::ops::ControlFlow;
use std::path::Path;

use jiff::tz::TimeZone;

use super::column::{Layout, TimeLook, TimeSource, Wanted, is_closes_header, is_header};
use super::content::Content;
use super::line::{Cells, Line, lines, sniff_delimiter};
use super::number::{Decimal, is_null, parse_number};
use super::progress::FileProgress;
use super::stamp::BarStamp;
use super::table::{Table, printable};
use super::text::Text;
use super::wide::{Instrument, instruments, side_by_side};
use crate::error::MarketError;
use crate::timestamp::{parse_stamp, parse_time_of_day};
use rows::RowFormat;

/// Rows looked at when the layout has to be guessed.
const SAMPLE_ROWS: usize = 200;
/// Names of the twelve columns of an exchange's kline dump after time and OHLCV.
const KLINE_EXTRA: [&str; 6] =
    ["close_time", "quote_volume", "trades", "taker_buy_volume", "taker_buy_quote_volume", "ignore"];
const NEEDED: &str = "a header with open, high, low, close (or close alone) and a time column (date, time, timestamp, …), or rows without header in the order time, open, high, low, close, volume";

/// Parses a whole file.
pub(crate) fn parse(
    content: Content,
    path: &Path,
    zone: &TimeZone,
    wanted: Wanted,
    progress: &FileProgress,
) -> Result<Table, MarketError> {
    let text = Text::open(content, path)?;
    let head = text.head();
    let Some((first_number, first_line)) = lines(head).next() else {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    };
    let fewest = if wanted == Wanted::Bars { 5 } else { 2 };
    // Closes alone make narrow files, whose header has to say so.
    let narrow = || sniff_delimiter(head, 2).filter(|&delimiter| is_closes(first_line, delimiter));
    let Some(delimiter) = sniff_delimiter(head, fewest).or_else(narrow) else {
        return Err(MarketError::Columns {
            path: path.to_path_buf(),
            line: u64::from(first_number),
            problem: format!(
                "the lines do not split into at least {fewest} columns at comma, semicolon, tab or bar"
            ),
            found: excerpt(first_line),
            hint: needed(wanted),
        });
    };
    let source = Source { text: &text, delimiter, wanted };
    let header = source.find_header()?;
    let plan = match &header {
        Some(header) => source.plan_of_header(header)?,
        None => source.plan_of_rows()?,
    };
    let format = RowFormat { delimiter, header: header.map(|(number, _)| number) };
    let tables = format.read(&text, &plan.layouts, zone, progress)?;
    if let Some(tickers) = plan.tickers {
        let mut table = Table::stack(tickers.into_iter().zip(tables).collect());
        if table.n_rows() == 0 {
            return Err(MarketError::Empty { path: path.to_path_buf() });
        }
        table.forget_empty_volume();
        return Ok(table);
    }
    let mut table = tables.into_iter().next().unwrap_or_default();
    table.notes.splice(..0, plan.notes);
    if table.n_rows() == 0 {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    }
    if wanted == Wanted::Bars {
        table.note_closes_only();
        table.forget_empty_volume();
    }
    table.note_empty_columns();
    Ok(table)
}

/// Whether a line is the header of closes alone.
fn is_closes(line: &[u8], delimiter: u8) -> bool {
    let mut cells = Cells::default();
    cells.split(line, delimiter);
    is_closes_header(cells.iter(line))
}

/// What a file lacks, for a hint.
fn needed(wanted: Wanted) -> String {
    match wanted {
        Wanted::Bars => format!("needed is {NEEDED}"),
        Wanted::Features => {
            "needed is a header with a time column (timestamp, date, time, …) and columns of numbers"
                .to_string()
        }
    }
}

/// The start of a line, for messages.
fn excerpt(line: &[u8]) -> String {
    printable(&String::from_utf8_lossy(&line[..line.len().min(120)]))
}

/// A header has letters; a row of data has many digits. Saves looking at every row as a possible header.
fn may_be_header(line: &[u8]) -> bool {
    line.iter().filter(|byte| byte.is_ascii_digit()).take(12).count() < 12
}

fn look_of(cell: &[u8]) -> TimeLook {
    let cell = cell.trim_ascii();
    let short_digits = cell.len() <= 6 && cell.iter().all(u8::is_ascii_digit);
    if (short_digits || cell.contains(&b':')) && parse_time_of_day(cell).is_some() {
        return TimeLook::Clock;
    }
    match parse_stamp(cell) {
        Some(stamp) if stamp.date_only => TimeLook::Date,
        Some(_) if std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok()) => {
            TimeLook::Number
        }
        Some(_) => TimeLook::Full,
        None => TimeLook::Other,
    }
}

/// How the rows of a file become tables.
struct Plan {
    /// One for all columns, or one for each instrument of several side by side.
    layouts: Vec<Layout>,
    /// The names of the instruments, if there are several.
    tickers: Option<Vec<String>>,
    notes: Vec<String>,
}

/// A line's number and its text, kept.
type OwnLine = (u32, Vec<u8>);

struct Source<'a> {
    text: &'a Text<'a>,
    delimiter: u8,
    wanted: Wanted,
}

impl<'a> Source<'a> {
    fn decimal(&self) -> Decimal {
        Decimal::beside(self.delimiter)
    }

    fn head(&self) -> impl Iterator<Item = Line<'a>> {
        lines(self.text.head())
    }

    /// The first line that names all four prices, wherever it stands: some files carry their header in the middle. Without one,
    /// the first line if it is the header of closes alone.
    fn find_header(&self) -> Result<Option<OwnLine>, MarketError> {
        let own = |(number, line): Line<'_>| (number, line.to_vec());
        let first = self.head().next().map(own);
        if self.wanted == Wanted::Features {
            return Ok(first);
        }
        let mut cells = Cells::default();
        let full = self.text.find(|(number, line)| {
            let is_header = may_be_header(line) && {
                cells.split(line, self.delimiter);
                is_header(cells.iter(line))
            };
            if is_header { ControlFlow::Break(own((number, line))) } else { ControlFlow::Continue(()) }
        })?;
        Ok(full.or_else(|| first.filter(|(_, line)| is_closes(line, self.delimiter))))
    }

    /// The cells of the lines next to the header.
    fn beside(&self, header: u32) -> Result<Vec<Vec<String>>, MarketError> {
        let mut beside = Vec::new();
        self.text.find(|(number, line)| {
            if number.abs_diff(header) == 1 {
                beside.push(self.texts(line));
            }
            if number > header { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(beside)
    }

    /// Instruments side by side are read as such, if a pandas header tells whose each column is.
    fn plan_of_header(&self, (number, line): &OwnLine) -> Result<Plan, MarketError> {
        let names = self.texts(line);
        if self.wanted == Wanted::Features {
            return self.plan_of_names(*number, &names);
        }
        let beside = self.beside(*number)?;
        let found = instruments(&names, &beside);
        if found.is_empty() {
            self.check_one_instrument(*number, &names, &beside)?;
            return self.plan_of_names(*number, &names);
        }
        let layout = |instrument: &Instrument| {
            let own = instrument.names(&names, &found);
            let mut layout = self.layout_of_names(*number, &own)?;
            layout.extra.retain(|(column, _)| !instrument.excludes(*column, &found));
            Ok(layout)
        };
        let layouts = found.iter().map(layout).collect::<Result<_, MarketError>>()?;
        let tickers = found.iter().map(|instrument| instrument.ticker.clone()).collect();
        Ok(Plan { layouts, tickers: Some(tickers), notes: Vec::new() })
    }

    /// Refuses columns of several instruments; the lines next to the header may name them.
    fn check_one_instrument(
        &self,
        header: u32,
        names: &[String],
        beside: &[Vec<String>],
    ) -> Result<(), MarketError> {
        side_by_side(names, beside).map_or(Ok(()), |which| {
            let (path, line) = (self.text.path().to_path_buf(), u64::from(header));
            Err(MarketError::SeveralInstruments { path, line, which })
        })
    }

    fn texts(&self, line: &[u8]) -> Vec<String> {
        let mut cells = Cells::default();
        cells.split(line, self.delimiter);
        cells.iter(line).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }

    fn columns_error(&self, line: u32, problem: String, found: String) -> MarketError {
        let (path, hint) = (self.text.path().to_path_buf(), needed(self.wanted));
        MarketError::Columns { path, line: u64::from(line), problem, found, hint }
    }

    fn plan_of_names(&self, header: u32, names: &[String]) -> Result<Plan, MarketError> {
        let mut notes = Vec::new();
        if self.head().next().is_some_and(|(first, _)| first != header) {
            notes.push(format!(
                "the header was found on line {header}; it names the columns of the whole file"
            ));
        }
        Ok(Plan { layouts: vec![self.layout_of_names(header, names)?], tickers: None, notes })
    }

    fn layout_of_names(&self, header: u32, names: &[String]) -> Result<Layout, MarketError> {
        let mut cells = Cells::default();
        let sample: Vec<&[u8]> =
            self.head().filter(|(other, _)| *other != header).take(32).map(|(_, line)| line).collect();
        let look = |column: usize| {
            let looks = sample.iter().map(|line| {
                cells.split(line, self.delimiter);
                look_of(cells.get(line, column))
            });
            // Midnights hide the clock of a date, so one full time is enough to call the column full.
            let mut best = TimeLook::Other;
            for look in looks {
                match (best, look) {
                    (_, TimeLook::Full | TimeLook::Number) => return look,
                    (TimeLook::Other, _) => best = look,
                    _ => {}
                }
            }
            best
        };
        Layout::from_names(names, self.wanted, look).map_err(|missing| {
            let problem = format!("no column for {}", missing.0.join(", "));
            self.columns_error(header, problem, printable(&names.join(", ")))
        })
    }

    /// Guesses the columns of a file without header from its first rows, and checks the guess.
    fn plan_of_rows(&self) -> Result<Plan, MarketError> {
        let sample: Vec<Line<'a>> = self.head().take(SAMPLE_ROWS).collect();
        let Some(&(first_number, first_line)) = sample.first() else {
            return Err(MarketError::Empty { path: self.text.path().to_path_buf() });
        };
        self.check_one_instrument(first_number, &self.texts(first_line), &self.beside(first_number)?)?;
        let refuse =
            |problem: &str| Err(self.columns_error(first_number, problem.to_string(), excerpt(first_line)));
        let mut cells = Cells::default();
        let mut widths: Vec<usize> = Vec::with_capacity(sample.len());
        for (_, line) in &sample {
            cells.split(line, self.delimiter);
            widths.push(cells.len());
        }
        widths.sort_unstable();
        let width = widths[widths.len() / 2];
        // What most cells of each column are: [full time, date, clock, number, text]; and how many are numbers.
        let mut tally = vec![[0_usize; 5]; width];
        let mut n_numbers = vec![0_usize; width];
        for (_, line) in &sample {
            cells.split(line, self.delimiter);
            for (column, counts) in tally.iter_mut().enumerate() {
                let cell = cells.get(line, column);
                if is_null(cell) {
                    continue;
                }
                let is_number = !parse_number(cell, self.decimal()).is_nan();
                n_numbers[column] += usize::from(is_number);
                let n_digits = cell.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let kind = match look_of(cell) {
                    TimeLook::Full => 0,
                    TimeLook::Number if n_digits >= 9 => 0,
                    TimeLook::Date => 1,
                    TimeLook::Clock if !is_number => 2,
                    _ if is_number => 3,
                    _ => 4,
                };
                counts[kind] += 1;
            }
        }
        let kinds: Vec<usize> = tally
            .iter()
            .map(|counts| (0..5).max_by_key(|&kind| (counts[kind], 5 - kind)).unwrap_or(4))
            .collect();
        let Some(time_column) = kinds.iter().position(|&kind| kind <= 1) else {
            return refuse("there is no header, and no column looks like a time");
        };
        let mut next = time_column + 1;
        let mut time = TimeSource::One(time_column);
        if kinds[time_column] == 1 && kinds.get(next).is_some_and(|&kind| kind == 2) {
            time = TimeSource::Pair { date: time_column, time: next };
            next += 1;
        }
        let symbol = kinds.iter().position(|&kind| kind == 4);
        // A large volume looks like an epoch; once the time is known, a number is a number.
        let is_numeric = |column: usize| 2 * n_numbers[column] > tally[column].iter().sum::<usize>();
        let numbers: Vec<usize> = (next..width).filter(|&column| is_numeric(column)).collect();
        let &[open, high, low, close, ref rest @ ..] = numbers.as_slice() else {
            return refuse("there is no header, and fewer than four columns of numbers follow the time");
        };
        let mut layout = Layout {
            time,
            stamp: None,
            prices: Some([open, high, low, close]),
            closes_only: false,
            volume: rest.first().copied(),
            symbol,
            extra: Vec::new(),
        };
        if !self.looks_like_prices([open, high, low, close], &sample) {
            return refuse(
                "there is no header, and the columns after the time are not open, high, low, close (high is not highest, low is not lowest)",
            );
        }
        let is_kline = width == 12 && time_column == 0 && close == 4 && symbol.is_none();
        if is_kline {
            layout.volume = Some(5);
            layout.stamp = Some(BarStamp::Open);
        }
        for column in layout.volume.map_or(width, |volume| volume + 1)..width {
            if is_kline {
                layout.push_extra(column, KLINE_EXTRA[column - 6]);
            } else if is_numeric(column) {
                layout.push_extra(column, "");
            }
        }
        let what =
            if is_kline { "a kline dump of 12 columns" } else { "time, open, high, low, close, volume" };
        let notes = vec![format!("no header: the columns were taken as {what}")];
        Ok(Plan { layouts: vec![layout], tickers: None, notes })
    }

    /// Whether in nine of ten complete rows the high is highest and the low is lowest.
    fn looks_like_prices(&self, prices: [usize; 4], sample: &[Line<'a>]) -> bool {
        let mut cells = Cells::default();
        let (mut complete, mut good) = (0, 0);
        for (_, line) in sample {
            cells.split(line, self.delimiter);
            let value = |column: usize| parse_number(cells.get(line, column), self.decimal());
            let [open, high, low, close] = prices.map(value);
            if [open, high, low, close].iter().all(|price| price.is_finite()) {
                complete += 1;
                good += usize::from(low <= open.min(close) && high >= open.max(close));
            }
        }
        complete == 0 || good * 10 >= complete * 9
    }
}
