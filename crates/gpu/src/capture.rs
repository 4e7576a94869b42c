//! Records operations instead of running them: what a [`Graph`](crate::Graph) is made of.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::buffer::Memory;
use crate::driver::{GraphAction, GraphStep};
use crate::fill::Load;
use crate::stream::StreamInner;

/// The notes of one capture. Streams that wait for an event of the capture join it.
#[derive(Default)]
pub(crate) struct Capture {
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    steps: Vec<GraphStep>,
    lanes: Vec<Weak<StreamInner>>,
    n_events: usize,
    kept: Vec<Arc<Memory>>,
    kernels: Vec<Arc<str>>,
    load: Load,
    closed: bool,
}

/// What a finished capture holds.
pub(crate) struct Captured {
    pub steps: Vec<GraphStep>,
    pub kept: Vec<Arc<Memory>>,
    pub kernels: Vec<Arc<str>>,
    pub load: Load,
}

impl Capture {
    /// Gives the stream a lane of its own.
    pub fn join(&self, stream: &Arc<StreamInner>) {
        let mut notes = self.notes();
        if !notes.lanes.iter().any(|lane| std::ptr::eq(lane.as_ptr(), Arc::as_ptr(stream))) {
            notes.lanes.push(Arc::downgrade(stream));
        }
    }

    /// Notes an action of a stream that has joined.
    pub fn push(&self, stream: &Arc<StreamInner>, action: GraphAction) {
        let mut notes = self.notes();
        let lane = notes.lanes.iter().position(|lane| std::ptr::eq(lane.as_ptr(), Arc::as_ptr(stream)));
        let lane = lane.expect("a stream captures only after it has joined");
        notes.steps.push(GraphStep { lane, action });
    }

    /// Notes a record and returns the number of its event.
    pub fn record(&self, stream: &Arc<StreamInner>) -> usize {
        let number = {
            let mut notes = self.notes();
            notes.n_events += 1;
            notes.n_events - 1
        };
        self.push(stream, GraphAction::Record(number));
        number
    }

    /// Keeps memory alive as long as the graph.
    pub fn keep(&self, memory: &Arc<Memory>) {
        self.notes().kept.push(memory.clone());
    }

    /// Notes the name of a launched kernel.
    pub fn name(&self, kernel: &Arc<str>) {
        let mut notes = self.notes();
        if !notes.kernels.contains(kernel) {
            notes.kernels.push(kernel.clone());
        }
    }

    /// Notes how much of the device a launch fills.
    pub fn add_load(&self, load: Load) {
        self.notes().load += load;
    }

    /// Whether the capture has ended.
    pub fn is_closed(&self) -> bool {
        self.notes().closed
    }

    /// Ends the capture: all its streams work again.
    pub fn close(&self) -> Captured {
        let notes = {
            let mut notes = self.notes();
            notes.closed = true;
            let lanes = std::mem::take(&mut notes.lanes);
            let steps = std::mem::take(&mut notes.steps);
            let kept = std::mem::take(&mut notes.kept);
            let (kernels, load) = (std::mem::take(&mut notes.kernels), std::mem::take(&mut notes.load));
            (lanes, Captured { steps, kept, kernels, load })
        };
        for lane in notes.0.iter().filter_map(Weak::upgrade) {
            lane.leave_capture();
        }
        notes.1
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
