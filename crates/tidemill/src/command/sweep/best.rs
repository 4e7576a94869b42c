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
}

impl Best {
    /// Keeps so many.
    pub fn new(keep: usize) -> Self {
        Self { keep, trials: Vec::new() }
    }

    /// Whether a trial with this score would be kept.
    pub fn wants(&self, score: Score) -> bool {
        score.value().is_some()
            && (self.trials.len() < self.keep
                || self.trials.last().is_some_and(|worst| score.cmp_best_first(worst.score).is_lt()))
    }

    /// Takes a trial if it is good enough.
    pub fn offer(&mut self, trial: Trial) {
        let at = self.trials.partition_point(|kept| kept.score.cmp_best_first(trial.score).is_le());
        self.trials.insert(at, trial);
        self.trials.truncate(self.keep);
    }

    /// The trials, best first.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }
}
