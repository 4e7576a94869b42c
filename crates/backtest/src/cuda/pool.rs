//! A pool of columns that stay on the device from batch to batch.

use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Stream};

use super::plan::PoolPlan;

/// The columns of one shape, one per distinct tuple of scalars met so far.
pub(super) struct Pool {
    /// As in [`PoolPlan`].
    stride: usize,
    n_scalars: usize,
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
    pub(super) fn new(plan: &PoolPlan) -> Self {
        Self {
            stride: plan.stride,
            n_scalars: plan.n_scalars,
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

    pub(super) fn table(&self) -> DevicePtr<u32> {
        self.table.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr)
    }

    /// Its places are a power of two: the bits of a hash that count.
    pub(super) fn table_mask(&self) -> u32 {
        self.n_places.saturating_sub(1) as u32
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

    /// Takes in so many items in all; those that are known stay. They move, so nothing that reads them may be under way if there is no room.
    pub(super) fn reserve_items(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_items: usize,
    ) -> Result<(), GpuError> {
        if !self.has_room(n_items) {
            let n_room = n_items + (n_items / 2).min(self.n_items);
            let items = device.alloc(n_room * self.stride)?;
            if let (Some(old), true) = (&self.items, self.n_items > 0) {
                stream.copy(old, 0, &items, 0, self.n_items * self.stride)?;
                stream.synchronize()?;
            }
            self.items = Some(items);
            self.n_room = n_room;
        }
        self.n_items = n_items;
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
