//! One part of a batch on its way through the device, with its memory.
//!
//! It moves through the states below, one method per stage; all of it is only sent, and the host needs one answer in between, the numbers
//! of distinct tuples:
//!
//! | state | method | what happens |
//! |---|---|---|
//! | [`Staged`] | `look_up` | parameters become scalars, whose tuples are looked up |
//! | [`LookingUp`] | `find_distinct` | the answer: distinct tuples, and which columns are written |
//! | [`Distinct`] | `describe` | memory is reserved; the structs that kernels read are uploaded |
//! | [`Described`] | `compute_columns` | columns of new tuples |
//! | [`Computed`] | `write_masks` | masks of factors and conditions |
//! | [`Masked`] | `walk` | trades are found, booked and pooled; sums go to the host |
//! | [`Walking`] | `finish` | rounds that are still needed; outcomes |

mod column;
mod describe;
mod distinct;
pub(super) mod group;
mod mask;
mod ready;
mod result;
mod walk;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use tidemill_gpu::{Device, DevicePtr, Event, GpuError, Stream};
use tidemill_market::indicator::device::Input;
use tidemill_search::Points;

use super::Stage;
use super::detail::Recording;
use super::layout::{BookArgs, ConditionMask, FactorMask, Sharer, WalkArgs, World};
use super::mark::Marks;
use super::memory::Memory;
use super::plan::DevicePlan;

/// One part of a batch; `S` says how far it has come.
pub(super) struct Part<S> {
    pub(super) plan: Arc<DevicePlan>,
    pub(super) stream: Stream,
    pub(super) memory: Memory,
    pub(super) lane: usize,
    /// Which of the submissions it belongs to.
    pub(super) job: u64,
    /// How many parts compute while it does, itself among them, if there are so many.
    pub(super) n_computing: usize,
    pub(super) n_trials: usize,
    /// A row for each trial and timeframe.
    pub(super) n_rows: usize,
    /// The lane's share of all memory that may be used.
    pub(super) share: usize,
    /// When each stage begins; each ends with the beginning of the next.
    pub(super) marks: Marks,
    /// What the kernels found, if details are requested.
    pub(super) recording: Option<Recording>,
    pub(super) state: S,
}

/// Points that have a lane.
#[derive(Clone)]
pub(super) struct Staged {
    pub(super) points: Arc<Points>,
    pub(super) range: Range<usize>,
}

/// The tuples are being looked up.
pub(super) struct LookingUp {
    staged: Staged,
    answer: Answer,
}

/// Where the numbers of distinct tuples will be.
struct Answer {
    /// For each key: items, places and rows.
    rows: DevicePtr<u32>,
    /// Numbers that stand before those of the keys.
    n_counts: usize,
    found: Event,
}

/// Distinct tuples are known, and so is which pools are written out as columns.
pub(super) struct Distinct {
    spans: Vec<Span>,
    written: Vec<bool>,
}

/// All memory is reserved, and the structs that kernels read are on the device.
pub(super) struct Described {
    spans: Vec<Span>,
    inputs: Vec<Input>,
    /// By grid.
    worlds: Vec<DevicePtr<World>>,
    conditions: Vec<ConditionWork>,
    condition_masks: DevicePtr<ConditionMask>,
}

/// The columns are sent.
pub(super) struct Computed(Described);

/// The masks are sent.
pub(super) struct Masked {
    world: DevicePtr<World>,
    condition_masks: DevicePtr<ConditionMask>,
    /// The order in which trials are walked, or null.
    order: DevicePtr<u32>,
    masked: Option<Event>,
}

/// The walks are sent, and what is to be done with their trades.
pub(super) struct Walking {
    walk: WalkArgs,
    book: BookArgs,
    /// When its masks are written, if others should wait for them.
    masked: Option<Event>,
    done: Event,
}

/// What the distinct tuples of a part are, for one key.
#[derive(Clone, Copy)]
pub(super) struct Span {
    known: usize,
    pub(super) all: usize,
    pub(super) item_of: DevicePtr<u32>,
    row: DevicePtr<u32>,
}

impl Span {
    fn n_new(&self) -> usize {
        self.all - self.known
    }
}

/// How the masks of a condition are made.
struct ConditionWork {
    factors: Vec<FactorMask>,
    factors_at: DevicePtr<FactorMask>,
    sharers: Vec<Sharer>,
    sharers_at: DevicePtr<Sharer>,
    mask: ConditionMask,
}

impl<S> Part<S> {
    /// The same part in its next state.
    fn advance<T>(self, next: impl FnOnce(S) -> T) -> Part<T> {
        let Self {
            plan,
            stream,
            memory,
            lane,
            job,
            n_computing,
            n_trials,
            n_rows,
            share,
            marks,
            recording,
            state,
        } = self;
        let state = next(state);
        Part {
            plan,
            stream,
            memory,
            lane,
            job,
            n_computing,
            n_trials,
            n_rows,
            share,
            marks,
            recording,
            state,
        }
    }

    /// Notes that a stage begins here.
    fn mark(&mut self, stage: Stage) -> Result<(), GpuError> {
        self.marks.add(stage, &self.stream).map(|_| ())
    }

    /// Warps that book one trial.
    fn n_books(&self) -> usize {
        self.plan.segments.n_books(self.n_trials)
    }

    /// Walks of all trials and segments.
    pub(super) fn n_walks(&self) -> usize {
        self.n_trials * self.plan.segments.len()
    }
}

/// Parts that were sent, in their order.
pub(super) struct UnderWay {
    device: Device,
    parts: VecDeque<Part<Walking>>,
}

impl UnderWay {
    pub(super) fn new(device: &Device) -> Self {
        Self { device: device.clone(), parts: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn push(&mut self, part: Part<Walking>) {
        self.parts.push_back(part);
    }

    pub(super) fn pop(&mut self) -> Option<Part<Walking>> {
        self.parts.pop_front()
    }

    /// What the next part has to wait for: the end of the part so many before it, so that no more compute side by side; and the masks of the
    /// last one, if these fill the device.
    pub(super) fn turn(&self, n_computing: usize) -> impl Iterator<Item = &Event> {
        let last = self.parts.back().and_then(|part| part.state.masked.as_ref());
        let before = self.parts.len().checked_sub(n_computing).and_then(|at| self.parts.get(at));
        before.map(|part| &part.state.done).into_iter().chain(last)
    }

    /// Whether there is an oldest one that is done.
    pub(super) fn is_done(&self) -> Result<bool, GpuError> {
        self.parts.front().map_or(Ok(false), |part| part.state.done.is_done())
    }

    /// Lets everything come to its end, so that columns may be moved or forgotten.
    pub(super) fn settle(&mut self) -> Result<(), GpuError> {
        self.parts.iter_mut().try_for_each(Part::walk_on)?;
        self.device.synchronize()
    }
}
