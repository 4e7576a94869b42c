//! A device with a thread of its own: batches are sent to it and read back there, while results of earlier ones are scored elsewhere.
//!
//! Sending a batch takes the host as long as scoring one, and half as long as the device takes for a small one. On one thread with
//! everything else, results that are there would wait for it, the sampler for them, and each device for all others.
//!
//! It is one of a few threads that help each other with results. Those of the common pool are full of proposals, and results would wait
//! behind them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use rayon::ThreadPool;
use tidemill_backtest::{DeviceEngine, Outcome, StageSpan};
use tidemill_gpu::GpuError;
use tidemill_search::Points;
use tidemill_search::eager::{MessageWait, receive};

/// The thread of a device. Batches come back in the order in which they were submitted.
pub(super) struct DeviceThread {
    /// None once it is to end.
    orders: Option<Sender<Order>>,
    results: Receiver<BatchResult>,
    thread: Option<JoinHandle<()>>,
    began: Instant,
}

/// A batch, and how many of them the device is to have at a time.
struct Order {
    points: Arc<Points>,
    lanes: Option<usize>,
}

/// What a device made of a batch.
pub(super) struct Done {
    pub(super) outcomes: Vec<Outcome>,
    /// When the stages ran.
    pub(super) spans: Vec<StageSpan>,
}

/// After an error or a panic nothing more comes.
enum BatchResult {
    Done(Done),
    Failed(GpuError),
    Panicked(Box<dyn Any + Send>),
}

impl DeviceThread {
    /// Gives a device its thread, which is one of the helpers until it ends.
    pub(super) fn start(engine: DeviceEngine, helpers: Option<Arc<ThreadPool>>) -> Self {
        let (orders, to_do) = unbounded();
        let (done, results) = unbounded();
        let began = engine.began();
        let thread = std::thread::spawn(move || {
            let serve = || serve(engine, &to_do, &done);
            let served = catch_unwind(AssertUnwindSafe(|| match helpers {
                Some(helpers) => helpers.install(serve),
                None => serve(),
            }));
            // Nobody may be left to hear of it.
            let _ = match served {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => done.send(BatchResult::Failed(error)),
                Err(payload) => done.send(BatchResult::Panicked(payload)),
            };
        });
        Self { orders: Some(orders), results, thread: Some(thread), began }
    }

    /// When the time of its spans began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Takes on a batch. If the device has failed, the next result says so.
    pub(super) fn submit(&self, points: Arc<Points>, lanes: Option<usize>) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(Order { points, lanes });
        }
    }

    /// Whether a result is there.
    pub(super) fn is_ready(&self) -> bool {
        !self.results.is_empty()
    }

    /// Waits for the oldest batch.
    ///
    /// # Panics
    /// If the thread did, or was asked for more than it was given.
    pub(super) fn collect(&self) -> Result<Done, GpuError> {
        match receive(&self.results) {
            Ok(BatchResult::Done(done)) => Ok(done),
            Ok(BatchResult::Failed(error)) => Err(error),
            Ok(BatchResult::Panicked(payload)) => resume_unwind(payload),
            Err(_) => panic!("nothing was submitted to the device"),
        }
    }
}

impl Drop for DeviceThread {
    /// What the device has is given back when this returns.
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A panic went the way of the results.
            let _ = thread.join();
        }
    }
}

/// Does what is ordered until no more orders can come.
fn serve(
    mut engine: DeviceEngine,
    orders: &Receiver<Order>,
    results: &Sender<BatchResult>,
) -> Result<(), GpuError> {
    let (mut n_under_way, mut wait) = (0, MessageWait::default());
    loop {
        let order = if n_under_way == 0 {
            receive(orders).map_err(|_| TryRecvError::Disconnected)
        } else {
            wait.next(orders, || engine.is_ready())?
        };
        match order {
            Ok(Order { points, lanes }) => {
                lanes.into_iter().for_each(|lanes| engine.set_lanes(lanes));
                engine.submit(points)?;
                n_under_way += 1;
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) if engine.is_ready()? => {
                let outcomes = engine.collect()?;
                n_under_way -= 1;
                let done = Done { outcomes, spans: engine.take_spans() };
                if results.send(BatchResult::Done(done)).is_err() {
                    return Ok(());
                }
                engine.begin_waiting()?;
            }
            Err(TryRecvError::Empty) => {}
        }
    }
}
