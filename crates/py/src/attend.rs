//! Work that takes its time: without the interpreter's lock, open to Ctrl-C, and never a panic for the caller.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;

use crate::error;

/// Time between two looks at signals and progress.
const TICK: Duration = Duration::from_millis(100);

/// The process that worked first; its threads do not exist in a process that is forked from it later.
static WORKS_IN: AtomicU32 = AtomicU32::new(0);

/// Does short work without the interpreter's lock.
pub fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    refuse_fork(py)?;
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|panic| error::defect(py, &message(&*panic)))
}

/// Does long work in a thread of its own, while the calling one looks at signals and reports progress. Ctrl-C sets `stop`; when the
/// work has ended by itself it is raised.
pub fn attended<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    refuse_fork(py)?;
    let (over, is_over) = bounded::<()>(0);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _over = over;
            catch_unwind(AssertUnwindSafe(work))
        });
        let mut raised = None;
        // The channel never carries anything: it closes when the work is over.
        while py.detach(|| is_over.recv_timeout(TICK)) == Err(RecvTimeoutError::Timeout) {
            let heard = py.check_signals().and_then(|()| if raised.is_none() { tick(py) } else { Ok(()) });
            if let Err(error) = heard {
                stop.store(true, Ordering::SeqCst);
                raised.get_or_insert(error);
            }
        }
        let done = py.detach(|| worker.join());
        match (raised, done) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(result))) => {
                tick(py)?;
                Ok(result)
            }
            (None, Ok(Err(panic)) | Err(panic)) => Err(error::defect(py, &message(&*panic))),
        }
    })
}

fn refuse_fork(py: Python<'_>) -> PyResult<()> {
    let me = std::process::id();
    match WORKS_IN.compare_exchange(0, me, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => Ok(()),
        Err(first) if first == me => Ok(()),
        Err(_) => Err(error::raised(
            py,
            "Error",
            "this process was forked from one in which Tidemill has worked, and its threads are not here\n  hint: start processes with \
             multiprocessing.get_context(\"spawn\")",
        )),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
