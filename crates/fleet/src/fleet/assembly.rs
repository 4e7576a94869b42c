//! A batch whose rows come back in pieces.

use std::ops::Range;

use tidemill_search::{Batch, Evaluated, Scores};

/// A batch, cut into shards from its first row on, and the rows that are there.
pub(super) struct Assembly {
    pub(super) batch: Batch,
    n_cut: usize,
    n_filled: usize,
    n_objectives: usize,
    columns: Vec<Vec<f64>>,
}

impl Assembly {
    pub(super) fn new(batch: Batch, n_columns: usize) -> Self {
        let columns = vec![vec![f64::NAN; batch.points.len()]; n_columns];
        Self { batch, n_cut: 0, n_filled: 0, n_objectives: 0, columns }
    }

    /// Rows that belong to no shard yet.
    pub(super) fn n_unassigned(&self) -> usize {
        self.batch.points.len() - self.n_cut
    }

    /// The next rows, about so many: a rest of at most half as many goes along.
    pub(super) fn cut(&mut self, n_rows: usize) -> Range<usize> {
        let (from, n_left) = (self.n_cut, self.n_unassigned());
        let n_rows = n_rows.clamp(1, n_left.max(1));
        self.n_cut += if n_left - n_rows <= n_rows / 2 { n_left } else { n_rows };
        from..self.n_cut
    }

    /// Puts rows into their places.
    pub(super) fn fill(&mut self, rows: &Range<usize>, evaluated: Evaluated) {
        let scores = &evaluated.scores;
        self.n_objectives = scores.n_objectives();
        let parts = (0..self.n_objectives).map(|objective| scores.column(objective));
        let parts = parts.chain(evaluated.metrics.iter().map(Vec::as_slice));
        for (column, part) in self.columns.iter_mut().zip(parts) {
            column[rows.clone()].copy_from_slice(part);
        }
        self.n_filled += rows.len();
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_filled == self.batch.points.len()
    }

    pub(super) fn into_evaluated(mut self) -> Evaluated {
        let metrics = self.columns.split_off(self.n_objectives);
        Evaluated { scores: Scores::from_columns(self.batch.points.len(), self.columns), metrics }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidemill_search::Points;

    use super::*;

    #[test]
    fn rows_come_back_to_their_places_in_any_order() {
        let points = Arc::new(Points::from_columns(10, vec![vec![0.0; 10]]));
        let mut assembly = Assembly::new(Batch { index: 3, first_trial: 30, points }, 2);
        let shards = [assembly.cut(4), assembly.cut(4)];
        assert_eq!(shards, [0..4, 4..10], "two rows are no shard of their own");
        assert_eq!(assembly.n_unassigned(), 0);
        for rows in shards.iter().rev() {
            let values: Vec<f64> = rows.clone().map(|row| row as f64).collect();
            let scores = Scores::from_columns(rows.len(), vec![values.clone()]);
            assert!(!assembly.is_full());
            assembly.fill(rows, Evaluated { scores, metrics: vec![values] });
        }
        assert!(assembly.is_full());
        let evaluated = assembly.into_evaluated();
        assert_eq!(evaluated.scores.column(0), evaluated.metrics[0]);
        assert_eq!(evaluated.metrics[0][9], 9.0);
    }
}
