//! The best trials so far.

use tidemill_search::{Batch, ParetoFront, Score, Scores};

/// A trial worth keeping.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its number in the study.
    pub number: u64,
    /// What it was worth to the first objective.
    pub score: Score,
    /// Its encoded parameters.
    pub row: Vec<f64>,
}

impl Trial {
    fn new(batch: &Batch, at: usize, score: Score) -> Self {
        let mut row = vec![0.0; batch.points.n_params()];
        batch.points.read_row(at, &mut row);
        Self { number: batch.first_trial + at as u64, score, row }
    }

    fn is_same_point(&self, other: &Self) -> bool {
        self.row.iter().zip(&other.row).all(|(a, b)| a.to_bits() == b.to_bits())
    }
}

/// The best few, best first; of equals the earlier trial. A parameter set that was tried twice is listed once.
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

    /// Takes the trials of a batch that are good enough.
    pub fn extend(&mut self, batch: &Batch, scores: &Scores) {
        for at in 0..scores.len() {
            let score = scores.first(at);
            if self.wants(score) {
                self.trials.push(Trial::new(batch, at, score));
                // Twice as many as wanted are kept before the worse half goes, so that a large table costs no more than a sort.
                if self.trials.len() >= 2 * self.keep.max(16) {
                    self.settle();
                }
            }
        }
        self.settle();
    }

    /// Takes the trials of a batch that are now in the front, and drops those that no longer are.
    pub fn keep_front(&mut self, front: &ParetoFront, batch: &Batch) {
        let mut members: Vec<u64> = front.members().iter().map(|member| member.trial).collect();
        members.sort_unstable();
        self.trials.retain(|trial| members.binary_search(&trial.number).is_ok());
        let from = members.partition_point(|number| *number < batch.first_trial);
        for number in &members[from..] {
            self.trials.push(Trial::new(batch, (number - batch.first_trial) as usize, Score::Invalid));
        }
    }

    /// The best value.
    pub fn first(&self) -> Option<f64> {
        self.trials.first().and_then(|trial| trial.score.value())
    }

    /// The trials, best first.
    pub fn into_trials(self) -> Vec<Trial> {
        self.trials
    }

    /// Trials of the front, from the best value of the first objective on; if there are more than are kept, evenly chosen ones.
    pub fn of_front(self, front: &ParetoFront) -> Vec<Trial> {
        let members = front.members();
        let n_shown = self.keep.min(members.len());
        (0..n_shown)
            .filter_map(|at| {
                let member = &members[if n_shown > 1 { at * (members.len() - 1) / (n_shown - 1) } else { 0 }];
                let trial = self.trials.iter().find(|trial| trial.number == member.trial)?;
                Some(Trial { score: Score::new(member.values[0]), ..trial.clone() })
            })
            .collect()
    }

    /// Whether a trial with this score would be kept.
    fn wants(&self, score: Score) -> bool {
        self.keep > 0
            && score.value().is_some()
            && self.threshold.is_none_or(|worst| score.cmp_best_first(worst).is_lt())
    }

    /// Puts the trials in order and drops those that are not among the best.
    fn settle(&mut self) {
        self.trials.sort_by(|a, b| a.score.cmp_best_first(b.score).then(a.number.cmp(&b.number)));
        // Equal points have equal scores, so that only trials of one score are compared.
        let mut kept: Vec<Trial> = Vec::with_capacity(self.trials.len());
        for trial in self.trials.drain(..) {
            let alike = kept.iter().rev().take_while(|other| other.score == trial.score);
            if !alike.into_iter().any(|other| other.is_same_point(&trial)) {
                kept.push(trial);
            }
        }
        kept.truncate(self.keep);
        self.trials = kept;
        self.threshold =
            if self.trials.len() == self.keep { self.trials.last().map(|trial| trial.score) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidemill_search::Points;

    use super::*;

    fn batch(first_trial: u64, values: &[f64]) -> (Batch, Scores) {
        let points = Arc::new(Points::from_columns(values.len(), vec![values.to_vec()]));
        let scores: Vec<Score> = values.iter().map(|value| Score::new(-value.abs())).collect();
        (Batch { index: 0, first_trial, points }, Scores::single(&scores))
    }

    #[test]
    fn the_best_are_kept_in_order_and_each_point_once() {
        let mut best = Best::new(3);
        let (first, scores) = batch(0, &[5.0, 1.0, -1.0, f64::NAN, 1.0]);
        best.extend(&first, &scores);
        let (second, scores) = batch(5, &[0.5, 1.0, 7.0]);
        best.extend(&second, &scores);
        assert_eq!(best.first(), Some(-0.5));
        let kept: Vec<(u64, f64)> =
            best.into_trials().iter().map(|trial| (trial.number, trial.row[0])).collect();
        assert_eq!(kept, [(5, 0.5), (1, 1.0), (2, -1.0)]);
    }
}
