//! What evaluates the trials of a study: the GPUs that were chosen, or the CPU.
//!
//! Each GPU has threads of its own and gets whole batches in turn, and batches are collected in their order, so that no result depends on how
//! many there are. Where the devices were chosen by `auto`, a device that fails is dropped and the rest of the study runs on the CPU, with the
//! same bits.

mod device_thread;
mod scorer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tidemill_backtest::strategy::Reduce;
use tidemill_backtest::{DeviceEngine, DeviceOptions, Engine, Outcome, StageSpan, Strategy};
use tidemill_gpu::GpuError;
use tidemill_search::{Batch, EvaluateError, Evaluated, Evaluator};
use tidemill_telemetry::DeviceMode;

use crate::device::Devices;
use crate::error::LabError;
use crate::verdict::TrialSample;
use device_thread::{DeviceThread, Done, Order};
pub(crate) use scorer::Scorer;

/// Threads beside those of the devices that help to read and to score results.
const MAX_HELPERS: usize = 8;

/// Called with the reason when the CPU takes over from the devices.
pub type OnFallback<'e> = Box<dyn Fn(&str) + Send + 'e>;

/// Evaluates batches for a study.
pub struct StudyEvaluator<'e, 'a> {
    engine: &'e mut Engine<'a>,
    scorer: Arc<Scorer>,
    devices: Vec<DeviceThread>,
    /// Threads that read and score what devices found; none where threads are not to be had.
    helpers: Option<Arc<ThreadPool>>,
    /// Batches submitted and not collected, each with its device; on the CPU there is none.
    waiting: VecDeque<(Batch, Option<usize>)>,
    next: usize,
    may_fall_back: bool,
    view: Arc<EvaluatorView>,
    /// Number of the first batch submitted.
    first_index: Option<u64>,
    /// Keeps what a verdict needs of all trials.
    sample: Option<Arc<TrialSample>>,
    on_fallback: Option<OnFallback<'e>>,
}

/// The part of an evaluator that others can read while a study owns it.
#[derive(Debug)]
pub struct EvaluatorView {
    mode: Mutex<DeviceMode>,
    spans: Mutex<Vec<BatchSpan>>,
    /// How many batches a device has at a time; none where there is no device.
    lanes: AtomicUsize,
}

/// A stage of a batch on a device.
#[derive(Clone, Copy, Debug)]
pub struct BatchSpan {
    /// Number of the device.
    pub device: usize,
    /// Number of the batch.
    pub batch: u64,
    /// When the time of the span began.
    pub base: Instant,
    /// The stage, in milliseconds since then.
    pub span: StageSpan,
}

impl EvaluatorView {
    /// The view of an evaluator on the CPU.
    pub fn of_cpu() -> Self {
        Self { mode: Mutex::new(DeviceMode::Cpu), spans: Mutex::default(), lanes: AtomicUsize::new(0) }
    }

    /// Where batches run now; changes if the CPU takes over.
    pub fn mode(&self) -> DeviceMode {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the stages of the batches collected since the last call ran.
    pub fn take_spans(&self) -> Vec<BatchSpan> {
        std::mem::take(&mut self.spans.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many batches a device has at a time, if there is a device.
    pub fn lanes(&self) -> Option<usize> {
        Some(self.lanes.load(Ordering::Relaxed)).filter(|lanes| *lanes > 0)
    }

    /// Sets how many batches a device has at a time, from the next batch on.
    pub fn set_lanes(&self, lanes: usize) {
        self.lanes.store(lanes.max(1), Ordering::Relaxed);
    }
}

/// Threads for the results of so many devices, each of which takes two.
fn helpers(n_devices: usize) -> Option<Arc<ThreadPool>> {
    let n_threads = 2 * n_devices + rayon::current_num_threads().min(MAX_HELPERS);
    let pool = (n_devices > 0).then(|| ThreadPoolBuilder::new().num_threads(n_threads).build())?;
    pool.ok().map(Arc::new)
}

impl<'e, 'a> StudyEvaluator<'e, 'a> {
    /// Prepares a strategy on the devices. Where the CPU may take over, `on_fallback` is called with the reason when it does.
    pub fn new(
        engine: &'e mut Engine<'a>,
        strategy: &Strategy,
        devices: &Devices,
        options: DeviceOptions,
        on_fallback: Option<OnFallback<'e>>,
    ) -> Result<Self, LabError> {
        let mut out = Self {
            scorer: Arc::new(Scorer::new(engine, strategy, false)),
            engine,
            devices: Vec::new(),
            helpers: helpers(devices.devices.len()),
            waiting: VecDeque::new(),
            next: 0,
            may_fall_back: devices.may_fall_back,
            view: Arc::new(EvaluatorView::of_cpu()),
            first_index: None,
            sample: None,
            on_fallback,
        };
        let options = DeviceOptions { pools_alone: strategy.reduce == Reduce::Pooled, ..options };
        for device in &devices.devices {
            match DeviceEngine::new(device, out.engine, strategy, options) {
                Ok(engine) => out.devices.push(DeviceThread::start(engine, out.helpers.clone())),
                Err(error) if devices.may_fall_back => {
                    out.fall_back(&error);
                    return Ok(out);
                }
                Err(error) => return Err(LabError::Device { name: device.info().name.clone(), error }),
            }
        }
        if !out.devices.is_empty() {
            out.view.set_lanes(options.context.n_lanes());
            out.set_mode(DeviceMode::Gpu { stream: 0 });
        } else if let Some(reason) = &devices.unusable {
            out.set_mode(DeviceMode::CpuFallback { reason: reason.clone() });
        }
        Ok(out)
    }

    /// Offers the results of all trials to the sample of a verdict.
    pub fn sampled_by(mut self, sample: Option<Arc<TrialSample>>) -> Self {
        self.sample = sample;
        self
    }

    /// Adds out-of-sample columns to the metrics of all trials.
    pub(crate) fn with_test_columns(mut self, has_test: bool) -> Self {
        Arc::make_mut(&mut self.scorer).has_test = has_test;
        self
    }

    /// Offers the results of a batch to the sample, once they are a study's own: of a study that is stopped, batches are left behind.
    fn offer(&self, batch: &Batch, outcomes: &[Outcome], evaluated: &Evaluated) {
        if let Some(sample) = &self.sample {
            sample.offer_outcomes(batch.first_trial, outcomes, &evaluated.scores);
        }
    }

    /// The part that others can read while a study owns the evaluator.
    pub fn view(&self) -> Arc<EvaluatorView> {
        self.view.clone()
    }

    /// Passes on the spans of a device. Devices get batches in turn, so the number of a submission gives its batch.
    fn pass_spans_on(&self, device: usize, spans: Vec<StageSpan>) {
        let (n, first) = (self.devices.len() as u64, self.first_index.unwrap_or(0));
        let base = self.devices[device].began();
        let spans = spans.into_iter().map(|span| {
            let batch = first + span.job * n + device as u64;
            BatchSpan { device, batch, base, span }
        });
        self.view.spans.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
    }

    fn set_mode(&self, mode: DeviceMode) {
        *self.view.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Drops the devices; everything from here on runs on the CPU.
    fn fall_back(&mut self, error: &GpuError) {
        self.devices.clear();
        self.helpers = None;
        self.view.lanes.store(0, Ordering::Relaxed);
        self.waiting.iter_mut().for_each(|(_, device)| *device = None);
        let reason = error.to_string();
        if let Some(on_fallback) = &self.on_fallback {
            on_fallback(&reason);
        }
        self.set_mode(DeviceMode::CpuFallback { reason });
    }
}

impl Evaluator for StudyEvaluator<'_, '_> {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        if self.devices.is_empty() {
            self.waiting.push_back((batch, None));
            return Ok(());
        }
        let device = self.next % self.devices.len();
        self.next += 1;
        self.first_index.get_or_insert(batch.index);
        let order = Order {
            points: batch.points.clone(),
            scorer: self.scorer.clone(),
            keeps_outcomes: self.sample.is_some(),
            lanes: self.view.lanes(),
        };
        self.devices[device].submit(order);
        self.waiting.push_back((batch, Some(device)));
        Ok(())
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        let (batch, device) = self.waiting.pop_front().ok_or("nothing was submitted")?;
        if let Some(device) = device {
            match self.devices[device].collect() {
                Ok(Done { evaluated, outcomes, spans }) => {
                    self.pass_spans_on(device, spans);
                    self.offer(&batch, &outcomes, &evaluated);
                    return Ok(evaluated);
                }
                Err(error) if self.may_fall_back => self.fall_back(&error),
                Err(error) => return Err(Box::new(error)),
            }
        }
        let outcomes = self.engine.evaluate(&batch.points);
        let evaluated = self.scorer.score(&batch.points, &outcomes);
        self.offer(&batch, &outcomes, &evaluated);
        Ok(evaluated)
    }

    fn in_flight_limit(&self) -> usize {
        // Four for each device: two that compute, one that is begun when the first is done, before the host looks at the result, and one
        // that waits for a lane.
        (4 * self.devices.len()).max(1)
    }

    fn is_ready(&mut self) -> bool {
        match self.waiting.front() {
            Some((_, Some(device))) => self.devices[*device].is_ready(),
            _ => true,
        }
    }
}
