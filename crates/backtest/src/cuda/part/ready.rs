//! Takes the memory of a part before there is one.

use tidemill_gpu::{GpuError, Stream};

use super::{Part, Staged, UnderWay};
use crate::cuda::column_store::ColumnStore;
use crate::cuda::memory::Memory;

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
        let plan = self.plan.clone();
        self.memory.structs.room(plan.device(), plan.struct_bytes())?;
        let n_words = plan.data.walked().n_words;
        for masks in &mut self.memory.masks {
            masks.room(plan.device(), self.n_rows * n_words)?;
        }
        self.reserve_pooled()?;
        self.reserve_blocks()?;
        self.reserve_walks()?;
        self.reserve_books()?;
        Ok((self.stream, self.memory))
    }
}
