//! A scan on a device: batches of symbols on their way there and back, several at a time.
//!
//! Staging a batch on the host, uploading another, computing a third and downloading a fourth happen at the same time. Lanes and
//! staging memory stay between scans, so that a scanner that runs for days allocates nothing after its first scan.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tidemill_gpu::{Context, Device, DeviceBuffer, GpuError, Pipeline, PipelineStatistics, Purpose};
use tidemill_market::atc::device::{AtcKernels, AtcLaunch, Symbols};
use tidemill_market::atc::{Growth, Plan};

use crate::batch::{Limits, Queue};
use crate::event::{Stage, StageSpan};
use crate::lane::{Lane, Staged};
use crate::option::DeviceOptions;
use crate::scanner::Averages;

/// What a device sends to the thread that scans.
pub(crate) enum Message {
    /// A batch is back: its first symbol in the order of work, and the results of it and the following ones.
    Done { first: usize, averages: Vec<Averages>, stages: Vec<StageSpan> },
    /// A batch did not fit; from now on they have at most so many symbols.
    Shrunk { device: usize, symbols: usize, reason: String },
}

/// One device of a scanner.
pub(crate) struct DeviceScanner {
    context: Context,
    /// Its number among the devices of the scanner.
    number: usize,
    /// Most symbols of a batch, if the user chose them.
    batch_symbols: Option<usize>,
    pipeline: Pipeline<Lane, Staged, Staged>,
    idle: Vec<Staged>,
    growth: Arc<DeviceBuffer<f64>>,
    /// Bytes that it may use, of those that were free when it was made; asking takes longer than many a batch.
    free_bytes: usize,
    /// Most symbols of a batch, once the memory did not suffice for more.
    most_symbols: usize,
}

impl DeviceScanner {
    /// Compiles the kernels and makes the streams.
    pub fn new(
        device: &Device,
        number: usize,
        plan: Plan,
        options: &DeviceOptions,
    ) -> Result<Self, GpuError> {
        let kernels = AtcKernels::new(device)?;
        let context = Context::new(device, options.context)?;
        let n_lanes = options.context.n_lanes();
        let lanes = (0..n_lanes).map(|_| Lane::new(device)).collect::<Result<Vec<Lane>, _>>()?;
        let room = kernels.clone();
        let pipeline = Pipeline::new(&context, lanes)?
            .stage(Stage::Upload.name(), Purpose::Upload, move |stream, lane: &mut Lane, staged: Staged| {
                lane.reserve(&staged, room.scratch_len(&plan, staged.n_symbols as u32))?;
                stream.upload(&staged.prices, 0, &lane.prices, 0, staged.n_bars)?;
                stream.upload(&staged.offsets, 0, &lane.offsets, 0, staged.n_symbols)?;
                stream.upload(&staged.lengths, 0, &lane.lengths, 0, staged.n_symbols)?;
                Ok(staged)
            })
            .stage(Stage::Kernel.name(), Purpose::Compute, move |stream, lane, staged| {
                let launch = AtcLaunch {
                    plan: &plan,
                    symbols: Symbols {
                        offsets: lane.offsets.ptr(),
                        lengths: lane.lengths.ptr(),
                        n_symbols: staged.n_symbols as u32,
                    },
                    prices: lane.prices.ptr(),
                    source: None,
                    growth: staged.growth.ptr(),
                    scratch: lane.scratch.ptr(),
                    last: lane.last.ptr(),
                    classes: lane.classes.ptr(),
                    averages: staged.history.then(|| lane.averages.ptr()),
                };
                // SAFETY: `Lane::reserve` made room for the symbols and bars that were staged, and the pipeline gives a lane to one
                // batch at a time.
                unsafe { kernels.launch(stream, &launch)? };
                Ok(staged)
            })
            .stage(Stage::Download.name(), Purpose::Download, |stream, lane, mut staged| {
                stream.download(&lane.last, 0, &mut staged.last, 0, staged.n_symbols)?;
                stream.download(&lane.classes, 0, &mut staged.classes, 0, staged.n_symbols)?;
                if staged.history {
                    stream.download(&lane.averages, 0, &mut staged.averages, 0, staged.n_bars)?;
                }
                Ok(staged)
            });
        Ok(Self {
            free_bytes: context.free_bytes()?,
            context,
            number,
            batch_symbols: options.batch_symbols,
            pipeline,
            idle: Vec::new(),
            growth: Arc::new(device.alloc(0)?),
            most_symbols: usize::MAX,
        })
    }

    /// Its name, for users.
    pub fn name(&self) -> &str {
        &self.context.device().info().name
    }

    /// Works on the queue until it is empty.
    pub fn run(
        &mut self,
        windows: &[&[f64]],
        queue: &Queue<'_>,
        growth: &Growth,
        history: bool,
        tell: &Sender<Message>,
    ) -> Result<PipelineStatistics, GpuError> {
        self.pipeline.reset_statistics();
        // Of a scan that failed.
        self.context.timeline().take();
        let result = self.prepare(growth).and_then(|()| self.flow(windows, queue, history, tell));
        if result.is_err() {
            queue.close();
            // The first error is the one to report; here work only has to have ended.
            while self.pipeline.in_flight() > 0 {
                let _ = self.pipeline.finish(|_, _| ());
            }
        }
        result.map(|()| self.pipeline.statistics())
    }

    /// Brings the growth factors there, unless they are.
    fn prepare(&mut self, growth: &Growth) -> Result<(), GpuError> {
        if self.growth.len() < growth.factors().len() {
            self.growth = Arc::new(self.context.device().alloc_from(growth.factors())?);
        }
        Ok(())
    }

    fn flow(
        &mut self,
        windows: &[&[f64]],
        queue: &Queue<'_>,
        history: bool,
        tell: &Sender<Message>,
    ) -> Result<(), GpuError> {
        let limits = self.limits(windows.len(), history);
        // Parts of a batch that did not fit, the first on top.
        let mut parts: Vec<Range<usize>> = Vec::new();
        loop {
            let limits = Limits { symbols: limits.symbols.min(self.most_symbols), ..limits };
            let Some(range) = parts.pop().or_else(|| queue.take(limits)) else { break };
            if range.len() > self.most_symbols {
                let middle = range.start + self.most_symbols;
                parts.extend([middle..range.end, range.start..middle]);
                continue;
            }
            if !self.pipeline.has_free_lane() {
                self.collect(tell)?;
            }
            match self.submit(range.clone(), windows, history) {
                Err(error) if error.is_out_of_memory() && range.len() > 1 => {
                    self.most_symbols = range.len().div_ceil(2);
                    parts.push(range);
                    while self.pipeline.in_flight() > 0 {
                        self.collect(tell)?;
                    }
                    let reason = error.to_string();
                    // A receiver that is gone has met an error of its own.
                    let _ = tell.send(Message::Shrunk {
                        device: self.number,
                        symbols: self.most_symbols,
                        reason,
                    });
                }
                submitted => submitted?,
            }
        }
        while self.pipeline.in_flight() > 0 {
            self.collect(tell)?;
        }
        Ok(())
    }

    /// What batches may hold, from the number of symbols, the streams and the memory.
    fn limits(&self, n_symbols: usize, history: bool) -> Limits {
        let n_lanes = self.pipeline.n_lanes();
        let bytes_per_bar = if history { 16 } else { 8 };
        Limits::new(n_symbols, n_lanes, self.batch_symbols, self.free_bytes / n_lanes / bytes_per_bar)
    }

    fn submit(&mut self, range: Range<usize>, windows: &[&[f64]], history: bool) -> Result<(), GpuError> {
        let mut staged = match self.idle.pop() {
            Some(staged) => staged,
            None => Staged::new(self.context.device(), self.growth.clone())?,
        };
        staged.growth = self.growth.clone();
        staged.fill(self.context.device(), range.start, &windows[range], history)?;
        self.pipeline.submit(staged)
    }

    /// Waits for the oldest batch and sends its results.
    fn collect(&mut self, tell: &Sender<Message>) -> Result<(), GpuError> {
        let Some(staged) = self.pipeline.finish(|_, staged| staged)? else { return Ok(()) };
        let averages = staged.results()?;
        let stages = self.spans();
        let _ = tell.send(Message::Done { first: staged.first, averages, stages });
        self.idle.push(staged);
        Ok(())
    }

    /// Spans of the batch that was finished last.
    fn spans(&self) -> Vec<StageSpan> {
        let stage = |name: &str| {
            [Stage::Upload, Stage::Kernel, Stage::Download].into_iter().find(|stage| stage.name() == name)
        };
        let span = |span: tidemill_gpu::Span| {
            Some(StageSpan {
                stage: stage(&span.name)?,
                device: Some(self.number),
                stream: self.context.pool().position(span.stream)?,
                begin_ms: span.start_ms,
                end_ms: span.end_ms,
            })
        };
        self.context.timeline().take().into_iter().filter_map(span).collect()
    }
}
