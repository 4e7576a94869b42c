//! Takes the memory of a part before there is one.

use tidemill_gpu::{GpuError, Stream};
use tidemill_market::indicator::device::stretches;

use super::column::SCRATCH_BYTES;
use super::{Part, Staged, UnderWay};
use crate::cuda::column_store::{ColumnStore, READY_SHARE, SHARERS};
use crate::cuda::memory::{LARGE, Memory};
use crate::plan::Slot;

impl Part<Staged> {
    /// Takes what memory its size alone asks for, for the parts that follow on its lane.
    pub(in crate::cuda) fn get_ready(
        mut self,
        columns: &mut ColumnStore,
        under_way: &mut UnderWay,
    ) -> Result<(Stream, Memory), GpuError> {
        self.reserve_scalars()?;
        columns.reserve_tuples(self.n_rows, under_way)?;
        columns.get_ready(self.n_rows)?;
        self.reserve_tables()?;
        self.reserve_factors()?;
        self.reserve_scratch()?;
        let plan = self.plan.clone();
        self.memory.structs.room(plan.device(), plan.struct_bytes())?;
        let n_words = plan.data.walked().n_words;
        for masks in &mut self.memory.masks {
            masks.room(plan.device(), self.n_rows * n_words)?;
        }
        // How many masks of factors there are changes from part to part; a large buffer grows without waiting for the device.
        let n_words = (self.n_rows * n_words / SHARERS).max(LARGE / size_of::<u64>());
        self.memory.factor_masks.room(plan.device(), n_words)?;
        self.reserve_pooled()?;
        self.reserve_blocks()?;
        self.reserve_walks()?;
        self.reserve_books()?;
        Ok((self.stream, self.memory))
    }

    /// Scratch memory for the columns of a part whose tuples are all new, if that is a small share of all memory.
    fn reserve_scratch(&mut self) -> Result<(), GpuError> {
        let Self { plan, memory, n_rows, share, .. } = self;
        let values = |(slot, grid): (&Slot, &usize)| {
            let (Slot::Call { func, .. }, grid) = (slot, &plan.data.grids[*grid]) else { return 0 };
            let stretches = stretches(*n_rows as u32, grid.n_symbols as u32, grid.longest as u32);
            *n_rows * func.scratch_len(grid.n_bars, grid.n_symbols, stretches)
        };
        let most = plan.plan.slots.iter().zip(&plan.plan.grid_of).map(values).max().unwrap_or(0);
        let len = most.min(SCRATCH_BYTES.min(*share / READY_SHARE) / size_of::<f64>());
        memory.scratch.room(plan.device(), len)?;
        memory.scratch_beside.room(plan.device(), len)?;
        Ok(())
    }
}
