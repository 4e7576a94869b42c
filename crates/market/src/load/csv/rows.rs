//! From the lines of delimited text to columns: blocks are parsed side by side and put together in order.

use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::super::column::{Layout, TimeSource, identifier, is_header};
use super::super::extra::ExtraColumn;
use super::super::line::{Cells, lines};
use super::super::number::{Decimal, parse_number};
use super::super::progress::FileProgress;
use super::super::table::{SymbolColumn, Table};
use super::super::text::{Block, Blocks, Text};
use super::super::time::TimeColumn;
use super::may_be_header;
use crate::error::MarketError;
use crate::timestamp::{Stamp, parse_stamp, parse_time_of_day};

/// Blocks parsed at a time, while as many are read: enough for the cores of a machine, little beside the table.
const GROUP_BLOCKS: usize = 16;

/// How rows are read.
pub(super) struct RowFormat {
    pub delimiter: u8,
    /// Line of the header, if there is one.
    pub header: Option<u32>,
}

impl RowFormat {
    /// Reads all rows once; a table for each layout.
    pub(super) fn read(
        &self,
        text: &Text<'_>,
        layouts: &[Layout],
        zone: &TimeZone,
        progress: &FileProgress,
    ) -> Result<Vec<Table>, MarketError> {
        let mut blocks = text.blocks()?;
        let mut group = next_group(&mut blocks)?;
        let n_rows = estimate_rows(text);
        let mut all: Vec<Columns> = layouts.iter().map(|layout| Columns::new(layout, n_rows)).collect();
        while !group.is_empty() {
            let parse = || group.par_iter().map(|block| self.parse(block, layouts)).collect::<Vec<_>>();
            let (parsed, next) = rayon::join(parse, || next_group(&mut blocks));
            for part in parsed.into_iter().flat_map(|parts| parts.into_iter().enumerate()) {
                all[part.0].append(part.1);
            }
            progress.advance(group.iter().map(|block| block.bytes.len() as u64).sum());
            group = next?;
        }
        Ok(all.into_iter().zip(layouts).map(|(columns, layout)| columns.finish(layout, self, zone)).collect())
    }

    fn parse(&self, block: &Block, layouts: &[Layout]) -> Vec<Columns> {
        let mut parts: Vec<Columns> =
            layouts.iter().map(|layout| Columns::new(layout, block.n_lines)).collect();
        let decimal = Decimal::beside(self.delimiter);
        let mut cells = Cells::default();
        for (number, line) in block.lines() {
            cells.split(line, self.delimiter);
            let is_header = self.header == Some(number)
                || self.header.is_some() && may_be_header(line) && is_header(cells.iter(line));
            for (part, layout) in parts.iter_mut().zip(layouts) {
                match is_header {
                    true => part.header_lines.push(number),
                    false => part.push(number, |column| cells.get(line, column), layout, decimal),
                }
            }
        }
        parts
    }
}

fn next_group(blocks: &mut Blocks<'_>) -> Result<Vec<Block>, MarketError> {
    blocks.take(GROUP_BLOCKS).collect()
}

/// About how many rows there are, from the length of the first ones.
fn estimate_rows(text: &Text<'_>) -> usize {
    let (mut n_lines, mut n_bytes) = (0_u64, 0);
    for (_, line) in lines(text.head()).take(64) {
        n_lines += 1;
        n_bytes += line.len() as u64 + 1;
    }
    let n_rows = u128::from(text.n_bytes()) * u128::from(n_lines) / u128::from(n_bytes.max(1));
    usize::try_from(n_rows.min(u128::from(text.n_bytes() / 16))).unwrap_or(0)
}

/// Rows as columns, of a block or of all blocks so far.
#[derive(Default)]
struct Columns {
    lines: Vec<u32>,
    header_lines: Vec<u32>,
    times: TimeColumn,
    prices: [Vec<f64>; 4],
    volume: Vec<f64>,
    symbols: SymbolColumn,
    extra: Vec<ExtraColumn>,
}

impl Columns {
    fn new(layout: &Layout, n_rows: usize) -> Self {
        let room = |is_there: bool| Vec::with_capacity(if is_there { n_rows } else { 0 });
        Self {
            lines: Vec::with_capacity(n_rows),
            prices: std::array::from_fn(|_| room(layout.prices.is_some())),
            volume: room(layout.volume.is_some()),
            extra: layout.extra.iter().map(|(column, _)| ExtraColumn::new(*column)).collect(),
            ..Self::default()
        }
    }

    fn push<'a>(&mut self, number: u32, cell: impl Fn(usize) -> &'a [u8], layout: &Layout, decimal: Decimal) {
        self.lines.push(number);
        self.times.push(read_time(layout.time, &cell));
        for (values, column) in self.prices.iter_mut().zip(layout.prices.iter().flatten()) {
            values.push(parse_number(cell(*column), decimal));
        }
        if let Some(column) = layout.volume {
            self.volume.push(parse_number(cell(column), decimal));
        }
        if let Some(column) = layout.symbol {
            self.symbols.push(cell(column));
        }
        for column in &mut self.extra {
            column.push(cell(column.column), decimal);
        }
    }

    /// Adds the rows that follow.
    fn append(&mut self, next: Self) {
        self.lines.extend_from_slice(&next.lines);
        self.header_lines.extend_from_slice(&next.header_lines);
        self.times.append(&next.times);
        for (values, more) in self.prices.iter_mut().zip(&next.prices) {
            values.extend_from_slice(more);
        }
        self.volume.extend_from_slice(&next.volume);
        self.symbols.append(&next.symbols);
        for (column, more) in self.extra.iter_mut().zip(&next.extra) {
            column.append(more);
        }
    }

    fn finish(mut self, layout: &Layout, format: &RowFormat, zone: &TimeZone) -> Table {
        // The header at the top is where it belongs; any other is dirt to be reported.
        let is_at_top = |header: u32| self.lines.first().is_none_or(|first| *first > header);
        if let Some(header) = format.header.filter(|header| is_at_top(*header)) {
            self.header_lines.retain(|line| *line != header);
        }
        let (ids, symbols) = self.symbols.finish();
        let (ts_ms, mut notes) = self.times.finish(zone, layout.symbol.map(|_| ids.as_slice()));
        let mut extra = Vec::new();
        let mut ignored: Vec<String> = Vec::new();
        for ((_, name), column) in layout.extra.iter().zip(self.extra) {
            match column.finish(name) {
                Some(values) => extra.push((name.clone(), values)),
                None => ignored.push(identifier(name)),
            }
        }
        if !ignored.is_empty() {
            notes.push(format!("column(s) without numbers left out: {}", ignored.join(", ")));
        }
        let [open, high, low, close] = self.prices;
        Table {
            symbol_ids: layout.symbol.map(|_| ids),
            symbols,
            ts_ms,
            stamp: layout.stamp,
            open,
            high,
            low,
            close,
            closes_only: layout.closes_only,
            volume: layout.volume.map(|_| self.volume),
            extra,
            lines: self.lines,
            header_lines: self.header_lines,
            notes,
        }
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
