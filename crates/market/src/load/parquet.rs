//! Reading Parquet through Arrow.
//!
//! The decoder is not proof against hostile bytes: it may panic. Reading therefore runs inside `catch_unwind`, and
//! footer and page headers are checked for what unwinding cannot catch: a stack overflow, memory without end.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Arc, Once};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use jiff::tz::TimeZone;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::array::{is_numeric, is_text, push_clocks, push_numbers, push_stamps, push_symbols, text_cells};
use super::column::{Layout, TimeLook, TimeSource};
use super::table::{SymbolColumn, Table, printable};
use super::time::TimeColumn;
use super::wide::side_by_side;
use super::{footer, page};
use crate::error::MarketError;
use crate::timestamp::{parse_stamp, parse_time_of_day};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 32_768;
/// More rows than this are not taken from one file; a few bytes can claim any number.
const MAX_ROWS: i64 = 500_000_000;
/// Real footers of bars take kilobytes.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// Reads a whole file.
pub(crate) fn read(path: &Path, zone: &TimeZone) -> Result<Table, MarketError> {
    let fail = |message: String| MarketError::Parquet { path: path.to_path_buf(), message };
    let mut file = File::open(path).map_err(|source| MarketError::io(path, source))?;
    check_footer(&mut file).map_err(|source| MarketError::io(path, source))?.map_err(fail)?;
    let outcome = quietly(|| decode(file, path, zone));
    outcome.unwrap_or_else(|| Err(fail("the decoder gave up on damaged content".to_string())))
}

/// Runs `work`; `None` if it panicked. The panic's message goes nowhere: the caller reports the file instead.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    outcome.ok()
}

/// Looks at magic, length and schema depth of the footer.
fn check_footer(file: &mut File) -> std::io::Result<Result<(), String>> {
    let len = file.seek(SeekFrom::End(0))?;
    if len < 12 {
        return Ok(Err(format!("{len} bytes are too few")));
    }
    let mut tail = [0_u8; 8];
    file.seek(SeekFrom::Start(len - 8))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    if &magic != footer::MAGIC {
        return Ok(Err("the end mark is missing".to_string()));
    }
    let footer_len = u64::from(u32::from_le_bytes([a, b, c, d]));
    if footer_len > (len - 8).min(MAX_FOOTER_BYTES) {
        return Ok(Err(format!("the footer claims {footer_len} bytes")));
    }
    let mut bytes = vec![0_u8; footer_len as usize];
    file.seek(SeekFrom::Start(len - 8 - footer_len))?;
    file.read_exact(&mut bytes)?;
    Ok(footer::check(&bytes))
}

fn decode(file: File, path: &Path, zone: &TimeZone) -> Result<Table, MarketError> {
    let fail = |error: &dyn std::fmt::Display| MarketError::Parquet {
        path: path.to_path_buf(),
        message: error.to_string(),
    };
    let io = |source| MarketError::io(path, source);
    let pages = Arc::new(file.try_clone().map_err(io)?);
    let sample = sample_text(file.try_clone().map_err(io)?, &pages).map_err(|message| fail(&message))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| fail(&error))?;
    let n_rows = builder.metadata().file_metadata().num_rows();
    if n_rows == 0 {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    }
    if !(0..=MAX_ROWS).contains(&n_rows) {
        let what = format!("the file claims {n_rows} rows, the limit is {MAX_ROWS}");
        return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
    }
    let schema = builder.schema().clone();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let columns_error = |problem: String| {
        MarketError::Columns {
        path: path.to_path_buf(),
        line: 1,
        problem,
        found: describe(&schema),
        hint: "needed are columns open, high, low, close and a time (timestamp, date, time, …); volume and symbol are optional".to_string(),
    }
    };
    if let Some(which) = side_by_side(&names, &[]) {
        return Err(MarketError::SeveralInstruments { path: path.to_path_buf(), line: 1, which });
    }
    let look = |column: usize| look_of(schema.field(column).data_type(), &sample[column]);
    let mut layout = Layout::from_names(&names, look)
        .map_err(|missing| columns_error(format!("no column for {}", missing.0.join(", "))))?;
    for (name, column) in
        [("open", layout.open), ("high", layout.high), ("low", layout.low), ("close", layout.close)]
    {
        let kind = schema.field(column).data_type();
        if !is_numeric(kind) && !is_text(kind) {
            return Err(columns_error(format!("column {name} is of type {kind}, which is not a number")));
        }
    }
    let mut notes = Vec::new();
    if let Some(column) = layout.volume.filter(|&column| !is_numeric(schema.field(column).data_type())) {
        notes.push(format!("column {} is not numeric and was left out", names[column]));
        layout.volume = None;
    }
    let mut ignored: Vec<String> = Vec::new();
    layout.extra.retain(|(column, name)| {
        let keep = is_numeric(schema.field(*column).data_type());
        if !keep {
            ignored.push(name.clone());
        }
        keep
    });
    if !ignored.is_empty() {
        notes.push(format!("column(s) without numbers left out: {}", ignored.join(", ")));
    }
    let wanted = wanted_columns(&layout);
    page::check(&pages, builder.metadata(), &wanted).map_err(|message| fail(&message))?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
    let reader =
        builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(|error| fail(&error))?;
    let mut rows = Rows::new(&layout, &wanted);
    for batch in reader {
        let batch = batch.map_err(|error| fail(&error))?;
        rows.push(&batch).map_err(|message| fail(&message))?;
        if rows.table.open.len() as i64 > MAX_ROWS {
            let what = format!("the file holds more than {MAX_ROWS} rows");
            return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
        }
    }
    let mut table = rows.finish(zone);
    table.stamp = layout.stamp;
    notes.append(&mut table.notes);
    table.notes = notes;
    if table.n_rows() == 0 {
        return Err(MarketError::Empty { path: path.to_path_buf() });
    }
    table.forget_empty_volume();
    table.note_empty_columns();
    Ok(table)
}

/// The first cells of every text column: their content, not their type, tells dates from clocks.
fn sample_text(file: File, pages: &Arc<File>) -> Result<Vec<Vec<String>>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    let schema = builder.schema().clone();
    let n_columns = schema.fields().len();
    let text: Vec<usize> =
        (0..n_columns).filter(|&column| is_text(schema.field(column).data_type())).collect();
    let mut sample = vec![Vec::new(); n_columns];
    if text.is_empty() {
        return Ok(sample);
    }
    page::check(pages, builder.metadata(), &text)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), text.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(32).with_limit(32).build();
    for batch in reader.map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        for (position, &column) in text.iter().enumerate() {
            sample[column].extend(text_cells(batch.column(position)));
        }
    }
    Ok(sample)
}

fn look_of(kind: &DataType, sample: &[String]) -> TimeLook {
    match kind {
        DataType::Date32 => TimeLook::Date,
        DataType::Time32(_) | DataType::Time64(_) => TimeLook::Clock,
        DataType::Timestamp(_, _) | DataType::Date64 => TimeLook::Full,
        DataType::Null => TimeLook::Other,
        kind if is_text(kind) => {
            let stamps = || sample.iter().filter_map(|cell| parse_stamp(cell.as_bytes()));
            if stamps().any(|stamp| !stamp.date_only) {
                TimeLook::Full
            } else if stamps().next().is_some() {
                TimeLook::Date
            } else if sample.iter().any(|cell| parse_time_of_day(cell.as_bytes()).is_some()) {
                TimeLook::Clock
            } else {
                TimeLook::Other
            }
        }
        kind if is_numeric(kind) => TimeLook::Number,
        _ => TimeLook::Other,
    }
}

fn describe(schema: &arrow_schema::Schema) -> String {
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .take(40)
        .map(|field| format!("{} ({})", field.name(), field.data_type()))
        .collect();
    printable(&columns.join(", "))
}

fn wanted_columns(layout: &Layout) -> Vec<usize> {
    let mut wanted = vec![layout.open, layout.high, layout.low, layout.close];
    match layout.time {
        TimeSource::One(column) => wanted.push(column),
        TimeSource::Pair { date, time } => wanted.extend([date, time]),
    }
    wanted.extend(layout.volume);
    wanted.extend(layout.symbol);
    wanted.extend(layout.extra.iter().map(|(column, _)| *column));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Collects batches into a table.
struct Rows<'a> {
    layout: &'a Layout,
    wanted: &'a [usize],
    table: Table,
    times: TimeColumn,
    symbols: SymbolColumn,
}

impl<'a> Rows<'a> {
    fn new(layout: &'a Layout, wanted: &'a [usize]) -> Self {
        let table = Table {
            volume: layout.volume.map(|_| Vec::new()),
            extra: layout.extra.iter().map(|(_, name)| (name.clone(), Vec::new())).collect(),
            ..Table::default()
        };
        Self { layout, wanted, table, times: TimeColumn::default(), symbols: SymbolColumn::default() }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let column = |index: usize| {
            let position =
                self.wanted.binary_search(&index).map_err(|_| "a column is missing".to_string())?;
            batch.columns().get(position).ok_or_else(|| "a column is missing".to_string())
        };
        push_numbers(column(self.layout.open)?, &mut self.table.open)?;
        push_numbers(column(self.layout.high)?, &mut self.table.high)?;
        push_numbers(column(self.layout.low)?, &mut self.table.low)?;
        push_numbers(column(self.layout.close)?, &mut self.table.close)?;
        if let (Some(index), Some(volume)) = (self.layout.volume, &mut self.table.volume) {
            push_numbers(column(index)?, volume)?;
        }
        for ((index, _), (_, values)) in self.layout.extra.iter().zip(&mut self.table.extra) {
            push_numbers(column(*index)?, values)?;
        }
        if let Some(index) = self.layout.symbol {
            push_symbols(column(index)?, &mut self.symbols)?;
        }
        match self.layout.time {
            TimeSource::One(index) => push_stamps(column(index)?, |stamp| self.times.push(stamp)),
            TimeSource::Pair { date, time } => {
                let mut clocks = Vec::with_capacity(batch.num_rows());
                push_clocks(column(time)?, &mut clocks)?;
                let mut clocks = clocks.into_iter();
                push_stamps(column(date)?, |stamp| {
                    let clock = clocks.next().flatten();
                    self.times.push(stamp.and_then(|stamp| stamp.plus_time_of_day(clock)));
                })
            }
        }
    }

    fn finish(self, zone: &TimeZone) -> Table {
        let mut table = self.table;
        let (ids, names) = self.symbols.finish();
        let groups = self.layout.symbol.map(|_| ids.as_slice());
        let (ts_ms, notes) = self.times.finish(zone, groups);
        table.ts_ms = ts_ms;
        table.notes = notes;
        if self.layout.symbol.is_some() {
            table.symbol_ids = Some(ids);
            table.symbols = names;
        }
        table
    }
}
