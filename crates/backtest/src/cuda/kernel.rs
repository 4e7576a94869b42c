//! The kernels of a strategy: one safe function for each.
//!
//! What makes a launch sound, and who sees to it:
//!
//! - Kernel and host see an argument struct alike: `module.rs` has the compiler compare all layouts.
//! - Pointers are valid: the structs are made in this folder alone, by [`Part`](super::part::Part), from buffers of its own memory, of the
//!   `ColumnStore` and of the `DevicePlan`. All three outlive the launch, and dropping a buffer waits for the device.
//! - Indexes are in bounds: buffers are made for the counts that stand in the same struct (`GrowableBuffer::room`, `Pool::reserve_items`), items that
//!   kernels read from memory were counted by kernels, and threads beyond a count return.
//! - No stream writes what another reads: a part's memory belongs to its stream. The prepare stream, which uses it before, is waited for by the
//!   host; the one beside it writes columns and scratch of its own, and is waited for. Columns of earlier parts are only read, after the event that
//!   `ColumnStore` keeps; before they are moved or forgotten, everything under way ends (`UnderWay::settle`).
//!
//! Each function adds what is its own: how many threads it starts, and for which count.

use std::collections::HashMap;

use bytemuck::Pod;
use tidemill_gpu::{Device, GpuError, Kernel, Launch, Module, Source, Stream};
use tidemill_market::indicator::device::{self as columns, ColumnArgs, Shape};

use super::constant;
use super::layout::{
    BookArgs, DistinctArgs, FormulaArgs, GatherArgs, GroupArgs, LevelArgs, MaskArgs, OrderArgs, OverArgs,
    PoolArgs, RecursionArgs, ScalarArgs, SpreadArgs, WARPS, WalkArgs,
};
use super::module::sources;
use crate::plan::{Plan, Slot};
use crate::strategy::Strategy;

/// Threads of a block where nothing asks for another number.
const THREADS: usize = 256;
/// Threads that a multiprocessor keeps at a time, on all but a few architectures.
const THREADS_OF_A_MULTIPROCESSOR: usize = 2048;
/// Threads of a block of recursions: a warp, so that all multiprocessors have some.
const RECURSION_THREADS: usize = 32;
/// The grid of a kernel that runs as a single block.
const ONE_BLOCK: Launch = Launch { grid: [1, 1, 1], block: [1024, 1, 1], shared_bytes: 0 };

/// The kernels of a strategy and of the columns, by name.
///
/// Only kernels that a module holds are looked up in the driver, because tools that watch for failed calls would report every miss.
pub(super) struct Kernels {
    modules: Vec<Module>,
    /// The first module that has a kernel of this name.
    module_of: HashMap<String, usize>,
    /// Threads that the device has room for at a time.
    resident_threads: usize,
}

impl Kernels {
    /// Compiles and loads all modules of a strategy, and that of the columns.
    pub(super) fn load(
        device: &Device,
        plan: &Plan,
        strategy: &Strategy,
        timeframes: &[i64],
    ) -> Result<Self, GpuError> {
        let mut sources = sources(plan, strategy, timeframes);
        sources.push(columns::source());
        let kernels = Self {
            modules: device.load_all(&sources)?,
            module_of: module_of(&sources),
            resident_threads: device.info().multiprocessors as usize * THREADS_OF_A_MULTIPROCESSOR,
        };
        kernels.get_ready(plan)?;
        Ok(kernels)
    }

    /// Has the driver load what the plan may launch. It would do that at the first launch of each, and may wait for all running work: the second
    /// batch would not be sent before the first one is done.
    fn get_ready(&self, plan: &Plan) -> Result<(), GpuError> {
        let columns = self.modules.len() - 1;
        let of_strategy = self.module_of.iter().filter(|(_, module)| **module != columns);
        of_strategy.map(|(name, _)| name.as_str()).try_for_each(|name| self.get(name).map(|_| ()))?;
        let calls = plan.slots.iter().filter_map(|slot| match slot {
            Slot::Call { func, .. } => Some(func.passes),
            _ => None,
        });
        calls.flatten().try_for_each(|(name, _)| self.get(name).map(|_| ()))
    }

    fn get(&self, name: &str) -> Result<Kernel, GpuError> {
        match self.module_of.get(name) {
            Some(module) => self.modules[*module].kernel(name),
            None => Err(GpuError::NoKernel { module: "none".into(), kernel: name.into() }),
        }
    }

    /// Launches the kernel of this name.
    ///
    /// # Safety
    ///
    /// It takes `A`, and the arguments are as the module demands.
    unsafe fn launch<A: Pod>(
        &self,
        stream: &Stream,
        name: &str,
        shape: Launch,
        args: &A,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller's.
        unsafe { stream.launch(&self.get(name)?, shape, args) }
    }

    /// The scalars of every row.
    pub(super) fn scalars(&self, stream: &Stream, args: &ScalarArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_rows`, for which points and scalars have room.
        unsafe { self.launch(stream, "scalars", threads(args.n_rows as usize), args) }
    }

    /// Notes how many items each key has.
    pub(super) fn distinct_begin(&self, stream: &Stream, args: &DistinctArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_keys`.
        unsafe { self.launch(stream, "distinct_begin", threads(args.n_keys as usize), args) }
    }

    /// Finds the tuple of every row in the tables of the keys, or enters it there.
    pub(super) fn distinct_insert(&self, stream: &Stream, args: &DistinctArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_rows` and `n_keys`. Tables have twice as many places as there can be tuples, so a search ends.
        unsafe { self.launch(stream, "distinct_insert", rows_of_keys(args), args) }
    }

    /// Numbers the tuples that are new.
    pub(super) fn distinct_settle(&self, stream: &Stream, args: &DistinctArgs) -> Result<(), GpuError> {
        // SAFETY: as `distinct_insert`, which wrote the places that it reads.
        unsafe { self.launch(stream, "distinct_settle", rows_of_keys(args), args) }
    }

    /// Notes how many items each key has now.
    pub(super) fn distinct_end(&self, stream: &Stream, args: &DistinctArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_keys`.
        unsafe { self.launch(stream, "distinct_end", threads(args.n_keys as usize), args) }
    }

    /// All of that for the keys of some chains.
    pub(super) fn distinct_chains(
        &self,
        stream: &Stream,
        n_chains: usize,
        args: &DistinctArgs,
    ) -> Result<(), GpuError> {
        // SAFETY: a block for each chain; `chains` has one number more, and `keys` as many keys as the last one says. No two chains share a table.
        unsafe { self.launch(stream, "distinct_chains", Launch::blocks(n_chains as u32, 1024), args) }
    }

    /// One pass of a function that makes columns.
    pub(super) fn column(
        &self,
        stream: &Stream,
        kernel: &str,
        shape: Shape,
        args: &ColumnArgs,
        longest: u32,
    ) -> Result<(), GpuError> {
        // SAFETY: the kernel is that of the pass; pools have the stride of the function's output and room for the new items, and scratch
        // columns are made for `count` items.
        unsafe { shape.launch(stream, &self.get(kernel)?, args, longest) }
    }

    /// Columns of a slot that is a formula.
    pub(super) fn formula(&self, stream: &Stream, slot: usize, args: &FormulaArgs) -> Result<(), GpuError> {
        // SAFETY: a warp for each of `count` items and `n_tiles` tiles; the pool has room for the items.
        unsafe { self.launch(stream, &format!("formula_{slot}"), warps(args.count, args.n_tiles), args) }
    }

    /// Masks of a slot that is a condition.
    pub(super) fn mask(&self, stream: &Stream, slot: usize, args: &MaskArgs) -> Result<(), GpuError> {
        // SAFETY: as `formula`.
        unsafe { self.launch(stream, &format!("mask_{slot}"), warps(args.count, args.n_tiles), args) }
    }

    /// Columns of a slot that is a recursion, over so many symbols.
    pub(super) fn recursion(
        &self,
        stream: &Stream,
        slot: usize,
        n_symbols: usize,
        args: &RecursionArgs,
    ) -> Result<(), GpuError> {
        let n_threads = args.count as usize * n_symbols;
        let once =
            Launch::blocks(n_threads.div_ceil(RECURSION_THREADS).max(1) as u32, RECURSION_THREADS as u32);
        let [blocks, ..] = once.grid;
        let stretches = Launch { grid: [blocks, args.n_stretches, 1], ..once };
        // SAFETY: a thread for each of `count` items, the symbols of its world and `n_stretches` stretches; the pool has room for the items, and
        // `states` for two numbers of every thread.
        unsafe { self.launch(stream, &format!("recursion_{slot}"), stretches, args)? };
        if args.n_stretches == 1 {
            return Ok(());
        }
        // SAFETY: as above, for all stretches of an item and symbol in one thread.
        unsafe { self.launch(stream, &format!("mend_recursion_{slot}"), once, args) }
    }

    /// Columns of other bars.
    pub(super) fn gather(&self, stream: &Stream, args: &GatherArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `count` items and `n_bars` bars, of which the route names bars of the input; the pool has room for the items.
        unsafe { self.launch(stream, "gather", items_by_blocks(args.count, args.n_bars), args) }
    }

    /// Columns over all symbols.
    pub(super) fn over(&self, stream: &Stream, args: &OverArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `count` items and `n_times` times, whose bars are among `n_bars`; the pool has room for the items.
        unsafe { self.launch(stream, "over", items_by_blocks(args.count, args.n_times), args) }
    }

    /// Masks of a factor.
    pub(super) fn factor(
        &self,
        stream: &Stream,
        condition: usize,
        factor: usize,
        args: &MaskArgs,
    ) -> Result<(), GpuError> {
        let name = format!("factor_{condition}_{factor}");
        // SAFETY: as `formula`, with the part's own masks.
        unsafe { self.launch(stream, &name, warps(args.count, args.n_tiles), args) }
    }

    /// Spreads levels over the thresholds of all rows.
    pub(super) fn spread_levels(&self, stream: &Stream, args: &SpreadArgs) -> Result<(), GpuError> {
        // SAFETY: one block looks at `n_rows` thresholds and writes `n_levels` levels, at most `LEVELS`.
        unsafe { self.launch(stream, "spread_levels", ONE_BLOCK, args) }
    }

    /// Picks the level nearest to the threshold of each row.
    pub(super) fn pick_level(&self, stream: &Stream, args: &SpreadArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_rows`.
        unsafe { self.launch(stream, "pick_level", threads(args.n_rows as usize), args) }
    }

    /// Masks of a factor at all levels.
    pub(super) fn levels(
        &self,
        stream: &Stream,
        condition: usize,
        factor: usize,
        args: &LevelArgs,
    ) -> Result<(), GpuError> {
        let name = format!("levels_{condition}_{factor}");
        // SAFETY: a warp for each of `count` items and `n_tiles` tiles; there are masks for `n_levels` levels of each item.
        unsafe { self.launch(stream, &name, warps(args.count, args.n_tiles), args) }
    }

    /// Counts the items of each group.
    pub(super) fn group_count(&self, stream: &Stream, args: &GroupArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `count` items; the counts of `n_groups` were set to zero.
        unsafe { self.launch(stream, "group_count", threads(args.count as usize), args) }
    }

    /// Where each group begins.
    pub(super) fn group_begin(&self, stream: &Stream, args: &GroupArgs) -> Result<(), GpuError> {
        // SAFETY: one block takes `n_groups` counts.
        unsafe { self.launch(stream, "group_begin", ONE_BLOCK, args) }
    }

    /// Puts each item into its group.
    pub(super) fn group_place(&self, stream: &Stream, args: &GroupArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `count` items; the counts say how many each group has room for.
        unsafe { self.launch(stream, "group_place", threads(args.count as usize), args) }
    }

    /// Masks of a whole condition.
    pub(super) fn condition(
        &self,
        stream: &Stream,
        condition: usize,
        args: &MaskArgs,
    ) -> Result<(), GpuError> {
        let name = format!("condition_{condition}");
        // SAFETY: as `factor`; the order, where there is one, has each of `count` items once.
        unsafe { self.launch(stream, &name, warps(args.count, args.n_tiles), args) }
    }

    /// Puts every walk of `n_trials` trials at the beginning of its segment.
    pub(super) fn begin_walks(
        &self,
        stream: &Stream,
        n_trials: usize,
        args: &WalkArgs,
    ) -> Result<(), GpuError> {
        // SAFETY: a thread for each trial and segment, which `states` has room for.
        unsafe { self.launch(stream, "begin_walks", threads(n_trials * args.n_segments as usize), args) }
    }

    /// Counts trials by how many entries they have.
    pub(super) fn order_walks(&self, stream: &Stream, args: &OrderArgs) -> Result<(), GpuError> {
        // SAFETY: a thread for each of `n_trials`, for which there is a row; masks count what they set.
        unsafe { self.launch(stream, "order_walks", threads(args.n_trials as usize), args) }
    }

    /// Whether so many walks, by groups of lanes, are more than the device has under way at a time.
    pub(super) fn walks_in_turn(&self, n_walks: usize, wanted: Option<usize>) -> bool {
        self.threads_of_a_walk(n_walks, wanted).is_none()
            && n_walks * constant::WALK_LANES > 2 * self.resident_threads
    }

    /// Walks on until every buffer is full or every walk is done.
    pub(super) fn walk(
        &self,
        stream: &Stream,
        n_trials: usize,
        wanted: Option<usize>,
        args: &WalkArgs,
    ) -> Result<(), GpuError> {
        let n_walks = n_trials * args.n_segments as usize;
        if let Some(n_threads) = self.threads_of_a_walk(n_walks, wanted) {
            // SAFETY: a block of at most `MOST_WALK_THREADS` for each trial and segment, which has room for `capacity` trades.
            return unsafe {
                let shape = Launch::blocks(n_walks as u32, n_threads as u32);
                self.launch(stream, "walk_block", shape, args)
            };
        }
        let n_blocks = (n_walks * constant::WALK_LANES).div_ceil(constant::WALK_THREADS);
        let shape = Launch::blocks(n_blocks as u32, constant::WALK_THREADS as u32);
        // SAFETY: `WALK_LANES` threads for each trial and segment, which has room for `capacity` trades.
        unsafe { self.launch(stream, "walk", shape, args) }
    }

    /// Threads that take one walk together; `None` if there are walks enough to fill the device with a group of lanes each. No result depends
    /// on it.
    fn threads_of_a_walk(&self, n_walks: usize, wanted: Option<usize>) -> Option<usize> {
        let n_threads = wanted.unwrap_or(self.resident_threads / n_walks.max(1));
        (n_threads >= constant::LEAST_WALK_THREADS)
            .then(|| (1 << n_threads.ilog2()).min(constant::MOST_WALK_THREADS))
    }

    /// Books the trades that were found.
    pub(super) fn book(&self, stream: &Stream, n_trials: usize, args: &BookArgs) -> Result<(), GpuError> {
        let n_books = n_trials * (args.n_segments / args.n_each) as usize;
        // SAFETY: a warp for each trial and `n_each` segments; books, tallies, days and blocks are made for as many.
        unsafe { self.launch(stream, "book", books(n_books), args) }
    }

    /// Pools the segments of one role.
    pub(super) fn pool(&self, stream: &Stream, args: &PoolArgs) -> Result<(), GpuError> {
        // SAFETY: a warp for each of `n_trials`; `daily` has `n_days` for each trial and `n_each` segments.
        unsafe { self.launch(stream, "pool", books(args.n_trials as usize), args) }
    }
}

/// Which of some sources is the first that has a kernel of each name.
pub(super) fn module_of(sources: &[Source]) -> HashMap<String, usize> {
    let mut out = HashMap::new();
    for (module, source) in sources.iter().enumerate() {
        for kernel in source.kernels() {
            out.entry(kernel.to_owned()).or_insert(module);
        }
    }
    out
}

/// A thread for each of `n`.
fn threads(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(THREADS).max(1) as u32, THREADS as u32)
}

/// A thread for each row, for each key.
fn rows_of_keys(args: &DistinctArgs) -> Launch {
    let mut launch = threads(args.n_rows as usize);
    launch.grid[1] = args.n_keys;
    launch
}

/// A thread for each item and each of `n`: blocks of one item, those of all items next to each other.
fn items_by_blocks(n_items: u32, n: u32) -> Launch {
    let n_blocks = u64::from(n_items) * u64::from(n.div_ceil(THREADS as u32).max(1));
    Launch::blocks(u32::try_from(n_blocks).unwrap_or(u32::MAX), THREADS as u32)
}

/// A warp for each of `n` books.
fn books(n: usize) -> Launch {
    Launch::blocks(n.div_ceil(constant::BOOK_WARPS).max(1) as u32, 32 * constant::BOOK_WARPS as u32)
}

/// A warp for each item and tile.
fn warps(n_items: u32, n_tiles: u32) -> Launch {
    let n = n_items as usize * n_tiles as usize;
    Launch::blocks(n.div_ceil(WARPS as usize).max(1) as u32, 32 * WARPS)
}
