//! The best trials so far.

use tidemill_backtest::Metrics;
use tidemill_search::Score;

/// A trial worth keeping.
pub struct Trial {
    /// Its number in the sweep.
    pub number: u64,
    /// What it was worth.
    pub score: Score,
    /// Its encoded parameters.
    pub row: Vec<f64>,
    /// Metrics over the counting segments.
    pub train: Metrics,
    /// Objective and metrics over the others.
    pub test: Option<(Score, Metrics)>,
}

/// The best few, best first; of equals the earlier trial.
pub struct Best {
    keep: usize,
    trials: Vec<Trial>,
    /// Score of the worst that is kept, once there are enough.
    threshold: Option<Score>,
}

impl Best {
    /// Keeps so many.
    pub fn new(keep: usize) -> Self {
        Self { keep, trials: Vec::new(), threshold: None }
    }

    /// Whether a trial with this score would be kept.
    pub fn wants(&self, score: Score) -> bool {
        self.keep > 0
            && score.value().is_some()
            && self.threshold.is_none_or(|worst| score.cmp_best_first(worst).is_lt())
    }

    /// Takes a trial if it is good enough.
    pub fn offer(&mut self, trial: Trial) {
        self.trials.push(trial);
        // Twice as many as wanted are kept before the worse half goes, so that a large table costs no more than a sort.
        if self.trials.len() >= 2 * self.keep.max(16) {
            self.settle();
        }
    }

    /// Puts the trials in order and drops those that are not among the best.
    pub fn settle(&mut self) {
        self.trials.sort_by(|a, b| a.score.cmp_best_first(b.score).then(a.number.cmp(&b.number)));
        self.trials.truncate(self.keep);
        self.threshold =
            if self.trials.len() == self.keep { self.trials.last().map(|trial| trial.score) } else { None };
    }

    /// The trials, best first once [`settle`](Self::settle) was called.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }
}
