//! Which member proposed which trial, for trials that were asked and not yet told.
//!
//! Scores come back in the order in which points were asked, but possibly batches later, and points of others may come between
//! (known points that are tried first). A fingerprint tells them apart without keeping the points.

use std::collections::VecDeque;

use rayon::prelude::*;

use crate::point::Points;

/// Points that one thread hashes at a time.
const CHUNK: usize = 512;

/// The owners of the trials that are under way, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    trials: VecDeque<(u64, u8)>,
}

impl Pending {
    /// Remembers points and the members that proposed them.
    pub(super) fn push(&mut self, points: &Points, owners: &[u8]) {
        self.trials.extend(fingerprints(points).into_iter().zip(owners.iter().copied()));
    }

    /// The members that proposed these points; `None` for a point that none of them proposed.
    pub(super) fn pop(&mut self, points: &Points) -> Vec<Option<u8>> {
        let mut owner_of = |fingerprint| {
            let is_next = self.trials.front().is_some_and(|(expected, _)| *expected == fingerprint);
            if is_next { self.trials.pop_front().map(|(_, owner)| owner) } else { None }
        };
        fingerprints(points).into_iter().map(&mut owner_of).collect()
    }
}

/// A hash of each point.
fn fingerprints(points: &Points) -> Vec<u64> {
    let mut hashes = vec![0_u64; points.len()];
    hashes.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk_idx, hashes)| {
        let first = chunk_idx * CHUNK;
        for param_idx in 0..points.n_params() {
            let values = &points.column(param_idx)[first..first + hashes.len()];
            for (hash, value) in hashes.iter_mut().zip(values) {
                // All NaN are alike, and so are both zeros.
                let bits = if value.is_nan() { u64::MAX } else { (value + 0.0).to_bits() };
                *hash = (hash.rotate_left(23) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
    });
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Points {
        Points::from_columns(values.len(), vec![values.to_vec(), vec![f64::NAN; values.len()]])
    }

    #[test]
    fn owners_come_back_in_order_and_strangers_have_none() {
        let mut pending = Pending::default();
        pending.push(&points(&[1.0, 2.0]), &[0, 1]);
        pending.push(&points(&[0.0]), &[2]);
        assert_eq!(pending.pop(&points(&[9.0, 1.0])), [None, Some(0)]);
        assert_eq!(pending.pop(&points(&[2.0, 7.0, -0.0])), [Some(1), None, Some(2)]);
        assert_eq!(pending.pop(&points(&[2.0])), [None]);
    }
}
