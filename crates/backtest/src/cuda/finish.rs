//! The end of a part: further rounds of walking, pools, and what came of it.

use rayon::prelude::*;
use tidemill_gpu::{DevicePtr, GpuError};

use super::batch::Batch;
use super::lane::{Lane, read, threads};
use super::layout::PoolArgs;
use super::{DeviceEngine, Stage, StageSpan};
use crate::exec::engine::Outcome;
use crate::segment::Role;
use crate::tally::Tally;

impl DeviceEngine {
    /// Pools the segments, and takes all sums back to the host.
    pub(super) fn results(&mut self, lane: &mut Lane, n_trials: usize) -> Result<(), GpuError> {
        lane.marks.push((Stage::Download, lane.stream.record()?));
        let n_walks = n_trials * self.segments.len();
        for role in [Role::Train, Role::Test] {
            if !self.is_pooled(role) {
                continue;
            }
            let at = role as usize;
            let (first_day, last_day) = self.days_of[at];
            let args = PoolArgs {
                segments: self.data.segments.ptr(),
                tallies: lane.tallies.ptr(),
                daily: lane.daily[at].ptr(),
                pooled: lane.pooled[at].ptr(),
                blocks: if role == Role::Train && self.n_blocks > 0 {
                    lane.blocks.ptr()
                } else {
                    DevicePtr::NULL
                },
                block_of: self.data.block_of.ptr(),
                n_segments: self.segments.len() as u32,
                n_trials: n_trials as u32,
                role: at as u32,
                first_day,
                last_day,
                n_symbols: self.n_symbols_of[at],
                n_each: self.segments_each() as u32,
                n_days: self.n_days as u32,
                n_blocks: self.n_blocks as u32,
                unused: 0,
            };
            let kernel = self.kernel("pool")?;
            lane.stream.launch(&kernel, threads(n_trials), &args)?;
            if let (Some(pooled), Some(host)) = (lane.pooled[at].buffer(), lane.host_pooled[at].as_mut()) {
                lane.stream.download(pooled, 0, host, 0, n_trials)?;
            }
        }
        let n_sums = 2 * self.n_blocks * n_trials;
        if n_sums > 0
            && let (Some(blocks), Some(host)) = (lane.blocks.buffer(), lane.host_blocks.as_mut())
        {
            lane.stream.download(blocks, 0, host, 0, n_sums)?;
        }
        if let (Some(tallies), Some(host)) = (lane.tallies.buffer(), lane.host_tallies.as_mut()) {
            lane.stream.download(tallies, 0, host, 0, n_walks)?;
        }
        Ok(())
    }

    /// Walks on until every trial is done: some have more trades than there is room for at once.
    fn walk_on(&mut self, lane: &mut Lane, batch: &Batch) -> Result<(), GpuError> {
        batch.done.wait()?;
        let n_open = |lane: &Lane| match &lane.host_n_open {
            Some(host) => host.as_slice().map(|n_open| n_open[0]),
            None => Ok(0),
        };
        if n_open(lane)? > 0 {
            while n_open(lane)? > 0 {
                self.round(lane, batch.n_trials, &batch.walk, &batch.book)?;
            }
            self.results(lane, batch.n_trials)?;
        }
        Ok(())
    }

    /// Lets everything under way come to its end, so that columns may be moved or forgotten.
    pub(super) fn settle(&mut self) -> Result<(), GpuError> {
        let under_way = std::mem::take(&mut self.under_way);
        let mut result = Ok(());
        for batch in &under_way {
            if let (true, Some(mut lane)) = (result.is_ok(), self.lanes[batch.lane].take()) {
                result = self.walk_on(&mut lane, batch);
                self.lanes[batch.lane] = Some(lane);
            }
        }
        self.under_way = under_way;
        result.and_then(|()| self.device.synchronize())
    }

    /// Waits for a part, and reads what came of it.
    pub(super) fn finish(&mut self, batch: Batch) -> Result<Vec<Outcome>, GpuError> {
        let Some(mut lane) = self.lanes[batch.lane].take() else { return Ok(Vec::new()) };
        let result = self.walk_on(&mut lane, &batch).and_then(|()| self.read(&mut lane, &batch));
        lane.idle = true;
        self.lanes[batch.lane] = Some(lane);
        result
    }

    fn read(&mut self, lane: &mut Lane, batch: &Batch) -> Result<Vec<Outcome>, GpuError> {
        self.note_times(batch, lane)?;
        let n_trials = batch.n_trials;
        let tallies = read(&lane.host_tallies)?;
        let pooled = [read(&lane.host_pooled[0])?, read(&lane.host_pooled[1])?];
        let sums = read(&lane.host_blocks)?;
        let of_role = |role: Role, segments: &[Tally], trial: usize| {
            let mut of =
                self.roles.iter().zip(segments).filter(|(of, _)| **of == role).map(|(_, tally)| *tally);
            let first = of.next()?;
            Some(if of.next().is_none() { first } else { pooled[role as usize][trial] })
        };
        let outcome = |trial: usize| {
            let segments: Vec<Tally> =
                (0..self.segments.len()).map(|segment| tallies[segment * n_trials + trial]).collect();
            Outcome {
                train: of_role(Role::Train, &segments, trial).unwrap_or_default(),
                test: of_role(Role::Test, &segments, trial),
                segments,
                blocks: (0..self.n_blocks)
                    .map(|block| [0, 1].map(|which| sums[(2 * block + which) * n_trials + trial]))
                    .collect(),
            }
        };
        Ok((0..n_trials).into_par_iter().map(outcome).collect())
    }

    /// Keeps when the stages of a part ran.
    fn note_times(&mut self, batch: &Batch, lane: &mut Lane) -> Result<(), GpuError> {
        let mut marks = batch.marks.iter().map(|(stage, event)| (*stage, event)).collect::<Vec<_>>();
        marks.push((Stage::Wait, &batch.done));
        let end = lane.stream.record()?;
        marks.extend(lane.marks.iter().map(|(stage, event)| (*stage, event)));
        marks.push((Stage::Wait, &end));
        end.wait()?;
        for pair in marks.windows(2) {
            let (stage, begin) = pair[0];
            if stage != Stage::Wait {
                let span = StageSpan {
                    stage,
                    lane: batch.lane,
                    job: batch.job,
                    begin_ms: begin.since_ms(&self.base)?,
                    end_ms: pair[1].1.since_ms(&self.base)?,
                };
                self.spans.push(span);
            }
        }
        lane.marks.clear();
        Ok(())
    }
}
