//! Many TabuCol searches at a time on a device, a block for each.

use std::marker::PhantomData;

use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Kernel, Launch, Stream, kernel_structs};

use super::Outcome;
use super::chance::{MAX_TENURE, mask};
use crate::device::{DeviceGraph, Feed, LANES, NIBBLES, Shape, Task, row_shape, tabu_source};
use crate::random::Random;

/// Days of a calendar, as in the kernel.
const DAYS: usize = MAX_TENURE as usize + 1;

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// Twin of `TabuState` in `tabu.cu`.
    #[derive(Debug, Default)]
    pub(crate) struct TabuState {
        pub(crate) iteration: u64,
        pub(crate) conflicts: u32,
        pub(crate) best_conflicts: u32,
    }

    /// Twin of `TabuArgs` in `tabu.cu`.
    struct TabuArgs {
        tasks: DevicePtr<Task>,
        adjacency: DevicePtr<u32>,
        colors: DevicePtr<u32>,
        best: DevicePtr<u32>,
        states: DevicePtr<TabuState>,
        calendars: DevicePtr<u32>,
        counts: DevicePtr<u32>,
        iterations: u64,
        shape: Shape,
        vertex_mask: u32,
        color_mask: u32,
        keeps: u32,
        unused: u32,
    }
}

/// Where the searches of a launch read and write.
#[derive(Clone, Copy)]
pub(crate) struct TabuLaunch {
    pub(crate) tasks: DevicePtr<Task>,
    pub(crate) n_tasks: usize,
    pub(crate) colors: DevicePtr<u32>,
    pub(crate) best: DevicePtr<u32>,
    pub(crate) states: DevicePtr<TabuState>,
    /// Null if the searches do not continue.
    pub(crate) calendars: DevicePtr<u32>,
    pub(crate) iterations: u64,
}

/// The kernel for one graph and number of colours.
#[derive(Debug)]
pub(crate) struct TabuKernel {
    kernel: Kernel,
    shape: Shape,
    adjacency: DevicePtr<u32>,
    n_threads: u32,
    shared_bytes: u32,
    n_resident: usize,
    /// Counts in global memory, where they do not fit into shared memory.
    counts: Option<DeviceBuffer<u32>>,
}

/// Warps that a multiprocessor should have at work, so that one computes while others wait.
const BUSY_WARPS: usize = 14;

/// The most blocks and threads of a multiprocessor.
const MOST_BLOCKS: usize = 32;
const MOST_THREADS: usize = 2_048;

/// How a search is laid out on a device.
struct Layout {
    n_warps: usize,
    /// Of shared memory, with counts if they fit.
    shared_bytes: usize,
    is_shared: bool,
    /// Searches that a multiprocessor has room for.
    n_resident: usize,
}

impl Layout {
    /// As many warps as keep a multiprocessor busy; more would only wait for each other.
    fn best(shape: &Shape, most_bytes: usize) -> Self {
        let most_warps = (shape.row_words as usize).div_ceil(LANES).next_power_of_two().min(NIBBLES);
        let mut layout = Self::new(shape, 1, most_bytes);
        while layout.n_warps < most_warps && layout.n_resident * layout.n_warps < BUSY_WARPS {
            layout = Self::new(shape, layout.n_warps * 2, most_bytes);
        }
        layout
    }

    fn new(shape: &Shape, n_warps: usize, most_bytes: usize) -> Self {
        let (k, row_words) = (shape.k as usize, shape.row_words as usize);
        // Words of the warps, keys that were found, bans, calendars, bounds, shifts and colours, sizes of classes: as `shared_search` in the
        // kernel lays them out.
        let small =
            3 * n_warps * 4 + 2 + DAYS + (1 + n_warps) * DAYS / 2 + 3 * row_words + n_warps * k.div_ceil(2);
        let counts = k * row_words;
        let is_shared = (small + counts) * 4 <= most_bytes;
        let shared_bytes = (small + if is_shared { counts } else { 0 }) * 4;
        // A block has a kilobyte of shared memory for the system's use; a multiprocessor has as much more than the most of a block.
        let n_resident = (most_bytes + 1_024) / (shared_bytes + 1_024);
        let most_blocks = (MOST_THREADS / (n_warps * LANES)).min(MOST_BLOCKS);
        Self { n_warps, shared_bytes, is_shared, n_resident: n_resident.clamp(1, most_blocks) }
    }
}

/// Bytes of a device that the searches of a pass take, about: adjacency, and the counts of those who have no room for them in shared memory, of
/// which two phases can run at a time.
pub(crate) fn search_bytes(device: &Device, n: usize, k: usize) -> usize {
    let (row_words, n_groups) = row_shape(n);
    let info = device.info();
    let shape = Shape {
        n: n as u32,
        k: k as u32,
        row_words: row_words as u32,
        slot_words: 0,
        n_groups: n_groups as u32,
        limit: 0,
    };
    let layout = Layout::best(&shape, info.shared_bytes as usize);
    let n_resident = layout.n_resident * info.multiprocessors.max(1) as usize;
    let counts = if layout.is_shared { 0 } else { 2 * n_resident * k * row_words };
    4 * (n * n_groups * LANES + counts)
}

impl TabuKernel {
    pub(crate) fn new(graph: &DeviceGraph, k: usize) -> Result<Self, GpuError> {
        let shape = graph.shape(k)?;
        let info = graph.device().info();
        let layout = Layout::best(&shape, info.shared_bytes as usize);
        let name = if layout.is_shared { "coloring_tabu" } else { "coloring_tabu_global" };
        Ok(Self {
            kernel: graph.device().load(&tabu_source(layout.n_warps))?.kernel(name)?,
            shape,
            adjacency: graph.adjacency(),
            n_threads: (layout.n_warps * LANES) as u32,
            shared_bytes: layout.shared_bytes as u32,
            n_resident: layout.n_resident * info.multiprocessors.max(1) as usize,
            counts: (!layout.is_shared).then(|| graph.device().alloc(0)).transpose()?,
        })
    }

    /// Searches that a device works on at the same time.
    pub(crate) fn n_resident(&self) -> usize {
        self.n_resident
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn launch(&mut self, stream: &Stream, launch: &TabuLaunch) -> Result<(), GpuError> {
        if launch.n_tasks == 0 {
            return Ok(());
        }
        let count_words = (self.shape.k * self.shape.row_words) as usize * launch.n_tasks;
        if let Some(counts) = &mut self.counts
            && counts.len() < count_words
        {
            *counts = stream.device().alloc(count_words)?;
        }
        let args = TabuArgs {
            tasks: launch.tasks,
            adjacency: self.adjacency,
            colors: launch.colors,
            best: launch.best,
            states: launch.states,
            calendars: launch.calendars,
            counts: self.counts.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr),
            iterations: launch.iterations,
            shape: self.shape,
            vertex_mask: mask(self.shape.n as usize),
            color_mask: mask(self.shape.k as usize),
            keeps: u32::from(!launch.calendars.is_null()),
            unused: 0,
        };
        let shape = Launch::blocks(launch.n_tasks as u32, self.n_threads).shared(self.shared_bytes);
        // SAFETY: `tabu_source` compares the layout of `TabuArgs`; a block takes one of `n_tasks` tasks. `DeviceTabu` and `DevicePool`, the
        // only callers, own the buffers of the launch, sized by `Shape`, and wait for the states before they change them. The counts were
        // made large enough above, and the shared memory is what `Layout` says the kernel lays out.
        unsafe { stream.launch(&self.kernel, shape, &args) }
    }
}

/// TabuCol searches that run side by side on a device, and continue where they stopped. Each makes the moves of a [`Tabu`](super::Tabu) with the same chances.
#[derive(Debug)]
pub struct DeviceTabu<'a> {
    /// The kernel reads it.
    graph: PhantomData<&'a DeviceGraph>,
    kernel: TabuKernel,
    stream: Stream,
    n_searches: usize,
    tasks: DeviceBuffer<Task>,
    colors: DeviceBuffer<u32>,
    best: DeviceBuffer<u32>,
    calendars: DeviceBuffer<u32>,
    states: Feed<TabuState>,
}

impl<'a> DeviceTabu<'a> {
    /// Searches with `k` colours that begin at these colourings, with these chances.
    pub fn new(
        graph: &'a DeviceGraph,
        k: usize,
        stream: Stream,
        starts: &[(Random, &[u32])],
    ) -> Result<Self, GpuError> {
        let device = graph.device();
        let kernel = TabuKernel::new(graph, k)?;
        let n_searches = starts.len();
        let words: Vec<u32> = starts.iter().flat_map(|(_, colors)| kernel.shape.pack(colors)).collect();
        let tasks: Vec<Task> =
            starts.iter().enumerate().map(|(slot, (random, _))| Task::new(slot, *random)).collect();
        let calendars = device.alloc(n_searches * DAYS * 2)?;
        stream.fill(&calendars, 0, calendars.len(), 0xff)?;
        Ok(Self {
            graph: PhantomData,
            tasks: device.alloc_from(&tasks)?,
            colors: device.alloc_from(&words)?,
            best: device.alloc(words.len())?,
            calendars,
            states: Feed::new(device, n_searches)?,
            kernel,
            stream,
            n_searches,
        })
    }

    /// Searches that a device works on at the same time with so many colours.
    pub fn n_resident(graph: &DeviceGraph, k: usize) -> Result<usize, GpuError> {
        Ok(TabuKernel::new(graph, k)?.n_resident())
    }

    /// Lets every search make up to `iterations` iterations, and waits for them. Iterations are counted since the searches began.
    pub fn run(&mut self, iterations: u64) -> Result<Vec<Outcome>, GpuError> {
        let launch = TabuLaunch {
            tasks: self.tasks.ptr(),
            n_tasks: self.n_searches,
            colors: self.colors.ptr(),
            best: self.best.ptr(),
            states: self.states.room(&self.stream, self.n_searches)?,
            calendars: self.calendars.ptr(),
            iterations,
        };
        self.kernel.launch(&self.stream, &launch)?;
        let states = self.states.fetch(&self.stream, self.n_searches)?;
        let outcome =
            |state: &TabuState| Outcome { iterations: state.iteration, conflicts: state.best_conflicts };
        Ok(states.iter().map(outcome).collect())
    }

    /// The colouring of a search as it is now.
    pub fn colors(&self, search: usize) -> Result<Vec<u32>, GpuError> {
        self.kernel.shape.download(&self.stream, &self.colors, search)
    }

    /// The colouring of a search with the fewest conflicts.
    pub fn best(&self, search: usize) -> Result<Vec<u32>, GpuError> {
        self.kernel.shape.download(&self.stream, &self.best, search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::MOST_VERTICES;

    #[test]
    fn threads_own_few_enough_words_to_number_their_vertices_in_a_byte() {
        for n in (1..=MOST_VERTICES).step_by(97).chain([MOST_VERTICES]) {
            for (k, most_bytes) in [(2, 227), (40, 227), (255, 227), (2, 99), (255, 99), (40, 163)] {
                let (row_words, n_groups) = row_shape(n);
                let (row_words, n_groups) = (row_words as u32, n_groups as u32);
                let shape = Shape { n: n as u32, k, row_words, slot_words: 0, n_groups, limit: n as u32 };
                let layout = Layout::best(&shape, most_bytes * 1_024);
                // Beyond the last vertex there can be a word, but nothing in it.
                let n_own = n.div_ceil(4).div_ceil(layout.n_warps * LANES);
                assert!(n_own <= 64, "{n} vertices, {k} colours, {} warps: {n_own} words", layout.n_warps);
            }
        }
    }

    #[test]
    fn warps_fill_a_multiprocessor_and_have_words_of_their_own() {
        // As measured to be fastest, or nearly, on an H200: vertices, colours, warps, searches of a multiprocessor.
        for (n, k, n_warps, n_resident) in
            [(1_000, 83, 8, 2), (500, 48, 2, 7), (500, 126, 4, 3), (250, 28, 1, 17)]
        {
            let row_words = u32::div_ceil(n, 4) | 1;
            let shape = Shape { n, k, row_words, slot_words: 0, n_groups: 1, limit: n };
            let layout = Layout::best(&shape, 227 * 1_024);
            assert_eq!((layout.n_warps, layout.n_resident), (n_warps, n_resident), "{n} {k}");
            assert!(layout.is_shared);
        }
    }
}
