//! Reading delimited text, with a header or without one.
//!
//! Times may be epochs (seconds, milliseconds, microseconds or nanoseconds, told by size), ISO 8601 with or
//! without zone, `YYYY-MM-DD`, `YYYY.MM.DD`, `YYYYMMDD` (each with an optional clock), `dd-mm-yy`,
//! `dd/mm/yyyy`, `mm/dd/yyyy`, `20-Mar-2015`, `Mar 20, 2015`, or a date and a clock in two columns.

use std::borrow::Cow;
use std::path::Path;

use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::column::{Layout, TimeLook, TimeSource, Wanted, identifier, is_closes_header, is_header, unnamed};
use super::line::{Cells, Line, lines, sniff_delimiter};
use super::number::{Decimal, is_null, parse_number};
use super::stamp::BarStamp;
use super::table::{SymbolColumn, Table, printable};
use super::time::TimeColumn;
use super::wide::{Instrument, instruments, side_by_side};
use crate::error::MarketError;
use crate::timestamp::{Stamp, parse_stamp, parse_time_of_day};

/// Rows looked at when the layout has to be guessed.
const SAMPLE_ROWS: usize = 200;
/// Bytes looked at to tell text from binary content.
const BINARY_SAMPLE_BYTES: usize = 8_192;
/// Names of the twelve columns of an exchange's kline dump after time and OHLCV.
const KLINE_EXTRA: [&str; 6] =
    ["close_time", "quote_volume", "trades", "taker_buy_volume", "taker_buy_quote_volume", "ignore"];
const NEEDED: &str = "a header with open, high, low, close (or close alone) and a time column (date, time, timestamp, …), or rows without header in the order time, open, high, low, close, volume";

/// Parses a whole file.
pub(crate) fn parse(raw: &[u8], path: &Path, zone: &TimeZone, wanted: Wanted) -> Result<Table, MarketError> {
    let text = decode(raw);
    let text: &[u8] = &text;
    if looks_binary(text) {
        return Err(MarketError::Binary { path: path.to_path_buf() });
    }
    let Some((first_number, first_line)) = lines(text).next() else {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    };
    let fewest = if wanted == Wanted::Bars { 5 } else { 2 };
    // Closes alone make narrow files, whose header has to say so.
    let narrow = || sniff_delimiter(text, 2).filter(|&delimiter| is_closes(first_line, delimiter));
    let Some(delimiter) = sniff_delimiter(text, fewest).or_else(narrow) else {
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
    let source = Source { text, delimiter, path, wanted };
    let header = source.find_header();
    if let Some(header) = header.filter(|_| wanted == Wanted::Bars)
        && let Some(table) = source.read_instruments(header, zone)?
    {
        return Ok(table);
    }
    let (layout, mut notes) = match header {
        Some(header) => source.layout_of_header(header)?,
        None => source.layout_of_rows()?,
    };
    let mut table = source.read_rows(&layout, header.map(|(number, _)| number), zone);
    notes.append(&mut table.notes);
    table.notes = notes;
    table.stamp = layout.stamp;
    table.closes_only = layout.closes_only;
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

/// Removes a byte order mark; UTF-16 becomes UTF-8.
fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let units = raw[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String =
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Cow::Owned(text.into_bytes())
    };
    match raw {
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        [0xff, 0xfe, ..] => utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] => utf16(u16::from_be_bytes),
        _ => Cow::Borrowed(raw),
    }
}

/// Whether the start of the file is no text: a NUL, many control characters, or mostly bytes that are no UTF-8. A few
/// bytes of another encoding do no harm, since all that is needed is ASCII.
fn looks_binary(text: &[u8]) -> bool {
    let head = &text[..text.len().min(BINARY_SAMPLE_BYTES)];
    let is_control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let n_controls = head.iter().filter(is_control).count();
    let head_text = String::from_utf8_lossy(head);
    let n_broken = head_text.chars().filter(|&each| each == char::REPLACEMENT_CHARACTER).count();
    head.contains(&0) || n_controls * 50 > head.len() || n_broken * 10 > head.len() * 3
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

struct Source<'a> {
    text: &'a [u8],
    delimiter: u8,
    path: &'a Path,
    wanted: Wanted,
}

impl<'a> Source<'a> {
    fn decimal(&self) -> Decimal {
        if self.delimiter == b',' { Decimal::Point } else { Decimal::PointOrComma }
    }

    /// The first line that names all four prices, wherever it stands: some files carry their header in the middle. Without one,
    /// the first line if it is the header of closes alone.
    fn find_header(&self) -> Option<Line<'a>> {
        if self.wanted == Wanted::Features {
            return lines(self.text).next();
        }
        let mut cells = Cells::default();
        let full = lines(self.text).find(|(_, line)| {
            may_be_header(line) && {
                cells.split(line, self.delimiter);
                is_header(cells.iter(line))
            }
        });
        full.or_else(|| lines(self.text).next().filter(|(_, line)| is_closes(line, self.delimiter)))
    }

    /// The cells of the lines next to the header.
    fn beside(&self, header: u32) -> Vec<Vec<String>> {
        lines(self.text)
            .take_while(|(number, _)| *number <= header + 1)
            .filter(|(number, _)| number.abs_diff(header) == 1)
            .map(|(_, line)| self.texts(line))
            .collect()
    }

    /// The instruments side by side, read one after the other, if a pandas header tells whose each column is.
    fn read_instruments(&self, header: Line<'a>, zone: &TimeZone) -> Result<Option<Table>, MarketError> {
        let (number, line) = header;
        let names = self.texts(line);
        let found = instruments(&names, &self.beside(number));
        if found.is_empty() {
            return Ok(None);
        }
        let read = |instrument: &Instrument| {
            let (mut layout, _) = self.layout_of_names(header, &instrument.names(&names, &found))?;
            layout.extra.retain(|(column, _)| !instrument.excludes(*column, &found));
            let mut table = self.read_rows(&layout, Some(number), zone);
            table.stamp = layout.stamp;
            Ok((instrument.ticker.clone(), table))
        };
        let parts = found.par_iter().map(read).collect::<Result<Vec<_>, MarketError>>()?;
        let mut table = Table::stack(parts);
        if table.n_rows() == 0 {
            return Err(MarketError::Empty { path: self.path.to_path_buf() });
        }
        table.forget_empty_volume();
        Ok(Some(table))
    }

    /// Refuses columns of several instruments; the lines next to the header may name them.
    fn check_one_instrument(&self, header: u32, names: &[String]) -> Result<(), MarketError> {
        side_by_side(names, &self.beside(header)).map_or(Ok(()), |which| {
            let (path, line) = (self.path.to_path_buf(), u64::from(header));
            Err(MarketError::SeveralInstruments { path, line, which })
        })
    }

    fn texts(&self, line: &[u8]) -> Vec<String> {
        let mut cells = Cells::default();
        cells.split(line, self.delimiter);
        cells.iter(line).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }

    fn columns_error(&self, line: u32, problem: String, found: String) -> MarketError {
        let (path, hint) = (self.path.to_path_buf(), needed(self.wanted));
        MarketError::Columns { path, line: u64::from(line), problem, found, hint }
    }

    fn layout_of_header(&self, header: Line<'a>) -> Result<(Layout, Vec<String>), MarketError> {
        let names = self.texts(header.1);
        if self.wanted == Wanted::Bars {
            self.check_one_instrument(header.0, &names)?;
        }
        self.layout_of_names(header, &names)
    }

    fn layout_of_names(
        &self,
        (number, _): Line<'a>,
        names: &[String],
    ) -> Result<(Layout, Vec<String>), MarketError> {
        let mut cells = Cells::default();
        let sample: Vec<&[u8]> =
            lines(self.text).filter(|(other, _)| *other != number).take(32).map(|(_, line)| line).collect();
        let mut notes = Vec::new();
        if lines(self.text).next().is_some_and(|(first, _)| first != number) {
            notes.push(format!(
                "the header was found on line {number}; it names the columns of the whole file"
            ));
        }
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
        let layout = Layout::from_names(names, self.wanted, look).map_err(|missing| {
            let problem = format!("no column for {}", missing.0.join(", "));
            self.columns_error(number, problem, printable(&names.join(", ")))
        })?;
        Ok((layout, notes))
    }

    /// Guesses the columns of a file without header from its first rows, and checks the guess.
    fn layout_of_rows(&self) -> Result<(Layout, Vec<String>), MarketError> {
        let sample: Vec<Line<'a>> = lines(self.text).take(SAMPLE_ROWS).collect();
        let Some(&(first_number, first_line)) = sample.first() else {
            return Err(MarketError::Empty { path: self.path.to_path_buf() });
        };
        self.check_one_instrument(first_number, &self.texts(first_line))?;
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
        Ok((layout, vec![format!("no header: the columns were taken as {what}")]))
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

    /// About how many rows there are, from the length of the first ones.
    fn estimate_rows(&self) -> usize {
        let (mut n_lines, mut n_bytes) = (0, 0);
        for (_, line) in lines(self.text).take(64) {
            n_lines += 1;
            n_bytes += line.len() + 1;
        }
        (self.text.len() * n_lines / n_bytes.max(1)).min(self.text.len() / 16)
    }

    fn read_rows(&self, layout: &Layout, header: Option<u32>, zone: &TimeZone) -> Table {
        let decimal = self.decimal();
        let mut table = Table::default();
        let mut times = TimeColumn::default();
        let mut symbols = layout.symbol.map(|column| (column, SymbolColumn::default()));
        let mut volume: Vec<f64> = Vec::new();
        let mut extra: Vec<ExtraColumn> =
            layout.extra.iter().map(|(column, _)| ExtraColumn::new(*column)).collect();
        let n_rows = self.estimate_rows();
        for column in [&mut table.open, &mut table.high, &mut table.low, &mut table.close] {
            column.reserve(n_rows);
        }
        table.lines.reserve(n_rows);
        let mut cells = Cells::default();
        for (number, line) in lines(self.text) {
            cells.split(line, self.delimiter);
            if header == Some(number)
                || header.is_some() && may_be_header(line) && is_header(cells.iter(line))
            {
                // The header at the top is where it belongs; any other is dirt to be reported.
                if header != Some(number) || !table.lines.is_empty() {
                    table.header_lines.push(number);
                }
                continue;
            }
            let cell = |column: usize| cells.get(line, column);
            table.lines.push(number);
            times.push(read_time(layout.time, cell));
            let value = |column: usize| parse_number(cells.get(line, column), decimal);
            if let Some([open, high, low, close]) = layout.prices {
                table.open.push(value(open));
                table.high.push(value(high));
                table.low.push(value(low));
                table.close.push(value(close));
            }
            if let Some(column) = layout.volume {
                volume.push(value(column));
            }
            if let Some((column, symbols)) = &mut symbols {
                symbols.push(cells.get(line, *column));
            }
            for column in &mut extra {
                column.push(cells.get(line, column.column), decimal);
            }
        }
        let groups = symbols.as_ref().map(|(_, symbols)| symbols.ids());
        let (ts_ms, notes) = times.finish(zone, groups);
        table.ts_ms = ts_ms;
        table.notes = notes;
        table.volume = layout.volume.map(|_| volume);
        if let Some((_, symbols)) = symbols {
            let (ids, names) = symbols.finish();
            table.symbol_ids = Some(ids);
            table.symbols = names;
        }
        let mut ignored: Vec<String> = Vec::new();
        for ((_, name), column) in layout.extra.iter().zip(extra) {
            match column.finish(name) {
                Some(values) => table.extra.push((name.clone(), values)),
                None => ignored.push(identifier(name)),
            }
        }
        if !ignored.is_empty() {
            table.notes.push(format!("column(s) without numbers left out: {}", ignored.join(", ")));
        }
        table
    }
}

fn read_time<'a>(source: TimeSource, cell: impl Fn(usize) -> &'a [u8]) -> Option<Stamp> {
    match source {
        TimeSource::One(column) => parse_stamp(cell(column)),
        TimeSource::Pair { date, time } => {
            parse_stamp(cell(date))?.plus_time_of_day(parse_time_of_day(cell(time)))
        }
    }
}

/// A further column, kept if at least half of its filled cells are numbers. One without a filled cell is kept too, not
/// available throughout, if the header names it; without a name it is only a delimiter too many.
struct ExtraColumn {
    column: usize,
    values: Vec<f64>,
    n_numbers: usize,
    n_text: usize,
}

impl ExtraColumn {
    fn new(column: usize) -> Self {
        Self { column, values: Vec::new(), n_numbers: 0, n_text: 0 }
    }

    fn push(&mut self, cell: &[u8], decimal: Decimal) {
        let value = parse_number(cell, decimal);
        if !value.is_nan() {
            self.n_numbers += 1;
        } else if !is_null(cell) {
            self.n_text += 1;
        }
        self.values.push(value);
    }

    fn finish(self, name: &str) -> Option<Vec<f64>> {
        let is_named = name != unnamed(self.column);
        (self.n_numbers >= self.n_text && (self.n_numbers > 0 || is_named)).then_some(self.values)
    }
}
