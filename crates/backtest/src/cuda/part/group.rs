//! The order in which the items of a condition are taken, those that read the same masks and columns next to each other; and that in which trials
//! are walked, those with about as many entries next to each other.

use tidemill_gpu::{DevicePtr, GpuError};
use tidemill_market::indicator::device::Input;

use super::{Computed, ConditionWork, Distinct, Part, Span};
use crate::cuda::layout::{EXACT, FactorMask, GroupArgs, LEVEL, OrderArgs, Sharer};
use crate::cuda::plan::{ConditionPlan, Place};
use crate::plan::Slot;

/// Masks and columns that decide the groups of a condition, at most.
pub(in crate::cuda) const MOST_SHARERS: usize = 8;

/// Groups of trials that have about as many entries.
pub(super) const WALK_GROUPS: usize = 1024;

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

impl<S> Part<S> {
    /// Whether trials are walked in an order of their own: where some walks wait for others. Those that are under way all at the same time would
    /// be long ones on some multiprocessors and short ones on others.
    pub(super) fn orders_walks(&self) -> bool {
        let options = &self.plan.options;
        let in_turn = || self.plan.kernels.walks_in_turn(self.n_walks(), options.walk_threads);
        options.orders_walks.unwrap_or_else(in_turn)
    }
}

impl Part<Computed> {
    /// Finds the order in which trials are walked; null where they are walked as they come.
    pub(super) fn order_walks(&self) -> Result<DevicePtr<u32>, GpuError> {
        if !self.orders_walks() {
            return Ok(DevicePtr::NULL);
        }
        let (kernels, n_trials) = (&self.plan.kernels, self.n_trials);
        let args = self.groups(n_trials, WALK_GROUPS)?;
        let GroupArgs { group_of, counts, n_groups, .. } = args;
        let conditions = self.state.0.condition_masks;
        let order = OrderArgs { conditions, group_of, counts, n_trials: n_trials as u32, n_groups };
        kernels.order_walks(&self.stream, &order)?;
        kernels.group_begin(&self.stream, &args)?;
        kernels.group_place(&self.stream, &args)?;
        Ok(args.order)
    }

    /// Room for so many items and groups, of which none has an item.
    fn groups(&self, n_items: usize, n_groups: usize) -> Result<GroupArgs, GpuError> {
        let group_of = self.memory.groups.ptr();
        self.memory.groups.fill(&self.stream, n_items..n_items + n_groups, 0)?;
        Ok(GroupArgs {
            sharers: DevicePtr::NULL,
            row: DevicePtr::NULL,
            group_of,
            counts: group_of.add(n_items),
            order: group_of.add(n_items + n_groups),
            count: n_items as u32,
            n_sharers: 0,
            n_groups: n_groups as u32,
            unused: 0,
        })
    }

    /// Finds the order of the items of a condition; null where there is nothing to group by.
    pub(super) fn group(&self, span: Span, work: &ConditionWork) -> Result<DevicePtr<u32>, GpuError> {
        if work.sharers.is_empty() {
            return Ok(DevicePtr::NULL);
        }
        let n_groups: usize = work.sharers.iter().map(Sharer::n_different).product();
        let args = GroupArgs {
            sharers: work.sharers_at,
            row: span.row,
            n_sharers: work.sharers.len() as u32,
            ..self.groups(span.all, n_groups)?
        };
        let kernels = &self.plan.kernels;
        kernels.group_count(&self.stream, &args)?;
        kernels.group_begin(&self.stream, &args)?;
        kernels.group_place(&self.stream, &args)?;
        Ok(args.order)
    }
}
