//! The columns that stay on the device from batch to batch, shared by all parts.

use std::sync::Arc;

use tidemill_gpu::{DevicePtr, Event, GpuError, Purpose, Stream};
use tidemill_market::indicator::device::Input;

use super::code;
use super::part::{Span, UnderWay};
use super::plan::{DevicePlan, Place};
use super::pool::Pool;
use crate::plan::Slot;

/// Something is shared where at least this many use it on average.
pub(super) const SHARERS: usize = 4;

/// The first columns, and scratch memory for them, get one of so many shares of the memory before their number is known.
pub(super) const READY_SHARE: usize = 16;

/// Pools of columns, with the tables that find them.
pub(super) struct ColumnStore {
    plan: Arc<DevicePlan>,
    pools: Vec<Pool>,
    /// By slot, in which round it is chosen whether its pool is written.
    rounds: Vec<usize>,
    /// Finds distinct tuples, batch after batch.
    stream: Stream,
    /// When the columns sent last are computed.
    computed: Option<Event>,
}

impl ColumnStore {
    pub(super) fn new(plan: Arc<DevicePlan>) -> Result<Self, GpuError> {
        let pools = plan.keys.pools.iter().map(|pool| Pool::new(pool, plan.budget)).collect();
        // What the host waits for goes before what is under way.
        let stream = plan.context.pool().of(Purpose::Prepare)?;
        let round = |(slot, of): (usize, &Slot)| match of {
            _ if !code::is_flexible(&plan.plan, slot) => 0,
            Slot::Call { func, .. } if func.at.is_some() => 1,
            _ => 2,
        };
        let rounds = plan.plan.slots.iter().enumerate().map(round).collect();
        Ok(Self { plan, pools, rounds, stream, computed: None })
    }

    /// The stream that looks tuples up.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn pool(&self, pool: usize) -> &Pool {
        &self.pools[pool]
    }

    pub(super) fn n_pools(&self) -> usize {
        self.pools.len()
    }

    /// Items of each pool.
    pub(super) fn n_items(&self) -> impl Iterator<Item = usize> {
        self.pools.iter().map(|pool| pool.n_items)
    }

    /// Forgets all columns. Nothing that reads them may be under way.
    pub(super) fn clear(&mut self) -> Result<(), GpuError> {
        self.pools.iter_mut().try_for_each(|pool| pool.clear(&self.stream))
    }

    /// Forgets all columns and gives their memory back. Nothing that reads them may be under way.
    pub(super) fn release(&mut self) {
        self.pools.iter_mut().for_each(Pool::release);
    }

    /// Room in the tables for the tuples of so many rows.
    pub(super) fn reserve_tuples(&mut self, n_rows: usize, under_way: &mut UnderWay) -> Result<(), GpuError> {
        for (pool, plan) in self.pools.iter_mut().zip(&self.plan.keys.pools) {
            let n_more = n_rows * plan.keys.len();
            if !pool.has_places(n_more) {
                under_way.settle()?;
            }
            pool.reserve_tuples(self.plan.device(), &self.stream, n_more)?;
        }
        Ok(())
    }

    /// Room for the columns of a first part of so many rows, if there is memory for many times as much.
    pub(super) fn get_ready(&mut self, n_rows: usize) -> Result<(), GpuError> {
        let most = self.plan.budget / READY_SHARE / self.pools.len().max(1);
        let (device, stream) = (self.plan.device(), &self.stream);
        self.pools.iter_mut().try_for_each(|pool| pool.get_ready(device, stream, n_rows, most))
    }

    /// Which pools are written out as columns; none if what must be written does not fit the memory.
    ///
    /// What a function reads as a whole must be. Of the others, extremes are where there is room, because one value costs a whole window;
    /// what comes from prefix sums only where enough rows share what is new. What earlier batches have left costs nothing.
    pub(super) fn choose_written(&self, spans: &[Span], n_rows: usize) -> Option<Vec<bool>> {
        let most = self.most_bytes();
        let mut written = vec![false; self.pools.len()];
        let mut bytes = 0;
        for round in 0..3 {
            for (slot, place) in self.plan.keys.places.iter().enumerate() {
                let Place::Pool { pool, .. } = *place else { continue };
                if written[pool] || self.rounds[slot] != round {
                    continue;
                }
                let n_items = self.plan.keys.n_items(pool, spans);
                let n_new = n_items.saturating_sub(self.pools[pool].n_items);
                let more = self.pools[pool].bytes(n_items);
                if round == 0 || bytes + more <= most && (round == 1 || n_new * SHARERS <= n_rows) {
                    written[pool] = true;
                    bytes += more;
                }
            }
        }
        (bytes <= most).then_some(written)
    }

    /// Memory that columns may take.
    fn most_bytes(&self) -> usize {
        self.plan.budget / 3 * 2
    }

    /// Memory that all pools would take, if all were written.
    pub(super) fn bytes(&self, spans: &[Span]) -> usize {
        let bytes = |(at, pool): (usize, &Pool)| pool.bytes(self.plan.keys.n_items(at, spans));
        self.pools.iter().enumerate().map(bytes).sum()
    }

    /// Room for the columns of a part in the pools that are written; the others forget theirs.
    pub(super) fn reserve_items(
        &mut self,
        spans: &[Span],
        written: &[bool],
        under_way: &mut UnderWay,
    ) -> Result<(), GpuError> {
        let n_items = |at: usize| self.plan.keys.n_items(at, spans);
        let of_written = self.pools.iter().enumerate().filter(|(at, _)| written[*at]);
        let taken: usize = of_written.map(|(at, pool)| pool.bytes(n_items(at))).sum();
        // What is taken for items to come must leave the columns where they fit the next time.
        let mut spare = self.most_bytes().saturating_sub(taken);
        for (at, pool) in self.pools.iter_mut().enumerate() {
            if written[at] {
                let n_items = n_items(at);
                if pool.moves(n_items) {
                    under_way.settle()?;
                }
                let before = pool.bytes(n_items);
                pool.reserve_items(self.plan.device(), &self.stream, n_items, spare)?;
                spare = spare.saturating_sub(pool.bytes(n_items) - before);
            } else {
                if pool.n_items > 0 {
                    under_way.settle()?;
                }
                pool.clear(&self.stream)?;
            }
        }
        Ok(())
    }

    /// Room for the columns of the next part, if it has as many new ones as the last one and there is memory.
    pub(super) fn make_room(&mut self) {
        let taken: usize = self.pools.iter().map(|pool| pool.bytes(0)).sum();
        let mut spare = self.most_bytes().saturating_sub(taken);
        for pool in &mut self.pools {
            spare -= pool.make_room(spare);
        }
    }

    /// Where kernels find the column of each slot; nowhere if its pool is not written.
    pub(super) fn inputs(&self, spans: &[Span], written: &[bool]) -> Vec<Input> {
        let input = |place: &Place| match *place {
            Place::Source(at) => {
                Input { pool: self.plan.data.sources.ptr().add(at), stride: 0, item_of: DevicePtr::NULL }
            }
            Place::Pool { pool, key } if written[pool] => Input {
                pool: self.pools[pool].ptr(),
                stride: self.plan.keys.pools[pool].stride as u64,
                item_of: spans[key].item_of,
            },
            Place::Pool { .. } => Input::default(),
        };
        self.plan.keys.places.iter().map(input).collect()
    }

    /// When the columns that were sent last are computed, by this or another part.
    pub(super) fn computed(&self) -> Option<&Event> {
        self.computed.as_ref()
    }

    /// Notes when the columns that were sent are computed.
    pub(super) fn set_computed(&mut self, computed: Event) {
        self.computed = Some(computed);
    }
}
