//! What a colouring run writes to its journal.

use std::time::Instant;

use serde_json::{Map, Value};
use tidemill_coloring::phase::{Finding, PhaseKind, Report};
use tidemill_coloring::{Ending, Instance, Outcome};
use tidemill_telemetry::{DeviceMode, Event, SmolStr, format_smolstr};

/// Makes the events of one run.
pub struct Recorder {
    run: SmolStr,
    began: Instant,
    /// Why the CPU is used although this machine has a GPU.
    fallback: Option<String>,
}

impl Recorder {
    /// For a run that began then.
    pub fn new(run: SmolStr, began: Instant, fallback: Option<String>) -> Self {
        Self { run, began, fallback }
    }

    /// Name of the run.
    pub fn run(&self) -> SmolStr {
        self.run.clone()
    }

    /// The run begins, or goes on: what it is about, and the resolved configuration.
    pub fn start(
        &self,
        instance: &Instance,
        is_resumed: bool,
        total: Option<u64>,
        config: &Map<String, Value>,
    ) -> Event {
        let step = if is_resumed { "resume" } else { "start" };
        let mut event = self
            .event("run", step.into())
            .parameter("workload", "color")
            .parameter("title", instance.name.as_str())
            .parameter("progress", "iterations")
            .parameter("score", "k")
            .parameter("better", "lower")
            .parameter("vertices", instance.n)
            .parameter("edges", instance.edges().len());
        if let Some(total) = total {
            event = event.value("total", total as f64);
        }
        for (name, value) in config {
            event = event.parameter(name.as_str(), value.clone());
        }
        event.on(self.mode(&DeviceMode::Cpu))
    }

    /// A phase has worked with this number of colours. The score is not among the values: this one may not be reached.
    pub fn worked(&self, report: &Report, k: usize, iterations: u64) -> Event {
        let start = report.began.saturating_duration_since(self.began).as_secs_f64() * 1e3;
        let mut event = self
            .event(report.kind.name(), format_smolstr!("k={k}"))
            .lasting_ms(report.took.as_secs_f64() * 1e3)
            .on(self.mode(&report.device))
            .value("start_ms", start);
        if let Some(conflicts) = report.conflicts() {
            event = event.value("conflicts", f64::from(conflicts)).value("iterations", iterations as f64);
        }
        if let Some(speed) = report.it_per_s() {
            event = event.value("it_per_s", speed);
        }
        for (name, value) in &report.values {
            event = event.value(*name, *value);
        }
        match &report.finding {
            Finding::Reduced(reduction) => event.value("vertices_left", reduction.graph.n() as f64),
            _ => event,
        }
    }

    /// A colouring passed the verifier.
    pub fn improved(&self, k: usize, by: PhaseKind, pass: u64, iterations: u64) -> Event {
        self.event("improvement", format_smolstr!("coloring_{k}"))
            .value("k", k as f64)
            .value("iterations", iterations as f64)
            .parameter("by", by.name())
            .parameter("pass", pass)
            .parameter("found_s", (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3)
    }

    /// A warning for people.
    pub fn warning(&self, step: &'static str, text: &str) -> Event {
        self.event("warning", step.into()).note(text)
    }

    /// The run is over.
    pub fn end(&self, outcome: &Outcome) -> Event {
        let name = if outcome.ending == Ending::Stopped { "stopped" } else { "complete" };
        self.event("run", "end".into())
            .on(self.mode(&DeviceMode::Cpu))
            .value("k", outcome.k as f64)
            .value("iterations", outcome.iterations as f64)
            .value("passes", outcome.passes as f64)
            .value("bound", outcome.bound as f64)
            .value("wall_s", outcome.seconds)
            .parameter("outcome", name)
            .note(outcome.ending.words())
    }

    /// The run failed.
    pub fn failed(&self, reason: &str) -> Event {
        self.event("run", "end".into()).parameter("outcome", "failed").note(reason)
    }

    fn event(&self, phase: &'static str, step: SmolStr) -> Event {
        Event::new(self.run.clone(), SmolStr::new_static(phase), step)
    }

    /// Where it ran; on the CPU although a GPU was wanted, if so.
    fn mode(&self, device: &DeviceMode) -> DeviceMode {
        match (device, &self.fallback) {
            (DeviceMode::Cpu, Some(reason)) => DeviceMode::CpuFallback { reason: reason.clone() },
            (device, _) => device.clone(),
        }
    }
}
