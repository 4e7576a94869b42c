//! Reserves the memory of a part, and uploads the structs that its kernels read.

use tidemill_gpu::{DevicePtr, GpuError};
use tidemill_market::indicator::device::Input;

use super::group::WALK_GROUPS;
use super::{ConditionWork, Described, Distinct, Part, UnderWay};
use crate::cuda::column_store::{ColumnStore, SHARERS};
use crate::cuda::layout::{ConditionMask, EVALUATE, EXACT, FactorMask, LEVEL, LEVELS};
use crate::cuda::memory::{GrowableBuffer, PackedStructs};
use crate::cuda::plan::{ConditionPlan, FactorPlan};

/// The share of bars that is believed to be left to test, at least: formulas tell little about the data.
const LEAST_REACH: f64 = 1.0 / 4.0;

/// So many bytes of masks to test, of eight bars each, are worth masks at few levels: the device
/// takes some two milliseconds for them.
const MANY_TESTS: f64 = 64e6;

/// How the truth of a factor is found.
struct FactorMode {
    mode: u32,
    /// Masks of its own, and where they are.
    n_masks: usize,
    masks: DevicePtr<u64>,
    /// Levels of each item.
    n_levels: usize,
    /// The key that tells them apart.
    key: usize,
}

impl Part<Distinct> {
    /// Reserves the memory that columns, masks and groups take, and describes all of it to the kernels.
    pub(in crate::cuda) fn describe(
        mut self,
        columns: &mut ColumnStore,
        under_way: &mut UnderWay,
    ) -> Result<Part<Described>, GpuError> {
        columns.reserve_items(&self.state.spans, &self.state.written, under_way)?;
        let inputs = columns.inputs(&self.state.spans, &self.state.written);
        let plan = self.plan.clone();
        let base = self.memory.structs.room(plan.device(), plan.struct_bytes())?;
        let mut structs = PackedStructs::new(base);
        let slots = structs.put(&inputs);
        let scalars = self.memory.scalars.ptr();
        let worlds = plan.data.grids.iter();
        let worlds = worlds.map(|grid| plan.data.world(grid, scalars, slots, self.n_trials, self.n_rows));
        let worlds = worlds.map(|world| structs.put(&[world])).collect();
        self.reserve_factors()?;
        let modes = self.factor_modes()?;
        let mut conditions = Vec::with_capacity(plan.keys.conditions.len());
        for (at, condition) in plan.keys.conditions.iter().enumerate() {
            conditions.push(self.describe_condition(at, condition, &modes, &inputs, &mut structs)?);
        }
        let masks: Vec<ConditionMask> = conditions.iter().map(|condition| condition.mask).collect();
        let condition_masks = structs.put(&masks);
        self.memory.structs.send(&self.stream, &structs)?;
        Ok(self.advance(|Distinct { spans, .. }| Described {
            spans,
            inputs,
            worlds,
            conditions,
            condition_masks,
        }))
    }

    fn describe_condition(
        &mut self,
        at: usize,
        condition: &ConditionPlan,
        modes: &[FactorMode],
        inputs: &[Input],
        structs: &mut PackedStructs,
    ) -> Result<ConditionWork, GpuError> {
        let plan = self.plan.clone();
        let n_words = plan.data.walked().n_words;
        let mask = |factor: &FactorPlan| {
            let FactorMode { mode, masks, n_levels, key, .. } = modes[factor.number];
            FactorMask {
                pool: masks,
                item_of: self.state.spans[key].item_of,
                level_of: self.memory.level_of.ptr().add(factor.number * self.n_rows),
                mode,
                n_levels: n_levels as u32,
            }
        };
        let factors: Vec<FactorMask> = condition.factors.iter().map(mask).collect();
        let whole = self.state.spans[condition.whole];
        let sharers = self.sharers(condition, &factors, inputs);
        let factors_at = structs.put(&factors);
        let sharers_at = structs.put(&sharers);
        let pool = self.memory.masks[at].room(plan.device(), whole.all * n_words)?;
        let n_set =
            if self.orders_walks() { self.memory.n_set.ptr().add(at * self.n_rows) } else { DevicePtr::NULL };
        let mask = ConditionMask { pool, item_of: whole.item_of, n_set };
        Ok(ConditionWork { factors, factors_at, sharers, sharers_at, mask })
    }

    /// How the truth of each factor is found, by its number, with room for the masks of all of them.
    fn factor_modes(&mut self) -> Result<Vec<FactorMode>, GpuError> {
        let plan = self.plan.clone();
        let of_condition = |condition: &ConditionPlan| -> Vec<FactorMode> {
            condition.factors.iter().map(|factor| self.factor_mode(condition, factor)).collect()
        };
        let mut modes: Vec<FactorMode> = plan.keys.conditions.iter().flat_map(of_condition).collect();
        let n_words = plan.data.walked().n_words;
        let n_masks: usize = modes.iter().map(|mode| mode.n_masks).sum();
        let mut masks = self.memory.factor_masks.room(plan.device(), n_masks * n_words)?;
        for mode in &mut modes {
            mode.masks = masks;
            masks = masks.add(mode.n_masks * n_words);
        }
        Ok(modes)
    }

    /// How the truth of a factor is found: by a mask of its own if enough items of the condition share it, by masks at levels if these are
    /// few enough, else bar by bar.
    fn factor_mode(&self, condition: &ConditionPlan, factor: &FactorPlan) -> FactorMode {
        let Distinct { spans, .. } = &self.state;
        let masks = DevicePtr::NULL;
        let mask_bytes = self.plan.data.walked().n_words * 8;
        let most_bytes = self.share / 8;
        let (n_wholes, n_items) = (spans[condition.whole].all, spans[factor.key].all);
        // Where few bars are left to test, a mask of all bars pays only if very many share it.
        let n_tests = n_wholes as f64 * factor.reach.max(LEAST_REACH);
        let is_shared = condition.factors.len() > 1 && (n_items * SHARERS) as f64 <= n_tests;
        if is_shared && n_items * mask_bytes <= most_bytes {
            return FactorMode { mode: EXACT, n_masks: n_items, n_levels: 0, key: factor.key, masks };
        }
        if let Some(threshold) = &factor.threshold {
            let n_series = spans[threshold.key].all;
            for n_levels in [LEVELS, LEVELS / 2, LEVELS / 4] {
                let n_masks = n_series * n_levels;
                // Few levels let more bars through, so what they save must be worth a walk over all bars, and the launches.
                let saves =
                    (n_series * SHARERS) as f64 <= n_tests && n_tests * mask_bytes as f64 >= MANY_TESTS;
                let is_worth = n_levels == LEVELS || saves;
                if is_worth && 2 * n_masks <= n_wholes && n_masks * mask_bytes <= most_bytes {
                    return FactorMode { mode: LEVEL, n_masks, n_levels, key: threshold.key, masks };
                }
            }
        }
        FactorMode { mode: EVALUATE, n_masks: 0, n_levels: 0, key: factor.key, masks }
    }
}

impl<S> Part<S> {
    /// Memory for the factors and groups of all conditions.
    pub(super) fn reserve_factors(&mut self) -> Result<(), GpuError> {
        let orders_walks = self.orders_walks();
        let Self { plan, memory, n_rows, .. } = self;
        let (device, n_rows, n_factors) = (plan.device(), *n_rows, plan.keys.n_factors());
        memory.masks.resize_with(plan.keys.conditions.len(), GrowableBuffer::default);
        memory.level_of.room(device, n_factors * n_rows)?;
        memory.levels.room(device, n_factors * LEVELS)?;
        // Of any condition: items are at most rows, and groups are fewer than items.
        memory.groups.room(device, (3 * n_rows).max(2 * n_rows + WALK_GROUPS))?;
        if orders_walks {
            memory.n_set.room(device, plan.keys.conditions.len() * n_rows)?;
        }
        Ok(())
    }
}
