//! A study on one thread: the plain statement of what the pipeline computes.

use std::collections::VecDeque;

use crate::study::error::StudyError;
use crate::study::in_flight::{Finished, InFlight};
use crate::study::replay::Replayed;
use crate::study::schedule::Schedule;
use crate::study::store::Store;
use crate::study::timing::{BusyClock, Timing};
use crate::study::watch::Watch;

/// Runs what is left of a study; true if it is complete. All that was finished is in the store.
pub(super) fn run(
    schedule: &mut Schedule,
    replayed: Replayed,
    mut in_flight: InFlight,
    clock: &BusyClock,
    store: &mut Option<Store>,
    watch: &mut Watch,
) -> Result<bool, StudyError> {
    let mut unfinished = replayed.unfinished;
    let mut untold: VecDeque<(Finished, Option<Timing>)> =
        replayed.untold.into_iter().map(|finished| (finished, None)).collect();
    loop {
        while schedule.is_tell_due() {
            let Some((oldest, timing)) = untold.pop_front() else { break };
            let (told, tell, overlap) =
                clock.measure(|| schedule.tell(&oldest.batch.points, &oldest.evaluated.scores));
            if let Some(mut timing) = timing {
                timing.tell = tell;
                timing.overlap += overlap;
                watch.timed(oldest.batch.index, timing);
            }
            told?;
        }
        if schedule.is_ended() && unfinished.is_none() {
            return Ok(true);
        }
        if watch.is_stopped() {
            untold.iter().for_each(|(finished, timing)| {
                timing.iter().for_each(|timing| watch.timed(finished.batch.index, *timing));
            });
            return Ok(false);
        }
        let (asked, ask, overlap) = match unfinished.take() {
            Some(batch) => (Some(batch), Default::default(), Default::default()),
            None => {
                let (asked, ask, overlap) = clock.measure(|| schedule.ask());
                (asked?, ask, overlap)
            }
        };
        let Some(batch) = asked else { continue };
        in_flight.submit(batch)?;
        let (finished, mut timing) = in_flight.collect()?;
        (timing.ask, timing.overlap) = (ask, overlap);
        if let Some(store) = store {
            store.append(&finished)?;
        }
        watch.finished(&finished, false);
        untold.push_back((finished, Some(timing)));
    }
}
