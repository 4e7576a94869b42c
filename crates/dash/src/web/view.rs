//! A snapshot as the page shows it: a few sections, each sent again only when it changed.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tidemill_telemetry::{DeviceMode, Event, Snapshot, Timestamp, WorkerStats};

use crate::terminal::{ProcessState, RunStatus, at_most_all};

/// Seconds over which the pace, and how busy and full the device is at the moment are taken.
const RECENT_S: f64 = 10.0;

/// Spans that are drawn, the newest.
const SPANS: usize = 400;

/// Events that are listed, the newest.
const EVENTS: usize = 80;

/// Actions, warnings and fall-backs that are listed of each, the newest.
const NOTES: usize = 40;

/// The sections by name, each as JSON.
pub(super) type Sections = Vec<(&'static str, String)>;

/// A run in the list of runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RunLine {
    pub(super) name: String,
    pub(super) workload: String,
    pub(super) title: String,
    pub(super) state: &'static str,
    pub(super) started: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    pub(super) progress: String,
    pub(super) done: f64,
    pub(super) total: Option<f64>,
    pub(super) best: Option<f64>,
    /// Whether it is a study, which has a summary.
    pub(super) has_trials: bool,
    /// Why it cannot be read.
    pub(super) error: Option<String>,
}

impl RunLine {
    pub(super) fn new(name: &str, snapshot: &Snapshot, process: ProcessState, has_trials: bool) -> Self {
        Self {
            name: name.to_owned(),
            workload: snapshot.workload.clone(),
            title: snapshot.title.clone(),
            state: RunStatus::of(snapshot, Timestamp::now(), process).word(),
            started: snapshot.started,
            last: snapshot.last,
            progress: snapshot.progress.clone(),
            done: snapshot.done,
            total: snapshot.total,
            best: snapshot.best,
            has_trials,
            error: None,
        }
    }

    /// A run that cannot be read.
    pub(super) fn damaged(name: &str, error: String) -> Self {
        Self {
            error: Some(error),
            state: "damaged",
            ..Self::new(name, &Snapshot::default(), ProcessState::Unknown, false)
        }
    }
}

/// All sections of a run.
pub(super) fn sections(snapshot: &Snapshot, process: ProcessState, has_trials: bool) -> Sections {
    let values: Map<String, Value> =
        snapshot.values.iter().map(|(name, value)| (name.to_owned(), json!(finite(*value)))).collect();
    let convergence: Vec<[f64; 3]> = snapshot
        .convergence
        .points()
        .iter()
        .map(|point| [short(point.at_s), point.done, point.score])
        .collect();
    let series = |points: Vec<(f64, f64)>| -> Vec<[f64; 2]> {
        points.into_iter().map(|(at_s, value)| [short(at_s), short(value)]).collect()
    };
    let full = snapshot.fill.points().map(|(at_s, share)| (at_s, at_most_all(share)));
    let newest = |skipped: usize| snapshot.recent.iter().skip(skipped).rev().map(event).collect::<Vec<_>>();
    let sections = [
        ("head", head(snapshot, process, has_trials)),
        ("config", json!(snapshot.config)),
        ("values", Value::Object(values)),
        ("convergence", json!(convergence)),
        ("busy", json!(series(snapshot.busy.points().collect()))),
        ("fill", json!(series(full.collect()))),
        ("rate", json!(series(snapshot.rate.points().collect()))),
        ("phases", phases(snapshot)),
        ("lanes", lanes(snapshot)),
        ("workers", workers(snapshot)),
        ("top", json!(snapshot.top)),
        ("recent", json!(newest(snapshot.recent.len().saturating_sub(EVENTS)))),
        ("actions", json!(snapshot.actions.iter().rev().take(NOTES).collect::<Vec<_>>())),
        ("warnings", json!(snapshot.warnings.iter().rev().take(NOTES).collect::<Vec<_>>())),
        ("fallbacks", json!(snapshot.fallbacks.iter().rev().take(NOTES).collect::<Vec<_>>())),
    ];
    sections.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

/// Sections that changed, as one JSON object.
pub(super) fn changed(sections: &Sections, before: &Sections) -> Option<String> {
    let is_new = |(at, section): &(usize, &(&str, String))| before.get(*at) != Some(*section);
    let parts: Vec<String> = sections
        .iter()
        .enumerate()
        .filter(is_new)
        .map(|(_, (name, json))| format!("\"{name}\":{json}"))
        .collect();
    (!parts.is_empty()).then(|| format!("{{{}}}", parts.join(",")))
}

fn head(snapshot: &Snapshot, process: ProcessState, has_trials: bool) -> Value {
    let now = Timestamp::now();
    let status = RunStatus::of(snapshot, now, process);
    json!({
        "run": snapshot.run,
        "workload": snapshot.workload,
        "title": snapshot.title,
        "state": status.word(),
        // How long it has been silent would change this section every second.
        "outcome": snapshot.outcome,
        "is_over": status.is_over(),
        "has_trials": has_trials,
        "started": snapshot.started,
        "resumed": snapshot.resumed,
        "last": snapshot.last,
        "n_resumes": snapshot.n_resumes,
        "elapsed_s": snapshot.elapsed_s(),
        "eta_s": snapshot.eta_s(),
        "progress": snapshot.progress,
        "done": snapshot.done,
        "total": snapshot.total,
        "score": snapshot.score,
        "is_lower_better": snapshot.is_lower_better,
        "best": snapshot.best,
        "rate": snapshot.rate.recent(RECENT_S),
        "busy": snapshot.busy.recent(RECENT_S),
        "fill": snapshot.fill.recent(RECENT_S).map(at_most_all),
        "n_batches": snapshot.n_batches,
        "n_improvements": snapshot.n_improvements,
        "improved_at_batch": snapshot.improved_at_batch,
        "n_events": snapshot.n_events,
        "n_dropped": snapshot.n_dropped,
        "n_actions": snapshot.n_actions,
        "n_warnings": snapshot.n_warnings,
        "n_fallbacks": snapshot.n_fallbacks,
    })
}

fn phases(snapshot: &Snapshot) -> Value {
    let wall_ms = snapshot.elapsed_s() * 1e3;
    let of = |(name, phase): (&String, &tidemill_telemetry::PhaseStats)| {
        json!({
            "name": name,
            "count": phase.count,
            "total_ms": short(phase.total_ms),
            "mean_ms": phase.mean_ms().map(short),
            "p50_ms": phase.quantile_ms(0.5).map(short),
            "p99_ms": phase.quantile_ms(0.99).map(short),
            "max_ms": short(phase.max_ms),
            "share": (wall_ms > 0.0).then(|| short(phase.total_ms / wall_ms)),
            "gpu_ms": short(phase.gpu_ms),
            "cpu_ms": short(phase.cpu_ms),
            "fallback_ms": short(phase.fallback_ms),
        })
    };
    Value::Array(snapshot.phases.iter().map(of).collect())
}

/// The newest spans: names once, then numbers.
fn workers(snapshot: &Snapshot) -> Value {
    let worker = |(lane, worker): (&u64, &WorkerStats)| {
        json!({
            "lane": lane,
            "name": worker.name,
            "device": worker.device,
            "is_present": worker.is_present,
            "shards": worker.n_shards,
            "trials": worker.n_trials,
            "rate": worker.rate().map(short),
            "copies": worker.n_copies,
            "lost": worker.n_lost,
            "resent": worker.n_resent,
        })
    };
    json!(snapshot.workers.iter().map(worker).collect::<Vec<_>>())
}

fn lanes(snapshot: &Snapshot) -> Value {
    let mut names: Vec<&str> = Vec::new();
    let mut phases: Vec<&str> = Vec::new();
    let mut spans: Vec<Value> = Vec::new();
    for span in snapshot.spans.iter().skip(snapshot.spans.len().saturating_sub(SPANS)) {
        let lane = place(&mut names, &span.lane);
        let phase = place(&mut phases, &span.phase);
        spans.push(json!([lane, phase, short(span.start_ms), short(span.duration_ms), span.step]));
    }
    json!({ "lanes": names, "phases": phases, "spans": spans })
}

fn place<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn event(event: &Event) -> Value {
    let device = match &event.device {
        Some(DeviceMode::Gpu { stream }) => Some(format!("stream {stream}")),
        Some(DeviceMode::CpuFallback { .. }) => Some("cpu (fall-back)".to_owned()),
        Some(DeviceMode::Cpu) => Some("cpu".to_owned()),
        None => None,
    };
    json!({
        "at": event.timestamp,
        "phase": event.phase,
        "step": event.step,
        "ms": event.duration_ms.map(short),
        "device": device,
        "note": event.notes,
    })
}

/// A number in as many digits as a screen can tell apart.
fn short(value: f64) -> f64 {
    if value.fract() == 0.0 { value } else { format!("{value:.4e}").parse().unwrap_or(value) }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sections_that_changed_are_sent() {
        let mut snapshot = Snapshot::default();
        snapshot.apply(&Event::new("r", "run", "start").parameter("workload", "sweep").value("total", 10.0));
        let first = sections(&snapshot, ProcessState::Alive, true);
        let all: Value = serde_json::from_str(&changed(&first, &Vec::new()).unwrap()).unwrap();
        assert_eq!(
            (all["head"]["state"].as_str(), all["head"]["total"].as_f64()),
            (Some("running"), Some(10.0))
        );
        assert_eq!(all.as_object().unwrap().len(), first.len());
        assert_eq!(changed(&first, &first), None);
        snapshot.apply(&Event::new("r", "warning", "disk").note("nearly full"));
        let second = sections(&snapshot, ProcessState::Alive, true);
        let delta: Value = serde_json::from_str(&changed(&second, &first).unwrap()).unwrap();
        assert_eq!(delta["warnings"][0]["text"], "nearly full");
        assert!(delta.get("phases").is_none() && delta.get("config").is_none());
    }

    #[test]
    fn spans_name_their_lanes_once() {
        let mut snapshot = Snapshot::default();
        for (at, stream) in [0, 1, 0].into_iter().enumerate() {
            let event = Event::new("r", "kernel", "batch_1").lasting_ms(1.5).on(DeviceMode::Gpu { stream });
            snapshot.apply(&event.value("start_ms", at as f64));
        }
        let lanes = lanes(&snapshot);
        assert_eq!(lanes["lanes"], json!(["stream 0", "stream 1"]));
        assert_eq!(lanes["spans"][2], json!([0, 0, 2.0, 1.5, "batch_1"]));
    }
}
