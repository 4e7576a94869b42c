//! What evaluates the trials of a study: the GPUs that were chosen, or the CPU.
//!
//! Each GPU is given whole batches in turn, and batches are collected in their order, so that no result depends on how many there are.
//! Where the device was chosen by `auto`, a device that fails is left and the rest of the study runs on the CPU, with the same bits; that is
//! said, and recorded.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};
use tidemill_backtest::{DeviceEngine, DeviceOptions, Engine, Outcome, StageSpan, Strategy};
use tidemill_gpu::{Device, GpuError, HostOptions, probe};
use tidemill_search::{Batch, EvaluateError, Evaluated, Evaluator};
use tidemill_telemetry::DeviceMode;

use crate::command::sweep::evaluate;
use crate::holding::Witness;
use crate::number;
use crate::settings::GpuSettings;

/// What `--device` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if there is one, else the CPU; which one, and why, is said.
    Auto,
    /// The CPU.
    Cpu,
    /// All GPUs, or this one.
    Cuda(Option<usize>),
    /// So many devices whose kernels run on the CPU, slowly: for tests.
    Emulated(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => match number.parse::<usize>() {
                Ok(number) => (name, Some(number)),
                Err(_) => {
                    return Err(format!("`{number}` is not the number of a device; for example cuda:0"));
                }
            },
            None => (text, None),
        };
        match (name, number) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", number) => Ok(Self::Cuda(number)),
            ("emulated", number) => Ok(Self::Emulated(number.unwrap_or(1).max(1))),
            _ => Err("expected auto, cpu, cuda or cuda:N".into()),
        }
    }
}

/// The devices that were chosen; none is the CPU.
pub struct Devices {
    /// The devices.
    pub devices: Vec<Device>,
    /// What is said about the choice.
    pub note: Option<String>,
    /// Why the CPU is taken although this machine has a GPU.
    pub unusable: Option<String>,
    /// Whether a GPU was looked for and this machine has none.
    has_no_gpu: bool,
    /// Whether the CPU may take over.
    pub may_fall_back: bool,
}

impl Devices {
    /// Finds the devices of a choice.
    pub fn choose(choice: DeviceChoice) -> Result<Self> {
        let all = || {
            let found = probe().devices?;
            usable((0..found.len()).map(|ordinal| (ordinal, Device::cuda(ordinal))))
        };
        let hint = "`tidemill doctor` looks for the cause; with --device cpu the results are the same";
        match choice {
            DeviceChoice::Cpu => Ok(Self::of(Vec::new(), false)),
            DeviceChoice::Cuda(Some(ordinal)) => match Device::cuda(ordinal) {
                Ok(device) => Ok(Self::of(vec![device], false)),
                Err(error) => bail!("--device cuda:{ordinal}: {error}\n  hint: {hint}"),
            },
            DeviceChoice::Cuda(None) => match all() {
                Ok((devices, note)) => Ok(Self { note, ..Self::of(devices, false) }),
                Err(error) => bail!("--device cuda: {error}\n  hint: {hint}"),
            },
            DeviceChoice::Emulated(n) => {
                Ok(Self::of((0..n).map(|_| Device::host(HostOptions::default())).collect(), false))
            }
            DeviceChoice::Auto => Ok(Self::auto(all(), probe().driver.is_ok())),
        }
    }

    /// These devices; where the CPU may take over, a device that fails is left.
    pub fn of(devices: Vec<Device>, may_fall_back: bool) -> Self {
        Self { devices, note: None, unusable: None, has_no_gpu: false, may_fall_back }
    }

    /// Limits how long they may be waited for, where the settings say so.
    pub fn limited_by(self, settings: &GpuSettings) -> Self {
        if let Some(limit) = settings.wait_limit() {
            self.devices.iter().for_each(|device| device.set_wait_limit(limit));
        }
        self
    }

    /// All GPUs if they can be used, else the CPU.
    fn auto(found: Result<(Vec<Device>, Option<String>), GpuError>, has_driver: bool) -> Self {
        let error = match found {
            Ok((devices, note)) => return Self { note, ..Self::of(devices, true) },
            Err(error) => error.to_string(),
        };
        // A machine without a driver has no GPU to speak of; anything else is worth a word.
        let reason = error.lines().next().unwrap_or_default().to_owned();
        let note = has_driver.then(|| {
            format!("running on the CPU, with the same results: {reason} (`tidemill doctor` says more)")
        });
        let unusable = has_driver.then_some(reason);
        Self { note, unusable, has_no_gpu: !has_driver, ..Self::of(Vec::new(), false) }
    }

    /// What a run is on, for people.
    pub fn shown(&self) -> String {
        match &self.devices[..] {
            [] => {
                let threads = number::counted(rayon::current_num_threads() as u64, "thread");
                let why = if self.has_no_gpu { " (there is no GPU driver)" } else { "" };
                format!("the CPU, {threads}{why}")
            }
            [one] => one.info().name.clone(),
            [first, rest @ ..] => format!("{} and {} more", first.info().name, rest.len()),
        }
    }
}

/// The GPUs that can be used, and a note about those that cannot; an error if there are none. A machine may have an old card beside the
/// one it computes with.
fn usable(
    opened: impl Iterator<Item = (usize, Result<Device, GpuError>)>,
) -> Result<(Vec<Device>, Option<String>), GpuError> {
    let (mut devices, mut left_out, mut first_error) = (Vec::new(), Vec::new(), None);
    for (ordinal, device) in opened {
        match device {
            Ok(device) => devices.push(device),
            Err(error) => {
                let reason = error.to_string();
                left_out.push(format!("device {ordinal}: {}", reason.lines().next().unwrap_or_default()));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if devices.is_empty() => Err(error),
        None => Ok((devices, None)),
        Some(_) => Ok((devices, Some(format!("not all GPUs can be used: {}", left_out.join("; "))))),
    }
}

/// Evaluates batches for a study.
pub struct Executor<'e, 'a> {
    engine: &'e mut Engine<'a>,
    strategies: &'e [Strategy],
    devices: Vec<DeviceEngine>,
    /// Batches submitted and not collected, each with its device; on the CPU there is none.
    waiting: VecDeque<(Batch, Option<usize>)>,
    next: usize,
    may_fall_back: bool,
    view: Arc<View>,
    /// Of the first batch submitted.
    first_index: Option<u64>,
    /// Sees the results of all trials.
    witness: Option<Arc<Witness>>,
}

/// What others see of an executor while a study has it.
#[derive(Debug)]
pub struct View {
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

impl View {
    /// Of an executor on the CPU.
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

    /// Sets that, from the next batch on.
    pub fn set_lanes(&self, lanes: usize) {
        self.lanes.store(lanes.max(1), Ordering::Relaxed);
    }
}

impl<'e, 'a> Executor<'e, 'a> {
    /// Takes a strategy to the devices.
    pub fn new(
        engine: &'e mut Engine<'a>,
        strategies: &'e [Strategy],
        devices: &Devices,
        settings: &GpuSettings,
    ) -> Result<Self> {
        let options = device_options(settings);
        let mut out = Self {
            engine,
            strategies,
            devices: Vec::new(),
            waiting: VecDeque::new(),
            next: 0,
            may_fall_back: devices.may_fall_back,
            view: Arc::new(View::of_cpu()),
            first_index: None,
            witness: None,
        };
        for device in &devices.devices {
            match DeviceEngine::new(device, out.engine, &strategies[0], options) {
                Ok(engine) => out.devices.push(engine),
                Err(error) if devices.may_fall_back => {
                    out.fall_back(&error);
                    return Ok(out);
                }
                Err(error) => bail!("{}: {error}", device.info().name),
            }
        }
        if !out.devices.is_empty() {
            out.view.set_lanes(options.lanes);
            out.set_mode(DeviceMode::Gpu { stream: 0 });
        } else if let Some(reason) = &devices.unusable {
            out.set_mode(DeviceMode::CpuFallback { reason: reason.clone() });
        }
        Ok(out)
    }

    /// Lets somebody see the results of all trials.
    pub fn watched_by(mut self, witness: Option<Arc<Witness>>) -> Self {
        self.witness = witness;
        self
    }

    /// What outcomes are worth, after they were seen.
    fn scored(&self, batch: &Batch, outcomes: &[Outcome]) -> Evaluated {
        let evaluated = evaluate::scored(self.engine, self.strategies, &batch.points, outcomes);
        if let Some(witness) = &self.witness {
            witness.see(batch.first_trial, outcomes, &evaluated.scores);
        }
        evaluated
    }

    /// What others may see while a study has it.
    pub fn view(&self) -> Arc<View> {
        self.view.clone()
    }

    /// Hands the spans of the devices on. Devices get batches in turn, so that their submissions tell which batch it was.
    fn pass_spans_on(&mut self) {
        let (n, first) = (self.devices.len() as u64, self.first_index.unwrap_or(0));
        let mut spans = self.view.spans.lock().unwrap_or_else(PoisonError::into_inner);
        for (device, engine) in self.devices.iter_mut().enumerate() {
            let base = engine.began();
            spans.extend(engine.take_spans().into_iter().map(|span| {
                let batch = first + span.job * n + device as u64;
                BatchSpan { device, batch, base, span }
            }));
        }
    }

    fn set_mode(&self, mode: DeviceMode) {
        *self.view.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Leaves the devices; everything from here on runs on the CPU.
    fn fall_back(&mut self, error: &GpuError) {
        self.pass_spans_on();
        self.devices.clear();
        self.view.lanes.store(0, Ordering::Relaxed);
        self.waiting.iter_mut().for_each(|(_, device)| *device = None);
        let reason = error.to_string();
        eprintln!("warning: the GPU is left, the rest runs on the CPU with the same results: {reason}");
        self.set_mode(DeviceMode::CpuFallback { reason });
    }
}

/// Settings of a device engine.
pub fn device_options(settings: &GpuSettings) -> DeviceOptions {
    let default = DeviceOptions::default();
    DeviceOptions {
        memory_fraction: settings.memory_fraction.unwrap_or(default.memory_fraction),
        lanes: match settings.stream_mode.unwrap_or_default() {
            crate::settings::StreamMode::Sequential => 1,
            crate::settings::StreamMode::Parallel => settings.streams.unwrap_or(default.lanes),
        },
        ..default
    }
}

impl Evaluator for Executor<'_, '_> {
    fn submit(&mut self, batch: Batch) -> Result<(), EvaluateError> {
        if self.devices.is_empty() {
            self.waiting.push_back((batch, None));
            return Ok(());
        }
        let device = self.next % self.devices.len();
        self.next += 1;
        self.first_index.get_or_insert(batch.index);
        if let Some(lanes) = self.view.lanes() {
            self.devices[device].set_lanes(lanes);
        }
        let submitted = self.devices[device].submit(batch.points.clone());
        self.waiting.push_back((batch, Some(device)));
        match submitted {
            Err(error) if self.may_fall_back => self.fall_back(&error),
            Err(error) => return Err(Box::new(error)),
            Ok(()) => {}
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<Evaluated, EvaluateError> {
        let (batch, device) = self.waiting.pop_front().ok_or("nothing was submitted")?;
        if let Some(device) = device {
            match self.devices[device].collect() {
                Ok(outcomes) => {
                    self.pass_spans_on();
                    return Ok(self.scored(&batch, &outcomes));
                }
                Err(error) if self.may_fall_back => self.fall_back(&error),
                Err(error) => return Err(Box::new(error)),
            }
        }
        let outcomes = self.engine.evaluate(&batch.points);
        Ok(self.scored(&batch, &outcomes))
    }

    fn in_flight_limit(&self) -> usize {
        // Three for each device: one that computes, one that is prepared, and one that is begun when the first is done, before the host
        // looks at what came of it.
        (3 * self.devices.len()).max(1)
    }

    fn is_ready(&mut self) -> bool {
        match self.waiting.front() {
            Some((_, Some(device))) => self.devices[*device].is_ready().unwrap_or(true),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
