//! How an event changes a snapshot.

use std::collections::VecDeque;

use serde_json::Value;
use smol_str::{SmolStr, format_smolstr};

use crate::event::{DeviceMode, Event};
use crate::snapshot::{
    Action, Effect, KEPT, MAX_NAMES, Note, Pace, PhaseStats, RECENT_EVENTS, RECENT_SPANS, Reached, RunState,
    Snapshot, Span, TOP, Top,
};

/// The least time over which speed is measured.
const LEAST_PACE_S: f64 = 0.2;

pub(super) fn take(to: &mut Snapshot, event: Event) {
    let (phase, step) = (event.phase.as_str(), event.step.as_str());
    match (phase, step) {
        ("run", "start" | "resume") => begin(to, &event),
        _ if to.started.is_none() => {
            let mut start = Event::new(event.run.clone(), "run", "start");
            start.timestamp = event.timestamp;
            begin(to, &start);
        }
        // Threads make events side by side, so a later record may be of an earlier moment.
        _ => to.last = to.last.max(Some(event.timestamp)),
    }
    if event.is("run", "alive") {
        return;
    }
    to.n_events += 1;
    match (phase, step) {
        ("run", "start" | "resume") => {}
        ("run", "end") => end(to, &event),
        ("journal", "dropped") => to.n_dropped += number(&event, "dropped").unwrap_or(0.0) as u64,
        ("improvement", _) => improve(to, &event),
        ("hypertune", _) => tune(to, &event),
        ("worker" | "shard", _) => worker(to, &event),
        ("warning", _) => {
            to.n_warnings += 1;
            keep(&mut to.warnings, note(&event), KEPT);
        }
        _ => work(to, &event),
    }
    keep(&mut to.recent, event, RECENT_EVENTS);
}

fn begin(to: &mut Snapshot, event: &Event) {
    if to.started.is_some() {
        to.n_resumes += 1;
        // The time at work ended with the newest record.
        to.earlier_s = to.elapsed_s();
        to.spans.clear();
        to.workers.values_mut().for_each(|worker| worker.is_present = false);
        to.pace = None;
    } else {
        to.started = Some(event.timestamp);
        to.pace = Some(Pace { at_s: 0.0, done: 0.0 });
    }
    to.resumed = Some(event.timestamp);
    to.last = Some(event.timestamp);
    to.state = RunState::Running;
    to.outcome = None;
    to.run = event.run.to_string();
    to.config = event.parameters.clone();
    let text = |name: &str, default: &str| {
        event.parameters.get(name).and_then(Value::as_str).unwrap_or(default).to_owned()
    };
    to.workload = text("workload", "run");
    to.title = text("title", &event.run);
    to.progress = text("progress", "trials");
    to.score = text("score", "best");
    to.is_lower_better = text("better", "higher") == "lower";
    to.total = number(event, "total");
}

fn end(to: &mut Snapshot, event: &Event) {
    to.state = match event.parameters.get("outcome").and_then(Value::as_str) {
        Some("stopped") => RunState::Stopped,
        Some("failed") => RunState::Failed,
        _ => RunState::Complete,
    };
    to.outcome.clone_from(&event.notes);
    to.workers.values_mut().for_each(|worker| worker.is_present = false);
    values(to, event);
}

fn improve(to: &mut Snapshot, event: &Event) {
    let Some(score) = number(event, &to.score) else { return };
    if to.best.is_none_or(|best| to.is_better(score, best)) {
        to.best = Some(score);
        to.n_improvements += 1;
        to.improved_at_batch = to.n_batches;
        let done = number(event, &to.progress).unwrap_or(to.done);
        let at_s = to.elapsed_s();
        to.convergence.push(Reached { at_s, done, score });
    }
    // A resumed run may tell again what it found before.
    if to.top.iter().any(|known| known.name == event.step.as_str()) {
        return;
    }
    let place = to.top.iter().position(|known| to.is_better(score, known.score)).unwrap_or(to.top.len());
    if place < TOP {
        to.top
            .insert(place, Top { name: event.step.to_string(), score, parameters: event.parameters.clone() });
        to.top.truncate(TOP);
    }
}

fn tune(to: &mut Snapshot, event: &Event) {
    let text = |name: &str| event.parameters.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = number(event, "id").unwrap_or(0.0) as u64;
    if event.step == "effect" {
        if let Some(action) = to.actions.iter_mut().rev().find(|action| action.id == id) {
            action.effect = Some(Effect {
                measure: text("measure"),
                before: number(event, "before").unwrap_or(f64::NAN),
                after: number(event, "after").unwrap_or(f64::NAN),
            });
        }
        return;
    }
    to.n_actions += 1;
    let setting = |name: &str| event.parameters.get(name).cloned().unwrap_or(Value::Null);
    let action = Action {
        id,
        at: event.timestamp,
        rule: text("rule"),
        cause: event.notes.clone().unwrap_or_default(),
        knob: text("knob"),
        old: setting("old"),
        new: setting("new"),
        is_applied: event.step == "apply",
        batch: number(event, "batch").map(|batch| batch as u64),
        effect: None,
    };
    keep(&mut to.actions, action, KEPT);
}

/// Something of a worker, on its lane. Its numbers are about that worker alone, and none of the run.
fn worker(to: &mut Snapshot, event: &Event) {
    if let Some(lane) = number(event, "lane").map(|lane| lane as u64)
        && (to.workers.len() < MAX_NAMES || to.workers.contains_key(&lane))
    {
        to.workers.entry(lane).or_default().take(event);
    }
    if let Some(ms) = event.duration_ms {
        let elapsed_s = to.elapsed_s();
        to.phases.entry(event.phase.to_string()).or_default().add(event, elapsed_s);
        let span = span(to, event, ms, elapsed_s - to.earlier_s);
        keep(&mut to.spans, span, RECENT_SPANS);
    }
}

/// A step of a phase.
fn work(to: &mut Snapshot, event: &Event) {
    let elapsed_s = to.elapsed_s();
    if to.phases.len() < MAX_NAMES || to.phases.contains_key(event.phase.as_str()) {
        // Looked up twice, because a name is copied only once.
        if !to.phases.contains_key(event.phase.as_str()) {
            to.phases.insert(event.phase.to_string(), PhaseStats::default());
        }
        if let Some(phase) = to.phases.get_mut(event.phase.as_str()) {
            phase.add(event, elapsed_s);
        }
    }
    if let Some(ms) = event.duration_ms {
        let span = span(to, event, ms, elapsed_s - to.earlier_s);
        keep(&mut to.spans, span, RECENT_SPANS);
    }
    if let Some(DeviceMode::CpuFallback { reason }) = &event.device
        && to.fallbacks.back().is_none_or(|last| last.text != *reason)
    {
        to.n_fallbacks += 1;
        let source = format!("{} {}", event.phase, event.step);
        keep(&mut to.fallbacks, Note { at: event.timestamp, source, text: reason.clone() }, KEPT);
    }
    values(to, event);
}

/// Takes in the values of an event: progress, score, how busy and how full the device was.
fn values(to: &mut Snapshot, event: &Event) {
    for (name, value) in event.values.iter() {
        if name != "start_ms" && (to.values.len() < MAX_NAMES || to.values.get(name).is_some()) {
            to.values.insert(name, *value);
        }
    }
    let at_s = to.elapsed_s();
    if let Some(done) = number(event, &to.progress) {
        progress(to, done, at_s);
    }
    if let Some(score) = number(event, &to.score)
        && to.best.is_none_or(|best| to.is_better(score, best))
    {
        to.best = Some(score);
        to.convergence.push(Reached { at_s, done: to.done, score });
        to.n_improvements += 1;
        to.improved_at_batch = to.n_batches;
    }
    // A share counts for as long as it was measured: the time of the record, or the wall time that it reports.
    let weight = event.duration_ms.or_else(|| number(event, "wall_ms")).unwrap_or(1.0).max(1e-3);
    if let Some(busy) = number(event, "busy") {
        to.busy.push(at_s, busy, weight);
    }
    if let Some(fill) = number(event, "fill") {
        to.fill.push(at_s, fill, weight);
    }
}

/// Takes in how much is done. Speed is measured between two reports of something new, so that what a resumed run replays,
/// and the time that it takes for that, do not count.
fn progress(to: &mut Snapshot, done: f64, at_s: f64) {
    let is_new = done > to.done;
    to.n_batches += u64::from(is_new);
    to.done = to.done.max(done);
    match to.pace {
        Some(pace) if is_new => {
            let over_s = at_s - pace.at_s;
            if over_s >= LEAST_PACE_S {
                to.rate.push(at_s, (done - pace.done) / over_s, over_s);
                to.pace = Some(Pace { at_s, done });
            }
        }
        // A report of the same once more, by another phase of the batch, is no replay.
        Some(_) if done == to.done => {}
        _ => to.pace = Some(Pace { at_s, done: to.done }),
    }
}

fn span(of: &Snapshot, event: &Event, duration_ms: f64, now_s: f64) -> Span {
    let own = || event.parameters.get("lane")?.as_str();
    let declared = || own().or_else(|| of.config.get("lanes")?.get(event.phase.as_str())?.as_str());
    let lane = match &event.device {
        Some(DeviceMode::Gpu { stream }) => format_smolstr!("stream {stream}"),
        _ => declared().map_or(SmolStr::new_static("cpu"), SmolStr::new),
    };
    let start_ms = number(event, "start_ms").unwrap_or(now_s * 1e3 - duration_ms);
    Span { lane, phase: event.phase.clone(), step: event.step.clone(), start_ms, duration_ms }
}

fn note(event: &Event) -> Note {
    let source = format!("{} {}", event.phase, event.step);
    Note { at: event.timestamp, source, text: event.notes.clone().unwrap_or_default() }
}

pub(super) fn number(event: &Event, name: &str) -> Option<f64> {
    event.values.get(name).copied().filter(|value| value.is_finite())
}

fn keep<T>(kept: &mut VecDeque<T>, one: T, most: usize) {
    if kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(one);
}
