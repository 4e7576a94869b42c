//! A graph in the memory of a device, in the form that the kernels of this crate read.

use bytemuck::Pod;
use tidemill_gpu::{
    Context, Device, DeviceBuffer, DevicePtr, GpuError, Module, Pinned, Source, Stream, kernel_structs,
};

use crate::experimental::{metropolis, signal};
use crate::phase::PhaseKind;
use crate::random::{self, Random};
use crate::tabu::{MOST_NARROW, class_limit, is_narrow};
use crate::{Graph, memetic, tabu};

/// What all kernels share: file names and texts, to be spliced behind `tidemill.cuh`.
const COMMON: [(&str, &str); 3] = [
    random::PIECE,
    ("coloring/bytes.cuh", include_str!("bytes.cuh")),
    ("coloring/shape.cuh", include_str!("shape.cuh")),
];

const POOL: [(&str, &str); 6] = [
    ("coloring/memetic/memetic.cu", include_str!("memetic/memetic.cu")),
    ("coloring/experimental/metropolis/metropolis.cu", include_str!("experimental/metropolis/metropolis.cu")),
    ("coloring/experimental/signal/list.cuh", include_str!("experimental/signal/list.cuh")),
    ("coloring/experimental/signal/reservoir.cu", include_str!("experimental/signal/reservoir.cu")),
    ("coloring/experimental/signal/transfer.cu", include_str!("experimental/signal/transfer.cu")),
    ("coloring/experimental/signal/inference.cu", include_str!("experimental/signal/inference.cu")),
];

/// The kernels of populations, walks and signals.
pub fn source() -> Source {
    let layouts = [
        random::LAYOUTS,
        LAYOUTS,
        memetic::device::LAYOUTS,
        metropolis::device::LAYOUTS,
        signal::device::LAYOUTS,
    ];
    Source::splice("coloring.cu", &[&COMMON[..], &POOL].concat()).comparing("", &layouts)
}

/// The kernels of tabu searches with so many warps for each: 1, 2, 4 or 8.
pub fn tabu_source(n_warps: usize) -> Source {
    let define = format!("#define TABU_WARPS {n_warps}\n");
    let pieces = [
        ("coloring/tabu/warps.cuh", define.as_str()),
        ("coloring/tabu/tabu.cu", include_str!("tabu/tabu.cu")),
    ];
    let layouts = [random::LAYOUTS, LAYOUTS, tabu::device::LAYOUTS];
    Source::splice("tabu.cu", &[&COMMON[..], &pieces].concat()).comparing("", &layouts)
}

/// The most vertices of a graph on a device: numbers of vertices have 16 bits, and the adjacency then takes half a gibibyte.
pub const MOST_VERTICES: usize = 65_535;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;
/// Words of a row that a word of adjacency covers in each lane.
pub(crate) const NIBBLES: usize = 8;

/// A graph on a device.
#[derive(Debug)]
pub struct DeviceGraph {
    device: Device,
    module: Module,
    adjacency: DeviceBuffer<u32>,
    n: usize,
    n_groups: usize,
    row_words: usize,
    /// Least number of colours for which counts fit into bytes, and the most vertices of a class then.
    least_k: usize,
    limit: usize,
}

kernel_structs! {
    const LAYOUTS;

    /// The shape of rows for some number of colours. Twin of `Shape` in `shape.cuh`.
    #[derive(Debug)]
    pub(crate) struct Shape {
        pub(crate) n: u32,
        pub(crate) k: u32,
        /// Words of a row of counts: odd, so that a column lies in different banks.
        pub(crate) row_words: u32,
        /// Words of a colouring in memory.
        pub(crate) slot_words: u32,
        /// Groups of adjacency of a vertex.
        pub(crate) n_groups: u32,
        /// Vertices of a class, at most.
        pub(crate) limit: u32,
    }

    /// Twin of `Task` in `shape.cuh`.
    #[derive(Debug)]
    pub(crate) struct Task {
        pub(crate) slot: u32,
        unused: u32,
        pub(crate) random: Random,
    }
}

impl Task {
    pub(crate) fn new(slot: usize, random: Random) -> Self {
        Self { slot: slot as u32, unused: 0, random }
    }
}

/// Words of a row of counts, an odd number, and groups of adjacency of a vertex, of a graph with so many vertices.
pub(crate) fn row_shape(n: usize) -> (usize, usize) {
    let row_words = n.div_ceil(4) | 1;
    (row_words, row_words.div_ceil(LANES * NIBBLES))
}

impl DeviceGraph {
    /// Compiles the kernels and uploads the graph.
    pub fn new(device: &Device, graph: &Graph) -> Result<Self, GpuError> {
        let n = graph.n();
        let (row_words, n_groups) = row_shape(n);
        let mut adjacency = vec![0_u32; n.max(1) * n_groups * LANES];
        for vertex in 0..n {
            let row = &mut adjacency[vertex * n_groups * LANES..][..n_groups * LANES];
            for &other in graph.neighbours(vertex) {
                let (word, place) = (other as usize / 4, other % 4);
                let (group, turn, lane) = (word / (LANES * NIBBLES), word / LANES % NIBBLES, word % LANES);
                row[group * LANES + lane] |= 1 << (turn as u32 * 4 + place);
            }
        }
        Ok(Self {
            device: device.clone(),
            module: device.load(&source())?,
            adjacency: device.alloc_from(&adjacency)?,
            n,
            n_groups,
            row_words,
            least_k: (1..).find(|&k| is_narrow(graph, k)).unwrap_or(1),
            limit: class_limit(graph, MOST_NARROW),
        })
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Vertices.
    pub fn n(&self) -> usize {
        self.n
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) fn adjacency(&self) -> DevicePtr<u32> {
        self.adjacency.ptr()
    }

    /// The shape of rows with `k` colours; an error if the kernels cannot work with so many or so few.
    pub(crate) fn shape(&self, k: usize) -> Result<Shape, GpuError> {
        let refuse = |what: String| {
            Err(GpuError::Unavailable { what, cure: "search for this colouring on the CPU".into() })
        };
        if self.n > MOST_VERTICES {
            return refuse(format!("the kernels colour up to {MOST_VERTICES} vertices, not {}", self.n));
        }
        if !(1..=255).contains(&k) {
            return refuse(format!("the kernels colour with 1 to 255 colours, not {k}"));
        }
        if k < self.least_k {
            let least = self.least_k;
            return refuse(format!(
                "with {k} colours, fewer than {least}, counts of neighbours may not fit a byte"
            ));
        }
        Ok(Shape {
            n: self.n as u32,
            k: k as u32,
            row_words: self.row_words as u32,
            slot_words: self.n.div_ceil(4).next_multiple_of(LANES).max(LANES) as u32,
            n_groups: self.n_groups as u32,
            limit: self.limit.min(u32::MAX as usize) as u32,
        })
    }
}

impl Shape {
    /// Puts a colouring into a slot of a buffer.
    pub(crate) fn upload(
        &self,
        stream: &Stream,
        to: &DeviceBuffer<u32>,
        slot: usize,
        colors: &[u32],
    ) -> Result<(), GpuError> {
        let words = self.pack(colors);
        let mut staging = stream.device().pinned(words.len())?;
        staging.as_mut_slice()?.copy_from_slice(&words);
        stream.upload(&staging, 0, to, slot * words.len(), words.len())
    }

    /// The colouring in a slot of a buffer.
    pub(crate) fn download(
        &self,
        stream: &Stream,
        from: &DeviceBuffer<u32>,
        slot: usize,
    ) -> Result<Vec<u32>, GpuError> {
        let words = self.slot_words as usize;
        let mut staging = stream.device().pinned(words)?;
        stream.download(from, slot * words, &mut staging, 0, words)?;
        Ok(self.unpack(staging.as_slice()?))
    }

    /// A colouring as words of four bytes.
    pub(crate) fn pack(&self, colors: &[u32]) -> Vec<u32> {
        let mut words = vec![0; self.slot_words as usize];
        for (vertex, color) in colors.iter().enumerate() {
            words[vertex / 4] |= (*color).min(self.k - 1) << (vertex % 4 * 8);
        }
        words
    }

    /// The colouring in such words.
    fn unpack(&self, words: &[u32]) -> Vec<u32> {
        (0..self.n as usize).map(|vertex| words[vertex / 4] >> (vertex % 4 * 8) & 0xff).collect()
    }
}

/// The streams of one device, one for each phase that runs there, for the whole run: what a record calls stream 2 is always the same.
#[derive(Clone)]
pub struct DeviceStreams {
    /// Number of the device among those of the run.
    number: usize,
    streams: Vec<(PhaseKind, Stream)>,
}

impl DeviceStreams {
    /// Streams for these phases, in the order of the phases; in turn where there are fewer streams.
    pub fn new(context: &Context, number: usize, kinds: &[PhaseKind]) -> Result<Self, GpuError> {
        let mut streams: Vec<(PhaseKind, Stream)> = Vec::new();
        let (n_lanes, mut next) = (context.options().n_lanes(), 0);
        for kind in kinds {
            // Two of the signals share one, so that three need two.
            let shared = match kind {
                PhaseKind::Inference => streams.iter().find(|(of, _)| *of == PhaseKind::Transfer),
                _ => None,
            };
            let stream = match shared {
                Some((_, stream)) => stream.clone(),
                None => {
                    next += 1;
                    context.pool().lane((next - 1) % n_lanes)?
                }
            };
            streams.push((*kind, stream));
        }
        Ok(Self { number, streams })
    }

    /// The stream of a phase.
    pub(crate) fn of(&self, kind: PhaseKind) -> Option<&Stream> {
        self.streams.iter().find(|(of, _)| *of == kind).map(|(_, stream)| stream)
    }

    /// Number of the device among those of the run.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

/// Small lists that go to the device again and again, in memory that stays.
#[derive(Debug)]
pub(crate) struct Feed<T: Pod> {
    staging: Pinned<T>,
    buffer: DeviceBuffer<T>,
}

impl<T: Pod> Feed<T> {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, GpuError> {
        Ok(Self { staging: device.pinned(len)?, buffer: device.alloc(len)? })
    }

    /// Uploads a list; valid on this stream until the next one.
    pub(crate) fn send(&mut self, stream: &Stream, list: &[T]) -> Result<DevicePtr<T>, GpuError> {
        if list.len() > self.staging.len() {
            // Work in flight still reads the old memory; dropping it waits for that.
            *self = Self::new(stream.device(), list.len().next_power_of_two())?;
        }
        self.staging.as_mut_slice()?[..list.len()].copy_from_slice(list);
        stream.upload(&self.staging, 0, &self.buffer, 0, list.len())?;
        Ok(self.buffer.ptr())
    }

    /// Room on the device for a list of results.
    pub(crate) fn room(&mut self, stream: &Stream, len: usize) -> Result<DevicePtr<T>, GpuError> {
        if len > self.staging.len() {
            *self = Self::new(stream.device(), len.next_power_of_two())?;
        }
        Ok(self.buffer.ptr())
    }

    /// Downloads the results, and waits for them.
    pub(crate) fn fetch(&mut self, stream: &Stream, len: usize) -> Result<Vec<T>, GpuError> {
        stream.download(&self.buffer, 0, &mut self.staging, 0, len)?;
        Ok(self.staging.as_slice()?[..len].to_vec())
    }
}
