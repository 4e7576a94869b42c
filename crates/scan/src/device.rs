//! A scan on a device: batches of symbols on their way there and back, several at a time.
//!
//! Staging a batch on the host, uploading another, computing a third and downloading a fourth happen at the same time. Lanes and
//! staging memory stay between scans, so that a scanner that runs for days allocates nothing after its first scan.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use tidemill_gpu::{
    Device, DeviceBuffer, GpuError, Pipeline, Purpose, StreamMode, StreamPool, StreamPoolOptions, Timeline,
};
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
    device: Device,
    /// Its number among the devices of the scanner.
    number: usize,
    options: DeviceOptions,
    pipeline: Pipeline<Lane, Staged, Staged>,
    timeline: Arc<Timeline>,
    /// Numbers of its streams on the device.
    streams: Vec<u64>,
    idle: Vec<Staged>,
    growth: Arc<DeviceBuffer<f64>>,
    /// Bytes that were free when it was made; asking takes longer than many a batch.
    free_bytes: u64,
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
        let mode = if options.streams == 1 { StreamMode::Sequential } else { StreamMode::Parallel };
        let pool_options =
            StreamPoolOptions { streams: options.streams, mode, ..StreamPoolOptions::default() };
        let pool = StreamPool::new(device, pool_options)?;
        let streams = pool.streams().iter().map(|stream| stream.number()).collect();
        let timeline = Arc::new(Timeline::new(device)?);
        let lanes = (0..options.streams).map(|_| Lane::new(device)).collect::<Result<Vec<Lane>, _>>()?;
        let room = kernels.clone();
        let pipeline = Pipeline::new(pool, lanes)?
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
            })
            .with_timeline(timeline.clone());
        Ok(Self {
            device: device.clone(),
            number,
            options: options.clone(),
            pipeline,
            timeline,
            streams,
            idle: Vec::new(),
            growth: Arc::new(device.alloc(0)?),
            free_bytes: device.free_bytes()?,
            most_symbols: usize::MAX,
        })
    }

    /// Its name, for users.
    pub fn name(&self) -> &str {
        &self.device.info().name
    }

    /// Works on the queue until it is empty.
    pub fn run(
        &mut self,
        windows: &[&[f64]],
        queue: &Queue<'_>,
        growth: &Growth,
        history: bool,
        tell: &Sender<Message>,
    ) -> Result<(), GpuError> {
        let result = self.prepare(growth).and_then(|()| self.flow(windows, queue, history, tell));
        if result.is_err() {
            queue.close();
            // The first error is the one to report; here work only has to have ended.
            while self.pipeline.in_flight() > 0 {
                let _ = self.pipeline.finish(|_, _| ());
            }
        }
        self.pipeline.reset_statistics();
        result
    }

    /// Brings the growth factors there, unless they are.
    fn prepare(&mut self, growth: &Growth) -> Result<(), GpuError> {
        if self.growth.len() < growth.factors().len() {
            self.growth = Arc::new(self.device.alloc_from(growth.factors())?);
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
        let DeviceOptions { streams, batch_symbols, memory_fraction } = self.options;
        let bytes_per_bar = if history { 16.0 } else { 8.0 };
        let share = self.free_bytes as f64 * memory_fraction / streams as f64;
        Limits::new(n_symbols, streams, batch_symbols, (share / bytes_per_bar) as usize)
    }

    fn submit(&mut self, range: Range<usize>, windows: &[&[f64]], history: bool) -> Result<(), GpuError> {
        let mut staged = match self.idle.pop() {
            Some(staged) => staged,
            None => Staged::new(&self.device, self.growth.clone())?,
        };
        staged.growth = self.growth.clone();
        staged.fill(&self.device, range.start, &windows[range], history)?;
        self.pipeline.submit(staged)
    }

    /// Waits for the oldest batch and sends its results.
    fn collect(&mut self, tell: &Sender<Message>) -> Result<(), GpuError> {
        let Some(staged) = self.pipeline.finish(|_, staged| staged)? else { return Ok(()) };
        let averages = staged.results()?;
        let stages = self.spans()?;
        let _ = tell.send(Message::Done { first: staged.first, averages, stages });
        self.idle.push(staged);
        Ok(())
    }

    /// Spans of the batch that was finished last.
    fn spans(&self) -> Result<Vec<StageSpan>, GpuError> {
        let taken = self.timeline.take()?;
        let stage = |name: &str| {
            [Stage::Upload, Stage::Kernel, Stage::Download].into_iter().find(|stage| stage.name() == name)
        };
        let stream = |number: u64| self.streams.iter().position(|own| *own == number);
        let span = |span: tidemill_gpu::Span| {
            Some(StageSpan {
                stage: stage(&span.name)?,
                device: Some(self.number),
                stream: stream(span.stream)?,
                begin_ms: span.start_ms,
                end_ms: span.end_ms,
            })
        };
        Ok(taken.into_iter().filter_map(span).collect())
    }
}
