//! Signals on a device, each by a kernel that adds in the order of its twin.
//!
//! What needs a logarithm or a greedy choice is done once on the host: tables, names of classes, the radius of the network.

use tidemill_gpu::{
    DeviceBuffer, DevicePtr, Event, GpuError, Kernel, Launch, Module, Pinned, Stream, kernel_structs,
};

use super::inference::Beliefs;
use super::{Trajectory, reservoir, transfer};
use crate::graph::Graph;

/// Threads of a block.
const THREADS: u32 = 128;

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// Twin of `NeighbourLists` in `list.cuh`.
    struct NeighbourLists {
        offsets: DevicePtr<u32>,
        neighbours: DevicePtr<u32>,
        n: u32,
        unused: u32,
    }

    /// Twin of `ReservoirArgs` in `reservoir.cu`.
    struct ReservoirArgs {
        lists: NeighbourLists,
        history: DevicePtr<u32>,
        state: DevicePtr<f64>,
        next: DevicePtr<f64>,
        response: DevicePtr<f64>,
        scale: f64,
        n_words: u32,
        sample: u32,
        is_counted: u32,
        unused: u32,
    }

    /// Twin of `TransferArgs` in `transfer.cu`.
    struct TransferArgs {
        lists: NeighbourLists,
        history: DevicePtr<u32>,
        logarithms: DevicePtr<f64>,
        told: DevicePtr<f64>,
        n_words: u32,
        n_pairs: u32,
    }

    /// Twin of `InferenceArgs` in `inference.cu`.
    struct InferenceArgs {
        lists: NeighbourLists,
        counts: DevicePtr<u32>,
        surprise: DevicePtr<f64>,
        priority: DevicePtr<f64>,
        weight: f64,
        k: u32,
        unused: u32,
    }
}

/// A graph as the kernels of signals read it, and the stream that they run on.
pub struct DeviceSignals<'a> {
    graph: &'a Graph,
    module: Module,
    stream: Stream,
    offsets: DeviceBuffer<u32>,
    neighbours: DeviceBuffer<u32>,
}

/// A signal with all the memory that it needs, ready to start: taking memory may wait for what runs on the device, starting does not.
pub struct SignalJob {
    stream: Stream,
    kernel: Kernel,
    launch: Launch,
    steps: Steps,
    result: DeviceBuffer<f64>,
    staging: Pinned<f64>,
    /// What the kernels read.
    _held: (Vec<DeviceBuffer<u32>>, Vec<DeviceBuffer<f64>>),
}

/// What is launched, one after another.
enum Steps {
    Reservoir(Vec<ReservoirArgs>),
    Transfer(TransferArgs),
    Inference(InferenceArgs),
}

/// A signal that the device works on.
pub struct StartedSignal<'j> {
    job: &'j mut SignalJob,
    /// When its first kernel began.
    pub began: Event,
    /// When its last kernel was done.
    pub ended: Event,
}

impl SignalJob {
    /// Queues the kernels.
    pub fn start(&mut self) -> Result<StartedSignal<'_>, GpuError> {
        let began = self.stream.record()?;
        // SAFETY: `source` compares the layouts; a thread takes a vertex, for each of which there is a result, a state, its words of
        // history or its counts, and the lists are those of the graph; there is a logarithm for every number of samples and a surprise
        // for every number of colourings. The job holds all of it, and waits for the kernels before it gives it back.
        unsafe {
            match &self.steps {
                Steps::Reservoir(steps) => {
                    for args in steps {
                        self.stream.launch(&self.kernel, self.launch, args)?;
                    }
                }
                Steps::Transfer(args) => self.stream.launch(&self.kernel, self.launch, args)?,
                Steps::Inference(args) => self.stream.launch(&self.kernel, self.launch, args)?,
            }
        }
        let ended = self.stream.record()?;
        Ok(StartedSignal { job: self, began, ended })
    }
}

impl StartedSignal<'_> {
    /// Waits for the kernels; a number for each vertex.
    pub fn finish(self) -> Result<Vec<f64>, GpuError> {
        let SignalJob { stream, result, staging, .. } = self.job;
        stream.download(result, 0, staging, 0, result.len())?;
        Ok(staging.as_slice()?.to_vec())
    }
}

impl<'a> DeviceSignals<'a> {
    /// Uploads the lists of neighbours.
    pub fn new(graph: &'a Graph, stream: Stream) -> Result<Self, GpuError> {
        let device = stream.device();
        let (offsets, neighbours) = graph.lists();
        Ok(Self {
            graph,
            module: device.load(&crate::device::source())?,
            offsets: device.alloc_from(offsets)?,
            neighbours: device.alloc_from(neighbours)?,
            stream,
        })
    }

    fn lists(&self) -> NeighbourLists {
        let n = self.graph.n() as u32;
        NeighbourLists { offsets: self.offsets.ptr(), neighbours: self.neighbours.ptr(), n, unused: 0 }
    }

    /// The sums of [`reservoir()`](super::reservoir()), before they become means.
    pub fn reservoir_job(&self, trajectory: &Trajectory) -> Result<SignalJob, GpuError> {
        let (device, n) = (self.stream.device(), self.graph.n());
        let (history, n_words) = history(trajectory);
        let history = device.alloc_from(&history)?;
        let states = [device.alloc::<f64>(n)?, device.alloc::<f64>(n)?];
        let result = device.alloc(n)?;
        let (scale, n_warm) = (reservoir::scale(self.graph), reservoir::n_warm(trajectory));
        let step = |sample: usize| ReservoirArgs {
            lists: self.lists(),
            history: history.ptr(),
            state: states[sample % 2].ptr(),
            next: states[(sample + 1) % 2].ptr(),
            response: result.ptr(),
            scale,
            n_words: n_words as u32,
            sample: sample as u32,
            is_counted: u32::from(sample >= n_warm),
            unused: 0,
        };
        let steps = Steps::Reservoir((0..trajectory.conflicts.len()).map(step).collect());
        self.job("coloring_reservoir", steps, result, (vec![history], states.into()))
    }

    /// The transfer entropies of [`transfer()`](super::transfer()).
    pub fn transfer_job(&self, trajectory: &Trajectory) -> Result<SignalJob, GpuError> {
        let device = self.stream.device();
        let (history, n_words) = history(trajectory);
        let history = device.alloc_from(&history)?;
        let logarithms = device.alloc_from(&transfer::logarithms(trajectory))?;
        let result = device.alloc(self.graph.n())?;
        let steps = Steps::Transfer(TransferArgs {
            lists: self.lists(),
            history: history.ptr(),
            logarithms: logarithms.ptr(),
            told: result.ptr(),
            n_words: n_words as u32,
            n_pairs: trajectory.conflicts.len().saturating_sub(1) as u32,
        });
        self.job("coloring_transfer", steps, result, (vec![history], vec![logarithms]))
    }

    /// The priorities of [`inference()`](super::inference()); none without a colouring.
    pub fn inference_job(&self, trajectory: &Trajectory, k: usize) -> Result<Option<SignalJob>, GpuError> {
        let device = self.stream.device();
        let Some(beliefs) = Beliefs::new(trajectory, k) else { return Ok(None) };
        let counts = device.alloc_from(&beliefs.counts)?;
        let surprise = device.alloc_from(&beliefs.surprise)?;
        let result = device.alloc(self.graph.n())?;
        let steps = Steps::Inference(InferenceArgs {
            lists: self.lists(),
            counts: counts.ptr(),
            surprise: surprise.ptr(),
            priority: result.ptr(),
            weight: beliefs.weight,
            k: k as u32,
            unused: 0,
        });
        self.job("coloring_inference", steps, result, (vec![counts], vec![surprise])).map(Some)
    }

    /// The response of the network, as [`reservoir()`](super::reservoir()) gives it.
    pub fn reservoir(&self, trajectory: &Trajectory) -> Result<Vec<f64>, GpuError> {
        let response = self.reservoir_job(trajectory)?.start()?.finish()?;
        Ok(reservoir::averaged(response, trajectory))
    }

    /// The transfer entropies, as [`transfer()`](super::transfer()) gives them.
    pub fn transfer(&self, trajectory: &Trajectory) -> Result<Vec<f64>, GpuError> {
        self.transfer_job(trajectory)?.start()?.finish()
    }

    /// Expected conflicts less information gain, as [`inference()`](super::inference()) gives them.
    pub fn inference(&self, trajectory: &Trajectory, k: usize) -> Result<Vec<f64>, GpuError> {
        match self.inference_job(trajectory, k)? {
            Some(mut job) => job.start()?.finish(),
            None => Ok(vec![0.0; self.graph.n()]),
        }
    }

    fn job(
        &self,
        kernel: &str,
        steps: Steps,
        result: DeviceBuffer<f64>,
        held: (Vec<DeviceBuffer<u32>>, Vec<DeviceBuffer<f64>>),
    ) -> Result<SignalJob, GpuError> {
        Ok(SignalJob {
            stream: self.stream.clone(),
            kernel: self.module.kernel(kernel)?,
            launch: Launch::blocks((self.graph.n() as u32).div_ceil(THREADS).max(1), THREADS),
            steps,
            staging: self.stream.device().pinned(result.len())?,
            result,
            _held: held,
        })
    }
}

/// Whether each vertex was in conflict, a bit for each sample, and the words of a vertex.
fn history(trajectory: &Trajectory) -> (Vec<u32>, usize) {
    let n_words = trajectory.conflicts.len().div_ceil(32).max(1);
    let mut words = vec![0_u32; trajectory.n * n_words];
    for (sample, is_in_conflict) in trajectory.conflicts.iter().enumerate() {
        for (vertex, is_in_conflict) in is_in_conflict.iter().enumerate() {
            words[vertex * n_words + sample / 32] |= u32::from(*is_in_conflict) << (sample % 32);
        }
    }
    (words, n_words)
}
