//! The first pass over the trials of a study: scores and values of parameters, but no whole rows.
//!
//! What is kept grows by one number per trial and objective and one for its parameters, so that a million trials fit in memory whatever their number of parameters.
//! Rows that turn out to be of interest are fetched by a second look (see `rows`).

use std::collections::BTreeSet;

use tidemill_search::folder::Column;
use tidemill_search::rng::Stream;
use tidemill_search::{ParetoFront, Scores, StudyFolder, TrialBatch, best_trials};

use super::axis::Axes;
use crate::config::StudyConfig;
use crate::error::LabError;

/// With three objectives or more, ranking takes time in the square of the number of trials; at most this many are ranked.
const MAX_RANKED: u64 = 20_000;

/// A summary of all trials.
pub struct Survey {
    /// The values that the parameters took.
    pub axes: Axes,
    /// Names of the metrics.
    pub metric_names: Vec<String>,
    /// Number of trials.
    pub n_trials: u64,
    /// Number of valid ones.
    pub n_valid: u64,
    /// Per objective, one value per trial; NaN for an invalid one.
    pub scores: Vec<Vec<f64>>,
    /// Per trial, a number that equal parameters share and others hardly ever do.
    pub marks: Vec<u64>,
    /// Per objective, the trials that were better than all before, with their values.
    pub improvements: Vec<Vec<(u64, f64)>>,
    /// With several objectives, the trials that no other trial beats in every objective.
    pub front: Option<ParetoFront>,
}

impl Survey {
    /// Looks at all trials that the folder holds now.
    pub fn new(folder: &StudyFolder, config: &StudyConfig) -> Result<Self, LabError> {
        let mut survey = Self {
            axes: Axes::default(),
            metric_names: Vec::new(),
            n_trials: 0,
            n_valid: 0,
            scores: Vec::new(),
            marks: Vec::new(),
            improvements: Vec::new(),
            front: None,
        };
        for batch in folder.trials()? {
            let batch = batch?;
            let scores = batch.to_scores();
            if survey.scores.is_empty() {
                survey.scores = vec![Vec::new(); scores.n_objectives()];
                survey.improvements = vec![Vec::new(); scores.n_objectives()];
                survey.metric_names = batch.metrics.iter().map(|(name, _)| name.clone()).collect();
                survey.front = (scores.n_objectives() > 1).then(ParetoFront::new);
            }
            survey.axes.widen(&batch);
            survey.marks.extend(marks(&batch));
            survey.add(&scores);
        }
        survey.axes.scale(config);
        Ok(survey)
    }

    fn add(&mut self, scores: &Scores) {
        for (objective_idx, (known, improvements)) in
            self.scores.iter_mut().zip(&mut self.improvements).enumerate()
        {
            let column = scores.column(objective_idx);
            let mut best = improvements.last().map_or(f64::NEG_INFINITY, |(_, best)| *best);
            for (trial, value) in (self.n_trials..).zip(column) {
                if *value > best {
                    best = *value;
                    improvements.push((trial, best));
                }
            }
            known.extend_from_slice(column);
        }
        if let Some(front) = &mut self.front {
            front.extend(self.n_trials, scores);
        }
        self.n_valid += scores.column(0).iter().filter(|value| !value.is_nan()).count() as u64;
        self.n_trials += scores.len() as u64;
    }

    /// Number of objectives; one if there are no trials to tell.
    pub fn n_objectives(&self) -> usize {
        self.scores.len().max(1)
    }

    /// The best few trials, best first; of equals the earlier, and of those with equal parameters only that. With several
    /// objectives, as many of the front, from one end of it to the other.
    pub fn best(&self, keep: usize) -> Vec<u64> {
        if let Some(front) = &self.front {
            let members = front.members();
            return thinned(members.len(), keep).map(|place| members[place].trial).collect();
        }
        let Some(scores) = self.scores.first() else { return Vec::new() };
        let mut trials: Vec<usize> = (0..scores.len()).filter(|trial| !scores[*trial].is_nan()).collect();
        let better = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        let mut best = Vec::new();
        let mut seen = BTreeSet::new();
        let (mut from, mut n_sorted) = (0, keep);
        while best.len() < keep && from < trials.len() {
            // A search that has settled repeats itself, so that more have to be sorted than are kept.
            let rest = &mut trials[from..];
            let n_sorted_now = n_sorted.min(rest.len());
            if n_sorted_now < rest.len() {
                rest.select_nth_unstable_by(n_sorted_now, better);
            }
            rest[..n_sorted_now].sort_unstable_by(better);
            for trial in &rest[..n_sorted_now] {
                if best.len() < keep && seen.insert((scores[*trial].to_bits(), self.marks[*trial])) {
                    best.push(*trial as u64);
                }
            }
            from += n_sorted_now;
            n_sorted *= 4;
        }
        best
    }

    /// About `keep` trials, one from each of as many equal parts of the study.
    ///
    /// The place within a stretch is drawn, since a grid repeats itself and an even pace would keep step with it.
    pub fn sample(&self, keep: u64) -> Vec<u64> {
        let n_stretches = keep.min(self.n_trials);
        let draw = Stream::new(1, 0);
        (0..n_stretches)
            .map(|stretch| {
                let start =
                    (u128::from(stretch) * u128::from(self.n_trials) / u128::from(n_stretches)) as u64;
                let next = u128::from(stretch + 1) * u128::from(self.n_trials) / u128::from(n_stretches);
                start + draw.bits(stretch) % (next as u64 - start)
            })
            .collect()
    }

    /// Per trial, whether it is among the best tenth; `None` where it was not judged.
    pub fn are_best(&self) -> Vec<Option<bool>> {
        if self.scores.is_empty() {
            return Vec::new();
        }
        let judged = if self.n_objectives() > 2 && self.n_trials > MAX_RANKED {
            self.sample(MAX_RANKED)
        } else {
            (0..self.n_trials).collect()
        };
        let column = |scores: &Vec<f64>| judged.iter().map(|trial| scores[*trial as usize]).collect();
        let scores = Scores::from_columns(judged.len(), self.scores.iter().map(column).collect());
        let mut are_best = vec![None; self.n_trials as usize];
        for (trial, is_best) in judged.iter().zip(best_trials(&scores)) {
            are_best[*trial as usize] = Some(is_best);
        }
        are_best
    }
}

/// For each trial of a batch, a number that follows from its parameters.
fn marks(batch: &TrialBatch) -> Vec<u64> {
    let mut marks = vec![0_u64; batch.trials.len()];
    let mix = |mark: &mut u64, bits: u64| {
        *mark = Stream::new(*mark, 0).bits(bits);
    };
    for (_, column) in &batch.params {
        let marks = marks.iter_mut();
        match column {
            Column::Int(values) => {
                marks.zip(values).for_each(|(mark, v)| mix(mark, v.map_or(u64::MAX, |v| v as u64)));
            }
            Column::Float(values) => {
                marks.zip(values).for_each(|(mark, v)| mix(mark, v.map_or(u64::MAX, f64::to_bits)));
            }
            Column::Bool(values) => {
                marks.zip(values).for_each(|(mark, v)| mix(mark, v.map_or(u64::MAX, u64::from)));
            }
            Column::Text(values) => marks.zip(values).for_each(|(mark, text)| match text {
                Some(text) => text.bytes().for_each(|byte| mix(mark, u64::from(byte))),
                None => mix(mark, u64::MAX),
            }),
        }
    }
    marks
}

/// At most `keep` places of `len`, evenly spread, both ends included.
pub fn thinned(len: usize, keep: usize) -> impl Iterator<Item = usize> {
    let keep = keep.min(len);
    (0..keep).map(move |at| if keep < 2 { 0 } else { at * (len - 1) / (keep - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(columns: &[&[f64]]) -> Survey {
        let mut survey = Survey {
            axes: Axes::default(),
            metric_names: Vec::new(),
            n_trials: 0,
            n_valid: 0,
            scores: vec![Vec::new(); columns.len()],
            marks: (0..columns[0].len() as u64).collect(),
            improvements: vec![Vec::new(); columns.len()],
            front: (columns.len() > 1).then(ParetoFront::new),
        };
        let (first, second) = columns[0].split_at(columns[0].len() / 2);
        let piece = |range: std::ops::Range<usize>| {
            let columns = columns.iter().map(|column| column[range.clone()].to_vec()).collect();
            Scores::from_columns(range.len(), columns)
        };
        survey.add(&piece(0..first.len()));
        survey.add(&piece(first.len()..first.len() + second.len()));
        survey
    }

    #[test]
    fn the_best_come_first_and_of_equals_the_earlier() {
        let survey = survey(&[&[1.0, f64::NAN, 3.0, 2.0, 3.0, -1.0]]);
        assert_eq!(survey.best(3), [2, 4, 3]);
        assert_eq!(survey.best(99), [2, 4, 3, 0, 5]);
        assert_eq!(survey.best(0), Vec::<u64>::new());
        assert_eq!(survey.n_valid, 5);
        assert_eq!(survey.improvements, [vec![(0, 1.0), (2, 3.0)]]);
    }

    #[test]
    fn trials_with_equal_parameters_are_listed_once() {
        let mut survey = survey(&[&[1.0, 3.0, 3.0, 3.0, 2.0, 3.0, 1.0]]);
        survey.marks = vec![10, 11, 11, 12, 13, 11, 10];
        assert_eq!(survey.best(2), [1, 3]);
        assert_eq!(survey.best(3), [1, 3, 4]);
        assert_eq!(survey.best(99), [1, 3, 4, 0]);
        assert_eq!(survey.best(0), Vec::<u64>::new());
    }

    #[test]
    fn several_objectives_give_the_front_thinned_to_its_whole_length() {
        let survey = survey(&[&[5.0, 4.0, 3.0, 2.0, 1.0, 0.0], &[0.0, 1.0, 2.0, 3.0, 4.0, -1.0]]);
        assert_eq!(survey.best(3), [0, 2, 4]);
        assert_eq!(survey.best(9), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_sample_takes_one_trial_of_each_stretch() {
        let survey = survey(&[&vec![0.0; 1000]]);
        let sample = survey.sample(30);
        assert_eq!(sample.len(), 30);
        for (stretch, trial) in sample.iter().enumerate() {
            assert_eq!((*trial as usize * 30 + 29) / 1000, stretch, "{trial}");
        }
        assert!(survey.sample(5000).into_iter().eq(0..1000));
    }

    #[test]
    fn only_a_sample_of_many_trials_with_many_objectives_is_ranked() {
        let column: Vec<f64> = (0..50_000).map(f64::from).collect();
        let are_best = survey(&[&column, &column, &column]).are_best();
        assert_eq!(are_best.iter().flatten().count(), 20_000);
        assert_eq!(are_best.iter().flatten().filter(|is_best| **is_best).count(), 2000);
        assert!(are_best[..40_000].iter().all(|is_best| *is_best != Some(true)));
    }
}
