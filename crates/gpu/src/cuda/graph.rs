//! Builds a CUDA graph: replays recorded steps into a capture on streams of their own.

use cudarc::driver::result;
use cudarc::driver::sys::{
    CUevent, CUevent_wait_flags, CUgraphInstantiate_flags, CUstream, CUstreamCaptureMode,
};

use super::CudaDriver;
use super::error::check;
use crate::driver::{GraphAction, GraphId, GraphStep};
use crate::error::GpuError;

/// Streams and events that exist only while a graph is built.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) lanes: Vec<CUstream>,
    pub(super) events: Vec<CUevent>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for &event in &self.events {
            // SAFETY: made for this scratch, destroyed once. A failure leaves nothing to do.
            let _ = unsafe { result::event::destroy(event) };
        }
        for &lane in &self.lanes {
            // SAFETY: as above.
            let _ = unsafe { result::stream::destroy(lane) };
        }
    }
}

impl CudaDriver {
    /// Writes the steps into a capture that has begun on lane 0, and joins all lanes there.
    fn capture(&self, steps: &[GraphStep], lanes: &[CUstream], events: &[CUevent]) -> Result<(), GpuError> {
        let (records, joins) = events.split_at(events.len() - (lanes.len() - 1));
        let no_flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        for step in steps {
            let stream = lanes[step.lane];
            match &step.action {
                GraphAction::Copy { from, to, bytes } => self.copy_inside(stream, *from, *to, *bytes)?,
                GraphAction::Fill { at, bytes, byte } => self.fill(stream, *at, *bytes, *byte)?,
                GraphAction::Launch { kernel, name, launch, args } => {
                    self.launch(stream, *kernel, name, *launch, args)?;
                }
                GraphAction::Record(number) => {
                    // SAFETY: event and stream live until the graph is built.
                    check("cuEventRecord", unsafe { result::event::record(records[*number], stream) })?;
                }
                GraphAction::Wait(number) => {
                    // SAFETY: as above.
                    let waits = unsafe { result::stream::wait_event(stream, records[*number], no_flags) };
                    check("cuStreamWaitEvent", waits)?;
                }
            }
        }
        for (&lane, &event) in lanes[1..].iter().zip(joins) {
            // SAFETY: as above.
            check("cuEventRecord", unsafe { result::event::record(event, lane) })?;
            // SAFETY: as above.
            check("cuStreamWaitEvent", unsafe { result::stream::wait_event(lanes[0], event, no_flags) })?;
        }
        Ok(())
    }

    pub(super) fn build_graph(&self, steps: &[GraphStep], scratch: &Scratch) -> Result<GraphId, GpuError> {
        let origin = scratch.lanes[0];
        // Relaxed: these streams are private, nobody else can disturb the capture.
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives until the graph is built.
        check("cuStreamBeginCapture", unsafe { result::stream::begin_capture(origin, mode) })?;
        let captured = self.capture(steps, &scratch.lanes, &scratch.events);
        // SAFETY: a capture that has begun is ended, also after a failure.
        let graph = check("cuStreamEndCapture", unsafe { result::stream::end_capture(origin) });
        captured?;
        let graph = graph?;
        // SAFETY: the graph is whole; it is no longer needed once it is instantiated.
        let ready = unsafe { result::graph::instantiate(graph, CUgraphInstantiate_flags(0)) };
        // SAFETY: as above.
        let destroyed = unsafe { result::graph::destroy(graph) };
        let ready = check("cuGraphInstantiate", ready)?;
        check("cuGraphDestroy", destroyed)?;
        Ok(GraphId(ready as u64))
    }
}
