//! Walks and books, in rounds: a trial may have more trades than there is room for at once.

use tidemill_gpu::{DevicePtr, GpuError};

use super::{Masked, Part, Walking};
use crate::cuda::Stage;
use crate::cuda::layout::{BookArgs, BookState, Trade, WalkArgs, WalkState};
use crate::segment::Role;
use crate::tally::Tally;

/// Trades of a walk that there is always room for, if there is memory.
const USUAL_TRADES: usize = 1024;

/// Memory for the trades of few walks: enough that one round finds them all.
const TRADE_BYTES: usize = 1 << 30;

/// Room for a round of walks.
pub(super) struct WalkRoom {
    trades: DevicePtr<Trade>,
    states: DevicePtr<WalkState>,
    /// Trades of each walk.
    capacity: usize,
}

/// Room for the books, for their sums, and for how many are open.
pub(super) struct BookRoom {
    books: DevicePtr<BookState>,
    tallies: DevicePtr<Tally>,
    n_open: DevicePtr<u32>,
}

impl Part<Masked> {
    /// Walks and books for a first round, which is the last one for most parts, and takes the sums to the host.
    pub(in crate::cuda) fn walk(mut self) -> Result<Part<Walking>, GpuError> {
        let daily = self.reserve_pooled()?;
        let has_blocks = self.reserve_blocks()?;
        let walk = self.walk_args()?;
        let book = self.book_args(&walk, daily, has_blocks)?;
        self.memory.books.fill(&self.stream, 0..self.n_trials * self.n_books(), 0)?;
        self.plan.kernels.begin_walks(&self.stream, self.n_trials, &walk)?;
        self.round(&walk, &book)?;
        self.send_results()?;
        let done = self.marks.add(Stage::Wait, &self.stream)?;
        Ok(self.advance(|Masked { masked, .. }| Walking { walk, book, masked, done }))
    }

    fn walk_args(&mut self) -> Result<WalkArgs, GpuError> {
        let WalkRoom { trades, states, capacity } = self.reserve_walks()?;
        let Self { plan, state, .. } = self;
        Ok(WalkArgs {
            world: state.world,
            segments: plan.data.segments.ptr(),
            conditions: state.condition_masks,
            trades,
            states,
            order: state.order,
            n_segments: plan.segments.len() as u32,
            capacity: capacity as u32,
        })
    }

    fn book_args(
        &mut self,
        walk: &WalkArgs,
        daily: [DevicePtr<f64>; 2],
        has_blocks: bool,
    ) -> Result<BookArgs, GpuError> {
        let BookRoom { books, tallies, n_open } = self.reserve_books()?;
        let Self { plan, memory, n_trials, .. } = self;
        // Of several segments the pool makes the blocks.
        let has_blocks = has_blocks && !plan.segments.is_pooled(Role::Train);
        Ok(BookArgs {
            world: walk.world,
            segments: walk.segments,
            trades: walk.trades,
            walks: walk.states,
            books,
            tallies,
            daily,
            blocks: if has_blocks { memory.blocks.ptr() } else { DevicePtr::NULL },
            block_of: plan.data.block_of.ptr(),
            n_open,
            order: walk.order,
            n_segments: walk.n_segments,
            capacity: walk.capacity,
            n_each: plan.segments.n_each(*n_trials) as u32,
            n_days: plan.segments.n_days as u32,
        })
    }
}

impl<S> Part<S> {
    /// Memory for the daily returns of segments that are pooled, zeroed, and for what comes of them; by role.
    pub(super) fn reserve_pooled(&mut self) -> Result<[DevicePtr<f64>; 2], GpuError> {
        let n_books = self.n_books();
        let Self { plan, memory, stream, n_trials, .. } = self;
        let mut daily = [DevicePtr::NULL; 2];
        for role in [Role::Train, Role::Test] {
            if plan.segments.is_pooled(role) {
                let at = role as usize;
                let n_returns = n_books * plan.segments.n_days * *n_trials;
                daily[at] = memory.daily[at].room(plan.device(), n_returns)?;
                memory.daily[at].fill(stream, 0..n_returns, 0)?;
                memory.pooled[at].room(plan.device(), *n_trials)?;
            }
        }
        Ok(daily)
    }

    /// Memory for the sums by block, zeroed; whether there are any.
    pub(super) fn reserve_blocks(&mut self) -> Result<bool, GpuError> {
        let n_sums = 2 * self.plan.segments.n_blocks * self.n_trials;
        if n_sums > 0 {
            self.memory.blocks.room(self.plan.device(), n_sums)?;
            self.memory.blocks.fill(&self.stream, n_sums, 0)?;
        }
        Ok(n_sums > 0)
    }

    /// Room for a round of walks.
    pub(super) fn reserve_walks(&mut self) -> Result<WalkRoom, GpuError> {
        let n_walks = self.n_walks();
        let Self { plan, memory, share, recording, .. } = self;
        let bytes_each = n_walks.max(1) * size_of::<Trade>();
        let usual =
            if recording.is_some() { USUAL_TRADES } else { (TRADE_BYTES / bytes_each).max(USUAL_TRADES) };
        let room = (*share / 4 / bytes_each).min(usual);
        let capacity = room.max(4).min(plan.options.most_trades).min(plan.data.walked().longest + 1).max(1);
        Ok(WalkRoom {
            trades: memory.trades.room(plan.device(), n_walks * capacity)?,
            states: memory.walks.room(plan.device(), n_walks)?,
            capacity,
        })
    }

    /// Room for the books.
    pub(super) fn reserve_books(&mut self) -> Result<BookRoom, GpuError> {
        let (n_walks, n_books) = (self.n_walks(), self.n_books());
        let Self { plan, memory, n_trials, .. } = self;
        Ok(BookRoom {
            books: memory.books.room(plan.device(), *n_trials * n_books)?,
            tallies: memory.tallies.room(plan.device(), n_walks)?,
            n_open: memory.n_open.room(plan.device(), 1)?,
        })
    }

    /// Walks on until every buffer is full or every walk is done, and books what was found.
    fn round(&mut self, walk: &WalkArgs, book: &BookArgs) -> Result<(), GpuError> {
        self.memory.n_open.fill(&self.stream, 1, 0)?;
        self.note_running()?;
        self.mark(Stage::Walk)?;
        self.plan.kernels.walk(&self.stream, self.n_trials, self.plan.options.walk_threads, walk)?;
        self.record_round(walk.capacity as usize)?;
        self.mark(Stage::Book)?;
        self.plan.kernels.book(&self.stream, self.n_trials, book)?;
        self.memory.n_open.download(&self.stream, 0..1)
    }
}

impl Part<Walking> {
    /// Walks on until every trial is done.
    pub(super) fn walk_on(&mut self) -> Result<(), GpuError> {
        self.state.done.wait()?;
        if self.n_open()? == 0 {
            return Ok(());
        }
        let Walking { walk, book, .. } = self.state;
        while self.n_open()? > 0 {
            self.round(&walk, &book)?;
        }
        self.send_results()
    }

    /// Books that were not done after the last round.
    fn n_open(&self) -> Result<u32, GpuError> {
        Ok(self.memory.n_open.host()?.first().copied().unwrap_or(0))
    }
}
