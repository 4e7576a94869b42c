//! Points in the work of a stream: has the device come this far, and when?

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::device::Device;
use crate::driver::{Driver, EventId};
use crate::error::GpuError;
use crate::stream::StreamState;

/// A point in the work of a stream, made by [`Stream::record`](crate::Stream::record). A clone is the same point.
#[derive(Clone)]
pub struct Event {
    inner: Arc<EventInner>,
}

struct EventInner {
    device: Device,
    id: EventId,
    stream: Arc<StreamState>,
    first_asked: OnceLock<Instant>,
}

impl Drop for EventInner {
    fn drop(&mut self) {
        self.device.events().give(self.id);
    }
}

impl Event {
    pub(crate) fn new(device: Device, id: EventId, stream: Arc<StreamState>) -> Self {
        Self { inner: Arc::new(EventInner { device, id, stream, first_asked: OnceLock::new() }) }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn id(&self) -> EventId {
        self.inner.id
    }

    /// Whether everything before this point is done. Never waits.
    ///
    /// Asking again and again is a way of waiting, so the limit holds here too, from the first question on.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        let waited = self.inner.first_asked.get_or_init(Instant::now).elapsed();
        self.call(|driver| {
            let limit = driver.wait_limit();
            let is_done = driver.event_done(self.id())?;
            if !is_done && waited >= limit.get() { Err(limit.exceeded()) } else { Ok(is_done) }
        })
    }

    /// Waits until everything before this point is done.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.device().forbid_in_host_work("waiting for an event")?;
        self.call(|driver| driver.event_wait(self.id()))
    }

    /// Milliseconds between `earlier` and this event on the device's clock; waits for both.
    /// Negative if `earlier` happened later.
    pub fn since_ms(&self, earlier: &Event) -> Result<f64, GpuError> {
        earlier.wait()?;
        self.wait()?;
        self.since_done_ms(earlier)
    }

    /// The same where both are known to have happened.
    pub(crate) fn since_done_ms(&self, earlier: &Event) -> Result<f64, GpuError> {
        self.device().same_as(earlier.device())?;
        self.call(|driver| driver.elapsed_ms(earlier.id(), self.id()))
    }

    fn call<T>(&self, call: impl FnOnce(&dyn Driver) -> Result<T, GpuError>) -> Result<T, GpuError> {
        self.device().call(Some(&self.inner.stream), call)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Event").field(&self.id().0).finish()
    }
}

/// The events of a device. A dropped [`Event`] comes back here and is recorded anew.
#[derive(Default)]
pub struct EventPool {
    idle: Mutex<Vec<EventId>>,
    created: AtomicU64,
}

impl EventPool {
    /// How many events were ever made on the device.
    pub fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    /// How many events wait for their next use.
    pub fn idle(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn take(&self, make: impl FnOnce() -> Result<EventId, GpuError>) -> Result<EventId, GpuError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(event) = idle {
            return Ok(event);
        }
        let event = make()?;
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(event)
    }

    pub(crate) fn give(&self, event: EventId) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    pub(crate) fn drain(&self) -> Vec<EventId> {
        std::mem::take(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
