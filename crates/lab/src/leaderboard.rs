//! The best trials of a search so far.

use tidemill_search::{Batch, ParetoFront, Score, Scores, Space};

use crate::neighbour::Neighbourhood;

/// A trial that ranks among the best.
#[derive(Clone, Debug)]
pub struct RankedTrial {
    /// Its number in the study.
    pub number: u64,
    /// Its score for the first objective.
    pub score: Score,
    /// Its encoded parameters.
    pub row: Vec<f64>,
    /// Positions of its parameters on the unit interval; NaN where inactive.
    units: Vec<f64>,
}

/// The best few, best first; of equals the earlier trial. Of [neighbours](Neighbourhood) only the best is listed, so that a table shows
/// different answers.
pub struct Leaderboard {
    neighbourhood: Neighbourhood,
    n_shown: usize,
    /// More than are shown, because neighbours of a better one may have to go later.
    keep: usize,
    trials: Vec<RankedTrial>,
    /// Score of the worst that is kept, once there are enough.
    threshold: Option<Score>,
}

impl Leaderboard {
    /// Keeps as many as will be shown. If the sampler does not learn, only equal parameter sets are neighbours.
    pub fn new(space: &Space, n_shown: usize, learns: bool) -> Self {
        let neighbourhood = Neighbourhood::new(space, learns);
        Self { neighbourhood, n_shown, keep: 4 * n_shown, trials: Vec::new(), threshold: None }
    }

    fn trial(&self, batch: &Batch, scores: &Scores, at: usize) -> RankedTrial {
        let mut row = vec![0.0; batch.points.n_params()];
        batch.points.read_row(at, &mut row);
        let units = self.neighbourhood.units(row.iter().copied());
        RankedTrial { number: batch.first_trial + at as u64, score: scores.first(at), row, units }
    }

    /// Takes the trials of a batch that are good enough.
    pub fn extend(&mut self, batch: &Batch, scores: &Scores) {
        let mut has_news = false;
        for at in 0..scores.len() {
            if self.wants(scores.first(at)) {
                self.trials.push(self.trial(batch, scores, at));
                has_news = true;
                // Twice as many as wanted are kept before the worse half goes, so that a large table costs no more than a sort.
                if self.trials.len() >= 2 * self.keep.max(16) {
                    self.settle();
                }
            }
        }
        if has_news {
            self.settle();
        }
    }

    /// Takes the trials of a batch that are now in the front, and drops those that no longer are.
    pub fn keep_front(&mut self, front: &ParetoFront, batch: &Batch, scores: &Scores) {
        let mut members: Vec<u64> = front.members().iter().map(|member| member.trial).collect();
        members.sort_unstable();
        self.trials.retain(|trial| members.binary_search(&trial.number).is_ok());
        let from = members.partition_point(|number| *number < batch.first_trial);
        for number in &members[from..] {
            self.trials.push(self.trial(batch, scores, (number - batch.first_trial) as usize));
        }
    }

    /// The best value.
    pub fn first(&self) -> Option<f64> {
        self.trials.first().and_then(|trial| trial.score.value())
    }

    /// The trials, best first.
    pub fn into_trials(mut self) -> Vec<RankedTrial> {
        self.trials.truncate(self.n_shown);
        self.trials
    }

    /// Trials of the front, from the best value of the first objective on; if there are more than are shown, evenly chosen ones.
    pub fn of_front(self, front: &ParetoFront) -> Vec<RankedTrial> {
        let members = front.members();
        let n_shown = self.n_shown.min(members.len());
        (0..n_shown)
            .filter_map(|at| {
                let member = &members[if n_shown > 1 { at * (members.len() - 1) / (n_shown - 1) } else { 0 }];
                self.trials.iter().find(|trial| trial.number == member.trial).cloned()
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
        let mut kept: Vec<RankedTrial> = Vec::with_capacity(self.trials.len());
        for trial in std::mem::take(&mut self.trials) {
            if kept.len() < self.keep
                && !kept.iter().any(|other| self.neighbourhood.are_near(&other.units, &trial.units))
            {
                kept.push(trial);
            }
        }
        self.trials = kept;
        self.threshold =
            if self.trials.len() == self.keep { self.trials.last().map(|trial| trial.score) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidemill_search::{Domain, Param, Points};

    use super::*;

    /// Points that are worth how near they are to 0.
    fn batch(first_trial: u64, values: &[f64]) -> (Batch, Scores) {
        let points = Arc::new(Points::from_columns(values.len(), vec![values.to_vec()]));
        let scores: Vec<Score> = values.iter().map(|value| Score::new(-value.abs())).collect();
        (Batch { index: 0, first_trial, points }, Scores::single(&scores))
    }

    #[test]
    fn the_best_are_kept_in_order_and_of_neighbours_the_best() {
        let domain = Domain::Float { low: -10.0, high: 10.0, step: None, log: false };
        let space = Space { params: vec![Param::new("x", domain, 0.0)] };
        let mut best = Leaderboard::new(&space, 3, true);
        let (first, scores) = batch(0, &[5.0, 1.0, -1.0, f64::NAN, 1.1]);
        best.extend(&first, &scores);
        let (second, scores) = batch(5, &[0.9, 1.0, 7.0, 0.1]);
        best.extend(&second, &scores);
        assert_eq!(best.first(), Some(-0.1));
        let kept: Vec<(u64, f64)> =
            best.into_trials().iter().map(|trial| (trial.number, trial.row[0])).collect();
        assert_eq!(kept, [(8, 0.1), (5, 0.9), (2, -1.0)]);
    }
}
