//! One part of a batch on its way through the device.

use std::ops::Range;

use tidemill_gpu::{DevicePtr, Event, GpuError, Launch};
use tidemill_market::indicator::device::Input;
use tidemill_search::Points;

use super::lane::{Lane, pinned, send_parcel, threads, warps};
use super::layout::{BookArgs, ConditionMask, FactorMask, LEVEL, LEVELS, MaskArgs, Trade, WalkArgs, World};
use super::pool::{Grow, Parcel, Pool};
use super::tuples::Span;
use super::{DeviceEngine, Place, Stage, code};
use crate::segment::Role;

/// A part that was begun.
pub(super) struct Batch {
    pub(super) lane: usize,
    /// Which submission it is a part of.
    pub(super) job: u64,
    pub(super) n_trials: usize,
    pub(super) walk: WalkArgs,
    pub(super) book: BookArgs,
    pub(super) done: Event,
    /// When each stage begins; each ends with the beginning of the next.
    pub(super) marks: Vec<(Stage, Event)>,
}

impl Batch {
    pub(super) fn is_done(&self) -> Result<bool, GpuError> {
        self.done.is_done()
    }
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
            day_low: self.data.day_low.ptr(),
            day_high: self.data.day_high.ptr(),
            day_end: self.data.day_end.ptr(),
            extremes: self.data.extremes.ptr(),
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
        let mut groups = Vec::new();
        let n_factors: usize = modes.iter().map(Vec::len).sum();
        lane.masks.resize_with(self.conditions.len(), Grow::default);
        let level_of = lane.level_of.room(&device, n_factors * n_rows)?;
        let levels = lane.levels.room(&device, n_factors * LEVELS)?;
        // Of any condition: items are at most rows, and groups are fewer than items.
        lane.groups.room(&device, 3 * n_rows)?;
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
            factors.push(parcel.put(&of));
            let n_wholes = spans[condition.whole].all;
            let sharers = self.sharers(condition, &of, spans, &inputs, n_wholes);
            groups.push((parcel.put(&sharers), sharers));
            let pool = masks.room(&device, n_wholes * n_words)?;
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
            let order = self.group(lane, span, groups[c].0, &groups[c].1)?;
            let args = MaskArgs {
                world,
                tiles: self.data.tiles.ptr(),
                factors: factors[c],
                row: span.row,
                order,
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
        let n_sums = 2 * self.n_blocks * n_trials;
        if n_sums > 0 {
            lane.blocks.room(&device, n_sums)?;
            pinned(&device, &mut lane.host_blocks, n_sums)?;
            if let Some(blocks) = lane.blocks.buffer() {
                stream.fill(blocks, 0, n_sums, 0)?;
            }
        }
        // Of several segments the pool makes the blocks.
        let has_blocks = n_sums > 0 && !self.is_pooled(Role::Train);
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
            blocks: if has_blocks { lane.blocks.ptr() } else { DevicePtr::NULL },
            block_of: self.data.block_of.ptr(),
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
        Ok(Batch { lane: at, job: 0, n_trials, walk, book, done, marks })
    }

    /// Segments that one thread books: one, unless the daily returns of all of them would take too much memory; then all.
    pub(super) fn segments_each(&self) -> usize {
        let is_pooled = self.is_pooled(Role::Train) || self.is_pooled(Role::Test);
        let bytes = self.segments.len() * self.n_days * 8;
        if !is_pooled || bytes <= self.options.most_daily_bytes { 1 } else { self.segments.len() }
    }

    pub(super) fn is_pooled(&self, role: Role) -> bool {
        self.roles.iter().filter(|of| **of == role).count() > 1
    }

    /// Walks on until every buffer is full or every walk is done, and books what was found.
    pub(super) fn round(
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
        self.note_running(lane, n_walks)?;
        lane.marks.push((Stage::Walk, lane.stream.record()?));
        let block = 128;
        let n_blocks = (n_walks * code::WALK_LANES).div_ceil(block);
        lane.stream.launch(&walk_kernel, Launch::blocks(n_blocks as u32, block as u32), walk)?;
        self.record_round(lane, n_trials, walk.capacity as usize)?;
        lane.marks.push((Stage::Book, lane.stream.record()?));
        let few = 64;
        let n_books = n_walks / self.segments_each();
        lane.stream.launch(&book_kernel, Launch::blocks(n_books.div_ceil(few) as u32, few as u32), book)?;
        if let (Some(n_open), Some(host)) = (lane.n_open.buffer(), lane.host_n_open.as_mut()) {
            lane.stream.download(n_open, 0, host, 0, 1)?;
        }
        Ok(())
    }
}
