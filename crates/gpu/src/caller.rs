//! A thread for calls that may wait inside the driver.
//!
//! Freeing memory and loading a module wait for all that runs on the device, and no option of the driver limits that. Made by another
//! thread, such a call can be left alone when it takes too long. The thread then stays inside it; ending the process ends both.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

type Call = Box<dyn FnOnce() + Send>;

/// Makes calls one after the other in a thread of its own.
#[derive(Default)]
pub(crate) struct Caller {
    thread: Mutex<Option<Sender<Call>>>,
}

impl Caller {
    /// What the call returns; `None` if it has not returned within the limit.
    pub fn call<R: Send + 'static>(
        &self,
        limit: Duration,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = channel();
        let made: Call = Box::new(move || {
            // A caller that has gone does not want it.
            let _ = answer.send(call());
        });
        match self.send(made) {
            Ok(()) => answered.recv_timeout(limit).ok(),
            // No thread could be started: call without a limit, then.
            Err(made) => {
                made();
                answered.recv().ok()
            }
        }
    }

    fn send(&self, call: Call) -> Result<(), Call> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (sender, calls) = channel::<Call>();
            let run = move || calls.into_iter().for_each(|call| call());
            *thread = std::thread::Builder::new().name("gpu-calls".into()).spawn(run).ok().map(|_| sender);
        }
        match thread.as_ref() {
            Some(sender) => sender.send(call).map_err(|refused| refused.0),
            None => Err(call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn calls_are_made_in_order_and_answered() {
        let caller = Caller::default();
        let made = std::sync::Arc::new(Mutex::new(Vec::new()));
        for i in 0..10 {
            let made = made.clone();
            let answer = caller.call(LONG, move || {
                made.lock().unwrap().push(i);
                i * 2
            });
            assert_eq!(answer, Some(i * 2));
        }
        assert_eq!(*made.lock().unwrap(), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_call_that_does_not_return_is_left_alone() {
        let caller = Caller::default();
        let (open, gate) = channel::<()>();
        assert_eq!(caller.call(Duration::from_millis(20), move || gate.recv().is_ok()), None);
        // Later calls wait too, and the thread takes them when this one returns.
        assert_eq!(caller.call(Duration::from_millis(20), || 1), None);
        open.send(()).unwrap();
        assert_eq!(caller.call(LONG, || 2), Some(2));
    }
}
