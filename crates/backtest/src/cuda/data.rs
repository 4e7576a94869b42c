//! Constant data on the device: bars with their days, other bars that are read, and the segments.

use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError};
use tidemill_market::align::NO_BAR;
use tidemill_market::indicator::device::Input;

use super::layout::{Segment, Tile, World};
use crate::exec::engine::Engine;
use crate::exec::grid::Grids;
use crate::exec::symbol::Symbol;
use crate::graph::{Node, Source as Series};
use crate::plan::{Plan, Route, Slot};

/// Bars of a tile: what one warp writes of a mask at a time; where there is much to write, and where there is little.
pub(super) const TILE: usize = 8192;
const SHORT_TILE: usize = 1024;

/// Warps that keep a device busy. Fewer would each take long, so they take short tiles.
const ENOUGH_WARPS: usize = 8192;

/// How the series of one grid lie one after the other.
pub(super) struct GridData {
    pub(super) start: DeviceBuffer<u32>,
    pub(super) word_start: DeviceBuffer<u32>,
    pub(super) timeframe: DeviceBuffer<u32>,
    tiles: DeviceBuffer<Tile>,
    short_tiles: DeviceBuffer<Tile>,
    /// Series: one for each symbol, or that of one symbol.
    pub(super) n_symbols: usize,
    pub(super) n_bars: usize,
    pub(super) n_words: usize,
    /// Bars of the longest series.
    pub(super) longest: usize,
}

/// The bars of all symbols by the time at which they close.
pub(super) struct Sections {
    pub(super) bars: DeviceBuffer<u32>,
    pub(super) start: DeviceBuffer<u32>,
    pub(super) n_times: usize,
}

/// The data of all symbols, one after the other.
pub(super) struct Data {
    /// By grid of the plan; the first is that of the bars that are walked.
    pub(super) grids: Vec<GridData>,
    /// By route of the plan: the bar that each bar reads, counted through all series of a grid.
    pub(super) routes: Vec<DeviceBuffer<u32>>,
    /// Where the strategy compares symbols.
    pub(super) sections: Option<Sections>,
    pub(super) sources: DeviceBuffer<f64>,
    /// By slot, where a series of the data begins among the sources.
    pub(super) source_at: Vec<usize>,
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
    /// Where open, high, low and close begin among the sources.
    prices: [usize; 4],
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
        let grids = Grids::new(plan, symbols, &engine.extra, &engine.program.graph.sources());
        let mut day_start = vec![0_u32];
        let mut days = Days::default();
        for (at, symbol) in symbols.iter().enumerate() {
            day_start.push(day_start[at] + symbol.day_close.len() as u32);
            days.day.extend_from_slice(&symbol.day);
            days.day_close.extend_from_slice(&symbol.day_close);
            days.day_low.extend_from_slice(&symbol.day_low);
            days.day_high.extend_from_slice(&symbol.day_high);
            days.day_end.extend_from_slice(&symbol.day_end);
            days.extremes.extend([symbol.lowest, symbol.highest]);
            days.calendar.extend_from_slice(&symbol.calendar);
        }
        let (sources, source_at, prices) = sources(engine, plan, &grids);
        let grid_data = |grid| GridData::new(device, &grids.all_series(grid, symbols), timeframes);
        let route =
            |(at, route): (usize, &Route)| device.alloc_from(&counted_through(at, route, &grids, symbols));
        let compares = plan.slots.iter().any(|slot| matches!(slot, Slot::Over { .. }));
        Ok(Self {
            grids: plan.grids.iter().copied().map(grid_data).collect::<Result<_, _>>()?,
            routes: plan.routes.iter().enumerate().map(route).collect::<Result<_, _>>()?,
            sections: if compares { Some(Sections::new(device, &grids, symbols)?) } else { None },
            source_at,
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
            prices,
        })
    }

    /// The bars that are walked.
    pub(super) fn walked(&self) -> &GridData {
        &self.grids[0]
    }

    /// What the kernels of a part see of a grid, with the part's own scalars and columns. Prices and days are those of the bars that are
    /// walked, which no kernel asks for on another grid.
    pub(super) fn world(
        &self,
        grid: &GridData,
        scalars: DevicePtr<f64>,
        slots: DevicePtr<Input>,
        n_trials: usize,
        n_rows: usize,
    ) -> World {
        let price = |which: usize| self.sources.ptr().add(self.prices[which]);
        World {
            start: grid.start.ptr(),
            word_start: grid.word_start.ptr(),
            timeframe: grid.timeframe.ptr(),
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
            n_symbols: grid.n_symbols as u32,
            n_bars: grid.n_bars as u32,
            n_words: grid.n_words as u32,
            n_trials: n_trials as u32,
            n_rows: n_rows as u32,
            unused: 0,
        }
    }
}

impl GridData {
    fn new(device: &Device, series: &[&Symbol<'_>], timeframes: &[i64]) -> Result<Self, GpuError> {
        let (mut start, mut word_start) = (vec![0_u32], vec![0_u32]);
        for (at, series) in series.iter().enumerate() {
            let n = series.bars.len();
            start.push(start[at] + n as u32);
            word_start.push(word_start[at] + n.div_ceil(64) as u32);
        }
        let place_of = |ms: i64| timeframes.iter().position(|timeframe| *timeframe == ms).unwrap_or(0) as u32;
        let timeframe: Vec<u32> = series.iter().map(|series| place_of(series.bars.timeframe_ms)).collect();
        let n_bars: Vec<usize> = series.iter().map(|series| series.bars.len()).collect();
        Ok(Self {
            start: device.alloc_from(&start)?,
            word_start: device.alloc_from(&word_start)?,
            timeframe: device.alloc_from(&timeframe)?,
            tiles: device.alloc_from(&tiles(&n_bars, TILE))?,
            short_tiles: device.alloc_from(&tiles(&n_bars, SHORT_TILE))?,
            n_symbols: series.len(),
            n_bars: start[series.len()] as usize,
            n_words: word_start[series.len()] as usize,
            longest: n_bars.into_iter().max().unwrap_or(0),
        })
    }

    /// The tiles in which so many items are written, and how many they are.
    pub(super) fn tiles(&self, n_items: usize) -> (DevicePtr<Tile>, u32) {
        let tiles = if n_items * self.tiles.len() < ENOUGH_WARPS { &self.short_tiles } else { &self.tiles };
        (tiles.ptr(), tiles.len() as u32)
    }
}

impl Sections {
    fn new(device: &Device, grids: &Grids<'_>, symbols: &[Symbol<'_>]) -> Result<Self, GpuError> {
        let sections = grids.sections(symbols);
        Ok(Self {
            bars: device.alloc_from(&sections.bars)?,
            start: device.alloc_from(&sections.start)?,
            n_times: sections.start.len() - 1,
        })
    }
}

/// The bar that each bar of a grid reads by a route, both counted through all series of their grids.
fn counted_through(at: usize, route: &Route, grids: &Grids<'_>, symbols: &[Symbol<'_>]) -> Vec<u32> {
    let readers = match route.to.symbol {
        Some(own) => own as usize..own as usize + 1,
        None => 0..symbols.len(),
    };
    let mut out = Vec::new();
    let mut first = 0;
    for reader in readers {
        let known = grids.route(at, reader).iter();
        out.extend(known.map(|bar| if *bar == NO_BAR { NO_BAR } else { first + bar }));
        // The bars of one symbol are read by all.
        if route.from.symbol.is_none() {
            first += grids.series(route.from, symbols, reader).bars.len() as u32;
        }
    }
    out
}

/// The series that the strategy reads, in the order of its slots, then the prices; where that of each slot begins, and where each price does.
fn sources(engine: &Engine<'_>, plan: &Plan, grids: &Grids<'_>) -> (Vec<f64>, Vec<usize>, [usize; 4]) {
    let mut sources: Vec<f64> = Vec::new();
    let mut append = |grid: usize, source: Series| {
        let at = sources.len();
        for series in grids.all_series(plan.grids[grid], &engine.symbols) {
            sources.extend_from_slice(series.source(source));
        }
        at
    };
    let slots = plan.slots.iter().zip(&plan.grid_of);
    let source_at = slots.map(|(slot, grid)| match slot {
        Slot::Source(source) => append(*grid, *source),
        _ => 0,
    });
    let source_at = source_at.collect();
    let prices = [Series::Open, Series::High, Series::Low, Series::Close].map(|source| append(0, source));
    (sources, source_at, prices)
}

fn segments(engine: &Engine<'_>) -> Vec<Segment> {
    let segment = |segment: &crate::segment::Segment| Segment {
        symbol: segment.symbol as u32,
        first: segment.range.start as u32,
        end: segment.range.end as u32,
        role: segment.role as u32,
    };
    engine.segments().iter().map(segment).collect()
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

/// The bars of series that have so many, cut into tiles of some length.
fn tiles(n_bars: &[usize], length: usize) -> Vec<Tile> {
    let of_symbol = |(at, n_bars): (usize, usize)| {
        (0..n_bars).step_by(length).map(move |first| Tile {
            symbol: at as u32,
            first: first as u32,
            end: (first + length).min(n_bars) as u32,
        })
    };
    n_bars.iter().copied().enumerate().flat_map(of_symbol).collect()
}
