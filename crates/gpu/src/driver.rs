//! The trait that a backend implements. Everything above this trait is the same on CUDA and on the host.
//!
//! Handles are plain numbers: pointers of the CUDA driver, or keys of the host's tables. The types above own them and give
//! each back exactly once.

use crate::device::DeviceInfo;
use crate::error::GpuError;
use crate::module::Source;
use crate::stream::{Launch, Priority};
use crate::wait::WaitLimit;

/// A stream of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamId(pub u64);

/// An event of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EventId(pub u64);

/// A loaded module of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ModuleId(pub u64);

/// A kernel of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KernelId(pub u64);

/// What the backend knows of a kernel.
pub(crate) struct KernelFacts {
    pub id: KernelId,
    /// Size of the argument structure; `None` if the driver is too old to tell.
    pub args_size: Option<usize>,
    pub registers: u32,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    pub max_threads: u32,
}

/// One operation of a stream. Addresses and lengths were checked by the caller.
pub(crate) enum Op<'a> {
    Upload { from: u64, to: u64, bytes: usize },
    Download { from: u64, to: u64, bytes: usize },
    Copy { from: u64, to: u64, bytes: usize },
    Fill { at: u64, bytes: usize, byte: u8 },
    Launch { kernel: KernelId, name: &'a str, launch: Launch, args: &'a [u8] },
    Host(Box<dyn FnOnce() + Send>),
    Record(EventId),
    Wait(EventId),
}

/// A backend.
///
/// - Nothing here may panic because something is missing on the machine.
/// - `submit` returns before the operation is done; operations of one stream run in order.
/// - A failure of the device is reported as `GpuError::Fault` without kernel names; the caller adds them.
/// - Dropping an event does not disturb waits on its last record.
/// - No call waits longer than the limit; one that would returns `GpuError::Hung` without kernel names. After that none is made any more.
pub(crate) trait Driver: Send + Sync {
    fn info(&self) -> &DeviceInfo;
    fn wait_limit(&self) -> &WaitLimit;
    fn free_bytes(&self) -> Result<u64, GpuError>;

    /// Zeroed memory of the device. `bytes` is not 0.
    fn alloc(&self, bytes: u64) -> Result<u64, GpuError>;
    /// Addresses for so many bytes, with no memory behind them yet; `None` where that is not possible. `bytes` is not 0.
    fn reserve(&self, bytes: u64) -> Result<Option<u64>, GpuError>;
    /// Puts memory behind the first bytes of what was reserved. What is there stays; what new memory holds is not defined. Waits for nothing.
    fn back(&self, address: u64, bytes: u64) -> Result<(), GpuError>;
    /// For memory and for reserved addresses. Called when no operation uses them any more.
    fn free(&self, address: u64) -> Result<(), GpuError>;
    /// Zeroed page-locked memory of the host, aligned to 64 bytes. `bytes` is not 0.
    fn pin(&self, bytes: u64) -> Result<u64, GpuError>;
    /// Called when no operation uses the memory any more.
    fn unpin(&self, address: u64) -> Result<(), GpuError>;

    fn stream(&self, priority: Priority) -> Result<StreamId, GpuError>;
    /// Work already submitted still runs.
    fn drop_stream(&self, stream: StreamId);
    fn submit(&self, stream: StreamId, op: Op<'_>) -> Result<(), GpuError>;
    fn synchronize_stream(&self, stream: StreamId) -> Result<(), GpuError>;
    fn synchronize(&self) -> Result<(), GpuError>;

    fn event(&self) -> Result<EventId, GpuError>;
    fn drop_event(&self, event: EventId);
    fn event_done(&self, event: EventId) -> Result<bool, GpuError>;
    fn event_wait(&self, event: EventId) -> Result<(), GpuError>;
    /// Both are done.
    fn elapsed_ms(&self, from: EventId, to: EventId) -> Result<f64, GpuError>;

    fn load(&self, source: &Source) -> Result<ModuleId, GpuError>;
    fn kernel(&self, module: ModuleId, name: &str) -> Result<Option<KernelFacts>, GpuError>;
    /// Blocks of so many threads and so much dynamic shared memory that one multiprocessor has room for at a time.
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared_bytes: u32) -> Result<u32, GpuError>;
}
