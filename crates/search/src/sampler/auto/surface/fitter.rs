//! The fit of a surface beside the proposals that follow it.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::fit::Surfaces;

/// Threads that fit.
const MAX_THREADS: usize = 4;

/// Fits surfaces beside everything else.
///
/// It has threads of its own: a thread of the common pool that waits for a fit may stand between that fit and its end.
#[derive(Debug)]
pub(super) struct Fitter {
    /// None where threads are not to be had: then a fit is done at once.
    pool: Option<ThreadPool>,
    on_its_way: Option<Receiver<Arc<Surfaces>>>,
}

impl Fitter {
    pub(super) fn new() -> Self {
        let n_threads = rayon::current_num_threads().min(MAX_THREADS);
        Self { pool: ThreadPoolBuilder::new().num_threads(n_threads).build().ok(), on_its_way: None }
    }

    pub(super) fn begin(&mut self, fit: impl FnOnce() -> Arc<Surfaces> + Send + 'static) {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let fit = move || sender.send(fit()).unwrap_or_default();
        match &self.pool {
            Some(pool) => pool.spawn(fit),
            None => fit(),
        }
        self.on_its_way = Some(receiver);
    }

    /// What was begun last, if it was not taken yet.
    pub(super) fn finish(&mut self) -> Option<Arc<Surfaces>> {
        self.on_its_way.take()?.recv().ok()
    }
}
