//! Device memory, and pinned host memory for asynchronous transfers.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use crate::device::Device;
use crate::error::GpuError;
use crate::event::Event;

/// The address of a `T` in device memory, as a kernel sees it. Has the layout of a C pointer.
///
/// It does not keep the buffer alive: whoever launches a kernel keeps the buffers it reads and writes.
#[repr(transparent)]
pub struct DevicePtr<T> {
    address: u64,
    element: PhantomData<fn() -> T>,
}

impl<T> DevicePtr<T> {
    /// The null pointer.
    pub const NULL: Self = Self::from_address(0);

    /// A pointer from its number.
    pub const fn from_address(address: u64) -> Self {
        Self { address, element: PhantomData }
    }

    /// The address as a number.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Whether it is null.
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// The address `elements` further on.
    // The name is that of `pointer::add`, which readers of kernel code know; it is no sum of pointers.
    #[allow(clippy::should_implement_trait)]
    pub const fn add(self, elements: usize) -> Self {
        Self::from_address(self.address + (elements * size_of::<T>()) as u64)
    }

    /// The same address, seen as another type.
    pub const fn cast<U>(self) -> DevicePtr<U> {
        DevicePtr::from_address(self.address)
    }
}

impl<T> Clone for DevicePtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DevicePtr<T> {}

impl<T> PartialEq for DevicePtr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for DevicePtr<T> {}

impl<T> Default for DevicePtr<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> std::fmt::Debug for DevicePtr<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

// SAFETY: a transparent u64; all zeroes is the null pointer.
unsafe impl<T> Zeroable for DevicePtr<T> {}
// SAFETY: a transparent u64: every bit pattern is valid, there is no padding, and it holds no T.
unsafe impl<T: 'static> Pod for DevicePtr<T> {}

/// A piece of device memory, given back when it is dropped.
struct Memory {
    device: Device,
    address: u64,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            self.device.release(self.address);
        }
    }
}

/// `len` elements in device memory.
///
/// Operations on streams borrow it only while they are submitted. That is sound because dropping it waits for the device; it is
/// up to the caller that two streams do not use the same elements at the same time.
pub struct DeviceBuffer<T> {
    memory: Memory,
    len: usize,
    /// Elements that it has addresses for.
    most: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> DeviceBuffer<T> {
    pub(crate) fn new(device: Device, address: u64, len: usize) -> Self {
        Self { memory: Memory { device, address }, len, most: len, element: PhantomData }
    }

    /// With addresses for so many elements.
    pub(crate) fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Whether it can grow to so many elements where it is.
    pub fn can_grow(&self, len: usize) -> bool {
        len <= self.most
    }

    /// Takes in elements at the end until there are so many; what they hold is not defined. Those that are there stay where they are, so work
    /// that uses them goes on, and nothing is waited for. Without enough memory nothing changes.
    pub fn grow(&mut self, len: usize) -> Result<(), GpuError> {
        if len > self.most {
            return Err(GpuError::Range {
                what: "growing",
                at: self.len,
                len: len - self.len,
                size: self.most,
            });
        }
        if len > self.len {
            self.device().back(self.memory.address, len * size_of::<T>())?;
            self.len = len;
        }
        Ok(())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// The address of its first element, for the arguments of a kernel. Null if it is empty.
    pub fn ptr(&self) -> DevicePtr<T> {
        DevicePtr::from_address(self.memory.address)
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// Waits for the device and copies all elements to the host. For tests and small results.
    pub fn to_vec(&self) -> Result<Vec<T>, GpuError> {
        let device = self.device();
        let mut staging = device.pinned::<T>(self.len)?;
        device.synchronize()?;
        device.service()?.download(self, 0, &mut staging, 0, self.len)?;
        Ok(staging.as_slice()?.to_vec())
    }

    /// The address of element `at`, if `at .. at + len` lies inside.
    pub(crate) fn range(&self, what: &'static str, at: usize, len: usize) -> Result<u64, GpuError> {
        check_range(what, at, len, self.len)?;
        Ok(self.memory.address + (at * size_of::<T>()) as u64)
    }
}

impl<T> std::fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceBuffer({} elements at {:#x})", self.len, self.memory.address)
    }
}

/// `len` elements in page-locked host memory, for transfers that run in parallel with the host.
///
/// It remembers the transfers that use it. Looking at the elements, changing them and dropping it wait for those.
pub struct Pinned<T> {
    device: Device,
    address: u64,
    len: usize,
    pending: Mutex<Vec<Event>>,
    element: PhantomData<T>,
}

impl<T: Pod> Pinned<T> {
    pub(crate) fn new(device: Device, address: u64, len: usize) -> Self {
        Self { device, address, len, pending: Mutex::default(), element: PhantomData }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose transfers may use it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The elements, after all transfers that use them.
    pub fn as_slice(&self) -> Result<&[T], GpuError> {
        self.settle()?;
        if self.len == 0 {
            return Ok(&[]);
        }
        // SAFETY: `pin` gave len elements, zeroed and aligned to 64 bytes; any bits are a T (Pod). Downloads need `&mut self`, and
        // those submitted before are done, so nobody writes while the slice lives.
        Ok(unsafe { std::slice::from_raw_parts(self.address as *const T, self.len) })
    }

    /// The elements to change, after all transfers that use them.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], GpuError> {
        self.settle()?;
        if self.len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `as_slice`; all transfers are done and `&mut self` keeps new ones out.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, self.len) })
    }

    pub(crate) fn range(&self, what: &'static str, at: usize, len: usize) -> Result<u64, GpuError> {
        check_range(what, at, len, self.len)?;
        Ok(self.address + (at * size_of::<T>()) as u64)
    }

    /// Remembers a transfer by the event after it.
    pub(crate) fn used_until(&self, event: Event) {
        let mut pending = self.pending();
        // A transfer whose state is unknown is kept: dropping this memory waits for it.
        pending.retain(|earlier| !earlier.is_done().unwrap_or(false));
        pending.push(event);
    }
}

impl<T> Pinned<T> {
    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self) -> Result<(), GpuError> {
        self.device.alive()?;
        let mut pending = self.pending();
        while let Some(event) = pending.last() {
            event.wait()?;
            pending.pop();
        }
        Ok(())
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.address != 0 {
            let pending = std::mem::take(&mut *self.pending());
            self.device.unpin(self.address, pending);
        }
    }
}

impl<T> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned({} elements)", self.len)
    }
}

fn check_range(what: &'static str, at: usize, len: usize, size: usize) -> Result<(), GpuError> {
    match at.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => Err(GpuError::Range { what, at, len, size }),
    }
}

/// The size of `len` elements in bytes.
pub(crate) fn byte_len<T>(len: usize) -> Result<usize, GpuError> {
    len.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(GpuError::Range {
        what: "allocation",
        at: 0,
        len,
        size: isize::MAX as usize / size_of::<T>().max(1),
    })
}
