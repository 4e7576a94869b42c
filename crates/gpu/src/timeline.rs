//! A record of what ran when, by the clock of the device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::error::GpuError;
use crate::event::Event;

/// Milliseconds since its making, on the device's clock.
///
/// Times between CUDA events are single-precision numbers. So they are taken from a near event, which moves along, and added up
/// in double precision: a day later a microsecond still counts.
struct Clock {
    near: Event,
    near_ms: f64,
}

/// How far the near event may fall behind: a thousand milliseconds resolve to a ten-thousandth in single precision.
const NEAR_MS: f64 = 1000.0;

impl Clock {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let near = device.stream()?.record()?;
        near.wait()?;
        Ok(Self { near, near_ms: 0.0 })
    }

    /// When an event happened that was waited for.
    fn at(&mut self, event: &Event) -> Result<f64, GpuError> {
        let since = event.since_done_ms(&self.near)?;
        let at = self.near_ms + since;
        if since > NEAR_MS {
            self.near = event.clone();
            self.near_ms = at;
        }
        Ok(at)
    }
}

/// Some work on a stream, from when to when.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// What ran.
    pub name: String,
    /// Number of the stream it ran on.
    pub stream: u64,
    /// When it began, in milliseconds since the making of the timeline.
    pub start_ms: f64,
    /// When it was done.
    pub end_ms: f64,
    /// The share of the device that its launches fill, 0 if it has none.
    pub fill: f64,
}

/// A record of spans on the device's clock.
pub struct Timeline {
    clock: Mutex<Clock>,
    spans: Mutex<Vec<Span>>,
}

impl Timeline {
    /// An empty timeline that begins now.
    pub(crate) fn new(device: &Device) -> Result<Self, GpuError> {
        Ok(Self { clock: Mutex::new(Clock::new(device)?), spans: Mutex::default() })
    }

    /// When the event happened, in milliseconds since the making of the timeline; waits for it.
    pub fn at(&self, event: &Event) -> Result<f64, GpuError> {
        // Not under the lock: others may ask for what happened before.
        event.wait()?;
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).at(event)
    }

    /// When events happened of which none comes after the last; waits for that one only.
    pub fn times<'e>(
        &self,
        events: impl DoubleEndedIterator<Item = &'e Event> + Clone,
    ) -> Result<Vec<f64>, GpuError> {
        if let Some(last) = events.clone().next_back() {
            last.wait()?;
        }
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        events.map(|event| clock.at(event)).collect()
    }

    pub(crate) fn add(&self, span: Span) {
        self.inner().push(span);
    }

    /// All spans by their beginning.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = self.inner().clone();
        spans.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
        spans
    }

    /// Takes the spans out of the timeline, in the order they were added, so that one can be followed for ever.
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut self.inner())
    }

    fn inner(&self) -> MutexGuard<'_, Vec<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
