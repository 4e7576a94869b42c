//! Evaluates batches of trials over all segments.
//!
//! Symbol by symbol: the columns and masks that the batch needs are computed once per distinct tuple, then the trials walk side by side.
//! Nothing depends on the number of threads or on how trials are cut into chunks.

mod ahead;
mod benchmark;
pub(crate) mod block;
mod demand;
mod detail;
mod measure;
mod memory;
mod outlook;
mod over;
mod part;
mod pool;
mod prepare;
mod series;
mod signal;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use tidemill_market::{Bars, Universe};
use tidemill_search::Points;

use super::cache::Cache;
use super::column::Item;
use super::convoy::{Buffers, Convoy, LANES};
use super::distinct::Tuples;
use super::frame::{Frame, MOST_WORDS, Scratch, Tile};
use super::grid::Grids;
use super::lazy::Lazy;
use super::mask::Signal;
use super::spare::Spare;
use super::symbol::{Symbol, calendar};
use super::walk::{SideRun, Walker};
use crate::compile::{DataNames, Program, compile};
use crate::metric::Metrics;
use crate::plan::{ExitValue, Plan};
use crate::segment::{Role, Segment};
use crate::strategy::{Strategy, StrategyError};
use crate::tally::Tally;
pub use benchmark::Benchmark;
use block::BlockPlan;
use demand::Demand;
pub use detail::Detail;
pub use measure::Measure;
pub use outlook::{Outlook, OutlookLevel, OutlookPosition};
use over::Overs;
pub use pool::{POOL_NOTE, SegmentPool};
use pool::{Pool, Row};
use prepare::Prepared;
pub use series::{LetSeries, let_series};
use signal::tiles_of_signals;

/// Memory for the daily returns of a chunk of trials.
const DAILY_BYTES: usize = 128 << 20;

/// Columns over all data that are worth keeping: more would be longer in coming from memory than in being computed.
const MOST_COLUMNS: usize = 1_024;

/// Settings that change no result.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Memory for columns and masks.
    pub cache_bytes: usize,
    /// Words of 64 bars that conditions are computed for at a time, 1 to 16.
    pub block_words: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: memory::budget(), block_words: MOST_WORDS }
    }
}

/// Results of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Those of each segment, unless there is one: it is one of the pools, and many outcomes are kept.
    segments: Option<Box<[Tally]>>,
    /// All counting segments together.
    pub train: Tally,
    /// All other segments together, if there are any.
    pub test: Option<Box<Tally>>,
    /// All counting segments together by the block of time, if blocks are kept: daily returns, and their squares.
    pub blocks: Vec<[f64; 2]>,
}

impl Outcome {
    /// Results of the segments in their order, of the pools that they make, and by the block.
    pub fn new(
        segments: impl ExactSizeIterator<Item = Tally>,
        train: Option<Tally>,
        test: Option<Tally>,
        blocks: Vec<[f64; 2]>,
    ) -> Self {
        let segments = (segments.len() != 1).then(|| segments.collect());
        Self { segments, train: train.unwrap_or_default(), test: test.map(Box::new), blocks }
    }

    /// One per segment, in their order.
    pub fn segments(&self) -> &[Tally] {
        let only = self.test.as_deref().unwrap_or(&self.train);
        self.segments.as_deref().unwrap_or(std::slice::from_ref(only))
    }
}

/// A strategy over data, ready to evaluate trials.
pub struct Engine<'a> {
    strategy: &'a Strategy,
    pub(crate) program: Program,
    plan: Plan,
    pub(crate) symbols: Vec<Symbol<'a>>,
    /// Further columns that the strategy was compiled for.
    pub(crate) extra: Vec<String>,
    /// Other bars that the strategy reads.
    grids: Grids<'a>,
    /// What was computed over all symbols, for the trials under way.
    overs: Overs,
    measure: Arc<Measure>,
    /// Days on which any symbol has a bar, counted from 1970.
    days: Vec<i64>,
    pub(crate) n_days: usize,
    pub(crate) n_symbols: [usize; 2],
    pub(crate) blocks: BlockPlan,
    cache: Cache,
    spare: Spare,
    block_words: usize,
    /// Chunks of trials evaluated so far, and the one under way. Every other one goes from its last trial to its first.
    n_chunks: u64,
    /// Whether later batches may ask for what this one does.
    are_more: bool,
}

impl<'a> Engine<'a> {
    /// Compiles a strategy for the data.
    pub fn new(
        strategy: &'a Strategy,
        universe: &'a Universe,
        segments: Vec<Segment>,
        options: EngineOptions,
    ) -> Result<Self, StrategyError> {
        let names = DataNames::of(universe);
        let program = compile(strategy, &names)?;
        program.check_closes(strategy, universe)?;
        let plan = Plan::new(&program);
        let days = calendar(universe.symbols.iter());
        let members = |role: Role| {
            let mut symbols: Vec<usize> =
                segments.iter().filter(|s| s.role == role).map(|s| s.symbol).collect();
            symbols.sort_unstable();
            symbols.dedup();
            symbols
        };
        let members = [members(Role::Train), members(Role::Test)];
        let n_bars: usize = universe.symbols.iter().map(Bars::len).sum();
        let cache_bytes = options.cache_bytes.min(MOST_COLUMNS * 8 * n_bars.max(4_096));
        let (cache, spare) = memory::of_columns(cache_bytes);
        let sources = program.graph.sources();
        let symbol = |bars| Symbol::new(Cow::Borrowed(bars), &names.extra, &days, &sources);
        let symbols: Vec<Symbol<'a>> = universe.symbols.iter().map(symbol).collect();
        Ok(Self {
            strategy,
            program,
            grids: Grids::new(&plan, &symbols, &names.extra, &sources),
            overs: Overs::default(),
            extra: names.extra,
            plan,
            symbols,
            n_days: days.len(),
            days,
            n_symbols: [members[0].len(), members[1].len()],
            measure: Arc::new(Measure::new(universe, segments, &members)),
            blocks: BlockPlan::default(),
            cache,
            spare,
            block_words: options.block_words.clamp(1, MOST_WORDS),
            n_chunks: 0,
            are_more: true,
        })
    }

    /// Keeps the results of every trial by so many blocks of time from here on; 0 keeps none.
    pub fn keep_blocks(&mut self, n_blocks: usize) {
        self.blocks = match n_blocks {
            0 => BlockPlan::default(),
            _ => BlockPlan::new(self.days_of(Role::Train), self.n_days, n_blocks),
        };
    }

    /// Days of each block that is kept.
    pub fn block_days(&self) -> &[u32] {
        &self.blocks.days
    }

    /// Days of the pool that counts.
    pub fn n_train_days(&self) -> usize {
        let (first, last) = self.days_of(Role::Train);
        if first > last { 0 } else { (last - first) as usize + 1 }
    }

    /// Daily returns in a year of the pool of a role: by the days of all its symbols.
    pub fn year_days(&self, role: Role) -> f64 {
        self.measure.year_days(role)
    }

    /// Daily returns in a year of a symbol, by its own days.
    pub fn symbol_year_days(&self, symbol: usize) -> f64 {
        self.measure.symbol_year_days(symbol)
    }

    /// The metrics of the pool of a role.
    pub fn pool_metrics(&self, tally: &Tally, role: Role) -> Metrics {
        self.measure.pool_metrics(tally, role)
    }

    /// The metrics of a segment, with the year of its symbol.
    pub fn segment_metrics(&self, segment: &Segment, tally: &Tally) -> Metrics {
        self.measure.segment_metrics(segment, tally)
    }

    /// The segments, in the order of the results.
    pub fn segments(&self) -> &[Segment] {
        self.measure.segments()
    }

    /// What turns its results into metrics.
    pub fn measure(&self) -> &Arc<Measure> {
        &self.measure
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
        self.strategy.decode(row)
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
        let n_pools = self.pools_days().into_iter().filter(|pools| *pools).count();
        let n_chunks = (values.len() * n_pools * self.n_days * size_of::<f64>()).div_ceil(DAILY_BYTES);
        // Chunks of one size: a small one would compute nearly as many columns as a large one.
        let most = values.len().div_ceil(n_chunks.max(1)).max(1);
        let mut out = Vec::with_capacity(values.len());
        for chunk in values.chunks(most) {
            out.extend(self.evaluate_chunk(chunk));
        }
        out
    }

    fn evaluate_chunk(&mut self, values: &[Vec<f64>]) -> Vec<Outcome> {
        let order = self.order(values);
        let sorted: Vec<&[f64]> = order.iter().map(|trial| values[*trial].as_slice()).collect();
        let mut found = Vec::with_capacity(sorted.len());
        for range in self.cut_by_overs(&sorted) {
            found.extend(self.evaluate_in_order(&sorted[range]));
        }
        let mut outcomes: Vec<(usize, Outcome)> = order.into_iter().zip(found).collect();
        outcomes.sort_unstable_by_key(|(trial, _)| *trial);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// The trials in an order in which those that read the same columns are neighbours, so that the columns need not all be there at
    /// once. Every other chunk goes backwards: the columns that the last one used at its end are still there.
    fn order(&mut self, values: &[Vec<f64>]) -> Vec<usize> {
        let Some(segment) = self.measure.segments.first() else { return (0..values.len()).collect() };
        let timeframe = self.symbols[segment.symbol].bars.timeframe_ms;
        let scalars: Vec<Vec<f64>> = values.iter().map(|params| self.scalars(params, timeframe)).collect();
        let mut tuples = Tuples::new(&scalars);
        let sharing = self.sharing(&mut tuples);
        let mut order = sharing.order(&self.plan.slots, &mut tuples);
        self.n_chunks += 1;
        if self.n_chunks.is_multiple_of(2) {
            order.reverse();
        }
        order
    }

    fn evaluate_in_order(&mut self, values: &[&[f64]]) -> Vec<Outcome> {
        let pooled = self.pools_days();
        let mut rows: Vec<Row> = values.iter().map(|_| self.row(pooled)).collect();
        let symbols = 0..self.symbols.len();
        let symbols: Vec<usize> =
            symbols.filter(|at| self.measure.segments.iter().any(|s| s.symbol == *at)).collect();
        let timeframe = |engine: &Self, symbol: usize| engine.symbols[symbol].bars.timeframe_ms;
        // Symbols of one timeframe have the same scalars.
        let mut scalars: BTreeMap<i64, Vec<Vec<f64>>> = BTreeMap::new();
        for symbol in &symbols {
            let timeframe = timeframe(self, *symbol);
            let all = || values.iter().map(|params| self.scalars(params, timeframe)).collect();
            scalars.entry(timeframe).or_insert_with(all);
        }
        let mut tuples: BTreeMap<i64, Tuples<'_>> =
            scalars.iter().map(|(timeframe, scalars)| (*timeframe, Tuples::new(scalars))).collect();
        for symbol in symbols {
            if let Some(tuples) = tuples.get_mut(&timeframe(self, symbol)) {
                self.walk_symbol(symbol, tuples, &mut rows);
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
            let result =
                graph.scalar(*id, |child| by_node[child as usize], |at| params[at], Some(timeframe_ms));
            by_node[*id as usize] = result;
            out.push(result);
        }
        out
    }

    /// Walks a chunk of trials through one symbol; cuts the chunk where its columns would not fit the memory.
    fn walk_symbol(&mut self, symbol: usize, tuples: &mut Tuples<'_>, rows: &mut [Row]) {
        let (n_bars, scalars) = (self.symbols[symbol].bars.len(), tuples.scalars);
        let sharing = self.sharing(tuples);
        let demand = self.demand(tuples, &sharing);
        let parts = demand.parts(n_bars, scalars.len(), self.cache.budget());
        if let [_] = parts.ranges[..] {
            return self.walk_part(symbol, tuples, demand, rows);
        }
        self.walk_parts(symbol, &parts, &sharing, &demand, scalars, rows);
    }

    /// Walks trials through one symbol, all of whose columns fit the memory.
    fn walk_part(&mut self, symbol: usize, tuples: &mut Tuples<'_>, demand: Demand, rows: &mut [Row]) {
        let scalars = tuples.scalars;
        let prepared = self.prepare(symbol, tuples, demand);
        let this = &*self;
        // Trials that share their masks go together: they enter on the same bars.
        let masks: Vec<&[u32]> = prepared
            .conditions
            .iter()
            .filter(|condition| condition.is_whole)
            .flat_map(|condition| condition.masks.iter().map(|shared| &*shared.of))
            .collect();
        let mut order: Vec<(usize, &mut Row)> = rows.iter_mut().enumerate().collect();
        let by_mask =
            |a: usize, b: usize| masks.iter().map(|of| of[a].cmp(&of[b])).find(|order| order.is_ne());
        order.sort_by(|(a, _), (b, _)| by_mask(*a, *b).unwrap_or(a.cmp(b)));
        // Large groups share more, but every thread should have some.
        let per_thread = scalars.len() / (2 * rayon::current_num_threads());
        let most = per_thread.clamp(1, LANES);
        let most_alone = most.max(self.most_along(symbol, &prepared).min(per_thread / 2));
        let mut groups: Vec<&mut [(usize, &mut Row)]> = Vec::new();
        // Only trials whose signals are masks walk together; the others only find their signals together, whatever their masks.
        let walks_alone = |trial: usize| prepared.conditions.iter().any(|condition| condition.is_open(trial));
        for alike in order
            .chunk_by_mut(|(a, _), (b, _)| by_mask(*a, *b).is_none() || walks_alone(*a) && walks_alone(*b))
        {
            let most = if walks_alone(alike[0].0) { most_alone } else { most };
            let n_groups = alike.len().div_ceil(most);
            groups.extend(alike.chunks_mut(alike.len().div_ceil(n_groups)));
        }
        groups.into_par_iter().for_each_init(Default::default, |memory, group| {
            this.walk_group(symbol, group, scalars, &prepared, memory);
        });
        drop(masks);
        // The memory of what is not kept is that of the next part's columns.
        for item in prepared.slots.into_iter().flatten() {
            Arc::into_inner(item).into_iter().for_each(|item| self.spare.keep(item));
        }
    }

    /// Walks trials that share their masks: together if they may, else one after the other.
    fn walk_group(
        &self,
        symbol: usize,
        group: &mut [(usize, &mut Row)],
        scalars: &[Vec<f64>],
        prepared: &Prepared,
        (scratch, buffers): &mut (Scratch, Buffers),
    ) {
        let data = &self.symbols[symbol];
        let columns: Vec<Vec<&[f64]>> =
            group.iter().map(|(trial, _)| self.columns(symbol, *trial, prepared)).collect();
        let lazies: Vec<Vec<Option<Lazy<'_>>>> =
            group.iter().map(|(trial, _)| self.lazies(symbol, *trial, &scalars[*trial], prepared)).collect();
        let mut tiles = self.tiles(symbol, group.iter().map(|(trial, _)| *trial), scalars, prepared);
        // Signals are told which columns will be tiles.
        let n_slots = self.plan.slots.len();
        let announced: Vec<Vec<Option<Tile<'_>>>> =
            (0..group.len()).map(|at| tiles.announced(at, n_slots)).collect();
        let frames: Vec<Frame<'_>> = (0..group.len())
            .map(|at| Frame {
                columns: &columns[at],
                lazies: &lazies[at],
                tiles: &announced[at],
                compared: &[],
                scalars: &scalars[group[at].0],
                n_bars: data.bars.len(),
                block_words: self.block_words,
            })
            .collect();
        let mut sides: Vec<Vec<SideRun<'_>>> =
            group.iter().zip(&frames).map(|((trial, _), frame)| self.bind(*trial, prepared, frame)).collect();
        let wanted: Vec<usize> = (0..self.measure.segments.len())
            .filter(|at| self.measure.segments[*at].symbol == symbol)
            .collect();
        tiles_of_signals(&mut sides, &frames, &mut tiles);
        if let [at] = wanted[..]
            && self.goes_along(symbol, &sides, &tiles)
        {
            return self.walk_along(at, group, sides, &frames, &mut tiles, scratch);
        }
        self.write_signals(symbol, &mut sides, &frames, &mut tiles, scratch);
        let alone = group.len() == 1 || sides.iter().any(|sides| sides.len() != 1);
        if !alone {
            match Convoy::new(data, &self.strategy.execution, sides.into_iter().flatten().collect()) {
                Ok(convoy) => {
                    for at in wanted {
                        let segment = &self.measure.segments[at];
                        let mut pools: Vec<Pool<'_>> = group
                            .iter_mut()
                            .map(|(_, row)| row.pool(segment.role, &data.calendar, &self.blocks))
                            .collect();
                        let tallies = convoy.walk(segment.range.clone(), &mut pools, buffers);
                        drop(pools);
                        for ((_, row), tally) in group.iter_mut().zip(tallies) {
                            row.segments[at] = tally;
                        }
                    }
                    return;
                }
                Err(runs) => sides = runs.into_iter().map(|run| vec![run]).collect(),
            }
        }
        for (((_, row), sides), frame) in group.iter_mut().zip(sides).zip(frames) {
            let mut walker = Walker::new(data, frame, &self.strategy.execution, sides);
            for at in &wanted {
                let segment = &self.measure.segments[*at];
                let mut pool = row.pool(segment.role, &data.calendar, &self.blocks);
                let tally = walker.walk(segment.range.clone(), scratch, &mut pool);
                drop(pool);
                row.segments[*at] = tally;
            }
        }
    }

    /// The sides of one trial, bound to its masks and columns.
    fn bind<'b>(&'b self, trial: usize, prepared: &'b Prepared, frame: &Frame<'b>) -> Vec<SideRun<'b>> {
        let mut signals = prepared.conditions.iter().map(|prepared| {
            let (mut exact, mut masks) = (None, Vec::new());
            for shared in &prepared.masks {
                match shared.item(trial) {
                    Item::Mask(mask) => exact = Some(mask),
                    Item::Bits(bits) => masks.push(bits.as_slice()),
                    Item::Column(_) | Item::Prefix(_) => {}
                }
            }
            masks.extend(prepared.ahead.get(trial).into_iter().flatten().map(Vec::as_slice));
            Signal::new(exact, masks, &prepared.left[trial], frame)
        });
        let bind = |side: usize| {
            let plan = self.plan.sides[side].as_ref()?;
            let enter = signals.next()?;
            let exits = plan.exits.iter().filter(|exit| matches!(exit.value, ExitValue::Signal(_))).count();
            Some(SideRun::new(plan, side == 0, frame, enter, signals.by_ref().take(exits).collect()))
        };
        (0..2).filter_map(bind).collect()
    }
}

/// Daily returns in a year of several symbols together: by the days on which any of them has a bar, in its whole history.
pub fn pool_year_days<'a>(symbols: impl Iterator<Item = &'a Bars>) -> f64 {
    f64::from(tidemill_market::year_days(&calendar(symbols)))
}
