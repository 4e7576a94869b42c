//! The CUDA executor: the same plan and the same bits as [`Engine`], for many trials at once.
//!
//! A batch goes through five steps on the device: parameters become scalars; distinct tuples of them are found; the columns and masks of new
//! tuples are computed; groups of lanes, or blocks where there are few, walk the trials; a warp per trial books them. The host decides between the second and the third
//! step how much memory is needed, and nothing per trial.
//!
//! Three things have a part in it. `DevicePlan` is what is decided once: keys, places, conditions, kernels, data. `ColumnStore` is the
//! memory that stays from batch to batch. A `Part` is as much of a batch as fits at once, with memory of its own; it moves through one
//! state after the other. [`DeviceEngine`] cuts batches into parts, gives each a lane, and puts the outcomes together.

mod code;
mod column_store;
mod constant;
mod data;
mod detail;
mod formula;
mod job;
mod kernel;
mod layout;
mod mark;
mod memory;
mod module;
mod part;
mod plan;
mod pool;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tidemill_gpu::{Context, ContextOptions, Device, GpuError, Stream, StreamMode};
use tidemill_search::Points;

use crate::exec::engine::{Engine, Outcome};
use crate::strategy::Strategy;
use column_store::ColumnStore;
use detail::Recording;
pub use detail::{DeviceDetail, FoundTrade};
use job::Job;
use mark::Marks;
use memory::Memory;
pub use module::{column_source, device_sources};
use part::{LookingUp, Part, Staged, UnderWay};
use plan::DevicePlan;

/// Parts that take the device less are short beside what the host does between them, a millisecond or two.
const SHORT_MS: f64 = 4.0;

/// Settings that change no number.
#[derive(Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Streams: as many batches, or parts of one, are on the device at a time. And the share of the free memory that may be used.
    pub context: ContextOptions,
    /// Most trials of one part.
    pub most_trials: usize,
    /// Most trades of a trial and segment that are kept before they are booked.
    pub most_trades: usize,
    /// Most memory for the daily returns of a part; where its segments have more, those of a trial are booked one after the other.
    pub most_daily_bytes: usize,
    /// Threads that walk one trial through one segment together: as many as fill the device if it is not given, a few lanes if there are less
    /// than 64.
    pub walk_threads: Option<usize>,
    /// Bars of the stretches in which recursions walk a symbol side by side: such that the device is full if it is not given.
    pub stretch_bars: Option<usize>,
    /// Trials, of each timeframe, up to which one block finds the distinct tuples of a key.
    pub most_chained: usize,
    /// Whether trials are walked in the order of their entries; `None`: where they are more than the device walks at a time.
    pub orders_walks: Option<bool>,
    /// Trials of the usual submission: its memory is taken before the first one, if there is enough.
    pub usual_trials: usize,
    /// Leaves out of outcomes what each segment gave, if every role has several and only their pool is asked for.
    pub pools_alone: bool,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            context: ContextOptions::parallel(2),
            // Enough to fill every device; more, and the host would have nothing to do until all of them are done.
            most_trials: 1 << 17,
            most_trades: 1 << 20,
            most_daily_bytes: 2 << 30,
            walk_threads: None,
            stretch_bars: None,
            most_chained: 8192,
            orders_walks: None,
            usual_trials: 0,
            pools_alone: false,
        }
    }
}

/// What the device does for a part of a batch, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Parameters go to the device.
    Upload,
    /// Scalars, and their distinct tuples.
    Distinct,
    /// Nothing: the host decides, or another part goes first.
    Wait,
    /// Columns of new tuples.
    Columns,
    /// Masks of factors and conditions.
    Masks,
    /// Trades are found.
    Walk,
    /// Trades are booked.
    Book,
    /// Segments are pooled, sums go to the host.
    Download,
}

/// When a stage of a part ran, in milliseconds since the engine was made.
#[derive(Clone, Copy, Debug)]
pub struct StageSpan {
    /// The stage.
    pub stage: Stage,
    /// The lane.
    pub lane: usize,
    /// Which of the submissions it belongs to, from 0.
    pub job: u64,
    /// Its begin, since [`DeviceEngine::began`].
    pub begin_ms: f64,
    /// End, on the same clock.
    pub end_ms: f64,
    /// The share of the device that its kernels filled, 0 to 1; 0 if it had none.
    pub fill: f64,
}

/// A strategy over data, on one device.
pub struct DeviceEngine {
    plan: Arc<DevicePlan>,
    columns: ColumnStore,
    lanes: Vec<Lane>,
    /// How many parts compute side by side.
    n_computing: usize,
    under_way: UnderWay,
    /// The part that was begun last, until its tuples are found.
    looking_up: Option<Part<LookingUp>>,
    jobs: VecDeque<Job>,
    /// The most of them that there were at a time.
    most_jobs: usize,
    /// How long the device took for the part that was finished last, if it was as long as others that computed beside it.
    part_ms: f64,
    /// Submissions that were collected.
    n_collected: u64,
    began: Instant,
    /// The same moment in the timeline of the context.
    began_ms: f64,
    spans: Vec<StageSpan>,
    /// The details of trials, while they are being computed.
    details: Option<Vec<DeviceDetail>>,
}

/// Room for one part.
enum Lane {
    Empty,
    /// Stream and memory of the last part, for the next one.
    Idle(Stream, Box<Memory>),
    Busy,
}

impl DeviceEngine {
    /// Compiles a strategy for a device and takes its data there.
    pub fn new(
        device: &Device,
        engine: &Engine<'_>,
        strategy: &Strategy,
        options: DeviceOptions,
    ) -> Result<Self, GpuError> {
        let context = Context::new(device, options.context)?;
        let plan = Arc::new(DevicePlan::new(context, engine, strategy, options)?);
        let columns = ColumnStore::new(plan.clone())?;
        let began_ms = plan.context.timeline().at(&columns.stream().record()?)?;
        let mut out = Self {
            began: Instant::now(),
            began_ms,
            plan,
            columns,
            lanes: Vec::new(),
            n_computing: options.context.n_lanes(),
            under_way: UnderWay::new(device),
            looking_up: None,
            jobs: VecDeque::new(),
            most_jobs: 0,
            part_ms: 0.0,
            n_collected: 0,
            spans: Vec::new(),
            details: None,
        };
        out.grow_or_shrink_lanes();
        out.get_ready();
        Ok(out)
    }

    /// Takes the memory of the usual submission for all lanes. Pinning and mapping it takes as long as a few small batches, and the device would
    /// have nothing to do meanwhile. Where it does not fit, the first submissions find out.
    fn get_ready(&mut self) {
        if self.plan.options.usual_trials == 0 {
            return;
        }
        let n_trials = self.plan.most_trials(self.plan.options.usual_trials, self.lanes.len());
        for lane in 0..self.lanes.len() {
            let ready = self.staged(lane, 0, Arc::default(), 0..n_trials);
            match ready.and_then(|part| part.get_ready(&mut self.columns, &mut self.under_way)) {
                Ok((stream, memory)) => self.lanes[lane] = Lane::Idle(stream, Box::new(memory)),
                Err(_) => return self.release_memory(),
            }
        }
    }

    /// A part on a lane that is not busy, with the memory of the one before it.
    fn staged(
        &mut self,
        lane: usize,
        job: u64,
        points: Arc<Points>,
        range: Range<usize>,
    ) -> Result<Part<Staged>, GpuError> {
        let (stream, memory) = match std::mem::replace(&mut self.lanes[lane], Lane::Empty) {
            Lane::Idle(stream, memory) => (stream, *memory),
            Lane::Empty | Lane::Busy => (self.plan.context.pool().lane(lane)?, Memory::default()),
        };
        Ok(Part {
            plan: self.plan.clone(),
            stream,
            memory,
            lane,
            job,
            n_computing: 1,
            n_trials: range.len(),
            n_rows: range.len() * self.plan.n_timeframes,
            share: self.plan.budget / self.lanes.len(),
            marks: Marks::default(),
            recording: self.details.as_ref().map(|_| Recording::default()),
            state: Staged { points, range },
        })
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        self.plan.device()
    }

    /// Takes on points; they are begun as soon as the device has room for them.
    pub fn submit(&mut self, points: Arc<Points>) -> Result<(), GpuError> {
        let most = self.plan.most_trials(points.len(), self.lanes.len());
        self.jobs.push_back(Job::new(points, most));
        self.most_jobs = self.most_jobs.max(self.jobs.len());
        self.begin_waiting()
    }

    /// Waits for the oldest submitted points, and returns their results in order.
    pub fn collect(&mut self) -> Result<Vec<Outcome>, GpuError> {
        self.wait_until(Job::is_done)?;
        Ok(self.give())
    }

    /// Waits for some of the oldest submitted points, as many as were computed at a time, and returns their results: those of the points that
    /// follow the ones of the last call. So the host can go on with these while the device works on others.
    pub fn collect_some(&mut self) -> Result<Vec<Outcome>, GpuError> {
        self.wait_until(|job| job.is_done() || !job.outcomes.is_empty())?;
        Ok(self.give())
    }

    /// Waits until there is enough of the oldest submitted points.
    fn wait_until(&mut self, is_enough: impl Fn(&Job) -> bool) -> Result<(), GpuError> {
        loop {
            match self.jobs.front() {
                Some(job) if !is_enough(job) => self.begin_waiting()?,
                _ => return Ok(()),
            }
            match (&self.looking_up, self.under_way.is_done()?) {
                // Its kernels come first, unless results are there already: the device may have no others.
                (Some(part), false) => part.wait()?,
                (_, is_done) => {
                    if let (false, Some(job)) = (is_done, self.jobs.front_mut()) {
                        job.map_memory();
                    }
                    self.finish_oldest()?;
                }
            }
        }
    }

    /// The results of the oldest submitted points that are there.
    fn give(&mut self) -> Vec<Outcome> {
        let Some(job) = self.jobs.front_mut() else { return Vec::new() };
        let outcomes = job.give();
        if job.is_done() {
            self.jobs.pop_front();
            self.n_collected += 1;
        }
        outcomes
    }

    /// Whether [`collect`](Self::collect) would not have to wait long. Begins what can be begun, so that asking again and again is as good as
    /// waiting. Where tuples were looked up their kernels are sent first, because the device may have nothing else to do; until then there is
    /// time for results.
    pub fn is_ready(&mut self) -> Result<bool, GpuError> {
        self.begin_waiting()?;
        Ok((self.under_way.is_empty() && self.looking_up.is_none()) || self.under_way.is_done()?)
    }

    /// When its time began: spans are counted from here.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// How many parts compute at a time, at least one. No result depends on it.
    pub fn set_lanes(&mut self, n_lanes: usize) {
        self.n_computing = n_lanes.max(1);
        self.grow_or_shrink_lanes();
    }

    /// There is a lane more than compute: its part is sent, and begins when another is done, without the host. Busy lanes stay until they are
    /// done.
    fn grow_or_shrink_lanes(&mut self) {
        let wanted = match self.plan.options.context.mode {
            StreamMode::Sequential => 1,
            StreamMode::Parallel => self.n_computing + 1,
        };
        while self.lanes.len() > wanted && self.lanes.last().is_some_and(|lane| !lane.is_busy()) {
            self.lanes.pop();
        }
        if self.lanes.len() < wanted {
            self.lanes.resize_with(wanted, || Lane::Empty);
        }
    }

    /// When the stages of all parts collected since the last call ran.
    pub fn take_spans(&mut self) -> Vec<StageSpan> {
        std::mem::take(&mut self.spans)
    }

    /// Forgets all columns, as though nothing had been evaluated yet.
    pub fn clear(&mut self) -> Result<(), GpuError> {
        self.plan.device().synchronize()?;
        self.columns.clear()
    }

    /// Evaluates points; results in their order.
    pub fn evaluate(&mut self, points: &Points) -> Result<Vec<Outcome>, GpuError> {
        self.submit(Arc::new(points.clone()))?;
        self.collect()
    }

    /// Begins as many parts of what was submitted as there are lanes for, and goes on with the one whose tuples were looked up. Does not wait for
    /// the device unless memory has run out.
    pub fn begin_waiting(&mut self) -> Result<(), GpuError> {
        self.grow_or_shrink_lanes();
        loop {
            if let Some(part) = self.looking_up.take() {
                if !part.is_found()? {
                    self.looking_up = Some(part);
                    return Ok(());
                }
                self.go_on(part)?;
                continue;
            }
            let Some(lane) = self.lanes.iter().position(|lane| !lane.is_busy()) else { return Ok(()) };
            let Some(job) = self.jobs.iter().position(|job| !job.waiting.is_empty()) else { return Ok(()) };
            let Some(range) = self.jobs[job].waiting.pop_front() else { return Ok(()) };
            self.begin(lane, job, range)?;
        }
    }

    /// Sends the points of a part to the device.
    fn begin(&mut self, lane: usize, job: usize, range: Range<usize>) -> Result<(), GpuError> {
        let points = self.jobs[job].points.clone();
        let part = self.staged(lane, self.n_collected + job as u64, points, range.clone())?;
        match part.look_up(&mut self.columns, &mut self.under_way) {
            Ok(part) => {
                self.lanes[lane] = Lane::Busy;
                self.jobs[job].n_under_way += 1;
                self.looking_up = Some(part);
                Ok(())
            }
            Err(error) => self.begin_less(error, job, range),
        }
    }

    /// Sends the rest of a part.
    fn go_on(&mut self, mut part: Part<LookingUp>) -> Result<(), GpuError> {
        let (lane, job, range) = (part.lane, (part.job - self.n_collected) as usize, part.range());
        let are_more = self.jobs.iter().any(|job| !job.waiting.is_empty());
        let most_jobs = if are_more { usize::MAX } else { self.most_jobs };
        let n_computing = n_side_by_side(self.n_computing, most_jobs, self.part_ms);
        part.n_computing = n_computing;
        let (columns, under_way) = (&mut self.columns, &mut self.under_way);
        let sent = part
            .find_distinct(columns, under_way)
            .and_then(|part| part.describe(columns, under_way))
            .and_then(|part| part.compute_columns(columns))
            .and_then(|part| part.write_masks(under_way.turn(n_computing)))
            .and_then(Part::walk);
        match sent {
            Ok(part) => {
                self.under_way.push(part);
                self.columns.make_room();
                Ok(())
            }
            Err(error) => {
                self.lanes[lane] = Lane::Empty;
                self.jobs[job].n_under_way -= 1;
                self.begin_less(error, job, range)
            }
        }
    }

    /// After a part could not be begun, of which nothing is under way and whose memory was given back. If it was too much at once, what is
    /// under way is finished first, then the part is cut in half.
    fn begin_less(&mut self, error: GpuError, job: usize, range: Range<usize>) -> Result<(), GpuError> {
        // Tuples may be in the tables whose columns were never computed.
        let _ = self.under_way.settle();
        self.columns.release();
        match error {
            GpuError::OutOfMemory { .. } if !self.under_way.is_empty() => {
                self.jobs[job].waiting.push_front(range);
                self.finish_oldest()?;
                self.release_memory();
            }
            GpuError::OutOfMemory { .. } if range.len() > 1 => {
                self.release_memory();
                let middle = range.start + range.len() / 2;
                self.jobs[job].waiting.push_front(middle..range.end);
                self.jobs[job].waiting.push_front(range.start..middle);
            }
            error => return Err(error),
        }
        Ok(())
    }

    fn finish_oldest(&mut self) -> Result<(), GpuError> {
        let Some(mut part) = self.under_way.pop() else { return Ok(()) };
        self.lanes[part.lane] = Lane::Empty;
        // Parts are finished in the order in which they were begun, and begun in their order.
        let mut none = Vec::new();
        let mut job = self.jobs.iter_mut().find(|job| job.n_under_way > 0);
        part.finish(job.as_mut().map_or(&mut none, |job| &mut job.outcomes))?;
        if let Some(job) = job {
            job.n_under_way -= 1;
        }
        let spans = part.marks.spans(part.lane, part.job, self.plan.context.timeline(), self.began_ms)?;
        let busy_ms: f64 = spans.iter().map(|span| span.end_ms - span.begin_ms).sum();
        self.part_ms = busy_ms / part.n_computing as f64;
        self.spans.extend(spans);
        if let (Some(details), Some(recording)) = (&mut self.details, part.recording) {
            details.extend(recording.details);
        }
        self.lanes[part.lane] = Lane::Idle(part.stream, Box::new(part.memory));
        Ok(())
    }

    /// Gives back what can be had again: columns and the memory of idle lanes.
    fn release_memory(&mut self) {
        if self.under_way.is_empty() && self.looking_up.is_none() {
            self.columns.release();
            self.lanes.iter_mut().for_each(|lane| *lane = Lane::Empty);
        }
    }
}

/// How many parts compute side by side, where so many may, there are so many submissions at a time, and a part takes so long. Two short ones take
/// turns: they would end together, and while the host looks at both and brings others, the device would have nothing to do.
fn n_side_by_side(n_computing: usize, most_jobs: usize, part_ms: f64) -> usize {
    if most_jobs <= 2 && part_ms < SHORT_MS { 1 } else { n_computing }
}

impl Lane {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_short_parts_take_turns() {
        assert_eq!([1, 2, 3, 4].map(|most_jobs| n_side_by_side(2, most_jobs, 1.0)), [1, 1, 2, 2]);
        // Long ones gain more by sharing the device than the host costs.
        assert_eq!(n_side_by_side(2, 2, SHORT_MS), 2);
    }
}
