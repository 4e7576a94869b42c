//! A device with threads of its own: on one of them batches are sent to it and read back, on the other what was read is scored.
//!
//! Sending a batch takes the host as long as scoring one, and half as long as the device takes for a small one. On one thread with
//! everything else, results that are there would wait for it, the sampler for them, and each device for all others. Nor may a batch that was
//! just proposed wait until another one is scored.
//!
//! Both are among a few threads that help each other with results. Those of the common pool are full of proposals, and results would wait
//! behind them.

use std::any::Any;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use rayon::ThreadPool;
use tidemill_backtest::{DeviceEngine, Outcome, StageSpan};
use tidemill_gpu::GpuError;
use tidemill_search::eager::{MessageWait, receive};
use tidemill_search::{Evaluated, Points};

use super::Scorer;

/// The threads of a device. Batches come back in the order in which they were submitted.
pub(super) struct DeviceThread {
    /// None once they are to end.
    orders: Option<Sender<Order>>,
    results: Receiver<Message<Done>>,
    threads: Vec<JoinHandle<()>>,
    began: Instant,
}

/// A batch, and what is to be done with it.
pub(super) struct Order {
    pub(super) points: Arc<Points>,
    pub(super) scorer: Arc<Scorer>,
    /// Whether outcomes are wanted beside scores.
    pub(super) keeps_outcomes: bool,
    /// How many batches the device is to have at a time.
    pub(super) lanes: Option<usize>,
}

/// What a device made of a batch.
struct Found {
    order: Order,
    outcomes: Vec<Outcome>,
    spans: Vec<StageSpan>,
}

/// What became of a batch.
pub(super) struct Done {
    pub(super) evaluated: Evaluated,
    /// None unless they are kept.
    pub(super) outcomes: Vec<Outcome>,
    /// When the stages ran.
    pub(super) spans: Vec<StageSpan>,
}

/// What a thread passes on of each batch. After an error or a panic nothing more comes.
enum Message<T> {
    Batch(T),
    Failed(GpuError),
    Panicked(Box<dyn Any + Send>),
}

impl DeviceThread {
    /// Gives a device its threads, which are two of the helpers until they end.
    ///
    /// Both have begun when this returns. A helper that waits for a piece of its work takes on whatever else is to be done: one that found
    /// the other thread there, not yet begun, would never come back from it.
    pub(super) fn start(engine: DeviceEngine, helpers: Option<Arc<ThreadPool>>) -> Self {
        let (orders, to_do) = unbounded();
        let (found, to_score) = unbounded();
        let (done, results) = unbounded();
        let (begins, has_begun) = bounded(0);
        let began = engine.began();
        let (pool, begin) = (helpers.clone(), begins.clone());
        let device = spawn(move || {
            let served = in_pool(pool.as_deref(), || {
                drop(begin);
                serve(engine, &to_do, &found)
            });
            // Nobody may be left to hear of it.
            let _ = match served {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => found.send(Message::Failed(error)),
                Err(payload) => found.send(Message::Panicked(payload)),
            };
        });
        let scores = spawn(move || {
            let scored = in_pool(helpers.as_deref(), || {
                drop(begins);
                score(&to_score, &done);
            });
            if let Err(payload) = scored {
                let _ = done.send(Message::Panicked(payload));
            }
        });
        // Nothing is sent: it ends when both have let go of it.
        let _: Result<Infallible, _> = has_begun.recv();
        Self { orders: Some(orders), results, threads: vec![device, scores], began }
    }

    /// When the time of its spans began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Takes on a batch. If the device has failed, the next result says so.
    pub(super) fn submit(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// Whether a result is there.
    pub(super) fn is_ready(&self) -> bool {
        !self.results.is_empty()
    }

    /// Waits for the oldest batch.
    ///
    /// # Panics
    /// If a thread did, or was asked for more than it was given.
    pub(super) fn collect(&self) -> Result<Done, GpuError> {
        match receive(&self.results) {
            Ok(Message::Batch(done)) => Ok(done),
            Ok(Message::Failed(error)) => Err(error),
            Ok(Message::Panicked(payload)) => resume_unwind(payload),
            Err(_) => panic!("nothing was submitted to the device"),
        }
    }
}

impl Drop for DeviceThread {
    /// What the device has is given back when this returns.
    fn drop(&mut self) {
        drop(self.orders.take());
        for thread in self.threads.drain(..) {
            // A panic went the way of the results.
            let _ = thread.join();
        }
    }
}

/// Does something as one of the threads of a pool, if there is one.
fn in_pool<T: Send>(
    pool: Option<&ThreadPool>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(|| match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }))
}

/// Does what is ordered until no more orders can come.
fn serve(
    mut engine: DeviceEngine,
    orders: &Receiver<Order>,
    found: &Sender<Message<Found>>,
) -> Result<(), GpuError> {
    let (mut under_way, mut wait) = (VecDeque::new(), MessageWait::default());
    loop {
        let order = if under_way.is_empty() {
            receive(orders).map_err(|_| TryRecvError::Disconnected)
        } else {
            wait.next(orders, || engine.is_ready())?
        };
        match order {
            Ok(order) => {
                order.lanes.into_iter().for_each(|lanes| engine.set_lanes(lanes));
                engine.submit(order.points.clone())?;
                under_way.push_back(order);
            }
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) if engine.is_ready()? => {
                let outcomes = engine.collect()?;
                let spans = engine.take_spans();
                let Some(order) = under_way.pop_front() else { continue };
                if found.send(Message::Batch(Found { order, outcomes, spans })).is_err() {
                    return Ok(());
                }
                engine.begin_waiting()?;
            }
            Err(TryRecvError::Empty) => {}
        }
    }
}

/// Scores what was found until no more can come.
fn score(found: &Receiver<Message<Found>>, done: &Sender<Message<Done>>) {
    while let Ok(message) = receive(found) {
        let scored = match message {
            Message::Batch(Found { order, mut outcomes, spans }) => {
                let evaluated = order.scorer.score(&order.points, &outcomes);
                if !order.keeps_outcomes {
                    outcomes = Vec::new();
                }
                Message::Batch(Done { evaluated, outcomes, spans })
            }
            Message::Failed(error) => Message::Failed(error),
            Message::Panicked(payload) => Message::Panicked(payload),
        };
        if done.send(scored).is_err() {
            return;
        }
    }
}
