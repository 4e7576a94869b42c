//! Workers that are threads of this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use tidemill_search::EvaluateError;

use crate::fleet::MOST_IN_FLIGHT;
use crate::transport::{Transport, TransportEvent, WorkerId};
use crate::worker::Worker;

/// Workers in threads of this process: for tests, and for hosts that run a coordinator and a worker in one process.
pub struct InProcess {
    frames: BTreeMap<WorkerId, Sender<Vec<u8>>>,
    reported: Receiver<TransportEvent>,
    report: Sender<TransportEvent>,
    n_joined: u64,
}

impl InProcess {
    /// These workers.
    pub fn new(workers: impl IntoIterator<Item = Worker>) -> std::io::Result<Self> {
        let (report, reported) = unbounded();
        let mut transport = Self { frames: BTreeMap::new(), reported, report, n_joined: 0 };
        for worker in workers {
            transport.join(worker)?;
        }
        Ok(transport)
    }

    /// Adds a worker.
    pub fn join(&mut self, worker: Worker) -> std::io::Result<WorkerId> {
        let id = self.n_joined;
        self.n_joined += 1;
        let (frames, received) = unbounded::<Vec<u8>>();
        let worker = Arc::new(worker);
        for _ in 0..MOST_IN_FLIGHT {
            let (worker, received, report) = (worker.clone(), received.clone(), self.report.clone());
            std::thread::Builder::new().name(format!("worker-{id}")).spawn(move || {
                for frame in received {
                    let Some(frame) = worker.handle(&frame) else { return };
                    if report.send(TransportEvent::Answered { worker: id, frame }).is_err() {
                        return;
                    }
                }
            })?;
        }
        self.frames.insert(id, frames);
        let label = format!("worker {id} of this process");
        // The other end is in `self`.
        drop(self.report.send(TransportEvent::Joined { worker: id, label }));
        Ok(id)
    }
}

impl Transport for InProcess {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        if let Some(frames) = self.frames.get(&worker) {
            // A worker's threads end after a farewell only.
            drop(frames.send(frame));
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        Ok(drain(&self.reported, timeout))
    }

    fn dismiss(&mut self, worker: WorkerId, _may_return: bool) {
        self.frames.remove(&worker);
    }
}

/// All events that are there; waits for the first, at most for so long.
pub(crate) fn drain(reported: &Receiver<TransportEvent>, timeout: Duration) -> Vec<TransportEvent> {
    let first = match timeout.is_zero() {
        true => reported.try_recv().map_err(|_| RecvTimeoutError::Timeout),
        false => reported.recv_deadline(Instant::now() + timeout),
    };
    first.into_iter().chain(reported.try_iter()).collect()
}
