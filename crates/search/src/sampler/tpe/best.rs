//! The best trials of the whole history, however long.

use std::cmp::Ordering;

use crate::pareto;
use crate::point::Points;
use crate::score::Scores;

/// One of the best trials.
#[derive(Clone, Debug)]
pub(super) struct BestTrial {
    /// Its place in the order of tells.
    pub(super) number: u64,
    /// Its parameters, NaN where inactive.
    pub(super) row: Vec<f64>,
    scores: Vec<f64>,
}

/// The best trials, best first; of equals the earlier. Invalid trials are never among them.
///
/// With several objectives the order is by front and then by loneliness, among those kept and the batch that comes in.
#[derive(Clone, Debug)]
pub(super) struct BestTrials {
    capacity: usize,
    trials: Vec<BestTrial>,
}

impl BestTrials {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, trials: Vec::new() }
    }

    /// At most `n` of the best.
    pub(super) fn first(&self, n: usize) -> &[BestTrial] {
        &self.trials[..n.min(self.trials.len())]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// Takes in a batch whose first trial has the given number.
    pub(super) fn offer(&mut self, first_number: u64, points: &Points, scores: &Scores) {
        if scores.n_objectives() == 1 {
            self.offer_single(first_number, points, scores.column(0));
        } else {
            self.offer_several(first_number, points, scores);
        }
    }

    fn offer_single(&mut self, first_number: u64, points: &Points, scores: &[f64]) {
        let to_beat = match self.trials.last() {
            Some(last) if self.trials.len() >= self.capacity => last.scores[0],
            _ => f64::NEG_INFINITY,
        };
        // NaN, the mark of an invalid trial, beats nothing.
        let mut entrants: Vec<usize> = (0..scores.len()).filter(|idx| scores[*idx] > to_beat).collect();
        let better_first = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        if entrants.len() > self.capacity {
            entrants.select_nth_unstable_by(self.capacity, better_first);
            entrants.truncate(self.capacity);
        }
        let new = entrants.into_iter().map(|idx| trial(first_number, points, idx, vec![scores[idx]]));
        self.trials.extend(new);
        let by_score = |a: &BestTrial, b: &BestTrial| -> Ordering {
            b.scores[0].total_cmp(&a.scores[0]).then(a.number.cmp(&b.number))
        };
        self.trials.sort_unstable_by(by_score);
        self.trials.truncate(self.capacity);
    }

    fn offer_several(&mut self, first_number: u64, points: &Points, scores: &Scores) {
        let columns = (0..scores.n_objectives()).map(|objective_idx| {
            let kept = self.trials.iter().map(|trial| trial.scores[objective_idx]);
            kept.chain(scores.column(objective_idx).iter().copied()).collect()
        });
        let n_kept = self.trials.len();
        let all = Scores::from_columns(n_kept + scores.len(), columns.collect());
        let mut ranked = pareto::ranking(&all);
        ranked.truncate(self.capacity);
        let pick = |place: usize| {
            if place < n_kept {
                return self.trials[place].clone();
            }
            let values = (0..all.n_objectives()).map(|objective_idx| all.column(objective_idx)[place]);
            trial(first_number, points, place - n_kept, values.collect())
        };
        self.trials = ranked.into_iter().map(pick).collect();
    }
}

fn trial(first_number: u64, points: &Points, point_idx: usize, scores: Vec<f64>) -> BestTrial {
    let mut row = vec![0.0; points.n_params()];
    points.read_row(point_idx, &mut row);
    BestTrial { number: first_number + point_idx as u64, row, scores }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(best: &BestTrials) -> Vec<u64> {
        best.first(usize::MAX).iter().map(|trial| trial.number).collect()
    }

    #[test]
    fn the_best_of_the_whole_history_are_kept_whatever_the_batches() {
        let scores: Vec<f64> =
            (0..500).map(|idx| if idx % 7 == 0 { f64::NAN } else { f64::from(idx * 131 % 97) }).collect();
        let mut expected: Vec<u64> = (0..500).filter(|idx| idx % 7 != 0).collect();
        expected.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));
        expected.truncate(20);
        for batch in [1, 30, 500] {
            let mut best = BestTrials::new(20);
            for first in (0..500).step_by(batch) {
                let last = (first + batch).min(500);
                let points =
                    Points::from_columns(last - first, vec![(first..last).map(|x| x as f64).collect()]);
                let scores = Scores::from_columns(last - first, vec![scores[first..last].to_vec()]);
                best.offer(first as u64, &points, &scores);
            }
            assert_eq!(numbers(&best), expected);
            assert!(best.first(20).iter().all(|trial| trial.row[0] == trial.number as f64));
        }
    }

    #[test]
    fn several_objectives_keep_the_front() {
        let mut best = BestTrials::new(3);
        let points = Points::from_columns(4, vec![vec![0.0; 4]]);
        let scores = Scores::from_columns(4, vec![vec![0.0, 1.0, 0.5, f64::NAN], vec![1.0, 0.0, 0.5, 9.0]]);
        best.offer(0, &points, &scores);
        assert_eq!(numbers(&best), [0, 1, 2]);
        let better = Scores::from_columns(4, vec![vec![0.1, 1.1, 0.6, 0.0], vec![1.1, 0.1, 0.6, 0.0]]);
        best.offer(4, &points, &better);
        assert_eq!(numbers(&best), [4, 5, 6]);
    }
}
