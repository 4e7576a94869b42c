//! One device, as one workload uses it: its streams, the order of operations on them, and a record of what ran when.

use std::sync::Arc;

use crate::coordinator::Coordinator;
use crate::device::Device;
use crate::error::GpuError;
use crate::pool::{StreamMode, StreamPool};
use crate::timeline::Timeline;
use crate::trace::{TraceSpan, chrome_trace};

/// How a workload uses a device. No result depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextOptions {
    /// Streams, at least one. What they are for is the workload's choice.
    pub streams: usize,
    /// Whether streams differ.
    pub mode: StreamMode,
    /// Share of the free memory that may be used.
    pub memory_fraction: f64,
}

impl ContextOptions {
    /// So many streams side by side, and most of the memory.
    pub fn parallel(streams: usize) -> Self {
        Self { streams, mode: StreamMode::Parallel, memory_fraction: 0.8 }
    }

    /// The same one after the other, on one stream: for finding errors and for comparison.
    pub fn sequential() -> Self {
        Self { mode: StreamMode::Sequential, ..Self::parallel(1) }
    }

    /// How much can be on the device side by side.
    pub fn n_lanes(&self) -> usize {
        match self.mode {
            StreamMode::Sequential => 1,
            StreamMode::Parallel => self.streams.max(1),
        }
    }
}

/// A device with the streams of one workload. A clone is the same.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    options: ContextOptions,
    coordinator: Coordinator,
}

impl Context {
    /// Makes streams as they are asked for; its time begins now.
    pub fn new(device: &Device, options: ContextOptions) -> Result<Self, GpuError> {
        let pool = StreamPool::new(device, options.streams, options.mode)?;
        let coordinator = Coordinator::new(pool, Timeline::new(device)?);
        Ok(Self { inner: Arc::new(Inner { options, coordinator }) })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.pool().device()
    }

    /// How it is used.
    pub fn options(&self) -> &ContextOptions {
        &self.inner.options
    }

    /// Which stream takes which work.
    pub fn pool(&self) -> &StreamPool {
        self.coordinator().pool()
    }

    /// Operations with dependencies.
    pub fn coordinator(&self) -> &Coordinator {
        &self.inner.coordinator
    }

    /// What ran when.
    pub fn timeline(&self) -> &Timeline {
        self.coordinator().timeline()
    }

    /// Bytes that may be used, of those that are free now. Asking takes as long as a small kernel.
    pub fn free_bytes(&self) -> Result<usize, GpuError> {
        Ok((self.device().free_bytes()? as f64 * self.options().memory_fraction) as usize)
    }

    /// What ran so far as a trace in Chrome's JSON format, one track per stream.
    pub fn to_json(&self) -> String {
        let span = |span: crate::Span| TraceSpan {
            device: 0,
            track: span.stream,
            name: span.name,
            begin_ms: span.start_ms,
            end_ms: span.end_ms,
        };
        let spans: Vec<TraceSpan> = self.timeline().spans().into_iter().map(span).collect();
        let name = |stream: u64| self.pool().name(stream).unwrap_or_else(|| format!("stream {stream}"));
        chrome_trace(&[&self.device().info().name], name, &spans)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.device().info().name).field(self.options()).finish()
    }
}
