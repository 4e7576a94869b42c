//! Ends the work when the caller stops the run or its time is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the caller's flag and the clock.
const EVERY: Duration = Duration::from_millis(10);

/// The flag that searches read.
pub(super) struct Halt {
    /// Set when work has to end.
    pub(super) flag: AtomicBool,
    is_late: AtomicBool,
    is_over: AtomicBool,
}

impl Halt {
    /// Works while a thread watches the clock and the caller's flag.
    pub(super) fn watch<T>(stop: &AtomicBool, deadline: Option<Instant>, work: impl FnOnce(&Halt) -> T) -> T {
        let halt = Halt {
            flag: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !halt.is_over.load(Ordering::Acquire) {
                    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    halt.is_late.store(is_late, Ordering::Release);
                    if is_late || stop.load(Ordering::Relaxed) {
                        halt.flag.store(true, Ordering::Release);
                    }
                    std::thread::sleep(EVERY);
                }
            });
            // Also when the work panics, so that the thread ends.
            let guard = Over(&halt);
            let done = work(guard.0);
            drop(guard);
            done
        })
    }

    /// Whether work has to end.
    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Whether the time is over.
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Acquire)
    }
}

struct Over<'a>(&'a Halt);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}
