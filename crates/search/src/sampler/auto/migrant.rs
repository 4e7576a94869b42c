//! The few best points of a study, which are told to the islands from time to time.

use crate::point::Points;
use crate::score::{Score, Scores};

/// Number of points that migrate.
const N_MIGRANTS: usize = 4;

/// The best points told so far, by the first objective.
#[derive(Clone, Debug, Default)]
pub(super) struct Migrants {
    /// Best first; of equal scores the earlier one.
    rows: Vec<(f64, Vec<f64>)>,
}

impl Migrants {
    /// Lets the points of a batch compete.
    pub(super) fn extend(&mut self, points: &Points, scores: &[f64]) {
        for (point_idx, &score) in scores.iter().enumerate() {
            let place = self.rows.partition_point(|(other, _)| *other >= score);
            if !score.is_nan() && place < N_MIGRANTS {
                let mut row = vec![0.0; points.n_params()];
                points.read_row(point_idx, &mut row);
                self.rows.insert(place, (score, row));
                self.rows.truncate(N_MIGRANTS);
            }
        }
    }

    /// The points and their scores.
    pub(super) fn points(&self, n_params: usize) -> (Points, Scores) {
        let mut points = Points::new(n_params);
        self.rows.iter().for_each(|(_, row)| points.push(row));
        let scores: Vec<Score> = self.rows.iter().map(|(score, _)| Score::new(*score)).collect();
        (points, Scores::single(&scores))
    }
}
