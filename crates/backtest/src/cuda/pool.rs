//! Device memory that grows: plain buffers, and pools of columns that stay from batch to batch.

use bytemuck::Pod;
use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Stream};

/// A buffer that is replaced by a larger one when needed; its contents are lost then.
pub(super) struct Grow<T: Pod> {
    buffer: Option<DeviceBuffer<T>>,
    len: usize,
}

impl<T: Pod> Default for Grow<T> {
    fn default() -> Self {
        Self { buffer: None, len: 0 }
    }
}

impl<T: Pod> Grow<T> {
    /// Room for so many values, and where they begin.
    pub(super) fn room(&mut self, device: &Device, len: usize) -> Result<DevicePtr<T>, GpuError> {
        if self.len < len.max(1) {
            // The old one goes first, so that both need not fit.
            self.buffer = None;
            self.len = 0;
            let wanted = len.max(1) + len / 8;
            self.buffer = Some(device.alloc(wanted)?);
            self.len = wanted;
        }
        Ok(self.ptr())
    }

    pub(super) fn ptr(&self) -> DevicePtr<T> {
        self.buffer.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr)
    }

    pub(super) fn buffer(&self) -> Option<&DeviceBuffer<T>> {
        self.buffer.as_ref()
    }
}

/// The columns of one shape, one per distinct tuple of scalars met so far.
pub(super) struct Pool {
    pub(super) shape: u32,
    /// Numbers of 8 bytes in one item.
    pub(super) stride: usize,
    /// Scalars in a tuple.
    pub(super) n_scalars: usize,
    items: Option<DeviceBuffer<f64>>,
    /// Items that there is room for.
    n_room: usize,
    /// Items that are known.
    pub(super) n_items: usize,
    table: Option<DeviceBuffer<u32>>,
    n_places: usize,
    keys: Option<DeviceBuffer<f64>>,
    n_keys: usize,
}

impl Pool {
    pub(super) fn new(shape: u32, stride: usize, n_scalars: usize) -> Self {
        Self {
            shape,
            stride,
            n_scalars,
            items: None,
            n_room: 0,
            n_items: 0,
            table: None,
            n_places: 0,
            keys: None,
            n_keys: 0,
        }
    }

    pub(super) fn ptr(&self) -> DevicePtr<f64> {
        self.items.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr)
    }

    pub(super) fn table(&self) -> (DevicePtr<u32>, u32) {
        let ptr = self.table.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr);
        (ptr, self.n_places.saturating_sub(1) as u32)
    }

    pub(super) fn keys(&self) -> DevicePtr<f64> {
        self.keys.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr)
    }

    /// Memory that the items take, if there are so many.
    pub(super) fn bytes(&self, n_items: usize) -> usize {
        n_items.max(self.n_room) * self.stride * 8
    }

    /// Whether so many tuples more have room in the table.
    pub(super) fn has_places(&self, n_more: usize) -> bool {
        self.n_places >= 2 * (self.n_items + n_more)
    }

    /// Whether there is room for so many items.
    pub(super) fn has_room(&self, n_items: usize) -> bool {
        self.n_room >= n_items
    }

    /// Forgets all items. Nothing that reads them may be under way.
    pub(super) fn clear(&mut self, stream: &Stream) -> Result<(), GpuError> {
        self.n_items = 0;
        if let Some(table) = &self.table {
            stream.fill(table, 0, self.n_places, 0xff)?;
        }
        Ok(())
    }

    /// Room in the table for so many tuples more.
    ///
    /// A table that is too small is emptied, and the items with it: that happens a few times in a study. Nothing that reads them may be under way then.
    pub(super) fn reserve_tuples(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_more: usize,
    ) -> Result<(), GpuError> {
        let n_tuples = self.n_items + n_more;
        if !self.has_places(n_more) {
            let n_places = (4 * n_tuples).next_power_of_two().max(1024);
            self.table = None;
            self.table = Some(device.alloc(n_places)?);
            self.n_places = n_places;
            self.clear(stream)?;
        }
        if self.n_keys < n_tuples * self.n_scalars {
            let n_keys = 2 * n_tuples * self.n_scalars;
            let keys = device.alloc(n_keys)?;
            if let (Some(old), true) = (&self.keys, self.n_items > 0) {
                stream.copy(old, 0, &keys, 0, self.n_items * self.n_scalars)?;
                stream.synchronize()?;
            }
            self.keys = Some(keys);
            self.n_keys = n_keys;
        }
        Ok(())
    }

    /// Room for so many items; those that were computed stay. They move, so nothing that reads them may be under way if they do.
    pub(super) fn reserve_items(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_items: usize,
        n_computed: usize,
    ) -> Result<(), GpuError> {
        if self.has_room(n_items) {
            return Ok(());
        }
        let n_room = n_items + (n_items / 2).min(n_computed);
        let items = device.alloc(n_room * self.stride)?;
        if let (Some(old), true) = (&self.items, n_computed > 0) {
            stream.copy(old, 0, &items, 0, n_computed * self.stride)?;
            stream.synchronize()?;
        }
        self.items = Some(items);
        self.n_room = n_room;
        Ok(())
    }

    /// Forgets all items and gives their memory back. Nothing that reads them may be under way.
    pub(super) fn release(&mut self) {
        self.items = None;
        self.n_room = 0;
        self.n_items = 0;
        self.table = None;
        self.n_places = 0;
    }
}

/// Small structs that travel together: each is put in its place, and all are uploaded at once.
pub(super) struct Parcel {
    bytes: Vec<u8>,
    base: DevicePtr<u8>,
}

impl Parcel {
    /// An empty parcel that will lie at `base`.
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

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
