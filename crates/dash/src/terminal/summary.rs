//! A run as text: settings, status, and where its time went.

use tidemill_telemetry::{Action, Note, PhaseStats, Series, Snapshot, Timestamp, WorkerStats};

use super::status::{ProcessState, RunStatus, moment};
use super::{number, phase, table};

/// Improvements, fall-backs, warnings and actions that are listed of each, the newest.
const LISTED: usize = 10;

/// What a summary is made of.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// The run.
    pub snapshot: &'a Snapshot,
    /// Only these phases; none means all.
    pub phases: &'a [String],
    /// The present.
    pub now: Timestamp,
    /// Whether the process of the run lives, if known.
    pub process: ProcessState,
}

/// A run in text, without colours: a head, the phases, and what happened.
pub fn summary(of: &Summary<'_>) -> String {
    let is_wanted = |name: &str| of.phases.is_empty() || of.phases.iter().any(|phase| phase == name);
    let mut out = head(of);
    let rows = phase::rows(of.snapshot, is_wanted);
    if !rows.is_empty() {
        out += "\nphases\n";
        let header = ["phase", "count", "total", "mean", "p50", "p99", "of wall", "GPU", "CPU", "fallback"];
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let mut cells = vec![number::clean(row.name), row.count(), row.total()];
                cells.extend(row.figures());
                cells.push(number::percent(row.share));
                cells.extend(row.split());
                cells
            })
            .collect();
        out += &table::table(&header, &rows);
    }
    if is_wanted("worker") {
        out += &workers(of.snapshot);
    }
    if is_wanted("improvement") {
        out += &improvements(of.snapshot);
    }
    if is_wanted("hypertune") {
        let lines = of.snapshot.actions.iter().rev().map(action);
        out += &section("actions of the hypertuner", of.snapshot.n_actions, lines);
    }
    if of.phases.is_empty() {
        let lines = of.snapshot.fallbacks.iter().rev().map(note);
        out += &section("fall-backs to the CPU", of.snapshot.n_fallbacks, lines);
    }
    if is_wanted("warning") {
        let lines = of.snapshot.warnings.iter().rev().map(note);
        out += &section("warnings", of.snapshot.n_warnings, lines);
    }
    out
}

/// The workers of a run that is spread over several.
fn workers(snapshot: &Snapshot) -> String {
    if snapshot.workers.is_empty() {
        return String::new();
    }
    let header = ["worker", "on", "shards", "trials", "trials/s", "copies", "lost", "sent again"];
    let row = |(lane, worker): (&u64, &WorkerStats)| {
        let gone = if worker.is_present { "" } else { " (gone)" };
        vec![
            format!("{lane} {}{gone}", number::clean(&worker.name)),
            number::clean(&worker.device),
            number::count(worker.n_shards),
            number::count(worker.n_trials),
            worker.rate().map_or_else(|| "–".to_owned(), number::rough),
            number::count(worker.n_copies),
            number::count(worker.n_lost),
            number::count(worker.n_resent),
        ]
    };
    format!("\nworkers\n{}", table::table(&header, &snapshot.workers.iter().map(row).collect::<Vec<_>>()))
}

fn head(of: &Summary<'_>) -> String {
    let snapshot = of.snapshot;
    let status = RunStatus::of(snapshot, of.now, of.process);
    let mut rows = vec![("state", status.sentence(snapshot, of.now))];
    if let Some(started) = snapshot.started {
        let resumed = match snapshot.n_resumes {
            0 => String::new(),
            1 => ", resumed once".to_owned(),
            n => format!(", resumed {n} times"),
        };
        let elapsed = number::duration(snapshot.elapsed_s() * 1e3);
        rows.push(("started", format!("{}, {elapsed} at work{resumed}", moment(started))));
    }
    rows.push(("progress", progress(snapshot, status)));
    rows.extend(snapshot.best.map(|best| (snapshot.score.as_str(), best_line(snapshot, best))));
    let values = values(snapshot);
    if !values.is_empty() {
        rows.push(("values", values.join(" | ")));
    }
    rows.extend(device(snapshot).map(|text| ("device", text)));
    rows.extend(places(snapshot).map(|text| ("work", text)));
    let mut events = number::counted(snapshot.n_events, "event");
    if snapshot.n_dropped > 0 {
        events += &format!(", {} dropped because they came too fast", number::count(snapshot.n_dropped));
    }
    rows.push(("journal", events));
    let width = rows.iter().map(|(name, _)| table::width(name)).max().unwrap_or(0);
    let mut out = title(snapshot) + "\n";
    for (name, text) in rows {
        let pad = " ".repeat(width - table::width(name));
        out += &format!("  {name}{pad}  {text}\n");
    }
    out
}

/// What the run is, on one line.
pub fn title(snapshot: &Snapshot) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in [&snapshot.title, &snapshot.workload, &snapshot.run] {
        let part = number::clean(part);
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() { "a run without events yet".to_owned() } else { parts.join(" · ") }
}

/// How much is done, how fast, and how long it may take.
pub fn progress(snapshot: &Snapshot, status: RunStatus) -> String {
    let name = number::clean(&snapshot.progress);
    let mut out = number::amount(snapshot.done);
    if let Some(total) = snapshot.total {
        out += &format!(" of {}", number::amount(total));
    }
    out += &format!(" {name}");
    if let Some(share) = share_done(snapshot) {
        out += &format!(" ({})", number::percent(share));
    }
    if let Some(rate) = pace(snapshot) {
        out += &format!(", {} {name}/s", number::rough(rate));
    }
    if status == RunStatus::Live
        && let Some(eta_s) = snapshot.eta_s()
    {
        out += &format!(", {} left", number::seconds(eta_s));
    }
    out
}

/// Progress per second: the newest while it runs, the mean once it has ended.
pub fn pace(snapshot: &Snapshot) -> Option<f64> {
    let elapsed_s = snapshot.elapsed_s();
    let mean = (elapsed_s > 0.0 && snapshot.done > 0.0).then(|| snapshot.done / elapsed_s);
    match snapshot.state {
        tidemill_telemetry::RunState::Running => snapshot.rate.newest().or(mean),
        _ => mean,
    }
}

/// Share of what there is to do, if there is an end.
pub fn share_done(snapshot: &Snapshot) -> Option<f64> {
    let total = snapshot.total.filter(|total| *total > 0.0)?;
    Some((snapshot.done / total).clamp(0.0, 1.0))
}

fn best_line(snapshot: &Snapshot, best: f64) -> String {
    let mut out = number::short(best);
    if let Some(last) = snapshot.convergence.points().last() {
        let at = number::duration(last.at_s * 1e3);
        let done = number::amount(last.done);
        out += &format!(", reached after {done} {}, {at} at work", number::clean(&snapshot.progress));
    }
    out + &format!(", {}", number::counted(snapshot.n_improvements, "improvement"))
}

/// The newest values beside progress, score and times, each in the form its name asks for.
pub fn values(snapshot: &Snapshot) -> Vec<String> {
    let is_elsewhere = |name: &str| {
        let name_of = [snapshot.progress.as_str(), &snapshot.score, "busy", "fill", "total"];
        name_of.contains(&name) || number::is_duration(name)
    };
    let own = snapshot.values.iter().filter(|(name, _)| !is_elsewhere(name));
    own.map(|(name, value)| number::named(&number::clean(name), *value)).collect()
}

/// How busy the device is, and how full, as far as that was told.
fn device(snapshot: &Snapshot) -> Option<String> {
    let told = [("busy", &snapshot.busy), ("full", &snapshot.fill)];
    let parts: Vec<String> = told.into_iter().filter_map(|(word, series)| share(word, series)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A share of the device as it is now, and in the mean: `busy 98.1%, mean 97.5%`.
pub fn share(word: &str, series: &Series) -> Option<String> {
    let newest = series.newest()?;
    let (mut sum, mut n) = (0.0, 0.0);
    for (_, share) in series.points() {
        (sum, n) = (sum + at_most_all(share), n + 1.0);
    }
    let (newest, mean) = (number::percent(at_most_all(newest)), number::percent(sum / n));
    Some(format!("{word} {newest}, mean {mean}"))
}

/// A share of the device for people. Streams that have more work at a time than fits add up to more than all of it.
pub fn at_most_all(share: f64) -> f64 {
    share.min(1.0)
}

/// Where the time of all phases went.
fn places(snapshot: &Snapshot) -> Option<String> {
    let sum = |ms: fn(&PhaseStats) -> f64| snapshot.phases.values().map(ms).sum::<f64>();
    let total_ms = sum(|phase| phase.total_ms);
    let places = [
        ("on a GPU", sum(|phase| phase.gpu_ms)),
        ("on the CPU", sum(|phase| phase.cpu_ms)),
        ("on the CPU after a fall-back", sum(|phase| phase.fallback_ms)),
    ];
    let taken = places.iter().filter(|(_, ms)| *ms > 0.0);
    let parts: Vec<String> =
        taken.map(|(place, ms)| format!("{} {place}", number::percent(ms / total_ms))).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn improvements(snapshot: &Snapshot) -> String {
    let lines = snapshot.top.iter().map(|top| {
        let settings = settings(&top.parameters);
        format!("{}={}  {}  {settings}", snapshot.score, number::short(top.score), number::clean(&top.name))
    });
    if snapshot.top.is_empty() {
        return String::new();
    }
    let n = snapshot.top.len() as u64;
    section("best found", n, lines)
}

/// Settings that a line has room for.
const MOST_SETTINGS: usize = 16;

/// Named settings on one line; of very many, the first.
pub fn settings(parameters: &tidemill_telemetry::Fields<serde_json::Value>) -> String {
    let each =
        parameters.iter().map(|(name, value)| format!("{}={}", number::clean(name), number::setting(value)));
    let mut shown: Vec<String> = each.take(MOST_SETTINGS).collect();
    let n_more = parameters.len().saturating_sub(MOST_SETTINGS);
    if n_more > 0 {
        shown.push(format!("… and {n_more} more"));
    }
    shown.join(" ")
}

/// Actions of the hypertuner with their reasons and effects.
pub fn action(action: &Action) -> String {
    let verb = if action.is_applied { "applied" } else { "advised" };
    let (old, new) = (number::setting(&action.old), number::setting(&action.new));
    let mut out =
        format!("{verb} {} {old} → {new} ({})", number::clean(&action.knob), number::clean(&action.rule));
    if let Some(batch) = action.batch {
        out += &format!(" from batch {batch}");
    }
    if !action.cause.is_empty() {
        out += &format!(": {}", number::clean(&action.cause));
    }
    if let Some(effect) = &action.effect {
        let change = effect.after / effect.before - 1.0;
        let change = if change.is_finite() { format!(" ({:+.1}%)", change * 100.0) } else { String::new() };
        let (before, after) = (number::rough(effect.before), number::rough(effect.after));
        out += &format!("; {} {before} → {after}{change}", number::clean(&effect.measure));
    }
    out
}

/// A sentence with its time and source.
pub fn note(note: &Note) -> String {
    let time = note.at.to_string();
    let clock = time.get(11..19).unwrap_or(&time);
    format!("{clock} {}: {}", number::clean(&note.source), number::clean(&note.text))
}

fn section(name: &str, n: u64, lines: impl Iterator<Item = String>) -> String {
    if n == 0 {
        return String::new();
    }
    let mut out = format!("\n{name} ({})\n", number::count(n));
    for line in lines.take(LISTED) {
        out += &format!("  {}\n", line.trim_end());
    }
    if n > LISTED as u64 {
        out += &format!("  … and {} more\n", number::count(n - LISTED as u64));
    }
    out
}
