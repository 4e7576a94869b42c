//! The end of a part: pools, and the results of its trials.

use rayon::prelude::*;
use tidemill_gpu::{DevicePtr, GpuError};

use super::{Part, Walking};
use crate::cuda::Stage;
use crate::cuda::layout::PoolArgs;
use crate::exec::engine::Outcome;
use crate::segment::Role;

/// Up to so many results are put together before another thread is awake.
const MAX_ALONE: usize = 4096;

impl<S> Part<S> {
    /// Pools the segments, and takes all sums back to the host.
    pub(super) fn send_results(&mut self) -> Result<(), GpuError> {
        self.mark(Stage::Download)?;
        for role in [Role::Train, Role::Test] {
            if self.plan.segments.is_pooled(role) {
                self.plan.kernels.pool(&self.stream, &self.pool_args(role))?;
                self.memory.pooled[role as usize].download(&self.stream, 0..self.n_trials)?;
            }
        }
        let n_sums = 2 * self.plan.segments.n_blocks * self.n_trials;
        if n_sums > 0 {
            self.memory.blocks.download(&self.stream, 0..n_sums)?;
        }
        if self.has_segments() {
            let n_walks = self.n_walks();
            self.memory.tallies.download(&self.stream, 0..n_walks)?;
        }
        Ok(())
    }

    /// Whether the host gets to know what each segment gave.
    fn has_segments(&self) -> bool {
        let segments = &self.plan.segments;
        let is_alone = |role: Role| segments.roles.contains(&role) && !segments.is_pooled(role);
        !self.plan.options.pools_alone || is_alone(Role::Train) || is_alone(Role::Test)
    }

    fn pool_args(&self, role: Role) -> PoolArgs {
        let Self { plan, memory, n_trials, .. } = self;
        let (segments, at) = (&plan.segments, role as usize);
        let (first_day, last_day) = segments.days_of[at];
        let has_blocks = role == Role::Train && segments.n_blocks > 0;
        PoolArgs {
            segments: plan.data.segments.ptr(),
            tallies: memory.tallies.ptr(),
            daily: memory.daily[at].ptr(),
            pooled: memory.pooled[at].ptr(),
            blocks: if has_blocks { memory.blocks.ptr() } else { DevicePtr::NULL },
            block_of: plan.data.block_of.ptr(),
            n_segments: segments.len() as u32,
            n_trials: *n_trials as u32,
            role: at as u32,
            first_day,
            last_day,
            n_symbols: segments.n_symbols[at],
            n_each: segments.n_each(*n_trials) as u32,
            n_days: segments.n_days as u32,
            n_blocks: segments.n_blocks as u32,
            unused: 0,
        }
    }
}

impl Part<Walking> {
    /// Waits until every trial is done, and reads the results.
    pub(in crate::cuda) fn finish(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), GpuError> {
        self.walk_on()?;
        self.marks.add(Stage::Wait, &self.stream)?.wait()?;
        self.add_outcomes(outcomes)
    }

    fn add_outcomes(&self, outcomes: &mut Vec<Outcome>) -> Result<(), GpuError> {
        let (segments, n_trials) = (&self.plan.segments, self.n_trials);
        let tallies = self.memory.tallies.host()?;
        let n_kept = if self.has_segments() { segments.len() } else { 0 };
        let pooled = [self.memory.pooled[0].host()?, self.memory.pooled[1].host()?];
        let sums = self.memory.blocks.host()?;
        let of_segment = |segment: usize, trial: usize| tallies[segment * n_trials + trial];
        let of_role = |role: Role, trial: usize| {
            let at = segments.roles.iter().position(|of| *of == role)?;
            Some(if segments.is_pooled(role) { pooled[role as usize][trial] } else { of_segment(at, trial) })
        };
        let outcome = |trial: usize| {
            let of_trial = (0..n_kept).map(|segment| of_segment(segment, trial));
            let [train, test] = [Role::Train, Role::Test].map(|role| of_role(role, trial));
            let of_block = |block: usize| [0, 1].map(|which| sums[(2 * block + which) * n_trials + trial]);
            Outcome::new(of_trial, train, test, (0..segments.n_blocks).map(of_block).collect())
        };
        if n_trials * (1 + n_kept) <= MAX_ALONE {
            outcomes.extend((0..n_trials).map(outcome));
        } else {
            outcomes.par_extend((0..n_trials).into_par_iter().map(outcome));
        }
        Ok(())
    }
}
