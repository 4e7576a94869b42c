//! How work is split between searches: by what they paid for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::phase::PhaseKind;

/// How much of what was earned earlier still counts after a round.
const MEMORY: f64 = 0.95;

/// What a first solution with fewer colours earns; lowering the conflicts earns a part of 1.
const SOLVED: f64 = 3.0;

/// What a search is believed to earn before it has; earnings fade, and then this counts again.
fn prior(kind: PhaseKind) -> f64 {
    match kind {
        PhaseKind::Memetic => 1.0,
        PhaseKind::Tabu => 0.5,
        _ => 0.25,
    }
}

/// What the searches have earned. It outlives passes, because what pays at one number of colours mostly pays at the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Credit {
    /// Earnings by name of the phase.
    earned: BTreeMap<String, f64>,
}

impl Credit {
    /// The share of each of these searches: a part is split evenly, the rest by earnings and by what may be expected of them.
    pub fn shares(&self, kinds: &[PhaseKind], even_share: f64) -> Vec<f64> {
        let even = 1.0 / kinds.len().max(1) as f64;
        let worth = |kind: &PhaseKind| prior(*kind) + self.earned.get(kind.name()).copied().unwrap_or(0.0);
        let total: f64 = kinds.iter().map(worth).sum();
        let share = |kind: &PhaseKind| even_share * even + (1.0 - even_share) * worth(kind) / total;
        kinds.iter().map(share).collect()
    }

    /// Takes in what a search did in a round: the conflicts of the best of all before it, and its own after it.
    pub fn learn(&mut self, kind: PhaseKind, iterations: u64, before: Option<u32>, after: u32) {
        let earned = self.earned.entry(kind.name().to_owned()).or_insert(0.0);
        *earned *= MEMORY;
        if iterations == 0 {
            return;
        }
        let gain = match before {
            Some(before) if after < before => f64::from(before - after) / f64::from(before),
            // In the first round nothing can be compared; what solves it at once has earned it all the same.
            None if after == 0 => 1.0,
            _ => 0.0,
        };
        *earned += gain + if after == 0 && before != Some(0) { SOLVED } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_pays_gets_more_and_nobody_starves() {
        let kinds = [PhaseKind::Tabu, PhaseKind::Memetic];
        let mut credit = Credit::default();
        let before = credit.shares(&kinds, 0.4);
        assert!((before.iter().sum::<f64>() - 1.0).abs() < 1e-12 && before[1] > before[0], "{before:?}");
        credit.learn(PhaseKind::Tabu, 1000, Some(10), 0);
        credit.learn(PhaseKind::Memetic, 1000, Some(10), 10);
        let paid = credit.shares(&kinds, 0.4);
        assert!(paid[0] > 0.6 && paid[1] > 0.2, "{paid:?}");
        for _ in 0..400 {
            credit.learn(PhaseKind::Memetic, 1000, Some(5), 5);
            credit.learn(PhaseKind::Tabu, 1000, Some(5), 5);
        }
        let faded = credit.shares(&kinds, 0.4);
        assert!((faded[0] - before[0]).abs() < 1e-3, "what was long ago does not count");
    }
}
