//! The CUDA executor: the same plan and the same bits as [`Engine`], for many trials at once.
//!
//! A batch goes through five steps on the device: parameters become scalars; distinct tuples of them are found; the columns and masks of new
//! tuples are computed; groups of lanes walk the trials; a thread per trial books them. The host decides between the second and the third
//! step how much memory is needed, and nothing per trial.
//!
//! Columns stay on the device from batch to batch. A batch that does not fit is cut.

mod batch;
mod code;
mod detail;
mod finish;
mod formula;
mod group;
mod lane;
mod layout;
mod module;
mod pool;
mod shared;
mod tuples;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tidemill_gpu::{Device, DeviceBuffer, Event, GpuError, Kernel, Priority, Stream};
use tidemill_search::Points;

use crate::exec::engine::{Engine, Outcome};
use crate::graph::{Node, Source as Series};
use crate::plan::{KeyParts, Plan, Slot};
use crate::segment::Role;
use crate::strategy::Strategy;
use batch::Batch;
use detail::Recording;
pub use detail::{DeviceDetail, FoundTrade};
use lane::Lane;
use layout::{Segment, Tile};
use module::Kernels;
pub use module::{column_source, device_sources};
use pool::Pool;

/// Bars of a tile: what one warp writes of a mask at a time.
const TILE: usize = 8192;

/// Settings that change no result.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Share of the free memory that may be used.
    pub memory_fraction: f64,
    /// Batches, or parts of one, that are on the device at a time.
    pub lanes: usize,
    /// Most trials of one part.
    pub most_trials: usize,
    /// Most trades of a trial and segment that are kept before they are booked.
    pub most_trades: usize,
    /// Most memory for the daily returns of one trial; where its segments have more, they are booked one after the other.
    pub most_daily_bytes: usize,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            memory_fraction: 0.8,
            lanes: 2,
            most_trials: 1 << 18,
            most_trades: 1024,
            most_daily_bytes: 256 << 10,
        }
    }
}

/// What the device does for a part of a batch, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Parameters go to the device.
    Upload,
    /// Scalars, and their distinct tuples.
    Distinct,
    /// Nothing: the host decides, or another part goes first.
    Wait,
    /// Columns of new tuples.
    Columns,
    /// Masks of factors and conditions.
    Masks,
    /// Trades are found.
    Walk,
    /// Trades are booked.
    Book,
    /// Segments are pooled, sums go to the host.
    Download,
}

/// When a stage of a part ran, in milliseconds since the engine was made.
#[derive(Clone, Copy, Debug)]
pub struct StageSpan {
    /// The stage.
    pub stage: Stage,
    /// The lane.
    pub lane: usize,
    /// Which of the submissions it belongs to, from 0.
    pub job: u64,
    /// Its begin, since [`DeviceEngine::began`].
    pub begin_ms: f64,
    /// Its end.
    pub end_ms: f64,
}

/// Where a slot's items are.
enum Place {
    /// A series of the data, at this bar of the buffer of sources.
    Source(usize),
    /// A pool, and which of the keys tells the items.
    Pool { pool: usize, key: usize },
}

/// One key: the tuple that decides what is shared.
struct KeyPlan {
    parts: KeyParts,
    /// The pool that keeps its items, or none where they are the batch's own.
    pool: Option<usize>,
    /// Keys of one pool are looked up one after the other.
    wave: usize,
}

/// Keys of a condition and of its factors.
struct ConditionPlan {
    whole: usize,
    factors: Vec<FactorPlan>,
}

struct FactorPlan {
    key: usize,
    /// The columns that it reads.
    slots: Vec<usize>,
    /// Key of the series that is compared with a threshold, the threshold's scalar, and whether it must be above.
    threshold: Option<(usize, usize, bool)>,
}

/// A strategy over data, on one device.
pub struct DeviceEngine {
    device: Device,
    plan: Plan,
    /// The strategy's own kernels, and those of the columns.
    kernels: Kernels,
    places: Vec<Place>,
    pools: Vec<Pool>,
    keys: Vec<KeyPlan>,
    n_waves: usize,
    conditions: Vec<ConditionPlan>,
    data: Data,
    segments: Vec<Segment>,
    roles: Vec<Role>,
    n_symbols_of: [u32; 2],
    n_days: usize,
    /// Blocks of time that results are kept by.
    n_blocks: usize,
    /// First and last day of the calendar on which a segment of each role has a bar.
    days_of: [(u32, u32); 2],
    n_params: usize,
    n_timeframes: usize,
    options: DeviceOptions,
    /// Memory that may be used in all.
    budget: usize,
    /// Finds distinct tuples, batch after batch.
    prepare: Stream,
    /// When the columns sent last are computed.
    columns_done: Option<Event>,
    lanes: Vec<Option<Lane>>,
    under_way: VecDeque<Batch>,
    jobs: VecDeque<Job>,
    /// Times are counted from here.
    base: Event,
    began: Instant,
    /// Submissions that were collected.
    n_collected: u64,
    spans: Vec<StageSpan>,
    /// Where the details of trials are kept, while they are asked for.
    recording: Option<Recording>,
}

/// What never changes, on the device.
struct Data {
    start: DeviceBuffer<u32>,
    word_start: DeviceBuffer<u32>,
    timeframe: DeviceBuffer<u32>,
    sources: DeviceBuffer<f64>,
    day: DeviceBuffer<u32>,
    day_start: DeviceBuffer<u32>,
    day_close: DeviceBuffer<f64>,
    day_low: DeviceBuffer<f64>,
    day_high: DeviceBuffer<f64>,
    day_end: DeviceBuffer<u32>,
    extremes: DeviceBuffer<f64>,
    calendar: DeviceBuffer<u32>,
    block_of: DeviceBuffer<u32>,
    segments: DeviceBuffer<Segment>,
    tiles: DeviceBuffer<Tile>,
    /// Scalars of all keys, one list after the other.
    tuples: DeviceBuffer<u32>,
    tuple_at: Vec<usize>,
    /// Where open, high, low and close begin among the sources.
    prices: [usize; 4],
    n_symbols: usize,
    n_bars: usize,
    n_words: usize,
    n_tiles: usize,
    longest: usize,
}

/// Points that were submitted: parts still to be begun, and what came of those that are done.
struct Job {
    points: Arc<Points>,
    waiting: VecDeque<Range<usize>>,
    n_under_way: usize,
    outcomes: Vec<Outcome>,
}

impl DeviceEngine {
    /// Compiles a strategy for a device and takes its data there.
    pub fn new(
        device: &Device,
        engine: &Engine<'_>,
        strategy: &Strategy,
        options: DeviceOptions,
    ) -> Result<Self, GpuError> {
        let plan = Plan::with_all_slots(&engine.program);
        let timeframes = timeframes(engine, &plan);
        let kernels = Kernels::load(device, &plan, strategy, &timeframes)?;
        // What the host waits for goes before what is under way.
        let prepare = device.stream_with(Priority::High)?;
        let mut out = Self {
            device: device.clone(),
            base: prepare.record()?,
            began: Instant::now(),
            n_collected: 0,
            spans: Vec::new(),
            recording: None,
            kernels,
            places: Vec::new(),
            pools: Vec::new(),
            keys: Vec::new(),
            n_waves: 0,
            conditions: Vec::new(),
            data: Data::new(device, engine, &plan, &timeframes)?,
            segments: Vec::new(),
            roles: engine.segments.iter().map(|segment| segment.role).collect(),
            n_symbols_of: engine.n_symbols.map(|n| n as u32),
            n_days: engine.n_days,
            n_blocks: engine.blocks.days.len(),
            days_of: [Role::Train, Role::Test].map(|role| engine.days_of(role)),
            n_params: strategy.params.len(),
            n_timeframes: timeframes.len(),
            options,
            budget: 0,
            prepare,
            columns_done: None,
            lanes: (0..options.lanes.max(1)).map(|_| None).collect(),
            under_way: VecDeque::new(),
            jobs: VecDeque::new(),
            plan,
        };
        out.segments = segments(engine);
        out.plan_keys();
        out.upload_tuples()?;
        out.budget = (device.free_bytes()? as f64 * options.memory_fraction) as usize;
        Ok(out)
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Takes on points; they are begun as soon as the device has room for them.
    pub fn submit(&mut self, points: Arc<Points>) -> Result<(), GpuError> {
        let most = self.most_trials(points.len());
        let waiting = (0..points.len()).step_by(most).map(|at| at..(at + most).min(points.len())).collect();
        self.jobs.push_back(Job { points, waiting, n_under_way: 0, outcomes: Vec::new() });
        self.pump()
    }

    /// Waits for the oldest points submitted, and returns what came of them in their order.
    pub fn collect(&mut self) -> Result<Vec<Outcome>, GpuError> {
        loop {
            self.pump()?;
            match self.jobs.front() {
                None => return Ok(Vec::new()),
                Some(job) if job.waiting.is_empty() && job.n_under_way == 0 => break,
                Some(_) => self.finish_oldest()?,
            }
        }
        self.n_collected += 1;
        Ok(self.jobs.pop_front().map(|job| job.outcomes).unwrap_or_default())
    }

    /// Whether [`collect`](Self::collect) would not have to wait long.
    pub fn is_ready(&mut self) -> Result<bool, GpuError> {
        match self.under_way.front() {
            Some(batch) => batch.is_done(),
            None => Ok(true),
        }
    }

    /// When its time began: spans are counted from here.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// How many parts are under way at a time, at least one. No result depends on it.
    pub fn set_lanes(&mut self, n_lanes: usize) {
        self.options.lanes = n_lanes.max(1);
        self.grow_or_shrink_lanes();
    }

    /// Lanes that are at work stay until they are done.
    fn grow_or_shrink_lanes(&mut self) {
        let wanted = self.options.lanes.max(1);
        let is_idle = |lane: &Option<Lane>| lane.as_ref().is_none_or(Lane::is_idle);
        while self.lanes.len() > wanted && self.lanes.last().is_some_and(is_idle) {
            self.lanes.pop();
        }
        if self.lanes.len() < wanted {
            self.lanes.resize_with(wanted, || None);
        }
    }

    /// When the stages of all parts collected since the last call ran.
    pub fn take_spans(&mut self) -> Vec<StageSpan> {
        std::mem::take(&mut self.spans)
    }

    /// Forgets all columns, as though nothing had been evaluated yet.
    pub fn clear(&mut self) -> Result<(), GpuError> {
        self.device.synchronize()?;
        self.pools.iter_mut().try_for_each(|pool| pool.clear(&self.prepare))
    }

    /// Evaluates points; results in their order.
    pub fn evaluate(&mut self, points: &Points) -> Result<Vec<Outcome>, GpuError> {
        self.submit(Arc::new(points.clone()))?;
        self.collect()
    }

    /// Begins as many parts as there are lanes.
    fn pump(&mut self) -> Result<(), GpuError> {
        self.grow_or_shrink_lanes();
        while let Some(lane) =
            self.lanes.iter().position(|lane| lane.is_none() || lane.as_ref().is_some_and(Lane::is_idle))
        {
            let Some(job) = self.jobs.iter().position(|job| !job.waiting.is_empty()) else { return Ok(()) };
            let Some(range) = self.jobs[job].waiting.pop_front() else { return Ok(()) };
            let points = self.jobs[job].points.clone();
            match self.begin(lane, &points, range.clone()) {
                Ok(mut batch) => {
                    batch.job = self.n_collected + job as u64;
                    self.under_way.push_back(batch);
                    self.jobs[job].n_under_way += 1;
                }
                // Too much at once: what is under way is finished first, then the part is cut in half.
                Err(GpuError::OutOfMemory { .. }) if !self.under_way.is_empty() => {
                    self.jobs[job].waiting.push_front(range);
                    self.finish_oldest()?;
                    self.release_memory();
                }
                Err(GpuError::OutOfMemory { .. }) if range.len() > 1 => {
                    self.release_memory();
                    let middle = range.start + range.len() / 2;
                    self.jobs[job].waiting.push_front(middle..range.end);
                    self.jobs[job].waiting.push_front(range.start..middle);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finish_oldest(&mut self) -> Result<(), GpuError> {
        let Some(batch) = self.under_way.pop_front() else { return Ok(()) };
        let outcomes = self.finish(batch)?;
        // Parts are finished in the order in which they were begun, and begun in their order.
        if let Some(job) = self.jobs.iter_mut().find(|job| job.n_under_way > 0) {
            job.n_under_way -= 1;
            if job.outcomes.is_empty() {
                job.outcomes = outcomes;
            } else {
                job.outcomes.extend(outcomes);
            }
        }
        Ok(())
    }

    /// Gives back what can be had again: columns and the memory of idle lanes.
    fn release_memory(&mut self) {
        if self.under_way.is_empty() {
            self.pools.iter_mut().for_each(Pool::release);
            self.lanes.iter_mut().for_each(|lane| *lane = None);
        }
    }

    /// Most trials of one part: what fits a lane's share of the memory if nothing is shared, and not more than are wanted.
    fn most_trials(&self, n_trials: usize) -> usize {
        let n_segments = self.segments.len();
        let per_row = self.plan.scalars.len() * 8
            + self.keys.len() * 12
            + self.conditions.len() * self.data.n_words * 8;
        let per_trial = per_row * self.n_timeframes
            + (self.n_params + 4 * self.n_blocks) * 8
            + n_segments
                * (size_of::<layout::WalkState>()
                    + 2 * size_of::<crate::tally::Tally>()
                    + 16 * size_of::<layout::Trade>())
            + size_of::<layout::BookState>() * (n_segments / self.segments_each()).max(1)
            + 2 * 8 * self.n_days * (n_segments / self.segments_each()).max(1);
        let fits = self.budget / 3 / self.lanes.len() / per_trial.max(1);
        fits.clamp(1, self.options.most_trials.max(1)).min(n_trials.max(1))
    }

    /// Keys of all slots, conditions and factors; pools of all shapes.
    fn plan_keys(&mut self) {
        let (n_bars, n_symbols, n_words) = (self.data.n_bars, self.data.n_symbols, self.data.n_words);
        let mut source = 0;
        let mut n_of_pool: Vec<usize> = Vec::new();
        for slot in &self.plan.slots {
            let (parts, stride) = match slot {
                Slot::Source(_) => {
                    self.places.push(Place::Source(source));
                    source += n_bars;
                    continue;
                }
                Slot::Call { func, key, .. } => {
                    (key, func.output().stride(n_bars as u32, n_symbols as u32) as usize)
                }
                Slot::Formula { key, .. } => (key, n_bars),
                Slot::Mask { key, .. } => (key, n_words),
            };
            // A mask and a column of one formula are two things.
            let known = self.pools.iter().position(|pool| pool.shape == parts.shape && pool.stride == stride);
            let pool = known.unwrap_or_else(|| {
                self.pools.push(Pool::new(parts.shape, stride, parts.scalars.len()));
                n_of_pool.push(0);
                self.pools.len() - 1
            });
            self.places.push(Place::Pool { pool, key: self.keys.len() });
            self.keys.push(KeyPlan { parts: parts.clone(), pool: Some(pool), wave: n_of_pool[pool] });
            n_of_pool[pool] += 1;
        }
        let keys = &mut self.keys;
        let mut own = |parts: &KeyParts| {
            keys.push(KeyPlan { parts: parts.clone(), pool: None, wave: 0 });
            keys.len() - 1
        };
        for condition in self.plan.conditions() {
            let whole = own(&condition.whole.key);
            let factors = code::factors(condition)
                .iter()
                .map(|factor| FactorPlan {
                    key: own(&factor.itself.key),
                    slots: factor.itself.tape.slots(),
                    threshold: factor.threshold.as_ref().map(|threshold| {
                        let above = matches!(threshold.op, crate::graph::Op2::Gt | crate::graph::Op2::Ge);
                        (own(&threshold.series.key), threshold.scalar, above)
                    }),
                })
                .collect();
            self.conditions.push(ConditionPlan { whole, factors });
        }
        self.n_waves = n_of_pool.into_iter().max().unwrap_or(0).max(1);
    }

    fn upload_tuples(&mut self) -> Result<(), GpuError> {
        let mut tuples: Vec<u32> = Vec::new();
        for key in &self.keys {
            self.data.tuple_at.push(tuples.len());
            tuples.extend(key.parts.scalars.iter().map(|scalar| *scalar as u32));
        }
        self.data.tuples = self.device.alloc_from(&tuples)?;
        Ok(())
    }

    fn kernel(&self, name: &str) -> Result<Kernel, GpuError> {
        self.kernels.get(name)
    }
}

/// The timeframes of the data, ascending; where the strategy does not ask for the time, one stands for all.
fn timeframes(engine: &Engine<'_>, plan: &Plan) -> Vec<i64> {
    let uses_time = plan.graph.nodes.iter().any(|node| matches!(node, Node::Bars(_)));
    let mut timeframes: Vec<i64> = engine.symbols.iter().map(|symbol| symbol.bars.timeframe_ms).collect();
    timeframes.sort_unstable();
    timeframes.dedup();
    if !uses_time {
        timeframes.truncate(1);
    }
    timeframes
}

fn segments(engine: &Engine<'_>) -> Vec<Segment> {
    let segment = |segment: &crate::segment::Segment| Segment {
        symbol: segment.symbol as u32,
        first: segment.range.start as u32,
        end: segment.range.end as u32,
        role: segment.role as u32,
    };
    engine.segments.iter().map(segment).collect()
}

impl Data {
    fn new(device: &Device, engine: &Engine<'_>, plan: &Plan, timeframes: &[i64]) -> Result<Self, GpuError> {
        let symbols = &engine.symbols;
        let (mut start, mut word_start, mut day_start) = (vec![0_u32], vec![0_u32], vec![0_u32]);
        let (mut day, mut day_close, mut calendar) = (Vec::new(), Vec::new(), Vec::new());
        let (mut day_low, mut day_high, mut day_end) = (Vec::new(), Vec::new(), Vec::new());
        let mut extremes = Vec::new();
        let mut tiles = Vec::new();
        let mut longest = 0;
        for (at, symbol) in symbols.iter().enumerate() {
            let n = symbol.bars.len();
            longest = longest.max(n);
            start.push(start[at] + n as u32);
            word_start.push(word_start[at] + n.div_ceil(64) as u32);
            day_start.push(day_start[at] + symbol.day_close.len() as u32);
            day.extend_from_slice(&symbol.day);
            day_close.extend_from_slice(&symbol.day_close);
            calendar.extend_from_slice(&symbol.calendar);
            day_low.extend_from_slice(&symbol.day_low);
            day_high.extend_from_slice(&symbol.day_high);
            day_end.extend_from_slice(&symbol.day_end);
            extremes.extend([symbol.lowest, symbol.highest]);
            tiles.extend((0..n).step_by(TILE).map(|first| Tile {
                symbol: at as u32,
                first: first as u32,
                end: (first + TILE).min(n) as u32,
            }));
        }
        let timeframe: Vec<u32> = symbols
            .iter()
            .map(|symbol| {
                timeframes.iter().position(|ms| *ms == symbol.bars.timeframe_ms).unwrap_or(0) as u32
            })
            .collect();
        let n_bars = start[symbols.len()] as usize;
        let mut sources: Vec<f64> = Vec::new();
        let mut append = |series: Series| {
            let at = sources.len();
            for symbol in symbols {
                sources.extend_from_slice(symbol.source(series));
            }
            at
        };
        for slot in &plan.slots {
            if let Slot::Source(series) = slot {
                append(*series);
            }
        }
        let prices = [Series::Open, Series::High, Series::Low, Series::Close].map(append);
        Ok(Self {
            start: device.alloc_from(&start)?,
            word_start: device.alloc_from(&word_start)?,
            timeframe: device.alloc_from(&timeframe)?,
            sources: device.alloc_from(&sources)?,
            day: device.alloc_from(&day)?,
            day_start: device.alloc_from(&day_start)?,
            day_close: device.alloc_from(&day_close)?,
            day_low: device.alloc_from(&day_low)?,
            day_high: device.alloc_from(&day_high)?,
            day_end: device.alloc_from(&day_end)?,
            extremes: device.alloc_from(&extremes)?,
            calendar: device.alloc_from(&calendar)?,
            block_of: device.alloc_from(&engine.blocks.block_of)?,
            segments: device.alloc_from(&segments(engine))?,
            n_tiles: tiles.len(),
            tiles: device.alloc_from(&tiles)?,
            tuples: device.alloc(1)?,
            tuple_at: Vec::new(),
            prices,
            n_symbols: symbols.len(),
            n_bars,
            n_words: word_start[symbols.len()] as usize,
            longest,
        })
    }
}
