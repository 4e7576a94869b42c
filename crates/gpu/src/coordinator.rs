//! Operations with dependencies, by number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use crate::buffer::{DeviceBuffer, Pinned};
use crate::error::GpuError;
use crate::event::Event;
use crate::pool::{Purpose, StreamPool};
use crate::stream::Stream;
use crate::timeline::Timeline;

/// An operation of a [`Coordinator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    coordinator: u64,
    number: u64,
}

/// Submits operations to the streams of a pool, each after the operations it depends on, and knows which are done.
///
/// It remembers an operation until it has been told by [`poll`](Coordinator::poll), waited for or synchronised.
pub struct Coordinator {
    number: u64,
    pool: StreamPool,
    timeline: Option<Arc<Timeline>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// What has to happen for an operation to be done.
    running: BTreeMap<u64, Vec<Event>>,
}

impl Coordinator {
    /// A coordinator without operations.
    pub fn new(pool: StreamPool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, pool, timeline: None, inner: Mutex::default() }
    }

    /// Notes every operation in a timeline.
    pub fn with_timeline(self, timeline: Arc<Timeline>) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    /// The streams that work is submitted to.
    pub fn pool(&self) -> &StreamPool {
        &self.pool
    }

    /// Copies elements from the host to the device, after other operations.
    pub fn upload<T: Pod>(
        &self,
        from: &Pinned<T>,
        from_at: usize,
        to: &DeviceBuffer<T>,
        to_at: usize,
        len: usize,
        after: &[OperationId],
    ) -> Result<OperationId, GpuError> {
        self.submit(Purpose::Upload, "upload", after, |stream| stream.upload(from, from_at, to, to_at, len))
    }

    /// Submits work to a stream for computations, after other operations.
    pub fn compute(
        &self,
        name: &str,
        after: &[OperationId],
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<OperationId, GpuError> {
        self.submit(Purpose::Compute, name, after, work)
    }

    /// Copies elements from the device to the host, after other operations.
    pub fn download<T: Pod>(
        &self,
        from: &DeviceBuffer<T>,
        from_at: usize,
        to: &mut Pinned<T>,
        to_at: usize,
        len: usize,
        after: &[OperationId],
    ) -> Result<OperationId, GpuError> {
        self.submit(Purpose::Download, "download", after, |stream| {
            stream.download(from, from_at, to, to_at, len)
        })
    }

    /// Submits `n` pieces of work that may run side by side, each after the same operations.
    pub fn fork(
        &self,
        name: &str,
        after: &[OperationId],
        n: usize,
        mut work: impl FnMut(usize, &Stream) -> Result<(), GpuError>,
    ) -> Result<Vec<OperationId>, GpuError> {
        (0..n).map(|i| self.compute(name, after, |stream| work(i, stream))).collect()
    }

    /// An operation that is done when all of these are. It occupies no stream.
    pub fn join(&self, operations: &[OperationId]) -> Result<OperationId, GpuError> {
        let events = self.events(operations)?;
        Ok(self.enter(events))
    }

    /// Operations that are done and were neither told before nor waited for. Never waits.
    pub fn poll(&self) -> Result<Vec<OperationId>, GpuError> {
        let mut inner = self.inner();
        let mut done = Vec::new();
        for (&number, events) in &mut inner.running {
            if all_done(events)? {
                done.push(OperationId { coordinator: self.number, number });
            }
        }
        for operation in &done {
            inner.running.remove(&operation.number);
        }
        Ok(done)
    }

    /// Whether an operation is done. Never waits.
    pub fn is_done(&self, operation: OperationId) -> Result<bool, GpuError> {
        self.check(operation)?;
        self.inner().running.get(&operation.number).map_or(Ok(true), |events| all_done(events))
    }

    /// Waits for one operation, and for no other.
    pub fn wait(&self, operation: OperationId) -> Result<(), GpuError> {
        self.check(operation)?;
        let events = self.inner().running.get(&operation.number).cloned().unwrap_or_default();
        events.iter().try_for_each(Event::wait)?;
        self.inner().running.remove(&operation.number);
        Ok(())
    }

    /// Waits for all operations.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.pool.synchronize()?;
        self.inner().running.clear();
        Ok(())
    }

    fn submit(
        &self,
        purpose: Purpose,
        name: &str,
        after: &[OperationId],
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<OperationId, GpuError> {
        let events = self.events(after)?;
        let stream = self.pool.of(purpose);
        events.iter().try_for_each(|event| stream.wait(event))?;
        let start = self.timeline.as_ref().map(|_| stream.record()).transpose()?;
        work(stream)?;
        let end = stream.record()?;
        if let (Some(timeline), Some(start)) = (&self.timeline, start) {
            timeline.add(name, stream, start, end.clone());
        }
        Ok(self.enter(vec![end]))
    }

    /// The events behind operations that are not known to be done.
    fn events(&self, operations: &[OperationId]) -> Result<Vec<Event>, GpuError> {
        operations.iter().try_for_each(|&operation| self.check(operation))?;
        let inner = self.inner();
        Ok(operations
            .iter()
            .filter_map(|operation| inner.running.get(&operation.number))
            .flatten()
            .cloned()
            .collect())
    }

    fn enter(&self, events: Vec<Event>) -> OperationId {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        inner.running.insert(number, events);
        OperationId { coordinator: self.number, number }
    }

    fn check(&self, operation: OperationId) -> Result<(), GpuError> {
        if operation.coordinator == self.number {
            return Ok(());
        }
        Err(GpuError::misuse("an operation of another coordinator"))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all_done(events: &[Event]) -> Result<bool, GpuError> {
    for event in events {
        if !event.is_done()? {
            return Ok(false);
        }
    }
    Ok(true)
}
