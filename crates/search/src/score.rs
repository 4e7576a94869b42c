//! Results of trials: the [`Score`] of one, the [`Scores`] of a batch.

use serde::{Deserialize, Serialize};

/// The score of one trial.
///
/// `Invalid` is an outcome, not an error: no trade, no variance, or a requirement not met. It ranks below every valid score and is shown as `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Score {
    /// A finite value, larger is better.
    Valid(f64),
    /// No meaningful value.
    Invalid,
}

impl Score {
    /// A valid score if the value is finite.
    pub fn new(value: f64) -> Self {
        if value.is_finite() { Self::Valid(value) } else { Self::Invalid }
    }

    /// The value, if valid.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Invalid => None,
        }
    }

    /// Best first, invalid last.
    pub fn cmp_best_first(self, other: Self) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Valid(a), Self::Valid(b)) => b.total_cmp(&a),
            (Self::Valid(_), Self::Invalid) => std::cmp::Ordering::Less,
            (Self::Invalid, Self::Valid(_)) => std::cmp::Ordering::Greater,
            (Self::Invalid, Self::Invalid) => std::cmp::Ordering::Equal,
        }
    }
}

/// The scores of a batch: one column per objective, larger is better.
///
/// A trial is valid for all objectives or for none; NaN marks one that is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    len: usize,
    columns: Vec<Vec<f64>>,
}

impl Scores {
    /// The scores of a single objective.
    pub fn single(scores: &[Score]) -> Self {
        let column = scores.iter().map(|score| score.value().unwrap_or(f64::NAN)).collect();
        Self { len: scores.len(), columns: vec![column] }
    }

    /// Scores given as one column per objective. A trial with a value that is not finite is invalid.
    ///
    /// # Panics
    /// If there is no objective, or a column has not `len` values.
    pub fn from_columns(len: usize, mut columns: Vec<Vec<f64>>) -> Self {
        assert!(!columns.is_empty(), "at least one objective");
        assert!(columns.iter().all(|column| column.len() == len), "a column has one value per trial");
        for trial_idx in 0..len {
            if columns.iter().any(|column| !column[trial_idx].is_finite()) {
                columns.iter_mut().for_each(|column| column[trial_idx] = f64::NAN);
            }
        }
        Self { len, columns }
    }

    /// Number of trials.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of objectives, at least one.
    pub fn n_objectives(&self) -> usize {
        self.columns.len()
    }

    /// The values of one objective, NaN where a trial is invalid.
    pub fn column(&self, objective_idx: usize) -> &[f64] {
        &self.columns[objective_idx]
    }

    /// The score of a trial in the first objective.
    pub fn first(&self, trial_idx: usize) -> Score {
        Score::new(self.columns[0][trial_idx])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_invalid_for_all_objectives_or_for_none() {
        let scores = Scores::from_columns(3, vec![vec![1.0, 2.0, f64::INFINITY], vec![4.0, f64::NAN, 6.0]]);
        assert_eq!((scores.len(), scores.n_objectives()), (3, 2));
        assert_eq!(
            [0, 1, 2].map(|idx| scores.first(idx)),
            [Score::Valid(1.0), Score::Invalid, Score::Invalid]
        );
        assert!(scores.column(1)[0] == 4.0 && scores.column(1)[1].is_nan() && scores.column(1)[2].is_nan());
        let single = Scores::single(&[Score::Invalid, Score::new(2.0)]);
        assert_eq!([0, 1].map(|idx| single.first(idx)), [Score::Invalid, Score::Valid(2.0)]);
    }

    #[test]
    fn invalid_scores_rank_below_every_valid_one() {
        let mut scores =
            [Score::Invalid, Score::new(-1e300), Score::new(2.0), Score::new(f64::NAN), Score::new(3.0)];
        scores.sort_by(|a, b| a.cmp_best_first(*b));
        let values: Vec<_> = scores.iter().map(|score| score.value()).collect();
        assert_eq!(values, [Some(3.0), Some(2.0), Some(-1e300), None, None]);
    }
}
