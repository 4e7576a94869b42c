//! A device: the one thing that allocates, compiles and hands out streams.

use std::collections::{BTreeSet, HashMap};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytemuck::Pod;
use sha2::{Digest, Sha256};

use crate::buffer::{DeviceBuffer, Pinned, byte_len};
use crate::driver::{Driver, StreamId};
use crate::error::GpuError;
use crate::event::{Event, EventPool};
use crate::host::{HostDriver, HostOptions};
use crate::module::{Module, ModuleInner, Source};
use crate::nvrtc::{self, NvrtcInfo};
use crate::stream::{Priority, Stream, StreamState, in_host_work};

/// What kind of device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A GPU, through the CUDA driver.
    Cuda,
    /// Threads of this machine; kernels run under emulation.
    Host,
}

/// Facts about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What kind it is.
    pub kind: DeviceKind,
    /// Its number among the devices of its kind.
    pub ordinal: usize,
    /// The maker's name for it.
    pub name: String,
    /// What kernels are compiled for, for example `sm_90`; `host` on the host. A GPU needs at least
    /// [`LEAST_ARCHITECTURE`](crate::LEAST_ARCHITECTURE).
    pub architecture: String,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Multiprocessors of a GPU, threads of the host.
    pub multiprocessors: u32,
    /// Size of the second-level cache; 0 if unknown.
    pub l2_bytes: u64,
    /// The most shared memory a block may have.
    pub shared_bytes: u32,
    /// Version of the driver, for example `13.0`; empty on the host.
    pub driver: String,
    /// Version of NVRTC, for example `13.0`; empty on the host.
    pub nvrtc: String,
}

impl DeviceInfo {
    /// The compute capability of a GPU, for example `9.0`.
    pub fn capability(&self) -> Option<String> {
        nvrtc::number_of(&self.architecture).map(nvrtc::capability)
    }

    /// Why this GPU cannot be used with this compiler, or with any: kernels cannot be compiled for it.
    pub fn obstacle(&self, nvrtc: Option<&NvrtcInfo>) -> Option<GpuError> {
        nvrtc::obstacle(&self.name, &self.architecture, nvrtc)
    }
}

/// A device. A clone is the same device.
#[derive(Clone)]
pub struct Device {
    inner: Arc<DeviceInner>,
}

struct DeviceInner {
    /// Never dropped once the device hangs.
    driver: ManuallyDrop<Box<dyn Driver>>,
    lost: OnceLock<GpuError>,
    /// A wait has lasted too long: nothing is waited for any more, and nothing that the device may be using is given back.
    is_hung: AtomicBool,
    events: EventPool,
    modules: Mutex<HashMap<[u8; 32], Arc<ModuleInner>>>,
    streams: Mutex<Vec<Weak<StreamState>>>,
    /// Kernels of dropped streams that were never synchronised.
    orphans: Mutex<Vec<Arc<str>>>,
    n_streams: AtomicU64,
    garbage: Mutex<Vec<Garbage>>,
    has_garbage: AtomicBool,
}

/// Something dropped by work on the host, where the device must not be waited for. Freed at the next allocation or
/// synchronisation.
enum Garbage {
    Memory(u64),
    Pinned(u64),
    Stream(StreamId),
}

impl Drop for DeviceInner {
    fn drop(&mut self) {
        // Work of streams that were dropped may still run; a context is not given up before its end. Where that cannot be waited
        // for, or would not come, everything stays as it is.
        if in_host_work() || self.is_hung.load(Ordering::Relaxed) || is_hang(&self.driver.synchronize()) {
            return;
        }
        let garbage = std::mem::take(self.garbage.get_mut().unwrap_or_else(PoisonError::into_inner));
        for item in garbage {
            if is_hang(&item.free(&**self.driver)) {
                return;
            }
        }
        for event in self.events.drain() {
            self.driver.drop_event(event);
        }
        // SAFETY: nobody uses it after this.
        unsafe { ManuallyDrop::drop(&mut self.driver) };
    }
}

fn is_hang(result: &Result<(), GpuError>) -> bool {
    matches!(result, Err(GpuError::Hung { .. }))
}

impl Garbage {
    fn free(self, driver: &dyn Driver) -> Result<(), GpuError> {
        match self {
            Self::Memory(address) => driver.free(address),
            Self::Pinned(address) => driver.unpin(address),
            Self::Stream(stream) => {
                driver.drop_stream(stream);
                Ok(())
            }
        }
    }
}

impl Device {
    /// The CUDA device with that number.
    ///
    /// Never panics: a missing driver, device or compiler is [`GpuError::Unavailable`] with a cure.
    pub fn cuda(ordinal: usize) -> Result<Self, GpuError> {
        Ok(Self::new(Box::new(crate::cuda::CudaDriver::open(ordinal)?)))
    }

    /// A device made of threads and plain memory. Its kernels run under emulation: the same text, the same bits, slowly.
    pub fn host(options: HostOptions) -> Self {
        Self::new(Box::new(HostDriver::new(options)))
    }

    fn new(driver: Box<dyn Driver>) -> Self {
        let inner = DeviceInner {
            driver: ManuallyDrop::new(driver),
            lost: OnceLock::new(),
            is_hung: AtomicBool::new(false),
            events: EventPool::default(),
            modules: Mutex::default(),
            streams: Mutex::default(),
            orphans: Mutex::default(),
            n_streams: AtomicU64::new(0),
            garbage: Mutex::default(),
            has_garbage: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Facts about it.
    pub fn info(&self) -> &DeviceInfo {
        self.inner.driver.info()
    }

    /// How long anything here may wait for the device, from now on. One that is waited for longer is lost ([`GpuError::Hung`]).
    ///
    /// At first a GPU has ten minutes and a host device, whose kernels are slow and cannot hang, all the time there is
    /// ([`Duration::MAX`]).
    pub fn set_wait_limit(&self, limit: Duration) {
        self.inner.driver.wait_limit().set(limit);
    }

    /// How long anything here may wait for the device.
    pub fn wait_limit(&self) -> Duration {
        self.inner.driver.wait_limit().get()
    }

    /// Memory that is free now.
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        self.call(None, |driver| driver.free_bytes())
    }

    /// Zeroed memory of the device.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, GpuError> {
        let bytes = byte_len::<T>(len)?;
        self.collect()?;
        let address = if bytes == 0 { 0 } else { self.call(None, |driver| driver.alloc(bytes as u64))? };
        Ok(DeviceBuffer::new(self.clone(), address, len))
    }

    /// A buffer without elements that can [grow](DeviceBuffer::grow) to so many where it is; one that cannot grow at all where the device
    /// does not offer that.
    pub fn growable<T: Pod>(&self, most: usize) -> Result<DeviceBuffer<T>, GpuError> {
        let bytes = byte_len::<T>(most)?;
        self.collect()?;
        let reserved =
            if bytes == 0 { None } else { self.call(None, |driver| driver.reserve(bytes as u64))? };
        Ok(match reserved {
            Some(address) => DeviceBuffer::new(self.clone(), address, 0).with_most(most),
            None => DeviceBuffer::new(self.clone(), 0, 0),
        })
    }

    pub(crate) fn back(&self, address: u64, bytes: usize) -> Result<(), GpuError> {
        self.call(None, |driver| driver.back(address, bytes as u64))
    }

    /// Memory of the device with these elements. Waits for the copy; for data that is uploaded once.
    pub fn alloc_from<T: Pod>(&self, elements: &[T]) -> Result<DeviceBuffer<T>, GpuError> {
        let buffer = self.alloc(elements.len())?;
        let mut staging = self.pinned(elements.len())?;
        staging.as_mut_slice()?.copy_from_slice(elements);
        let stream = self.service()?;
        stream.upload(&staging, 0, &buffer, 0, elements.len())?;
        stream.synchronize()?;
        Ok(buffer)
    }

    /// Zeroed page-locked memory of the host, for transfers.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<Pinned<T>, GpuError> {
        const { assert!(align_of::<T>() <= 64) };
        let bytes = byte_len::<T>(len)?;
        self.collect()?;
        let address = if bytes == 0 { 0 } else { self.call(None, |driver| driver.pin(bytes as u64))? };
        Ok(Pinned::new(self.clone(), address, len))
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream, GpuError> {
        self.stream_with(Priority::Normal)
    }

    /// A new stream of a given priority.
    pub(crate) fn stream_with(&self, priority: Priority) -> Result<Stream, GpuError> {
        let id = self.call(None, |driver| driver.stream(priority))?;
        let number = self.inner.n_streams.fetch_add(1, Ordering::Relaxed);
        let state = Arc::new(StreamState::default());
        let mut streams = self.inner.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&state));
        drop(streams);
        Ok(Stream::new(self.clone(), id, number, state))
    }

    /// Compiles and loads a source, or finds it in memory or on disk.
    pub fn load(&self, source: &Source) -> Result<Module, GpuError> {
        let mut hash = Sha256::new();
        hash.update((source.name.len() as u64).to_le_bytes());
        hash.update(source.name.as_bytes());
        hash.update(source.text.as_bytes());
        let key: [u8; 32] = hash.finalize().into();
        let known = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(module) = known {
            self.alive()?;
            return Ok(Module::new(self.clone(), module));
        }
        // Not under the lock: two sources may compile at the same time.
        let id = self.call(None, |driver| driver.load(source))?;
        let mut modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module =
            modules.entry(key).or_insert_with(|| Arc::new(ModuleInner::new(source.name.clone(), id)));
        Ok(Module::new(self.clone(), module.clone()))
    }

    /// The names of all kernels that were launched, in alphabetical order.
    pub fn launched(&self) -> BTreeSet<String> {
        let modules = self.inner.modules.lock().unwrap_or_else(PoisonError::into_inner);
        modules.values().flat_map(|module| module.launched()).collect()
    }

    /// Several sources, compiled side by side; modules in their order, or the first error.
    pub fn load_all(&self, sources: &[Source]) -> Result<Vec<Module>, GpuError> {
        std::thread::scope(|scope| {
            let load = |source| scope.spawn(move || self.load(source));
            let loading: Vec<_> = sources.iter().map(load).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
            };
            // All are waited for, also behind an error.
            let loaded: Vec<_> = loading.into_iter().map(join).collect();
            loaded.into_iter().collect()
        })
    }

    /// Waits until all work on the device is done.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.forbid_in_host_work("synchronising the device")?;
        let states = self.states();
        let launched: Vec<_> = states.iter().map(|state| state.launched()).collect();
        self.call(None, |driver| driver.synchronize())?;
        self.orphans().clear();
        self.collect()?;
        states.iter().zip(&launched).try_for_each(|(state, launched)| state.settle(launched))
    }

    /// Events for reuse.
    pub fn events(&self) -> &EventPool {
        &self.inner.events
    }

    /// Whether the other is the same device.
    pub fn is_same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn same_as(&self, other: &Device) -> Result<(), GpuError> {
        if self.is_same(other) {
            return Ok(());
        }
        Err(GpuError::misuse(format!("something of {} was used on {}", other.info().name, self.info().name)))
    }

    /// A stream for a single transfer.
    pub(crate) fn service(&self) -> Result<Stream, GpuError> {
        self.stream_with(Priority::High)
    }

    /// The error that lost the device, if it is lost.
    pub(crate) fn alive(&self) -> Result<(), GpuError> {
        self.inner.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub(crate) fn forbid_in_host_work(&self, what: &str) -> Result<(), GpuError> {
        if in_host_work() {
            return Err(GpuError::misuse(format!("{what} inside `Stream::host` would wait for itself")));
        }
        Ok(())
    }

    /// Calls the driver. A fault gets the names of suspects and is what every later call returns.
    pub(crate) fn call<R>(
        &self,
        stream: Option<&Arc<StreamState>>,
        call: impl FnOnce(&dyn Driver) -> Result<R, GpuError>,
    ) -> Result<R, GpuError> {
        self.alive()?;
        call(&**self.inner.driver).map_err(|error| self.judge(stream, error))
    }

    /// Turns an error of the driver into ours; some mean that the device is lost.
    fn judge(&self, stream: Option<&Arc<StreamState>>, error: GpuError) -> GpuError {
        if !error.is_lost() {
            return error;
        }
        let mut suspects = stream.map(|state| state.launched()).unwrap_or_default();
        if suspects.is_empty() {
            suspects = self.states().iter().flat_map(|state| state.launched()).collect();
            suspects.extend(self.orphans().iter().cloned());
            suspects.sort();
            suspects.dedup();
        }
        let kernels = suspects.iter().map(|name| name.to_string()).collect();
        let lost = match error {
            GpuError::Fault { code, message, .. } => GpuError::Fault { kernels, code, message },
            GpuError::Hung { limit, .. } => {
                self.inner.is_hung.store(true, Ordering::Relaxed);
                GpuError::Hung { kernels, limit }
            }
            other => other,
        };
        self.inner.lost.get_or_init(|| lost).clone()
    }

    fn is_hung(&self) -> bool {
        self.inner.is_hung.load(Ordering::Relaxed)
    }

    /// Waits, also on a lost device, until what the call waits for has ended, well or not; whether it has.
    fn outlasts(&self, wait: impl FnOnce(&dyn Driver) -> Result<(), GpuError>) -> bool {
        if !self.is_hung()
            && let Err(error) = wait(&**self.inner.driver)
        {
            // `judge` notes the failure, and the next call on the device returns it.
            let _ = self.judge(None, error);
        }
        !self.is_hung()
    }

    pub(crate) fn release(&self, address: u64) {
        self.discard(Garbage::Memory(address));
    }

    pub(crate) fn unpin(&self, address: u64, pending: Vec<Event>) {
        if in_host_work() {
            return self.defer(Garbage::Pinned(address));
        }
        for event in pending {
            if event.wait().is_err() {
                // A lost device: whatever still runs has to end first.
                self.outlasts(|driver| driver.synchronize());
                break;
            }
        }
        self.outlasts(|driver| driver.unpin(address));
    }

    /// Waits for a stream however it ends, also on a lost device.
    pub(crate) fn drain(&self, stream: StreamId) {
        self.outlasts(|driver| driver.synchronize_stream(stream));
    }

    pub(crate) fn drop_stream(&self, stream: StreamId, state: &StreamState) {
        let mut orphans = self.orphans();
        for kernel in state.launched() {
            if !orphans.contains(&kernel) {
                orphans.push(kernel);
            }
        }
        drop(orphans);
        if in_host_work() {
            return self.defer(Garbage::Stream(stream));
        }
        if !self.is_hung() {
            self.inner.driver.drop_stream(stream);
        }
    }

    fn discard(&self, item: Garbage) {
        if in_host_work() {
            return self.defer(item);
        }
        self.outlasts(|driver| driver.synchronize());
        self.outlasts(|driver| item.free(driver));
    }

    fn defer(&self, item: Garbage) {
        self.inner.garbage.lock().unwrap_or_else(PoisonError::into_inner).push(item);
        self.inner.has_garbage.store(true, Ordering::Release);
    }

    /// Frees what work on the host has dropped.
    fn collect(&self) -> Result<(), GpuError> {
        if in_host_work() || !self.inner.has_garbage.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let garbage = std::mem::take(&mut *self.inner.garbage.lock().unwrap_or_else(PoisonError::into_inner));
        let done = self.call(None, |driver| driver.synchronize());
        for item in garbage {
            self.outlasts(|driver| item.free(driver));
        }
        done
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        self.inner.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> Vec<Arc<StreamState>> {
        self.inner
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(self.info()).finish()
    }
}
