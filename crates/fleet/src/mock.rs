//! A transport that loses, delays, repeats and reorders, for tests: what happens follows from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use tidemill_search::EvaluateError;
use tidemill_search::rng::Stream;

use crate::transport::{Transport, TransportEvent, WorkerId};
use crate::worker::Worker;

/// How badly a [`MockTransport`] behaves: chances between 0 and 1.
#[derive(Clone, Copy, Debug)]
pub struct MockOptions {
    /// The same seed gives the same faults, as long as the same frames are sent.
    pub seed: u64,
    /// Workers at a time.
    pub n_workers: usize,
    /// That a worker is lost when its answer is due, and another one joins later.
    pub loss: f64,
    /// That an answer comes twice.
    pub repeat: f64,
    /// That an answer is held back for another while.
    pub delay: f64,
    /// Workers that join in all; after them nobody comes.
    pub most_workers: u64,
}

/// Makes the worker of a number.
pub type MakeWorker = Box<dyn FnMut(WorkerId) -> Worker + Send>;

/// Workers behind a bad line.
pub struct MockTransport {
    options: MockOptions,
    make: MakeWorker,
    workers: BTreeMap<WorkerId, Worker>,
    n_joined: u64,
    /// Frames that were sent and not answered.
    waiting: Vec<(WorkerId, Vec<u8>)>,
    n_drawn: u64,
    is_closed: bool,
}

impl MockTransport {
    /// Workers from this function.
    pub fn new(options: MockOptions, make: MakeWorker) -> Self {
        let (workers, waiting) = (BTreeMap::new(), Vec::new());
        Self { options, make, workers, n_joined: 0, waiting, n_drawn: 0, is_closed: false }
    }

    fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    fn unit(&mut self) -> f64 {
        self.n_drawn += 1;
        Stream::new(self.options.seed, 0).unit(self.n_drawn)
    }
}

impl Transport for MockTransport {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        if self.workers.contains_key(&worker) {
            self.waiting.push((worker, frame));
        }
    }

    fn poll(&mut self, _timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        let mut events = Vec::new();
        if self.workers.len() < self.options.n_workers && (self.workers.is_empty() || self.chance(0.5)) {
            if self.n_joined < self.options.most_workers {
                let worker = self.n_joined;
                self.n_joined += 1;
                self.workers.insert(worker, (self.make)(worker));
                events.push(TransportEvent::Joined { worker, label: format!("mock {worker}") });
            } else if self.workers.is_empty() && !std::mem::replace(&mut self.is_closed, true) {
                events.push(TransportEvent::Closed { reason: "the mock has no more workers".into() });
            }
        }
        if self.waiting.is_empty() || self.chance(self.options.delay) {
            return Ok(events);
        }
        let at = (self.unit() * self.waiting.len() as f64) as usize;
        let (worker, frame) = self.waiting.swap_remove(at.min(self.waiting.len() - 1));
        if self.chance(self.options.loss) {
            self.workers.remove(&worker);
            self.waiting.retain(|(holder, _)| *holder != worker);
            events.push(TransportEvent::Lost { worker, reason: "the mock lost it".into() });
            return Ok(events);
        }
        if let Some(frame) = self.workers.get(&worker).and_then(|worker| worker.handle(&frame)) {
            let n_times = 1 + usize::from(self.chance(self.options.repeat));
            events.extend((0..n_times).map(|_| TransportEvent::Answered { worker, frame: frame.clone() }));
        }
        Ok(events)
    }

    fn dismiss(&mut self, worker: WorkerId, _may_return: bool) {
        self.workers.remove(&worker);
        self.waiting.retain(|(holder, _)| *holder != worker);
    }
}
