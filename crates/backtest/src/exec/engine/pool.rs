//! Several segments as one: a portfolio of equal parts, marked by the day.

use super::block::{BlockPlan, Running};
use super::{Detail, Engine, Outcome, pool_year_days};
use crate::exec::book::{Book, Move};
use crate::exec::cost::Costs;
use crate::exec::walk::Observer;
use crate::point;
use crate::segment::{Role, Segment};
use crate::tally::Tally;

/// A note for users on figures of several symbols, shown wherever they are.
pub const POOL_NOTE: &str = "All symbols together are a pool: a sub-account of equal size for each, re-weighted daily at no cost; \
     a symbol that is not yet listed, or no longer, holds cash.";

/// What decides how segments are pooled.
#[derive(Clone, Copy)]
pub(super) struct PoolShape {
    /// The first and the last day, as places in the calendar.
    days: (u32, u32),
    n_symbols: usize,
}

/// Segments of one trial as one.
#[derive(Clone, Debug)]
pub struct SegmentPool {
    /// The sums.
    pub tally: Tally,
    /// Days since 1970 with the returns of the pool, from its first day to its last.
    pub daily: Vec<(i64, f64)>,
    /// Daily returns in a year: by the days of all its symbols.
    pub year_days: f64,
}

/// Results of one trial while its symbols are walked.
pub(super) struct Row {
    pub(super) segments: Vec<Tally>,
    /// Summed daily returns over the calendar, for training and test; empty where there is nothing to pool.
    pub(super) daily: [Vec<f64>; 2],
    /// Sums by block of what counts; empty if none are kept.
    pub(super) blocks: Vec<[f64; 2]>,
}

impl Row {
    /// Hears the daily returns of a symbol with this calendar.
    pub(super) fn pool<'a>(&'a mut self, role: Role, calendar: &'a [u32], plan: &'a BlockPlan) -> Pool<'a> {
        let daily = &mut self.daily[role as usize];
        // What is pooled goes into its blocks from the pool.
        let is_whole = role == Role::Train && daily.is_empty();
        let blocks = if is_whole { &mut self.blocks[..] } else { &mut [] };
        Pool { daily, calendar, blocks, plan, running: Running::default() }
    }
}

impl Engine<'_> {
    /// Whether the daily returns of the segments that count are put together, and those of the others.
    pub(super) fn pools_days(&self) -> [bool; 2] {
        [Role::Train, Role::Test]
            .map(|role| self.measure.segments.iter().filter(|segment| segment.role == role).count() > 1)
    }

    /// A row without results, with or without room for daily returns.
    pub(super) fn row(&self, pools_days: [bool; 2]) -> Row {
        Row {
            segments: vec![Tally::default(); self.measure.segments.len()],
            daily: pools_days.map(|needed| vec![0.0; if needed { self.n_days } else { 0 }]),
            blocks: self.blocks.sums(),
        }
    }
}

/// Adds daily returns into the calendar of the universe if there is something to pool, else into their blocks if there are any.
pub(super) struct Pool<'a> {
    daily: &'a mut [f64],
    calendar: &'a [u32],
    blocks: &'a mut [[f64; 2]],
    plan: &'a BlockPlan,
    running: Running,
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        self.running.put(self.blocks);
    }
}

impl Observer for Pool<'_> {
    fn hears_days(&self) -> bool {
        !self.daily.is_empty() || !self.blocks.is_empty()
    }

    // Hears every day of every trial: the running sums are a copy, so that they stay in registers.
    fn record(&mut self, book: &mut Book, moves: &[Move]) {
        if !self.daily.is_empty() {
            book.record(moves, &mut |day, change| self.daily(day, change));
        } else if !self.blocks.is_empty() {
            let mut running = self.running;
            let (plan, calendar, blocks) = (self.plan, self.calendar, &mut *self.blocks);
            book.record(moves, &mut |day, change| running.add(plan, calendar, blocks, day, change));
            self.running = running;
        } else {
            book.record(moves, &mut |_, _| {});
        }
    }

    #[inline(always)]
    fn daily(&mut self, day: u32, change: f64) {
        if !self.daily.is_empty() {
            self.daily[self.calendar[day as usize] as usize] += change;
        } else if !self.blocks.is_empty() {
            self.running.add(self.plan, self.calendar, self.blocks, day, change);
        }
    }
}

impl Engine<'_> {
    pub(super) fn finish(&self, mut row: Row) -> Outcome {
        let mut blocks = std::mem::take(&mut row.blocks);
        let mut pool = |role: Role| {
            let tallies: Vec<&Tally> = self
                .measure
                .segments
                .iter()
                .zip(&row.segments)
                .filter(|(s, _)| s.role == role)
                .map(|(_, t)| t)
                .collect();
            match tallies[..] {
                [] => None,
                [tally] => Some(*tally),
                _ => {
                    let sums = if role == Role::Train { &mut blocks[..] } else { &mut [] };
                    let mut hear = |day, change| self.blocks.add(sums, day, change);
                    Some(self.pool(&tallies, &row.daily[role as usize], self.shape_of(role), &mut hear))
                }
            }
        };
        let (train, test) = (pool(Role::Train), pool(Role::Test));
        Outcome::new(row.segments.into_iter(), train, test, blocks)
    }

    /// The days of a pool: from the first to the last of the calendar on which any of its segments has a bar.
    pub(crate) fn days_of(&self, role: Role) -> (u32, u32) {
        self.days_among(self.measure.segments.iter().filter(|segment| segment.role == role))
    }

    fn days_among<'s>(&self, segments: impl Iterator<Item = &'s Segment>) -> (u32, u32) {
        let (mut first, mut last) = (u32::MAX, 0);
        for segment in segments {
            let symbol = &self.symbols[segment.symbol];
            let day = |bar: usize| symbol.calendar[symbol.day[bar] as usize];
            first = first.min(day(segment.range.start));
            last = last.max(day(segment.range.end.saturating_sub(1)));
        }
        (first, last)
    }

    fn shape_of(&self, role: Role) -> PoolShape {
        PoolShape { days: self.days_of(role), n_symbols: self.n_symbols[role as usize] }
    }

    /// What decides how these segments are pooled.
    pub(super) fn shape_among(&self, segments: &[&Segment]) -> PoolShape {
        let mut symbols: Vec<usize> = segments.iter().map(|segment| segment.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
        PoolShape { days: self.days_among(segments.iter().copied()), n_symbols: symbols.len() }
    }

    /// Several segments as one: counts and sums add up; equity is that of equal parts in every symbol, marked daily.
    fn pool(
        &self,
        tallies: &[&Tally],
        daily: &[f64],
        shape: PoolShape,
        hear: &mut impl FnMut(u32, f64),
    ) -> Tally {
        let mut pooled = Tally { equity: 1.0, ..Tally::default() };
        for tally in tallies {
            pooled.trades += tally.trades;
            pooled.wins += tally.wins;
            pooled.longs += tally.longs;
            pooled.open_at_end += tally.open_at_end;
            pooled.ambiguous += tally.ambiguous;
            pooled.skipped += tally.skipped;
            pooled.bars_held += tally.bars_held;
            pooled.bars += tally.bars;
            pooled.sum_pnl += tally.sum_pnl;
            pooled.sum_win += tally.sum_win;
            pooled.sum_loss += tally.sum_loss;
            pooled.sum_ret += tally.sum_ret;
            pooled.sum_ret_win += tally.sum_ret_win;
            pooled.sum_ret_loss += tally.sum_ret_loss;
            pooled.sum_r += tally.sum_r;
            pooled.sum_r2 += tally.sum_r2;
            pooled.drawdown_bar = point::minimum(pooled.drawdown_bar, tally.drawdown_bar);
            pooled.drawdown_pnl = point::minimum(pooled.drawdown_pnl, tally.drawdown_pnl);
            pooled.drawdown_pnl_ref = point::minimum(pooled.drawdown_pnl_ref, tally.drawdown_pnl_ref);
        }
        let marks = self.marks(daily, shape, hear);
        Tally {
            equity: marks.equity,
            drawdown: marks.drawdown,
            drawdown_daily: marks.drawdown_daily,
            days: marks.days,
            sum_daily: marks.sum_daily,
            sum_daily2: marks.sum_daily2,
            sum_down2: marks.sum_down2,
            longest_drawdown: marks.longest_drawdown,
            ..pooled
        }
    }

    /// Equity of equal parts in every symbol, marked daily, from the summed returns of its segments; reports the returns of the whole.
    pub(super) fn marks(&self, daily: &[f64], shape: PoolShape, hear: &mut impl FnMut(u32, f64)) -> Tally {
        let (first, last) = shape.days;
        let costs = Costs::new(&self.strategy.execution);
        let mut book = Book::new(costs, first, last, 1);
        let n_symbols = shape.n_symbols as f64;
        for (day, change) in daily.iter().enumerate().take(last as usize + 1).skip(first as usize) {
            if *change != 0.0 {
                let equity = costs.equity(book.equity(), *change, change / n_symbols, 1.0);
                book.move_to(day as u32, equity, hear);
            }
        }
        book.finish(hear)
    }

    /// The daily returns of a pool, from the details of its segments: one per day of the calendar from its first to its last, with their
    /// times in days since 1970.
    pub fn daily_returns(&self, details: &[Detail], role: Role) -> Vec<(i64, f64)> {
        let of_role: Vec<usize> =
            (0..self.measure.segments.len()).filter(|at| self.measure.segments[*at].role == role).collect();
        self.pool_of(details, &of_role).daily
    }

    /// Some of the segments as one, from the details of all; without details nothing was traded.
    pub fn pool_of(&self, details: &[Detail], which: &[usize]) -> SegmentPool {
        let segments: Vec<&Segment> = which.iter().map(|at| &self.measure.segments[*at]).collect();
        let shape = self.shape_among(&segments);
        let mut symbols: Vec<usize> = segments.iter().map(|segment| segment.symbol).collect();
        symbols.dedup();
        let year_days = pool_year_days(symbols.iter().map(|at| &*self.symbols[*at].bars));
        let (first, last) = shape.days;
        if first > last {
            return SegmentPool { tally: Tally::default(), daily: Vec::new(), year_days };
        }
        let mut daily = vec![0.0; self.n_days];
        for (at, segment) in which.iter().zip(&segments) {
            let calendar = &self.symbols[segment.symbol].calendar;
            let own = details.get(*at).map_or(&[][..], |detail| &detail.daily);
            own.iter().for_each(|(day, change)| daily[calendar[*day as usize] as usize] += change);
        }
        let tallies: Vec<&Tally> =
            which.iter().filter_map(|at| details.get(*at)).map(|detail| &detail.tally).collect();
        let tally = match tallies[..] {
            [] => Tally::default(),
            [tally] => *tally,
            _ => {
                let summed = std::mem::replace(&mut daily, vec![0.0; self.n_days]);
                self.pool(&tallies, &summed, shape, &mut |day, change| daily[day as usize] = change)
            }
        };
        let days = first..=last;
        let daily = days.map(|day| (self.days[day as usize], daily[day as usize])).collect();
        SegmentPool { tally, daily, year_days }
    }
}
