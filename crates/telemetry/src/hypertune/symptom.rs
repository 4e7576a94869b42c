//! The symptoms of a run that goes badly, and the rules that find them.

use crate::hypertune::history::{History, Window};
use crate::hypertune::signal::Signals;
use crate::hypertune::threshold::Thresholds;
use crate::snapshot::Snapshot;

/// Share of the time below which the work of the host is not worth hiding.
const LITTLE: f64 = 0.05;

/// A problem of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// No better score for many batches.
    NoImprovement,
    /// A phase that reported regularly has been silent for long.
    StalledPhase,
    /// The device waits, or batches are so short that what they cost beside its work counts.
    LowEfficiency,
    /// Many items of the progress failed: see [`FailureSignal`](super::FailureSignal).
    ManyFailures,
    /// A value that has to fall does not: see [`FallingSignal`](super::FallingSignal).
    NotFalling,
}

/// A symptom that a rule found.
pub(super) struct Detection {
    /// A sentence with numbers.
    pub(super) cause: String,
    /// By how much a remedy should change what it multiplies, as far as the measurements show it.
    pub(super) factor: f64,
}

impl Symptom {
    /// The order in which the tuner looks for symptoms.
    pub const ALL: [Symptom; 5] = [
        Symptom::StalledPhase,
        Symptom::LowEfficiency,
        Symptom::ManyFailures,
        Symptom::NotFalling,
        Symptom::NoImprovement,
    ];

    /// The name of its rule in records; none if the workload does not declare the value that it reads.
    pub(super) fn rule(self, signals: &Signals) -> Option<&'static str> {
        match self {
            Symptom::NoImprovement => Some("no_improvement"),
            Symptom::StalledPhase => Some("stalled_phase"),
            Symptom::LowEfficiency => Some("low_efficiency"),
            Symptom::ManyFailures => signals.failures.map(|failures| failures.rule),
            Symptom::NotFalling => signals.falling.map(|falling| falling.rule),
        }
    }

    /// Whether it is about speed, which an action must not make worse.
    pub(super) fn is_of_speed(self) -> bool {
        matches!(self, Symptom::StalledPhase | Symptom::LowEfficiency)
    }
}

/// What a rule reads.
pub(super) struct RuleInput<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) signals: &'a Signals,
    pub(super) history: &'a History,
    pub(super) thresholds: &'a Thresholds,
    /// Whether the symptom was there at the last look, so that it has to get clearly better to be gone.
    pub(super) was_there: bool,
    /// The last batch at which something was done about it.
    pub(super) acted_at: u64,
    /// Since when a phase is expected to report, in seconds at work; none while it is switched off.
    pub(super) expected_since: &'a dyn Fn(&str) -> Option<f64>,
}

impl RuleInput<'_> {
    /// The symptom, if it is there.
    pub(super) fn find(&self, symptom: Symptom) -> Option<Detection> {
        match symptom {
            Symptom::NoImprovement => self.no_improvement(),
            Symptom::StalledPhase => self.stalled_phase(),
            Symptom::LowEfficiency => self.low_efficiency(),
            Symptom::ManyFailures => self.many_failures(),
            Symptom::NotFalling => self.not_falling(),
        }
    }

    fn no_improvement(&self) -> Option<Detection> {
        // An action gets as many batches as the search had before it.
        let since = self.snapshot.improved_at_batch.max(self.acted_at);
        let n_batches = self.snapshot.n_batches.saturating_sub(since);
        let best = self.snapshot.best.map_or_else(|| "no score".to_owned(), |best| format!("{best}"));
        (n_batches >= self.thresholds.no_improvement_batches)
            .then(|| Detection::new(format!("nothing better than {best} in {n_batches} batches")))
    }

    fn stalled_phase(&self) -> Option<Detection> {
        let now_s = self.snapshot.elapsed_s();
        let mut stalled = self.snapshot.phases.iter().filter_map(|(name, phase)| {
            if phase.count < self.thresholds.stalled_steps || self.signals.occasional.contains(&&name[..]) {
                return None;
            }
            let expected_since = (self.expected_since)(name)?;
            let distance_s = (phase.last_at_s - phase.first_at_s) / (phase.count - 1).max(1) as f64;
            let usual_s = (phase.quantile_ms(0.99).unwrap_or(0.0) / 1e3).max(distance_s);
            let silent_s = now_s - phase.last_at_s.max(expected_since);
            let is_stalled =
                silent_s >= (self.thresholds.stalled_factor * usual_s).max(self.thresholds.stalled_s);
            is_stalled
                .then(|| format!("`{name}` has not reported for {silent_s:.1} s, usually {usual_s:.3} s"))
        });
        stalled.next().map(Detection::new)
    }

    fn low_efficiency(&self) -> Option<Detection> {
        let window = self.window()?;
        let thresholds = self.thresholds;
        let n = window.n_batches();
        let work_ms = window.mean(|sample| sample.work_ms);
        // The work of the device has to outgrow what a batch costs beside it, and that cost is taken to stay the same.
        let goal = (thresholds.low_busy + thresholds.hysteresis).min(0.99);
        let longer = work_ms.map_or(1.0, |ms| thresholds.short_batch_ms / ms.max(1e-3));
        if let Some(busy) = window.busy()
            && busy < thresholds.low_busy + self.margin()
        {
            let busier = goal * (1.0 - busy) / ((1.0 - goal) * busy.max(1e-3));
            let cause = format!(
                "busy {} of the last {n} batches, less than {}",
                percent(busy),
                percent(thresholds.low_busy)
            );
            return Some(Detection { cause, factor: busier.max(longer) });
        }
        if let Some(batch) = self.signals.batch
            && let Some(host) = batch.host
            && let Some((hidden, shown)) = hidden(&window)
            && hidden < thresholds.low_overlap + self.margin()
            && shown > LITTLE
        {
            let cause = format!(
                "{} of {} ran beside {} of the last {n} batches, less than {}",
                percent(hidden),
                host.words,
                batch.work_words,
                percent(thresholds.low_overlap)
            );
            return Some(Detection { cause, factor: longer });
        }
        let enough_ms = thresholds.short_batch_ms * (1.0 + self.margin());
        work_ms.filter(|ms| *ms < enough_ms).map(|ms| Detection {
            cause: format!("batches take {ms:.2} ms, less than {} ms", thresholds.short_batch_ms),
            factor: longer,
        })
    }

    fn many_failures(&self) -> Option<Detection> {
        let words = self.signals.failures?.words;
        let (share, n_items) = self.window()?.failures()?;
        let is_many = share > self.thresholds.failure_share - self.margin();
        (is_many && n_items >= self.thresholds.failure_items as f64).then(|| {
            let most = percent(self.thresholds.failure_share);
            Detection::new(format!("{} of the last {n_items} {words}, more than {most}", percent(share)))
        })
    }

    fn not_falling(&self) -> Option<Detection> {
        let name = self.signals.falling?.value;
        let window = self.history.window(self.thresholds.falling_batches, self.thresholds.window_s)?;
        if window.first().n_batches < self.acted_at {
            return None;
        }
        let values: Vec<f64> = window.values(|sample| sample.falling).collect();
        let (earlier, later) = values.split_at(values.len() / 2);
        let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
        let (before, now) = (least(earlier)?, least(later)?);
        (now > 0.0 && now >= before)
            .then(|| Detection::new(format!("{now} {name}, as many as {} batches ago", window.n_batches())))
    }

    fn window(&self) -> Option<Window<'_>> {
        self.history.window(self.thresholds.window_batches, self.thresholds.window_s)
    }

    fn margin(&self) -> f64 {
        if self.was_there { self.thresholds.hysteresis } else { 0.0 }
    }
}

impl Detection {
    fn new(cause: String) -> Self {
        Self { cause, factor: 1.0 }
    }
}

/// Share of the host's work that ran beside that of the device, and the rest of it as a share of the time.
fn hidden(window: &Window<'_>) -> Option<(f64, f64)> {
    let host_ms = window.mean(|sample| sample.host_ms[0])? + window.mean(|sample| sample.host_ms[1])?;
    let hidden_ms = window.mean(|sample| sample.hidden_ms)?;
    let wall_ms = window.mean(|sample| sample.work_ms)? + window.mean(|sample| sample.idle_ms).unwrap_or(0.0);
    let shown_ms = (host_ms - hidden_ms).max(0.0);
    (host_ms > 0.0 && wall_ms > 0.0).then(|| (hidden_ms / host_ms, shown_ms / wall_ms))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
