//! A pool in the memory of a device. Only conflicts, distances and colourings that are asked for come to the host.

use tidemill_gpu::{DeviceBuffer, DevicePtr, GpuError, Kernel, Launch, Stream, kernel_structs};

use super::pool::{self, Cross, Pool};
use crate::device::{DeviceGraph, Feed, Task};
use crate::random::Random;
use crate::slot::Slots;
use crate::tabu::device::{TabuKernel, TabuLaunch, TabuState};

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// Twin of `CrossTask` in `memetic.cu`.
    #[derive(Debug)]
    struct CrossTask {
        first: u32,
        second: u32,
        child: u32,
        unused: u32,
        random: Random,
    }

    /// Twin of `PairTask` in `memetic.cu`.
    #[derive(Debug)]
    struct PairTask {
        first: u32,
        second: u32,
    }

    /// Twin of `PoolArgs` in `memetic.cu`.
    struct PoolArgs {
        colors: DevicePtr<u32>,
        crosses: DevicePtr<CrossTask>,
        tasks: DevicePtr<Task>,
        pairs: DevicePtr<PairTask>,
        distances: DevicePtr<u32>,
        n: u32,
        k: u32,
        slot_words: u32,
        unused: u32,
    }
}

/// A pool on a device, on a stream of its own.
#[derive(Debug)]
pub struct DevicePool<'a> {
    graph: &'a DeviceGraph,
    stream: Stream,
    tabu: TabuKernel,
    scatter: Kernel,
    copy: Kernel,
    cross: Kernel,
    distance: Kernel,
    colors: DeviceBuffer<u32>,
    tasks: Feed<Task>,
    crosses: Feed<CrossTask>,
    pairs: Feed<PairTask>,
    states: Feed<TabuState>,
    distances: Feed<u32>,
}

impl<'a> DevicePool<'a> {
    /// An empty pool for colourings with `k` colours.
    pub fn new(graph: &'a DeviceGraph, k: usize, stream: Stream) -> Result<Self, GpuError> {
        let device = graph.device();
        let module = graph.module();
        Ok(Self {
            tabu: TabuKernel::new(graph, k)?,
            scatter: module.kernel("coloring_scatter")?,
            copy: module.kernel("coloring_copy")?,
            cross: module.kernel("coloring_cross")?,
            distance: module.kernel("coloring_distance")?,
            colors: device.alloc(0)?,
            tasks: Feed::new(device, 64)?,
            crosses: Feed::new(device, 64)?,
            pairs: Feed::new(device, 64)?,
            states: Feed::new(device, 64)?,
            distances: Feed::new(device, 64)?,
            graph,
            stream,
        })
    }

    /// Tabu searches that the device runs at the same time: a good number of individuals.
    pub fn n_resident(&self) -> usize {
        self.tabu.n_resident()
    }

    fn args(&self) -> PoolArgs {
        let shape = self.tabu.shape();
        PoolArgs {
            colors: self.colors.ptr(),
            crosses: DevicePtr::NULL,
            tasks: DevicePtr::NULL,
            pairs: DevicePtr::NULL,
            distances: DevicePtr::NULL,
            n: shape.n,
            k: shape.k,
            slot_words: shape.slot_words,
            unused: 0,
        }
    }

    /// Runs a kernel with a warp for each of some tasks.
    ///
    /// # Safety
    ///
    /// The kernel takes `PoolArgs` and reads lists of at least `n_tasks` entries from it, of slots that were reserved.
    unsafe fn launch(
        &self,
        kernel: &Kernel,
        n_tasks: usize,
        shared_words: u32,
        args: &PoolArgs,
    ) -> Result<(), GpuError> {
        let shape = Launch::blocks(n_tasks as u32, 32).shared(shared_words * 4);
        // SAFETY: `source` compares the layout of `PoolArgs`, and its buffers are this pool's own, on its one stream. The rest is the caller's.
        unsafe { self.stream.launch(kernel, shape, args) }
    }

    fn send_tasks(&mut self, tasks: &[pool::Task]) -> Result<DevicePtr<Task>, GpuError> {
        let twin = |task: &pool::Task| Task::new(task.slot, task.random);
        self.tasks.send(&self.stream, &tasks.iter().map(twin).collect::<Vec<_>>())
    }

    fn send_pairs(&mut self, pairs: &[(usize, usize)]) -> Result<DevicePtr<PairTask>, GpuError> {
        let twin =
            |(first, second): &(usize, usize)| PairTask { first: *first as u32, second: *second as u32 };
        self.pairs.send(&self.stream, &pairs.iter().map(twin).collect::<Vec<_>>())
    }
}

impl Slots for DevicePool<'_> {
    fn n(&self) -> usize {
        self.graph.n()
    }

    fn k(&self) -> usize {
        self.tabu.shape().k as usize
    }

    fn reserve(&mut self, n_slots: usize) -> Result<(), GpuError> {
        self.colors = self.graph.device().alloc(n_slots * self.tabu.shape().slot_words as usize)?;
        Ok(())
    }

    fn write(&mut self, slot: usize, colors: &[u32]) -> Result<(), GpuError> {
        self.tabu.shape().upload(&self.stream, &self.colors, slot, colors)
    }

    fn read(&mut self, slot: usize) -> Result<Vec<u32>, GpuError> {
        self.tabu.shape().download(&self.stream, &self.colors, slot)
    }
}

impl Pool for DevicePool<'_> {
    fn scatter(&mut self, tasks: &[pool::Task]) -> Result<(), GpuError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let args = PoolArgs { tasks: self.send_tasks(tasks)?, ..self.args() };
        // SAFETY: the kernel reads the tasks that were just sent.
        unsafe { self.launch(&self.scatter, tasks.len(), 0, &args) }
    }

    fn copy(&mut self, pairs: &[(usize, usize)]) -> Result<(), GpuError> {
        if pairs.is_empty() {
            return Ok(());
        }
        let args = PoolArgs { pairs: self.send_pairs(pairs)?, ..self.args() };
        // SAFETY: the kernel reads the pairs that were just sent.
        unsafe { self.launch(&self.copy, pairs.len(), 0, &args) }
    }

    fn cross(&mut self, crosses: &[Cross]) -> Result<(), GpuError> {
        if crosses.is_empty() {
            return Ok(());
        }
        let twin = |cross: &Cross| CrossTask {
            first: cross.first as u32,
            second: cross.second as u32,
            child: cross.child as u32,
            unused: 0,
            random: cross.random,
        };
        let sent = self.crosses.send(&self.stream, &crosses.iter().map(twin).collect::<Vec<_>>())?;
        let args = PoolArgs { crosses: sent, ..self.args() };
        let shared_words = 3 * args.n.div_ceil(4) + 2 * args.k;
        // SAFETY: the kernel reads the crosses that were just sent, and needs these words of shared memory.
        unsafe { self.launch(&self.cross, crosses.len(), shared_words, &args) }
    }

    fn improve(
        &mut self,
        tasks: &[pool::Task],
        iterations: u64,
        _stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<u32>, GpuError> {
        let launch = TabuLaunch {
            tasks: self.send_tasks(tasks)?,
            n_tasks: tasks.len(),
            colors: self.colors.ptr(),
            best: self.colors.ptr(),
            states: self.states.room(&self.stream, tasks.len())?,
            calendars: DevicePtr::NULL,
            iterations,
        };
        self.tabu.launch(&self.stream, &launch)?;
        let states = self.states.fetch(&self.stream, tasks.len())?;
        Ok(states.iter().map(|state| state.best_conflicts).collect())
    }

    fn distances(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<u32>, GpuError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let sent = self.send_pairs(pairs)?;
        let distances = self.distances.room(&self.stream, pairs.len())?;
        let args = PoolArgs { pairs: sent, distances, ..self.args() };
        let shared_words = 2 * args.k + (args.k * args.k).div_ceil(2);
        // SAFETY: the kernel reads the pairs that were just sent, writes as many distances, and needs these words of shared memory.
        unsafe { self.launch(&self.distance, pairs.len(), shared_words, &args)? };
        self.distances.fetch(&self.stream, pairs.len())
    }
}
