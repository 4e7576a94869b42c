//! Waits for a device with a time limit.
//!
//! A kernel that never ends cannot be told from one that takes long. So there is a limit, far beyond what any healthy wait takes;
//! a device that is waited for longer is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::GpuError;

/// The limit of a GPU unless another is set. The longest kernels, tabu searches on graphs of millions of edges, take seconds on a large
/// card; a small one with a hundredth of its speed still stays below.
pub(crate) const DEFAULT_LIMIT: Duration = Duration::from_secs(600);

/// How long a device may be waited for; can be changed while others wait.
pub(crate) struct WaitLimit {
    ms: AtomicU64,
}

impl WaitLimit {
    pub fn new(limit: Duration) -> Self {
        let out = Self { ms: AtomicU64::new(0) };
        out.set(limit);
        out
    }

    pub fn set(&self, limit: Duration) {
        self.ms.store(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn get(&self) -> Duration {
        match self.ms.load(Ordering::Relaxed) {
            u64::MAX => Duration::MAX,
            ms => Duration::from_millis(ms),
        }
    }

    /// When a wait that begins now has lasted too long; `None` is never.
    pub fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.get())
    }

    /// The error of a wait that has lasted too long.
    pub(crate) fn exceeded(&self) -> GpuError {
        GpuError::Hung { kernels: Vec::new(), limit: self.get() }
    }
}

/// The time of a wait, and sleeping in it. Tests have a time of their own.
pub(crate) trait Pace {
    /// Since the wait began.
    fn elapsed(&self) -> Duration;
    fn sleep(&mut self, time: Duration);
}

/// The time of the machine.
pub(crate) struct RealPace {
    began: Instant,
}

impl RealPace {
    pub fn new() -> Self {
        Self { began: Instant::now() }
    }
}

impl Pace for RealPace {
    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Asked without a pause for this long: most waits are short, and a sleep would make them longer.
const EAGER: Duration = Duration::from_micros(100);
/// From then on pauses are this part of the time waited so far, so that a wait is never prolonged by more.
const SHARE: u32 = 64;
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

/// Asks until it is done; false if the limit has passed before.
///
/// Time is taken before the question is asked, so that a process that was stopped meanwhile finds what was done, not that it is late.
pub(crate) fn poll(
    limit: Duration,
    pace: &mut impl Pace,
    mut is_done: impl FnMut() -> Result<bool, GpuError>,
) -> Result<bool, GpuError> {
    loop {
        let elapsed = pace.elapsed();
        if is_done()? {
            return Ok(true);
        }
        if elapsed >= limit {
            return Ok(false);
        }
        if elapsed < EAGER {
            std::hint::spin_loop();
        } else {
            pace.sleep((elapsed / SHARE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE).min(limit - elapsed));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Time that passes by sleeping, and by a microsecond with every look at it.
    #[derive(Default)]
    struct FakePace {
        now: Rc<Cell<Duration>>,
        sleeps: Vec<Duration>,
    }

    impl Pace for FakePace {
        fn elapsed(&self) -> Duration {
            self.now.set(self.now.get() + Duration::from_micros(1));
            self.now.get()
        }

        fn sleep(&mut self, time: Duration) {
            self.now.set(self.now.get() + time);
            self.sleeps.push(time);
        }
    }

    /// Waits for something that is done at a time.
    fn wait(done_at: Duration, limit: Duration) -> (bool, FakePace, u64) {
        let (mut pace, mut n_asked) = (FakePace::default(), 0);
        let now = pace.now.clone();
        let is_done = poll(limit, &mut pace, || {
            n_asked += 1;
            Ok(now.get() >= done_at)
        });
        (is_done.unwrap(), pace, n_asked)
    }

    #[test]
    fn a_short_wait_never_sleeps() {
        let (is_done, pace, _) = wait(Duration::from_micros(90), DEFAULT_LIMIT);
        assert!(is_done && pace.sleeps.is_empty(), "{:?}", pace.sleeps);
    }

    #[test]
    fn a_wait_is_prolonged_by_little_and_asks_seldom() {
        for done_at_ms in [1, 10, 100, 10_000] {
            let done_at = Duration::from_millis(done_at_ms);
            let (is_done, pace, n_asked) = wait(done_at, DEFAULT_LIMIT);
            let late = pace.now.get() - done_at;
            assert!(
                is_done && late <= (done_at / 60).clamp(SHORTEST_PAUSE * 2, LONGEST_PAUSE * 2),
                "{late:?}"
            );
            assert!(pace.sleeps.iter().all(|sleep| *sleep <= LONGEST_PAUSE));
            assert!(n_asked < 700 + 3 * done_at_ms, "{n_asked} questions in {done_at_ms} ms");
        }
    }

    #[test]
    fn the_limit_ends_a_wait_and_not_before() {
        let limit = Duration::from_millis(250);
        let (is_done, pace, _) = wait(Duration::MAX, limit);
        assert!(!is_done && pace.now.get() >= limit && pace.now.get() < limit + Duration::from_millis(1));
    }

    #[test]
    fn what_was_done_while_the_process_stood_still_is_done() {
        struct Late;
        impl Pace for Late {
            fn elapsed(&self) -> Duration {
                Duration::from_secs(3600)
            }
            fn sleep(&mut self, _: Duration) {
                panic!("there is nothing to wait for");
            }
        }
        assert!(poll(Duration::from_secs(1), &mut Late, || Ok(true)).unwrap());
        assert!(!poll(Duration::from_secs(1), &mut Late, || Ok(false)).unwrap());
    }

    #[test]
    fn a_limit_without_end_has_no_deadline() {
        let limit = WaitLimit::new(Duration::MAX);
        assert_eq!((limit.get(), limit.deadline()), (Duration::MAX, None));
        limit.set(Duration::from_secs(3));
        assert_eq!(limit.get(), Duration::from_secs(3));
        assert!(limit.exceeded().to_string().contains("3 s"), "{}", limit.exceeded());
    }
}
