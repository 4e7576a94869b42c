//! CUDA as a device. Only this module names cudarc.
//!
//! Streams do not wait for the default stream, which is never used. Every call makes the context current first, because calls
//! come from any thread.
//!
//! The driver's own waits have no limit, so they are not used: a wait asks for an event until the limit has passed. Seen with driver
//! 580 beside a kernel that runs: `cuMemFree`, `cuMemFreeHost` and `cuModuleLoadData` wait for it, so another thread makes those
//! calls; a launch waits once a stream holds a thousand others, so submitting waits earlier; allocating, destroying a stream and
//! `exit` do not wait.

mod error;
mod info;
mod queue;
mod reserve;

use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUevent, CUevent_flags, CUevent_wait_flags, CUfunction, CUfunction_attribute,
    CUmodule, CUresult, CUstream,
};

pub(crate) use info::{devices, driver_version};

use self::error::check;
use self::info::{NO_DEVICE_CURE, describe, start};
use self::queue::{Queue, Streams, event_done, stream_done};
use self::reserve::Reservations;
use crate::cache::Cache;
use crate::caller::Caller;
use crate::device::DeviceInfo;
use crate::driver::{Driver, EventId, KernelFacts, KernelId, ModuleId, Op, StreamId};
use crate::error::GpuError;
use crate::module::Source;
use crate::nvrtc::{compile_cached, nvrtc};
use crate::stream::{Launch, Priority};
use crate::wait::{DEFAULT_LIMIT, RealPace, WaitLimit, poll};

/// From this version on the driver tells the size of kernel arguments, and loads a kernel when asked to.
const TELLS_ARGUMENTS: c_int = 12_040;

pub(crate) struct CudaDriver {
    info: DeviceInfo,
    device: CUdevice,
    context: CUcontext,
    driver_version: c_int,
    /// Numbers of the lowest and the highest priority.
    priorities: (i32, i32),
    /// Zeroes new memory.
    service: CUstream,
    wait_limit: WaitLimit,
    caller: Caller,
    streams: Mutex<Streams>,
    reservations: Reservations,
}

// SAFETY: context and stream are handles that the driver lets any thread use.
unsafe impl Send for CudaDriver {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for CudaDriver {}

impl CudaDriver {
    pub(crate) fn open(ordinal: usize) -> Result<Self, GpuError> {
        let driver_version = start()?;
        let n_devices = check("cuDeviceGetCount", result::device::get_count())? as usize;
        if ordinal >= n_devices {
            return Err(GpuError::Unavailable {
                what: format!("there is no CUDA device {ordinal}: {n_devices} found"),
                cure: match n_devices {
                    0 => NO_DEVICE_CURE.into(),
                    n => format!("choose one of 0 to {}", n - 1),
                },
            });
        }
        let nvrtc = nvrtc()?;
        let (device, mut info) = describe(ordinal, driver_version)?;
        if let Some(obstacle) = info.obstacle(Some(&nvrtc.info)) {
            return Err(obstacle);
        }
        info.nvrtc = nvrtc.info.version.clone();
        // SAFETY: the device was just given by the driver.
        let context = check("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let mut driver = Self {
            info,
            device,
            context,
            driver_version,
            priorities: (0, 0),
            service: std::ptr::null_mut(),
            wait_limit: WaitLimit::new(DEFAULT_LIMIT),
            caller: Caller::default(),
            streams: Mutex::default(),
            reservations: Reservations::new(device, ordinal),
        };
        driver.enter()?;
        driver.priorities = check("cuCtxGetStreamPriorityRange", result::stream::get_priority_range())?;
        driver.service = driver.new_stream(driver.priorities.1)?;
        driver.streams().queues.insert(driver.service as u64, Queue::default());
        Ok(driver)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call that may wait inside the driver, from another thread.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> Result<T, GpuError> + Send + 'static,
    ) -> Result<T, GpuError> {
        let context = self.context as u64;
        let entered = move || {
            // SAFETY: the context is retained as long as a device hangs or lives, and so longer than any call.
            check("cuCtxSetCurrent", unsafe { result::ctx::set_current(context as CUcontext) })?;
            call()
        };
        self.caller.call(self.wait_limit.get(), entered).unwrap_or_else(|| Err(self.wait_limit.exceeded()))
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained until this is dropped.
        check("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.context) })
    }

    fn new_stream(&self, priority: i32) -> Result<CUstream, GpuError> {
        let kind = result::stream::StreamKind::NonBlocking;
        check("cuStreamCreateWithPriority", result::stream::create_with_priority(kind, priority))
    }

    fn launch(
        &self,
        stream: CUstream,
        kernel: KernelId,
        name: &str,
        launch: Launch,
        args: &[u8],
    ) -> Result<(), GpuError> {
        let Launch { grid, block, shared_bytes } = launch;
        let mut params = [args.as_ptr() as *mut c_void];
        // SAFETY: the function belongs to a module that is never unloaded; the driver copies the arguments, whose size was checked,
        // before it returns.
        let launched = unsafe {
            result::launch_kernel(
                kernel.0 as CUfunction,
                (grid[0], grid[1], grid[2]),
                (block[0], block[1], block[2]),
                shared_bytes,
                stream,
                &mut params,
            )
        };
        check("cuLaunchKernel", launched).map_err(|error| match error {
            GpuError::Driver { message, code, .. } => GpuError::Launch {
                kernel: name.into(),
                message: format!(
                    "{message} (code {code}; grid {grid:?}, block {block:?}, {shared_bytes} bytes shared)"
                ),
            },
            other => other,
        })
    }

    fn copy_inside(&self, stream: CUstream, from: u64, to: u64, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: both ranges lie in buffers that live until the device has been waited for.
        check("cuMemcpyDtoDAsync", unsafe { result::memcpy_dtod_async(to, from, bytes, stream) })
    }

    fn fill(&self, stream: CUstream, at: u64, bytes: usize, byte: u8) -> Result<(), GpuError> {
        // SAFETY: the range lies in a buffer that lives until the device has been waited for.
        check("cuMemsetD8Async", unsafe { result::memset_d8_async(at, byte, bytes, stream) })
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Failures in a drop cannot be returned; the driver cleans up after the process.
        let _ = self.enter();
        let streams = std::mem::take(&mut *self.streams());
        for (stream, queue) in streams.queues {
            // SAFETY: made by `stream` or in `open`, destroyed once; their owners have gone.
            let _ = unsafe { result::stream::destroy(stream as CUstream) };
            if let Some(mark) = queue.mark {
                // SAFETY: made by `mark`, destroyed once.
                let _ = unsafe { result::event::destroy(mark as CUevent) };
            }
        }
        for mark in streams.idle_marks {
            // SAFETY: as above.
            let _ = unsafe { result::event::destroy(mark as CUevent) };
        }
        // SAFETY: retained once in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn wait_limit(&self) -> &WaitLimit {
        &self.wait_limit
    }

    fn free_bytes(&self) -> Result<u64, GpuError> {
        self.enter()?;
        check("cuMemGetInfo", result::mem_get_info()).map(|(free, _)| free as u64)
    }

    fn alloc(&self, bytes: u64) -> Result<u64, GpuError> {
        self.enter()?;
        // SAFETY: the memory is zeroed below before anyone sees it.
        let address = match unsafe { result::malloc_sync(bytes as usize) } {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                return Err(GpuError::OutOfMemory { bytes, free: self.free_bytes().unwrap_or(0) });
            }
            other => check("cuMemAlloc", other)?,
        };
        let zeroed = self
            .fill(self.service, address, bytes as usize, 0)
            .and_then(|()| self.synchronize_stream(StreamId(self.service as u64)));
        if let Err(error) = zeroed {
            if !matches!(error, GpuError::Hung { .. }) {
                // The first error is the one to tell.
                let _ = self.free(address);
            }
            return Err(error);
        }
        Ok(address)
    }

    fn reserve(&self, bytes: u64) -> Result<Option<u64>, GpuError> {
        self.enter()?;
        Ok(self.reservations.reserve(bytes))
    }

    fn back(&self, address: u64, bytes: u64) -> Result<(), GpuError> {
        self.enter()?;
        let enough = self.reservations.back(address, bytes)?;
        enough.ok_or_else(|| GpuError::OutOfMemory { bytes, free: self.free_bytes().unwrap_or(0) })
    }

    fn free(&self, address: u64) -> Result<(), GpuError> {
        if let Some(give_back) = self.reservations.remove(address) {
            return self.call(give_back);
        }
        // SAFETY: allocated by `alloc`, freed once, no longer in use.
        self.call(move || check("cuMemFree", unsafe { result::free_sync(address) }))
    }

    fn pin(&self, bytes: u64) -> Result<u64, GpuError> {
        self.enter()?;
        // SAFETY: zeroed below before anyone sees it.
        let address = check("cuMemHostAlloc", unsafe { result::malloc_host(bytes as usize, 0) })?;
        // SAFETY: just allocated with this size.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes as usize) };
        Ok(address as u64)
    }

    fn unpin(&self, address: u64) -> Result<(), GpuError> {
        // SAFETY: allocated by `pin`, freed once, no longer in use.
        self.call(move || check("cuMemFreeHost", unsafe { result::free_host(address as *mut c_void) }))
    }

    fn stream(&self, priority: Priority) -> Result<StreamId, GpuError> {
        self.enter()?;
        let (lowest, highest) = self.priorities;
        let number = match priority {
            Priority::Normal => (lowest + highest) / 2,
            Priority::High => highest,
        };
        let stream = self.new_stream(number)? as u64;
        let mut streams = self.streams();
        streams.sweep();
        streams.queues.insert(stream, Queue::default());
        Ok(StreamId(stream))
    }

    fn drop_stream(&self, stream: StreamId) {
        let _ = self.enter();
        let mut streams = self.streams();
        if let Some(queue) = streams.queues.get_mut(&stream.0) {
            queue.is_dropped = true;
        }
        // Work already submitted is to be waited for by `synchronize`, so a stream that has some stays.
        streams.sweep();
    }

    fn submit(&self, stream: StreamId, op: Op<'_>) -> Result<(), GpuError> {
        self.enter()?;
        self.make_room(stream.0)?;
        let stream = stream.0 as CUstream;
        match op {
            Op::Upload { from, to, bytes } => {
                // SAFETY: the caller checked both ranges and keeps the host memory until the event after this.
                let copied = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from as *const c_void, bytes, stream) };
                check("cuMemcpyHtoDAsync", copied.result())
            }
            Op::Download { from, to, bytes } => {
                // SAFETY: as above.
                let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(to as *mut c_void, from, bytes, stream) };
                check("cuMemcpyDtoHAsync", copied.result())
            }
            Op::Copy { from, to, bytes } => self.copy_inside(stream, from, to, bytes),
            Op::Fill { at, bytes, byte } => self.fill(stream, at, bytes, byte),
            Op::Launch { kernel, name, launch, args } => self.launch(stream, kernel, name, launch, args),
            Op::Host(work) => {
                let work = Box::into_raw(Box::new(work));
                // SAFETY: `run_host_work` takes the box back, once.
                let launched =
                    unsafe { result::stream::launch_host_function(stream, run_host_work, work.cast()) };
                check("cuLaunchHostFunc", launched).inspect_err(|_| {
                    // SAFETY: refused work is never run, so the box is still ours.
                    drop(unsafe { Box::from_raw(work) });
                })
            }
            Op::Record(event) => {
                // SAFETY: event and stream are alive.
                check("cuEventRecord", unsafe { result::event::record(event.0 as CUevent, stream) })
            }
            Op::Wait(event) => {
                let no_flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                // SAFETY: event and stream are alive.
                let waits = unsafe { result::stream::wait_event(stream, event.0 as CUevent, no_flags) };
                check("cuStreamWaitEvent", waits)
            }
        }
    }

    fn synchronize_stream(&self, stream: StreamId) -> Result<(), GpuError> {
        self.enter()?;
        if stream_done(stream.0)? {
            return Ok(());
        }
        // Not until the stream is empty: another thread may keep it filled.
        let mark = self.streams().mark(stream.0)?;
        self.wait_for(vec![mark])
    }

    fn synchronize(&self) -> Result<(), GpuError> {
        self.enter()?;
        let mut streams = self.streams();
        let busy: Vec<u64> = streams.queues.keys().copied().collect();
        let mut marks = Vec::new();
        for stream in busy {
            if !stream_done(stream)? {
                marks.push(streams.mark(stream)?);
            }
        }
        drop(streams);
        self.wait_for(marks)?;
        self.streams().sweep();
        Ok(())
    }

    fn event(&self) -> Result<EventId, GpuError> {
        self.enter()?;
        let event = check("cuEventCreate", result::event::create(CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(EventId(event as u64))
    }

    fn drop_event(&self, event: EventId) {
        let _ = self.enter();
        // SAFETY: made by `event`, destroyed once.
        let _ = unsafe { result::event::destroy(event.0 as CUevent) };
    }

    fn event_done(&self, event: EventId) -> Result<bool, GpuError> {
        self.enter()?;
        event_done(event.0)
    }

    fn event_wait(&self, event: EventId) -> Result<(), GpuError> {
        self.enter()?;
        let is_done = poll(self.wait_limit.get(), &mut RealPace::new(), || event_done(event.0))?;
        if is_done { Ok(()) } else { Err(self.wait_limit.exceeded()) }
    }

    fn elapsed_ms(&self, from: EventId, to: EventId) -> Result<f64, GpuError> {
        self.enter()?;
        // SAFETY: both events are alive; timing is on by default.
        let elapsed = unsafe { result::event::elapsed(from.0 as CUevent, to.0 as CUevent) };
        check("cuEventElapsedTime", elapsed).map(f64::from)
    }

    fn load(&self, source: &Source) -> Result<ModuleId, GpuError> {
        let image = compile_cached(&Cache::of_user(), source, &self.info.architecture)?;
        // Loading waits for all that runs. Waited for here, it does not keep the driver's locks meanwhile.
        self.synchronize()?;
        let loaded = self.call(move || {
            // SAFETY: the image is machine code of NVRTC, or PTX that ends with a NUL.
            Ok(unsafe { result::module::load_data(image.as_ptr().cast()) }.map(|module| module as u64))
        });
        match loaded? {
            Err(DriverError(
                code @ (CUresult::CUDA_ERROR_INVALID_IMAGE
                | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
                | CUresult::CUDA_ERROR_INVALID_PTX
                | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
            )) => Err(GpuError::Unavailable {
                what: format!(
                    "driver {} does not load what NVRTC {} made of {} (code {})",
                    self.info.driver, self.info.nvrtc, source.name, code as i32
                ),
                cure: "NVRTC must not be newer than the driver: update the driver, or install an older NVRTC"
                    .into(),
            }),
            other => check("cuModuleLoadData", other).map(ModuleId),
        }
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<Option<KernelFacts>, GpuError> {
        use CUfunction_attribute as Attribute;
        self.enter()?;
        let c_name = CString::new(name).map_err(|_| GpuError::misuse("the name of a kernel holds a NUL"))?;
        // SAFETY: the module is never unloaded.
        let function = match unsafe { result::module::get_function(module.0 as CUmodule, c_name) } {
            Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => return Ok(None),
            other => check("cuModuleGetFunction", other)?,
        };
        let attribute = |which| {
            // SAFETY: the function was just given by the driver.
            let value = unsafe { result::function::get_function_attribute(function, which) };
            check("cuFuncGetAttribute", value).map(|value| value.max(0) as u32)
        };
        let shared_bytes = attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        // Without this a launch may ask for 48 KiB only. It changes nothing for launches that ask for less.
        let most = self.info.shared_bytes.saturating_sub(shared_bytes) as i32;
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: as above.
        let allowed = unsafe { result::function::set_function_attribute(function, which, most) };
        check("cuFuncSetAttribute", allowed)?;
        let args_size = if self.driver_version >= TELLS_ARGUMENTS {
            // Else the first launch would load it, which may wait for all running work.
            // SAFETY: as above.
            check("cuFuncLoad", unsafe { sys::cuFuncLoad(function) }.result())?;
            let (mut offset, mut size) = (0, 0);
            // SAFETY: as above; the driver writes two numbers.
            match unsafe { sys::cuFuncGetParamInfo(function, 0, &mut offset, &mut size) } {
                CUresult::CUDA_ERROR_INVALID_VALUE => Some(0),
                other => check("cuFuncGetParamInfo", other.result()).map(|()| Some(size))?,
            }
        } else {
            None
        };
        Ok(Some(KernelFacts {
            id: KernelId(function as u64),
            args_size,
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_bytes,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        }))
    }

    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared_bytes: u32) -> Result<u32, GpuError> {
        self.enter()?;
        // SAFETY: the function belongs to a module that is never unloaded.
        let blocks = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                kernel.0 as CUfunction,
                threads as c_int,
                shared_bytes as usize,
            )
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", blocks).map(|blocks| blocks.max(0) as u32)
    }
}

unsafe extern "C" fn run_host_work(work: *mut c_void) {
    // SAFETY: `submit` made this pointer from such a box, and the driver calls back once.
    let work = unsafe { Box::from_raw(work.cast::<Box<dyn FnOnce() + Send>>()) };
    work();
}
