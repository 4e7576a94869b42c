//! What a scan reports while it runs.

use tidemill_telemetry::{DeviceMode, Event};

/// Something that happened during a scan.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanEvent {
    /// A batch is done.
    Batch(BatchDone),
    /// A batch did not fit the memory of a device; from here on batches are smaller.
    Shrunk {
        /// Number of the device among those of the scanner.
        device: usize,
        /// Most symbols of a batch from now on.
        symbols: usize,
        /// What did not fit.
        reason: String,
    },
}

/// A batch that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchDone {
    /// Its number, in the order of ending.
    pub number: usize,
    /// Symbols in it.
    pub symbols: usize,
    /// Bars of all of them.
    pub bars: usize,
    /// Symbols done so far.
    pub done: usize,
    /// Symbols to do in all.
    pub total: usize,
    /// When its stages ran.
    pub stages: Vec<StageSpan>,
}

/// A stage of the way of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From the host to the device.
    Upload,
    /// The computation.
    Kernel,
    /// From the device to the host.
    Download,
}

impl Stage {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Kernel => "kernel",
            Self::Download => "download",
        }
    }
}

/// When a stage ran, on the clock of its device.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSpan {
    /// Which stage.
    pub stage: Stage,
    /// Number of the device among those of the scanner; none on the CPU.
    pub device: Option<usize>,
    /// Number of the stream among those of the device.
    pub stream: usize,
    /// When it began, in milliseconds.
    pub begin_ms: f64,
    /// When it was done.
    pub end_ms: f64,
}

impl BatchDone {
    /// Records for a journal, one for each stage.
    pub fn records(&self, run: &str) -> Vec<Event> {
        let record = |span: &StageSpan| {
            let mode = match span.device {
                Some(_) => DeviceMode::Gpu { stream: span.stream as u32 },
                None => DeviceMode::Cpu,
            };
            let event = Event::new(run, span.stage.name(), format!("batch_{}", self.number))
                .lasting_ms(span.end_ms - span.begin_ms)
                .on(mode)
                .value("start_ms", span.begin_ms)
                .value("symbols", self.done as f64)
                .value("symbols_of_batch", self.symbols as f64)
                .value("bars_of_batch", self.bars as f64);
            match span.device {
                Some(device) => event.value("device", device as f64),
                None => event,
            }
        };
        self.stages.iter().map(record).collect()
    }
}
