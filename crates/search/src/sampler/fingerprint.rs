//! Fingerprints of points: 64 bits by which points are told apart without keeping them.
//!
//! An inactive parameter is NaN, and all NaN are alike; so are both zeros. With ten million points the chance that two of them share a
//! fingerprint is one in 370,000.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use rayon::prelude::*;

use crate::point::Points;
use crate::rng::mix;

/// Values that one thread hashes, about: fewer are done before another thread is awake.
const CHUNK_VALUES: usize = 1 << 14;

/// One for each point, kept with them.
pub(super) fn fingerprints(points: &Points) -> &[u64] {
    points.fingerprints(compute)
}

fn compute(points: &Points) -> Vec<u64> {
    let mut hashes = vec![0_u64; points.len()];
    let n_chunks = (points.len() * points.n_params() / CHUNK_VALUES).max(1);
    let chunk = points.len().div_ceil(n_chunks).max(64);
    hashes.par_chunks_mut(chunk).enumerate().for_each(|(chunk_idx, hashes)| {
        let first = chunk_idx * chunk;
        for param_idx in 0..points.n_params() {
            let values = &points.column(param_idx)[first..first + hashes.len()];
            for (hash, value) in hashes.iter_mut().zip(values) {
                let bits = if value.is_nan() { u64::MAX } else { (value + 0.0).to_bits() };
                let mixed = (hash.rotate_left(23) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                *hash = mixed ^ (mixed >> 32);
            }
        }
        hashes.iter_mut().for_each(|hash| *hash = mix(*hash));
    });
    hashes
}

/// Fingerprints, only looked up and never listed, so that their order does not matter.
pub(super) type FingerprintSet = HashSet<u64, BuildHasherDefault<AsItIs>>;

/// A fingerprint is a hash already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

/// Who proposed the points that were asked and not yet told.
///
/// Scores come back possibly batches later, and among them those of points that somebody else proposed. A point that is pending twice
/// belongs to who proposed it first.
#[derive(Clone, Debug)]
pub(super) struct Pending<T> {
    owners: HashMap<u64, (T, u32), BuildHasherDefault<AsItIs>>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { owners: HashMap::default() }
    }
}

impl<T: Copy> Pending<T> {
    /// Notes points and who proposed them.
    pub(super) fn push(&mut self, points: &Points, owners: impl IntoIterator<Item = T>) {
        for (fingerprint, owner) in fingerprints(points).iter().zip(owners) {
            self.owners.entry(*fingerprint).or_insert((owner, 0)).1 += 1;
        }
    }

    /// Who proposed these points, each of which is pending once less; `None` for a point of somebody else.
    pub(super) fn pop(&mut self, points: &Points) -> Vec<Option<T>> {
        fingerprints(points).iter().map(|fingerprint| self.take(*fingerprint)).collect()
    }

    fn take(&mut self, fingerprint: u64) -> Option<T> {
        let (owner, count) = self.owners.get_mut(&fingerprint)?;
        let owner = *owner;
        *count -= 1;
        if *count == 0 {
            self.owners.remove(&fingerprint);
        }
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f64]) -> Points {
        Points::from_columns(values.len(), vec![values.to_vec(), vec![f64::NAN; values.len()]])
    }

    #[test]
    fn points_are_told_apart_by_their_values_and_inactive_ones_are_alike() {
        let mut seen = FingerprintSet::default();
        let values: Vec<f64> = (0..100_000).map(|value| f64::from(value % 1000)).collect();
        let others: Vec<f64> = (0..100_000).map(|value| f64::from(value / 1000)).collect();
        let whole = Points::from_columns(100_000, vec![values, others]);
        seen.extend(fingerprints(&whole).iter().copied());
        assert_eq!(seen.len(), 100_000);
        let other_nan = f64::from_bits(f64::NAN.to_bits() ^ 1);
        let pair = Points::from_columns(2, vec![vec![0.0, -0.0], vec![f64::NAN, -other_nan]]);
        let both = fingerprints(&pair);
        assert_eq!(both[0], both[1]);
        assert_ne!(both[0], fingerprints(&points(&[1.0]))[0]);
    }

    #[test]
    fn owners_come_back_and_strangers_have_none() {
        let mut pending = Pending::default();
        pending.push(&points(&[1.0, 2.0]), [0, 1]);
        pending.push(&points(&[0.0, 1.0]), [2, 3]);
        assert_eq!(pending.pop(&points(&[9.0, 1.0])), [None, Some(0)]);
        assert_eq!(
            pending.pop(&points(&[2.0, 7.0, -0.0, 1.0, 1.0])),
            [Some(1), None, Some(2), Some(0), None]
        );
        assert!(pending.owners.is_empty());
    }
}
