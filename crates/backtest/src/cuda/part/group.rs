//! The order in which the items of a condition are taken: those that read the same masks and columns next to each other.

use tidemill_gpu::{DevicePtr, GpuError};
use tidemill_market::indicator::device::Input;

use super::{Computed, ConditionWork, Distinct, Part, Span};
use crate::cuda::layout::{EXACT, FactorMask, GroupArgs, LEVEL, Sharer};
use crate::cuda::plan::{ConditionPlan, Place};
use crate::plan::Slot;

/// Masks and columns that decide the groups of a condition, at most.
pub(in crate::cuda) const MOST_SHARERS: usize = 8;

/// Items of a group on average, at least: about the warps that a multiprocessor works on at a time.
const GROUP: usize = 16;

impl Part<Distinct> {
    /// The columns and masks by which the items of a condition are grouped, as many as leave groups of some size. Columns come first, because
    /// bars are read here and there in them and masks are read from end to end; of either those with the fewest different ones.
    pub(super) fn sharers(
        &self,
        condition: &ConditionPlan,
        factors: &[FactorMask],
        inputs: &[Input],
    ) -> Vec<Sharer> {
        let (spans, keys) = (&self.state.spans, &self.plan.keys);
        let (mut masks, mut columns): (Vec<Sharer>, Vec<Sharer>) = (Vec::new(), Vec::new());
        // The scalars that tell the columns apart: those of one key are the same groups.
        let mut known: Vec<&[usize]> = Vec::new();
        for (plan, factor) in condition.factors.iter().zip(factors) {
            let mut add = |item_of, level_of, n_items: usize, n_levels: u32| {
                masks.push(Sharer { item_of, level_of, n_items: n_items as u32, n_levels });
            };
            match (factor.mode, &plan.threshold) {
                (EXACT, _) => add(factor.item_of, DevicePtr::NULL, spans[plan.key].all, 0),
                (LEVEL, Some(threshold)) => {
                    add(factor.item_of, factor.level_of, spans[threshold.key].all, factor.n_levels);
                }
                _ => {
                    for slot in self.columns_read(&plan.slots, inputs) {
                        let Place::Pool { pool, key } = keys.places[slot] else { continue };
                        let scalars = &keys.keys[key].scalars[..];
                        if !known.contains(&scalars) {
                            known.push(scalars);
                            let (item_of, n_items) = (inputs[slot].item_of, keys.n_items(pool, spans) as u32);
                            columns.push(Sharer { item_of, level_of: DevicePtr::NULL, n_items, n_levels: 0 });
                        }
                    }
                }
            }
        }
        columns.sort_by_key(Sharer::n_different);
        masks.sort_by_key(Sharer::n_different);
        let mut n_groups = 1;
        let fits = |sharer: &Sharer| {
            let n_more = sharer.n_different();
            let does = n_more > 1 && n_groups * n_more * GROUP <= spans[condition.whole].all;
            n_groups *= if does { n_more } else { 1 };
            does
        };
        columns.into_iter().chain(masks).filter(fits).take(MOST_SHARERS).collect()
    }

    /// The columns that some slots are read from: their own, or where they have none what they are computed from.
    fn columns_read(&self, slots: &[usize], inputs: &[Input]) -> Vec<usize> {
        let read = |slot: &usize| match &self.plan.plan.slots[*slot] {
            Slot::Call { inputs: of_call, .. } if inputs[*slot].pool.is_null() => of_call.clone(),
            _ => vec![*slot],
        };
        slots.iter().flat_map(read).collect()
    }
}

impl Sharer {
    /// How many there are: items, each without a level or with one.
    fn n_different(&self) -> usize {
        self.n_items as usize * (self.n_levels as usize + 1)
    }
}

impl Part<Computed> {
    /// Finds the order of the items of a condition; null where there is nothing to group by.
    pub(super) fn group(&self, span: Span, work: &ConditionWork) -> Result<DevicePtr<u32>, GpuError> {
        if work.sharers.is_empty() {
            return Ok(DevicePtr::NULL);
        }
        let n_groups: usize = work.sharers.iter().map(Sharer::n_different).product();
        let group_of = self.memory.groups.ptr();
        let (counts, order) = (group_of.add(span.all), group_of.add(span.all + n_groups));
        let args = GroupArgs {
            sharers: work.sharers_at,
            row: span.row,
            group_of,
            counts,
            order,
            count: span.all as u32,
            n_sharers: work.sharers.len() as u32,
            n_groups: n_groups as u32,
            unused: 0,
        };
        self.memory.groups.fill(&self.stream, span.all..span.all + n_groups, 0)?;
        let kernels = &self.plan.kernels;
        kernels.group_count(&self.stream, &args)?;
        kernels.group_begin(&self.stream, &args)?;
        kernels.group_place(&self.stream, &args)?;
        Ok(order)
    }
}
