//! Computes the columns of tuples that are new.

use tidemill_gpu::{DevicePtr, Event, GpuError};
use tidemill_market::indicator::device::{ColumnArgs, Shape, stretches};

use super::{Computed, Described, Part, Span};
use crate::cuda::Stage;
use crate::cuda::column_store::ColumnStore;
use crate::cuda::data::GridData;
use crate::cuda::formula::is_chosen;
use crate::cuda::layout::{FormulaArgs, GatherArgs, MaskArgs, OverArgs, RecursionArgs};
use crate::cuda::plan::Place;
use crate::graph::{Func, Over};
use crate::plan::{Slot, Tape};

/// Memory for what columns need only while they are computed.
pub(super) const SCRATCH_BYTES: usize = 256 << 20;

/// Warps of a recursion that are worth having on a device at a time.
const RECURSION_WARPS: u64 = 2_048;

/// The fewest bars of a stretch of a recursion.
const LEAST_STRETCH: u32 = 1_024;

/// Columns under way on the second stream of a lane.
struct Beside {
    done: Event,
    /// By slot, whether it must wait for them.
    readers: Vec<bool>,
}

impl Part<Described> {
    /// Computes the columns of new tuples in the pools that are written.
    pub(in crate::cuda) fn compute_columns(
        mut self,
        columns: &mut ColumnStore,
    ) -> Result<Part<Computed>, GpuError> {
        // What reads sources alone needs no column of another lane, which may still be computed.
        let new = (0..self.plan.plan.slots.len()).filter(|slot| self.is_new(*slot));
        let (early, late): (Vec<usize>, Vec<usize>) = new.partition(|slot| self.reads_sources(*slot));
        let mut beside = self.compute_early(early, columns)?;
        if let Some(computed) = columns.computed() {
            self.mark(Stage::Wait)?;
            self.stream.wait(computed)?;
        }
        for slot in late {
            self.mark(Stage::Columns)?;
            if let Some(beside) = beside.take_if(|beside| beside.readers[slot]) {
                self.stream.wait(&beside.done)?;
            }
            self.compute_slot(slot, columns)?;
        }
        if let Some(beside) = beside {
            self.mark(Stage::Columns)?;
            self.stream.wait(&beside.done)?;
        }
        let computed = self.marks.add(Stage::Masks, &self.stream)?;
        columns.set_computed(computed);
        Ok(self.advance(Computed))
    }

    /// Computes slots that need nothing of each other. Those that go along time leave most of the device empty, so they run beside the rest.
    fn compute_early(
        &mut self,
        slots: Vec<usize>,
        columns: &ColumnStore,
    ) -> Result<Option<Beside>, GpuError> {
        if slots.is_empty() {
            return Ok(None);
        }
        self.mark(Stage::Columns)?;
        let (mut along, mut rest): (Vec<usize>, Vec<usize>) =
            slots.into_iter().partition(|slot| self.goes_along(*slot));
        if rest.is_empty() {
            rest.extend(along.pop());
        }
        let beside = if along.is_empty() { None } else { Some(self.compute_beside(&along, columns)?) };
        for slot in rest {
            self.mark(Stage::Columns)?;
            self.compute_slot(slot, columns)?;
        }
        Ok(beside)
    }

    /// Computes slots on the second stream of the lane, after what its first one has now.
    fn compute_beside(&mut self, slots: &[usize], columns: &ColumnStore) -> Result<Beside, GpuError> {
        let mut stream = self.plan.context.pool().beside(self.lane)?;
        stream.wait(&self.stream.record()?)?;
        let mut swap = |part: &mut Self| {
            std::mem::swap(&mut part.stream, &mut stream);
            std::mem::swap(&mut part.memory.scratch, &mut part.memory.scratch_beside);
        };
        swap(self);
        let sent = slots.iter().try_for_each(|slot| self.compute_slot(*slot, columns));
        let done = sent.and_then(|()| self.stream.record());
        swap(self);
        self.marks.load(&stream);
        Ok(Beside { done: done?, readers: self.readers(slots) })
    }

    /// By slot, whether it reads a pool of some slots, itself or through others.
    fn readers(&self, slots: &[usize]) -> Vec<bool> {
        let (plan, places) = (&self.plan.plan, &self.plan.keys.places);
        let pool_of = |slot: usize| match places[slot] {
            Place::Pool { pool, .. } => Some(pool),
            Place::Source(_) => None,
        };
        let pools: Vec<usize> = slots.iter().filter_map(|slot| pool_of(*slot)).collect();
        let mut readers: Vec<bool> = Vec::with_capacity(plan.slots.len());
        for slot in &plan.slots {
            let formulas = slot.tapes().flat_map(Tape::slots);
            let mut inputs = slot.inputs().iter().copied().chain(formulas);
            let reads = |input: usize| {
                readers.get(input).is_none_or(|reads| *reads)
                    || pool_of(input).is_some_and(|pool| pools.contains(&pool))
            };
            let is_reader = inputs.any(reads);
            readers.push(is_reader);
        }
        readers
    }

    /// Whether a slot has items to compute.
    fn is_new(&self, slot: usize) -> bool {
        let Place::Pool { key, .. } = self.plan.keys.places[slot] else { return false };
        self.state.spans[key].n_new() > 0 && !self.state.inputs[slot].pool.is_null()
    }

    /// Whether a slot is computed bar after bar.
    fn goes_along(&self, slot: usize) -> bool {
        let along = |(_, shape): &(&str, Shape)| matches!(shape, Shape::Lanes | Shape::Stretches);
        matches!(&self.plan.plan.slots[slot], Slot::Call { func, .. } if func.passes.iter().any(along))
    }

    /// Whether a slot is a function of nothing but sources.
    fn reads_sources(&self, slot: usize) -> bool {
        let slots = &self.plan.plan.slots;
        let is_source = |slot: &usize| matches!(slots[*slot], Slot::Source(_));
        matches!(&slots[slot], Slot::Call { inputs, .. } if inputs.iter().all(is_source))
    }

    /// Computes the new items of one slot.
    fn compute_slot(&mut self, slot: usize, columns: &ColumnStore) -> Result<(), GpuError> {
        let plan = self.plan.clone();
        let Place::Pool { pool, key } = plan.keys.places[slot] else { return Ok(()) };
        let span = self.state.spans[key];
        let out = columns.pool(pool).ptr();
        let (first, count) = (span.known as u32, span.n_new() as u32);
        let grid = &plan.data.grids[plan.plan.grid_of[slot]];
        let world = self.state.worlds[plan.plan.grid_of[slot]];
        let (tiles, n_tiles) = grid.tiles(span.n_new());
        match &plan.plan.slots[slot] {
            Slot::Source(_) => Ok(()),
            Slot::Formula { .. } => {
                let args = FormulaArgs { world, tiles, row: span.row, out, first, count, n_tiles, unused: 0 };
                plan.kernels.formula(&self.stream, slot, &args)
            }
            Slot::Mask { .. } => {
                let args = MaskArgs {
                    world,
                    tiles,
                    factors: DevicePtr::NULL,
                    row: span.row,
                    order: DevicePtr::NULL,
                    out: out.cast(),
                    n_set: DevicePtr::NULL,
                    first,
                    count,
                    n_tiles,
                    n_factors: 0,
                };
                plan.kernels.mask(&self.stream, slot, &args)
            }
            Slot::Recur { next, .. } => {
                let longest = grid.longest as u32;
                let full = || longest.div_ceil(recursion_stretches(next, count, grid.n_symbols, longest));
                let length = plan.options.stretch_bars.map_or_else(full, |bars| bars as u32).max(1);
                let n_stretches = longest.div_ceil(length).max(1);
                let n_states = 2 * n_stretches as usize * grid.n_symbols * span.n_new();
                let states = self.memory.scratch.room(plan.device(), n_states)?;
                let args =
                    RecursionArgs { world, row: span.row, out, states, first, count, n_stretches, length };
                plan.kernels.recursion(&self.stream, slot, grid.n_symbols, &args)
            }
            Slot::Gather { input, route, .. } => {
                let args = GatherArgs {
                    input: self.state.inputs[*input],
                    route: plan.data.routes[*route].ptr(),
                    row: span.row,
                    out,
                    first,
                    count,
                    n_bars: grid.n_bars as u32,
                    unused: 0,
                };
                plan.kernels.gather(&self.stream, &args)
            }
            Slot::Over { over, input, .. } => {
                let Some(sections) = &plan.data.sections else { return Ok(()) };
                let args = OverArgs {
                    input: self.state.inputs[*input],
                    bars: sections.bars.ptr(),
                    start: sections.start.ptr(),
                    row: span.row,
                    out,
                    first,
                    count,
                    n_bars: grid.n_bars as u32,
                    n_times: sections.n_times as u32,
                    over: over_number(*over),
                    unused: 0,
                };
                plan.kernels.over(&self.stream, &args)
            }
            Slot::Call { func, inputs, arguments, .. } => {
                let mut args = ColumnArgs {
                    out,
                    out_stride: plan.keys.pools[pool].stride as u64,
                    start: grid.start.ptr(),
                    word_start: grid.word_start.ptr(),
                    n_symbols: grid.n_symbols as u32,
                    n_bars: grid.n_bars as u32,
                    ..ColumnArgs::default()
                };
                args.inputs.iter_mut().zip(inputs).for_each(|(to, slot)| *to = self.state.inputs[*slot]);
                for (to, scalar) in args.arguments.iter_mut().zip(arguments) {
                    *to = self.memory.scalars.ptr().add(scalar * self.n_rows);
                }
                self.call(func, span, grid, args)
            }
        }
    }

    /// Computes the new items of a function, as many at a time as there is scratch memory for.
    fn call(
        &mut self,
        func: Func,
        span: Span,
        grid: &GridData,
        mut args: ColumnArgs,
    ) -> Result<(), GpuError> {
        let Self { plan, memory, stream, .. } = self;
        let (n_bars, n_symbols, count) = (grid.n_bars, grid.n_symbols, span.n_new());
        args.stretches = stretches(count as u32, n_symbols as u32, grid.longest as u32);
        let stride = func.scratch_len(n_bars, n_symbols, args.stretches);
        let at_once = SCRATCH_BYTES.checked_div(stride * 8).unwrap_or(count).clamp(1, count);
        args.scratch = memory.scratch.room(plan.device(), at_once * stride)?;
        args.scratch_stride = stride as u64;
        for begin in (0..count).step_by(at_once) {
            args.trial = span.row.add(begin);
            args.first = (span.known + begin) as u32;
            args.count = at_once.min(count - begin) as u32;
            for (kernel, shape) in func.passes {
                plan.kernels.column(stream, kernel, *shape, &args, grid.longest as u32)?;
            }
        }
        Ok(())
    }
}

/// Into how many stretches a recursion is cut, which leaves many instructions of a bar to wait for each other: as many as keep the device at work,
/// where symbols are long. What does not forget soon how it began has the stretches of an average.
fn recursion_stretches(next: &Tape, count: u32, n_symbols: usize, longest: u32) -> u32 {
    if !is_chosen(next) {
        return stretches(count, n_symbols as u32, longest);
    }
    let n_warps = u64::from(count.div_ceil(32)) * n_symbols as u64;
    let most = u64::from(longest / LEAST_STRETCH).max(1);
    (RECURSION_WARPS / n_warps.max(1)).clamp(1, most) as u32
}

/// The number of a function over all symbols, as in over.cu.
fn over_number(over: Over) -> u32 {
    match over {
        Over::Rank => 0,
        Over::Sum => 1,
        Over::Mean => 2,
        Over::Count => 3,
        Over::Min => 4,
        Over::Max => 5,
    }
}
