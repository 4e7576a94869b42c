//! A sequence of operations, prepared once and launched as one.

use std::sync::Arc;

use crate::buffer::Memory;
use crate::capture::Captured;
use crate::device::Device;
use crate::driver::{GraphId, Op};
use crate::error::GpuError;
use crate::fill::Load;
use crate::stream::Stream;

/// Launches, copies inside the device and fills, prepared as one unit. Worth it where many short launches follow each other.
///
/// Transfers to and from the host stay outside: they hold host memory while they run, and that is checked per transfer.
pub struct Graph {
    device: Device,
    id: GraphId,
    n_steps: usize,
    kernels: Vec<Arc<str>>,
    load: Load,
    kept: Vec<Arc<Memory>>,
}

impl Graph {
    /// Writes down what `work` does on `stream`, without running it.
    ///
    /// Other streams join by waiting for an event recorded inside, and all that joined are joined again at the end of the graph.
    /// Buffers that are copied or filled live as long as the graph; for pointers in kernel arguments the caller sees to that.
    pub fn capture(
        stream: &Stream,
        work: impl FnOnce(&Stream) -> Result<(), GpuError>,
    ) -> Result<Self, GpuError> {
        /// Ends the capture also when `work` panics.
        struct Close(Arc<crate::capture::Capture>);
        impl Drop for Close {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        let capture = Close(stream.begin_capture()?);
        work(stream)?;
        let Captured { steps, kept, kernels, load } = capture.0.close();
        let n_steps = steps.len();
        let device = stream.device().clone();
        let id = device.call(None, |driver| driver.graph(steps))?;
        Ok(Self { device, id, n_steps, kernels, load, kept })
    }

    /// Runs all of it on a stream.
    pub fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.device().same_as(&self.device)?;
        stream.refuse_capture("another graph")?;
        self.kernels.iter().for_each(|kernel| stream.note_launch(kernel));
        stream.add_load(self.load);
        stream.submit(Op::Graph(self.id))
    }

    /// Number of operations, records and waits included.
    pub fn len(&self) -> usize {
        self.n_steps
    }

    /// Whether nothing was captured.
    pub fn is_empty(&self) -> bool {
        self.n_steps == 0
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.device.drop_graph(self.id);
        self.kept.clear();
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("steps", &self.n_steps).field("kernels", &self.kernels).finish()
    }
}
