//! The [`WorkerPool`]: a transport with the workers that are there, which serves one study after another.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tidemill_search::EvaluateError;

use crate::message::Message;
use crate::transport::{Transport, TransportEvent, WorkerId};

/// The workers that are there. A walk-forward keeps them from one window to the next, and with them the data that they have loaded.
pub struct WorkerPool {
    transport: Box<dyn Transport>,
    present: BTreeMap<WorkerId, String>,
    closed: Option<String>,
    /// The last session. It begins anywhere, so that a worker that knew another coordinator takes none of its shards for one of ours.
    session: u64,
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("present", &self.present).finish_non_exhaustive()
    }
}

impl WorkerPool {
    /// The workers that this transport reaches.
    pub fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport,
            present: BTreeMap::new(),
            closed: None,
            session: RandomState::new().hash_one(0) >> 1,
        }
    }

    /// Those that are there, with what they are called.
    pub fn present(&self) -> impl Iterator<Item = (WorkerId, &str)> {
        self.present.iter().map(|(worker, label)| (*worker, label.as_str()))
    }

    /// Why no worker will join any more, if that is so.
    pub(crate) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    pub(crate) fn begin_session(&mut self) -> u64 {
        self.session += 1;
        self.session
    }

    pub(crate) fn submit(&mut self, worker: WorkerId, message: &Message) {
        self.transport.submit(worker, message.encode());
    }

    pub(crate) fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        let events = self.transport.poll(timeout)?;
        for event in &events {
            match event {
                TransportEvent::Joined { worker, label } => {
                    self.present.insert(*worker, label.clone());
                }
                TransportEvent::Lost { worker, .. } => drop(self.present.remove(worker)),
                TransportEvent::Closed { reason } => self.closed = Some(reason.clone()),
                TransportEvent::Answered { .. } | TransportEvent::Unreached { .. } => {}
            }
        }
        Ok(events)
    }

    pub(crate) fn dismiss(&mut self, worker: WorkerId, may_return: bool) {
        self.present.remove(&worker);
        self.transport.dismiss(worker, may_return);
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        for worker in self.present.keys() {
            self.transport.submit(*worker, Message::Bye.encode());
        }
    }
}
