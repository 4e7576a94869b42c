//! Constant data on the device: bars with their days, and the segments.

use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError};
use tidemill_market::indicator::device::Input;

use super::layout::{Segment, Tile, World};
use crate::exec::engine::Engine;
use crate::graph::{Node, Source as Series};
use crate::plan::{Plan, Slot};

/// Bars of a tile: what one warp writes of a mask at a time; where there is much to write, and where there is little.
const TILE: usize = 8192;
const SHORT_TILE: usize = 1024;

/// Warps that keep a device busy. Fewer would each take long, so they take short tiles.
const ENOUGH_WARPS: usize = 8192;

/// The data of all symbols, one after the other.
pub(super) struct Data {
    pub(super) start: DeviceBuffer<u32>,
    pub(super) word_start: DeviceBuffer<u32>,
    pub(super) timeframe: DeviceBuffer<u32>,
    pub(super) sources: DeviceBuffer<f64>,
    day: DeviceBuffer<u32>,
    day_start: DeviceBuffer<u32>,
    day_close: DeviceBuffer<f64>,
    day_low: DeviceBuffer<f64>,
    day_high: DeviceBuffer<f64>,
    day_end: DeviceBuffer<u32>,
    extremes: DeviceBuffer<f64>,
    calendar: DeviceBuffer<u32>,
    pub(super) block_of: DeviceBuffer<u32>,
    pub(super) segments: DeviceBuffer<Segment>,
    tiles: DeviceBuffer<Tile>,
    short_tiles: DeviceBuffer<Tile>,
    /// Where open, high, low and close begin among the sources.
    prices: [usize; 4],
    pub(super) n_symbols: usize,
    pub(super) n_bars: usize,
    pub(super) n_words: usize,
    /// Bars of the longest symbol.
    pub(super) longest: usize,
}

/// The lists of a calendar and of days, of all symbols.
#[derive(Default)]
struct Days {
    day: Vec<u32>,
    day_close: Vec<f64>,
    day_low: Vec<f64>,
    day_high: Vec<f64>,
    day_end: Vec<u32>,
    extremes: Vec<f64>,
    calendar: Vec<u32>,
}

impl Data {
    /// Takes the data of an engine to a device.
    pub(super) fn new(
        device: &Device,
        engine: &Engine<'_>,
        plan: &Plan,
        timeframes: &[i64],
    ) -> Result<Self, GpuError> {
        let symbols = &engine.symbols;
        let (mut start, mut word_start, mut day_start) = (vec![0_u32], vec![0_u32], vec![0_u32]);
        let mut days = Days::default();
        for (at, symbol) in symbols.iter().enumerate() {
            let n = symbol.bars.len();
            start.push(start[at] + n as u32);
            word_start.push(word_start[at] + n.div_ceil(64) as u32);
            day_start.push(day_start[at] + symbol.day_close.len() as u32);
            days.day.extend_from_slice(&symbol.day);
            days.day_close.extend_from_slice(&symbol.day_close);
            days.day_low.extend_from_slice(&symbol.day_low);
            days.day_high.extend_from_slice(&symbol.day_high);
            days.day_end.extend_from_slice(&symbol.day_end);
            days.extremes.extend([symbol.lowest, symbol.highest]);
            days.calendar.extend_from_slice(&symbol.calendar);
        }
        let place_of = |ms: i64| timeframes.iter().position(|timeframe| *timeframe == ms).unwrap_or(0) as u32;
        let timeframe: Vec<u32> = symbols.iter().map(|symbol| place_of(symbol.bars.timeframe_ms)).collect();
        let (sources, prices) = sources(engine, plan);
        Ok(Self {
            start: device.alloc_from(&start)?,
            word_start: device.alloc_from(&word_start)?,
            timeframe: device.alloc_from(&timeframe)?,
            sources: device.alloc_from(&sources)?,
            day: device.alloc_from(&days.day)?,
            day_start: device.alloc_from(&day_start)?,
            day_close: device.alloc_from(&days.day_close)?,
            day_low: device.alloc_from(&days.day_low)?,
            day_high: device.alloc_from(&days.day_high)?,
            day_end: device.alloc_from(&days.day_end)?,
            extremes: device.alloc_from(&days.extremes)?,
            calendar: device.alloc_from(&days.calendar)?,
            block_of: device.alloc_from(&engine.blocks.block_of)?,
            segments: device.alloc_from(&segments(engine))?,
            tiles: device.alloc_from(&tiles(engine, TILE))?,
            short_tiles: device.alloc_from(&tiles(engine, SHORT_TILE))?,
            prices,
            n_symbols: symbols.len(),
            n_bars: start[symbols.len()] as usize,
            n_words: word_start[symbols.len()] as usize,
            longest: symbols.iter().map(|symbol| symbol.bars.len()).max().unwrap_or(0),
        })
    }

    /// The tiles in which so many items are written, and how many they are.
    pub(super) fn tiles(&self, n_items: usize) -> (DevicePtr<Tile>, u32) {
        let tiles = if n_items * self.tiles.len() < ENOUGH_WARPS { &self.short_tiles } else { &self.tiles };
        (tiles.ptr(), tiles.len() as u32)
    }

    /// What the kernels of a part see of the data, with the part's own scalars and columns.
    pub(super) fn world(
        &self,
        scalars: DevicePtr<f64>,
        slots: DevicePtr<Input>,
        n_trials: usize,
        n_rows: usize,
    ) -> World {
        let price = |which: usize| self.sources.ptr().add(self.prices[which]);
        World {
            start: self.start.ptr(),
            word_start: self.word_start.ptr(),
            timeframe: self.timeframe.ptr(),
            scalars,
            slots,
            open: price(0),
            high: price(1),
            low: price(2),
            close: price(3),
            day: self.day.ptr(),
            day_start: self.day_start.ptr(),
            day_close: self.day_close.ptr(),
            day_low: self.day_low.ptr(),
            day_high: self.day_high.ptr(),
            day_end: self.day_end.ptr(),
            extremes: self.extremes.ptr(),
            calendar: self.calendar.ptr(),
            n_symbols: self.n_symbols as u32,
            n_bars: self.n_bars as u32,
            n_words: self.n_words as u32,
            n_trials: n_trials as u32,
            n_rows: n_rows as u32,
            unused: 0,
        }
    }
}

/// The series that the strategy reads, in the order of its slots, then the prices; and where each of these begins.
fn sources(engine: &Engine<'_>, plan: &Plan) -> (Vec<f64>, [usize; 4]) {
    let mut sources: Vec<f64> = Vec::new();
    let mut append = |series: Series| {
        let at = sources.len();
        for symbol in &engine.symbols {
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
    (sources, prices)
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

/// The timeframes of the data, ascending; where the strategy does not ask for the time, one stands for all.
pub(super) fn timeframes(engine: &Engine<'_>, plan: &Plan) -> Vec<i64> {
    let uses_time = plan.graph.nodes.iter().any(|node| matches!(node, Node::Bars(_)));
    let mut timeframes: Vec<i64> = engine.symbols.iter().map(|symbol| symbol.bars.timeframe_ms).collect();
    timeframes.sort_unstable();
    timeframes.dedup();
    if !uses_time {
        timeframes.truncate(1);
    }
    timeframes
}

/// The bars of all symbols, cut into tiles of some length.
fn tiles(engine: &Engine<'_>, length: usize) -> Vec<Tile> {
    let of_symbol = |(at, n_bars): (usize, usize)| {
        (0..n_bars).step_by(length).map(move |first| Tile {
            symbol: at as u32,
            first: first as u32,
            end: (first + length).min(n_bars) as u32,
        })
    };
    engine.symbols.iter().map(|symbol| symbol.bars.len()).enumerate().flat_map(of_symbol).collect()
}
