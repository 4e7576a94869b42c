//! The thread behind a stream of the host device: runs its tasks in order and counts them.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::emulate::EmulatedKernel;
use crate::error::GpuError;
use crate::stream::Launch;

/// Code of a fault under emulation: that of a failed launch on CUDA.
const LAUNCH_FAILED: i32 = 719;

/// What the worker threads share with the driver.
#[derive(Default)]
pub(super) struct Shared {
    lost: OnceLock<GpuError>,
}

/// How far a stream is.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) counts: Mutex<Counts>,
    moved: Condvar,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) submitted: u64,
    done: u64,
    pub(super) ended: bool,
}

/// One record of an event.
#[derive(Default)]
pub(super) struct Completion {
    at: Mutex<Option<Instant>>,
    fired: Condvar,
}

impl Completion {
    pub(super) fn fire(&self) {
        *lock(&self.at) = Some(Instant::now());
        self.fired.notify_all();
    }

    /// When it happened; waits for it, at most until the deadline.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Option<Instant> {
        *wait_while(&self.fired, lock(&self.at), deadline, |at| at.is_none())
    }

    pub(super) fn is_done(&self) -> bool {
        lock(&self.at).is_some()
    }
}

/// One operation, owned by its stream.
pub(super) enum Task {
    Work(Work),
    Host(Box<dyn FnOnce() + Send>),
    Record(Arc<Completion>),
    Wait(Arc<Completion>),
}

/// What a device does.
pub(super) enum Work {
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    Fill {
        at: u64,
        bytes: usize,
        byte: u8,
    },
    Launch {
        kernel: Arc<EmulatedKernel>,
        launch: Launch,
        args: Box<[u8]>,
    },
    Fail(GpuError),
    /// Never ends.
    Hang,
}

impl Shared {
    fn lose(&self, error: GpuError) {
        // Only the first failure counts.
        let _ = self.lost.set(error);
    }

    pub(super) fn check(&self) -> Result<(), GpuError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn run(&self, task: Task) {
        match task {
            Task::Record(completion) => completion.fire(),
            Task::Wait(completion) => {
                completion.wait(None);
            }
            // A lost device does nothing more, so that no wait on it lasts for ever.
            _ if self.lost.get().is_some() => {}
            Task::Host(work) => work(),
            Task::Work(work) => self.do_work(&work),
        }
    }

    fn do_work(&self, work: &Work) {
        if self.lost.get().is_some() {
            return;
        }
        match work {
            Work::Copy { from, to, bytes } => {
                // SAFETY: both ranges were checked by the caller and do not overlap; memory is freed only after a
                // synchronisation, and host memory only after the event that follows this task.
                unsafe { std::ptr::copy_nonoverlapping(*from as *const u8, *to as *mut u8, *bytes) }
            }
            Work::Fill { at, bytes, byte } => {
                // SAFETY: as above.
                unsafe { std::ptr::write_bytes(*at as *mut u8, *byte, *bytes) }
            }
            Work::Launch { kernel, launch, args } => {
                // SAFETY: the work comes from `Stream::launch`, whose caller has promised it.
                let run = unsafe { kernel.run(launch.grid, launch.block, launch.shared_bytes, args) };
                if let Err(error) = run {
                    self.lose(fault(error.to_string()));
                }
            }
            Work::Fail(error) => self.lose(error.clone()),
            Work::Hang => loop {
                std::thread::park();
            },
        }
    }
}

impl Progress {
    /// Waits until so much is done, at most until the deadline; whether it is.
    pub(super) fn wait_for(&self, target: u64, deadline: Option<Instant>) -> bool {
        wait_while(&self.moved, lock(&self.counts), deadline, |counts| counts.done < target).done >= target
    }

    pub(super) fn submitted(&self) -> u64 {
        lock(&self.counts).submitted
    }
}

pub(super) fn work(tasks: Receiver<Task>, progress: Arc<Progress>, shared: Arc<Shared>) {
    for task in tasks {
        shared.run(task);
        lock(&progress.counts).done += 1;
        progress.moved.notify_all();
    }
    lock(&progress.counts).ended = true;
}

pub(super) fn fault(message: String) -> GpuError {
    GpuError::Fault { kernels: Vec::new(), code: LAUNCH_FAILED, message }
}

/// Waits as long as the condition holds, at most until the deadline.
fn wait_while<'a, T>(
    moved: &Condvar,
    mut guard: MutexGuard<'a, T>,
    deadline: Option<Instant>,
    condition: impl Fn(&T) -> bool,
) -> MutexGuard<'a, T> {
    while condition(&guard) {
        guard = match deadline.map(|deadline| deadline.checked_duration_since(Instant::now())) {
            None => moved.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(Some(left)) => moved.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0,
            Some(None) => break,
        };
    }
    guard
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
