//! What is decided once about a strategy on a device, and never changes: which tuples tell items apart, where the items of each slot are,
//! and how conditions fall into factors.

use tidemill_gpu::{Context, Device, DeviceBuffer, GpuError};

use super::data::{Data, timeframes};
use super::kernel::Kernels;
use super::part::Span;
use super::part::group::MOST_SHARERS;
use super::{DeviceOptions, code, layout};
use crate::exec::engine::Engine;
use crate::graph::Op2;
use crate::plan::{KeyParts, Plan, Slot};
use crate::segment::Role;
use crate::strategy::Strategy;
use crate::tally::Tally;

/// A strategy over data, ready for a device.
pub(super) struct DevicePlan {
    pub(super) context: Context,
    pub(super) plan: Plan,
    pub(super) kernels: Kernels,
    pub(super) data: Data,
    pub(super) keys: Keys,
    /// Scalars of all keys, one list after the other.
    pub(super) tuples: DeviceBuffer<u32>,
    pub(super) segments: SegmentPlan,
    pub(super) n_params: usize,
    pub(super) n_timeframes: usize,
    pub(super) options: DeviceOptions,
    /// Memory that may be used in all.
    pub(super) budget: usize,
}

/// Which tuples of scalars decide what is shared.
#[derive(Default)]
pub(super) struct Keys {
    /// By slot.
    pub(super) places: Vec<Place>,
    pub(super) pools: Vec<PoolPlan>,
    pub(super) keys: Vec<KeyPlan>,
    pub(super) conditions: Vec<ConditionPlan>,
}

/// Where a slot's items are.
pub(super) enum Place {
    /// A series of the data, at this bar of the buffer of sources.
    Source(usize),
    /// A pool, and which of the keys tells the items.
    Pool { pool: usize, key: usize },
}

/// The columns of one formula, or its masks.
pub(super) struct PoolPlan {
    shape: u32,
    /// Numbers of 8 bytes in one item.
    pub(super) stride: usize,
    /// Scalars in a tuple.
    pub(super) n_scalars: usize,
    /// The keys that tell its items.
    pub(super) keys: Vec<usize>,
}

/// One key: the tuple that decides what is shared.
pub(super) struct KeyPlan {
    pub(super) scalars: Vec<usize>,
    /// Where its scalars begin in [`DevicePlan::tuples`].
    pub(super) tuple_at: usize,
    /// The pool that keeps its items, or none where they are the batch's own.
    pub(super) pool: Option<usize>,
    /// Keys of one pool are looked up one after the other.
    pub(super) wave: usize,
}

/// Keys of a condition and of its factors.
pub(super) struct ConditionPlan {
    pub(super) whole: usize,
    pub(super) factors: Vec<FactorPlan>,
}

pub(super) struct FactorPlan {
    /// Among the factors of all conditions.
    pub(super) number: usize,
    pub(super) key: usize,
    /// The columns that it reads.
    pub(super) slots: Vec<usize>,
    pub(super) threshold: Option<ThresholdPlan>,
    /// The share of all bars that factors before it leave to test, as far as their formulas tell.
    pub(super) reach: f64,
}

/// A factor that compares a series with a number.
pub(super) struct ThresholdPlan {
    /// Key of the series.
    pub(super) key: usize,
    /// The number.
    pub(super) scalar: usize,
    /// Whether the series must be above it.
    pub(super) above: bool,
}

/// The segments that trials walk through, and how their results are put together.
pub(super) struct SegmentPlan {
    pub(super) roles: Vec<Role>,
    /// By role.
    pub(super) n_symbols: [u32; 2],
    /// First and last day of the calendar on which a segment of each role has a bar.
    pub(super) days_of: [(u32, u32); 2],
    pub(super) n_days: usize,
    /// Blocks of time that results are kept by.
    pub(super) n_blocks: usize,
    /// Most memory for the daily returns of a part.
    most_daily_bytes: usize,
}

impl DevicePlan {
    /// Compiles a strategy for a device and takes its data there.
    pub(super) fn new(
        context: Context,
        engine: &Engine<'_>,
        strategy: &Strategy,
        options: DeviceOptions,
    ) -> Result<Self, GpuError> {
        let device = context.device();
        let plan = Plan::with_all_slots(&engine.program);
        let timeframes = timeframes(engine, &plan);
        let kernels = Kernels::load(device, &plan, strategy, &timeframes)?;
        let data = Data::new(device, engine, &plan, &timeframes)?;
        let mut tuples = Vec::new();
        let keys = Keys::new(&plan, &data, &mut tuples);
        let tuples = device.alloc_from(&tuples)?;
        let budget = context.free_bytes()?;
        Ok(Self {
            context,
            kernels,
            keys,
            tuples,
            segments: SegmentPlan::new(engine, options.most_daily_bytes.min(budget / 16)),
            n_params: strategy.params.len(),
            n_timeframes: timeframes.len(),
            options,
            budget,
            plan,
            data,
        })
    }

    pub(super) fn device(&self) -> &Device {
        self.context.device()
    }

    /// Most trials of one part: what fits a lane's share of the memory if nothing is shared, and not more than are wanted.
    pub(super) fn most_trials(&self, n_trials: usize, n_lanes: usize) -> usize {
        let n_segments = self.segments.len();
        let per_row = self.plan.scalars.len() * 8
            + self.keys.keys.len() * 12
            + self.keys.conditions.len() * self.data.walked().n_words * 8;
        let per_trial = per_row * self.n_timeframes
            + (self.n_params + 4 * self.segments.n_blocks) * 8
            + n_segments
                * (size_of::<layout::WalkState>() + 2 * size_of::<Tally>() + 16 * size_of::<layout::Trade>())
            + (size_of::<layout::BookState>() + 2 * 8 * self.segments.n_days)
                * self.segments.n_books(n_trials).max(1);
        let fits = self.budget / 3 / n_lanes / per_trial.max(1);
        fits.clamp(1, self.options.most_trials.max(1)).min(n_trials.max(1))
    }

    /// Memory for the small structs of a part.
    pub(super) fn struct_bytes(&self) -> usize {
        let n_conditions = self.keys.conditions.len();
        4096 + 192 * self.data.grids.len()
            + 128
                * (self.keys.keys.len()
                    + self.plan.slots.len()
                    + (1 + MOST_SHARERS) * n_conditions
                    + self.keys.n_factors())
    }
}

impl Keys {
    /// Keys of all slots, conditions and factors; pools of all shapes. The scalars of the keys go to `tuples`.
    fn new(plan: &Plan, data: &Data, tuples: &mut Vec<u32>) -> Self {
        let mut out = Self::default();
        for (at, slot) in plan.slots.iter().enumerate() {
            let grid = &data.grids[plan.grid_of[at]];
            let place = match slot {
                Slot::Source(_) => Place::Source(data.source_at[at]),
                Slot::Call { func, key, .. } => {
                    let (n_bars, n_symbols) = (grid.n_bars as u32, grid.n_symbols as u32);
                    out.add_pooled(key, func.output().stride(n_bars, n_symbols) as usize, tuples)
                }
                Slot::Formula { key, .. }
                | Slot::Recur { key, .. }
                | Slot::Gather { key, .. }
                | Slot::Over { key, .. } => out.add_pooled(key, grid.n_bars, tuples),
                Slot::Mask { key, .. } => out.add_pooled(key, grid.n_words, tuples),
            };
            out.places.push(place);
        }
        let mut number = 0;
        for condition in plan.conditions() {
            let whole = out.add(&condition.whole.key, None, 0, tuples);
            let mut factors = Vec::new();
            let mut reach = 1.0;
            for factor in code::factors(condition) {
                let key = out.add(&factor.itself.key, None, 0, tuples);
                let threshold = factor.threshold.as_ref().map(|threshold| ThresholdPlan {
                    key: out.add(&threshold.series.key, None, 0, tuples),
                    scalar: threshold.scalar,
                    above: matches!(threshold.op, Op2::Gt | Op2::Ge),
                });
                factors.push(FactorPlan { number, key, slots: factor.itself.tape.slots(), threshold, reach });
                number += 1;
                reach *= factor.itself.tape.chance();
            }
            out.conditions.push(ConditionPlan { whole, factors });
        }
        out
    }

    /// Adds a key whose items are kept in the pool of its shape. A mask and a column of one formula are two things.
    fn add_pooled(&mut self, parts: &KeyParts, stride: usize, tuples: &mut Vec<u32>) -> Place {
        let known = self.pools.iter().position(|pool| pool.shape == parts.shape && pool.stride == stride);
        let pool = known.unwrap_or_else(|| {
            let n_scalars = parts.scalars.len();
            self.pools.push(PoolPlan { shape: parts.shape, stride, n_scalars, keys: Vec::new() });
            self.pools.len() - 1
        });
        let key = self.add(parts, Some(pool), self.pools[pool].keys.len(), tuples);
        self.pools[pool].keys.push(key);
        Place::Pool { pool, key }
    }

    fn add(&mut self, parts: &KeyParts, pool: Option<usize>, wave: usize, tuples: &mut Vec<u32>) -> usize {
        let scalars = parts.scalars.clone();
        let key = KeyPlan { scalars, tuple_at: tuples.len(), pool, wave };
        tuples.extend(parts.scalars.iter().map(|scalar| *scalar as u32));
        self.keys.push(key);
        self.keys.len() - 1
    }

    pub(super) fn n_factors(&self) -> usize {
        self.conditions.iter().map(|condition| condition.factors.len()).sum()
    }

    /// Items of a pool after a part.
    pub(super) fn n_items(&self, pool: usize, spans: &[Span]) -> usize {
        self.pools[pool].keys.iter().map(|key| spans[*key].all).max().unwrap_or(0)
    }
}

impl SegmentPlan {
    fn new(engine: &Engine<'_>, most_daily_bytes: usize) -> Self {
        Self {
            roles: engine.segments().iter().map(|segment| segment.role).collect(),
            n_symbols: engine.n_symbols.map(|n| n as u32),
            days_of: [Role::Train, Role::Test].map(|role| engine.days_of(role)),
            n_days: engine.n_days,
            n_blocks: engine.blocks.days.len(),
            most_daily_bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.roles.len()
    }

    /// Segments that one warp books: one, unless the daily returns of all of them would take too much memory; then all.
    pub(super) fn n_each(&self, n_trials: usize) -> usize {
        let is_pooled = self.is_pooled(Role::Train) || self.is_pooled(Role::Test);
        let is_much = n_trials * self.len() * self.n_days * 8 > self.most_daily_bytes;
        if is_pooled && is_much { self.len() } else { 1 }
    }

    /// Warps that book one trial.
    pub(super) fn n_books(&self, n_trials: usize) -> usize {
        self.len() / self.n_each(n_trials)
    }

    /// Whether the segments of a role are pooled; one alone is its own result.
    pub(super) fn is_pooled(&self, role: Role) -> bool {
        self.roles.iter().filter(|of| **of == role).count() > 1
    }
}
