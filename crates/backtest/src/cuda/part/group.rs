//! The order in which the items of a condition are taken: those that read the same masks and columns next to each other.

use tidemill_gpu::{DevicePtr, GpuError};
use tidemill_market::indicator::device::Input;

use super::{Computed, ConditionWork, Distinct, Part, Span};
use crate::cuda::layout::{EXACT, FactorMask, GroupArgs, LEVEL, Sharer};
use crate::cuda::plan::{ConditionPlan, Place};

/// Masks and columns that decide the groups of a condition, at most.
pub(in crate::cuda) const MOST_SHARERS: usize = 8;

/// Items of a group on average, at least: about the warps that a multiprocessor works on at a time.
const GROUP: usize = 16;

impl Part<Distinct> {
    /// The masks and columns by which the items of a condition are grouped: those with the fewest different ones first, as many as
    /// leave groups of some size.
    pub(super) fn sharers(
        &self,
        condition: &ConditionPlan,
        factors: &[FactorMask],
        inputs: &[Input],
    ) -> Vec<Sharer> {
        let (spans, keys) = (&self.state.spans, &self.plan.keys);
        let mut all: Vec<(usize, Sharer)> = Vec::new();
        for (plan, factor) in condition.factors.iter().zip(factors) {
            let mut add = |item_of, level_of, n_items: usize, n_levels: u32| {
                let sharer = Sharer { item_of, level_of, n_items: n_items as u32, n_levels };
                all.push((sharer.n_different(), sharer));
            };
            match (factor.mode, &plan.threshold) {
                (EXACT, _) => add(factor.item_of, DevicePtr::NULL, spans[plan.key].all, 0),
                (LEVEL, Some(threshold)) => {
                    add(factor.item_of, factor.level_of, spans[threshold.key].all, factor.n_levels);
                }
                _ => {
                    for slot in &plan.slots {
                        if let Place::Pool { pool, .. } = keys.places[*slot]
                            && !inputs[*slot].pool.is_null()
                        {
                            add(inputs[*slot].item_of, DevicePtr::NULL, keys.n_items(pool, spans), 0);
                        }
                    }
                }
            }
        }
        all.sort_by_key(|(n_different, _)| *n_different);
        let mut n_groups = 1;
        let fits = |(n_different, _): &(usize, Sharer)| {
            n_groups *= n_different;
            n_groups * GROUP <= spans[condition.whole].all
        };
        let chosen: Vec<(usize, Sharer)> = all.into_iter().filter(|(n, _)| *n > 1).take_while(fits).collect();
        chosen.into_iter().map(|(_, sharer)| sharer).take(MOST_SHARERS).collect()
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
