//! Operations with dependencies, by number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::GpuError;
use crate::event::Event;
use crate::pool::{Purpose, StreamPool};
use crate::stream::Stream;
use crate::timeline::{Span, Timeline};

/// An operation of a [`Coordinator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    coordinator: u64,
    number: u64,
}

/// Submits operations to the streams of a pool, each after the operations it depends on, and knows which are done and when they ran.
///
/// It remembers an operation until it is [finished](Coordinator::finish).
pub struct Coordinator {
    number: u64,
    pool: StreamPool,
    timeline: Timeline,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    running: BTreeMap<u64, Operation>,
}

#[derive(Clone)]
struct Operation {
    name: String,
    stream: u64,
    start: Event,
    end: Event,
    fill: f64,
}

impl Coordinator {
    pub(crate) fn new(pool: StreamPool, timeline: Timeline) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, pool, timeline, inner: Mutex::default() }
    }

    pub(crate) fn pool(&self) -> &StreamPool {
        &self.pool
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Submits work to a stream for its purpose, after other operations. Returns at once; if the work cannot be submitted, what was
    /// submitted of it is waited for.
    pub fn submit<R>(
        &self,
        purpose: Purpose,
        name: &str,
        after: &[OperationId],
        work: impl FnOnce(&Stream) -> Result<R, GpuError>,
    ) -> Result<(R, OperationId), GpuError> {
        after.iter().try_for_each(|&operation| self.check(operation))?;
        let stream = self.pool.of(purpose)?;
        {
            let inner = self.inner();
            let before = after.iter().filter_map(|operation| inner.running.get(&operation.number));
            // Work of one stream is in order as it is.
            let elsewhere = before.filter(|operation| operation.stream != stream.number());
            elsewhere.map(|operation| &operation.end).try_for_each(|end| stream.wait(end))?;
        }
        let start = stream.record()?;
        stream.take_load();
        let worked = work(&stream);
        let end = stream.record()?;
        let result = match worked {
            Ok(result) => result,
            Err(error) => {
                // The error of the work is the one to tell.
                let _ = end.wait();
                return Err(error);
            }
        };
        let fill = stream.take_load().share();
        let operation = Operation { name: name.into(), stream: stream.number(), start, end, fill };
        Ok((result, self.enter(operation)))
    }

    /// Whether an operation is done. Never waits.
    pub fn is_done(&self, operation: OperationId) -> Result<bool, GpuError> {
        self.check(operation)?;
        let found = self.inner().running.get(&operation.number).map(|operation| operation.end.clone());
        found.map_or(Ok(true), |end| end.is_done())
    }

    /// Waits for one operation and for no other, and notes in the timeline when it ran. Later operations may still name it, but it can be
    /// finished once only.
    pub fn finish(&self, operation: OperationId) -> Result<Span, GpuError> {
        self.check(operation)?;
        let Some(found) = self.inner().running.remove(&operation.number) else {
            return Err(GpuError::misuse("an operation that was finished before"));
        };
        let Operation { name, stream, start, end, fill } = found;
        let start_ms = self.timeline.at(&start)?;
        let end_ms = self.timeline.at(&end)?.max(start_ms);
        let span = Span { name, stream, start_ms, end_ms, fill };
        self.timeline.add(span.clone());
        Ok(span)
    }

    /// Waits for an operation that led to nothing, so that it is noted nowhere.
    pub(crate) fn abandon(&self, operation: OperationId) {
        let found = self.inner().running.remove(&operation.number);
        // Who abandons it has an error to tell already.
        let _ = found.map(|operation| operation.end.wait());
    }

    fn enter(&self, operation: Operation) -> OperationId {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        inner.running.insert(number, operation);
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
