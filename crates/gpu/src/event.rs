//! Points in the work of a stream: has the device come this far, and when?

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::capture::Capture;
use crate::device::Device;
use crate::driver::EventId;
use crate::error::GpuError;
use crate::stream::StreamState;

/// A point in the work of a stream, made by [`Stream::record`](crate::Stream::record). A clone is the same point.
#[derive(Clone)]
pub struct Event {
    inner: Arc<EventInner>,
}

enum EventInner {
    Device { device: Device, id: EventId, stream: Arc<StreamState>, first_asked: OnceLock<Instant> },
    Captured { capture: Arc<Capture>, number: usize },
}

impl Drop for EventInner {
    fn drop(&mut self) {
        if let Self::Device { device, id, .. } = self {
            device.events().give(*id);
        }
    }
}

impl Event {
    pub(crate) fn new(device: Device, id: EventId, stream: Arc<StreamState>) -> Self {
        let first_asked = OnceLock::new();
        Self { inner: Arc::new(EventInner::Device { device, id, stream, first_asked }) }
    }

    pub(crate) fn captured(capture: Arc<Capture>, number: usize) -> Self {
        Self { inner: Arc::new(EventInner::Captured { capture, number }) }
    }

    /// The capture this event was recorded in, and its number there.
    pub(crate) fn capture(&self) -> Option<(&Arc<Capture>, usize)> {
        match &*self.inner {
            EventInner::Captured { capture, number } => Some((capture, *number)),
            EventInner::Device { .. } => None,
        }
    }

    pub(crate) fn on_device(&self) -> Result<(&Device, EventId, &Arc<StreamState>), GpuError> {
        match &*self.inner {
            EventInner::Device { device, id, stream, .. } => Ok((device, *id, stream)),
            EventInner::Captured { .. } => {
                Err(GpuError::misuse("an event recorded in a graph only orders work inside that graph"))
            }
        }
    }

    /// Whether everything before this point is done. Never waits.
    ///
    /// Asking again and again is a way of waiting, so the limit holds here too, from the first question on.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        let (device, id, stream) = self.on_device()?;
        let waited = match &*self.inner {
            EventInner::Device { first_asked, .. } => first_asked.get_or_init(Instant::now).elapsed(),
            EventInner::Captured { .. } => Duration::ZERO,
        };
        device.call(Some(stream), |driver| {
            let limit = driver.wait_limit();
            let is_done = driver.event_done(id)?;
            if !is_done && waited >= limit.get() { Err(limit.exceeded()) } else { Ok(is_done) }
        })
    }

    /// Waits until everything before this point is done.
    pub fn wait(&self) -> Result<(), GpuError> {
        let (device, id, stream) = self.on_device()?;
        device.forbid_in_host_work("waiting for an event")?;
        device.call(Some(stream), |driver| driver.event_wait(id))
    }

    /// Milliseconds between `earlier` and this event on the device's clock; waits for both.
    /// Negative if `earlier` happened later.
    pub fn since_ms(&self, earlier: &Event) -> Result<f64, GpuError> {
        let (device, to, stream) = self.on_device()?;
        let (other, from, _) = earlier.on_device()?;
        device.same_as(other)?;
        earlier.wait()?;
        self.wait()?;
        device.call(Some(stream), |driver| driver.elapsed_ms(from, to))
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.inner {
            EventInner::Device { id, .. } => f.debug_tuple("Event").field(&id.0).finish(),
            EventInner::Captured { number, .. } => f.debug_tuple("CapturedEvent").field(number).finish(),
        }
    }
}

/// The events of a device. A dropped [`Event`] comes back here and is recorded anew.
#[derive(Default)]
pub struct EventPool {
    idle: Mutex<Vec<EventId>>,
    created: AtomicU64,
    reused: AtomicU64,
}

impl EventPool {
    /// How many events were ever made on the device.
    pub fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    /// How often a record found an idle event.
    pub fn reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    /// How many events wait for their next use.
    pub fn idle(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn take(&self, make: impl FnOnce() -> Result<EventId, GpuError>) -> Result<EventId, GpuError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(event) = idle {
            self.reused.fetch_add(1, Ordering::Relaxed);
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
