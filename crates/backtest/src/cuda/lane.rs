//! The memory and the stream of one part under way, and what moves between host and device.

use bytemuck::Pod;
use tidemill_gpu::{Event, GpuError, Launch, Pinned, Stream};

use super::Stage;
use super::layout::{BookState, Trade, WARPS, WalkState};
use super::pool::{Grow, Parcel};
use crate::tally::Tally;

/// Threads of a block where nothing asks for another number.
const THREADS: u32 = 256;

/// The memory and the stream of one part under way; used again for the next.
pub(super) struct Lane {
    pub(super) stream: Stream,
    pub(super) points: Option<Pinned<f64>>,
    pub(super) device_points: Grow<f64>,
    pub(super) scalars: Grow<f64>,
    /// For each key: items, places and rows.
    pub(super) rows: Grow<u32>,
    pub(super) own_tables: Grow<u32>,
    pub(super) own_keys: Grow<f64>,
    pub(super) parcel: Grow<u8>,
    pub(super) parcels: [Option<Pinned<u8>>; 2],
    pub(super) spans: Grow<u32>,
    pub(super) host_spans: Option<Pinned<u32>>,
    pub(super) masks: Vec<Grow<u64>>,
    pub(super) factor_masks: Vec<Grow<u64>>,
    pub(super) levels: Grow<f64>,
    pub(super) level_of: Grow<u32>,
    /// Groups, their counts, and the order of the items of a condition.
    pub(super) groups: Grow<u32>,
    pub(super) scratch: Grow<f64>,
    pub(super) trades: Grow<Trade>,
    pub(super) walks: Grow<WalkState>,
    pub(super) books: Grow<BookState>,
    pub(super) tallies: Grow<Tally>,
    pub(super) daily: [Grow<f64>; 2],
    pub(super) pooled: [Grow<Tally>; 2],
    /// Sums by block: block, sum and square, trial.
    pub(super) blocks: Grow<f64>,
    pub(super) n_open: Grow<u32>,
    pub(super) host_tallies: Option<Pinned<Tally>>,
    pub(super) host_pooled: [Option<Pinned<Tally>>; 2],
    pub(super) host_blocks: Option<Pinned<f64>>,
    pub(super) host_n_open: Option<Pinned<u32>>,
    pub(super) marks: Vec<(Stage, Event)>,
    pub(super) idle: bool,
}

impl Lane {
    pub(super) fn new(stream: Stream) -> Self {
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
            groups: Grow::default(),
            scratch: Grow::default(),
            trades: Grow::default(),
            walks: Grow::default(),
            books: Grow::default(),
            tallies: Grow::default(),
            daily: [Grow::default(), Grow::default()],
            pooled: [Grow::default(), Grow::default()],
            blocks: Grow::default(),
            n_open: Grow::default(),
            host_tallies: None,
            host_pooled: [None, None],
            host_blocks: None,
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

/// Host memory with room for so many values.
pub(super) fn pinned<'a, T: Pod>(
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

pub(super) fn threads(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(THREADS as usize).max(1) as u32, THREADS)
}

pub(super) fn warps(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(WARPS as usize).max(1) as u32, 32 * WARPS)
}

/// What was downloaded; nothing where nothing was.
pub(super) fn read<T: Pod>(pinned: &Option<Pinned<T>>) -> Result<&[T], GpuError> {
    pinned.as_ref().map_or(Ok(&[]), Pinned::as_slice)
}

pub(super) fn upload<T: Pod>(
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

pub(super) fn send_parcel(
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
