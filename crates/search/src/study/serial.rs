//! A study on one thread: the plain statement of what the pipeline computes.

use std::collections::VecDeque;

use crate::study::error::StudyError;
use crate::study::in_flight::{Finished, InFlight};
use crate::study::monitor::StudyMonitor;
use crate::study::replay::Replayed;
use crate::study::schedule::Schedule;
use crate::study::store::Store;
use crate::study::timing::{BatchStart, BusyClock, SamplerWork, Timing};

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
    let mut untold: VecDeque<(Finished, Option<(Timing, BatchStart)>)> =
        replayed.untold.into_iter().map(|finished| (finished, None)).collect();
    loop {
        schedule.turn()?;
        while schedule.is_tell_due() {
            let Some((oldest, timing)) = untold.pop_front() else { break };
            let (told, tell) =
                clock.measure(|| schedule.tell(&oldest.batch.points, &oldest.evaluated.scores));
            if let Some((mut timing, mut began)) = timing {
                timing.tell = tell.took;
                timing.overlap += tell.overlap;
                began.tell = tell.began;
                watch.timed(oldest.batch.index, timing, began);
            }
            told?;
        }
        if schedule.is_ended() && unfinished.is_none() {
            return Ok(true);
        }
        if watch.is_stopped() {
            untold.iter().for_each(|(finished, timing)| {
                timing.iter().for_each(|(timing, began)| watch.timed(finished.batch.index, *timing, *began));
            });
            return Ok(false);
        }
        let (asked, ask) = match unfinished.take() {
            Some(batch) => (Some(batch), SamplerWork::default()),
            None => {
                let (asked, ask) = clock.measure(|| schedule.ask());
                (asked?, ask)
            }
        };
        let Some(batch) = asked else { continue };
        in_flight.submit(batch)?;
        let (finished, mut timing, mut began) = in_flight.collect()?;
        (timing.ask, timing.overlap, began.ask) = (ask.took, ask.overlap, ask.began);
        if let Some(store) = store {
            store.append(&finished)?;
        }
        watch.finished(&finished, false);
        untold.push_back((finished, Some((timing, began))));
    }
}
