//! Folds whose training part shares nothing with the test part: purged and embargoed.
//!
//! An observation that begins on bar `i` and is decided `hold` bars later shares its fate with all that begin in between. Next to the
//! test part such observations are left out of training ("purged"), and for some bars after it too, because prices remember
//! ("embargo"). Source: López de Prado, "Advances in Financial Machine Learning" (2018), chapter 7.

use std::ops::Range;

/// One fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgedFold {
    /// The bars of the test part.
    pub test: Range<usize>,
    /// The bars of the training part, before and after it; none is empty.
    pub train: Vec<Range<usize>>,
}

/// Cuts `n` bars into `k` test parts, each with the training part that shares nothing with it; no folds for `k` of 0 or beyond `n`.
pub fn purged_folds(n: usize, k: usize, hold: usize, embargo: usize) -> Vec<PurgedFold> {
    if k > n {
        return Vec::new();
    }
    let fold = |at: usize| {
        let test = n * at / k..n * (at + 1) / k;
        let before = 0..test.start.saturating_sub(hold);
        let after = n.min(test.end.saturating_add(hold).saturating_add(embargo))..n;
        let train = [before, after].into_iter().filter(|range| !range.is_empty()).collect();
        PurgedFold { test, train }
    };
    (0..k).map(fold).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the definition, bar by bar.
        #[test]
        fn training_never_overlaps_the_test(n in 1_usize..200, k in 1_usize..12, hold in 0_usize..30, embargo in 0_usize..20) {
            let folds = purged_folds(n, k, hold, embargo);
            prop_assert_eq!(folds.len(), if k > n { 0 } else { k });
            let mut tested = vec![0; n];
            for fold in &folds {
                fold.test.clone().for_each(|bar| tested[bar] += 1);
                let decided = fold.test.end - 1 + hold;
                for bar in 0..n {
                    let overlaps = bar + hold >= fold.test.start && bar <= decided;
                    let embargoed = bar > decided && bar <= decided + embargo;
                    let wanted = !overlaps && !embargoed;
                    // Without a hold an observation is decided where it begins.
                    let trained = fold.train.iter().any(|range| range.contains(&bar));
                    prop_assert_eq!(trained, wanted, "bar {} of {:?}", bar, fold);
                }
            }
            prop_assert!(folds.is_empty() || tested.iter().all(|times| *times == 1));
        }
    }
}
