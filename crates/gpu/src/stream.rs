//! Queues of work. Operations of one stream run in order; streams run side by side.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use crate::buffer::{DeviceBuffer, Pinned, byte_len};
use crate::device::Device;
use crate::driver::{Op, StreamId};
use crate::error::GpuError;
use crate::event::Event;
use crate::fill::Load;
use crate::module::Kernel;

/// How urgent the work of a stream is to the device. The host backend treats all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Priority {
    /// As usual.
    #[default]
    Normal,
    /// Before everything else.
    High,
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y, z. Only x may exceed 65,535.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; at most 1,024 in all.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl Launch {
    /// `n_blocks` blocks of `threads` threads, in one dimension.
    pub fn blocks(n_blocks: u32, threads: u32) -> Self {
        Self { grid: [n_blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }

    /// The same with dynamic shared memory.
    pub fn shared(self, shared_bytes: u32) -> Self {
        Self { shared_bytes, ..self }
    }

    fn problem(&self, kernel: &Kernel) -> Option<String> {
        let threads = self.block.iter().map(|&n| u64::from(n)).product::<u64>();
        let most = u64::from(kernel.max_threads());
        if self.grid.contains(&0) || threads == 0 {
            Some(format!("a grid of {:?} blocks of {:?} threads is empty", self.grid, self.block))
        } else if threads > most {
            Some(format!("{threads} threads in a block, {most} are possible"))
        } else if self.grid[0] > i32::MAX as u32 || self.grid[1] > 65_535 || self.grid[2] > 65_535 {
            Some(format!("a grid of {:?} blocks is larger than [2147483647, 65535, 65535]", self.grid))
        } else {
            None
        }
    }
}

/// A queue of work on a device. A clone is the same queue.
///
/// Every method but [`synchronize`](Stream::synchronize) returns before the work is done. Failures that show up later are
/// reported by the next call that waits, with the names of the kernels launched since the last good synchronisation.
#[derive(Clone)]
pub struct Stream {
    inner: Arc<StreamInner>,
}

pub(crate) struct StreamInner {
    device: Device,
    id: StreamId,
    number: u64,
    state: Arc<StreamState>,
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        self.device.drop_stream(self.id, &self.state);
    }
}

/// What a stream remembers for its next synchronisation.
#[derive(Default)]
pub(crate) struct StreamState {
    launched: Mutex<Vec<Arc<str>>>,
    /// Launches since the load was taken last.
    load: Mutex<Load>,
    panic: Mutex<Option<String>>,
}

impl StreamState {
    pub(crate) fn launched(&self) -> Vec<Arc<str>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_launch(&self, kernel: &Arc<str>) {
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        if !launched.contains(kernel) {
            launched.push(kernel.clone());
        }
    }

    fn add_load(&self, load: Load) {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) += load;
    }

    /// After a good synchronisation: these names are beyond suspicion, and a panic of host work is reported.
    pub(crate) fn settle(&self, good: &[Arc<str>]) -> Result<(), GpuError> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).retain(|name| !good.contains(name));
        match self.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(message) => Err(GpuError::HostWork { message }),
            None => Ok(()),
        }
    }
}

thread_local! {
    static IN_HOST_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is a closure given to [`Stream::host`].
pub(crate) fn in_host_work() -> bool {
    IN_HOST_WORK.get()
}

/// A closure for the host. A lost device drops it without running it, on the same thread, where what it owns must not wait for the
/// device either.
struct HostWork<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> HostWork<F> {
    /// Runs it; the message of a panic is the error.
    fn run(&mut self) -> Result<(), String> {
        let Some(work) = self.0.take() else { return Ok(()) };
        marked(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
            text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
        })
    }
}

impl<F: FnOnce()> Drop for HostWork<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            marked(|| drop(work));
        }
    }
}

/// Calls something that counts as work on the host.
fn marked<R>(call: impl FnOnce() -> R) -> R {
    let before = IN_HOST_WORK.replace(true);
    let result = call();
    IN_HOST_WORK.set(before);
    result
}

impl Stream {
    pub(crate) fn new(device: Device, id: StreamId, number: u64, state: Arc<StreamState>) -> Self {
        Self { inner: Arc::new(StreamInner { device, id, number, state }) }
    }

    /// The device it works on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Its number on the device, counted from 0 in the order of creation.
    pub fn number(&self) -> u64 {
        self.inner.number
    }

    /// Whether the other is the same queue.
    pub fn is_same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Copies `len` elements of the host to the device.
    pub fn upload<T: Pod>(
        &self,
        from: &Pinned<T>,
        from_at: usize,
        to: &DeviceBuffer<T>,
        to_at: usize,
        len: usize,
    ) -> Result<(), GpuError> {
        self.device().same_as(from.device())?;
        self.device().same_as(to.device())?;
        let (from_address, to) =
            (from.range("upload from", from_at, len)?, to.range("upload to", to_at, len)?);
        if len == 0 {
            return Ok(());
        }
        self.submit(Op::Upload { from: from_address, to, bytes: byte_len::<T>(len)? })?;
        self.hold(|event| from.used_until(event))
    }

    /// Copies `len` elements of the device to the host.
    pub fn download<T: Pod>(
        &self,
        from: &DeviceBuffer<T>,
        from_at: usize,
        to: &mut Pinned<T>,
        to_at: usize,
        len: usize,
    ) -> Result<(), GpuError> {
        self.device().same_as(from.device())?;
        self.device().same_as(to.device())?;
        let (from, to_address) =
            (from.range("download from", from_at, len)?, to.range("download to", to_at, len)?);
        if len == 0 {
            return Ok(());
        }
        self.submit(Op::Download { from, to: to_address, bytes: byte_len::<T>(len)? })?;
        self.hold(|event| to.used_until(event))
    }

    /// Copies `len` elements inside the device.
    pub fn copy<T: Pod>(
        &self,
        from: &DeviceBuffer<T>,
        from_at: usize,
        to: &DeviceBuffer<T>,
        to_at: usize,
        len: usize,
    ) -> Result<(), GpuError> {
        self.device().same_as(from.device())?;
        self.device().same_as(to.device())?;
        let (from_address, to_address) =
            (from.range("copy from", from_at, len)?, to.range("copy to", to_at, len)?);
        if len == 0 {
            return Ok(());
        }
        let bytes = byte_len::<T>(len)?;
        if from_address < to_address + bytes as u64 && to_address < from_address + bytes as u64 {
            return Err(GpuError::misuse("the two ranges of a copy overlap"));
        }
        self.submit(Op::Copy { from: from_address, to: to_address, bytes })
    }

    /// Sets every byte of `len` elements to `byte`.
    pub fn fill<T: Pod>(
        &self,
        buffer: &DeviceBuffer<T>,
        at: usize,
        len: usize,
        byte: u8,
    ) -> Result<(), GpuError> {
        self.device().same_as(buffer.device())?;
        let address = buffer.range("fill", at, len)?;
        if len == 0 {
            return Ok(());
        }
        let bytes = byte_len::<T>(len)?;
        self.submit(Op::Fill { at: address, bytes, byte })
    }

    /// Runs a kernel. Arguments of another size than the kernel's struct are an error.
    ///
    /// # Safety
    ///
    /// - `A` is the twin of the kernel's struct: declared by [`kernel_structs!`](crate::kernel_structs) and among the layouts that the
    ///   kernel's source was [compared](crate::Source::comparing) with.
    /// - The pointers inside `args`, and inside what they point to, belong to buffers of this device that are as large as the kernel
    ///   believes and live until the work is done. Dropping a buffer waits for the device, so it is enough that none is dropped before
    ///   the launch.
    /// - Nothing else that runs at the same time writes what the kernel reads or writes.
    pub unsafe fn launch<A: Pod>(&self, kernel: &Kernel, launch: Launch, args: &A) -> Result<(), GpuError> {
        self.device().same_as(kernel.device())?;
        if let Some(expected) = kernel.args_size()
            && expected != size_of::<A>()
        {
            let given = size_of::<A>();
            return Err(GpuError::ArgumentSize { kernel: kernel.name().into(), expected, given });
        }
        if let Some(message) = launch.problem(kernel) {
            return Err(GpuError::Launch { kernel: kernel.name().into(), message });
        }
        kernel.count_launch();
        self.inner.state.note_launch(kernel.shared_name());
        self.inner.state.add_load(kernel.load(launch));
        let args = bytemuck::bytes_of(args);
        self.submit(Op::Launch { kernel: kernel.id(), name: kernel.name(), launch, args })
    }

    /// The launches of this stream since this was called last. Between two [records](Stream::record) it says how full the device was from one
    /// to the other.
    pub fn take_load(&self) -> Load {
        std::mem::take(&mut self.inner.state.load.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks this point of the work.
    pub fn record(&self) -> Result<Event, GpuError> {
        let device = self.device();
        let id = device.events().take(|| device.call(None, |driver| driver.event()))?;
        let event = Event::new(device.clone(), id, self.inner.state.clone());
        self.submit(Op::Record(id))?;
        Ok(event)
    }

    /// Lets all later work of this stream wait for `event`.
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        self.device().same_as(event.device())?;
        self.submit(Op::Wait(event.id()))
    }

    /// Runs a closure on the host when the work before it is done; the work after it waits.
    ///
    /// The closure must not wait for the device: that is an error here, and a deadlock elsewhere. What it owns may be dropped inside;
    /// memory of the device is then freed later. A panic is reported at the next synchronisation.
    pub fn host(&self, work: impl FnOnce() + Send + 'static) -> Result<(), GpuError> {
        let state = self.inner.state.clone();
        let mut work = HostWork(Some(work));
        self.submit(Op::Host(Box::new(move || {
            if let Err(message) = work.run() {
                state.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
            }
        })))
    }

    /// Waits until all work of this stream is done.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.device().forbid_in_host_work("synchronising a stream")?;
        let launched = self.inner.state.launched();
        self.device().call(Some(&self.inner.state), |driver| driver.synchronize_stream(self.inner.id))?;
        self.inner.state.settle(&launched)
    }

    pub(crate) fn submit(&self, op: Op<'_>) -> Result<(), GpuError> {
        self.device().call(Some(&self.inner.state), |driver| driver.submit(self.inner.id, op))
    }

    /// Records an event after a transfer and hands it to the host memory in use. If that fails the memory may be in use still, so
    /// the stream is waited for.
    fn hold(&self, keep: impl FnOnce(Event)) -> Result<(), GpuError> {
        match self.record() {
            Ok(event) => {
                keep(event);
                Ok(())
            }
            Err(error) => {
                self.device().drain(self.inner.id);
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stream").field(&self.inner.number).finish()
    }
}
