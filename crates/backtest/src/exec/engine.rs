//! Evaluates batches of trials over all segments.
//!
//! Symbol by symbol: the columns and masks that the batch needs are computed once per distinct tuple, then the trials walk side by side.
//! Nothing depends on the number of threads or on how trials are cut into chunks.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tidemill_market::Universe;
use tidemill_search::Points;

use super::cache::{Cache, Key};
use super::column::{self, Input, Item};
use super::frame::{Frame, Scratch};
use super::mask::Signal;
use super::symbol::{Symbol, calendar};
use super::walk::{Observer, SideRun, Silent, Walker};
use crate::compile::{Program, compile};
use crate::graph::Node;
use crate::plan::{Condition, ExitValue, KeyParts, LabelPiece, Maskable, Plan, Slot};
use crate::point;
use crate::segment::{Role, Segment};
use crate::strategy::{Sizing, Strategy, StrategyError};
use crate::tally::{Book, Tally};
use crate::trade::{Reason, Trade};

/// A mask is shared when at least this many trials use it on average.
const TRIALS_PER_MASK: usize = 4;
/// Memory for the daily returns of a chunk of trials.
const DAILY_BYTES: usize = 128 << 20;

/// Settings that change no result.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Memory for columns and masks.
    pub cache_bytes: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: 512 << 20 }
    }
}

/// Results of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One per segment, in their order.
    pub segments: Vec<Tally>,
    /// All counting segments together.
    pub train: Tally,
    /// All other segments together, if there are any.
    pub test: Option<Tally>,
}

/// A strategy over data, ready to evaluate trials.
pub struct Engine<'a> {
    strategy: &'a Strategy,
    program: Program,
    plan: Plan,
    symbols: Vec<Symbol<'a>>,
    segments: Vec<Segment>,
    /// Numbers of the calendar's days, for books that are kept by the day.
    day_numbers: Vec<u32>,
    n_symbols: [usize; 2],
    year_days: f64,
    cache: Cache,
}

/// Columns and masks of a chunk of trials over one symbol.
struct Prepared {
    /// Items by slot, then by distinct tuple.
    slots: Vec<Vec<Arc<Item>>>,
    /// For each slot, the item of each trial.
    slot_of: Vec<Vec<u32>>,
    /// For each condition of the plan, how its truth is found.
    conditions: Vec<PreparedCondition>,
}

/// How the truth of one condition is found for a chunk of trials.
#[derive(Default)]
struct PreparedCondition {
    /// Shared masks, each with the item of each trial.
    masks: Vec<(Vec<Arc<Item>>, Vec<u32>)>,
    /// Factors that are computed for each trial.
    residual: Vec<usize>,
}

impl<'a> Engine<'a> {
    /// Compiles a strategy for the data.
    pub fn new(
        strategy: &'a Strategy,
        universe: &'a Universe,
        segments: Vec<Segment>,
        options: EngineOptions,
    ) -> Result<Self, StrategyError> {
        let extra = shared_columns(universe);
        let program = compile(strategy, &extra)?;
        let plan = Plan::new(&program);
        let days = calendar(universe.symbols.iter());
        let weekend = days.iter().any(|day| (day + 3).rem_euclid(7) >= 5);
        let count = |role: Role| {
            let mut symbols: Vec<usize> =
                segments.iter().filter(|s| s.role == role).map(|s| s.symbol).collect();
            symbols.sort_unstable();
            symbols.dedup();
            symbols.len()
        };
        Ok(Self {
            strategy,
            program,
            plan,
            symbols: universe.symbols.iter().map(|bars| Symbol::new(bars, &extra, &days)).collect(),
            day_numbers: (0..days.len() as u32).collect(),
            n_symbols: [count(Role::Train), count(Role::Test)],
            segments,
            year_days: if weekend { 365.0 } else { 252.0 },
            cache: Cache::new(options.cache_bytes),
        })
    }

    /// Daily returns in a year: 365 where there are bars on weekends, else 252.
    pub fn year_days(&self) -> f64 {
        self.year_days
    }

    /// The segments, in the order of the results.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The space that a search of this strategy varies.
    pub fn space(&self) -> tidemill_search::Space {
        crate::space::space(self.strategy, &self.program)
    }

    /// Values that expressions see for an encoded point: inactive parameters are their defaults, choices of numbers are the numbers.
    pub fn decode(&self, row: &[f64]) -> Vec<f64> {
        self.strategy
            .params
            .iter()
            .zip(row)
            .map(|(param, encoded)| param.decode(if encoded.is_nan() { param.default } else { *encoded }))
            .collect()
    }

    /// Evaluates a batch; results in the order of the points.
    pub fn evaluate(&mut self, points: &Points) -> Vec<Outcome> {
        let mut row = vec![0.0; points.n_params()];
        let values: Vec<Vec<f64>> = (0..points.len())
            .map(|at| {
                points.read_row(at, &mut row);
                self.decode(&row)
            })
            .collect();
        let by_daily = DAILY_BYTES / (self.day_numbers.len().max(1) * 16);
        let mut out = Vec::with_capacity(values.len());
        for chunk in values.chunks(by_daily.max(1)) {
            out.extend(self.evaluate_chunk(chunk));
        }
        out
    }

    fn evaluate_chunk(&mut self, values: &[Vec<f64>]) -> Vec<Outcome> {
        let pooled = |role: Role| self.segments.iter().filter(|segment| segment.role == role).count() > 1;
        let pooled = [pooled(Role::Train), pooled(Role::Test)];
        let mut rows: Vec<Row> = values
            .iter()
            .map(|_| Row {
                segments: vec![Tally::default(); self.segments.len()],
                daily: pooled.map(|needed| vec![0.0; if needed { self.day_numbers.len() } else { 0 }]),
            })
            .collect();
        for symbol in 0..self.symbols.len() {
            if self.segments.iter().any(|segment| segment.symbol == symbol) {
                let scalars: Vec<Vec<f64>> = values
                    .iter()
                    .map(|params| self.scalars(params, self.symbols[symbol].bars.timeframe_ms))
                    .collect();
                self.walk_symbol(symbol, &scalars, &mut rows);
            }
        }
        rows.into_par_iter().map(|row| self.finish(row)).collect()
    }

    /// Values of all scalars of the plan.
    fn scalars(&self, params: &[f64], timeframe_ms: i64) -> Vec<f64> {
        let graph = &self.plan.graph;
        let mut by_node = vec![f64::NAN; graph.nodes.len()];
        let mut out = Vec::with_capacity(self.plan.scalars.len());
        for id in &self.plan.scalars {
            let value = |id: &u32| by_node[*id as usize];
            let result = match graph.node(*id) {
                Node::Const(bits) => f64::from_bits(*bits),
                Node::Param(param) => params[*param as usize],
                Node::Bars(duration_ms) => point::duration_in_bars(*duration_ms, timeframe_ms),
                Node::Unary(op, a) => point::unary(*op, value(a)),
                Node::Binary(op, a, b) => point::binary(*op, value(a), value(b)),
                Node::Select(c, a, b) => point::select(value(c), value(a), value(b)),
                Node::Source(_) | Node::Position(_) | Node::Shift(..) | Node::Call(..) => f64::NAN,
            };
            by_node[*id as usize] = result;
            out.push(result);
        }
        out
    }

    /// Walks a chunk of trials through one symbol; cuts the chunk where its columns would not fit the memory.
    fn walk_symbol(&mut self, symbol: usize, scalars: &[Vec<f64>], rows: &mut [Row]) {
        let n_bars = self.symbols[symbol].bars.len();
        if scalars.len() > 1 && self.bytes_needed(scalars, n_bars) > self.cache.budget() {
            let (left, right) = scalars.split_at(scalars.len() / 2);
            let (left_rows, right_rows) = rows.split_at_mut(left.len());
            self.walk_symbol(symbol, left, left_rows);
            self.walk_symbol(symbol, right, right_rows);
            return;
        }
        let prepared = self.prepare(symbol, scalars);
        let this = &*self;
        let wanted: Vec<usize> =
            (0..this.segments.len()).filter(|at| this.segments[*at].symbol == symbol).collect();
        // Trials that share a mask go one after the other: they enter on the same bars, which then lie in the cache.
        let mut order: Vec<(usize, &mut Row)> = rows.iter_mut().enumerate().collect();
        let masks: Vec<&Vec<u32>> = prepared
            .conditions
            .iter()
            .flat_map(|condition| condition.masks.iter().map(|(_, of)| of))
            .collect();
        order.sort_by(|(a, _), (b, _)| {
            let differs = masks.iter().map(|of| of[*a].cmp(&of[*b])).find(|order| order.is_ne());
            differs.unwrap_or(a.cmp(b))
        });
        order.into_par_iter().for_each_init(Scratch::default, |scratch, (trial, row)| {
            this.with_walker(symbol, trial, &scalars[trial], &prepared, scratch, |walker| {
                for at in &wanted {
                    let segment = &this.segments[*at];
                    let daily = &mut row.daily[segment.role as usize];
                    row.segments[*at] = if daily.is_empty() {
                        walker.walk(segment.range.clone(), &mut Silent)
                    } else {
                        let mut pool = Pool { daily, calendar: &this.symbols[symbol].calendar };
                        walker.walk(segment.range.clone(), &mut pool)
                    };
                }
            });
        });
    }

    fn with_walker<T>(
        &self,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        scratch: &mut Scratch,
        run: impl FnOnce(&mut Walker<'_>) -> T,
    ) -> T {
        let data = &self.symbols[symbol];
        let n_bars = data.bars.len();
        let columns: Vec<&[f64]> = (0..self.plan.slots.len())
            .map(|slot| match &self.plan.slots[slot] {
                Slot::Source(source) => data.source(*source),
                _ => match &*prepared.slots[slot][prepared.slot_of[slot][trial] as usize] {
                    Item::Column(column) => column.as_slice(),
                    _ => &[],
                },
            })
            .collect();
        let frame = Frame { columns: &columns, scalars, n_bars };
        let mut signals =
            self.conditions().into_iter().zip(&prepared.conditions).map(|(condition, prepared)| {
                let masks = prepared
                    .masks
                    .iter()
                    .filter_map(|(items, of)| match &*items[of[trial] as usize] {
                        Item::Mask(mask) => Some(mask),
                        _ => None,
                    })
                    .collect();
                Signal::new(condition, masks, &prepared.residual, &frame)
            });
        let bind = |side: usize| {
            let plan = self.plan.sides[side].as_ref()?;
            let enter = signals.next()?;
            let exits = plan.exits.iter().filter(|exit| matches!(exit.value, ExitValue::Signal(_))).count();
            Some(SideRun::new(plan, side == 0, &frame, enter, signals.by_ref().take(exits).collect()))
        };
        let sides: Vec<SideRun<'_>> = (0..2).filter_map(bind).collect();
        run(&mut Walker::new(data, frame, &self.strategy.execution, sides, scratch))
    }

    /// All conditions of the plan in a fixed order: for each side its entry, then its signal exits.
    fn conditions(&self) -> Vec<&Condition> {
        let mut out = Vec::new();
        for side in self.plan.sides.iter().flatten() {
            out.push(&side.enter);
            for exit in &side.exits {
                if let ExitValue::Signal(condition) = &exit.value {
                    out.push(condition);
                }
            }
        }
        out
    }

    /// Memory for all columns of a chunk, prefix sums counted as six columns.
    fn bytes_needed(&self, scalars: &[Vec<f64>], n_bars: usize) -> usize {
        let mut bytes = 0;
        for slot in &self.plan.slots {
            let (parts, columns) = match slot {
                Slot::Source(_) => continue,
                Slot::Call { key, func, .. } => (key, if func.is_prefix() { 6 } else { 1 }),
                Slot::Formula { key, .. } | Slot::Mask { key, .. } => (key, 1),
            };
            let distinct = Distinct::new(parts, scalars).firsts.len();
            bytes += distinct * columns * n_bars * 8;
        }
        bytes
    }

    /// Computes the columns and masks that a chunk of trials needs over one symbol.
    fn prepare(&mut self, symbol: usize, scalars: &[Vec<f64>]) -> Prepared {
        let mut prepared = Prepared { slots: Vec::new(), slot_of: Vec::new(), conditions: Vec::new() };
        for slot in 0..self.plan.slots.len() {
            let (items, of) = match &self.plan.slots[slot] {
                Slot::Source(_) => (Vec::new(), Vec::new()),
                Slot::Call { key, .. } | Slot::Formula { key, .. } => {
                    let key = key.clone();
                    self.items(symbol, &key, false, scalars, &prepared, |this, first, prepared, scratch| {
                        this.compute(slot, symbol, first, &scalars[first], prepared, scratch)
                    })
                }
                Slot::Mask { key, .. } => {
                    let key = key.clone();
                    self.items(symbol, &key, true, scalars, &prepared, |this, first, prepared, scratch| {
                        this.compute(slot, symbol, first, &scalars[first], prepared, scratch)
                    })
                }
            };
            prepared.slots.push(items);
            prepared.slot_of.push(of);
        }
        let conditions: Vec<Condition> = self.conditions().into_iter().cloned().collect();
        for condition in &conditions {
            let mut out = PreparedCondition::default();
            if let Some(mask) = self.shared_mask(&condition.whole, symbol, scalars, &prepared) {
                out.masks.push(mask);
            } else {
                for (at, factor) in condition.factors.iter().enumerate() {
                    match self.shared_mask(factor, symbol, scalars, &prepared) {
                        Some(mask) => out.masks.push(mask),
                        None => out.residual.push(at),
                    }
                }
            }
            prepared.conditions.push(out);
        }
        prepared
    }

    /// The masks of a condition, if enough trials share each.
    fn shared_mask(
        &mut self,
        maskable: &Maskable,
        symbol: usize,
        scalars: &[Vec<f64>],
        prepared: &Prepared,
    ) -> Option<(Vec<Arc<Item>>, Vec<u32>)> {
        let distinct = Distinct::new(&maskable.key, scalars).firsts.len();
        if distinct * TRIALS_PER_MASK > scalars.len() {
            return None;
        }
        Some(self.items(symbol, &maskable.key, true, scalars, prepared, |this, first, prepared, scratch| {
            this.with_columns(symbol, first, &scalars[first], prepared, |frame| {
                column::mask(&maskable.tape, frame, scratch)
            })
        }))
    }

    /// Items for every distinct tuple, from the cache or computed side by side, and which of them each trial uses.
    fn items(
        &mut self,
        symbol: usize,
        parts: &KeyParts,
        mask: bool,
        scalars: &[Vec<f64>],
        prepared: &Prepared,
        compute: impl Fn(&Self, usize, &Prepared, &mut Scratch) -> Item + Sync,
    ) -> (Vec<Arc<Item>>, Vec<u32>) {
        let Distinct { firsts, of } = Distinct::new(parts, scalars);
        let keys: Vec<Key> = firsts
            .iter()
            .map(|first| Key {
                symbol: symbol as u32,
                shape: parts.shape,
                mask,
                scalars: parts.scalars.iter().map(|scalar| scalars[*first][*scalar].to_bits()).collect(),
            })
            .collect();
        let mut items: Vec<Option<Arc<Item>>> = keys.iter().map(|key| self.cache.get(key)).collect();
        let missing: Vec<usize> = (0..items.len()).filter(|at| items[*at].is_none()).collect();
        let this = &*self;
        let made: Vec<Arc<Item>> = missing
            .par_iter()
            .map_init(Scratch::default, |scratch, at| Arc::new(compute(this, firsts[*at], prepared, scratch)))
            .collect();
        for (at, item) in missing.into_iter().zip(made) {
            self.cache.insert(keys[at].clone(), item.clone());
            items[at] = Some(item);
        }
        (items.into_iter().flatten().collect(), of)
    }

    /// Computes one slot for one trial's scalars.
    fn compute(
        &self,
        slot: usize,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        scratch: &mut Scratch,
    ) -> Item {
        let data = &self.symbols[symbol];
        match &self.plan.slots[slot] {
            Slot::Call { func, inputs, arguments, .. } => {
                let inputs: Vec<Input<'_>> = inputs
                    .iter()
                    .map(|input| match &self.plan.slots[*input] {
                        Slot::Source(source) => Input::Column(data.source(*source)),
                        _ => match &*prepared.slots[*input][prepared.slot_of[*input][trial] as usize] {
                            Item::Column(column) => Input::Column(column),
                            Item::Prefix(prefix) => Input::Prefix(prefix),
                            Item::Mask(mask) => Input::Mask(mask),
                        },
                    })
                    .collect();
                let arguments: Vec<f64> = arguments.iter().map(|scalar| scalars[*scalar]).collect();
                column::call(*func, &inputs, &arguments, data.bars.len())
            }
            Slot::Formula { tape, .. } => self.with_columns(symbol, trial, scalars, prepared, |frame| {
                column::formula(tape, frame, scratch)
            }),
            Slot::Mask { tape, .. } => self
                .with_columns(symbol, trial, scalars, prepared, |frame| column::mask(tape, frame, scratch)),
            Slot::Source(_) => Item::Column(Vec::new()),
        }
    }

    /// Runs over the columns prepared so far.
    fn with_columns<T>(
        &self,
        symbol: usize,
        trial: usize,
        scalars: &[f64],
        prepared: &Prepared,
        run: impl FnOnce(&Frame<'_>) -> T,
    ) -> T {
        let data = &self.symbols[symbol];
        let columns: Vec<&[f64]> = self
            .plan
            .slots
            .iter()
            .enumerate()
            .map(|(slot, kind)| match kind {
                Slot::Source(source) => data.source(*source),
                _ => match prepared
                    .slots
                    .get(slot)
                    .map(|items| &*items[prepared.slot_of[slot][trial] as usize])
                {
                    Some(Item::Column(column)) => column.as_slice(),
                    _ => &[],
                },
            })
            .collect();
        run(&Frame { columns: &columns, scalars, n_bars: data.bars.len() })
    }

    fn finish(&self, row: Row) -> Outcome {
        let pool = |role: Role| {
            let tallies: Vec<&Tally> = self
                .segments
                .iter()
                .zip(&row.segments)
                .filter(|(s, _)| s.role == role)
                .map(|(_, t)| t)
                .collect();
            match tallies[..] {
                [] => None,
                [tally] => Some(*tally),
                _ => Some(self.pool(&tallies, &row.daily[role as usize], role)),
            }
        };
        let (train, test) = (pool(Role::Train), pool(Role::Test));
        Outcome { segments: row.segments, train: train.unwrap_or_default(), test }
    }

    /// Several segments as one: counts and sums add up; equity is that of equal parts in every symbol, marked daily.
    fn pool(&self, tallies: &[&Tally], daily: &[f64], role: Role) -> Tally {
        let mut pooled = Tally { equity: 1.0, ..Tally::default() };
        for tally in tallies {
            pooled.trades += tally.trades;
            pooled.wins += tally.wins;
            pooled.longs += tally.longs;
            pooled.open_at_end += tally.open_at_end;
            pooled.bars_held += tally.bars_held;
            pooled.bars += tally.bars;
            pooled.sum_pnl += tally.sum_pnl;
            pooled.sum_win += tally.sum_win;
            pooled.sum_loss += tally.sum_loss;
            pooled.sum_ret += tally.sum_ret;
            pooled.sum_r += tally.sum_r;
            pooled.sum_r2 += tally.sum_r2;
            pooled.drawdown_pnl = point::minimum(pooled.drawdown_pnl, tally.drawdown_pnl);
            pooled.drawdown_pnl_ref = point::minimum(pooled.drawdown_pnl_ref, tally.drawdown_pnl_ref);
        }
        // The pool's days run from the first to the last on which any of its segments has a bar.
        let (mut first, mut last) = (usize::MAX, 0);
        for segment in self.segments.iter().filter(|segment| segment.role == role) {
            let symbol = &self.symbols[segment.symbol];
            let day = |bar: usize| symbol.calendar[symbol.day[bar] as usize] as usize;
            first = first.min(day(segment.range.start));
            last = last.max(day(segment.range.end - 1));
        }
        let additive = self.strategy.execution.sizing == Sizing::Unit;
        let mut book = Book::new(&self.day_numbers, first as u32, last as u32, 1, additive);
        let n_symbols = self.n_symbols[role as usize] as f64;
        for (day, change) in daily.iter().enumerate().take(last + 1).skip(first) {
            if *change != 0.0 {
                book.flat_until(day, &mut |_, _| {});
                book.move_to(book.value(book.equity(), *change, change / n_symbols, 1.0));
            }
        }
        let marks = book.finish(&mut |_, _| {});
        Tally {
            equity: marks.equity,
            drawdown: marks.drawdown,
            days: marks.days,
            sum_daily: marks.sum_daily,
            sum_daily2: marks.sum_daily2,
            sum_down2: marks.sum_down2,
            longest_drawdown: marks.longest_drawdown,
            ..pooled
        }
    }

    /// The trades of one trial, segment by segment, with the equity at the end of each day that changed it.
    pub fn detail(&mut self, row: &[f64]) -> Vec<Detail> {
        let params = self.decode(row);
        let mut out: Vec<Option<Detail>> = self.segments.iter().map(|_| None).collect();
        for symbol in 0..self.symbols.len() {
            let wanted: Vec<usize> =
                (0..self.segments.len()).filter(|at| self.segments[*at].symbol == symbol).collect();
            if wanted.is_empty() {
                continue;
            }
            let scalars = vec![self.scalars(&params, self.symbols[symbol].bars.timeframe_ms)];
            let prepared = self.prepare(symbol, &scalars);
            let this = &*self;
            let mut scratch = Scratch::default();
            this.with_walker(symbol, 0, &scalars[0], &prepared, &mut scratch, |walker| {
                for at in wanted {
                    let mut record = Record::default();
                    let tally = walker.walk(this.segments[at].range.clone(), &mut record);
                    let labels = record.trades.iter().map(|trade| this.label(trade, &scalars[0])).collect();
                    out[at] = Some(Detail { tally, trades: record.trades, labels, daily: record.daily });
                }
            });
        }
        out.into_iter().flatten().collect()
    }

    /// The bars of a segment on which a side's entry condition is true.
    pub fn entry_signals(&mut self, row: &[f64], symbol: usize, side: usize) -> Vec<usize> {
        let params = self.decode(row);
        let scalars = vec![self.scalars(&params, self.symbols[symbol].bars.timeframe_ms)];
        let prepared = self.prepare(symbol, &scalars);
        let Some(plan) = &self.plan.sides[side] else { return Vec::new() };
        self.with_columns(symbol, 0, &scalars[0], &prepared, |frame| {
            let Item::Mask(mask) = column::mask(&plan.enter.whole.tape, frame, &mut Scratch::default())
            else {
                return Vec::new();
            };
            mask.bars().iter().map(|bar| *bar as usize).collect()
        })
    }

    /// Windows of a trial that no symbol can fill, or that are below 1, so that what they belong to is never available.
    pub fn impossible_windows(&self, row: &[f64]) -> Vec<f64> {
        let params = self.decode(row);
        let mut out = Vec::new();
        let longest = self.symbols.iter().map(|symbol| symbol.bars.len()).max().unwrap_or(0) as f64;
        let Some(symbol) = self.symbols.first() else { return out };
        let scalars = self.scalars(&params, symbol.bars.timeframe_ms);
        for slot in &self.plan.slots {
            if let Slot::Call { func, arguments, .. } = slot
                && let Some(scalar) = arguments.first()
            {
                let window = scalars[*scalar];
                let too_long = func.is_windowed() && window > longest;
                if window.is_nan() || window < 1.0 || too_long {
                    out.push(window);
                }
            }
        }
        out.sort_by(f64::total_cmp);
        out.dedup();
        out
    }

    fn label(&self, trade: &Trade, scalars: &[f64]) -> String {
        let Reason::Exit(exit, gap) = trade.reason else { return "END".into() };
        let Some(side) = &self.plan.sides[usize::from(trade.side < 0)] else { return String::new() };
        let pieces = if gap { &side.exits[exit].gap_label } else { &side.exits[exit].label };
        pieces
            .iter()
            .map(|piece| match piece {
                LabelPiece::Text(text) => text.clone(),
                LabelPiece::Value(scalar, decimals) => format!("{:.*}", decimals, scalars[*scalar]),
            })
            .collect()
    }
}

/// One trial over one segment, in full.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The sums.
    pub tally: Tally,
    /// The trades, in order.
    pub trades: Vec<Trade>,
    /// The reason of each, as shown.
    pub labels: Vec<String>,
    /// Days of the symbol with their returns; days without return are left out.
    pub daily: Vec<(u32, f64)>,
}

/// Results of one trial while its symbols are walked.
struct Row {
    segments: Vec<Tally>,
    /// Summed daily returns over the calendar, for training and test; empty where there is nothing to pool.
    daily: [Vec<f64>; 2],
}

/// Adds daily returns into the calendar of the universe.
struct Pool<'a> {
    daily: &'a mut [f64],
    calendar: &'a [u32],
}

impl Observer for Pool<'_> {
    fn daily(&mut self, day: u32, change: f64) {
        self.daily[self.calendar[day as usize] as usize] += change;
    }
}

#[derive(Default)]
struct Record {
    trades: Vec<Trade>,
    daily: Vec<(u32, f64)>,
}

impl Observer for Record {
    fn trade(&mut self, trade: &Trade) {
        self.trades.push(*trade);
    }

    fn daily(&mut self, day: u32, change: f64) {
        self.daily.push((day, change));
    }
}

/// The distinct tuples of some scalars among trials.
struct Distinct {
    /// The first trial of each tuple.
    firsts: Vec<usize>,
    /// The tuple of each trial.
    of: Vec<u32>,
}

impl Distinct {
    fn new(parts: &KeyParts, scalars: &[Vec<f64>]) -> Self {
        let mut firsts = Vec::new();
        let mut seen: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        let of = scalars
            .iter()
            .enumerate()
            .map(|(trial, values)| {
                let tuple: Vec<u64> = parts.scalars.iter().map(|scalar| values[*scalar].to_bits()).collect();
                *seen.entry(tuple).or_insert_with(|| {
                    firsts.push(trial);
                    firsts.len() as u32 - 1
                })
            })
            .collect();
        Self { firsts, of }
    }
}

/// Further columns that every symbol has.
pub fn shared_columns(universe: &Universe) -> Vec<String> {
    let Some((first, rest)) = universe.symbols.split_first() else { return Vec::new() };
    first
        .extra
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| rest.iter().all(|bars| bars.extra.iter().any(|(n, _)| n == name)))
        .collect()
}
