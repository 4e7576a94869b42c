//! A pool of columns that stay on the device from batch to batch.

use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Stream};

use super::plan::PoolPlan;

/// A new table has room for so many batches like the one that it is made for, if all of their tuples are new.
const ROUNDS: usize = 128;

/// And so many places for that, at most.
const USUAL_PLACES: usize = 1 << 20;

/// Most memory that is taken for items to come.
const SPARE_BYTES: usize = 512 << 20;

/// The columns of one shape, one per distinct tuple of scalars met so far.
pub(super) struct Pool {
    /// As in [`PoolPlan`].
    stride: usize,
    n_scalars: usize,
    /// Items that would fit the memory.
    most_items: usize,
    items: Option<DeviceBuffer<f64>>,
    /// Items that there is room for.
    n_room: usize,
    /// Items that are known.
    pub(super) n_items: usize,
    /// Those of them that came last.
    n_new: usize,
    table: Option<DeviceBuffer<u32>>,
    n_places: usize,
    keys: Option<DeviceBuffer<f64>>,
}

impl Pool {
    /// An empty one, on a device with so much memory for all.
    pub(super) fn new(plan: &PoolPlan, budget: usize) -> Self {
        Self {
            stride: plan.stride,
            n_scalars: plan.n_scalars,
            most_items: budget / (8 * plan.stride.max(1)),
            items: None,
            n_room: 0,
            n_items: 0,
            n_new: 0,
            table: None,
            n_places: 0,
            keys: None,
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

    /// Whether items would move to make room for so many.
    pub(super) fn moves(&self, n_items: usize) -> bool {
        let stays = |items: &DeviceBuffer<f64>| items.can_grow(n_items * self.stride);
        !self.has_room(n_items) && !self.items.as_ref().is_none_or(stays)
    }

    /// Forgets all items. Nothing that reads them may be under way.
    pub(super) fn clear(&mut self, stream: &Stream) -> Result<(), GpuError> {
        (self.n_items, self.n_new) = (0, 0);
        if let Some(table) = &self.table {
            stream.fill(table, 0, self.n_places, 0xff)?;
        }
        Ok(())
    }

    /// Room in the table for so many tuples more.
    ///
    /// A table that is too small is emptied, and the items with it. Nothing that reads them may be under way then.
    pub(super) fn reserve_tuples(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_more: usize,
    ) -> Result<(), GpuError> {
        if self.has_places(n_more) {
            return Ok(());
        }
        let usual = (2 * ROUNDS * n_more).min(USUAL_PLACES).min(2 * self.most_items);
        let n_places = (4 * (self.n_items + n_more)).max(usual).next_power_of_two().max(1024);
        (self.table, self.keys) = (None, None);
        self.table = Some(device.alloc(n_places)?);
        self.keys = Some(device.alloc(n_places / 2 * self.n_scalars)?);
        self.n_places = n_places;
        self.clear(stream)
    }

    /// Takes in so many items in all, and so many bytes at most for items to come; those that are known stay. Where they
    /// [move](Self::moves), nothing that reads them may be under way.
    pub(super) fn reserve_items(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_items: usize,
        most_spare: usize,
    ) -> Result<(), GpuError> {
        if !self.has_room(n_items) {
            let len = n_items * self.stride;
            let spare = ((n_items / 2).min(self.n_items) * self.stride).min(most_spare / 8);
            match self.items.as_mut().filter(|items| items.can_grow(len)) {
                Some(items) => grow(items, len, spare.min(SPARE_BYTES / 8))?,
                None => self.move_items(device, stream, len, spare)?,
            }
            self.n_room = self.items.as_ref().map_or(0, |items| items.len() / self.stride.max(1));
        }
        self.n_new = n_items.saturating_sub(self.n_items);
        self.n_items = n_items;
        Ok(())
    }

    /// Room for the first items, so many of them if that takes no more than `most` bytes.
    pub(super) fn get_ready(
        &mut self,
        device: &Device,
        stream: &Stream,
        n_items: usize,
        most: usize,
    ) -> Result<(), GpuError> {
        let n_items = n_items.min(most / (8 * self.stride.max(1)));
        if !self.has_room(n_items) {
            self.move_items(device, stream, n_items * self.stride, 0)?;
            self.n_room = n_items;
        }
        Ok(())
    }

    /// Room for as many items more as came last, where those that are known can stay: memory is put behind them while the device works, and the
    /// next part need not wait for it. How many bytes that took, `most` of them; none if there is not enough memory.
    pub(super) fn make_room(&mut self, most: usize) -> usize {
        let (n_items, before) = (self.n_items + self.n_new, self.bytes(0));
        let spare = (n_items / 2).min(self.n_items);
        let len = (n_items + spare) * self.stride;
        if !self.has_room(n_items)
            && len * 8 <= before + most.min(SPARE_BYTES)
            && let Some(items) = self.items.as_mut().filter(|items| items.can_grow(len))
            && items.grow(len).is_ok()
        {
            self.n_room = items.len() / self.stride.max(1);
        }
        self.bytes(0) - before
    }

    /// The items in a new buffer, which has addresses for all items that fit the memory if that is possible.
    fn move_items(
        &mut self,
        device: &Device,
        stream: &Stream,
        len: usize,
        spare: usize,
    ) -> Result<(), GpuError> {
        let mut items = device.growable(len.max(self.most_items * self.stride))?;
        if items.can_grow(len) {
            items.grow(len)?;
        } else {
            items = device.alloc(len + spare)?;
        }
        if let (Some(old), true) = (&self.items, self.n_items > 0) {
            stream.copy(old, 0, &items, 0, self.n_items * self.stride)?;
            stream.synchronize()?;
        }
        self.items = Some(items);
        Ok(())
    }

    /// Forgets all items and gives their memory back. Nothing that reads them may be under way.
    pub(super) fn release(&mut self) {
        self.items = None;
        self.n_room = 0;
        (self.n_items, self.n_new) = (0, 0);
        (self.table, self.keys) = (None, None);
        self.n_places = 0;
    }
}

/// Room for `len` values where they are, and some to spare if there is memory.
fn grow(items: &mut DeviceBuffer<f64>, len: usize, spare: usize) -> Result<(), GpuError> {
    if items.can_grow(len + spare) && items.grow(len + spare).is_ok() {
        return Ok(());
    }
    items.grow(len)
}
