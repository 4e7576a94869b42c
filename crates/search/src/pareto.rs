//! Several objectives: which trials no other one beats in everything.
//!
//! A trial *dominates* another if it is at least as good in every objective and better in one. Trials that no other dominates form
//! the first front, those that only the first front dominates the second, and so on. An invalid trial is in no front.

use std::cmp::Ordering;

use crate::score::Scores;

/// The fronts of a batch, best first; each lists its trials from the best value of the first objective to the worst.
///
/// Trials with equal values share a front. Takes `n log n` steps for one and two objectives, and about `n` times the size of a
/// front for more.
pub fn fronts(scores: &Scores) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|&idx| !scores.column(0)[idx].is_nan()).collect();
    order.sort_by(|&a, &b| lexicographic(scores, a, b).then(a.cmp(&b)));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for trial_idx in order {
        // Whoever is dominated by a front is dominated by all fronts before it, so that the place can be found by bisection.
        let place = fronts.partition_point(|front| dominates_any(scores, front, trial_idx));
        match fronts.get_mut(place) {
            Some(front) => front.push(trial_idx),
            None => fronts.push(vec![trial_idx]),
        }
    }
    fronts
}

/// Whether a member of a front dominates a trial that comes after all of them in lexicographic order.
fn dominates_any(scores: &Scores, front: &[usize], trial_idx: usize) -> bool {
    let by = |&member: &usize| dominates(scores, member, trial_idx);
    match scores.n_objectives() {
        // Along a front of two objectives the second one only rises, so that the last member is the one to beat.
        1 | 2 => front.last().is_some_and(by),
        _ => front.iter().rev().any(by),
    }
}

/// How far each trial of a front lies from its neighbours: the sum over objectives of the gap between them, as a share of the
/// front's range. Larger means lonelier; the ends of a range are infinitely lonely, so that a selection keeps them.
fn crowding(scores: &Scores, front: &[usize]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    let mut order: Vec<usize> = (0..front.len()).collect();
    for objective_idx in 0..scores.n_objectives() {
        let column = scores.column(objective_idx);
        let value = |place: usize| column[front[place]];
        order.sort_by(|&a, &b| value(a).total_cmp(&value(b)).then(front[a].cmp(&front[b])));
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else { break };
        let range = value(last) - value(first);
        distance[first] = f64::INFINITY;
        distance[last] = f64::INFINITY;
        if range > 0.0 && range.is_finite() {
            for window in order.windows(3) {
                distance[window[1]] += (value(window[2]) - value(window[0])) / range;
            }
        }
    }
    distance
}

/// All valid trials, best first: by front, within a front the lonelier first, of equals the earlier.
pub fn ranking(scores: &Scores) -> Vec<usize> {
    let mut ranked = Vec::with_capacity(scores.len());
    for mut front in fronts(scores) {
        front.sort_unstable();
        let distance = crowding(scores, &front);
        let mut order: Vec<usize> = (0..front.len()).collect();
        order.sort_by(|&a, &b| distance[b].total_cmp(&distance[a]).then(front[a].cmp(&front[b])));
        ranked.extend(order.into_iter().map(|place| front[place]));
    }
    ranked
}

fn lexicographic(scores: &Scores, a: usize, b: usize) -> Ordering {
    (0..scores.n_objectives())
        // Not the total order, which tells the two zeros apart.
        .filter_map(|objective_idx| {
            scores.column(objective_idx)[b].partial_cmp(&scores.column(objective_idx)[a])
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn dominates(scores: &Scores, a: usize, b: usize) -> bool {
    let pairs = (0..scores.n_objectives()).map(|objective_idx| {
        let column = scores.column(objective_idx);
        (column[a], column[b])
    });
    is_dominating(pairs)
}

fn is_dominating(pairs: impl Iterator<Item = (f64, f64)>) -> bool {
    let mut is_better = false;
    for (a, b) in pairs {
        if a < b {
            return false;
        }
        is_better |= a > b;
    }
    is_better
}

/// The first front of all trials so far, kept while they come in.
///
/// Of trials with equal values only the earliest is a member, so that a plateau of a million trials is one point.
#[derive(Clone, Debug, Default)]
pub struct ParetoFront {
    /// From the best value of the first objective to the worst.
    members: Vec<Member>,
}

/// A trial that no other one dominates.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its number in the study.
    pub trial: u64,
    /// One value per objective.
    pub values: Vec<f64>,
}

impl ParetoFront {
    /// A front without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// The members, from the best value of the first objective to the worst.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Considers the trials of a batch, which are numbered from `first_trial`; they must come later than those before, and have
    /// as many objectives.
    pub fn extend(&mut self, first_trial: u64, scores: &Scores) {
        let mut values = vec![0.0; scores.n_objectives()];
        for (trial_idx, trial) in (first_trial..).take(scores.len()).enumerate() {
            for (objective_idx, value) in values.iter_mut().enumerate() {
                *value = scores.column(objective_idx)[trial_idx];
            }
            if !values[0].is_nan() {
                self.insert(trial, &values);
            }
        }
    }

    fn insert(&mut self, trial: u64, values: &[f64]) {
        // Only members at least as good in the first objective can dominate, only the others can be dominated; ties are both.
        let n_not_worse = self.members.partition_point(|member| member.values[0] >= values[0]);
        let is_covered = |member: &Member| member.values.iter().zip(values).all(|(a, b)| a >= b);
        let (not_worse, _) = self.members.split_at(n_not_worse);
        let is_out = match values.len() {
            1 | 2 => not_worse.last().is_some_and(is_covered),
            _ => not_worse.iter().rev().any(is_covered),
        };
        if is_out {
            return;
        }
        let is_beaten = |member: &Member| values.iter().zip(&member.values).all(|(a, b)| a >= b);
        let n_better = self.members.partition_point(|member| member.values[0] > values[0]);
        let mut place = 0;
        self.members.retain(|member| {
            place += 1;
            place <= n_better || !is_beaten(member)
        });
        let place = self.members.partition_point(|member| member.values[0] >= values[0]);
        self.members.insert(place, Member { trial, values: values.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Random values on a coarse grid, so that ties are common, with some invalid trials.
    fn random_scores(seed: u64, n_trials: usize, n_objectives: usize, n_levels: f64) -> Scores {
        let column = |objective_idx: usize| {
            let stream = Stream::new(seed, objective_idx as u64);
            (0..n_trials as u64)
                .map(|trial| {
                    let unit = stream.unit(trial);
                    if unit < 0.05 { f64::NAN } else { -(unit * n_levels).floor() }
                })
                .collect()
        };
        Scores::from_columns(n_trials, (0..n_objectives).map(column).collect())
    }

    fn cases() -> impl Iterator<Item = Scores> {
        (0..60).map(|case| random_scores(case, 5 + case as usize * 4, 1 + case as usize % 4, 12.0))
    }

    #[test]
    fn fronts_are_those_of_the_definition() {
        for scores in cases() {
            let mut left: Vec<usize> =
                (0..scores.len()).filter(|&idx| !scores.column(0)[idx].is_nan()).collect();
            for front in fronts(&scores) {
                let mut front = front;
                front.sort_unstable();
                let expected: Vec<usize> = left
                    .iter()
                    .copied()
                    .filter(|&idx| !left.iter().any(|&other| dominates(&scores, other, idx)))
                    .collect();
                assert_eq!(front, expected);
                left.retain(|idx| !front.contains(idx));
            }
            assert!(left.is_empty(), "{} trials in no front", left.len());
        }
    }

    #[test]
    fn the_incremental_front_is_that_of_the_definition() {
        for scores in cases() {
            let mut front = ParetoFront::new();
            let halves = scores.len() / 2;
            for (from, to) in [(0, halves), (halves, scores.len())] {
                let columns =
                    (0..scores.n_objectives()).map(|o| scores.column(o)[from..to].to_vec()).collect();
                front.extend(from as u64, &Scores::from_columns(to - from, columns));
            }
            let values = |idx: usize| -> Vec<f64> {
                (0..scores.n_objectives()).map(|o| scores.column(o)[idx]).collect()
            };
            let mut expected: Vec<u64> = (0..scores.len())
                .filter(|&idx| !scores.column(0)[idx].is_nan())
                .filter(|&idx| !(0..scores.len()).any(|other| dominates(&scores, other, idx)))
                .filter(|&idx| !(0..idx).any(|earlier| values(earlier) == values(idx)))
                .map(|idx| idx as u64)
                .collect();
            expected.sort_unstable();
            let mut trials: Vec<u64> = front.members().iter().map(|member| member.trial).collect();
            trials.sort_unstable();
            assert_eq!(trials, expected);
            assert!(front.members().windows(2).all(|pair| pair[0].values[0] >= pair[1].values[0]));
            assert!(front.members().iter().all(|member| member.values == values(member.trial as usize)));
        }
    }

    #[test]
    fn a_plateau_is_one_member() {
        let mut front = ParetoFront::new();
        front.extend(7, &Scores::from_columns(3, vec![vec![1.0; 3], vec![2.0; 3]]));
        assert_eq!(front.members(), [Member { trial: 7, values: vec![1.0, 2.0] }]);
    }

    #[test]
    fn the_ends_of_a_front_are_infinitely_lonely_and_gaps_count() {
        let scores = Scores::from_columns(4, vec![vec![0.0, 1.0, 2.0, 10.0], vec![10.0, 9.0, 5.0, 0.0]]);
        let distance = crowding(&scores, &[0, 1, 2, 3]);
        assert_eq!(distance, [f64::INFINITY, 0.2 + 0.5, 0.9 + 0.9, f64::INFINITY]);
        assert_eq!(ranking(&scores), [0, 3, 2, 1]);
        assert!(crowding(&scores, &[]).is_empty());
    }

    #[test]
    fn nothing_valid_gives_no_front() {
        let scores = Scores::from_columns(2, vec![vec![f64::NAN; 2], vec![1.0; 2]]);
        assert!(fronts(&scores).is_empty() && ranking(&scores).is_empty());
    }
}
