//! Waiting between the batches of a device: for a moment without sleeping.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, TryRecvError};

/// How long to ask without sleeping: to be woken takes up to a tenth of this, on virtual machines longer, and most waits between the
/// batches of a device are shorter.
const EAGER: Duration = Duration::from_micros(500);

/// From then on it is asked again after this part of the time waited so far, so that a wait is never prolonged by more.
const SHARE: u32 = 64;
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

/// With fewer processors somebody else needs the time more.
const MIN_PROCESSORS: usize = 8;

/// Waits for a message.
pub fn receive<T>(messages: &Receiver<T>) -> Result<T, RecvError> {
    eagerly(Instant::now(), || messages.try_recv().ok()).map_or_else(|| messages.recv(), Ok)
}

/// Asks for something again and again in the first moment of a wait; what comes later is to be waited for asleep.
fn eagerly<T>(began: Instant, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    static IS_EAGER: OnceLock<bool> = OnceLock::new();
    let n_processors = || thread::available_parallelism().map_or(1, |n| n.get());
    let is_eager = *IS_EAGER.get_or_init(|| n_processors() >= MIN_PROCESSORS);
    loop {
        let answer = ask();
        if answer.is_some() || !is_eager || began.elapsed() >= EAGER {
            return answer;
        }
        thread::yield_now();
    }
}

/// A wait for messages, or for something that becomes ready without one.
#[derive(Debug, Default)]
pub struct MessageWait {
    /// Since when nothing has come.
    began: Option<Instant>,
}

impl MessageWait {
    /// The next message; `Empty` as soon as something else is ready, or after a while.
    pub fn next<T, E>(
        &mut self,
        messages: &Receiver<T>,
        mut is_ready: impl FnMut() -> Result<bool, E>,
    ) -> Result<Result<T, TryRecvError>, E> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let soon = eagerly(began, || match messages.try_recv() {
            Err(TryRecvError::Empty) => {
                is_ready().map(|is_ready| is_ready.then_some(Err(TryRecvError::Empty))).transpose()
            }
            message => Some(Ok(message)),
        });
        if let Some(message) = soon {
            self.began = None;
            return message;
        }
        let pause = (began.elapsed() / SHARE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let message = messages.recv_timeout(pause);
        if message.is_ok() {
            self.began = None;
        }
        Ok(message.map_err(|error| match error {
            RecvTimeoutError::Timeout => TryRecvError::Empty,
            RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
        }))
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;

    #[test]
    fn messages_come_first_and_what_is_ready_ends_the_wait() {
        let (sender, messages) = unbounded();
        sender.send(1).unwrap();
        let ready = || Ok::<_, ()>(true);
        let mut wait = MessageWait::default();
        assert_eq!(wait.next(&messages, ready), Ok(Ok(1)));
        assert_eq!(wait.next(&messages, ready), Ok(Err(TryRecvError::Empty)));
        assert!(wait.began.is_none());
        for _ in 0..2 {
            assert_eq!(wait.next(&messages, || Ok::<_, ()>(false)), Ok(Err(TryRecvError::Empty)));
            assert!(wait.began.is_some(), "it goes on");
        }
        assert_eq!(wait.next(&messages, || Err("lost")), Err("lost"));
        drop(sender);
        assert_eq!(wait.next(&messages, ready), Ok(Err(TryRecvError::Disconnected)));
    }

    #[test]
    fn what_is_there_is_had_at_once_and_what_never_comes_is_given_up() {
        let (sender, messages) = unbounded();
        sender.send(7).unwrap();
        assert_eq!(receive(&messages), Ok(7));
        let mut n_asked = 0;
        let never: Option<()> = eagerly(Instant::now(), || {
            n_asked += 1;
            None
        });
        assert!(never.is_none() && n_asked >= 1);
        drop(sender);
        assert_eq!(receive(&messages), Err(RecvError));
    }
}
