//! Three slots that go round: while one is uploaded, another is processed and the third is downloaded.
//!
//! The state of a slot is its type, so steps out of order do not compile. That the work of a step is really done cannot be a type;
//! going on too early is [`GpuError::NotReady`], and the slot comes back with the error.
//!
//! ```
//! # use tidemill_gpu::{Device, GpuError, HostOptions, TripleBuffer};
//! # fn main() -> Result<(), GpuError> {
//! # let device = Device::host(HostOptions::default());
//! # let stream = device.stream()?;
//! let buffer = TripleBuffer::<u64>::new(&device, 10)?;
//! let slot = buffer.acquire().expect("three are free");
//! let slot = slot.upload(&stream, 10, |elements| elements.fill(7))?;
//! slot.wait()?;
//! let slot = slot.process(&stream, |stream, elements| stream.fill(elements, 0, 5, 0))?;
//! slot.wait()?;
//! let slot = slot.download(&stream)?;
//! slot.wait()?;
//! let (sum, _free) = slot.finish(|elements| elements.iter().sum::<u64>())?;
//! assert_eq!(sum, 35);
//! # Ok(())
//! # }
//! ```
//!
//! A slot that was not uploaded cannot be processed:
//!
//! ```compile_fail,E0599
//! # use tidemill_gpu::{Device, HostOptions, TripleBuffer};
//! # let device = Device::host(HostOptions::default());
//! # let stream = device.stream().unwrap();
//! let slot = TripleBuffer::<u64>::new(&device, 10).unwrap().acquire().unwrap();
//! slot.process(&stream, |_, _| Ok(()));
//! ```

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use crate::buffer::{DeviceBuffer, Pinned};
use crate::device::Device;
use crate::error::GpuError;
use crate::event::Event;
use crate::stream::Stream;

/// Where a slot is in its round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotState {
    /// It is not in use.
    Free,
    /// Its elements are on their way to the device.
    Uploading,
    /// The device works on them.
    Processing,
    /// They are on their way back.
    Downloading,
}

impl SlotState {
    fn verb(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Uploading => "uploading",
            Self::Processing => "processing",
            Self::Downloading => "downloading",
        }
    }
}

/// States of a [`Slot`] as types.
pub mod slot {
    use super::SlotState;

    /// A state of a slot.
    pub trait State: sealed::Sealed {
        /// The same as a value.
        const STATE: SlotState;
    }

    /// It is not in use.
    #[derive(Debug)]
    pub enum Free {}
    /// Its elements are on their way to the device.
    #[derive(Debug)]
    pub enum Uploading {}
    /// The device works on them.
    #[derive(Debug)]
    pub enum Processing {}
    /// They are on their way back.
    #[derive(Debug)]
    pub enum Downloading {}

    impl State for Free {
        const STATE: SlotState = SlotState::Free;
    }
    impl State for Uploading {
        const STATE: SlotState = SlotState::Uploading;
    }
    impl State for Processing {
        const STATE: SlotState = SlotState::Processing;
    }
    impl State for Downloading {
        const STATE: SlotState = SlotState::Downloading;
    }

    mod sealed {
        pub trait Sealed {}
        impl Sealed for super::Free {}
        impl Sealed for super::Uploading {}
        impl Sealed for super::Processing {}
        impl Sealed for super::Downloading {}
    }
}

/// Three slots, each with memory on the device and pinned memory on the host.
pub struct TripleBuffer<T: Pod> {
    home: Arc<SlotPool<T>>,
}

struct SlotPool<T> {
    inner: Mutex<SlotPoolInner<T>>,
}

struct SlotPoolInner<T> {
    idle: Vec<Storage<T>>,
    states: [SlotState; 3],
}

struct Storage<T> {
    number: usize,
    staging: Pinned<T>,
    buffer: DeviceBuffer<T>,
}

impl<T> SlotPool<T> {
    fn inner(&self) -> MutexGuard<'_, SlotPoolInner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Pod> TripleBuffer<T> {
    /// Three slots of `len` elements.
    pub fn new(device: &Device, len: usize) -> Result<Self, GpuError> {
        let idle = (0..3)
            .rev()
            .map(|number| Ok(Storage { number, staging: device.pinned(len)?, buffer: device.alloc(len)? }))
            .collect::<Result<_, GpuError>>()?;
        let inner = SlotPoolInner { idle, states: [SlotState::Free; 3] };
        Ok(Self { home: Arc::new(SlotPool { inner: Mutex::new(inner) }) })
    }

    /// A free slot, if there is one.
    pub fn acquire(&self) -> Option<Slot<T, slot::Free>> {
        let storage = Box::new(self.home.inner().idle.pop()?);
        Some(Slot {
            storage: Some(storage),
            home: self.home.clone(),
            event: None,
            len: 0,
            state: PhantomData,
        })
    }

    /// Where the three slots are.
    pub fn states(&self) -> [SlotState; 3] {
        self.home.inner().states
    }
}

/// A slot of a [`TripleBuffer`] in one of its states. Dropped in any state, it waits for its work and is free again.
pub struct Slot<T: Pod, S: slot::State> {
    storage: Option<Box<Storage<T>>>,
    home: Arc<SlotPool<T>>,
    event: Option<Event>,
    len: usize,
    state: PhantomData<S>,
}

/// A step that could not be taken: the error, and the slot as it was.
pub struct Refused<T: Pod, S: slot::State> {
    /// The slot, unchanged.
    pub slot: Slot<T, S>,
    /// Why; [`GpuError::NotReady`] if only the time has not come.
    pub error: GpuError,
}

impl<T: Pod, S: slot::State> From<Refused<T, S>> for GpuError {
    fn from(refused: Refused<T, S>) -> Self {
        refused.error
    }
}

impl<T: Pod, S: slot::State> std::fmt::Debug for Refused<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refused").field("slot", &self.slot.number()).field("error", &self.error).finish()
    }
}

impl<T: Pod, S: slot::State> Slot<T, S> {
    /// Its number, 0 to 2.
    pub fn number(&self) -> usize {
        self.storage().number
    }

    /// Number of elements in use.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no elements are in use.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the work of its state is done. Never waits.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.event.as_ref().map_or(Ok(true), Event::is_done)
    }

    /// Waits for the work of its state.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.event.as_ref().map_or(Ok(()), Event::wait)
    }

    fn storage(&self) -> &Storage<T> {
        self.storage.as_ref().expect("a slot has its memory until it is dropped")
    }

    fn storage_mut(&mut self) -> &mut Storage<T> {
        self.storage.as_mut().expect("a slot has its memory until it is dropped")
    }

    fn check_done(&self) -> Result<(), GpuError> {
        if self.is_done()? {
            return Ok(());
        }
        Err(GpuError::NotReady { what: format!("slot {} is still {}", self.number(), S::STATE.verb()) })
    }

    fn refuse(self, error: GpuError) -> Refused<T, S> {
        Refused { slot: self, error }
    }

    /// The next state, whose work ends with `event`.
    fn advance<Next: slot::State>(mut self, event: Option<Event>) -> Slot<T, Next> {
        self.home.inner().states[self.number()] = Next::STATE;
        Slot {
            storage: self.storage.take(),
            home: self.home.clone(),
            event,
            len: self.len,
            state: PhantomData,
        }
    }
}

impl<T: Pod> Slot<T, slot::Free> {
    /// Fills the first `len` elements on the host and sends them to the device.
    pub fn upload(
        mut self,
        stream: &Stream,
        len: usize,
        fill: impl FnOnce(&mut [T]),
    ) -> Result<Slot<T, slot::Uploading>, Refused<T, slot::Free>> {
        let submitted = (|| {
            let size = self.storage().buffer.len();
            if len > size {
                return Err(GpuError::Range { what: "upload to a slot", at: 0, len, size });
            }
            let storage = self.storage_mut();
            fill(&mut storage.staging.as_mut_slice()?[..len]);
            stream.upload(&storage.staging, 0, &storage.buffer, 0, len)?;
            stream.record()
        })();
        match submitted {
            Ok(event) => {
                self.len = len;
                Ok(self.advance(Some(event)))
            }
            Err(error) => Err(self.refuse(error)),
        }
    }
}

impl<T: Pod> Slot<T, slot::Uploading> {
    /// Lets the device work on the elements, once they are there.
    pub fn process(
        mut self,
        stream: &Stream,
        work: impl FnOnce(&Stream, &DeviceBuffer<T>) -> Result<(), GpuError>,
    ) -> Result<Slot<T, slot::Processing>, Refused<T, slot::Uploading>> {
        if let Err(error) = self.check_done() {
            return Err(self.refuse(error));
        }
        let worked = work(stream, &self.storage().buffer);
        // Also after a failure: part of the work may have been submitted.
        match (worked, stream.record()) {
            (Ok(()), Ok(event)) => Ok(self.advance(Some(event))),
            (Err(error), Ok(event)) => {
                self.event = Some(event);
                Err(self.refuse(error))
            }
            (Ok(()), Err(error)) | (Err(error), Err(_)) => Err(self.refuse(error)),
        }
    }
}

impl<T: Pod> Slot<T, slot::Processing> {
    /// Fetches the elements, once the device has done its work.
    pub fn download(
        mut self,
        stream: &Stream,
    ) -> Result<Slot<T, slot::Downloading>, Refused<T, slot::Processing>> {
        let len = self.len;
        let submitted = self.check_done().and_then(|()| {
            let storage = self.storage_mut();
            stream.download(&storage.buffer, 0, &mut storage.staging, 0, len)?;
            stream.record()
        });
        match submitted {
            Ok(event) => Ok(self.advance(Some(event))),
            Err(error) => Err(self.refuse(error)),
        }
    }
}

impl<T: Pod> Slot<T, slot::Downloading> {
    /// Reads the elements, once they are back, and frees the slot.
    pub fn finish<R>(
        self,
        read: impl FnOnce(&[T]) -> R,
    ) -> Result<(R, Slot<T, slot::Free>), Refused<T, slot::Downloading>> {
        let result =
            self.check_done().and_then(|()| Ok(read(&self.storage().staging.as_slice()?[..self.len])));
        match result {
            Ok(result) => Ok((result, self.advance(None))),
            Err(error) => Err(self.refuse(error)),
        }
    }
}

impl<T: Pod, S: slot::State> Drop for Slot<T, S> {
    fn drop(&mut self) {
        let Some(storage) = self.storage.take() else { return };
        if let Some(event) = &self.event {
            // The next call on the device returns a failure.
            let _ = event.wait();
        }
        let mut home = self.home.inner();
        home.states[storage.number] = SlotState::Free;
        home.idle.push(*storage);
    }
}

impl<T: Pod, S: slot::State> std::fmt::Debug for Slot<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({}, {})", self.number(), S::STATE.verb())
    }
}
