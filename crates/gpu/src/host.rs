//! The host as a device: a thread per stream, plain memory with a limit, kernels under emulation.
//!
//! It keeps the rules of CUDA where a program can notice them: a wait takes the record that was the latest when the wait was
//! submitted; a lost device still lets streams run empty, doing nothing; failures show up at a synchronisation.

mod worker;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::worker::{Completion, Progress, Shared, Task, Work, fault, lock, work};
use crate::device::{DeviceInfo, DeviceKind};
use crate::driver::{Driver, EventId, KernelFacts, KernelId, ModuleId, Op, StreamId};
use crate::emulate::{EmulateError, EmulatedKernel, Library};
use crate::error::GpuError;
use crate::fault::Fault;
use crate::module::Source;
use crate::stream::{Launch, Priority};
use crate::wait::WaitLimit;

/// How a host device behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// Name of the device, as messages show it.
    pub name: String,
    /// How much memory it claims to have.
    pub memory_bytes: u64,
    /// The most shared memory a block may have.
    pub shared_bytes: u32,
    /// Faults to inject.
    pub faults: Vec<Fault>,
    /// Whether to check all accesses of kernels to shared memory. Then a kernel fails whose threads touch the same byte, one of them to write it,
    /// without a barrier between.
    pub checks: bool,
}

impl Default for HostOptions {
    /// 16 GiB, the shared memory of a consumer card, no faults, no checks.
    fn default() -> Self {
        Self {
            name: "host".into(),
            memory_bytes: 16 << 30,
            shared_bytes: 99 << 10,
            faults: Vec::new(),
            checks: false,
        }
    }
}

/// Warps that a multiprocessor keeps at a time on most GPUs. A thread of the host runs one after the other; it is counted as a multiprocessor
/// so that what a device would be filled with can be seen and tested here.
const WARPS_OF_A_MULTIPROCESSOR: u32 = 64;
/// Blocks that a multiprocessor keeps at a time on most GPUs.
const BLOCKS_OF_A_MULTIPROCESSOR: u32 = 32;

/// Of memory, as on a GPU.
const ALIGNMENT: usize = 256;

pub(crate) struct HostDriver {
    info: DeviceInfo,
    wait_limit: WaitLimit,
    faults: Vec<Fault>,
    checks: bool,
    shared: Arc<Shared>,
    next: AtomicU64,
    memory: Mutex<MemoryTable>,
    streams: Mutex<HashMap<StreamId, Sender<Task>>>,
    progress: Mutex<Vec<(StreamId, Arc<Progress>)>>,
    events: Mutex<HashMap<EventId, Option<Arc<Completion>>>>,
    modules: Mutex<HashMap<ModuleId, Library>>,
    kernels: Mutex<HashMap<KernelId, Arc<EmulatedKernel>>>,
    launches: Mutex<Launches>,
}

#[derive(Default)]
struct MemoryTable {
    blocks: HashMap<u64, Block>,
    used: u64,
    n_allocations: u64,
}

/// A piece of memory, and how much of it counts as used.
struct Block {
    layout: Layout,
    n_used: u64,
}

#[derive(Default)]
struct Launches {
    total: u64,
    by_kernel: HashMap<String, u64>,
}

impl Launches {
    /// Counts a launch: its number among all, and among those of its kernel.
    fn count(&mut self, kernel: &str) -> (u64, u64) {
        self.total += 1;
        let of_kernel = self.by_kernel.entry(kernel.into()).or_default();
        *of_kernel += 1;
        (self.total, *of_kernel)
    }
}

impl HostDriver {
    pub(crate) fn new(options: HostOptions) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let info = DeviceInfo {
            kind: DeviceKind::Host,
            ordinal: 0,
            name: options.name,
            architecture: "host".into(),
            memory_bytes: options.memory_bytes,
            multiprocessors: threads,
            l2_bytes: 0,
            shared_bytes: options.shared_bytes,
            driver: String::new(),
            nvrtc: String::new(),
        };
        Self {
            info,
            // Emulation notices by itself when the threads of a block wait for each other for ever.
            wait_limit: WaitLimit::new(Duration::MAX),
            faults: options.faults,
            checks: options.checks,
            shared: Arc::default(),
            next: AtomicU64::new(1),
            memory: Mutex::default(),
            streams: Mutex::default(),
            progress: Mutex::default(),
            events: Mutex::default(),
            modules: Mutex::default(),
            kernels: Mutex::default(),
            launches: Mutex::default(),
        }
    }

    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Memory of which so much counts as used.
    fn allocate(&self, bytes: u64, align: usize, n_used: u64) -> Result<u64, GpuError> {
        let free = self.info.memory_bytes - lock(&self.memory).used;
        let refused = GpuError::OutOfMemory { bytes, free };
        let layout = Layout::from_size_align(bytes as usize, align).map_err(|_| refused.clone())?;
        // SAFETY: the size is not 0.
        let address = unsafe { alloc_zeroed(layout) } as u64;
        if address == 0 {
            return Err(refused);
        }
        lock(&self.memory).blocks.insert(address, Block { layout, n_used });
        Ok(address)
    }

    fn deallocate(&self, address: u64) {
        let mut memory = lock(&self.memory);
        let Some(Block { layout, n_used }) = memory.blocks.remove(&address) else { return };
        memory.used -= n_used;
        // SAFETY: the address came from `alloc_zeroed` with this layout and has just left the table.
        unsafe { dealloc(address as *mut u8, layout) };
    }

    /// Counts an allocation, and the memory that it takes.
    fn take(&self, bytes: u64) -> Result<(), GpuError> {
        let mut memory = lock(&self.memory);
        memory.n_allocations += 1;
        let nth = memory.n_allocations;
        let free = self.info.memory_bytes - memory.used;
        let ordered = self.faults.contains(&Fault::OutOfMemory { nth });
        if ordered || bytes > free {
            return Err(GpuError::OutOfMemory { bytes, free: if ordered { 0 } else { free } });
        }
        memory.used += bytes;
        Ok(())
    }

    fn completion(&self, event: EventId) -> Option<Arc<Completion>> {
        lock(&self.events).get(&event).cloned().flatten()
    }

    /// The task of a launch, or the fault that was ordered for it.
    fn launch_work(
        &self,
        kernel: KernelId,
        name: &str,
        launch: Launch,
        args: &[u8],
    ) -> Result<Work, GpuError> {
        if launch.shared_bytes > self.info.shared_bytes {
            let message = format!(
                "{} bytes of shared memory, {} are possible",
                launch.shared_bytes, self.info.shared_bytes
            );
            return Err(GpuError::Launch { kernel: name.into(), message });
        }
        let (total, of_kernel) = lock(&self.launches).count(name);
        for ordered in &self.faults {
            match ordered {
                Fault::LaunchFails { kernel, nth } if kernel == name && *nth == of_kernel => {
                    let message = format!("launch {nth} was ordered to fail");
                    return Err(GpuError::Launch { kernel: name.into(), message });
                }
                Fault::KernelFails { kernel, nth } if kernel == name && *nth == of_kernel => {
                    return Ok(Work::Fail(fault(format!("launch {nth} of {name} was ordered to go wrong"))));
                }
                Fault::KernelHangs { kernel, nth } if kernel == name && *nth == of_kernel => {
                    return Ok(Work::Hang);
                }
                Fault::DeviceLost { after_launches } if total > *after_launches => {
                    return Ok(Work::Fail(fault("the device was ordered to be lost".into())));
                }
                _ => {}
            }
        }
        let kernel = lock(&self.kernels)[&kernel].clone();
        Ok(Work::Launch { kernel, launch, args: args.into() })
    }

    fn task(&self, op: Op<'_>) -> Result<Task, GpuError> {
        Ok(match op {
            Op::Upload { from, to, bytes }
            | Op::Download { from, to, bytes }
            | Op::Copy { from, to, bytes } => Task::Work(Work::Copy { from, to, bytes }),
            Op::Fill { at, bytes, byte } => Task::Work(Work::Fill { at, bytes, byte }),
            Op::Launch { kernel, name, launch, args } => {
                Task::Work(self.launch_work(kernel, name, launch, args)?)
            }
            Op::Host(work) => Task::Host(work),
            Op::Record(event) => {
                let completion = Arc::new(Completion::default());
                lock(&self.events).insert(event, Some(completion.clone()));
                Task::Record(completion)
            }
            Op::Wait(event) => Task::Wait(self.completion(event).unwrap_or_else(|| {
                // Never recorded: nothing to wait for.
                let completion = Arc::new(Completion::default());
                completion.fire();
                completion
            })),
        })
    }
}

impl Driver for HostDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn wait_limit(&self) -> &WaitLimit {
        &self.wait_limit
    }

    fn free_bytes(&self) -> Result<u64, GpuError> {
        Ok(self.info.memory_bytes - lock(&self.memory).used)
    }

    fn alloc(&self, bytes: u64) -> Result<u64, GpuError> {
        self.take(bytes)?;
        self.allocate(bytes, ALIGNMENT, bytes).inspect_err(|_| lock(&self.memory).used -= bytes)
    }

    /// Zeroed memory costs nothing until it is touched, where the system's allocator aligns it.
    fn reserve(&self, bytes: u64) -> Result<Option<u64>, GpuError> {
        if self.faults.contains(&Fault::NoGrowth) {
            return Ok(None);
        }
        Ok(self.allocate(bytes, size_of::<u128>(), 0).ok())
    }

    fn back(&self, address: u64, bytes: u64) -> Result<(), GpuError> {
        let n_used = lock(&self.memory).blocks.get(&address).map_or(bytes, |block| block.n_used);
        if bytes <= n_used {
            return Ok(());
        }
        self.take(bytes - n_used)?;
        if let Some(block) = lock(&self.memory).blocks.get_mut(&address) {
            block.n_used = bytes;
        }
        Ok(())
    }

    fn free(&self, address: u64) -> Result<(), GpuError> {
        self.deallocate(address);
        Ok(())
    }

    fn pin(&self, bytes: u64) -> Result<u64, GpuError> {
        self.allocate(bytes, ALIGNMENT, 0)
    }

    fn unpin(&self, address: u64) -> Result<(), GpuError> {
        self.deallocate(address);
        Ok(())
    }

    fn stream(&self, _priority: Priority) -> Result<StreamId, GpuError> {
        let id = StreamId(self.next());
        let (sender, receiver) = channel();
        let progress = Arc::new(Progress::default());
        let (theirs, shared) = (progress.clone(), self.shared.clone());
        std::thread::Builder::new()
            .name(format!("gpu-stream-{}", id.0))
            .spawn(move || work(receiver, theirs, shared))
            .map_err(|error| GpuError::Driver {
                call: "starting a thread",
                code: error.raw_os_error().unwrap_or(0),
                message: error.to_string(),
            })?;
        lock(&self.streams).insert(id, sender);
        let mut all = lock(&self.progress);
        all.retain(|(_, progress)| !lock(&progress.counts).ended);
        all.push((id, progress));
        Ok(id)
    }

    fn drop_stream(&self, stream: StreamId) {
        // The thread ends when its queue is empty; `progress` remembers it until then.
        lock(&self.streams).remove(&stream);
    }

    fn submit(&self, stream: StreamId, op: Op<'_>) -> Result<(), GpuError> {
        let task = self.task(op)?;
        let progress =
            lock(&self.progress).iter().find(|(id, _)| *id == stream).map(|(_, progress)| progress.clone());
        let progress = progress.expect("a stream is known until it is dropped");
        lock(&progress.counts).submitted += 1;
        let sent = lock(&self.streams)[&stream].send(task);
        sent.map_err(|_| GpuError::misuse("the thread of a stream has ended"))
    }

    fn synchronize_stream(&self, stream: StreamId) -> Result<(), GpuError> {
        let progress =
            lock(&self.progress).iter().find(|(id, _)| *id == stream).map(|(_, progress)| progress.clone());
        if let Some(progress) = progress
            && !progress.wait_for(progress.submitted(), self.wait_limit.deadline())
        {
            return Err(self.wait_limit.exceeded());
        }
        self.shared.check()
    }

    fn synchronize(&self) -> Result<(), GpuError> {
        let all: Vec<_> = lock(&self.progress)
            .iter()
            .map(|(_, progress)| (progress.clone(), progress.submitted()))
            .collect();
        let deadline = self.wait_limit.deadline();
        if !all.iter().all(|(progress, target)| progress.wait_for(*target, deadline)) {
            return Err(self.wait_limit.exceeded());
        }
        self.shared.check()
    }

    fn event(&self) -> Result<EventId, GpuError> {
        let id = EventId(self.next());
        lock(&self.events).insert(id, None);
        Ok(id)
    }

    fn drop_event(&self, event: EventId) {
        lock(&self.events).remove(&event);
    }

    fn event_done(&self, event: EventId) -> Result<bool, GpuError> {
        let done = self.completion(event).is_none_or(|completion| completion.is_done());
        if done {
            self.shared.check()?;
        }
        Ok(done)
    }

    fn event_wait(&self, event: EventId) -> Result<(), GpuError> {
        if let Some(completion) = self.completion(event)
            && completion.wait(self.wait_limit.deadline()).is_none()
        {
            return Err(self.wait_limit.exceeded());
        }
        self.shared.check()
    }

    fn elapsed_ms(&self, from: EventId, to: EventId) -> Result<f64, GpuError> {
        let (Some(from), Some(to)) = (self.completion(from), self.completion(to)) else {
            return Err(GpuError::misuse("time between events that were never recorded"));
        };
        let deadline = self.wait_limit.deadline();
        let (Some(from), Some(to)) = (from.wait(deadline), to.wait(deadline)) else {
            return Err(self.wait_limit.exceeded());
        };
        Ok(match to.checked_duration_since(from) {
            Some(later) => later.as_secs_f64() * 1e3,
            None => -((from - to).as_secs_f64() * 1e3),
        })
    }

    fn load(&self, source: &Source) -> Result<ModuleId, GpuError> {
        if self.faults.contains(&Fault::NoCompiler) {
            return Err(GpuError::Unavailable {
                what: "no compiler (the device was ordered to have none)".into(),
                cure: "take the fault out of the host options".into(),
            });
        }
        let compile = if self.checks { Library::compile_checked } else { Library::compile };
        let library = compile(&source.name, &source.text).map_err(|error| match error {
            EmulateError::NoCompiler { compiler, source } => GpuError::Unavailable {
                what: format!("the C++ compiler `{compiler}` cannot be started: {source}"),
                cure: "install g++ or clang++, or name one in the variable CXX".into(),
            },
            EmulateError::Compile { name, log } => GpuError::Compile { name, log },
            other => GpuError::Driver { call: "compiling for the host", code: 0, message: other.to_string() },
        })?;
        let id = ModuleId(self.next());
        lock(&self.modules).insert(id, library);
        Ok(id)
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<Option<KernelFacts>, GpuError> {
        let Some(kernel) = lock(&self.modules).get(&module).and_then(|library| library.kernel(name)) else {
            return Ok(None);
        };
        let id = KernelId(self.next());
        let args_size = Some(kernel.args_size());
        lock(&self.kernels).insert(id, Arc::new(kernel));
        Ok(Some(KernelFacts {
            id,
            args_size,
            registers: 0,
            shared_bytes: 0,
            local_bytes: 0,
            max_threads: 1024,
        }))
    }

    fn resident_blocks(&self, _: KernelId, threads: u32, _: u32) -> Result<u32, GpuError> {
        Ok((WARPS_OF_A_MULTIPROCESSOR / threads.div_ceil(32).max(1)).clamp(1, BLOCKS_OF_A_MULTIPROCESSOR))
    }
}
