//! Which parameters matter: how much of being among the best trials each one explains.
//!
//! This is the idea of PED-ANOVA (Watanabe, Bansal and Hutter, 2023): compare where the best tenth of the trials lies with where
//! all trials lie, one parameter at a time. In terms of variance: call a trial 1 if it is among the best and 0 if not; the
//! importance of a parameter is the variance of the mean of that number over the range of the parameter. It needs histograms
//! only, so that a million trials take a moment, and it does not mind that a sampler tried some regions more often than others.
//!
//! Few trials in a cell differ by chance alone. What chance explains on average is subtracted, so that a parameter without effect
//! comes out near zero and not at the level of the noise.

use rayon::prelude::*;

use crate::cells::Cells;
use crate::pareto;
use crate::point::Points;
use crate::score::Scores;
use crate::space::Space;

/// One in this many trials is among the best.
const TRIALS_PER_BEST: usize = 10;

/// How many of the best trials a group of cells should hold if they were spread like all trials.
const BEST_PER_GROUP: u64 = 8;

/// The most groups that the values of a parameter are put into.
const MAX_GROUPS: u64 = 64;

/// The importance of every parameter: shares that sum to one.
///
/// A fixed parameter has none. All are zero if nothing can be told: too few trials, or all alike. A conditional parameter is
/// judged by the trials where it was active, and counts in proportion to their number. Invalid trials are never among the best.
pub fn importance(space: &Space, points: &Points, scores: &Scores) -> Vec<f64> {
    let mut counts = ImportanceCounts::new(space);
    counts.add(points, &best_trials(scores));
    counts.finish()
}

/// Which trials are among the best tenth. Trials that are equal are all in or all out.
pub fn best_trials(scores: &Scores) -> Vec<bool> {
    let mut is_best = vec![false; scores.len()];
    let n_best = scores.len().div_ceil(TRIALS_PER_BEST);
    if scores.n_objectives() > 1 {
        pareto::ranking(scores).into_iter().take(n_best).for_each(|trial_idx| is_best[trial_idx] = true);
        return is_best;
    }
    let column = scores.column(0);
    let mut valid: Vec<f64> = column.iter().copied().filter(|score| !score.is_nan()).collect();
    if valid.is_empty() {
        return is_best;
    }
    let place = n_best.min(valid.len()) - 1;
    let (_, worst_of_best, _) = valid.select_nth_unstable_by(place, |a, b| b.total_cmp(a));
    let worst_of_best = *worst_of_best;
    let n_in = column.iter().filter(|score| **score >= worst_of_best).count();
    // A value that most trials share sets no trial apart.
    let are_equals_in = 2 * n_in <= scores.len();
    for (is_best, score) in is_best.iter_mut().zip(column) {
        *is_best = if are_equals_in { *score >= worst_of_best } else { *score > worst_of_best };
    }
    is_best
}

/// Counts from which importance follows; for studies that are read a piece at a time.
#[derive(Clone, Debug)]
pub struct ImportanceCounts {
    n_trials: u64,
    /// Per parameter; none for a fixed one.
    params: Vec<Option<ParamCounts>>,
}

#[derive(Clone, Debug)]
struct ParamCounts {
    cells: Cells,
    /// Per cell, the number of trials and of the best among them.
    counts: Vec<[u64; 2]>,
}

impl ImportanceCounts {
    /// No trials of a valid space yet.
    pub fn new(space: &Space) -> Self {
        let counts_of = |domain| {
            let cells = Cells::new(domain);
            ParamCounts { counts: vec![[0; 2]; cells.len()], cells }
        };
        let params = space.params.iter().map(|param| param.fixed.is_none().then(|| counts_of(&param.domain)));
        Self { n_trials: 0, params: params.collect() }
    }

    /// Takes in trials, and whether each is among the best of the whole study.
    ///
    /// # Panics
    /// If there is not one flag per trial, or the points have other parameters than the space.
    pub fn add(&mut self, points: &Points, is_best: &[bool]) {
        assert_eq!(points.len(), is_best.len(), "one flag per trial");
        assert_eq!(points.n_params(), self.params.len(), "points of the space");
        self.n_trials += points.len() as u64;
        self.params.par_iter_mut().enumerate().for_each(|(param_idx, param)| {
            let Some(ParamCounts { cells, counts }) = param else { return };
            cells.each(points.column(param_idx), |trial_idx, cell| {
                counts[cell][0] += 1;
                counts[cell][1] += u64::from(is_best[trial_idx]);
            });
        });
    }

    /// The importance of every parameter; see [`importance`].
    pub fn finish(&self) -> Vec<f64> {
        let explained = |param: &Option<ParamCounts>| match param {
            Some(param) if self.n_trials > 0 => param.explained() / self.n_trials as f64,
            _ => 0.0,
        };
        let explained: Vec<f64> = self.params.iter().map(explained).collect();
        let total: f64 = explained.iter().sum();
        explained.into_iter().map(|variance| if total > 0.0 { variance / total } else { 0.0 }).collect()
    }
}

impl ParamCounts {
    /// The sum of squares that the parameter explains beyond what chance would.
    fn explained(&self) -> f64 {
        let n_all: u64 = self.counts.iter().map(|[all, _]| all).sum();
        let n_best: u64 = self.counts.iter().map(|[_, best]| best).sum();
        if n_best == 0 || n_best == n_all {
            return 0.0;
        }
        let share = n_best as f64 / n_all as f64;
        let groups = self.groups(n_all, n_best);
        let squares = |[all, best]: &[u64; 2]| {
            let difference = *best as f64 / *all as f64 - share;
            *all as f64 * difference * difference
        };
        let explained: f64 = groups.iter().map(squares).sum();
        // Each group beyond the first has on average the variance of one trial.
        let by_chance = (groups.len() - 1) as f64 * share * (1.0 - share);
        (explained - by_chance).max(0.0)
    }

    /// The cells that hold something; neighbouring ones put together until they hold enough, where an order relates them.
    fn groups(&self, n_all: u64, n_best: u64) -> Vec<[u64; 2]> {
        let occupied = self.counts.iter().copied().filter(|[all, _]| *all > 0);
        if !self.cells.is_ordered() {
            return occupied.collect();
        }
        let n_groups = (n_best / BEST_PER_GROUP).clamp(2, MAX_GROUPS);
        let mut groups: Vec<[u64; 2]> = Vec::new();
        let mut last_idx = None;
        let mut n_before = 0;
        for [all, best] in occupied {
            // The group to which the middle of the cell belongs, by the number of trials before it.
            let group_idx = (2 * n_before + all) * n_groups / (2 * n_all);
            n_before += all;
            match groups.last_mut() {
                Some(last) if last_idx == Some(group_idx) => {
                    last[0] += all;
                    last[1] += best;
                }
                _ => groups.push([all, best]),
            }
            last_idx = Some(group_idx);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::domain::Domain;
    use crate::sampler::{SamplerKind, SamplerSettings};
    use crate::space::Param;

    fn unit(name: &str) -> Param {
        Param::new(name, Domain::Float { low: 0.0, high: 1.0, step: None, log: false }, 0.5)
    }

    fn random(space: &Space, n: usize) -> Points {
        SamplerKind::Random.build(space, &SamplerSettings::new(7)).unwrap().ask(n)
    }

    fn scores(points: &Points, score: impl Fn(&[f64]) -> f64) -> Scores {
        let mut row = vec![0.0; points.n_params()];
        let column = (0..points.len()).map(|point_idx| {
            points.read_row(point_idx, &mut row);
            score(&row)
        });
        Scores::from_columns(points.len(), vec![column.collect()])
    }

    #[test]
    fn a_parameter_without_effect_has_next_to_no_importance() {
        let space = Space {
            params: vec![unit("a"), unit("b"), Param::new("c", Domain::Bool, 0.0), unit("d"), unit("e")],
        };
        for n in [300, 3000, 100_000] {
            let points = random(&space, n);
            let shares = importance(&space, &points, &scores(&points, |row| -(row[1] - 0.3).abs()));
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(shares[1] > 0.9, "{n} trials: {shares:?}");
        }
    }

    #[test]
    fn importance_is_the_variance_that_a_parameter_explains() {
        // The best tenth is where a < 0.4 and b < 0.25 and c < 1: the chance of it given a < 0.4 is 0.25, and so on. The variance
        // of that chance is 0.01 * (1 - 0.4) / 0.4 for the first and 0.01 * (1 - 0.25) / 0.25 for the second.
        let space = Space { params: vec![unit("a"), unit("b"), unit("c")] };
        let points = random(&space, 200_000);
        let is_best: Vec<bool> = (0..points.len())
            .map(|point_idx| points.value(point_idx, 0) < 0.4 && points.value(point_idx, 1) < 0.25)
            .collect();
        let mut counts = ImportanceCounts::new(&space);
        let half = points.len() / 2;
        for range in [0..half, half..points.len()] {
            let mut piece = Points::new(3);
            piece.extend_from(&points, range.clone());
            counts.add(&piece, &is_best[range]);
        }
        let shares = counts.finish();
        let (first, second) = (0.6 / 0.4, 0.75 / 0.25);
        assert!((shares[0] - first / (first + second)).abs() < 0.02, "{shares:?}");
        assert!((shares[1] - second / (first + second)).abs() < 0.02, "{shares:?}");
        assert!(shares[2] < 0.002, "{shares:?}");
    }

    #[test]
    fn stronger_effects_rank_first_whatever_the_kind_of_parameter() {
        let mut rate = unit("rate");
        rate.domain = Domain::Float { low: 1e-4, high: 1.0, step: None, log: true };
        let length = Param::new("length", Domain::Int { low: 1, high: 1000, step: 1, log: false }, 1.0);
        let space = Space { params: vec![unit("weak"), rate, Param::new("on", Domain::Bool, 0.0), length] };
        let points = random(&space, 20_000);
        let value = |row: &[f64]| {
            -0.1 * row[0] - (libm::log10(row[1]) + 2.0).abs() + 0.5 * row[2]
                - 2.0 * (row[3] / 1000.0 - 0.5).abs()
        };
        let shares = importance(&space, &points, &scores(&points, value));
        assert!(shares[1] > shares[3] && shares[3] > shares[2] && shares[2] > shares[0], "{shares:?}");
    }

    #[test]
    fn a_conditional_parameter_counts_as_often_as_it_is_active() {
        let mut params = vec![Param::new("on", Domain::Bool, 0.0), unit("child"), unit("always")];
        params[1].when = Some(Condition::new(|row| row[0] == 1.0));
        let space = Space { params };
        let points = random(&space, 50_000);
        // Both children matter alike where they are active, and the switch does not.
        let value = |row: &[f64]| {
            if row[1].is_nan() { -2.0 * row[2] } else { -row[1].max(row[2]) - row[1].min(row[2]) }
        };
        let shares = importance(&space, &points, &scores(&points, value));
        assert!(shares[2] > shares[1] && shares[1] > 0.05, "{shares:?}");
    }

    #[test]
    fn fixed_parameters_invalid_trials_and_equal_scores_tell_nothing() {
        let mut space = Space { params: vec![unit("a"), unit("b")] };
        space.params[0].fixed = Some(0.2);
        let points = random(&space, 1000);
        assert_eq!(importance(&space, &points, &scores(&points, |row| row[1])), [0.0, 1.0]);
        assert_eq!(importance(&space, &points, &scores(&points, |_| f64::NAN)), [0.0, 0.0]);
        assert_eq!(importance(&space, &points, &scores(&points, |_| 1.0)), [0.0, 0.0]);
        assert_eq!(importance(&space, &Points::new(2), &Scores::single(&[])), [0.0, 0.0]);
        // Validity alone can be what matters.
        let valid =
            importance(&space, &points, &scores(&points, |row| if row[1] < 0.05 { 1.0 } else { f64::NAN }));
        assert_eq!(valid, [0.0, 1.0]);
    }

    #[test]
    fn several_objectives_are_judged_by_their_fronts() {
        let space = Space { params: vec![unit("along"), unit("away"), unit("nothing")] };
        let points = random(&space, 5000);
        let (along, away) = (points.column(0), points.column(1));
        let first = along.iter().zip(away).map(|(along, away)| along - away).collect();
        let second = along.iter().zip(away).map(|(along, away)| 1.0 - along - away).collect();
        let shares = importance(&space, &points, &Scores::from_columns(5000, vec![first, second]));
        assert!(shares[1] > 0.8, "{shares:?}");
    }
}
