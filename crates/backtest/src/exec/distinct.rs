//! The distinct tuples of some scalars among trials.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::plan::KeyParts;

/// The distinct tuples of some scalars among trials.
pub(super) struct Distinct {
    /// The first trial of each tuple.
    pub(super) firsts: Vec<usize>,
    /// The tuple of each trial.
    pub(super) of: Arc<[u32]>,
}

/// The scalars of a chunk of trials, and what is known of their tuples: columns, masks and symbols ask for the same ones again.
pub(super) struct Tuples<'a> {
    /// The scalars of each trial.
    pub(super) scalars: &'a [Vec<f64>],
    known: FxHashMap<Vec<usize>, Arc<Distinct>>,
}

impl<'a> Tuples<'a> {
    /// Of these trials.
    pub(super) fn new(scalars: &'a [Vec<f64>]) -> Self {
        Self { scalars, known: FxHashMap::default() }
    }

    /// The distinct tuples of a key.
    pub(super) fn of(&mut self, parts: &KeyParts) -> Arc<Distinct> {
        if let Some(known) = self.known.get(&parts.scalars) {
            return known.clone();
        }
        let found = Arc::new(Distinct::new(parts, self.scalars));
        self.known.insert(parts.scalars.clone(), found.clone());
        found
    }
}

impl Distinct {
    /// Finds those of a key.
    fn new(parts: &KeyParts, scalars: &[Vec<f64>]) -> Self {
        let mut of = vec![0; scalars.len()];
        let mut firsts = Vec::from_iter((!scalars.is_empty()).then_some(0));
        // Told apart by one scalar after the other, which needs no tuples in memory.
        for scalar in &parts.scalars {
            let bits = |trial: usize| scalars[trial][*scalar].to_bits();
            if (1..scalars.len()).all(|trial| bits(trial) == bits(0)) {
                continue;
            }
            firsts.clear();
            let mut seen: FxHashMap<(u32, u64), u32> = FxHashMap::default();
            for (trial, of) in of.iter_mut().enumerate() {
                *of = *seen.entry((*of, bits(trial))).or_insert_with(|| {
                    firsts.push(trial);
                    firsts.len() as u32 - 1
                });
            }
        }
        Self { firsts, of: of.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_numbered_by_their_first_trials() {
        let scalars = [[1.0, 5.0, 2.0], [1.0, 5.0, 3.0], [0.0, 5.0, 2.0], [1.0, 5.0, 2.0], [0.0, 5.0, 2.0]];
        let scalars = scalars.map(Vec::from);
        let distinct = |parts: &[usize]| {
            let Distinct { firsts, of } =
                Distinct::new(&KeyParts { shape: 0, scalars: parts.into() }, &scalars);
            (firsts, of.to_vec())
        };
        assert_eq!(distinct(&[]), (vec![0], vec![0; 5]));
        assert_eq!(distinct(&[1]), (vec![0], vec![0; 5]));
        assert_eq!(distinct(&[0]), (vec![0, 2], vec![0, 0, 1, 0, 1]));
        assert_eq!(distinct(&[2, 1, 0]), (vec![0, 1, 2], vec![0, 1, 2, 0, 2]));
    }
}
