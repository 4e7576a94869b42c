//! What can be wrong with a run.

use crate::hypertune::history::{History, Window};
use crate::hypertune::threshold::Thresholds;
use crate::snapshot::Snapshot;

/// Share of the time below which asking and telling are not worth hiding.
const LITTLE: f64 = 0.05;

/// Something that is wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// No better score for many batches.
    NoImprovement,
    /// A phase that came regularly has not been heard of for long.
    StalledPhase,
    /// The device waits, or batches are so short that what they cost beside the evaluation counts.
    LowEfficiency,
    /// Many trials have no score.
    ManyInvalid,
    /// The value `conflicts` does not fall.
    HighConflicts,
}

/// A symptom that was seen.
pub(super) struct Finding {
    /// In words, with numbers.
    pub(super) cause: String,
    /// By how much a remedy should change what it multiplies, as far as that can be told.
    pub(super) factor: f64,
}

impl Symptom {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [Symptom; 5] = [
        Symptom::StalledPhase,
        Symptom::LowEfficiency,
        Symptom::ManyInvalid,
        Symptom::HighConflicts,
        Symptom::NoImprovement,
    ];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Symptom::NoImprovement => "no_improvement",
            Symptom::StalledPhase => "stalled_phase",
            Symptom::LowEfficiency => "low_efficiency",
            Symptom::ManyInvalid => "many_invalid",
            Symptom::HighConflicts => "high_conflicts",
        }
    }

    /// Whether it is about speed, which an action must not make worse.
    pub(super) fn is_of_speed(self) -> bool {
        matches!(self, Symptom::StalledPhase | Symptom::LowEfficiency)
    }
}

/// What a rule looks at.
pub(super) struct Look<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) history: &'a History,
    pub(super) thresholds: &'a Thresholds,
    /// Whether the symptom was there at the last look, so that it has to get clearly better to be gone.
    pub(super) was_there: bool,
    /// The last batch at which something was done about it.
    pub(super) acted_at: u64,
}

impl Look<'_> {
    /// The symptom, if it is there.
    pub(super) fn find(&self, symptom: Symptom) -> Option<Finding> {
        match symptom {
            Symptom::NoImprovement => self.no_improvement(),
            Symptom::StalledPhase => self.stalled_phase(),
            Symptom::LowEfficiency => self.low_efficiency(),
            Symptom::ManyInvalid => self.many_invalid(),
            Symptom::HighConflicts => self.high_conflicts(),
        }
    }

    fn no_improvement(&self) -> Option<Finding> {
        // An action gets as many batches as the search had before it.
        let since = self.snapshot.improved_at_batch.max(self.acted_at);
        let n_batches = self.snapshot.n_batches.saturating_sub(since);
        let best = self.snapshot.best.map_or_else(|| "no score".to_owned(), |best| format!("{best}"));
        (n_batches >= self.thresholds.no_improvement_batches)
            .then(|| Finding::new(format!("nothing better than {best} in {n_batches} batches")))
    }

    fn stalled_phase(&self) -> Option<Finding> {
        let now_s = self.snapshot.elapsed_s();
        let mut stalled = self.snapshot.phases.iter().filter_map(|(name, phase)| {
            if phase.count < self.thresholds.stalled_steps {
                return None;
            }
            let distance_s = (phase.last_at_s - phase.first_at_s) / (phase.count - 1).max(1) as f64;
            let usual_s = (phase.quantile_ms(0.99).unwrap_or(0.0) / 1e3).max(distance_s);
            let silent_s = now_s - phase.last_at_s;
            let is_stalled =
                silent_s >= (self.thresholds.stalled_factor * usual_s).max(self.thresholds.stalled_s);
            is_stalled
                .then(|| format!("`{name}` was not heard of for {silent_s:.1} s, usually {usual_s:.3} s"))
        });
        stalled.next().map(Finding::new)
    }

    fn low_efficiency(&self) -> Option<Finding> {
        let window = self.window()?;
        let thresholds = self.thresholds;
        let n = window.n_batches();
        let evaluate_ms = window.mean(|sample| sample.evaluate_ms);
        // Evaluation has to outgrow what a batch costs beside it, and what it costs beside it is taken to stay the same.
        let goal = (thresholds.low_busy + thresholds.hysteresis).min(0.99);
        let longer = evaluate_ms.map_or(1.0, |ms| thresholds.short_batch_ms / ms.max(1e-3));
        if let Some(busy) = window.busy()
            && busy < thresholds.low_busy + self.margin()
        {
            let busier = goal * (1.0 - busy) / ((1.0 - goal) * busy.max(1e-3));
            let cause = format!(
                "busy {} of the last {n} batches, less than {}",
                percent(busy),
                percent(thresholds.low_busy)
            );
            return Some(Finding { cause, factor: busier.max(longer) });
        }
        if let Some((hidden, shown)) = hidden(&window)
            && hidden < thresholds.low_overlap + self.margin()
            && shown > LITTLE
        {
            let cause = format!(
                "{} of asking and telling ran beside the evaluation of the last {n} batches, less than {}",
                percent(hidden),
                percent(thresholds.low_overlap)
            );
            return Some(Finding { cause, factor: longer });
        }
        let enough_ms = thresholds.short_batch_ms * (1.0 + self.margin());
        evaluate_ms.filter(|ms| *ms < enough_ms).map(|ms| Finding {
            cause: format!("batches take {ms:.2} ms, less than {} ms", thresholds.short_batch_ms),
            factor: longer,
        })
    }

    fn many_invalid(&self) -> Option<Finding> {
        let (share, n_trials) = self.window()?.invalid()?;
        let is_many = share > self.thresholds.many_invalid - self.margin();
        (is_many && n_trials >= self.thresholds.many_invalid_trials as f64).then(|| {
            let most = percent(self.thresholds.many_invalid);
            Finding::new(format!(
                "{} of the last {n_trials} trials have no score, more than {most}",
                percent(share)
            ))
        })
    }

    fn high_conflicts(&self) -> Option<Finding> {
        let window = self.history.window(self.thresholds.high_conflicts_batches, self.thresholds.window_s)?;
        if window.first().n_batches < self.acted_at {
            return None;
        }
        let values: Vec<f64> = window.values(|sample| sample.conflicts).collect();
        let (earlier, later) = values.split_at(values.len() / 2);
        let least = |values: &[f64]| values.iter().copied().reduce(f64::min);
        let (before, now) = (least(earlier)?, least(later)?);
        (now > 0.0 && now >= before)
            .then(|| Finding::new(format!("{now} conflicts, as many as {} batches ago", window.n_batches())))
    }

    fn window(&self) -> Option<Window<'_>> {
        self.history.window(self.thresholds.window_batches, self.thresholds.window_s)
    }

    fn margin(&self) -> f64 {
        if self.was_there { self.thresholds.hysteresis } else { 0.0 }
    }
}

impl Finding {
    fn new(cause: String) -> Self {
        Self { cause, factor: 1.0 }
    }
}

/// Share of asking and telling that ran beside the evaluation, and the rest of them as a share of the time.
fn hidden(window: &Window<'_>) -> Option<(f64, f64)> {
    let ask_and_tell_ms = window.mean(|sample| sample.ask_ms)? + window.mean(|sample| sample.tell_ms)?;
    let overlap_ms = window.mean(|sample| sample.overlap_ms)?;
    let wall_ms =
        window.mean(|sample| sample.evaluate_ms)? + window.mean(|sample| sample.idle_ms).unwrap_or(0.0);
    let shown_ms = (ask_and_tell_ms - overlap_ms).max(0.0);
    (ask_and_tell_ms > 0.0 && wall_ms > 0.0).then(|| (overlap_ms / ask_and_tell_ms, shown_ms / wall_ms))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
