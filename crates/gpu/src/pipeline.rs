//! Batches through stages, several in flight.
//!
//! A lane is what one batch in flight needs: buffers, pinned memory. A batch runs through all stages on its lane; each stage submits
//! its work to a stream for its purpose and returns at once, and the streams wait for each other. So the upload of one batch,
//! the computation of another and the download of a third run at the same time, while every batch sees its stages in order.

use std::collections::VecDeque;

use crate::context::Context;
use crate::coordinator::{Coordinator, OperationId};
use crate::error::GpuError;
use crate::pool::Purpose;
use crate::statistics::{PipelineStatistics, StageRun, summarise};
use crate::stream::Stream;

/// Stages that turn an `In` into an `Out`, with lanes `L`.
pub struct Pipeline<L, In, Out> {
    context: Context,
    free: VecDeque<L>,
    n_lanes: usize,
    flying: VecDeque<InFlightBatch<L, Out>>,
    stages: Vec<(String, Purpose)>,
    chain: Chain<L, In, Out>,
    runs: Vec<StageRun>,
    iterations: u64,
    latency_ms: f64,
}

type Chain<L, In, Out> = Box<dyn FnMut(&mut StageRecorder<'_>, &mut L, In) -> Result<Out, GpuError> + Send>;

/// A batch between its submission and its end.
struct InFlightBatch<L, Out> {
    lane: L,
    out: Out,
    operations: Vec<OperationId>,
}

/// The way of one batch through the stages: each is an operation after the one before.
struct StageRecorder<'a> {
    coordinator: &'a Coordinator,
    operations: Vec<OperationId>,
}

impl StageRecorder<'_> {
    fn stage<R>(
        &mut self,
        name: &str,
        purpose: Purpose,
        work: impl FnOnce(&Stream) -> Result<R, GpuError>,
    ) -> Result<R, GpuError> {
        let after = self.operations.last().copied();
        let (result, operation) = self.coordinator.submit(purpose, name, after.as_slice(), work)?;
        self.operations.push(operation);
        Ok(result)
    }
}

impl<L: Send + 'static, In: 'static> Pipeline<L, In, In> {
    /// A pipeline without stages. As many batches are in flight as there are lanes.
    pub fn new(context: &Context, lanes: Vec<L>) -> Result<Self, GpuError> {
        if lanes.is_empty() {
            return Err(GpuError::misuse("a pipeline needs at least one lane"));
        }
        Ok(Self {
            context: context.clone(),
            n_lanes: lanes.len(),
            free: lanes.into(),
            flying: VecDeque::new(),
            stages: Vec::new(),
            chain: Box::new(|_, _, batch| Ok(batch)),
            runs: Vec::new(),
            iterations: 0,
            latency_ms: 0.0,
        })
    }
}

impl<L: Send + 'static, In: 'static, Out: 'static> Pipeline<L, In, Out> {
    /// Adds a stage. It gets the stream to submit to, its lane, and what the stage before it returned.
    pub fn stage<Next: 'static>(
        self,
        name: &str,
        purpose: Purpose,
        mut work: impl FnMut(&Stream, &mut L, Out) -> Result<Next, GpuError> + Send + 'static,
    ) -> Pipeline<L, In, Next> {
        assert!(self.flying.is_empty(), "stages are added before the first batch");
        let mut stages = self.stages;
        stages.push((name.into(), purpose));
        let (mut chain, name) = (self.chain, name.to_owned());
        Pipeline {
            context: self.context,
            free: self.free,
            n_lanes: self.n_lanes,
            flying: VecDeque::new(),
            stages,
            chain: Box::new(move |recorder, lane, batch| {
                let between = chain(recorder, lane, batch)?;
                recorder.stage(&name, purpose, |stream| work(stream, lane, between))
            }),
            runs: self.runs,
            iterations: self.iterations,
            latency_ms: self.latency_ms,
        }
    }

    /// Number of lanes.
    pub fn n_lanes(&self) -> usize {
        self.n_lanes
    }

    /// Number of batches in flight.
    pub fn in_flight(&self) -> usize {
        self.flying.len()
    }

    /// Whether a batch can be submitted now.
    pub fn has_free_lane(&self) -> bool {
        !self.free.is_empty()
    }

    /// Sends a batch through all stages. Returns when everything is submitted, not when it is done.
    ///
    /// If a stage fails, what was submitted for the batch before is waited for and the lane is free again: smaller batches can
    /// follow.
    pub fn submit(&mut self, batch: In) -> Result<(), GpuError> {
        let Some(mut lane) = self.free.pop_front() else {
            return Err(GpuError::misuse("all lanes of the pipeline are in flight: finish a batch first"));
        };
        let coordinator = self.context.coordinator();
        let mut recorder = StageRecorder { coordinator, operations: Vec::with_capacity(self.stages.len()) };
        match (self.chain)(&mut recorder, &mut lane, batch) {
            Ok(out) => {
                self.flying.push_back(InFlightBatch { lane, out, operations: recorder.operations });
                Ok(())
            }
            Err(error) => {
                recorder.operations.into_iter().for_each(|done| coordinator.abandon(done));
                self.free.push_front(lane);
                Err(error)
            }
        }
    }

    /// Whether the oldest batch in flight is done. Never waits.
    pub fn is_ready(&self) -> Result<bool, GpuError> {
        match self.flying.front() {
            Some(flight) => {
                flight.operations.last().map_or(Ok(true), |&last| self.context.coordinator().is_done(last))
            }
            None => Ok(false),
        }
    }

    /// Waits for the oldest batch in flight and returns its lane and result. `None` if there is none.
    pub fn finish<R>(&mut self, take: impl FnOnce(&mut L, Out) -> R) -> Result<Option<R>, GpuError> {
        let Some(mut flight) = self.flying.pop_front() else { return Ok(None) };
        if let Err(error) = self.account(&flight.operations) {
            self.free.push_back(flight.lane);
            return Err(error);
        }
        let result = take(&mut flight.lane, flight.out);
        self.free.push_back(flight.lane);
        Ok(Some(result))
    }

    /// Sends all batches through, as many at a time as there are lanes, and takes the results in the order of the batches.
    pub fn run<E: From<GpuError>>(
        &mut self,
        batches: impl IntoIterator<Item = In>,
        mut take: impl FnMut(&mut L, Out) -> Result<(), E>,
    ) -> Result<PipelineStatistics, E> {
        for batch in batches {
            if !self.has_free_lane() {
                self.finish(&mut take)?.transpose()?;
            }
            self.submit(batch)?;
        }
        while self.finish(&mut take)?.transpose()?.is_some() {}
        Ok(self.statistics())
    }

    /// How it has run so far; batches in flight are not counted. Keeps four numbers per stage and batch until
    /// [`reset_statistics`](Self::reset_statistics).
    pub fn statistics(&self) -> PipelineStatistics {
        summarise(&self.stages, &self.runs, self.iterations, self.latency_ms)
    }

    /// Forgets what has run so far, for example a warm-up.
    pub fn reset_statistics(&mut self) {
        self.runs.clear();
        self.iterations = 0;
        self.latency_ms = 0.0;
    }

    /// Waits for a batch and notes its times.
    fn account(&mut self, operations: &[OperationId]) -> Result<(), GpuError> {
        let mut all = Vec::with_capacity(operations.len());
        for (stage, &operation) in operations.iter().enumerate() {
            let span = self.context.coordinator().finish(operation)?;
            all.push(StageRun { stage, start: span.start_ms, end: span.end_ms, fill: span.fill });
        }
        if let (Some(first), Some(last)) = (all.first(), all.last()) {
            self.latency_ms += last.end - first.start;
        }
        self.runs.extend(all);
        self.iterations += 1;
        Ok(())
    }
}
