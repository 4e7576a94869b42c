//! Walks on a device, a warp for each.

use tidemill_gpu::{DeviceBuffer, DevicePtr, GpuError, Kernel, Launch, Stream, kernel_structs};

use super::{Walk, Walked, Walkers, logarithms};
use crate::device::{DeviceGraph, Feed, Shape};
use crate::random::Random;
use crate::slot::Slots;

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// Twin of `WalkTask` in `metropolis.cu`.
    #[derive(Debug)]
    struct WalkTask {
        slot: u32,
        left: u32,
        right: u32,
        unused: u32,
        first: u64,
        count: u64,
        random: Random,
        weight: u32,
        coupling: u32,
    }

    /// Twin of `WalkState` in `metropolis.cu`.
    #[derive(Debug)]
    struct WalkState {
        conflicts: u32,
        best_conflicts: u32,
    }

    /// Twin of `WalkArgs` in `metropolis.cu`.
    struct WalkArgs {
        tasks: DevicePtr<WalkTask>,
        adjacency: DevicePtr<u32>,
        logarithms: DevicePtr<u32>,
        colors: DevicePtr<u32>,
        best: DevicePtr<u32>,
        states: DevicePtr<WalkState>,
        shape: Shape,
        is_coupled: u32,
        unused: u32,
    }
}

/// Colourings on a device that walk there, on a stream of their own.
#[derive(Debug)]
pub struct DeviceWalkers<'a> {
    graph: &'a DeviceGraph,
    stream: Stream,
    kernel: Kernel,
    shape: Shape,
    logarithms: DeviceBuffer<u32>,
    colors: DeviceBuffer<u32>,
    best: DeviceBuffer<u32>,
    tasks: Feed<WalkTask>,
    states: Feed<WalkState>,
}

impl<'a> DeviceWalkers<'a> {
    /// No colourings yet; they will have `k` colours.
    pub fn new(graph: &'a DeviceGraph, k: usize, stream: Stream) -> Result<Self, GpuError> {
        let device = graph.device();
        let shape = graph.shape(k)?;
        let walkers = Self {
            kernel: graph.module().kernel("coloring_walk")?,
            shape,
            logarithms: device.alloc_from(&logarithms())?,
            colors: device.alloc(0)?,
            best: device.alloc(0)?,
            tasks: Feed::new(device, 64)?,
            states: Feed::new(device, 64)?,
            graph,
            stream,
        };
        walkers.shared_bytes(false)?;
        Ok(walkers)
    }

    /// Walks that the device has room for at the same time.
    pub fn n_resident(&self, is_coupled: bool) -> Result<usize, GpuError> {
        let info = self.graph.device().info();
        let per_processor = (info.shared_bytes + 1_024) / (self.shared_bytes(is_coupled)? + 1_024);
        Ok(per_processor.clamp(1, 32) as usize * info.multiprocessors.max(1) as usize)
    }

    fn shared_bytes(&self, is_coupled: bool) -> Result<u32, GpuError> {
        let Shape { k, row_words, .. } = self.shape;
        let mut words = row_words + k + k * row_words;
        if is_coupled {
            words += 2 * (row_words + (k * k).div_ceil(2));
        }
        let most = self.graph.device().info().shared_bytes;
        if words * 4 > most {
            return Err(GpuError::Unavailable {
                what: format!(
                    "a walk of {} vertices with {k} colours takes {} bytes of shared memory, there are {most}",
                    self.shape.n,
                    words * 4
                ),
                cure: "walk on the CPU".into(),
            });
        }
        Ok(words * 4)
    }
}

impl Slots for DeviceWalkers<'_> {
    fn n(&self) -> usize {
        self.shape.n as usize
    }

    fn k(&self) -> usize {
        self.shape.k as usize
    }

    fn reserve(&mut self, n_slots: usize) -> Result<(), GpuError> {
        let words = n_slots * self.shape.slot_words as usize;
        self.colors = self.graph.device().alloc(words)?;
        self.best = self.graph.device().alloc(words)?;
        Ok(())
    }

    fn write(&mut self, slot: usize, colors: &[u32]) -> Result<(), GpuError> {
        self.shape.upload(&self.stream, &self.colors, slot, colors)
    }

    fn read(&mut self, slot: usize) -> Result<Vec<u32>, GpuError> {
        self.shape.download(&self.stream, &self.colors, slot)
    }
}

impl Walkers for DeviceWalkers<'_> {
    fn read_best(&mut self, slot: usize) -> Result<Vec<u32>, GpuError> {
        self.shape.download(&self.stream, &self.best, slot)
    }

    fn walk(&mut self, walks: &[Walk]) -> Result<Vec<Walked>, GpuError> {
        if walks.is_empty() {
            return Ok(Vec::new());
        }
        let twin = |walk: &Walk| WalkTask {
            slot: walk.slot as u32,
            left: walk.beside[0] as u32,
            right: walk.beside[1] as u32,
            unused: 0,
            first: walk.first,
            count: walk.count,
            random: walk.random,
            weight: walk.weight,
            coupling: walk.coupling,
        };
        let is_coupled = walks.iter().any(|walk| walk.coupling > 0);
        let shared_bytes = self.shared_bytes(is_coupled)?;
        let args = WalkArgs {
            tasks: self.tasks.send(&self.stream, &walks.iter().map(twin).collect::<Vec<_>>())?,
            adjacency: self.graph.adjacency(),
            logarithms: self.logarithms.ptr(),
            colors: self.colors.ptr(),
            best: self.best.ptr(),
            states: self.states.room(&self.stream, walks.len())?,
            shape: self.shape,
            is_coupled: u32::from(is_coupled),
            unused: 0,
        };
        let shape = Launch::blocks(walks.len() as u32, 32).shared(shared_bytes);
        // SAFETY: `source` compares the layout of `WalkArgs`; a block takes one of the walks, for which tasks and states have room. All
        // buffers are this struct's own, on its one stream, and hold the slots that `reserve` was asked for.
        unsafe { self.stream.launch(&self.kernel, shape, &args)? };
        let states = self.states.fetch(&self.stream, walks.len())?;
        let end =
            |state: &WalkState| Walked { conflicts: state.conflicts, best_conflicts: state.best_conflicts };
        Ok(states.iter().map(end).collect())
    }
}
