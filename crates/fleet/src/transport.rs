//! The [`Transport`]: how frames get from the coordinator to workers and back.

use std::time::Duration;

use tidemill_search::EvaluateError;

/// A worker as a transport knows it. A number is never used again: a worker that is started anew, or connects again, is another one.
pub type WorkerId = u64;

/// Something that happened to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportEvent {
    /// A worker can be sent frames.
    Joined {
        /// Which one.
        worker: WorkerId,
        /// What people call it until it has told its name: an address, the number of a process.
        label: String,
    },
    /// A worker answered one of the frames that it was sent.
    Answered {
        /// Which one.
        worker: WorkerId,
        /// The answer.
        frame: Vec<u8>,
    },
    /// A worker is gone, with everything that it was sent and has not answered.
    Lost {
        /// Which one.
        worker: WorkerId,
        /// Why, for people.
        reason: String,
    },
    /// A worker that was expected cannot be reached; it may join later.
    Unreached {
        /// What people call it.
        label: String,
        /// Why, for people.
        reason: String,
    },
    /// No worker will join any more; those that are there stay.
    Closed {
        /// Why, for people.
        reason: String,
    },
}

/// Carries frames to workers. Obligations:
///
/// - Workers may join, answer and be lost in any order and at any time; nothing else is reported of a worker before it joins or after it is
///   lost.
/// - A worker may be sent several frames before it answers the first, and may answer them in any order; a frame has one answer.
/// - `submit` does not wait for the answer, and cannot fail: a frame that cannot be delivered means that the worker is lost, which `poll`
///   reports.
/// - Frames arrive whole. That they arrive undamaged is checked by whoever reads them.
pub trait Transport: Send {
    /// Sends a frame to a worker. One for a worker that is gone is dropped.
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>);

    /// What has happened since the last call. Waits until something has, at most for this long; with zero it does not wait.
    ///
    /// An error means that the transport as a whole is gone, and ends the study.
    fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError>;

    /// Lets go of a worker that gave wrong answers, none for too long, or cannot serve the study. `may_return` says whether another one may
    /// take its place, under another number. The worker need not be reported as lost.
    fn dismiss(&mut self, worker: WorkerId, may_return: bool);
}
