//! Writes the masks of factors that are shared, then those of whole conditions.

use tidemill_gpu::{DevicePtr, Event, GpuError};

use super::{Computed, ConditionWork, Masked, Part};
use crate::cuda::Stage;
use crate::cuda::layout::{EXACT, FactorMask, LEVEL, LEVELS, LevelArgs, MaskArgs, SpreadArgs};
use crate::cuda::plan::ThresholdPlan;

/// From this share on masks fill the device.
const FULL: f64 = 0.75;

impl Part<Computed> {
    /// Writes the masks of all conditions, after what has to come first: masks that fill the device are written part after part. Side by side,
    /// parts would come to their end at the same time, and the device would wait for the next ones.
    pub(in crate::cuda) fn write_masks<'a>(
        mut self,
        turn: impl Iterator<Item = &'a Event>,
    ) -> Result<Part<Masked>, GpuError> {
        let mut turn = turn.peekable();
        if turn.peek().is_some() {
            self.mark(Stage::Wait)?;
            turn.try_for_each(|event| self.stream.wait(event))?;
            self.mark(Stage::Masks)?;
        }
        if self.orders_walks() {
            let n_sets = self.state.0.conditions.len() * self.n_rows;
            self.memory.n_set.fill(&self.stream, 0..n_sets, 0)?;
        }
        for (at, work) in self.state.0.conditions.iter().enumerate() {
            for (factor, mask) in work.factors.iter().enumerate() {
                self.write_factor(at, factor, mask)?;
            }
            self.write_condition(at, work)?;
        }
        let order = self.order_walks()?;
        let is_full = self.marks.load(&self.stream).share() >= FULL;
        let masked = if is_full { Some(self.stream.record()?) } else { None };
        Ok(self.advance(|Computed(described)| Masked {
            world: described.worlds[0],
            condition_masks: described.condition_masks,
            order,
            masked,
        }))
    }

    /// The masks of one factor: exact, at levels, or none.
    fn write_factor(&self, condition: usize, factor: usize, mask: &FactorMask) -> Result<(), GpuError> {
        let factor_plan = &self.plan.keys.conditions[condition].factors[factor];
        match (mask.mode, &factor_plan.threshold) {
            (EXACT, _) => {
                let args = self.mask_args(factor_plan.key, mask.pool);
                self.plan.kernels.factor(&self.stream, condition, factor, &args)
            }
            (LEVEL, Some(threshold)) => {
                let levels = self.memory.levels.ptr().add(factor_plan.number * LEVELS);
                self.spread_levels(threshold, levels, mask)?;
                let MaskArgs { world, tiles, row, out, first, count, n_tiles, .. } =
                    self.mask_args(threshold.key, mask.pool);
                let n_levels = mask.n_levels;
                let args = LevelArgs { world, tiles, row, levels, out, first, count, n_tiles, n_levels };
                self.plan.kernels.levels(&self.stream, condition, factor, &args)
            }
            _ => Ok(()),
        }
    }

    /// Chooses levels for the thresholds of all rows, and the one that each row takes.
    fn spread_levels(
        &self,
        threshold: &ThresholdPlan,
        levels: DevicePtr<f64>,
        mask: &FactorMask,
    ) -> Result<(), GpuError> {
        let args = SpreadArgs {
            threshold: self.memory.scalars.ptr().add(threshold.scalar * self.n_rows),
            levels,
            level_of: mask.level_of,
            n_rows: self.n_rows as u32,
            above: u32::from(threshold.above),
            n_levels: mask.n_levels,
            unused: 0,
        };
        self.plan.kernels.spread_levels(&self.stream, &args)?;
        self.plan.kernels.pick_level(&self.stream, &args)
    }

    fn write_condition(&self, at: usize, work: &ConditionWork) -> Result<(), GpuError> {
        let whole = self.plan.keys.conditions[at].whole;
        let args = MaskArgs {
            order: self.group(self.state.0.spans[whole], work)?,
            factors: work.factors_at,
            n_factors: work.factors.len() as u32,
            n_set: work.mask.n_set,
            ..self.mask_args(whole, work.mask.pool)
        };
        self.plan.kernels.condition(&self.stream, at, &args)
    }

    /// Arguments for the masks of all items of a key, without factors and in no order.
    fn mask_args(&self, key: usize, out: DevicePtr<u64>) -> MaskArgs {
        let span = self.state.0.spans[key];
        let (tiles, n_tiles) = self.plan.data.walked().tiles(span.all);
        MaskArgs {
            world: self.state.0.worlds[0],
            tiles,
            factors: DevicePtr::NULL,
            row: span.row,
            order: DevicePtr::NULL,
            out,
            n_set: DevicePtr::NULL,
            first: 0,
            count: span.all as u32,
            n_tiles,
            n_factors: 0,
        }
    }
}
