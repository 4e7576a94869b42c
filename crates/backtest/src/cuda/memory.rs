//! The memory of one part, used again for the next one of its lane, and what moves between it and the host.

use std::ops::Range;

use bytemuck::Pod;
use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Pinned, Stream};

use super::layout::{BookState, Trade, WalkState};
use crate::tally::Tally;

/// The memory of one part.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) points: Mirror<f64>,
    pub(super) scalars: GrowableBuffer<f64>,
    /// For each key: items, places and rows.
    pub(super) rows: GrowableBuffer<u32>,
    /// Tables and tuples of the keys that have no pool.
    pub(super) own_tables: GrowableBuffer<u32>,
    pub(super) own_keys: GrowableBuffer<f64>,
    /// The small structs that kernels read.
    pub(super) structs: Mirror<u8>,
    /// Numbers of items of the pools and of the keys without one; then, for each key, those known before and after.
    pub(super) spans: Mirror<u32>,
    /// By condition.
    pub(super) masks: Vec<GrowableBuffer<u64>>,
    /// Those of all factors, one after the other: how many each has changes from part to part.
    pub(super) factor_masks: GrowableBuffer<u64>,
    pub(super) levels: GrowableBuffer<f64>,
    pub(super) level_of: GrowableBuffer<u32>,
    /// Groups, their counts, and the order of the items of a condition or of the trials.
    pub(super) groups: GrowableBuffer<u32>,
    /// Bars that are set in the masks of a condition: condition, item. Only where walks are ordered.
    pub(super) n_set: GrowableBuffer<u32>,
    /// What columns need only while they are computed: on the lane's stream, and on the one beside it.
    pub(super) scratch: GrowableBuffer<f64>,
    pub(super) scratch_beside: GrowableBuffer<f64>,
    pub(super) trades: GrowableBuffer<Trade>,
    pub(super) walks: GrowableBuffer<WalkState>,
    pub(super) books: GrowableBuffer<BookState>,
    pub(super) tallies: Mirror<Tally>,
    /// By role, as is what is pooled.
    pub(super) daily: [GrowableBuffer<f64>; 2],
    pub(super) pooled: [Mirror<Tally>; 2],
    /// Sums by block: block, sum and square, trial.
    pub(super) blocks: Mirror<f64>,
    pub(super) n_open: Mirror<u32>,
}

/// From so many bytes on a buffer grows where it is.
pub(super) const LARGE: usize = 1 << 20;

/// A buffer that grows when needed. One that cannot grow where it is is replaced by a larger one, which waits for the device; its contents are
/// lost then.
pub(super) struct GrowableBuffer<T: Pod>(Option<DeviceBuffer<T>>);

impl<T: Pod> Default for GrowableBuffer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Pod> GrowableBuffer<T> {
    /// Room for so many values, and where they begin.
    pub(super) fn room(&mut self, device: &Device, len: usize) -> Result<DevicePtr<T>, GpuError> {
        let wanted = len.max(1) + len / 8;
        match &mut self.0 {
            Some(buffer) if buffer.len() >= len.max(1) => {}
            Some(buffer) if buffer.can_grow(wanted) => buffer.grow(wanted)?,
            _ => {
                // The old one goes first, so that both need not fit.
                self.0 = None;
                self.0 = Some(Self::new_buffer(device, wanted)?);
            }
        }
        Ok(self.ptr())
    }

    /// One with so many values. A large one has addresses for many more.
    fn new_buffer(device: &Device, len: usize) -> Result<DeviceBuffer<T>, GpuError> {
        if len * size_of::<T>() >= LARGE {
            let mut buffer = device.growable(16 * len)?;
            if buffer.can_grow(len) {
                buffer.grow(len)?;
                return Ok(buffer);
            }
        }
        device.alloc(len)
    }

    pub(super) fn ptr(&self) -> DevicePtr<T> {
        self.0.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr)
    }

    pub(super) fn buffer(&self) -> Option<&DeviceBuffer<T>> {
        self.0.as_ref()
    }

    /// Sets every byte of some values.
    pub(super) fn fill(&self, stream: &Stream, range: Range<usize>, byte: u8) -> Result<(), GpuError> {
        self.0.as_ref().map_or(Ok(()), |buffer| stream.fill(buffer, range.start, range.len(), byte))
    }
}

/// A buffer of the device with its copy on the host.
pub(super) struct Mirror<T: Pod> {
    device: GrowableBuffer<T>,
    host: Option<Pinned<T>>,
}

impl<T: Pod> Default for Mirror<T> {
    fn default() -> Self {
        Self { device: GrowableBuffer::default(), host: None }
    }
}

impl<T: Pod> Mirror<T> {
    /// Room for so many values on both sides, and where they begin on the device.
    pub(super) fn room(&mut self, device: &Device, len: usize) -> Result<DevicePtr<T>, GpuError> {
        if self.host.as_ref().is_none_or(|pinned| pinned.len() < len) {
            self.host = None;
            self.host = Some(device.pinned(len.max(1) + len / 8)?);
        }
        self.device.room(device, len)
    }

    pub(super) fn ptr(&self) -> DevicePtr<T> {
        self.device.ptr()
    }

    pub(super) fn fill(&self, stream: &Stream, len: usize, byte: u8) -> Result<(), GpuError> {
        self.device.fill(stream, 0..len, byte)
    }

    /// The copy on the host, after the transfers that use it; nothing where there never was room.
    pub(super) fn host(&self) -> Result<&[T], GpuError> {
        self.host.as_ref().map_or(Ok(&[]), Pinned::as_slice)
    }

    pub(super) fn host_mut(&mut self) -> Result<&mut [T], GpuError> {
        self.host.as_mut().map_or(Ok(&mut []), Pinned::as_mut_slice)
    }

    /// Sends the first values to the device.
    pub(super) fn upload(&self, stream: &Stream, len: usize) -> Result<(), GpuError> {
        match (&self.host, self.device.buffer()) {
            (Some(host), Some(device)) => stream.upload(host, 0, device, 0, len),
            _ => Ok(()),
        }
    }

    /// Fetches values from the device, to the same places.
    pub(super) fn download(&mut self, stream: &Stream, range: Range<usize>) -> Result<(), GpuError> {
        match (&mut self.host, self.device.buffer()) {
            (Some(host), Some(device)) => {
                stream.download(device, range.start, host, range.start, range.len())
            }
            _ => Ok(()),
        }
    }
}

impl Mirror<u8> {
    /// Sends structs to the device. They were packed for its address, so the room was made before.
    pub(super) fn send(&mut self, stream: &Stream, structs: &PackedStructs) -> Result<(), GpuError> {
        let bytes = &structs.bytes;
        // Where there is not enough room the upload is an error.
        if let Some(host) = self.host_mut()?.get_mut(..bytes.len()) {
            host.copy_from_slice(bytes);
        }
        self.upload(stream, bytes.len())
    }
}

/// Small structs that are uploaded at once. They point to each other, so each is told where it will lie.
pub(super) struct PackedStructs {
    bytes: Vec<u8>,
    base: DevicePtr<u8>,
}

impl PackedStructs {
    /// None yet; they will lie at `base`.
    pub(super) fn new(base: DevicePtr<u8>) -> Self {
        Self { bytes: Vec::new(), base }
    }

    /// Adds values; where they will lie on the device.
    pub(super) fn put<T: Pod>(&mut self, values: &[T]) -> DevicePtr<T> {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.base.add(self.bytes.len());
        self.bytes.extend_from_slice(bytemuck::cast_slice(values));
        at.cast()
    }
}
