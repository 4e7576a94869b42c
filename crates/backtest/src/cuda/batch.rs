//! One part of a batch on its way through the device.

use std::ops::Range;

use bytemuck::Pod;
use rayon::prelude::*;
use tidemill_gpu::{DevicePtr, Event, GpuError, Launch, Pinned, Stream};
use tidemill_market::indicator::device::{self as columns, ColumnArgs, Input};
use tidemill_search::Points;

use super::layout::{
    BookArgs, BookState, ConditionMask, DistinctArgs, EVALUATE, EXACT, FactorMask, FormulaArgs, Key, LEVEL,
    LEVELS, LevelArgs, MaskArgs, PoolArgs, ScalarArgs, SpreadArgs, Trade, WARPS, WalkArgs, WalkState, World,
};
use super::pool::{Grow, Parcel, Pool};
use super::{DeviceEngine, Place, Stage, StageSpan, code};
use crate::exec::engine::Outcome;
use crate::plan::Slot;
use crate::segment::Role;
use crate::tally::Tally;

/// Threads of a block where nothing asks for another number.
const THREADS: u32 = 256;
/// Memory for what columns need only while they are computed.
const SCRATCH_BYTES: usize = 256 << 20;
/// Something is shared where at least this many use it on average.
const SHARERS: usize = 4;

/// The memory and the stream of one part under way; used again for the next.
pub(super) struct Lane {
    stream: Stream,
    points: Option<Pinned<f64>>,
    device_points: Grow<f64>,
    scalars: Grow<f64>,
    /// For each key: items, places and rows.
    rows: Grow<u32>,
    own_tables: Grow<u32>,
    own_keys: Grow<f64>,
    parcel: Grow<u8>,
    parcels: [Option<Pinned<u8>>; 2],
    spans: Grow<u32>,
    host_spans: Option<Pinned<u32>>,
    masks: Vec<Grow<u64>>,
    factor_masks: Vec<Grow<u64>>,
    levels: Grow<f64>,
    level_of: Grow<u32>,
    scratch: Grow<f64>,
    trades: Grow<Trade>,
    walks: Grow<WalkState>,
    books: Grow<BookState>,
    tallies: Grow<Tally>,
    daily: [Grow<f64>; 2],
    pooled: [Grow<Tally>; 2],
    n_open: Grow<u32>,
    host_tallies: Option<Pinned<Tally>>,
    host_pooled: [Option<Pinned<Tally>>; 2],
    host_n_open: Option<Pinned<u32>>,
    marks: Vec<(Stage, Event)>,
    idle: bool,
}

impl Lane {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            points: None,
            device_points: Grow::default(),
            scalars: Grow::default(),
            rows: Grow::default(),
            own_tables: Grow::default(),
            own_keys: Grow::default(),
            parcel: Grow::default(),
            parcels: [None, None],
            spans: Grow::default(),
            host_spans: None,
            masks: Vec::new(),
            factor_masks: Vec::new(),
            levels: Grow::default(),
            level_of: Grow::default(),
            scratch: Grow::default(),
            trades: Grow::default(),
            walks: Grow::default(),
            books: Grow::default(),
            tallies: Grow::default(),
            daily: [Grow::default(), Grow::default()],
            pooled: [Grow::default(), Grow::default()],
            n_open: Grow::default(),
            host_tallies: None,
            host_pooled: [None, None],
            host_n_open: None,
            marks: Vec::new(),
            idle: true,
        }
    }

    /// Whether it can take on another part.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }
}

/// A part that was begun.
pub(super) struct Batch {
    lane: usize,
    n_trials: usize,
    walk: WalkArgs,
    book: BookArgs,
    done: Event,
    /// When each stage begins; each ends with the beginning of the next.
    marks: Vec<(Stage, Event)>,
}

impl Batch {
    pub(super) fn is_done(&self) -> Result<bool, GpuError> {
        self.done.is_done()
    }
}

/// What the distinct tuples of a batch are, for one key.
#[derive(Clone, Copy)]
struct Span {
    known: usize,
    all: usize,
    item_of: DevicePtr<u32>,
    row: DevicePtr<u32>,
}

impl Span {
    fn n_new(&self) -> usize {
        self.all - self.known
    }
}

/// Host memory with room for so many values.
fn pinned<'a, T: Pod>(
    device: &tidemill_gpu::Device,
    slot: &'a mut Option<Pinned<T>>,
    len: usize,
) -> Result<&'a mut Pinned<T>, GpuError> {
    if slot.as_ref().is_none_or(|pinned| pinned.len() < len) {
        *slot = None;
        *slot = Some(device.pinned(len.max(1) + len / 8)?);
    }
    Ok(slot.as_mut().expect("was just made"))
}

fn threads(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(THREADS as usize).max(1) as u32, THREADS)
}

fn warps(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(WARPS as usize).max(1) as u32, 32 * WARPS)
}

impl DeviceEngine {
    /// Sends a part to the device. On an error nothing of it is under way.
    pub(super) fn begin(
        &mut self,
        lane: usize,
        points: &Points,
        range: Range<usize>,
    ) -> Result<Batch, GpuError> {
        let mut this = match self.lanes[lane].take() {
            Some(lane) => lane,
            None => Lane::new(self.device.stream()?),
        };
        let result = self.send(lane, &mut this, points, range);
        this.idle = result.is_err();
        if result.is_err() {
            // Tuples may be in the tables whose columns were never computed.
            let _ = self.settle();
            self.pools.iter_mut().for_each(Pool::release);
        }
        self.lanes[lane] = Some(this);
        result
    }

    fn send(
        &mut self,
        at: usize,
        lane: &mut Lane,
        points: &Points,
        range: Range<usize>,
    ) -> Result<Batch, GpuError> {
        let n_trials = range.len();
        let n_rows = n_trials * self.n_timeframes;
        let mut spans = self.find_distinct(lane, points, range.clone(), n_rows)?;
        let mut written = self.choose_written(&spans, n_rows);
        if written.is_none() {
            // Columns of earlier batches make room.
            self.settle()?;
            for pool in &mut self.pools {
                pool.release();
            }
            spans = self.find_distinct(lane, points, range, n_rows)?;
            written = self.choose_written(&spans, n_rows);
        }
        let Some(written) = written else {
            let n_items = |pool: usize| self.n_items(pool, &spans);
            let bytes: usize = self.pools.iter().enumerate().map(|(at, pool)| pool.bytes(n_items(at))).sum();
            return Err(GpuError::OutOfMemory { bytes: bytes as u64, free: self.budget as u64 });
        };
        self.compute(at, lane, n_trials, n_rows, &spans, &written)
    }

    /// Uploads the points, computes their scalars and finds the distinct tuples of every key.
    fn find_distinct(
        &mut self,
        lane: &mut Lane,
        points: &Points,
        range: Range<usize>,
        n_rows: usize,
    ) -> Result<Vec<Span>, GpuError> {
        let device = self.device.clone();
        let stream = self.prepare.clone();
        let n_trials = range.len();
        let staged = pinned(&device, &mut lane.points, self.n_params * n_trials)?;
        staged.as_mut_slice()?[..self.n_params * n_trials]
            .par_chunks_mut(n_trials)
            .enumerate()
            .for_each(|(param, out)| out.copy_from_slice(&points.column(param)[range.clone()]));
        let device_points = lane.device_points.room(&device, self.n_params * n_trials)?;
        lane.marks.clear();
        lane.marks.push((Stage::Upload, stream.record()?));
        upload(&stream, lane.points.as_ref(), &lane.device_points, self.n_params * n_trials)?;
        lane.marks.push((Stage::Distinct, stream.record()?));
        let scalars = lane.scalars.room(&device, self.plan.scalars.len() * n_rows)?;
        let args =
            ScalarArgs { points: device_points, scalars, n_trials: n_trials as u32, n_rows: n_rows as u32 };
        let kernel = self.kernel("scalars")?;
        stream.launch(&kernel, threads(n_rows), &args)?;

        let n_keys = self.keys.len();
        for at in 0..self.pools.len() {
            let n_more = n_rows * self.keys.iter().filter(|key| key.pool == Some(at)).count();
            if !self.pools[at].has_places(n_more) {
                self.settle()?;
            }
            self.pools[at].reserve_tuples(&device, &stream, n_more)?;
        }
        let n_own = self.keys.iter().filter(|key| key.pool.is_none()).count();
        let own_places = (2 * n_rows).next_power_of_two();
        let own_table = lane.own_tables.room(&device, n_own * own_places)?;
        if let Some(tables) = lane.own_tables.buffer() {
            stream.fill(tables, 0, n_own * own_places, 0xff)?;
        }
        let own_width: usize =
            self.keys.iter().filter(|key| key.pool.is_none()).map(|key| key.parts.scalars.len()).sum();
        let own_keys = lane.own_keys.room(&device, own_width * n_rows)?;
        let rows = lane.rows.room(&device, 3 * n_keys * n_rows)?;
        // Counts of the pools, then of the keys of their own, then the spans.
        let n_counts = self.pools.len() + n_own;
        let spans = lane.spans.room(&device, n_counts + 2 * n_keys)?;
        let host_spans = pinned(&device, &mut lane.host_spans, n_counts + 2 * n_keys)?;
        let counts = self.pools.iter().map(|pool| pool.n_items as u32).chain(std::iter::repeat(0));
        host_spans.as_mut_slice()?[..n_counts].iter_mut().zip(counts).for_each(|(to, count)| *to = count);
        upload(&stream, lane.host_spans.as_ref(), &lane.spans, n_counts)?;

        let mut keys: Vec<(usize, Key)> = Vec::with_capacity(n_keys);
        let (mut own, mut width) = (0, 0);
        for (at, key) in self.keys.iter().enumerate() {
            let n_scalars = key.parts.scalars.len();
            let (table, mask, tuples, count) = match key.pool {
                Some(pool) => {
                    let (table, mask) = self.pools[pool].table();
                    (table, mask, self.pools[pool].keys(), spans.add(pool))
                }
                None => {
                    let table = own_table.add(own * own_places);
                    let tuples = own_keys.add(width * n_rows);
                    let count = spans.add(self.pools.len() + own);
                    own += 1;
                    width += n_scalars;
                    (table, own_places as u32 - 1, tuples, count)
                }
            };
            let of_key = |which: usize| rows.add((3 * at + which) * n_rows);
            keys.push((
                key.wave,
                Key {
                    table,
                    keys: tuples,
                    item_of: of_key(0),
                    place_of: of_key(1),
                    row: of_key(2),
                    scalars: self.data.tuples.ptr().add(self.data.tuple_at[at]),
                    count,
                    span: spans.add(n_counts + 2 * at),
                    n_scalars: n_scalars as u32,
                    mask,
                },
            ));
        }
        keys.sort_by_key(|(wave, _)| *wave);
        let sorted: Vec<Key> = keys.iter().map(|(_, key)| *key).collect();
        let base = lane.parcel.room(&device, self.parcel_bytes())?;
        let mut parcel = Parcel::new(base);
        let on_device = parcel.put(&sorted);
        send_parcel(&device, &stream, &mut lane.parcels[0], &lane.parcel, &parcel)?;
        let [begin, insert, settle, end] =
            ["distinct_begin", "distinct_insert", "distinct_settle", "distinct_end"]
                .map(|name| self.kernel(name));
        let (begin, insert, settle, end) = (begin?, insert?, settle?, end?);
        for wave in 0..self.n_waves {
            let first = keys.partition_point(|(w, _)| *w < wave);
            let count = keys.partition_point(|(w, _)| *w <= wave) - first;
            if count == 0 {
                continue;
            }
            let args = DistinctArgs {
                keys: on_device.add(first),
                scalars,
                n_rows: n_rows as u32,
                n_keys: count as u32,
            };
            let mut each = threads(n_rows);
            each.grid[1] = count as u32;
            stream.launch(&begin, threads(count), &args)?;
            stream.launch(&insert, each, &args)?;
            stream.launch(&settle, each, &args)?;
            stream.launch(&end, threads(count), &args)?;
        }
        let host_spans = pinned(&device, &mut lane.host_spans, n_counts + 2 * n_keys)?;
        if let Some(spans) = lane.spans.buffer() {
            stream.download(spans, n_counts, host_spans, n_counts, 2 * n_keys)?;
        }
        lane.marks.push((Stage::Wait, stream.record()?));
        let found = host_spans.as_slice()?;
        let span = |at: usize| Span {
            known: found[n_counts + 2 * at] as usize,
            all: found[n_counts + 2 * at + 1] as usize,
            item_of: rows.add(3 * at * n_rows),
            row: rows.add((3 * at + 2) * n_rows),
        };
        Ok((0..n_keys).map(span).collect())
    }

    /// Memory for the small structs of a batch.
    fn parcel_bytes(&self) -> usize {
        let n_factors: usize = self.conditions.iter().map(|condition| condition.factors.len()).sum();
        4096 + 128 * (self.keys.len() + self.plan.slots.len() + self.conditions.len() + n_factors)
    }

    /// Items of a pool after a batch.
    fn n_items(&self, pool: usize, spans: &[Span]) -> usize {
        let of_pool = self.keys.iter().zip(spans).filter(|(key, _)| key.pool == Some(pool));
        of_pool.map(|(_, span)| span.all).max().unwrap_or(0)
    }

    /// Which pools are written out as columns; none if what must be written does not fit the memory.
    ///
    /// What a function reads as a whole must be. Of the others, extremes are where there is room, because one value costs a whole window;
    /// what comes from prefix sums only where enough rows share it.
    fn choose_written(&self, spans: &[Span], n_rows: usize) -> Option<Vec<bool>> {
        let most = self.budget / 3 * 2;
        let mut written = vec![false; self.pools.len()];
        let mut bytes = 0;
        let choice = |slot: usize| match &self.plan.slots[slot] {
            _ if !code::is_flexible(&self.plan, slot) => 0,
            Slot::Call { func, .. } if func.has_point() => 1,
            _ => 2,
        };
        for round in 0..3 {
            for (slot, place) in self.places.iter().enumerate() {
                let Place::Pool { pool, .. } = *place else { continue };
                if written[pool] || choice(slot) != round {
                    continue;
                }
                let n_items = self.n_items(pool, spans);
                let more = self.pools[pool].bytes(n_items);
                if round == 0 || bytes + more <= most && (round == 1 || n_items * SHARERS <= n_rows) {
                    written[pool] = true;
                    bytes += more;
                }
            }
        }
        (bytes <= most).then_some(written)
    }

    /// Computes columns and masks, walks and books; all of it is only sent.
    fn compute(
        &mut self,
        at: usize,
        lane: &mut Lane,
        n_trials: usize,
        n_rows: usize,
        spans: &[Span],
        written: &[bool],
    ) -> Result<Batch, GpuError> {
        let device = self.device.clone();
        let prepare = self.prepare.clone();
        for (pool, is_written) in written.iter().enumerate() {
            let n_items = self.n_items(pool, spans);
            if *is_written {
                let n_known = self.pools[pool].n_items;
                if !self.pools[pool].has_room(n_items) {
                    self.settle()?;
                }
                self.pools[pool].reserve_items(&device, &prepare, n_items, n_known)?;
                self.pools[pool].n_items = n_items;
            } else {
                if self.pools[pool].n_items > 0 {
                    self.settle()?;
                }
                self.pools[pool].clear(&prepare)?;
            }
        }
        // The lane's own memory.
        let stream = lane.stream.clone();
        let n_segments = self.segments.len();
        let n_walks = n_segments * n_trials;
        let n_words = self.data.n_words;
        let room = (self.budget / 4 / self.lanes.len()) / (n_walks.max(1) * size_of::<Trade>());
        let capacity = room.max(4).min(self.options.most_trades).min(self.data.longest + 1).max(1);

        let inputs: Vec<Input> = self
            .places
            .iter()
            .map(|place| match place {
                Place::Source(at) => {
                    Input { pool: self.data.sources.ptr().add(*at), stride: 0, item_of: DevicePtr::NULL }
                }
                Place::Pool { pool, key } if written[*pool] => Input {
                    pool: self.pools[*pool].ptr(),
                    stride: self.pools[*pool].stride as u64,
                    item_of: spans[*key].item_of,
                },
                Place::Pool { .. } => Input { pool: DevicePtr::NULL, stride: 0, item_of: DevicePtr::NULL },
            })
            .collect();
        let base = lane.parcel.room(&device, self.parcel_bytes())?;
        let mut parcel = Parcel::new(base);
        let slots = parcel.put(&inputs);
        let price = |which: usize| self.data.sources.ptr().add(self.data.prices[which]);
        let world = parcel.put(&[World {
            start: self.data.start.ptr(),
            word_start: self.data.word_start.ptr(),
            timeframe: self.data.timeframe.ptr(),
            scalars: lane.scalars.ptr(),
            slots,
            open: price(0),
            high: price(1),
            low: price(2),
            close: price(3),
            day: self.data.day.ptr(),
            day_start: self.data.day_start.ptr(),
            day_close: self.data.day_close.ptr(),
            calendar: self.data.calendar.ptr(),
            n_symbols: self.data.n_symbols as u32,
            n_bars: self.data.n_bars as u32,
            n_words: n_words as u32,
            n_trials: n_trials as u32,
            n_rows: n_rows as u32,
            unused: 0,
        }]);
        let modes = self.factor_modes(lane, spans)?;
        let mut factors = Vec::new();
        let mut conditions = Vec::new();
        let n_factors: usize = modes.iter().map(Vec::len).sum();
        lane.masks.resize_with(self.conditions.len(), Grow::default);
        let level_of = lane.level_of.room(&device, n_factors * n_rows)?;
        let levels = lane.levels.room(&device, n_factors * LEVELS)?;
        let mut number = 0;
        for ((condition, modes), masks) in self.conditions.iter().zip(&modes).zip(&mut lane.masks) {
            let of: Vec<FactorMask> = condition
                .factors
                .iter()
                .zip(modes)
                .map(|(factor, mode)| {
                    let key = match (mode, factor.threshold) {
                        (&LEVEL, Some((series, ..))) => series,
                        _ => factor.key,
                    };
                    let mask = FactorMask {
                        pool: lane.factor_masks[number].ptr(),
                        item_of: spans[key].item_of,
                        level_of: level_of.add(number * n_rows),
                        mode: *mode,
                        unused: 0,
                    };
                    number += 1;
                    mask
                })
                .collect();
            factors.push((parcel.put(&of), of));
            let pool = masks.room(&device, spans[condition.whole].all * n_words)?;
            conditions.push(ConditionMask { pool, item_of: spans[condition.whole].item_of });
        }
        let on_device = parcel.put(&conditions);
        send_parcel(&device, &stream, &mut lane.parcels[1], &lane.parcel, &parcel)?;

        // Columns of another lane may still be computed.
        if let Some(columns) = &self.columns_done {
            stream.wait(columns)?;
        }
        lane.marks.push((Stage::Columns, stream.record()?));
        for slot in 0..self.plan.slots.len() {
            self.compute_slot(slot, lane, spans, n_rows, &inputs, world)?;
        }
        let columns_done = stream.record()?;
        lane.marks.push((Stage::Masks, columns_done.clone()));
        self.columns_done = Some(columns_done);

        // Masks of the factors, then of the conditions.
        let mut number = 0;
        for (c, modes) in modes.iter().enumerate() {
            for (f, mode) in modes.iter().enumerate() {
                self.compute_factor(lane, spans, n_rows, (c, f, number, *mode), world, levels)?;
                number += 1;
            }
            let span = spans[self.conditions[c].whole];
            let args = MaskArgs {
                world,
                tiles: self.data.tiles.ptr(),
                factors: factors[c].0,
                row: span.row,
                out: conditions[c].pool,
                first: 0,
                count: span.all as u32,
                n_tiles: self.data.n_tiles as u32,
                n_factors: modes.len() as u32,
            };
            let kernel = self.kernel(&format!("condition_{c}"))?;
            stream.launch(&kernel, warps(span.all * self.data.n_tiles), &args)?;
        }

        let mut daily = [DevicePtr::NULL; 2];
        for role in [Role::Train, Role::Test] {
            if self.is_pooled(role) {
                let n_returns = n_segments / self.segments_each() * self.n_days * n_trials;
                daily[role as usize] = lane.daily[role as usize].room(&device, n_returns)?;
                if let Some(buffer) = lane.daily[role as usize].buffer() {
                    stream.fill(buffer, 0, n_returns, 0)?;
                }
                lane.pooled[role as usize].room(&device, n_trials)?;
                pinned(&device, &mut lane.host_pooled[role as usize], n_trials)?;
            }
        }
        let n_books = n_trials * (n_segments / self.segments_each());
        let walk = WalkArgs {
            world,
            segments: self.data.segments.ptr(),
            conditions: on_device,
            trades: lane.trades.room(&device, n_walks * capacity)?,
            states: lane.walks.room(&device, n_walks)?,
            n_segments: n_segments as u32,
            capacity: capacity as u32,
        };
        let book = BookArgs {
            world,
            segments: walk.segments,
            trades: walk.trades,
            walks: walk.states,
            books: lane.books.room(&device, n_books)?,
            tallies: lane.tallies.room(&device, n_walks)?,
            daily,
            n_open: lane.n_open.room(&device, 1)?,
            n_segments: n_segments as u32,
            capacity: capacity as u32,
            n_each: self.segments_each() as u32,
            n_days: self.n_days as u32,
        };
        pinned(&device, &mut lane.host_tallies, n_walks)?;
        pinned(&device, &mut lane.host_n_open, 1)?;
        if let Some(books) = lane.books.buffer() {
            stream.fill(books, 0, n_books, 0)?;
        }
        let kernel = self.kernel("begin_walks")?;
        stream.launch(&kernel, threads(n_walks), &walk)?;
        self.round(lane, n_trials, &walk, &book)?;
        self.results(lane, n_trials)?;
        let done = stream.record()?;
        let marks = std::mem::take(&mut lane.marks);
        Ok(Batch { lane: at, n_trials, walk, book, done, marks })
    }

    /// Segments that one thread books: one, unless the daily returns of all of them would take too much memory; then all.
    pub(super) fn segments_each(&self) -> usize {
        let is_pooled = self.is_pooled(Role::Train) || self.is_pooled(Role::Test);
        let bytes = self.segments.len() * self.n_days * 8;
        if !is_pooled || bytes <= self.options.most_daily_bytes { 1 } else { self.segments.len() }
    }

    fn is_pooled(&self, role: Role) -> bool {
        self.roles.iter().filter(|of| **of == role).count() > 1
    }

    /// How the truth of each factor of each condition is found.
    fn factor_modes(&mut self, lane: &mut Lane, spans: &[Span]) -> Result<Vec<Vec<u32>>, GpuError> {
        let mask_bytes = self.data.n_words * 8;
        let most = self.budget / 16 / self.lanes.len();
        let mut out = Vec::new();
        let mut number = 0;
        for condition in &self.conditions {
            let n_wholes = spans[condition.whole].all;
            let mut modes = Vec::new();
            for factor in &condition.factors {
                let n_items = spans[factor.key].all;
                let mut mode = EVALUATE;
                let mut n_masks = 0;
                if condition.factors.len() > 1
                    && n_items * SHARERS <= n_wholes
                    && n_items * mask_bytes <= most
                {
                    (mode, n_masks) = (EXACT, n_items);
                } else if let Some((series, ..)) = factor.threshold {
                    let n = spans[series].all * LEVELS;
                    if 2 * n <= n_wholes && n * mask_bytes <= most {
                        (mode, n_masks) = (LEVEL, n);
                    }
                }
                if lane.factor_masks.len() == number {
                    lane.factor_masks.push(Grow::default());
                }
                lane.factor_masks[number].room(&self.device, n_masks * self.data.n_words)?;
                number += 1;
                modes.push(mode);
            }
            out.push(modes);
        }
        Ok(out)
    }

    /// Computes the mask of one factor: exact, or at levels.
    fn compute_factor(
        &mut self,
        lane: &Lane,
        spans: &[Span],
        n_rows: usize,
        (c, f, number, mode): (usize, usize, usize, u32),
        world: DevicePtr<World>,
        levels: DevicePtr<f64>,
    ) -> Result<(), GpuError> {
        let out = lane.factor_masks[number].ptr();
        let n_tiles = self.data.n_tiles;
        let factor = &self.conditions[c].factors[f];
        match (mode, factor.threshold) {
            (EXACT, _) => {
                let span = spans[factor.key];
                let args = MaskArgs {
                    world,
                    tiles: self.data.tiles.ptr(),
                    factors: DevicePtr::NULL,
                    row: span.row,
                    out,
                    first: 0,
                    count: span.all as u32,
                    n_tiles: n_tiles as u32,
                    n_factors: 0,
                };
                let kernel = self.kernel(&format!("factor_{c}_{f}"))?;
                lane.stream.launch(&kernel, warps(span.all * n_tiles), &args)
            }
            (LEVEL, Some((series, scalar, above))) => {
                let levels = levels.add(number * LEVELS);
                let spread = SpreadArgs {
                    threshold: lane.scalars.ptr().add(scalar * n_rows),
                    levels,
                    level_of: lane.level_of.ptr().add(number * n_rows),
                    n_rows: n_rows as u32,
                    above: u32::from(above),
                };
                let (spread_levels, pick_level) = (self.kernel("spread_levels")?, self.kernel("pick_level")?);
                lane.stream.launch(&spread_levels, Launch::blocks(1, 1024), &spread)?;
                lane.stream.launch(&pick_level, threads(n_rows), &spread)?;
                let span = spans[series];
                let args = LevelArgs {
                    world,
                    tiles: self.data.tiles.ptr(),
                    row: span.row,
                    levels,
                    out,
                    first: 0,
                    count: span.all as u32,
                    n_tiles: n_tiles as u32,
                    unused: 0,
                };
                let kernel = self.kernel(&format!("levels_{c}_{f}"))?;
                lane.stream.launch(&kernel, warps(span.all * n_tiles), &args)
            }
            _ => Ok(()),
        }
    }

    /// Computes the new items of one slot.
    fn compute_slot(
        &mut self,
        slot: usize,
        lane: &mut Lane,
        spans: &[Span],
        n_rows: usize,
        inputs: &[Input],
        world: DevicePtr<World>,
    ) -> Result<(), GpuError> {
        let Place::Pool { pool, key } = self.places[slot] else { return Ok(()) };
        let span = spans[key];
        if span.n_new() == 0 || inputs[slot].pool.is_null() {
            return Ok(());
        }
        let stream = lane.stream.clone();
        let (first, count) = (span.known as u32, span.n_new());
        let (n_tiles, tiles) = (self.data.n_tiles, self.data.tiles.ptr());
        let out = self.pools[pool].ptr();
        match self.plan.slots[slot].clone() {
            Slot::Source(_) => Ok(()),
            Slot::Formula { .. } => {
                let args = FormulaArgs {
                    world,
                    tiles,
                    row: span.row,
                    out,
                    first,
                    count: count as u32,
                    n_tiles: n_tiles as u32,
                    unused: 0,
                };
                let kernel = self.kernel(&format!("formula_{slot}"))?;
                stream.launch(&kernel, warps(count * n_tiles), &args)
            }
            Slot::Mask { .. } => {
                let args = MaskArgs {
                    world,
                    tiles,
                    factors: DevicePtr::NULL,
                    row: span.row,
                    out: out.cast(),
                    first,
                    count: count as u32,
                    n_tiles: n_tiles as u32,
                    n_factors: 0,
                };
                let kernel = self.kernel(&format!("mask_{slot}"))?;
                stream.launch(&kernel, warps(count * n_tiles), &args)
            }
            Slot::Call { func, inputs: of, arguments, .. } => {
                let name = code::kernel_name(func);
                let function = columns::function(name)
                    .ok_or_else(|| GpuError::NoKernel { kernel: name.into(), module: "columns".into() })?;
                let (n_bars, n_symbols) = (self.data.n_bars, self.data.n_symbols);
                let scratch_stride = (function.scratch_columns * (n_bars + n_symbols)).next_multiple_of(2);
                let at_once = SCRATCH_BYTES.checked_div(scratch_stride * 8).unwrap_or(count).clamp(1, count);
                let scratch = lane.scratch.room(&self.device, at_once * scratch_stride)?;
                let nothing = Input { pool: DevicePtr::NULL, stride: 0, item_of: DevicePtr::NULL };
                let mut input = [nothing; 3];
                input.iter_mut().zip(&of).for_each(|(to, slot)| *to = inputs[*slot]);
                let mut argument = [DevicePtr::NULL; 3];
                for (to, scalar) in argument.iter_mut().zip(&arguments) {
                    *to = lane.scalars.ptr().add(scalar * n_rows);
                }
                for begin in (0..count).step_by(at_once) {
                    let some = at_once.min(count - begin);
                    let args = ColumnArgs {
                        inputs: input,
                        arguments: argument,
                        trial: span.row.add(begin),
                        out,
                        out_stride: self.pools[pool].stride as u64,
                        start: self.data.start.ptr(),
                        word_start: self.data.word_start.ptr(),
                        scratch,
                        scratch_stride: scratch_stride as u64,
                        first: first + begin as u32,
                        count: some as u32,
                        n_symbols: n_symbols as u32,
                        n_bars: n_bars as u32,
                    };
                    for pass in function.passes {
                        let kernel = self.kernel(pass.kernel)?;
                        let launch = pass.launch(
                            some as u32,
                            n_symbols as u32,
                            n_bars as u32,
                            self.data.longest as u32,
                        );
                        stream.launch(&kernel, launch, &args)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Walks on until every buffer is full or every walk is done, and books what was found.
    fn round(
        &mut self,
        lane: &mut Lane,
        n_trials: usize,
        walk: &WalkArgs,
        book: &BookArgs,
    ) -> Result<(), GpuError> {
        let n_walks = n_trials * self.segments.len();
        let (walk_kernel, book_kernel) = (self.kernel("walk")?, self.kernel("book")?);
        if let Some(n_open) = lane.n_open.buffer() {
            lane.stream.fill(n_open, 0, 1, 0)?;
        }
        lane.marks.push((Stage::Walk, lane.stream.record()?));
        let block = 128;
        let n_blocks = (n_walks * code::WALK_LANES).div_ceil(block);
        lane.stream.launch(&walk_kernel, Launch::blocks(n_blocks as u32, block as u32), walk)?;
        lane.marks.push((Stage::Book, lane.stream.record()?));
        let few = 64;
        let n_books = n_walks / self.segments_each();
        lane.stream.launch(&book_kernel, Launch::blocks(n_books.div_ceil(few) as u32, few as u32), book)?;
        if let (Some(n_open), Some(host)) = (lane.n_open.buffer(), lane.host_n_open.as_mut()) {
            lane.stream.download(n_open, 0, host, 0, 1)?;
        }
        Ok(())
    }

    /// Pools the segments, and takes all sums back to the host.
    fn results(&mut self, lane: &mut Lane, n_trials: usize) -> Result<(), GpuError> {
        lane.marks.push((Stage::Download, lane.stream.record()?));
        let n_walks = n_trials * self.segments.len();
        for role in [Role::Train, Role::Test] {
            if !self.is_pooled(role) {
                continue;
            }
            let at = role as usize;
            let (first_day, last_day) = self.days_of[at];
            let args = PoolArgs {
                segments: self.data.segments.ptr(),
                tallies: lane.tallies.ptr(),
                daily: lane.daily[at].ptr(),
                pooled: lane.pooled[at].ptr(),
                n_segments: self.segments.len() as u32,
                n_trials: n_trials as u32,
                role: at as u32,
                first_day,
                last_day,
                n_symbols: self.n_symbols_of[at],
                n_each: self.segments_each() as u32,
                n_days: self.n_days as u32,
            };
            let kernel = self.kernel("pool")?;
            lane.stream.launch(&kernel, threads(n_trials), &args)?;
            if let (Some(pooled), Some(host)) = (lane.pooled[at].buffer(), lane.host_pooled[at].as_mut()) {
                lane.stream.download(pooled, 0, host, 0, n_trials)?;
            }
        }
        if let (Some(tallies), Some(host)) = (lane.tallies.buffer(), lane.host_tallies.as_mut()) {
            lane.stream.download(tallies, 0, host, 0, n_walks)?;
        }
        Ok(())
    }

    /// Keeps when the stages of a part ran.
    fn note_times(&mut self, batch: &Batch, lane: &mut Lane) -> Result<(), GpuError> {
        let mut marks = batch.marks.iter().map(|(stage, event)| (*stage, event)).collect::<Vec<_>>();
        marks.push((Stage::Wait, &batch.done));
        let end = lane.stream.record()?;
        marks.extend(lane.marks.iter().map(|(stage, event)| (*stage, event)));
        marks.push((Stage::Wait, &end));
        end.wait()?;
        for pair in marks.windows(2) {
            let (stage, begin) = pair[0];
            if stage != Stage::Wait {
                let span = StageSpan {
                    stage,
                    lane: batch.lane,
                    begin_ms: begin.since_ms(&self.base)?,
                    end_ms: pair[1].1.since_ms(&self.base)?,
                };
                self.spans.push(span);
            }
        }
        lane.marks.clear();
        Ok(())
    }

    /// Waits for a part, and reads what came of it.
    pub(super) fn finish(&mut self, batch: Batch) -> Result<Vec<Outcome>, GpuError> {
        let Some(mut lane) = self.lanes[batch.lane].take() else { return Ok(Vec::new()) };
        let result = self.walk_on(&mut lane, &batch).and_then(|()| self.read(&mut lane, &batch));
        lane.idle = true;
        self.lanes[batch.lane] = Some(lane);
        result
    }

    /// Lets everything under way come to its end, so that columns may be moved or forgotten.
    fn settle(&mut self) -> Result<(), GpuError> {
        let under_way = std::mem::take(&mut self.under_way);
        let mut result = Ok(());
        for batch in &under_way {
            if let (true, Some(mut lane)) = (result.is_ok(), self.lanes[batch.lane].take()) {
                result = self.walk_on(&mut lane, batch);
                self.lanes[batch.lane] = Some(lane);
            }
        }
        self.under_way = under_way;
        result.and_then(|()| self.device.synchronize())
    }

    /// Walks on until every trial is done: some have more trades than there is room for at once.
    fn walk_on(&mut self, lane: &mut Lane, batch: &Batch) -> Result<(), GpuError> {
        batch.done.wait()?;
        let n_open = |lane: &Lane| match &lane.host_n_open {
            Some(host) => host.as_slice().map(|n_open| n_open[0]),
            None => Ok(0),
        };
        if n_open(lane)? > 0 {
            while n_open(lane)? > 0 {
                self.round(lane, batch.n_trials, &batch.walk, &batch.book)?;
            }
            self.results(lane, batch.n_trials)?;
        }
        Ok(())
    }

    fn read(&mut self, lane: &mut Lane, batch: &Batch) -> Result<Vec<Outcome>, GpuError> {
        self.note_times(batch, lane)?;
        let n_trials = batch.n_trials;
        let tallies = read(&lane.host_tallies)?;
        let pooled = [read(&lane.host_pooled[0])?, read(&lane.host_pooled[1])?];
        let of_role = |role: Role, segments: &[Tally], trial: usize| {
            let mut of =
                self.roles.iter().zip(segments).filter(|(of, _)| **of == role).map(|(_, tally)| *tally);
            let first = of.next()?;
            Some(if of.next().is_none() { first } else { pooled[role as usize][trial] })
        };
        let outcome = |trial: usize| {
            let segments: Vec<Tally> =
                (0..self.segments.len()).map(|segment| tallies[segment * n_trials + trial]).collect();
            Outcome {
                train: of_role(Role::Train, &segments, trial).unwrap_or_default(),
                test: of_role(Role::Test, &segments, trial),
                segments,
            }
        };
        Ok((0..n_trials).into_par_iter().map(outcome).collect())
    }
}

/// What was downloaded; nothing where nothing was.
fn read<T: Pod>(pinned: &Option<Pinned<T>>) -> Result<&[T], GpuError> {
    pinned.as_ref().map_or(Ok(&[]), Pinned::as_slice)
}

fn upload<T: Pod>(
    stream: &Stream,
    from: Option<&Pinned<T>>,
    to: &Grow<T>,
    len: usize,
) -> Result<(), GpuError> {
    match (from, to.buffer()) {
        (Some(from), Some(to)) => stream.upload(from, 0, to, 0, len),
        _ => Ok(()),
    }
}

fn send_parcel(
    device: &tidemill_gpu::Device,
    stream: &Stream,
    staging: &mut Option<Pinned<u8>>,
    to: &Grow<u8>,
    parcel: &Parcel,
) -> Result<(), GpuError> {
    let bytes = parcel.bytes();
    pinned(device, staging, bytes.len())?.as_mut_slice()?[..bytes.len()].copy_from_slice(bytes);
    upload(stream, staging.as_ref(), to, bytes.len())
}
