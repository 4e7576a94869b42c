//! Parameter sets, stored compactly.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

/// Values that one thread moves: fewer are moved before another thread is awake.
const VALUES_AT_ONCE: usize = 1 << 16;

/// Many parameter sets of one space: column-major, one `f64` per value. A copy shares the values until one of the two changes.
///
/// Integers are exact, a choice is the index of its option, a switch is 0 or 1, and NaN marks a parameter whose condition does not hold.
#[derive(Clone, Debug, Default)]
pub struct Points {
    len: usize,
    columns: Arc<Vec<Vec<f64>>>,
    /// A hash of each, once somebody needed them. Points that are proposed come back with their scores, and are recognised by these.
    fingerprints: OnceLock<Vec<u64>>,
}

impl PartialEq for Points {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.columns == other.columns
    }
}

impl Points {
    /// No parameter sets yet, of a space with `n_params` parameters.
    pub fn new(n_params: usize) -> Self {
        Self { columns: Arc::new(vec![Vec::new(); n_params]), ..Self::default() }
    }

    /// The parameter sets whose values are given as one column per parameter.
    ///
    /// # Panics
    /// If a column has not `len` values.
    pub fn from_columns(len: usize, columns: Vec<Vec<f64>>) -> Self {
        assert!(columns.iter().all(|column| column.len() == len), "a column has one value per point");
        Self { len, columns: Arc::new(columns), ..Self::default() }
    }

    /// Number of parameter sets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of parameters.
    pub fn n_params(&self) -> usize {
        self.columns.len()
    }

    /// Adds one parameter set.
    ///
    /// # Panics
    /// If `row` has not one value per parameter.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.columns.len(), "a point has one value per parameter");
        for (column, value) in self.columns_mut().iter_mut().zip(row) {
            column.push(*value);
        }
        self.len += 1;
    }

    /// All values of one parameter.
    pub fn column(&self, param_idx: usize) -> &[f64] {
        &self.columns[param_idx]
    }

    /// All values of one parameter, to change.
    pub(crate) fn column_mut(&mut self, param_idx: usize) -> &mut [f64] {
        &mut self.columns_mut()[param_idx]
    }

    /// All values, one column per parameter, to change.
    pub(crate) fn columns_mut(&mut self) -> &mut [Vec<f64>] {
        self.fingerprints.take();
        Arc::make_mut(&mut self.columns).as_mut_slice()
    }

    /// The fingerprints, which `compute` finds at the first call. It may be called more than once, by threads that come at the same time: were
    /// they to wait, one that helps out inside of `compute` might wait for itself.
    pub(crate) fn fingerprints(&self, compute: impl FnOnce(&Self) -> Vec<u64>) -> &[u64] {
        if self.fingerprints.get().is_none() {
            drop(self.fingerprints.set(compute(self)));
        }
        self.fingerprints.get().map_or(&[], Vec::as_slice)
    }

    /// Adds the parameter sets `range` of other points of the same space.
    ///
    /// # Panics
    /// If the other points have another number of parameters, or fewer points than the range asks for.
    pub fn extend_from(&mut self, other: &Self, range: Range<usize>) {
        assert_eq!(other.columns.len(), self.columns.len(), "points of one space");
        assert!(range.end <= other.len, "a range inside the points");
        let known = if self.is_empty() { Some(Vec::new()) } else { self.fingerprints.take() };
        for (column, more) in self.columns_mut().iter_mut().zip(&*other.columns) {
            column.extend_from_slice(&more[range.clone()]);
        }
        if let (Some(mut known), Some(more)) = (known, other.fingerprints.get()) {
            known.extend_from_slice(&more[range.clone()]);
            self.fingerprints = known.into();
        }
        self.len += range.len();
    }

    /// Leaves the parameter sets in these ranges, which rise, and keeps the memory.
    pub(crate) fn keep(&mut self, kept: &[Range<usize>]) {
        let known = self.fingerprints.take();
        let min_columns = VALUES_AT_ONCE / self.len.max(1);
        let columns = self.columns_mut().par_iter_mut().with_min_len(min_columns.max(1));
        columns.for_each(|column| keep(column, kept));
        if let Some(mut known) = known {
            keep(&mut known, kept);
            self.fingerprints = known.into();
        }
        self.len = kept.iter().map(Range::len).sum();
    }

    /// Puts another parameter set in the place of one.
    pub(crate) fn replace(&mut self, point_idx: usize, row: &[f64]) {
        self.columns_mut().iter_mut().zip(row).for_each(|(column, value)| column[point_idx] = *value);
    }

    /// Some of the parameter sets, by their places.
    pub(crate) fn select(&self, chosen: &[usize]) -> Self {
        let pick = |column: &Vec<f64>| chosen.iter().map(|idx| column[*idx]).collect();
        Self::from_columns(chosen.len(), self.columns.iter().map(pick).collect())
    }

    /// The first `n` parameter sets.
    pub(crate) fn first(mut self, n: usize) -> Self {
        self.columns_mut().iter_mut().for_each(|column| column.truncate(n));
        Self { len: n.min(self.len), ..self }
    }

    /// Removes all parameter sets and keeps the memory.
    pub fn clear(&mut self) {
        self.columns_mut().iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    /// One value.
    pub fn value(&self, point_idx: usize, param_idx: usize) -> f64 {
        self.columns[param_idx][point_idx]
    }

    /// Copies one parameter set into `row`.
    pub fn read_row(&self, point_idx: usize, row: &mut [f64]) {
        for (slot, column) in row.iter_mut().zip(&*self.columns) {
            *slot = column[point_idx];
        }
    }
}

/// Leaves what lies in some ranges, which rise.
fn keep<T: Copy>(column: &mut Vec<T>, kept: &[Range<usize>]) {
    let mut n_kept = 0;
    for range in kept {
        column.copy_within(range.clone(), n_kept);
        n_kept += range.len();
    }
    column.truncate(n_kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_rows_equal_points_of_columns() {
        let mut rows = Points::new(2);
        rows.push(&[1.0, 10.0]);
        rows.push(&[2.0, 20.0]);
        assert_eq!(rows, Points::from_columns(2, vec![vec![1.0, 2.0], vec![10.0, 20.0]]));
        let mut tail = Points::new(2);
        tail.extend_from(&rows, 1..2);
        assert_eq!((tail.len(), tail.value(0, 1)), (1, 20.0));
        tail.clear();
        assert!(tail.is_empty() && tail.n_params() == 2);
    }

    #[test]
    fn fingerprints_are_kept_until_a_point_changes() {
        let first = |points: &Points| points.fingerprints(|points| vec![points.column(0)[0].to_bits()])[0];
        let mut points = Points::from_columns(2, vec![vec![1.0, 2.0]]);
        assert_eq!(first(&points), 1.0_f64.to_bits());
        assert_eq!(points.fingerprints(|_| unreachable!("they are known")).len(), 1);
        assert_eq!(points.clone().fingerprints(|_| unreachable!("a copy knows them too")).len(), 1);
        let changes: [fn(&mut Points); 6] = [
            |points| points.column_mut(0)[0] = 5.0,
            |points| points.columns_mut()[0][0] = 6.0,
            |points| points.push(&[3.0]),
            |points| points.extend_from(&Points::from_columns(1, vec![vec![9.0]]), 0..1),
            |points| points.replace(0, &[8.0]),
            |points| *points = points.clone().first(1),
        ];
        for change in changes {
            change(&mut points);
            assert_eq!(points.fingerprints(|points| vec![7; points.len()]).len(), points.len());
            assert_eq!(points.fingerprints(|_| Vec::new())[0], 7);
        }
        points.clear();
        assert!(points.fingerprints(|_| Vec::new()).is_empty());
    }

    #[test]
    fn points_that_stay_and_points_that_join_keep_their_fingerprints() {
        let bits = |points: &Points| points.column(0).iter().map(|value| value.to_bits()).collect();
        let known = |values: &[f64]| {
            let points = Points::from_columns(values.len(), vec![values.to_vec()]);
            points.fingerprints(bits);
            points
        };
        let mut points = known(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        points.keep(&[1..2, 3..5, 6..7]);
        assert_eq!((points.len(), points.column(0)), (4, &[1.0, 3.0, 4.0, 6.0][..]));
        points.extend_from(&known(&[7.0, 8.0, 9.0]), 1..3);
        let mut empty = Points::new(1);
        empty.extend_from(&points, 0..6);
        let unreachable = |_: &Points| unreachable!("they are known");
        assert_eq!(empty.fingerprints(unreachable), [1.0, 3.0, 4.0, 6.0, 8.0, 9.0].map(f64::to_bits));
        empty.keep(&[]);
        assert!(empty.is_empty() && empty.fingerprints(bits).is_empty());
    }

    #[test]
    fn points_without_parameters_still_count() {
        let mut points = Points::new(0);
        points.push(&[]);
        assert_eq!(points.len(), 1);
    }
}
