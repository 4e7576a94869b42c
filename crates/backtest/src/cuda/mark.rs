//! When the stages of a part begin, and how much of the device their kernels fill.
//!
//! A stage ends where the next one begins. A stage of several kernels gets the mean share that [`Load`] makes of its launches; where
//! kernels of very different shapes follow each other (columns that go along time beside columns that take all bars at once), the stage
//! is marked again in between, so that each has its own time.

use tidemill_gpu::{Event, GpuError, Load, Stream, Timeline};

use super::{Stage, StageSpan};

/// Neighbours of one stage whose shares differ by less than this factor are one.
const ALIKE: f64 = 2.0;

/// The beginnings of the stages of a part, in their order.
#[derive(Default)]
pub(super) struct Marks(Vec<Mark>);

struct Mark {
    stage: Stage,
    begin: Event,
    /// What was launched from here to the next mark.
    load: Load,
}

impl Marks {
    /// Forgets everything, because the part begins anew.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Notes that a stage begins here on a stream, and returns when.
    pub(super) fn add(&mut self, stage: Stage, stream: &Stream) -> Result<Event, GpuError> {
        self.end(stream);
        let begin = stream.record()?;
        self.0.push(Mark { stage, begin: begin.clone(), load: Load::default() });
        Ok(begin)
    }

    /// What the stream has launched since the last stage began.
    pub(super) fn load(&mut self, stream: &Stream) -> Load {
        let load = stream.take_load();
        self.0.last_mut().map_or(load, |last| {
            last.load += load;
            last.load
        })
    }

    /// Gives the last stage what the stream has launched since it began. If it is alike the one before, both are one from here on.
    fn end(&mut self, stream: &Stream) {
        let load = self.load(stream);
        if let [.., before, last] = &mut self.0[..]
            && before.stage == last.stage
            && are_alike(before.load.share(), last.load.share())
        {
            before.load += load;
            self.0.pop();
        }
    }

    /// The stages, as those of a job on a lane, with times of a timeline that begins at `began_ms`. Waits for them.
    pub(super) fn spans(
        &self,
        lane: usize,
        job: u64,
        timeline: &Timeline,
        began_ms: f64,
    ) -> Result<Vec<StageSpan>, GpuError> {
        // The stream of a part waits for that of the columns, so that the last mark is the last on both.
        let begins = timeline.times(self.0.iter().map(|mark| &mark.begin))?;
        let stages = self.0.iter().zip(begins.windows(2)).filter(|(mark, _)| mark.stage != Stage::Wait);
        let span = |(mark, times): (&Mark, &[f64])| StageSpan {
            stage: mark.stage,
            lane,
            job,
            begin_ms: times[0] - began_ms,
            end_ms: times[1] - began_ms,
            fill: mark.load.share(),
        };
        Ok(stages.map(span).collect())
    }
}

fn are_alike(a: f64, b: f64) -> bool {
    a.max(b) < ALIKE * a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_alike_within_a_factor_of_two() {
        assert!(are_alike(0.3, 0.5) && are_alike(0.5, 0.3) && are_alike(1.0, 1.0));
        assert!(!are_alike(0.2, 0.5) && !are_alike(1.0, 0.5));
        assert!(!are_alike(0.0, 0.0), "of kernels and of none nothing is known");
    }
}
