//! What happens while a graph is coloured, and how the journal of the run records it.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tidemill_telemetry::hypertune::Proposal;
use tidemill_telemetry::{DeviceMode, Event, SmolStr, Timestamp, format_smolstr};

use crate::controller::{Ending, Outcome, State};
use crate::instance::Instance;
use crate::phase::{PhaseKind, PhaseReport, PhaseResult};

/// Something that happened during a colouring run.
///
/// The [`Controller`](crate::Controller) reports passes, phases and improvements; the [`RunRecorder`](crate::RunRecorder) around it adds the
/// beginning, the end, warnings and the decisions of the tuning rules.
#[derive(Clone, Copy, Debug)]
pub enum PassEvent<'a> {
    /// The run begins, or resumes after an interruption.
    Started {
        /// The graph to colour.
        instance: &'a Instance,
        /// Whether it resumes after an interruption.
        is_resumed: bool,
        /// Iterations after which it ends, if they end it.
        max_iterations: Option<u64>,
        /// The resolved configuration.
        config: &'a Map<String, Value>,
    },
    /// Something that people should know.
    Warning {
        /// What it is about, such as `graph`.
        step: &'static str,
        /// The sentence.
        text: &'a str,
    },
    /// A pass begins. A run that is interrupted later can resume from here.
    PassBegan {
        /// The state to resume from.
        state: &'a State,
        /// The number of colours that the pass tries.
        k: usize,
    },
    /// A phase finished a slice of work.
    PhaseWorked {
        /// The result with its measurements.
        report: &'a PhaseReport,
        /// The colours it was to use, or used.
        k: usize,
        /// The pass, from 1; 0 is that of the first colourings.
        pass: u64,
        /// The round of the whole run.
        round: u64,
        /// Iterations of all phases so far.
        iterations: u64,
        /// The fewest colours so far, if there is a colouring.
        best: Option<usize>,
    },
    /// A colouring with fewer colours passed the verifier.
    Improved {
        /// Number of colours.
        k: usize,
        /// The colour of each vertex.
        colors: &'a [u32],
        /// The phase that found it.
        by: PhaseKind,
        /// The pass.
        pass: u64,
        /// Iterations of all phases so far.
        iterations: u64,
        /// When it was found.
        at: Instant,
    },
    /// A pass is over.
    PassEnded {
        /// The pass.
        pass: u64,
        /// Its number of colours.
        k: usize,
        /// Whether it found a colouring with that many.
        is_solved: bool,
        /// The fewest colours so far.
        best: usize,
        /// Iterations of the pass.
        pass_iterations: u64,
        /// Iterations of all phases so far.
        iterations: u64,
    },
    /// All searches of a round are done.
    RoundEnded(RoundWork),
    /// The tuning rules decided or advised something, or measured what a decision brought.
    Tuned(&'a Proposal),
    /// The run is over.
    Ended(&'a Outcome),
    /// The run ended with an error.
    Failed {
        /// The error.
        reason: &'a str,
    },
}

/// How well a round used its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundWork {
    /// The round of the whole run.
    pub round: u64,
    /// The pass, from 1.
    pub pass: u64,
    /// The number of colours that it tried.
    pub k: usize,
    /// From the end of the round before, or the beginning of the run, to its own end.
    pub wall: Duration,
    /// For how long its searches worked: those on a device, where there are any, else all; the longest of them.
    pub work: Duration,
    /// Iterations of all phases so far.
    pub iterations: u64,
}

impl RoundWork {
    /// The share of the time for which the device, or else any search, worked.
    pub fn busy(&self) -> f64 {
        let wall_s = self.wall.as_secs_f64();
        if wall_s > 0.0 { (self.work.as_secs_f64() / wall_s).min(1.0) } else { 1.0 }
    }
}

/// What all records of one run share.
#[derive(Clone, Debug)]
pub struct RecordContext {
    /// Name of the run.
    pub run: SmolStr,
    /// When the run began; records count time from here.
    pub began: Instant,
    /// Why the CPU is used although the machine has a GPU.
    pub fallback: Option<String>,
}

impl RecordContext {
    /// A run that is named after the present time.
    pub fn new(began: Instant, fallback: Option<String>) -> Self {
        Self { run: format_smolstr!("color-{}", Timestamp::now().as_ms()), began, fallback }
    }

    fn event(&self, phase: &'static str, step: SmolStr) -> Event {
        Event::new(self.run.clone(), SmolStr::new_static(phase), step)
    }

    fn ms_since_start(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.began).as_secs_f64() * 1e3
    }

    /// The device of a record: work on the CPU is marked as a fall-back where the run could not use the GPU.
    fn device(&self, device: &DeviceMode) -> DeviceMode {
        match (device, &self.fallback) {
            (DeviceMode::Cpu, Some(reason)) => DeviceMode::CpuFallback { reason: reason.clone() },
            (device, _) => device.clone(),
        }
    }
}

impl PassEvent<'_> {
    /// The journal record of the event; none for the beginning of a pass, which its first step tells.
    pub fn to_event(&self, context: &RecordContext) -> Option<Event> {
        Some(match *self {
            Self::PassBegan { .. } => return None,
            Self::PassEnded { pass, k, is_solved, best, pass_iterations, iterations } => context
                .event("pass", format_smolstr!("pass_{pass}"))
                .value("iterations", iterations as f64)
                .parameter("k", k)
                .parameter("pass", pass)
                .parameter("solved", is_solved)
                .parameter("best", best)
                .parameter("iterations", pass_iterations),
            Self::RoundEnded(work) => context
                .event("round", format_smolstr!("round_{}", work.round))
                .value("iterations", work.iterations as f64)
                .value("busy", work.busy())
                .value("wall_ms", work.wall.as_secs_f64() * 1e3)
                .value("work_ms", work.work.as_secs_f64() * 1e3)
                .value("idle_ms", work.wall.saturating_sub(work.work).as_secs_f64() * 1e3)
                .parameter("k", work.k)
                .parameter("pass", work.pass)
                .parameter("round", work.round),
            Self::Started { instance, is_resumed, max_iterations, config } => {
                let step = if is_resumed { "resume" } else { "start" };
                let mut event = context
                    .event("run", step.into())
                    .parameter("workload", "color")
                    .parameter("title", instance.name.as_str())
                    .parameter("progress", "iterations")
                    .parameter("score", "k")
                    .parameter("better", "lower")
                    .parameter("vertices", instance.n)
                    .parameter("edges", instance.edges().len());
                if let Some(total) = max_iterations {
                    event = event.value("total", total as f64);
                }
                for (name, value) in config {
                    event = event.parameter(name.as_str(), value.clone());
                }
                event.on(context.device(&DeviceMode::Cpu))
            }
            Self::Warning { step, text } => context.event("warning", step.into()).note(text),
            Self::PhaseWorked { report, k, pass, round, iterations, .. } => {
                phase_worked(context, report, k, iterations)
                    .parameter("pass", pass)
                    .parameter("round", round)
                    .parameter("iterations", report.iterations)
            }
            Self::Improved { k, by, pass, iterations, at, .. } => context
                .event("improvement", format_smolstr!("coloring_{k}"))
                .value("k", k as f64)
                .value("iterations", iterations as f64)
                .parameter("by", by.name())
                .parameter("pass", pass)
                .parameter("found_s", context.ms_since_start(at).round() / 1e3),
            Self::Tuned(proposal) => proposal.event(context.run.clone()),
            Self::Ended(outcome) => {
                let name = if outcome.ending == Ending::Stopped { "stopped" } else { "complete" };
                context
                    .event("run", "end".into())
                    .on(context.device(&DeviceMode::Cpu))
                    .value("k", outcome.k as f64)
                    .value("iterations", outcome.iterations as f64)
                    .value("passes", outcome.passes as f64)
                    .value("bound", outcome.bound as f64)
                    .value("wall_s", outcome.seconds)
                    .parameter("outcome", name)
                    .note(outcome.ending.words())
            }
            Self::Failed { reason } => {
                context.event("run", "end".into()).parameter("outcome", "failed").note(reason)
            }
        })
    }
}

/// The number of colours is a parameter and not a value: a value `k` would count as a score, and this one may not be reached.
fn phase_worked(context: &RecordContext, report: &PhaseReport, k: usize, iterations: u64) -> Event {
    let mut event = context
        .event(report.kind.name(), format_smolstr!("k={k}"))
        .parameter("k", k)
        .lasting_ms(report.took.as_secs_f64() * 1e3)
        .on(context.device(&report.device))
        .value("start_ms", context.ms_since_start(report.began));
    if let Some(conflicts) = report.conflicts() {
        event = event.value("conflicts", f64::from(conflicts)).value("iterations", iterations as f64);
    }
    if let Some(speed) = report.it_per_s() {
        event = event.value("it_per_s", speed);
    }
    for (name, value) in &report.values {
        event = event.value(*name, *value);
    }
    for (name, value) in &report.parameters {
        event = event.parameter(*name, *value);
    }
    match &report.result {
        PhaseResult::Reduced(reduction) => event.value("vertices_left", reduction.graph.n() as f64),
        _ => event,
    }
}

#[cfg(test)]
mod tests;
