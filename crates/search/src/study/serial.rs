//! A study on one thread: the plain statement of what the pipeline computes.

use std::collections::VecDeque;

use crate::score::Scores;
use crate::study::error::StudyError;
use crate::study::evaluator::Batch;
use crate::study::in_flight::{Finished, InFlight};
use crate::study::monitor::StudyMonitor;
use crate::study::replay::Replayed;
use crate::study::schedule::Schedule;
use crate::study::store::Store;
use crate::study::timing::{BatchStart, BusyClock, SamplerWork, Timing};

/// A whole batch that is evaluated and not told.
struct UntoldBatch {
    batch: Batch,
    scores: Scores,
    /// Where its time went so far; none if it was read back.
    times: Option<(Timing, BatchStart)>,
}

/// Runs what is left of a study; true if it is complete. All that was finished is in the store.
pub(super) fn run(
    schedule: &mut Schedule,
    replayed: Replayed,
    mut in_flight: InFlight,
    clock: &BusyClock,
    store: &mut Option<Store>,
    watch: &mut StudyMonitor,
) -> Result<bool, StudyError> {
    let mut unfinished = replayed.unfinished;
    let known =
        |Finished { batch, evaluated }| UntoldBatch { batch, scores: evaluated.scores.clone(), times: None };
    let mut untold: VecDeque<UntoldBatch> = replayed.untold.into_iter().map(known).collect();
    loop {
        schedule.turn()?;
        while schedule.is_tell_due() {
            let Some(UntoldBatch { batch, scores, times }) = untold.pop_front() else { break };
            let (told, tell) = clock.measure(|| schedule.tell(&batch.points, &scores));
            if let Some((mut timing, mut began)) = times {
                timing.tell = tell.took;
                timing.overlap += tell.overlap;
                began.tell = tell.began;
                watch.timed(batch.index, timing, began);
            }
            told?;
        }
        let is_complete = schedule.is_ended() && unfinished.is_none();
        if is_complete || watch.is_stopped() {
            end(&untold, watch);
            return Ok(is_complete);
        }
        let unfinished = unfinished.take();
        let (asked, ask) = match &unfinished {
            Some(unfinished) => (Some(unfinished.rest()), SamplerWork::default()),
            None => {
                let (asked, ask) = clock.measure(|| schedule.ask());
                (asked?, ask)
            }
        };
        let Some(batch) = asked else { continue };
        in_flight.submit(batch)?;
        let Some((finished, mut timing, mut began)) = in_flight.collect()? else {
            end(&untold, watch);
            return Ok(false);
        };
        (timing.ask, timing.overlap, began.ask) = (ask.took, ask.overlap, ask.began);
        if let Some(store) = store {
            store.append(&finished)?;
        }
        watch.finished(&finished, false);
        let Finished { batch, evaluated } = finished;
        let (batch, scores) = match unfinished {
            Some(unfinished) => (unfinished.whole.clone(), unfinished.scores(&evaluated.scores)),
            None => (batch, evaluated.scores.clone()),
        };
        untold.push_back(UntoldBatch { batch, scores, times: Some((timing, began)) });
    }
}

/// Reports the times of batches that will not be told.
fn end(untold: &VecDeque<UntoldBatch>, watch: &mut StudyMonitor) {
    for UntoldBatch { batch, times, .. } in untold {
        times.iter().for_each(|(timing, began)| watch.timed(batch.index, *timing, *began));
    }
}
