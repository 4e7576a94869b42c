//! Waiting between the batches of a device: for a moment without sleeping.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};

/// How long to ask without sleeping: to be woken takes up to a tenth of this, on virtual machines longer, and most waits between the
/// batches of a device are shorter.
const EAGER: Duration = Duration::from_micros(500);

/// How long to sleep for a message before it is asked again whether something else is ready.
const POLL_EVERY: Duration = Duration::from_micros(20);

/// With fewer processors somebody else needs the time more.
const MIN_PROCESSORS: usize = 8;

/// Asks for something again and again, for a moment; what comes later is to be waited for asleep.
pub fn eagerly<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    static IS_EAGER: OnceLock<bool> = OnceLock::new();
    let n_processors = || thread::available_parallelism().map_or(1, |n| n.get());
    let is_eager = *IS_EAGER.get_or_init(|| n_processors() >= MIN_PROCESSORS);
    let began = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || !is_eager || began.elapsed() >= EAGER {
            return answer;
        }
        thread::yield_now();
    }
}

/// The next message; `Empty` as soon as something else is ready that comes without a message, or after a while.
pub fn next_message<T, E>(
    messages: &Receiver<T>,
    mut is_ready: impl FnMut() -> Result<bool, E>,
) -> Result<Result<T, TryRecvError>, E> {
    let soon = eagerly(|| match messages.try_recv() {
        Err(TryRecvError::Empty) => {
            is_ready().map(|is_ready| is_ready.then_some(Err(TryRecvError::Empty))).transpose()
        }
        message => Some(Ok(message)),
    });
    soon.unwrap_or_else(|| {
        Ok(messages.recv_timeout(POLL_EVERY).map_err(|error| match error {
            RecvTimeoutError::Timeout => TryRecvError::Empty,
            RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
        }))
    })
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
        assert_eq!(next_message(&messages, ready), Ok(Ok(1)));
        assert_eq!(next_message(&messages, ready), Ok(Err(TryRecvError::Empty)));
        assert_eq!(next_message(&messages, || Ok::<_, ()>(false)), Ok(Err(TryRecvError::Empty)));
        assert_eq!(next_message(&messages, || Err("lost")), Err("lost"));
        drop(sender);
        assert_eq!(next_message(&messages, ready), Ok(Err(TryRecvError::Disconnected)));
    }

    #[test]
    fn what_is_there_is_had_at_once_and_what_never_comes_is_given_up() {
        assert_eq!(eagerly(|| Some(7)), Some(7));
        let mut n_asked = 0;
        let never: Option<()> = eagerly(|| {
            n_asked += 1;
            None
        });
        assert!(never.is_none() && n_asked >= 1);
    }
}
