//! The figures of the phases, as both the summary and the screen show them.

use tidemill_telemetry::{PhaseStats, Snapshot};

use super::number;

/// Phases of the journal's own vocabulary, which are no work and have no durations.
const SPOKEN: [&str; 5] = ["run", "improvement", "hypertune", "warning", "journal"];

/// A requested phase that the run does not have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this run has no phase `{name}`\n  hint: it has {}", known.join(", "))]
pub struct UnknownPhase {
    /// The requested name.
    pub name: String,
    /// Those there are.
    pub known: Vec<String>,
}

/// Whether a run has all of these phases.
pub fn check_phases(snapshot: &Snapshot, wanted: &[String]) -> Result<(), UnknownPhase> {
    let is_known = |name: &str| SPOKEN.contains(&name) || snapshot.phases.contains_key(name);
    match wanted.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let known = snapshot.phases.keys().cloned().chain(SPOKEN.map(str::to_owned)).collect();
            Err(UnknownPhase { name: name.clone(), known })
        }
    }
}

/// One phase with its figures.
pub struct PhaseRow<'a> {
    /// Name of the phase.
    pub name: &'a str,
    /// Its place among the phases by name, which decides its colour.
    pub idx: usize,
    /// Share of the running time; above one where several ran at a time.
    pub share: f64,
    stats: &'a PhaseStats,
}

/// The phases that are wanted, those that took longest first.
pub fn rows(snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> Vec<PhaseRow<'_>> {
    let elapsed_ms = snapshot.elapsed_s() * 1e3;
    let mut rows: Vec<PhaseRow<'_>> = snapshot
        .phases
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| is_wanted(name))
        .map(|(idx, (name, stats))| {
            let share =
                if elapsed_ms > 0.0 && stats.total_ms > 0.0 { stats.total_ms / elapsed_ms } else { f64::NAN };
            PhaseRow { name, idx, share, stats }
        })
        .collect();
    rows.sort_by(|a, b| b.stats.total_ms.total_cmp(&a.stats.total_ms).then(a.name.cmp(b.name)));
    rows
}

/// The place of a phase among the phases by name.
pub fn idx_of(snapshot: &Snapshot, phase: &str) -> usize {
    snapshot.phases.keys().position(|name| name == phase).unwrap_or(0)
}

impl PhaseRow<'_> {
    /// Number of steps.
    pub fn count(&self) -> String {
        number::count(self.stats.count)
    }

    /// Time of all steps.
    pub fn total(&self) -> String {
        if self.stats.total_ms > 0.0 { number::duration(self.stats.total_ms) } else { "–".into() }
    }

    /// Mean, median and the 99th of a hundred.
    pub fn figures(&self) -> [String; 3] {
        let text = |ms: Option<f64>| ms.map_or_else(|| "–".into(), number::duration);
        [self.stats.mean_ms(), self.stats.quantile_ms(0.5), self.stats.quantile_ms(0.99)].map(text)
    }

    /// Shares of its time on a GPU, on the CPU, and on the CPU although a GPU was wanted.
    pub fn split(&self) -> [String; 3] {
        let total_ms = self.stats.total_ms;
        [self.stats.gpu_ms, self.stats.cpu_ms, self.stats.fallback_ms].map(|ms| match ms {
            ms if total_ms <= 0.0 || ms <= 0.0 => "–".to_owned(),
            ms => format!("{:.0}%", ms / total_ms * 100.0),
        })
    }

    /// Where it ran mostly, in one word.
    pub fn place(&self) -> &'static str {
        let stats = self.stats;
        match (stats.gpu_ms, stats.cpu_ms, stats.fallback_ms) {
            (gpu, cpu, fallback) if gpu > 0.0 && cpu + fallback > 0.0 => "GPU+CPU",
            (gpu, ..) if gpu > 0.0 => "GPU",
            (_, _, fallback) if fallback > 0.0 => "fallback",
            (_, cpu, _) if cpu > 0.0 => "CPU",
            _ => "–",
        }
    }
}
