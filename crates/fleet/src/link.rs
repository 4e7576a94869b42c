//! Frames over a pair of streams: pipes of a process, or a socket.
//!
//! The coordinator has two threads for each worker, one that writes and one that reads, so that neither side waits for the other while both
//! have much to say. A worker has as many threads as it may have shards; each reads a frame, answers it and reads the next.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, unbounded};

use crate::fleet::MOST_IN_FLIGHT;
use crate::frame;
use crate::transport::{TransportEvent, WorkerId};
use crate::worker::Worker;

/// The way to a worker; it closes when this is dropped.
pub(crate) struct FrameSender(Sender<Vec<u8>>);

impl FrameSender {
    /// Writes frames from a thread of its own. A stream that fails is found by whoever reads the answers.
    pub(crate) fn new(mut stream: impl Write + Send + 'static) -> io::Result<Self> {
        let (frames, received) = unbounded::<Vec<u8>>();
        std::thread::Builder::new().name("to-worker".into()).spawn(move || {
            for frame in received {
                if frame::write(&mut stream, &frame).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(frames))
    }

    pub(crate) fn send(&self, frame: Vec<u8>) {
        // The thread ends where the stream has failed.
        drop(self.0.send(frame));
    }
}

/// Reports all answers of a worker; returns why there are no more.
pub(crate) fn report_answers(
    worker: WorkerId,
    stream: &mut impl Read,
    report: &Sender<TransportEvent>,
) -> String {
    loop {
        match frame::read(stream) {
            Ok(Some(frame)) => {
                if report.send(TransportEvent::Answered { worker, frame }).is_err() {
                    return "the coordinator is gone".into();
                }
            }
            Ok(None) => return "it closed the connection".into(),
            Err(error) => return error.to_string(),
        }
    }
}

/// Answers the frames of a coordinator until it has gone or says farewell, and returns at once then: shards that are under way are of no use.
pub fn serve(
    worker: &Arc<Worker>,
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
) -> io::Result<()> {
    let (from, to) = (Arc::new(Mutex::new(from)), Arc::new(Mutex::new(to)));
    let (ended, end) = unbounded();
    for _ in 0..MOST_IN_FLIGHT {
        let (worker, from, to, ended) = (worker.clone(), from.clone(), to.clone(), ended.clone());
        std::thread::Builder::new().name("from-coordinator".into()).spawn(move || {
            let answer = || -> io::Result<bool> {
                let frame = frame::read(&mut *from.lock().unwrap_or_else(PoisonError::into_inner))?;
                let Some(answer) = frame.and_then(|frame| worker.handle(&frame)) else { return Ok(false) };
                frame::write(&mut *to.lock().unwrap_or_else(PoisonError::into_inner), &answer)?;
                Ok(true)
            };
            let result = loop {
                match answer() {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            // Nobody listens after the first has ended.
            drop(ended.send(result));
        })?;
    }
    end.recv().unwrap_or(Ok(()))
}
