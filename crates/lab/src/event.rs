//! What happens while an experiment runs, and how telemetry writes it down.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidemill_fleet::FleetEvent;
use tidemill_search::Timing;
use tidemill_telemetry::hypertune::Proposal;
use tidemill_telemetry::{DeviceMode, Event, Journal, SmolStr, format_smolstr};

use crate::evaluator::BatchSpan;
use crate::record::SamplerSpan;
use crate::verdict::VerdictReport;
use crate::walkforward::WindowResult;

/// Something that happened. Steps of a walk-forward have the window's name before them, such as `window_3.`.
#[derive(Clone, Debug)]
pub enum SweepEvent {
    /// The study is open and the search is about to begin.
    Opened(Opening),
    /// The run begins or resumes.
    Started {
        /// Whether it resumes.
        is_resumed: bool,
        /// `sweep` or `walkforward`.
        workload: &'static str,
        /// Title for users.
        title: String,
        /// Trials in all.
        n_trials: u64,
        /// Where it runs.
        device: DeviceMode,
        /// The resolved configuration.
        config: Map<String, Value>,
    },
    /// A batch was evaluated, or read back from a folder.
    BatchFinished {
        /// Trials of the batch.
        n_trials: u64,
        /// Trials of the run so far.
        totals: Totals,
    },
    /// A trial is better than all before.
    Improved {
        /// Name of its step.
        step: SmolStr,
        /// Its number.
        trial: u64,
        /// The first objective.
        best: f64,
        /// Trials of the run so far.
        n_trials: u64,
        /// Active parameters by name.
        parameters: Vec<(String, Value)>,
    },
    /// A stage of a batch is over.
    StageEnded(Work),
    /// The times of a batch are complete.
    BatchTimed {
        /// Name of the batch.
        step: SmolStr,
        /// Where its time went.
        timing: Timing,
    },
    /// Figures that the sampler reports about itself.
    SamplerFacts {
        /// The batch that is proposed next.
        batch: u64,
        /// Numbers by name.
        facts: Vec<(String, f64)>,
    },
    /// A tuning rule advises a change, makes one, or reports its effect.
    TuningConfig(Proposal),
    /// A device failed; the rest runs on the CPU with the same results.
    FellBack {
        /// Why.
        reason: String,
    },
    /// Something happened to a worker.
    Fleet {
        /// What.
        event: FleetEvent,
        /// Milliseconds since the run began, where something began earlier.
        start_ms: Option<f64>,
    },
    /// The search is over, and the runtime keeps spans.
    Spans {
        /// When each stage ran on the devices.
        devices: Arc<[BatchSpan]>,
        /// When the sampler proposed and learned.
        sampler: Arc<[SamplerSpan]>,
    },
    /// The trials are done and the judging of the winners begins.
    Judging,
    /// The winners were judged.
    Judged {
        /// The verdict.
        report: Arc<VerdictReport>,
        /// Milliseconds since the run began.
        start_ms: f64,
        /// How long it took.
        duration_ms: f64,
    },
    /// What a window of a walk-forward chose was traded.
    WindowTraded {
        /// Its number, from 1.
        number: usize,
        /// Windows done so far.
        n_done: u64,
        /// Windows in all.
        n_windows: u64,
        /// Its result.
        result: Box<WindowResult>,
    },
    /// The run is over.
    Ended {
        /// `complete`, `stopped` or `failed`.
        outcome: &'static str,
        /// The reason or the result, in words.
        note: Option<String>,
        /// Where it ran last.
        device: DeviceMode,
        /// All trials together.
        totals: Totals,
        /// How long it took.
        wall_s: f64,
    },
    /// The journal could not be written to its end.
    JournalFailed {
        /// Why.
        reason: String,
    },
}

/// A study that was opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Trials that the sampler can propose.
    pub n_asked: u64,
    /// Trials of a batch.
    pub batch: usize,
    /// Trials that the folder holds already, if the study resumes.
    pub n_stored: Option<u64>,
    /// The version of the program that made the study, if it differs from this one.
    pub made_by: Option<String>,
    /// The journal of the run.
    pub journal: Arc<Journal>,
}

/// What all searches of a run have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Trials.
    pub trials: u64,
    /// Those with a score.
    pub valid: u64,
    /// The first objective of the best.
    pub best: Option<f64>,
}

/// A stage of a batch.
#[derive(Clone, Debug)]
pub struct Work {
    /// `ask`, `upload`, `distinct`, `kernel`, `download` or `tell`.
    pub phase: &'static str,
    /// Name of the batch.
    pub step: SmolStr,
    /// Milliseconds since the run began, if they are known.
    pub start_ms: Option<f64>,
    /// How long it took.
    pub duration_ms: f64,
    /// Where it ran.
    pub device: DeviceMode,
    /// How the whole batch went, with its kernels.
    pub batch: Option<BatchCounts>,
}

/// How a batch went.
#[derive(Clone, Copy, Debug)]
pub struct BatchCounts {
    /// Trials of the run so far.
    pub totals: Totals,
    /// Where the time went.
    pub timing: Timing,
    /// Share of the time that the device was at work, over the last batches; NaN if it is not known.
    pub busy: f64,
    /// How full it was over the same time: see [`DeviceUse::fill`](crate::fill::DeviceUse::fill).
    pub fill: f64,
}

impl SweepEvent {
    /// The record for the journal; `None` for events that only an observer gets.
    pub fn to_event(&self, run: &SmolStr) -> Option<Event> {
        let event =
            |phase: &'static str, step: SmolStr| Event::new(run.clone(), SmolStr::new_static(phase), step);
        Some(match self {
            Self::Opened(_)
            | Self::BatchFinished { .. }
            | Self::BatchTimed { .. }
            | Self::FellBack { .. }
            | Self::Spans { .. }
            | Self::Judging
            | Self::JournalFailed { .. } => return None,
            Self::Started { is_resumed, workload, title, n_trials, device, config } => {
                let event = event("run", if *is_resumed { "resume" } else { "start" }.into())
                    .value("total", *n_trials as f64)
                    .parameter("workload", *workload)
                    .parameter("title", title.as_str())
                    .parameter("progress", "trials")
                    .parameter("score", "best")
                    .parameter("better", "higher")
                    .parameter("lanes", json!({ "ask": "sampler", "tell": "sampler" }));
                let with = |event: Event, (name, value): (&String, &Value)| {
                    event.parameter(name.as_str(), value.clone())
                };
                config.iter().fold(event, with).on(device.clone())
            }
            Self::Improved { step, trial, best, n_trials, parameters } => {
                let event = event("improvement", step.clone())
                    .value("best", *best)
                    .value("trial", *trial as f64)
                    .value("trials", *n_trials as f64);
                parameters
                    .iter()
                    .fold(event, |event, (name, value)| event.parameter(name.as_str(), value.clone()))
            }
            Self::StageEnded(work) => work.to_event(event(work.phase, work.step.clone())),
            Self::SamplerFacts { batch, facts } => {
                let event = event("sampler", format_smolstr!("batch_{batch}")).on(DeviceMode::Cpu);
                facts.iter().fold(event, |event, (name, value)| event.value(name.as_str(), *value))
            }
            Self::TuningConfig(proposal) => proposal.event(run.clone()),
            Self::Fleet { event: happened, start_ms } => return fleet_event(happened, *start_ms, event),
            Self::Judged { report, start_ms, duration_ms } => {
                let step = report.winners.first().map_or_else(
                    || SmolStr::new_static("no_winner"),
                    |winner| format_smolstr!("trial_{}", winner.trial),
                );
                let mut event = event("verdict", step)
                    .lasting_ms(*duration_ms)
                    .on(DeviceMode::Cpu)
                    .value("independent_trials", report.independent_trials);
                if let Some(overfit) = &report.overfit {
                    event = event.value("overfit", overfit.probability);
                }
                if let Some(winner) = report.winners.first() {
                    event = event
                        .value("deflated", winner.deflated.unwrap_or(f64::NAN))
                        .value("survived", winner.verdict.n_survived as f64)
                        .value("checks", winner.verdict.n_checks as f64)
                        .note(winner.sentence.clone());
                }
                event.value("start_ms", *start_ms)
            }
            Self::WindowTraded { number, n_done, result, .. } => {
                let [searched, traded] = result.sharpe;
                let event = event("trade", format_smolstr!("window_{number}"))
                    .value("windows", *n_done as f64)
                    .value("sharpe_searched", searched.unwrap_or(f64::NAN))
                    .value("sharpe_traded", traded.unwrap_or(f64::NAN))
                    .value("return", result.total_return)
                    .value("trades", f64::from(result.trades));
                let with = |event: Event, (name, value): (&String, &Value)| {
                    event.parameter(name.as_str(), value.clone())
                };
                result.parameters.iter().fold(event, with).note(result.sentence())
            }
            Self::Ended { outcome, note, device, totals, wall_s } => {
                let mut event = event("run", "end".into())
                    .on(device.clone())
                    .value("trials", totals.trials as f64)
                    .value("valid", totals.valid as f64)
                    .value("wall_s", *wall_s)
                    .parameter("outcome", *outcome);
                if let Some(best) = totals.best {
                    event = event.value("best", best);
                }
                match note {
                    Some(note) => event.note(note.as_str()),
                    None => event,
                }
            }
        })
    }
}

/// The record of what happened to a worker; `None` for what only an observer hears.
fn fleet_event(
    happened: &FleetEvent,
    start_ms: Option<f64>,
    event: impl Fn(&'static str, SmolStr) -> Event,
) -> Option<Event> {
    Some(match happened {
        FleetEvent::Joined { lane, name, device } => event("worker", "joined".into())
            .value("lane", *lane as f64)
            .parameter("name", name.as_str())
            .parameter("device", device.as_str()),
        FleetEvent::Refused { name, reason } => {
            event("worker", "refused".into()).parameter("name", name.as_str()).note(reason.as_str())
        }
        FleetEvent::Lost { lane, name, reason, n_shards } => {
            let event = event("worker", "lost".into())
                .value("resent", *n_shards as f64)
                .parameter("name", name.as_str())
                .note(reason.as_str());
            lane.iter().fold(event, |event, lane| event.value("lane", *lane as f64))
        }
        FleetEvent::ShardDone(shard) => event("shard", format_smolstr!("batch_{}", shard.batch))
            .lasting_ms(ms(shard.took))
            .value("lane", shard.lane as f64)
            .value("shard_trials", shard.n_trials as f64)
            .value("copy", f64::from(u8::from(shard.is_copy)))
            .parameter("lane", format!("worker {}", shard.lane))
            .value("start_ms", start_ms.unwrap_or(f64::NAN)),
        FleetEvent::Hedged { late, name, n_trials } => event("worker", "hedged".into())
            .value("shard_trials", *n_trials as f64)
            .parameter("name", name.as_str())
            .parameter("late", late.as_str()),
        FleetEvent::Failed { name, reason } => {
            event("worker", "failed".into()).parameter("name", name.as_str()).note(reason.as_str())
        }
        FleetEvent::Hungry(hunger) => {
            event("worker", "hungry".into()).value("idle", hunger.idle).note(hunger.to_string())
        }
        FleetEvent::Waiting { since } => {
            event("worker", "waiting".into()).value("waited_s", since.as_secs_f64())
        }
    })
}

impl Work {
    fn to_event(&self, event: Event) -> Event {
        let mut event = event.lasting_ms(self.duration_ms).on(self.device.clone());
        if let Some(start_ms) = self.start_ms {
            event = event.value("start_ms", start_ms);
        }
        let Some(BatchCounts { totals, timing, busy, fill }) = self.batch else { return event };
        event = event
            .value("trials", totals.trials as f64)
            .value("valid", totals.valid as f64)
            .value("ask_ms", ms(timing.ask))
            .value("evaluate_ms", ms(timing.evaluate))
            .value("tell_ms", ms(timing.tell))
            .value("overlap_ms", ms(timing.overlap))
            .value("idle_ms", ms(timing.idle));
        if busy.is_finite() {
            event = event.value("busy", busy);
        }
        if fill.is_finite() {
            event = event.value("fill", fill);
        }
        match totals.best {
            Some(best) => event.value("best", best),
            None => event,
        }
    }
}

pub(crate) fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
