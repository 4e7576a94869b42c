//! How far the streams of a CUDA device are: marks in their queues, and waits that have a limit.

use std::collections::HashMap;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult, CUstream};

use super::CudaDriver;
use super::error::check;
use crate::error::GpuError;
use crate::wait::{RealPace, poll};

/// The streams of a device and the events that tell how far they are. Handles are numbers here.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) queues: HashMap<u64, Queue>,
    /// Events without times that mark nothing at the moment.
    pub(super) idle_marks: Vec<u64>,
}

/// What is known of one stream.
#[derive(Default)]
pub(super) struct Queue {
    /// Operations since the last mark.
    n_unmarked: u32,
    /// An earlier point of the work.
    pub(super) mark: Option<u64>,
    /// Its owner has gone; it is destroyed when its work is done.
    pub(super) is_dropped: bool,
}

/// After so many operations of a stream the point where it stood that many before is waited for. So the driver's queue, which takes
/// about a thousand, is never full, and hundreds are always left for the device to do.
const MARK_EVERY: u32 = 256;

impl CudaDriver {
    /// Waits until all of these events have happened, and takes them back.
    pub(super) fn wait_for(&self, marks: Vec<u64>) -> Result<(), GpuError> {
        let mut left = marks.clone();
        let is_done = poll(self.wait_limit.get(), &mut RealPace::new(), || {
            while let Some(mark) = left.last() {
                if !event_done(*mark)? {
                    return Ok(false);
                }
                left.pop();
            }
            Ok(true)
        });
        if !is_done? {
            return Err(self.wait_limit.exceeded());
        }
        self.streams().idle_marks.extend(marks);
        Ok(())
    }

    /// Before an operation is submitted: waits while there are too many in front of it.
    pub(super) fn make_room(&self, stream: u64) -> Result<(), GpuError> {
        let mut streams = self.streams();
        let queue = streams.queues.entry(stream).or_default();
        queue.n_unmarked += 1;
        if queue.n_unmarked < MARK_EVERY {
            return Ok(());
        }
        queue.n_unmarked = 0;
        let earlier = queue.mark.take();
        let mark = streams.mark(stream)?;
        streams.queues.entry(stream).or_default().mark = Some(mark);
        drop(streams);
        earlier.map_or(Ok(()), |mark| self.wait_for(vec![mark]))
    }
}

impl Streams {
    /// Marks the end of what a stream has now.
    pub(super) fn mark(&mut self, stream: u64) -> Result<u64, GpuError> {
        let mark = match self.idle_marks.pop() {
            Some(mark) => mark,
            None => {
                let event = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING);
                check("cuEventCreate", event)? as u64
            }
        };
        // SAFETY: the event was made above or before; streams in the table are alive.
        check("cuEventRecord", unsafe { result::event::record(mark as CUevent, stream as CUstream) })?;
        Ok(mark)
    }

    /// Destroys streams whose owners have gone and whose work is done.
    pub(super) fn sweep(&mut self) {
        let is_over = |stream: u64| !matches!(stream_done(stream), Ok(false));
        let over: Vec<u64> = self
            .queues
            .iter()
            .filter(|(stream, queue)| queue.is_dropped && is_over(**stream))
            .map(|(stream, _)| *stream)
            .collect();
        for stream in over {
            let mark = self.queues.remove(&stream).and_then(|queue| queue.mark);
            self.idle_marks.extend(mark);
            // SAFETY: made by `stream`, destroyed once. An error here cannot be returned.
            let _ = unsafe { result::stream::destroy(stream as CUstream) };
        }
    }
}

/// Whether a stream has nothing to do.
pub(super) fn stream_done(stream: u64) -> Result<bool, GpuError> {
    // SAFETY: the caller knows that the stream is alive.
    match unsafe { sys::cuStreamQuery(stream as CUstream) } {
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        other => check("cuStreamQuery", other.result()).map(|()| true),
    }
}

/// Whether the last record of an event has happened.
pub(super) fn event_done(event: u64) -> Result<bool, GpuError> {
    // SAFETY: the caller knows that the event is alive.
    match unsafe { result::event::query(event as CUevent) } {
        Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        other => check("cuEventQuery", other).map(|()| true),
    }
}
