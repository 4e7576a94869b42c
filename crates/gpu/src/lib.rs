//! The device runtime of Tidemill: streams, buffers and kernels, on CUDA and on the host.
//!
//! The centre is [`Device`]. It allocates memory, compiles kernels and hands out [`Stream`]s, and there are two kinds of it:
//! [`Device::cuda`] is a GPU, [`Device::host`] is made of threads and plain memory and runs the same kernel texts under
//! emulation. Everything else is written once, so every rule of scheduling is tested on machines without a GPU. One build
//! serves all: driver and compiler are looked for at run time, and what is missing is an error with a cure.
//!
//! ```
//! use tidemill_gpu::{Device, DevicePtr, GpuError, HostOptions, Launch, Source, kernel_structs};
//!
//! kernel_structs! {
//!     const LAYOUTS;
//!
//!     // The twin of the struct in the kernel's text.
//!     struct DoubleArgs {
//!         data: DevicePtr<u64>,
//!         n: u64,
//!     }
//! }
//!
//! const TEXT: &str = "
//!     struct DoubleArgs { u64* data; u64 n; };
//!     KERNEL(twice, DoubleArgs) {
//!         u64 i = blockIdx.x * blockDim.x + threadIdx.x;
//!         if (i < args.n) args.data[i] *= 2;
//!     }";
//!
//! # fn main() -> Result<(), GpuError> {
//! let device = Device::cuda(0).or_else(|_| Ok::<_, GpuError>(Device::host(HostOptions::default())))?;
//! # if matches!(device.load(&Source::splice("example", &[])), Err(GpuError::Unavailable { .. })) { return Ok(()) }
//! let source = Source::splice("example", &[("twice.cu", TEXT)]).comparing("", &[LAYOUTS]);
//! let kernel = device.load(&source)?.kernel("twice")?;
//!
//! let mut pinned = device.pinned::<u64>(100)?;
//! pinned.as_mut_slice()?.fill(21);
//! let buffer = device.alloc::<u64>(100)?;
//! let stream = device.stream()?;
//! stream.upload(&pinned, 0, &buffer, 0, 100)?;
//! let args = DoubleArgs { data: buffer.ptr(), n: 100 };
//! // SAFETY: the kernel takes `DoubleArgs` and touches `n` elements, which the buffer has; it lives until the download is done.
//! unsafe { stream.launch(&kernel, Launch::blocks(1, 128), &args)? };
//! stream.download(&buffer, 0, &mut pinned, 0, 100)?;
//! assert_eq!(pinned.as_slice()?, [42; 100]); // waits for the download
//! # Ok(())
//! # }
//! ```
//!
//! # The pieces
//!
//! | type | decides |
//! |---|---|
//! | [`Device`], [`DeviceBuffer`], [`Pinned`] | who owns memory, and when it may go |
//! | [`Stream`], [`Event`], [`EventPool`] | what runs after what, and when it ran |
//! | [`Source`], [`Module`], [`Kernel`], [`compile()`] | text to machine code, cached in memory and on disk |
//! | [`kernel_structs!`], [`StructLayout`] | structs that host and kernels share, and that both see them alike |
//! | [`Context`] | a device as one workload uses it; what follows is reached through it |
//! | [`StreamPool`] | which stream takes which work |
//! | [`Coordinator`] | operations with dependencies, by number |
//! | [`Pipeline`] | batches through typed stages, several in flight; how well the time was used |
//! | [`Timeline`] | spans on the device's clock |
//! | [`chrome_trace`] | spans as a trace for Perfetto |
//! | [`Load`] | how much of the device launches fill |
//! | [`probe`] | what this machine has and lacks |
//! | [`HostOptions`], [`Fault`] | a host device that runs out of memory, refuses launches, hangs or gets lost, on order |
//!
//! # Rules
//!
//! - **Nothing waits unless it says so.** Methods of a stream return at once. `wait`, `synchronize`, looking at [`Pinned`]
//!   memory and dropping memory wait; `is_done` and `is_ready` never do.
//! - **Memory lives long enough.** `Pinned` memory knows the transfers that use it, and dropping a [`DeviceBuffer`] waits for
//!   the device. Two things are the caller's: pointers inside kernel arguments, which is why [`Stream::launch`] is `unsafe`, and
//!   that two streams do not use the same elements at the same time.
//! - **Late failures have names.** A kernel that goes wrong is reported by the next call that waits, with the kernels launched
//!   since the last good synchronisation. After that the device is lost, and every call returns that same error.
//! - **No wait is endless.** A wait that lasts longer than [`Device::set_wait_limit`] allows takes the device for lost. Nothing is
//!   waited for after that, and what the device may still be using (memory, streams, the context) is not given back: dropping
//!   everything returns at once, and so does ending the process.
//! - **Three kinds of errors** ([`GpuError`]): *unavailable* (with a cure), *out of memory* (do less and go on), *fault* (go on
//!   elsewhere). The rest are mistakes of the caller.
//! - **Numbers.** Kernels are compiled without contraction of multiplications and additions, so that they give the bits of
//!   the host.
//!
//! # Settings from the environment
//!
//! `TIDEMILL_CACHE` names the folder for compiled kernels (else the user's cache folder), `TIDEMILL_NVRTC` a folder that holds NVRTC
//! (else the loader's path and the usual places of CUDA), `CXX` the compiler for the host. Tests: `TIDEMILL_REQUIRE_GPU=1`,
//! `TIDEMILL_REQUIRE_NVRTC=1` and `TIDEMILL_REQUIRE_EMULATION=1` make a missing device, NVRTC or compiler of the host a failure.

mod buffer;
mod cache;
mod caller;
mod context;
mod coordinator;
mod cuda;
mod device;
mod driver;
pub mod emulate;
mod error;
mod event;
mod fault;
mod fill;
mod host;
mod layout;
mod module;
mod nvrtc;
mod pipeline;
mod pool;
mod probe;
mod site;
mod statistics;
mod stream;
mod timeline;
mod trace;
mod wait;

pub use buffer::{DeviceBuffer, DevicePtr, Pinned};
pub use cache::kernel_folder;
pub use context::{Context, ContextOptions};
pub use coordinator::{Coordinator, OperationId};
pub use device::{Device, DeviceInfo, DeviceKind};
pub use error::GpuError;
pub use event::{Event, EventPool};
pub use fault::Fault;
pub use fill::Load;
pub use host::HostOptions;
pub use layout::StructLayout;
pub use module::{Kernel, Module, Source};
pub use nvrtc::{LEAST_ARCHITECTURE, Nvrtc, NvrtcInfo, capability, compile};
pub use pipeline::Pipeline;
pub use pool::{Purpose, StreamMode, StreamPool};
pub use probe::{Probe, probe};
pub use site::look_for_nvrtc_in;
pub use statistics::{PipelineStatistics, StageStatistics};
pub use stream::{Launch, Stream};
pub use timeline::{Span, Timeline};
pub use trace::{TraceSpan, chrome_trace};

/// What every kernel text begins with: number types, "not available", and how a kernel is declared.
pub const TIDEMILL_CUH: &str = include_str!("tidemill.cuh");
