//! What happens during a scan, and how its journal records it.

use serde_json::Value;
use tidemill_gpu::PipelineStatistics;
use tidemill_market::atc::{AtcOptions, Preset};
use tidemill_telemetry::{DeviceMode, Event, SmolStr};

use crate::outcome::ScanCounts;

/// Something that happened during a scan.
///
/// A [`Scanner`](crate::Scanner) reports batches, smaller batches, how well each device was used, and the fall-back to the CPU; the caller, who opened the data, reports the beginning
/// and the end.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanEvent {
    /// The scan begins.
    Started {
        /// Symbols to scan.
        n_symbols: usize,
        /// Where the data comes from, in words.
        origin: String,
        /// The preset that the options began with.
        preset: Preset,
        /// The resolved options of the computation.
        options: AtcOptions,
    },
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
    /// A device has done its last batch.
    DeviceDone {
        /// Number of the device among those of the scanner.
        device: usize,
        /// How its time was used.
        statistics: PipelineStatistics,
    },
    /// A device failed; the CPU scans all symbols again, with the same results.
    FellBack {
        /// The error of the device.
        reason: String,
    },
    /// The scan is over.
    Ended {
        /// How many symbols it found of each kind.
        counts: ScanCounts,
        /// How long it took.
        duration_ms: f64,
    },
    /// The scan ended with an error.
    Failed {
        /// The error.
        reason: String,
    },
}

/// What all records of one scan share.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordContext {
    /// Name of the run.
    pub run: SmolStr,
    /// Why the CPU is used although a GPU was wanted.
    pub fallback: Option<String>,
}

impl ScanEvent {
    /// The journal records of the event: one for each stage of a batch, one of most others, none of a fall-back, which every later record
    /// names as its device.
    pub fn to_events(&self, context: &RecordContext) -> Vec<Event> {
        let event = |phase: &'static str, step: &'static str| {
            Event::new(context.run.clone(), SmolStr::new_static(phase), SmolStr::new_static(step))
        };
        match self {
            Self::Started { n_symbols, origin, preset, options } => vec![
                event("run", "start")
                    .value("total", *n_symbols as f64)
                    .parameter("workload", "scan")
                    .parameter("title", format!("scan of {origin}"))
                    .parameter("progress", "symbols")
                    .parameter("preset", preset.to_string())
                    // Numbers and names always have a JSON form.
                    .parameter("options", serde_json::to_value(options).unwrap_or(Value::Null)),
            ],
            Self::Batch(batch) => batch.stages.iter().map(|span| batch.stage_event(span, context)).collect(),
            Self::Shrunk { device, symbols, .. } => vec![
                event("upload", "shrunk")
                    .value("device", *device as f64)
                    .value("symbols", *symbols as f64)
                    .note(self.sentence().unwrap_or_default()),
            ],
            Self::DeviceDone { device, statistics } => vec![
                event("run", "pipeline")
                    .value("device", *device as f64)
                    .value("batches", statistics.iterations as f64)
                    .value("batch_ms", statistics.mean_ms)
                    .value("busy_ms", statistics.busy_ms)
                    .value("fill", statistics.fill)
                    .value("overlap_ms", statistics.overlap_ms)
                    .value("idle_ms", statistics.idle_ms)
                    .lasting_ms(statistics.wall_ms)
                    .note(self.sentence().unwrap_or_default()),
            ],
            Self::FellBack { .. } => Vec::new(),
            Self::Ended { counts, duration_ms } => vec![
                event("run", "end")
                    .parameter("outcome", "complete")
                    .value("symbols", counts.scanned as f64)
                    .value("long", counts.long as f64)
                    .value("short", counts.short as f64)
                    .value("flat", counts.flat as f64)
                    .value("filtered", counts.filtered as f64)
                    .value("skipped", counts.skipped as f64)
                    .value("errors", counts.errors as f64)
                    .lasting_ms(*duration_ms),
            ],
            Self::Failed { reason } => {
                vec![event("run", "end").parameter("outcome", "failed").note(reason.as_str())]
            }
        }
    }

    /// A sentence for users about how devices were used and what slowed the scan down; `None` for all other events.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Shrunk { symbols, reason, .. } => Some(format!(
                "a batch did not fit the device, so batches have {symbols} symbols now: {reason}"
            )),
            Self::DeviceDone { device, statistics } => Some(usage(*device, statistics)),
            Self::FellBack { reason } => {
                Some(format!("the GPU failed, so the scan runs on the CPU with the same results: {reason}"))
            }
            Self::Started { .. } | Self::Batch(_) | Self::Ended { .. } | Self::Failed { .. } => None,
        }
    }
}

/// `device 0: 79 batches in 12.3 ms, kernels 91 % of it, two or more stages at once 60 %, none 2 %`.
fn usage(device: usize, statistics: &PipelineStatistics) -> String {
    let PipelineStatistics { iterations, wall_ms, busy_ms, overlap_ms, idle_ms, .. } = statistics;
    let share = |part_ms: f64| if *wall_ms > 0.0 { 100.0 * part_ms / wall_ms } else { 0.0 };
    format!(
        "device {device}: {iterations} {} in {wall_ms:.1} ms, kernels {:.0} % of it, two or more stages at once {:.0} %, none {:.0} %",
        if *iterations == 1 { "batch" } else { "batches" },
        share(*busy_ms),
        share(*overlap_ms),
        share(*idle_ms)
    )
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

/// A stage of a batch.
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
    /// The phase of its records.
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
    fn stage_event(&self, span: &StageSpan, context: &RecordContext) -> Event {
        let mode = match (span.device, &context.fallback) {
            (Some(_), _) => DeviceMode::Gpu { stream: span.stream as u32 },
            (None, Some(reason)) => DeviceMode::CpuFallback { reason: reason.clone() },
            (None, None) => DeviceMode::Cpu,
        };
        let event = Event::new(context.run.clone(), span.stage.name(), format!("batch_{}", self.number))
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
    }
}

#[cfg(test)]
mod tests {
    use tidemill_telemetry::Timestamp;

    use super::*;

    fn context(fallback: Option<&str>) -> RecordContext {
        RecordContext { run: "scan-1-1".into(), fallback: fallback.map(str::to_owned) }
    }

    /// The records without what all records of a run share.
    fn wire(event: &ScanEvent, context: &RecordContext) -> Vec<String> {
        let text = |mut record: Event| {
            record.timestamp = Timestamp::from_ms(0);
            let text = serde_json::to_string(&record).unwrap();
            let shared = r#"{"v":1,"timestamp":"1970-01-01T00:00:00.000Z","run":"scan-1-1","#;
            text.strip_prefix(shared).unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        event.to_events(context).into_iter().map(text).collect()
    }

    #[test]
    fn the_first_record_has_the_options_of_the_computation() {
        let options = AtcOptions::preset(Preset::Pine);
        let event = ScanEvent::Started {
            n_symbols: 100,
            origin: "100 symbols, 150,000 bars of 1h".into(),
            preset: Preset::Pine,
            options: options.clone(),
        };
        let options = serde_json::to_string(&serde_json::to_value(&options).unwrap()).unwrap();
        assert_eq!(
            wire(&event, &context(None)),
            [format!(
                r#""phase":"run","step":"start","duration_ms":null,"device":null,"values":{{"total":100}},"parameters":{{"workload":"scan","title":"scan of 100 symbols, 150,000 bars of 1h","progress":"symbols","preset":"pine","options":{options}}},"notes":null}}"#
            )]
        );
    }

    #[test]
    fn every_stage_of_a_batch_has_a_record_with_its_device() {
        let span = |stage, device, stream| StageSpan { stage, device, stream, begin_ms: 2.0, end_ms: 3.5 };
        let batch = |stages| {
            ScanEvent::Batch(BatchDone {
                number: 4,
                symbols: 76,
                bars: 7_600,
                done: 1_100,
                total: 1_100,
                stages,
            })
        };
        let on_gpu = batch(vec![span(Stage::Upload, Some(1), 0), span(Stage::Kernel, Some(1), 3)]);
        let values = r#""values":{"start_ms":2,"symbols":1100,"symbols_of_batch":76,"bars_of_batch":7600"#;
        assert_eq!(
            wire(&on_gpu, &context(Some("not for the GPU"))),
            [
                format!(
                    r#""phase":"upload","step":"batch_4","duration_ms":1.5,"device":{{"mode":"gpu","stream":0}},{values},"device":1}},"parameters":{{}},"notes":null}}"#
                ),
                format!(
                    r#""phase":"kernel","step":"batch_4","duration_ms":1.5,"device":{{"mode":"gpu","stream":3}},{values},"device":1}},"parameters":{{}},"notes":null}}"#
                ),
            ]
        );
        let on_cpu = batch(vec![span(Stage::Kernel, None, 0)]);
        for (fallback, device) in [
            (None, r#"{"mode":"cpu"}"#),
            (Some("no driver"), r#"{"mode":"cpu_fallback","reason":"no driver"}"#),
        ] {
            assert_eq!(
                wire(&on_cpu, &context(fallback)),
                [format!(
                    r#""phase":"kernel","step":"batch_4","duration_ms":1.5,"device":{device},{values}}},"parameters":{{}},"notes":null}}"#
                )]
            );
        }
    }

    #[test]
    fn smaller_batches_and_the_end_have_their_records_and_a_fallback_has_none() {
        let shrunk = ScanEvent::Shrunk { device: 1, symbols: 32, reason: "out of memory".into() };
        assert_eq!(
            wire(&shrunk, &context(None)),
            [
                r#""phase":"upload","step":"shrunk","duration_ms":null,"device":null,"values":{"device":1,"symbols":32},"parameters":{},"notes":"a batch did not fit the device, so batches have 32 symbols now: out of memory"}"#
            ]
        );
        let fell_back = ScanEvent::FellBack { reason: "the device is gone".into() };
        assert_eq!(wire(&fell_back, &context(None)), [""; 0]);
        let counts =
            ScanCounts { scanned: 100, long: 60, short: 20, flat: 1, filtered: 9, skipped: 10, errors: 2 };
        assert_eq!(
            wire(&ScanEvent::Ended { counts, duration_ms: 12.5 }, &context(None)),
            [
                r#""phase":"run","step":"end","duration_ms":12.5,"device":null,"values":{"symbols":100,"long":60,"short":20,"flat":1,"filtered":9,"skipped":10,"errors":2},"parameters":{"outcome":"complete"},"notes":null}"#
            ]
        );
        assert_eq!(
            wire(&ScanEvent::Failed { reason: "host: the device is gone".into() }, &context(None)),
            [
                r#""phase":"run","step":"end","duration_ms":null,"device":null,"values":{},"parameters":{"outcome":"failed"},"notes":"host: the device is gone"}"#
            ]
        );
    }
}
