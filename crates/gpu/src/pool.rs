//! Which stream takes which work.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device::Device;
use crate::error::GpuError;
use crate::stream::{Priority, Stream};

/// Whether streams of a pool differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamMode {
    /// Everything on one stream, in the order of submission. For finding errors and for comparison.
    Sequential,
    /// Transfers and computations on streams of their own, so that they overlap.
    #[default]
    Parallel,
}

/// The purpose of work, which chooses its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// From the host to the device.
    Upload,
    /// On the device.
    Compute,
    /// From the device to the host.
    Download,
}

impl Purpose {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Compute => "compute",
            Self::Download => "download",
        }
    }
}

/// How a pool is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamPoolOptions {
    /// Number of streams in parallel mode: one for uploads, one for downloads, the rest for computations. With two, transfers share
    /// one.
    pub streams: usize,
    /// Whether they are used.
    pub mode: StreamMode,
    /// Priority of streams for transfers.
    pub transfers: Priority,
    /// Priority of streams for computations.
    pub computations: Priority,
}

impl Default for StreamPoolOptions {
    /// Four streams in parallel mode. Transfers go first: what waits for them is the next computation.
    fn default() -> Self {
        Self {
            streams: 4,
            mode: StreamMode::Parallel,
            transfers: Priority::High,
            computations: Priority::Normal,
        }
    }
}

/// Streams, handed out in turn or by purpose.
#[derive(Debug)]
pub struct StreamPool {
    streams: Vec<Stream>,
    turn: AtomicUsize,
    computation: AtomicUsize,
}

impl StreamPool {
    /// Makes the streams.
    pub fn new(device: &Device, options: StreamPoolOptions) -> Result<Self, GpuError> {
        let n_streams = match (options.mode, options.streams) {
            (_, 0) => return Err(GpuError::misuse("a pool needs at least one stream")),
            (StreamMode::Sequential, _) => 1,
            (StreamMode::Parallel, n) => n,
        };
        let n_transfers = n_transfers(n_streams);
        let streams = (0..n_streams)
            .map(|i| {
                device.stream_with(if i < n_transfers { options.transfers } else { options.computations })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { streams, turn: AtomicUsize::new(0), computation: AtomicUsize::new(0) })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.streams[0].device()
    }

    /// All streams.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The next stream in turn, of all.
    pub fn next(&self) -> &Stream {
        &self.streams[self.turn.fetch_add(1, Ordering::Relaxed) % self.streams.len()]
    }

    /// The stream for a purpose; for computations, the next of theirs.
    pub fn of(&self, purpose: Purpose) -> &Stream {
        let n_transfers = n_transfers(self.streams.len());
        match purpose {
            Purpose::Upload => &self.streams[0],
            Purpose::Download => &self.streams[n_transfers.saturating_sub(1)],
            Purpose::Compute => {
                let computations = &self.streams[n_transfers..];
                &computations[self.computation.fetch_add(1, Ordering::Relaxed) % computations.len()]
            }
        }
    }

    /// Waits for all of them.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.streams.iter().try_for_each(Stream::synchronize)
    }
}

/// How many of the first streams are for transfers.
fn n_transfers(n_streams: usize) -> usize {
    n_streams.saturating_sub(1).min(2)
}
