//! A record of what ran when, by the clock of the device.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::error::GpuError;
use crate::event::Event;
use crate::stream::Stream;
use crate::trace::{TraceSpan, chrome_trace};

/// Milliseconds since its making, on the device's clock.
///
/// Times between CUDA events are single-precision numbers. So they are taken from a near event, which moves along, and added up
/// in double precision: a day later a microsecond still counts.
pub(crate) struct Clock {
    near: Event,
    near_ms: f64,
}

/// How far the near event may fall behind: a thousand milliseconds resolve to a ten-thousandth in single precision.
const NEAR_MS: f64 = 1000.0;

impl Clock {
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let near = device.stream()?.record()?;
        near.wait()?;
        Ok(Self { near, near_ms: 0.0 })
    }

    /// When the event happened; waits for it.
    pub fn at(&mut self, event: &Event) -> Result<f64, GpuError> {
        let since = event.since_ms(&self.near)?;
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
}

/// A record of spans, for Perfetto or `chrome://tracing`.
pub struct Timeline {
    inner: Mutex<Inner>,
}

struct Inner {
    clock: Clock,
    pending: Vec<Pending>,
    spans: Vec<Span>,
    tracks: BTreeMap<u64, String>,
}

struct Pending {
    name: String,
    stream: u64,
    start: Event,
    end: Event,
}

impl Timeline {
    /// An empty timeline that begins now.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let inner = Inner {
            clock: Clock::new(device)?,
            pending: Vec::new(),
            spans: Vec::new(),
            tracks: BTreeMap::new(),
        };
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Submits work and notes when it runs.
    pub fn span<R>(
        &self,
        name: &str,
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<R, GpuError>,
    ) -> Result<R, GpuError> {
        let start = stream.record()?;
        let result = work(stream)?;
        self.add(name, stream, start, stream.record()?);
        Ok(result)
    }

    /// Notes work between two events of a stream.
    pub fn add(&self, name: &str, stream: &Stream, start: Event, end: Event) {
        let mut inner = self.inner();
        let number = stream.number();
        inner.pending.push(Pending { name: name.into(), stream: number, start, end });
    }

    /// Gives the track of a stream a name.
    pub fn name_track(&self, stream: &Stream, name: &str) {
        self.inner().tracks.insert(stream.number(), name.into());
    }

    /// Takes in what is done by now, so that its events can be used again. Never waits.
    pub fn collect(&self) -> Result<(), GpuError> {
        let inner = &mut *self.inner();
        let mut left = Vec::new();
        for pending in inner.pending.drain(..) {
            if pending.end.is_done()? {
                inner.spans.push(resolve(&mut inner.clock, pending)?);
            } else {
                left.push(pending);
            }
        }
        inner.pending = left;
        Ok(())
    }

    /// All spans by their beginning; waits for those that are not done.
    pub fn spans(&self) -> Result<Vec<Span>, GpuError> {
        let inner = &mut *self.inner();
        for pending in std::mem::take(&mut inner.pending) {
            inner.spans.push(resolve(&mut inner.clock, pending)?);
        }
        inner.spans.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
        Ok(inner.spans.clone())
    }

    /// Takes the spans that are done by now out of the timeline, in the order they were added, so that one can be followed for
    /// ever. Never waits.
    pub fn take(&self) -> Result<Vec<Span>, GpuError> {
        self.collect()?;
        Ok(std::mem::take(&mut self.inner().spans))
    }

    /// All spans as a trace in Chrome's JSON format, one track per stream; waits for those that are not done.
    pub fn to_json(&self) -> Result<String, GpuError> {
        let spans = self.spans()?;
        let tracks = self.inner().tracks.clone();
        let spans: Vec<TraceSpan> = spans
            .into_iter()
            .map(|Span { name, stream, start_ms, end_ms }| TraceSpan {
                device: 0,
                track: stream,
                name,
                begin_ms: start_ms,
                end_ms,
            })
            .collect();
        let name = |stream: u64| tracks.get(&stream).cloned().unwrap_or_else(|| format!("stream {stream}"));
        Ok(chrome_trace(&[], name, &spans))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resolve(clock: &mut Clock, pending: Pending) -> Result<Span, GpuError> {
    let start_ms = clock.at(&pending.start)?;
    let end_ms = clock.at(&pending.end)?.max(start_ms);
    Ok(Span { name: pending.name, stream: pending.stream, start_ms, end_ms })
}
