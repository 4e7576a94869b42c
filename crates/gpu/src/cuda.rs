//! CUDA as a device. The only file that names cudarc.
//!
//! Streams do not wait for the default stream, which is never used. Every call makes the context current first, because calls
//! come from any thread.
//!
//! The driver's own waits have no limit, so they are not used: a wait asks for an event until the limit has passed. Seen with driver
//! 580 beside a kernel that runs: `cuMemFree`, `cuMemFreeHost` and `cuModuleLoadData` wait for it, so another thread makes those
//! calls; a launch waits once a stream holds a thousand others, so submitting waits earlier; allocating, destroying a stream and
//! `exit` do not wait.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUevent, CUevent_flags, CUevent_wait_flags, CUfunction,
    CUfunction_attribute, CUgraphExec, CUgraphInstantiate_flags, CUmodule, CUresult, CUstream,
    CUstreamCaptureMode,
};

use crate::cache::Cache;
use crate::caller::Caller;
use crate::device::{DeviceInfo, DeviceKind};
use crate::driver::{
    Driver, EventId, GraphAction, GraphId, GraphStep, KernelFacts, KernelId, ModuleId, Op, StreamId,
};
use crate::error::GpuError;
use crate::module::Source;
use crate::nvrtc::{compile_cached, nvrtc};
use crate::stream::{Launch, Priority};
use crate::wait::{DEFAULT_LIMIT, RealPace, WaitLimit, poll};

/// The oldest driver whose functions are all there.
const OLDEST_DRIVER: c_int = 12_000;
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
}

/// The streams of a device and the events that tell how far they are. Handles are numbers here.
#[derive(Default)]
struct Streams {
    queues: HashMap<u64, Queue>,
    /// Events without times that mark nothing at the moment.
    idle_marks: Vec<u64>,
}

/// What is known of one stream.
#[derive(Default)]
struct Queue {
    /// Operations since the last mark.
    n_unmarked: u32,
    /// An earlier point of the work.
    mark: Option<u64>,
    /// Its owner has gone; it is destroyed when its work is done.
    is_dropped: bool,
}

/// After so many operations of a stream the point where it stood that many before is waited for. So the driver's queue, which takes
/// about a thousand, is never full, and hundreds are always left for the device to do.
const MARK_EVERY: u32 = 256;

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
                    n => format!("take one of 0 to {}", n - 1),
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

    /// Waits until all of these events have happened, and takes them back.
    fn wait_for(&self, marks: Vec<u64>) -> Result<(), GpuError> {
        let mut left = marks.clone();
        let is_done = poll(self.wait_limit.get(), &mut RealPace::new(), || {
            while let Some(mark) = left.last() {
                if !event_done(*mark)? {
                    return Ok(false);
                }
                left.pop();
            }
            Ok(true)
        });
        if !is_done? {
            return Err(self.wait_limit.exceeded());
        }
        self.streams().idle_marks.extend(marks);
        Ok(())
    }

    /// Before an operation is submitted: waits while there are too many in front of it.
    fn make_room(&self, stream: u64) -> Result<(), GpuError> {
        let mut streams = self.streams();
        let queue = streams.queues.entry(stream).or_default();
        queue.n_unmarked += 1;
        if queue.n_unmarked < MARK_EVERY {
            return Ok(());
        }
        queue.n_unmarked = 0;
        let earlier = queue.mark.take();
        let mark = streams.mark(stream)?;
        streams.queues.entry(stream).or_default().mark = Some(mark);
        drop(streams);
        earlier.map_or(Ok(()), |mark| self.wait_for(vec![mark]))
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

    /// Writes the steps into a capture that has begun on lane 0, and joins all lanes there.
    fn capture(&self, steps: &[GraphStep], lanes: &[CUstream], events: &[CUevent]) -> Result<(), GpuError> {
        let (records, joins) = events.split_at(events.len() - (lanes.len() - 1));
        let no_flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        for step in steps {
            let stream = lanes[step.lane];
            match &step.action {
                GraphAction::Copy { from, to, bytes } => self.copy_inside(stream, *from, *to, *bytes)?,
                GraphAction::Fill { at, bytes, byte } => self.fill(stream, *at, *bytes, *byte)?,
                GraphAction::Launch { kernel, name, launch, args } => {
                    self.launch(stream, *kernel, name, *launch, args)?;
                }
                GraphAction::Record(number) => {
                    // SAFETY: event and stream live until the graph is built.
                    check("cuEventRecord", unsafe { result::event::record(records[*number], stream) })?;
                }
                GraphAction::Wait(number) => {
                    // SAFETY: as above.
                    let waits = unsafe { result::stream::wait_event(stream, records[*number], no_flags) };
                    check("cuStreamWaitEvent", waits)?;
                }
            }
        }
        for (&lane, &event) in lanes[1..].iter().zip(joins) {
            // SAFETY: as above.
            check("cuEventRecord", unsafe { result::event::record(event, lane) })?;
            // SAFETY: as above.
            check("cuStreamWaitEvent", unsafe { result::stream::wait_event(lanes[0], event, no_flags) })?;
        }
        Ok(())
    }

    fn build_graph(&self, steps: &[GraphStep], scratch: &Scratch) -> Result<GraphId, GpuError> {
        let origin = scratch.lanes[0];
        // Relaxed: these streams are private, nobody else can disturb the capture.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives until the graph is built.
        check("cuStreamBeginCapture", unsafe { result::stream::begin_capture(origin, mode) })?;
        let captured = self.capture(steps, &scratch.lanes, &scratch.events);
        // SAFETY: a capture that has begun is ended, also after a failure.
        let graph = check("cuStreamEndCapture", unsafe { result::stream::end_capture(origin) });
        captured?;
        let graph = graph?;
        // SAFETY: the graph is whole; it is no longer needed once it is instantiated.
        let ready = unsafe { result::graph::instantiate(graph, CUgraphInstantiate_flags(0)) };
        // SAFETY: as above.
        let destroyed = unsafe { result::graph::destroy(graph) };
        let ready = check("cuGraphInstantiate", ready)?;
        check("cuGraphDestroy", destroyed)?;
        Ok(GraphId(ready as u64))
    }
}

impl Streams {
    /// Marks the end of what a stream has now.
    fn mark(&mut self, stream: u64) -> Result<u64, GpuError> {
        let mark = match self.idle_marks.pop() {
            Some(mark) => mark,
            None => {
                let event = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING);
                check("cuEventCreate", event)? as u64
            }
        };
        // SAFETY: the event was made above or before; streams in the table are alive.
        check("cuEventRecord", unsafe { result::event::record(mark as CUevent, stream as CUstream) })?;
        Ok(mark)
    }

    /// Destroys streams whose owners have gone and whose work is done.
    fn sweep(&mut self) {
        let is_over = |stream: u64| !matches!(stream_done(stream), Ok(false));
        let over: Vec<u64> = self
            .queues
            .iter()
            .filter(|(stream, queue)| queue.is_dropped && is_over(**stream))
            .map(|(stream, _)| *stream)
            .collect();
        for stream in over {
            let mark = self.queues.remove(&stream).and_then(|queue| queue.mark);
            self.idle_marks.extend(mark);
            // SAFETY: made by `stream`, destroyed once. After a fault there is nobody to be told.
            let _ = unsafe { result::stream::destroy(stream as CUstream) };
        }
    }
}

/// Whether a stream has nothing to do.
fn stream_done(stream: u64) -> Result<bool, GpuError> {
    // SAFETY: the caller knows that the stream is alive.
    match unsafe { sys::cuStreamQuery(stream as CUstream) } {
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        other => check("cuStreamQuery", other.result()).map(|()| true),
    }
}

/// Whether the last record of an event has happened.
fn event_done(event: u64) -> Result<bool, GpuError> {
    // SAFETY: the caller knows that the event is alive.
    match unsafe { result::event::query(event as CUevent) } {
        Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        other => check("cuEventQuery", other).map(|()| true),
    }
}

/// Streams and events that exist only while a graph is built.
#[derive(Default)]
struct Scratch {
    lanes: Vec<CUstream>,
    events: Vec<CUevent>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for &event in &self.events {
            // SAFETY: made for this scratch, destroyed once. A failure leaves nothing to do.
            let _ = unsafe { result::event::destroy(event) };
        }
        for &lane in &self.lanes {
            // SAFETY: as above.
            let _ = unsafe { result::stream::destroy(lane) };
        }
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Failures at the end have no one to be told to; the driver cleans up behind the process.
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

    fn free(&self, address: u64) -> Result<(), GpuError> {
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
            Priority::Low => lowest,
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
            Op::Graph(graph) => {
                // SAFETY: graph and stream are alive; the graph is dropped only after the device has been waited for.
                check("cuGraphLaunch", unsafe { result::graph::launch(graph.0 as CUgraphExec, stream) })
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

    fn graph(&self, steps: Vec<GraphStep>) -> Result<GraphId, GpuError> {
        self.enter()?;
        let n_lanes = steps.iter().map(|step| step.lane + 1).max().unwrap_or(1);
        let n_records = steps.iter().filter(|step| matches!(step.action, GraphAction::Record(_))).count();
        let mut scratch = Scratch::default();
        for _ in 0..n_lanes {
            scratch.lanes.push(self.new_stream(0)?);
        }
        for _ in 0..n_records + n_lanes - 1 {
            let event = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING);
            scratch.events.push(check("cuEventCreate", event)?);
        }
        self.build_graph(&steps, &scratch)
    }

    fn drop_graph(&self, graph: GraphId) -> Result<(), GpuError> {
        self.call(move || {
            // SAFETY: made by `graph`, destroyed once, no longer running.
            check("cuGraphExecDestroy", unsafe { result::graph::exec_destroy(graph.0 as CUgraphExec) })
        })
    }
}

unsafe extern "C" fn run_host_work(work: *mut c_void) {
    // SAFETY: `submit` made this pointer from such a box, and the driver calls back once.
    let work = unsafe { Box::from_raw(work.cast::<Box<dyn FnOnce() + Send>>()) };
    work();
}

const NO_DEVICE_CURE: &str =
    "see whether `nvidia-smi` lists a device; a container has to be started with access to it";

/// Version of the driver, without starting it; devices are not looked at.
pub(crate) fn driver_version() -> Result<String, GpuError> {
    raw_driver_version().map(dotted)
}

/// Facts about every device, without a context on any.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>, GpuError> {
    let driver_version = start()?;
    let n_devices = check("cuDeviceGetCount", result::device::get_count())? as usize;
    let nvrtc = nvrtc().map(|nvrtc| nvrtc.info.version.clone()).unwrap_or_default();
    (0..n_devices)
        .map(|ordinal| {
            describe(ordinal, driver_version).map(|(_, info)| DeviceInfo { nvrtc: nvrtc.clone(), ..info })
        })
        .collect()
}

fn raw_driver_version() -> Result<c_int, GpuError> {
    // SAFETY: only tries to load the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::Unavailable {
            what: "the NVIDIA driver library (libcuda) was not found".into(),
            cure: "install the NVIDIA driver, or start the container with access to the GPU".into(),
        });
    }
    let mut version = 0;
    // SAFETY: the library is present; the function writes one number.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) }.result())?;
    if version < OLDEST_DRIVER {
        return Err(GpuError::Unavailable {
            what: format!("the NVIDIA driver is too old: it knows CUDA {}", dotted(version)),
            cure: format!("install a driver for CUDA {} or later", dotted(OLDEST_DRIVER)),
        });
    }
    Ok(version)
}

/// Starts the driver and returns its version.
fn start() -> Result<c_int, GpuError> {
    let version = raw_driver_version()?;
    result::init().map_err(|error| GpuError::Unavailable {
        what: format!("the NVIDIA driver does not start: {} (code {})", message(error), error.0 as i32),
        cure: NO_DEVICE_CURE.into(),
    })?;
    Ok(version)
}

fn describe(ordinal: usize, driver_version: c_int) -> Result<(CUdevice, DeviceInfo), GpuError> {
    use CUdevice_attribute as Attribute;
    let device = check("cuDeviceGet", result::device::get(ordinal as c_int))?;
    let attribute = |which| {
        // SAFETY: the device was just given by the driver.
        let value = unsafe { result::device::get_attribute(device, which) };
        check("cuDeviceGetAttribute", value).map(|value| value.max(0) as u32)
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let info = DeviceInfo {
        kind: DeviceKind::Cuda,
        ordinal,
        name: check("cuDeviceGetName", result::device::get_name(device))?,
        architecture: format!("sm_{major}{minor}"),
        // SAFETY: as above.
        memory_bytes: check("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })? as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        driver: dotted(driver_version),
        nvrtc: String::new(),
    };
    Ok((device, info))
}

fn dotted(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn message(error: DriverError) -> String {
    error
        .error_string()
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_else(|_| format!("{:?}", error.0))
}

/// Turns a driver's result into ours. After some failures the context is dead; those are faults.
fn check<T>(call: &'static str, result: Result<T, DriverError>) -> Result<T, GpuError> {
    use CUresult::*;
    result.map_err(|error| {
        let (code, message) = (error.0 as i32, message(error));
        match error.0 {
            CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_UNKNOWN => GpuError::Fault { kernels: Vec::new(), code, message },
            _ => GpuError::Driver { call, code, message },
        }
    })
}
