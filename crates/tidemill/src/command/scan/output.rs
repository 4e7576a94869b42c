//! The output of a scan: two ranked lists or JSON, and the symbols it could not use, with the reasons.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;
use tidemill_market::atc::AtcOptions;
use tidemill_market::timestamp::format_ms;
use tidemill_scan::{Ranking, Row, ScanCounts, ScanOptions, Scanned, Scanner};

use super::market::Market;
use super::{ScanArgs, TOP, symbols_text};
use crate::table::{Screen, Table, TextColumn};
use tidemill_lab::number;

/// Bars of the recent average that are drawn.
const RECENT_BARS: usize = 32;

/// Skipped symbols named one by one; of more only the number is given.
const SKIPPED_SHOWN: usize = 20;

/// A scan with its ranking, for text, JSON and files.
pub struct ScanReport<'a> {
    args: &'a ScanArgs,
    options: &'a ScanOptions,
    pub market: &'a Market,
    pub scanned: &'a Scanned,
    pub ranking: Ranking<'a>,
    skipped: Vec<SkippedJson>,
}

/// Something without a signal.
#[derive(Serialize)]
struct SkippedJson {
    symbol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    reason: String,
}

#[derive(Serialize)]
struct RowJson<'a> {
    symbol: &'a str,
    signal: f64,
    trend: i32,
    class: String,
    price: f64,
    bars: usize,
    from: String,
    to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    average: Option<&'a [f64]>,
}

#[derive(Serialize)]
struct FilteredJson<'a> {
    symbol: &'a str,
    signal: f64,
}

#[derive(Serialize)]
struct ScanJson<'a> {
    symbols: Vec<RowJson<'a>>,
    skipped: &'a [SkippedJson],
    filtered: Vec<FilteredJson<'a>>,
    counts: ScanCounts,
    data: &'a str,
    preset: String,
    min_signal: f64,
    bars: Option<usize>,
    options: &'a AtcOptions,
    notes: &'a [String],
}

impl<'a> ScanReport<'a> {
    /// Ranks the rows and joins what the loader and the scanner could not use.
    pub fn new(
        args: &'a ScanArgs,
        options: &'a ScanOptions,
        market: &'a Market,
        scanned: &'a Scanned,
    ) -> Self {
        let broken = market.unusable.iter().map(|unusable| SkippedJson {
            symbol: unusable.symbol.clone(),
            file: unusable.file.clone(),
            reason: unusable.reason.clone(),
        });
        let mut skipped: Vec<SkippedJson> = broken.collect();
        let without = scanned.skipped.iter().map(|skipped| SkippedJson {
            symbol: skipped.symbol.clone(),
            file: None,
            reason: skipped.reason.to_string(),
        });
        skipped.extend(without);
        skipped.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        Self { args, options, market, scanned, ranking: scanned.ranking(), skipped }
    }

    /// All rows: rising trends, then falling ones, each by strength, then those without a direction.
    pub fn rows(&self) -> Vec<&'a Row> {
        [&self.ranking.long, &self.ranking.short, &self.ranking.flat].into_iter().flatten().copied().collect()
    }

    /// How many symbols there are of each kind.
    pub fn counts(&self) -> ScanCounts {
        self.scanned.counts(self.market.unusable.len())
    }

    /// One JSON object, over many lines or on one.
    pub fn write_json(&self, out: &mut dyn Write, pretty: bool) -> anyhow::Result<()> {
        let top = self.args.top.unwrap_or(usize::MAX);
        let lists = [&self.ranking.long, &self.ranking.short, &self.ranking.flat];
        let symbols = lists.into_iter().flat_map(|list| list.iter().take(top)).map(|row| {
            let (from, to) = self.window(row);
            RowJson {
                symbol: &row.symbol,
                signal: row.signal,
                trend: row.trend,
                class: row.class.to_string(),
                price: row.price,
                bars: row.bars,
                from,
                to,
                average: row.average.as_deref(),
            }
        });
        let filtered = self.scanned.filtered.iter();
        let json = ScanJson {
            symbols: symbols.collect(),
            skipped: &self.skipped,
            filtered: filtered.map(|one| FilteredJson { symbol: &one.symbol, signal: one.signal }).collect(),
            counts: self.counts(),
            data: &self.market.origin,
            preset: self.args.preset.to_string(),
            min_signal: self.options.min_signal,
            bars: self.options.bars,
            options: &self.options.atc,
            notes: &self.market.notes,
        };
        // A history has a number for each bar: a line for each would make the text three times as long.
        if pretty && !self.options.history {
            serde_json::to_writer_pretty(&mut *out, &json)?;
        } else {
            serde_json::to_writer(&mut *out, &json)?;
        }
        writeln!(out)?;
        Ok(())
    }

    /// Times of the first and the last bar of a row's window.
    fn window(&self, row: &Row) -> (String, String) {
        let times = &self.market.series[row.index].ts_ms;
        let time = |ts_ms: Option<&i64>| ts_ms.map(|ts_ms| format_ms(*ts_ms)).unwrap_or_default();
        (time(times.get(times.len() - row.bars)), time(times.last()))
    }

    /// The two lists as tables.
    pub fn text(&self, scanner: &Scanner, screen: &Screen) -> Result<String> {
        let top = self.args.top.unwrap_or(TOP);
        let mut out = String::new();
        for (title, list) in [("LONG", &self.ranking.long), ("SHORT", &self.ranking.short)] {
            if list.is_empty() {
                out += &format!("{title}: none\n\n");
                continue;
            }
            let mut table = table();
            self.args.columns.choose(&mut table)?;
            for (at, row) in list.iter().take(top).enumerate() {
                let closes = &self.market.series[row.index].close;
                // Computed anew for what is shown; the bits are those of the scan.
                let average = scanner.average(closes).unwrap_or_default();
                table.row([
                    (at + 1).to_string(),
                    row.symbol.clone(),
                    row.class.to_string(),
                    sparkline(&average[average.len().saturating_sub(RECENT_BARS)..]),
                    format!("{:+.4}", row.signal),
                    number::short(Some(row.price)),
                    number::count(row.bars as u64),
                ]);
            }
            let more = list.len().saturating_sub(top);
            out += &format!("{title} ({})\n{}", number::count(list.len() as u64), table.render(4, screen));
            out += &if more > 0 { format!("({more} more; --top shows them)\n\n") } else { "\n".to_string() };
        }
        Ok(out)
    }

    /// The window, and what has no signal, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.window_line());
        for skipped in self.skipped.iter().take(SKIPPED_SHOWN) {
            let name = skipped.file.as_ref().unwrap_or(&skipped.symbol);
            lines.push(match skipped.reason.starts_with(&format!("{name}:")) {
                true => format!("skipped {}", skipped.reason),
                false => format!("skipped {name}: {}", skipped.reason),
            });
        }
        if self.skipped.len() > SKIPPED_SHOWN {
            lines.push(format!("skipped {} more; --json lists all", self.skipped.len() - SKIPPED_SHOWN));
        }
        lines
    }

    /// The window of bars that the signals come from.
    fn window_line(&self) -> Option<String> {
        let bars = |row: &Row| row.bars;
        let rows = &self.scanned.rows;
        let (least, most) = (rows.iter().map(bars).min()?, rows.iter().map(bars).max()?);
        let windows: Vec<(String, String)> = rows.iter().map(|row| self.window(row)).collect();
        let first = windows.iter().map(|(from, _)| from).min()?;
        let last = windows.iter().map(|(_, to)| to).max()?;
        let length = match least == most {
            true => number::counted(most as u64, "bar"),
            false => format!("{} to {}", number::count(least as u64), number::counted(most as u64, "bar")),
        };
        let hint = match least == most {
            true => "",
            false => "; signals depend on where a window begins, --bars makes the windows equal",
        };
        Some(format!("window: {length}, {first} to {last}{hint}"))
    }

    /// The counts and the time, in one line.
    pub fn summary(&self, seconds: f64) -> String {
        let counts = self.counts();
        let mut line = format!(
            "{} in {seconds:.3} s: {} long, {} short, {} filtered (below {}), {} skipped",
            symbols_text(counts.scanned),
            number::count(counts.long as u64),
            number::count(counts.short as u64),
            number::count(counts.filtered as u64),
            self.options.min_signal,
            number::count(counts.skipped as u64),
        );
        if counts.flat > 0 {
            line += &format!(", {} flat", number::count(counts.flat as u64));
        }
        line + &format!(", {}", number::counted(counts.errors as u64, "error"))
    }
}

/// The table of a list without rows.
pub fn table() -> Table {
    let columns =
        [("#", 9), ("symbol", 10), ("class", 8), ("recent", 4), ("signal", 9), ("price", 6), ("bars", 3)];
    Table::new(columns.map(|(title, keep)| {
        let column = TextColumn::new(title).keep(keep);
        if title == "#" { column.named("rank") } else { column }
    }))
}

/// Values from −1 to 1 as a line of blocks; what is not available is a blank.
fn sparkline(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |value: &f64| match value {
        value if value.is_nan() => ' ',
        value => BLOCKS[(((value + 1.0) / 2.0 * 8.0) as usize).min(7)],
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_spans_minus_one_to_one() {
        assert_eq!(sparkline(&[-1.0, -0.5, -0.01, 0.0, 0.5, 1.0, f64::NAN, 2.0, -2.0]), "▁▃▄▅▇█ █▁");
    }
}
