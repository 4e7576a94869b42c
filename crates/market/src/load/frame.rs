//! Arrow's record batches as a table, whichever format they were stored in.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use jiff::tz::TimeZone;

use super::array::{Rounding, is_numeric, is_text, push_clocks, push_numbers, push_stamps, push_symbols};
use super::column::{Layout, TimeLook, TimeSource, Wanted};
use super::table::{SymbolColumn, Table, printable};
use super::time::TimeColumn;
use super::wide::{Instrument, instruments, side_by_side};
use crate::error::MarketError;
use crate::timestamp::{parse_stamp, parse_time_of_day};

/// More rows than this are not taken from one file; a few bytes can claim any number.
const MAX_ROWS: u64 = 500_000_000;

/// Refuses more rows than one file may have.
pub(crate) fn check_rows(n_rows: u64, path: &Path) -> Result<(), MarketError> {
    if n_rows > MAX_ROWS {
        let what = format!("the file claims {n_rows} rows, the limit is {MAX_ROWS}");
        return Err(MarketError::TooLarge { path: path.to_path_buf(), what });
    }
    Ok(())
}

/// Which columns of a schema are read, and as what.
pub(crate) struct Plan {
    layout: Layout,
    /// The columns that are read, rising.
    pub wanted: Vec<usize>,
    notes: Vec<String>,
}

impl Plan {
    /// A plan for each instrument that the columns name, or one for all.
    pub(crate) fn all(
        schema: &Schema,
        sample: &[Vec<String>],
        path: &Path,
        wanted: Wanted,
    ) -> Result<Vec<(Option<String>, Self)>, MarketError> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let found = if wanted == Wanted::Bars { instruments(&names, &[]) } else { Vec::new() };
        if found.is_empty() {
            return Ok(vec![(None, Self::new(schema, &names, sample, path, wanted)?)]);
        }
        let plan = |instrument: &Instrument| {
            let own = instrument.names(&names, &found);
            let mut plan = Self::new(schema, &own, sample, path, wanted)?;
            plan.layout.extra.retain(|(column, _)| !instrument.excludes(*column, &found));
            plan.wanted = wanted_columns(&plan.layout);
            Ok((Some(instrument.ticker.clone()), plan))
        };
        found.iter().map(plan).collect()
    }

    /// `sample` holds the first cells of text columns: their content, not their type, tells dates from clocks.
    fn new(
        schema: &Schema,
        names: &[String],
        sample: &[Vec<String>],
        path: &Path,
        wanted: Wanted,
    ) -> Result<Self, MarketError> {
        let columns_error = |problem: String| {
            let hint = match wanted {
                Wanted::Bars => {
                    "needed are columns open, high, low, close (or close alone) and a time (timestamp, date, time, …); volume and symbol are optional"
                }
                Wanted::Features => {
                    "needed are a time (timestamp, date, time, …) and columns of numbers; symbol is optional"
                }
            };
            let (path, found, hint) = (path.to_path_buf(), describe(schema), hint.to_string());
            MarketError::Columns { path, line: 1, problem, found, hint }
        };
        if wanted == Wanted::Bars
            && let Some(which) = side_by_side(names, &[])
        {
            return Err(MarketError::SeveralInstruments { path: path.to_path_buf(), line: 1, which });
        }
        let look = |column: usize| look_of(schema.field(column).data_type(), &sample[column]);
        let mut layout = Layout::from_names(names, wanted, look)
            .map_err(|missing| columns_error(format!("no column for {}", missing.0.join(", "))))?;
        for (name, column) in ["open", "high", "low", "close"].into_iter().zip(layout.prices.iter().flatten())
        {
            let kind = schema.field(*column).data_type();
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
        Ok(Self { layout, wanted, notes })
    }
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
    let mut wanted: Vec<usize> = layout.prices.into_iter().flatten().collect();
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

/// The table of all plans: the one there is, or those of the instruments one after the other.
pub(crate) fn stack(tables: Vec<(Option<String>, Table)>) -> Table {
    let mut parts = Vec::with_capacity(tables.len());
    for (ticker, table) in tables {
        match ticker {
            None => return table,
            Some(ticker) => parts.push((ticker, table)),
        }
    }
    Table::stack(parts)
}

/// Collects batches into a table.
pub(crate) struct Rows<'a> {
    plan: &'a Plan,
    n_rows: usize,
    table: Table,
    times: TimeColumn,
    symbols: SymbolColumn,
}

impl<'a> Rows<'a> {
    /// With room for so many rows: columns that grow are copied, and twice as much memory is made for them.
    pub(crate) fn new(plan: &'a Plan, n_rows: usize) -> Self {
        let layout = &plan.layout;
        let column = || Vec::with_capacity(n_rows);
        let [open, high, low, close] =
            layout.prices.map_or_else(Default::default, |_| [(); 4].map(|()| column()));
        let table = Table {
            open,
            high,
            low,
            close,
            volume: layout.volume.map(|_| column()),
            extra: layout.extra.iter().map(|(_, name)| (name.clone(), column())).collect(),
            ..Table::default()
        };
        Self {
            plan,
            n_rows: 0,
            table,
            times: TimeColumn::with_room(n_rows),
            symbols: SymbolColumn::default(),
        }
    }

    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<(), String> {
        self.n_rows += batch.num_rows();
        let column = |index: usize| {
            let position =
                self.plan.wanted.binary_search(&index).map_err(|_| "a column is missing".to_string())?;
            batch.columns().get(position).ok_or_else(|| "a column is missing".to_string())
        };
        if let Some([open, high, low, close]) = self.plan.layout.prices {
            push_numbers(column(open)?, &mut self.table.open)?;
            push_numbers(column(high)?, &mut self.table.high)?;
            push_numbers(column(low)?, &mut self.table.low)?;
            push_numbers(column(close)?, &mut self.table.close)?;
        }
        if let (Some(index), Some(volume)) = (self.plan.layout.volume, &mut self.table.volume) {
            push_numbers(column(index)?, volume)?;
        }
        for ((index, _), (_, values)) in self.plan.layout.extra.iter().zip(&mut self.table.extra) {
            push_numbers(column(*index)?, values)?;
        }
        if let Some(index) = self.plan.layout.symbol {
            push_symbols(column(index)?, &mut self.symbols)?;
        }
        // A table without prices is joined: its rows are known from their time on.
        let rounding = if self.plan.layout.prices.is_some() { Rounding::Down } else { Rounding::Up };
        match self.plan.layout.time {
            TimeSource::One(index) => push_stamps(column(index)?, rounding, |stamp| self.times.push(stamp)),
            TimeSource::Pair { date, time } => {
                let mut clocks = Vec::with_capacity(batch.num_rows());
                push_clocks(column(time)?, &mut clocks)?;
                let mut clocks = clocks.into_iter();
                push_stamps(column(date)?, rounding, |stamp| {
                    let clock = clocks.next().flatten();
                    self.times.push(stamp.and_then(|stamp| stamp.plus_time_of_day(clock)));
                })
            }
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn finish(self, zone: &TimeZone, path: &Path) -> Result<Table, MarketError> {
        let mut table = self.table;
        let (ids, names) = self.symbols.finish();
        let groups = self.plan.layout.symbol.map(|_| ids.as_slice());
        let (ts_ms, notes) = self.times.finish(zone, groups);
        table.ts_ms = ts_ms;
        table.notes = [self.plan.notes.clone(), notes].concat();
        table.stamp = self.plan.layout.stamp;
        table.closes_only = self.plan.layout.closes_only;
        if self.plan.layout.symbol.is_some() {
            table.symbol_ids = Some(ids);
            table.symbols = names;
        }
        if table.n_rows() == 0 {
            return Err(MarketError::Empty { path: path.to_path_buf() });
        }
        if self.plan.layout.prices.is_some() {
            table.note_closes_only();
            table.forget_empty_volume();
        }
        table.note_empty_columns();
        Ok(table)
    }
}
