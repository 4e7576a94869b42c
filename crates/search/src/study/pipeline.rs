//! A study on three threads: the sampler proposes the next batch while the evaluator works on this one, and the batch before goes
//! to disk.
//!
//! The evaluator stays on the thread of the caller, because devices are often bound to one. The sampler may be at most the lag
//! ahead, and the channel to the evaluator is bounded too. What is sent back to the sampler cannot be more than what it sent, so
//! that this channel needs no bound of its own; with one, both sides could wait for each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};

use crate::eager::{MessageWait, receive};
use crate::folder::ROWS_PER_PART;
use crate::study::error::StudyError;
use crate::study::evaluator::{Batch, Evaluated};
use crate::study::in_flight::{Finished, InFlight};
use crate::study::monitor::StudyMonitor;
use crate::study::replay::{Replayed, UnfinishedBatch};
use crate::study::schedule::Schedule;
use crate::study::store::Store;
use crate::study::timing::{BatchStart, BusyClock, SamplerWork, Timing};

/// Batches that wait for the evaluator, at most, however long the lag.
const MAX_WAITING: usize = 8;

/// Trials that wait for the disk, at most, if they are more than two batches: as many as a part has, which take their time to encode.
const MAX_UNSTORED: usize = ROWS_PER_PART;

/// Messages of the sampler's thread, in order.
enum FromSampler {
    Asked { batch: Batch, ask: SamplerWork },
    Told { tell: SamplerWork },
    Failed(StudyError),
}

/// Runs what is left of a study; true if it is complete. All that was finished is in the store, which is taken away if it failed.
pub(super) fn run(
    schedule: &mut Schedule,
    replayed: Replayed,
    in_flight: InFlight,
    clock: &BusyClock,
    store: &mut Option<Store>,
    watch: &mut StudyMonitor,
) -> Result<bool, StudyError> {
    let batch = schedule.batch();
    thread::scope(|scope| {
        // A batch gives rise to two messages.
        let (to_evaluator, from_sampler) = bounded(2 * MAX_WAITING);
        let (to_sampler, from_evaluator) = unbounded();
        let sampler = scope.spawn(move || {
            let outcome = propose(schedule, replayed, clock, &to_evaluator, &from_evaluator);
            outcome.unwrap_or_else(|error| {
                // The receiver is gone only after another error.
                drop(to_evaluator.send(FromSampler::Failed(error)));
                false
            })
        });
        let (to_disk, writer) = match store.take() {
            None => (None, None),
            Some(store) => {
                let (to_disk, finished) = bounded((MAX_UNSTORED / batch).max(2));
                (Some(to_disk), Some(scope.spawn(move || store.drain(finished))))
            }
        };
        let evaluation = Evaluation {
            in_flight,
            from_sampler,
            wait: MessageWait::default(),
            watch,
            asked: VecDeque::new(),
            untold: VecDeque::new(),
        };
        // All ends of the channels on this side go with the call, and with them the other threads end.
        let outcome = evaluation.run(to_sampler, to_disk);
        let is_complete = sampler.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        let stored =
            writer.map(|writer| writer.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
        // A folder that failed is the graver news: what the other side finished may not be kept.
        *store = stored.transpose()?;
        outcome.map(|()| is_complete)
    })
}

/// The sampler's thread: follows the schedule as fast as results come; true if nothing is left to do.
fn propose(
    schedule: &mut Schedule,
    replayed: Replayed,
    clock: &BusyClock,
    to_evaluator: &Sender<FromSampler>,
    from_evaluator: &Receiver<Arc<Evaluated>>,
) -> Result<bool, StudyError> {
    let mut untold: VecDeque<UntoldBatch> = replayed
        .untold
        .into_iter()
        .map(|finished| UntoldBatch::Replayed(finished.batch, finished.evaluated))
        .collect();
    let mut unfinished = replayed.unfinished;
    loop {
        schedule.turn()?;
        while schedule.is_tell_due() {
            let Some(oldest) = untold.pop_front() else { break };
            let evaluated = match &oldest {
                UntoldBatch::Replayed(_, evaluated) => Ok(evaluated.clone()),
                UntoldBatch::Asked(_) | UntoldBatch::Completed(_) => receive(from_evaluator),
            };
            let Ok(evaluated) = evaluated else { return Ok(false) };
            let (told, tell) = clock.measure(|| match &oldest {
                UntoldBatch::Replayed(batch, _) | UntoldBatch::Asked(batch) => {
                    schedule.tell(&batch.points, &evaluated.scores)
                }
                UntoldBatch::Completed(unfinished) => {
                    schedule.tell(&unfinished.whole.points, &unfinished.scores(&evaluated.scores))
                }
            });
            told?;
            let is_replayed = matches!(oldest, UntoldBatch::Replayed(..));
            if !is_replayed && to_evaluator.send(FromSampler::Told { tell }).is_err() {
                return Ok(false);
            }
        }
        if let Some(unfinished) = unfinished.take() {
            let (batch, ask) = (unfinished.rest(), SamplerWork::default());
            untold.push_back(UntoldBatch::Completed(unfinished));
            if to_evaluator.send(FromSampler::Asked { batch, ask }).is_err() {
                return Ok(false);
            }
            continue;
        }
        if schedule.is_ended() {
            // A last batch that was handed out in part is not told, but waited for.
            let is_evaluated = |batch: &UntoldBatch| {
                matches!(batch, UntoldBatch::Replayed(..)) || from_evaluator.recv().is_ok()
            };
            return Ok(untold.iter().all(is_evaluated));
        }
        let (asked, ask) = clock.measure(|| schedule.ask());
        let Some(batch) = asked? else { continue };
        untold.push_back(UntoldBatch::Asked(batch.clone()));
        if to_evaluator.send(FromSampler::Asked { batch, ask }).is_err() {
            return Ok(false);
        }
    }
}

/// A batch that was asked and not told.
enum UntoldBatch {
    /// Read back from the folder.
    Replayed(Batch, Arc<Evaluated>),
    /// With the evaluator, or behind it.
    Asked(Batch),
    /// The same, of which the first trials were read back.
    Completed(UnfinishedBatch),
}

/// The caller's thread.
struct Evaluation<'a, 'b, 'c> {
    in_flight: InFlight<'a>,
    from_sampler: Receiver<FromSampler>,
    wait: MessageWait,
    watch: &'b mut StudyMonitor<'c>,
    /// How the batches in flight were asked.
    asked: VecDeque<SamplerWork>,
    /// Batches that are finished and not yet told, with their times so far.
    untold: VecDeque<(u64, Timing, BatchStart)>,
}

impl Evaluation<'_, '_, '_> {
    /// Evaluates what the sampler proposes until that ends, something fails, or it is stopped.
    fn run(
        mut self,
        to_sampler: Sender<Arc<Evaluated>>,
        to_disk: Option<Sender<Finished>>,
    ) -> Result<(), StudyError> {
        let mut outcome = Ok(());
        let mut is_fed = true;
        loop {
            if is_fed {
                is_fed = match self.feed() {
                    Ok(is_fed) => is_fed,
                    // The sampler failed, and what is in flight is still good; or the evaluator did, and it is not.
                    Err(
                        error @ (StudyError::SamplerPanic { .. }
                        | StudyError::SamplerShape { .. }
                        | StudyError::Controller { .. }
                        | StudyError::Change(_)),
                    ) => {
                        outcome = Err(error);
                        false
                    }
                    Err(error) => return Err(error),
                };
            }
            if self.in_flight.is_empty() {
                break;
            }
            let Some((finished, mut timing, mut began)) = self.in_flight.collect()? else { break };
            let ask = self.asked.pop_front().unwrap_or_default();
            (timing.ask, timing.overlap, began.ask) = (ask.took, ask.overlap, ask.began);
            // A sampler thread that ended has reported its error, or will.
            drop(to_sampler.send(finished.evaluated.clone()));
            if let Some(to_disk) = &to_disk
                && to_disk.send(finished.clone()).is_err()
            {
                // The writer says why when it is joined.
                break;
            }
            self.untold.push_back((finished.batch.index, timing, began));
            self.watch.finished(&finished, false);
        }
        // After a normal end all was told. Otherwise the sampler is not waited for.
        while !self.untold.is_empty() {
            self.told(SamplerWork::default());
        }
        outcome
    }

    /// Submits what the sampler has proposed, as long as there is room; false if nothing more will come.
    fn feed(&mut self) -> Result<bool, StudyError> {
        while self.in_flight.has_room() {
            if self.watch.is_stopped() {
                return Ok(false);
            }
            let message = if self.in_flight.is_empty() {
                receive(&self.from_sampler).map_err(|_| TryRecvError::Disconnected)
            } else {
                self.wait.next(&self.from_sampler, || self.in_flight.is_ready())?
            };
            match message {
                Ok(FromSampler::Asked { batch, ask }) => {
                    self.in_flight.submit(batch)?;
                    self.asked.push_back(ask);
                }
                Ok(FromSampler::Told { tell }) => self.told(tell),
                Ok(FromSampler::Failed(error)) => return Err(error),
                Err(TryRecvError::Disconnected) => return Ok(false),
                Err(TryRecvError::Empty) => {
                    if self.in_flight.is_ready()? {
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    fn told(&mut self, tell: SamplerWork) {
        if let Some((index, mut timing, mut began)) = self.untold.pop_front() {
            timing.tell = tell.took;
            timing.overlap += tell.overlap;
            began.tell = tell.began;
            self.watch.timed(index, timing, began);
        }
    }
}
