//! The policy for dirty data. Rules apply in this order; every application is counted with its first places.
//!
//! | found | done | kind in the report |
//! |---|---|---|
//! | a header line among the data | dropped | `header_line` |
//! | a row without a symbol, in a file with a symbol column | dropped | `no_symbol` |
//! | a time that cannot be read | row dropped | `no_time` |
//! | rows out of order | sorted by time; equal times keep the order of the file | `unsorted` (steps back) |
//! | several rows with one time | the last of the file stays, the others are dropped | `duplicate`, and `conflict` where they disagree |
//! | a missing, NaN or infinite price | row dropped | `not_a_number` |
//! | a price of zero or less | row dropped | `not_positive` |
//! | missing, non-finite or negative volume | row dropped | `bad_volume` |
//! | high below another price, or low above one | high = max(o, h, l, c), low = min(o, h, l, c) | `bad_range` |
//! | zero volume | kept | `zero_volume` |
//! | missing bars | kept as a gap, never filled | `gap` |
//! | a further column without a finite number | NaN, which means "not available" | `not_available` |
//! | a jump of price and volume as by a split | kept, never repaired | `suspected_split` |
//! | the first ten bars of a symbol move by more than 5× | kept | `listing_jump` |
//!
//! A file whose volume column is absent, or holds no number at all, has volume 0 throughout; that is a note, not
//! an issue. Duplicates go before bad prices, so a bad last row takes its time with it: a correction that turned out
//! unreadable is not replaced by the value it was meant to correct. A symbol left without bars is refused with the
//! reason; only when nothing at all is left is the load an error.
//!
//! A gap is a step longer than the timeframe. Daily bars that never fall on a weekend do not count weekends as missing.

use std::ops::Range;

use crate::bars::{Bars, DAY_MS};
use crate::jump::{listing_jump, suspected_splits};
use crate::load::name::Name;
use crate::load::table::{NO_TIME, Table};
use crate::report::{IssueKind, Place, SymbolReport, Tally};
use crate::timeframe;
use crate::timestamp::weekday;

/// Consecutive rows of one file that belong to one symbol.
#[derive(Clone, Debug)]
pub(crate) struct RowRange {
    /// Which file.
    pub file_idx: usize,
    /// Which of its rows.
    pub rows: Range<usize>,
}

/// All rows of one symbol, wherever they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolRows {
    pub symbol: String,
    pub runs: Vec<RowRange>,
}

/// A file's rows and its name for places.
#[derive(Debug)]
pub(crate) struct Source {
    pub file: String,
    /// The symbol of all rows, if the table has no symbols of its own.
    pub name: Name,
    pub table: Table,
}

impl Source {
    /// The symbols of the file in order of appearance.
    pub(crate) fn symbols(&self) -> Vec<String> {
        match self.table.symbol_ids {
            Some(_) => self.table.symbols.clone(),
            None => vec![self.name.symbol.clone()],
        }
    }
}

/// The result for one symbol: its bars and report, or why there are none.
pub(crate) type CleanedSymbol = Result<(Bars, SymbolReport), String>;

/// Applies the policy to one symbol.
pub(crate) fn clean(gathered: &SymbolRows, sources: &[Source], span: Range<i64>) -> (CleanedSymbol, Tally) {
    let mut tally = Tally::default();
    let mut rows = Rows::gather(gathered, sources);
    let n_rows = rows.bars.len();
    if u32::try_from(n_rows).is_err() {
        return (Err(format!("{n_rows} rows are more than one symbol can have")), tally);
    }
    let order = rows.order(&mut tally);
    let last_of_time = rows.without_duplicates(order, &mut tally);
    let newest = last_of_time.last().filter(|&&row| span.contains(&rows.bars.ts_ms[row as usize]));
    let newest_dropped = newest.and_then(|&row| rows.fault(row as usize));
    let (keep, n_repaired) = rows.valid(last_of_time, &mut tally);
    let n_kept = keep.len();
    let very_first = keep.first().copied();
    let keep = rows.within(keep, span);
    let mut bars = rows.take(&keep, &mut tally);
    if bars.is_empty() {
        let reason = if n_kept > 0 {
            format!("none of its {n_kept} bars lies between the requested dates")
        } else {
            let dropped: Vec<String> = IssueKind::ALL[..9]
                .iter()
                .filter(|kind| !matches!(kind, IssueKind::Unsorted | IssueKind::Conflict))
                .filter(|kind| tally.count(**kind) > 0)
                .map(|kind| format!("{} {}", tally.count(*kind), kind.describe()))
                .collect();
            format!("no bar left of {n_rows} row(s): {}", dropped.join("; "))
        };
        return (Err(reason), tally);
    }
    bars.timeframe_ms = timeframe::detect(&bars.ts_ms).unwrap_or(0);
    let mut report = SymbolReport {
        symbol: bars.symbol.clone(),
        rows: n_rows,
        bars: bars.len(),
        first_ms: bars.ts_ms[0],
        last_ms: bars.ts_ms[bars.len() - 1],
        timeframe_ms: bars.timeframe_ms,
        dropped: n_rows - n_kept,
        repaired: n_repaired,
        zero_volume: 0,
        gaps: 0,
        missing_bars: 0,
        longest_gap_ms: 0,
        longest_gap_after_ms: None,
        suspected_splits: 0,
        listing_jump: false,
        newest_dropped,
    };
    let place = |index: usize| rows.place(keep[index] as usize);
    count_kept(&bars, &mut report, &mut tally, place);
    for index in suspected_splits(&bars) {
        report.suspected_splits += 1;
        tally.add(IssueKind::SuspectedSplit, || place(index));
    }
    // Bars after a requested start are not a symbol's first.
    if keep.first().copied() == very_first
        && let Some(index) = listing_jump(&bars)
    {
        report.listing_jump = true;
        tally.add(IssueKind::ListingJump, || place(index));
    }
    (Ok((bars, report)), tally)
}

/// Rows of one symbol side by side, and where they came from.
struct Rows<'a> {
    /// Not yet clean: the columns as read.
    bars: Bars,
    /// First gathered row of each run.
    starts: Vec<usize>,
    runs: &'a [RowRange],
    sources: &'a [Source],
}

impl<'a> Rows<'a> {
    fn gather(gathered: &'a SymbolRows, sources: &'a [Source]) -> Self {
        let n_rows: usize = gathered.runs.iter().map(|run| run.rows.len()).sum();
        let mut bars = Bars { symbol: gathered.symbol.clone(), ..Bars::default() };
        for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close, &mut bars.volume] {
            column.reserve_exact(n_rows);
        }
        bars.ts_ms.reserve_exact(n_rows);
        let mut starts = Vec::with_capacity(gathered.runs.len());
        for run in &gathered.runs {
            let table = &sources[run.file_idx].table;
            starts.push(bars.ts_ms.len());
            bars.ts_ms.extend_from_slice(&table.ts_ms[run.rows.clone()]);
            bars.open.extend_from_slice(&table.open[run.rows.clone()]);
            bars.high.extend_from_slice(&table.high[run.rows.clone()]);
            bars.low.extend_from_slice(&table.low[run.rows.clone()]);
            bars.close.extend_from_slice(&table.close[run.rows.clone()]);
            bars.closes_only |= table.closes_only;
            match &table.volume {
                Some(volume) => bars.volume.extend_from_slice(&volume[run.rows.clone()]),
                None => bars.volume.resize(bars.ts_ms.len(), 0.0),
            }
            for (name, values) in &table.extra {
                let position = bars.extra.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    bars.extra.push((name.clone(), Vec::with_capacity(n_rows)));
                    bars.extra.len() - 1
                });
                let column = &mut bars.extra[position].1;
                column.resize(bars.ts_ms.len() - run.rows.len(), f64::NAN);
                column.extend_from_slice(&values[run.rows.clone()]);
            }
        }
        for (_, column) in &mut bars.extra {
            column.resize(n_rows, f64::NAN);
        }
        Self { bars, starts, runs: &gathered.runs, sources }
    }

    fn place(&self, row: usize) -> Place {
        let index = self.starts.partition_point(|&start| start <= row) - 1;
        let (run, source) = (&self.runs[index], &self.sources[self.runs[index].file_idx]);
        let ts_ms = self.bars.ts_ms[row];
        Place {
            symbol: self.bars.symbol.clone(),
            file: source.file.clone(),
            row: source.table.line(run.rows.start + row - self.starts[index]),
            ts_ms: (ts_ms != NO_TIME).then_some(ts_ms),
        }
    }

    /// The rows that have a time, in order of time.
    fn order(&self, tally: &mut Tally) -> Vec<u32> {
        let ts_ms = &self.bars.ts_ms;
        let mut order: Vec<u32> = Vec::with_capacity(ts_ms.len());
        let mut previous = NO_TIME;
        let mut sorted = true;
        for (row, &time) in ts_ms.iter().enumerate() {
            if time == NO_TIME {
                tally.add(IssueKind::NoTime, || self.place(row));
                continue;
            }
            if time < previous {
                tally.add(IssueKind::Unsorted, || self.place(row));
                sorted = false;
            }
            previous = time;
            order.push(row as u32);
        }
        if !sorted {
            order.sort_by_key(|&row| ts_ms[row as usize]);
        }
        order
    }

    /// Leaves the last row of each time.
    fn without_duplicates(&self, mut order: Vec<u32>, tally: &mut Tally) -> Vec<u32> {
        let ts_ms = &self.bars.ts_ms;
        let same = |a: &u32, b: &u32| ts_ms[*a as usize] == ts_ms[*b as usize];
        if order.windows(2).all(|pair| !same(&pair[0], &pair[1])) {
            return order;
        }
        let mut write = 0;
        let mut read = 0;
        while read < order.len() {
            let len = order[read..].iter().take_while(|row| same(row, &order[read])).count();
            let (dropped, last) = (&order[read..read + len - 1], order[read + len - 1]);
            for &row in dropped {
                tally.add(IssueKind::Duplicate, || self.place(row as usize));
            }
            if dropped.iter().any(|&row| self.disagree(row as usize, last as usize)) {
                tally.add(IssueKind::Conflict, || self.place(last as usize));
            }
            order[write] = last;
            write += 1;
            read += len;
        }
        order.truncate(write);
        order
    }

    fn disagree(&self, a: usize, b: usize) -> bool {
        let bars = &self.bars;
        [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume]
            .iter()
            .any(|column| differ(column[a], column[b]))
    }

    /// Leaves the rows with good prices and volume; also counts those whose range needs repair.
    fn valid(&self, mut order: Vec<u32>, tally: &mut Tally) -> (Vec<u32>, usize) {
        let bars = &self.bars;
        let mut n_repaired = 0;
        order.retain(|&row| {
            let row = row as usize;
            if let Some(kind) = self.fault(row) {
                tally.add(kind, || self.place(row));
                return false;
            }
            let (open, high, low, close) = (bars.open[row], bars.high[row], bars.low[row], bars.close[row]);
            if high < open || high < close || high < low || low > open || low > close {
                n_repaired += 1;
                tally.add(IssueKind::BadRange, || self.place(row));
            }
            true
        });
        (order, n_repaired)
    }

    /// What makes a row unusable, if anything.
    fn fault(&self, row: usize) -> Option<IssueKind> {
        let bars = &self.bars;
        let prices = [bars.open[row], bars.high[row], bars.low[row], bars.close[row]];
        let volume = bars.volume[row];
        if !prices.iter().all(|price| price.is_finite()) {
            Some(IssueKind::NotANumber)
        } else if !prices.iter().all(|&price| price > 0.0) {
            Some(IssueKind::NotPositive)
        } else if !(volume.is_finite() && volume >= 0.0) {
            Some(IssueKind::BadVolume)
        } else {
            None
        }
    }

    /// Leaves the rows whose time lies in the span.
    fn within(&self, mut keep: Vec<u32>, span: Range<i64>) -> Vec<u32> {
        let before = |limit: i64| keep.partition_point(|&row| self.bars.ts_ms[row as usize] < limit);
        let (first, last) = (before(span.start), before(span.end));
        keep.truncate(last.max(first));
        keep.drain(..first);
        keep
    }

    /// The kept rows as clean bars. Of what was gathered only the times stay: a second copy of all columns would double the
    /// memory of a load.
    fn take(&mut self, keep: &[u32], tally: &mut Tally) -> Bars {
        let is_all =
            keep.len() == self.bars.len() && keep.iter().enumerate().all(|(at, &row)| at == row as usize);
        let pick = |column: &mut Vec<f64>| match is_all {
            true => std::mem::take(column),
            false => {
                let column = std::mem::take(column);
                keep.iter().map(|&row| column[row as usize]).collect::<Vec<f64>>()
            }
        };
        let (open, close) = (pick(&mut self.bars.open), pick(&mut self.bars.close));
        let (mut high, mut low) = (pick(&mut self.bars.high), pick(&mut self.bars.low));
        for index in 0..keep.len() {
            let prices = [open[index], high[index], low[index], close[index]];
            high[index] =
                prices.into_iter().fold(prices[0], |top, price| if price > top { price } else { top });
            low[index] = prices
                .into_iter()
                .fold(prices[0], |bottom, price| if price < bottom { price } else { bottom });
        }
        let mut extra = Vec::with_capacity(self.bars.extra.len());
        for (name, mut column) in std::mem::take(&mut self.bars.extra) {
            let mut values = pick(&mut column);
            for (index, value) in values.iter_mut().enumerate() {
                if !value.is_finite() {
                    *value = f64::NAN;
                    tally.add(IssueKind::NotAvailable, || self.place(keep[index] as usize));
                }
            }
            extra.push((name, values));
        }
        // −0 is zero volume like any other.
        let mut volume = pick(&mut self.bars.volume);
        volume.iter_mut().for_each(|value| *value += 0.0);
        let ts_ms = keep.iter().map(|&row| self.bars.ts_ms[row as usize]).collect();
        Bars {
            symbol: self.bars.symbol.clone(),
            timeframe_ms: 0,
            ts_ms,
            open,
            high,
            low,
            close,
            volume,
            closes_only: self.bars.closes_only,
            extra,
        }
    }
}

/// Whether two cells disagree; two missing ones do not.
pub(crate) fn differ(a: f64, b: f64) -> bool {
    a != b && !(a.is_nan() && b.is_nan())
}

/// Counts what is remarkable about clean bars: zero volume and gaps.
pub(crate) fn count_kept(
    bars: &Bars,
    report: &mut SymbolReport,
    tally: &mut Tally,
    place: impl Fn(usize) -> Place,
) {
    for (index, &volume) in bars.volume.iter().enumerate() {
        if volume == 0.0 {
            report.zero_volume += 1;
            tally.add(IssueKind::ZeroVolume, || place(index));
        }
    }
    let calendar = Calendar::of(bars);
    for index in 1..bars.len() {
        let missing = calendar.missing(bars.ts_ms[index - 1], bars.ts_ms[index]);
        if missing == 0 {
            continue;
        }
        let length = bars.ts_ms[index] - bars.ts_ms[index - 1];
        report.gaps += 1;
        report.missing_bars += missing;
        if length > report.longest_gap_ms {
            report.longest_gap_ms = length;
            report.longest_gap_after_ms = Some(bars.ts_ms[index - 1]);
        }
        tally.add(IssueKind::Gap, || place(index));
    }
}

/// Which bars a market could have had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calendar {
    timeframe_ms: i64,
    /// Daily bars of a market that closes on weekends.
    weekdays_only: bool,
}

impl Calendar {
    pub(crate) fn of(bars: &Bars) -> Self {
        let daily = bars.timeframe_ms == DAY_MS;
        let weekdays_only = daily && bars.ts_ms.iter().all(|&ts_ms| weekday(ts_ms) < 5);
        Self { timeframe_ms: bars.timeframe_ms, weekdays_only }
    }

    /// Bars that are missing between two neighbouring ones.
    pub(crate) fn missing(&self, before_ms: i64, after_ms: i64) -> u64 {
        let step = after_ms - before_ms;
        if self.timeframe_ms <= 0 || step <= self.timeframe_ms {
            return 0;
        }
        if !self.weekdays_only {
            return ((step - 1) / self.timeframe_ms) as u64;
        }
        self.expected(before_ms + DAY_MS, after_ms)
    }

    /// Bars expected with an open time in `from_ms..to_ms`, which starts on a bar.
    pub(crate) fn expected(&self, from_ms: i64, to_ms: i64) -> u64 {
        if to_ms <= from_ms || self.timeframe_ms <= 0 {
            return 0;
        }
        let slots = (to_ms - from_ms + self.timeframe_ms - 1) / self.timeframe_ms;
        if !self.weekdays_only {
            return slots as u64;
        }
        let (weeks, rest) = (slots / 7, slots % 7);
        let start = weekday(from_ms);
        (weeks * 5 + (0..rest).filter(|day| (start + day) % 7 < 5).count() as i64) as u64
    }
}
