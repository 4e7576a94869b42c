//! Which stream takes which work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// On the device, before all computations: the host or all of them wait for it.
    Prepare,
    /// From the device to the host.
    Download,
}

/// Streams by purpose, made when they are first asked for.
///
/// | streams | upload | download | compute |
/// |---|---|---|---|
/// | 1, or sequential | the only one | the only one | the only one |
/// | 2 | one for transfers | the same | one |
/// | n | its own | its own | n - 2 in turn |
///
/// Work that prepares has a stream of its own besides, unless all is sequential. A workload whose batches each keep a stream asks for
/// [lanes](StreamPool::lane) instead.
#[derive(Debug)]
pub struct StreamPool {
    device: Device,
    n_streams: usize,
    mode: StreamMode,
    made: Mutex<Vec<(Place, Stream)>>,
    turn: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Upload,
    Download,
    Prepare,
    Lane(usize),
    Beside(usize),
}

impl StreamPool {
    /// A pool of so many streams.
    pub(crate) fn new(device: &Device, n_streams: usize, mode: StreamMode) -> Result<Self, GpuError> {
        if n_streams == 0 {
            return Err(GpuError::misuse("a pool needs at least one stream"));
        }
        let turn = AtomicUsize::new(0);
        Ok(Self { device: device.clone(), n_streams, mode, made: Mutex::default(), turn })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream for a purpose; for computations, the next of theirs.
    pub fn of(&self, purpose: Purpose) -> Result<Stream, GpuError> {
        self.at(match (purpose, self.n_streams) {
            (Purpose::Prepare, _) => Place::Prepare,
            (Purpose::Compute, n) => {
                Place::Lane(self.turn.fetch_add(1, Ordering::Relaxed) % n.saturating_sub(2).max(1))
            }
            (_, 1) => Place::Lane(0),
            (Purpose::Download, 3..) => Place::Download,
            _ => Place::Upload,
        })
    }

    /// The stream for the computations of a lane. Lanes share one only where all is sequential.
    pub fn lane(&self, lane: usize) -> Result<Stream, GpuError> {
        self.at(Place::Lane(lane))
    }

    /// A second stream of a lane, for what its computations wait for and may run beside others of them.
    pub fn beside(&self, lane: usize) -> Result<Stream, GpuError> {
        self.at(Place::Beside(lane))
    }

    /// Where the stream with this number on the device stands in this pool: transfers first, then computations, then what prepares, then what runs
    /// beside lanes.
    pub fn position(&self, number: u64) -> Option<usize> {
        let made = self.made();
        let (place, _) = made.iter().find(|(_, stream)| stream.number() == number)?;
        let n_transfers = self.n_streams.saturating_sub(1).min(2);
        Some(match (place, self.mode) {
            (_, StreamMode::Sequential) | (Place::Upload, _) => 0,
            (Place::Download, _) => 1,
            (Place::Lane(lane), _) => n_transfers + lane,
            (Place::Prepare, _) => self.n_streams,
            (Place::Beside(lane), _) => self.n_streams + 1 + lane,
        })
    }

    /// What the stream with this number on the device is for.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        let made = self.made();
        let (place, _) = made.iter().find(|(_, stream)| stream.number() == number)?;
        Some(match (place, self.mode) {
            (_, StreamMode::Sequential) => "everything".into(),
            (Place::Upload, _) if self.n_streams == 2 => "transfers".into(),
            (Place::Upload, _) => "uploads".into(),
            (Place::Download, _) => "downloads".into(),
            (Place::Prepare, _) => "preparations".into(),
            (Place::Lane(lane), _) => format!("computations {lane}"),
            (Place::Beside(lane), _) => format!("beside computations {lane}"),
        })
    }

    fn at(&self, place: Place) -> Result<Stream, GpuError> {
        let place = if self.mode == StreamMode::Sequential { Place::Lane(0) } else { place };
        let mut made = self.made();
        if let Some((_, stream)) = made.iter().find(|(other, _)| *other == place) {
            return Ok(stream.clone());
        }
        // What others wait for goes first.
        let is_plain = matches!(place, Place::Lane(_));
        let stream = self.device.stream_with(if is_plain { Priority::Normal } else { Priority::High })?;
        made.push((place, stream.clone()));
        Ok(stream)
    }

    fn made(&self) -> MutexGuard<'_, Vec<(Place, Stream)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
